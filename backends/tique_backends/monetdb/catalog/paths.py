"""MonetDB's current schema: names without one are looked for there, then in ``sys``.

The application's sessions have the application's. tique's own statements name schemas, and
MonetDB finds its own types and functions in ``sys`` from everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_backends.settings import refused_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.session import Session

HOME = "sys"

_IS_SYSTEM = "SELECT system FROM sys.schemas WHERE name = $1"
_FUNCTIONS = """
SELECT f.name FROM sys.functions AS f JOIN sys.schemas AS s ON s.id = f.schema_id
WHERE s.name = $1 AND NOT f.system
  AND f.name IN (SELECT o.name FROM sys.functions AS o WHERE o.system)"""
_RELATIONS = """
SELECT s.name, t.name FROM sys._tables AS t JOIN sys.schemas AS s ON s.id = t.schema_id
WHERE s.name IN ($1, $2) AND t.name IN (
  SELECT o.name FROM sys._tables AS o JOIN sys.schemas AS p ON p.id = o.schema_id
  WHERE p.name IN ($1, $2) GROUP BY o.name HAVING count(*) > 1)"""


def path_text(name: str, values: Sequence[str]) -> str:
    """The schema that SET SCHEMA names.

    Raises
    ------
    EngineError
        PROGRAMMING for more than one.
    """
    if len(values) != 1:
        raise EngineError(ErrorKind.PROGRAMMING, f"{name} takes one schema", "42000")
    return values[0]


def setting_schema(session: Session, schema: str) -> str:
    """The statement that makes a schema a session's.

    Raises
    ------
    EngineError
        UNSUPPORTED, for a schema of tique's, or whose names would be other objects
        than those that tique's rewriter knows.
    """
    found = session.execute(_IS_SYSTEM, [schema]).fetch_all()
    if schema == "tique":
        raise refused_schema(schema, "its tables are tique's own", "schema")
    if found == [(True,)] and schema != HOME:
        raise refused_schema(schema, "it is MonetDB's own", "schema")
    functions = session.execute(_FUNCTIONS, [schema]).fetch_all()
    if functions:
        raise refused_schema(
            schema,
            f"its function {functions[0][0]}() has the name of MonetDB's own",
            "schema",
        )
    return f"SET SCHEMA {quote(schema)}"


def resolve(session: Session) -> tuple[list[str], set[tuple[str, str]]]:
    """The schemas in which a session looks for names, and relations to tell apart.

    The second are those whose names both of these schemas have.
    """
    ((schema,),) = session.execute("SELECT CURRENT_SCHEMA").fetch_all()
    if schema == HOME:
        return [HOME], set()
    found = session.execute(_RELATIONS, [schema, HOME]).fetch_all()
    return [schema, HOME], {(place, name) for place, name in found}
