"""DuckDB's search path: which schemas a name without one is looked for in.

The application's sessions have the application's, and behind its schemas DuckDB looks in
``main``. tique's own statements name schemas. Another database is none of the path: a schema
alone, as in ``main.t``, would be one of that database's then.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.settings import refused_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.session import Session

_HOME = "main"
_RESERVED = {
    "tique": "its tables are tique's own",
    "temp": "it is DuckDB's own",
    "system": "it is DuckDB's own",
    "information_schema": "it is DuckDB's own",
    "pg_catalog": "it is DuckDB's own",
}

_PART = re.compile(r'"((?:[^"]|"")*)"|([^".,]+)')

_OTHERS = """
SELECT database_name FROM system.main.duckdb_databases()
WHERE database_name <> system.main.current_database()"""
_SCHEMAS = """
SELECT schema_name FROM system.main.duckdb_schemas()
WHERE database_name = system.main.current_database()"""
_RELATIONS = """
SELECT schema_name, name FROM (
  SELECT database_name, schema_name, table_name AS name FROM system.main.duckdb_tables()
  UNION ALL
  SELECT database_name, schema_name, view_name FROM system.main.duckdb_views())
WHERE database_name = system.main.current_database()
  AND list_contains($1::VARCHAR[], schema_name)
QUALIFY count(*) OVER (PARTITION BY lower(name)) > 1"""


def split_path(text: str) -> list[tuple[str, ...]]:
    """The entries of a path, each a schema, a database, or a database and a schema.

    Raises
    ------
    EngineError
        It is not a list of names.
    """
    entries: list[tuple[str, ...]] = []
    parts: list[str] = []
    place = 0
    while place < len(text):
        found = _PART.match(text, place)
        end = len(text) if found is None else found.end()
        if found is None or text[end : end + 1] not in ("", ".", ","):
            raise EngineError(
                ErrorKind.PROGRAMMING, f"{text} is no list of schemas", "22023"
            )
        quoted, bare = found.groups()
        parts.append(bare if quoted is None else quoted.replace('""', '"'))
        if text[end : end + 1] != ".":
            entries.append(tuple(parts))
            parts = []
        place = end + 1
    if parts:
        raise EngineError(
            ErrorKind.PROGRAMMING, f"{text} is no list of schemas", "22023"
        )
    return entries


def path_text(name: str, values: Sequence[str]) -> str:
    """The path that SET of one of its settings gives, as DuckDB takes it.

    Raises
    ------
    EngineError
        PROGRAMMING for what is no path; UNSUPPORTED for schemas of DuckDB's and tique's.
    """
    if len(values) != 1:
        raise EngineError(
            ErrorKind.PROGRAMMING, f"{name} takes one value: write 'a,b'", "22023"
        )
    entries = split_path(values[0])
    if name == "schema" and len(entries) != 1:
        raise EngineError(
            ErrorKind.PROGRAMMING, f"{values[0]} is not one schema", "22023"
        )
    for entry in entries:
        for part in entry:
            if part.casefold() in _RESERVED:
                raise refused_schema(part, _RESERVED[part.casefold()])
    return values[0]


def check_path(session: Session, text: str) -> None:
    """Refuse a path that leads into another database.

    Raises
    ------
    EngineError
        UNSUPPORTED, naming it.
    """
    others = {name.casefold() for (name,) in session.execute(_OTHERS).fetch_all()}
    for first, *_ in split_path(text):
        if first.casefold() in others:
            raise refused_schema(first, f"it is another database; write {first}.table")


def resolve(session: Session) -> tuple[list[str], set[tuple[str, str]]]:
    """The schemas of a session's path, and relations to tell apart.

    The second are those whose names more than one of these schemas has.
    """
    ((named,),) = session.execute(
        "SELECT system.main.current_schemas(false)"
    ).fetch_all()
    spelled = {
        name.casefold(): name for (name,) in session.execute(_SCHEMAS).fetch_all()
    }
    # One that is gone stays: what is made there is refused by the engine.
    schemas = dict.fromkeys(spelled.get(n.casefold(), n) for n in (*named, _HOME))
    if len(schemas) < 2:
        return [*schemas], set()
    found = session.execute(_RELATIONS, [[*schemas]]).fetch_all()
    return [*schemas], {(schema, name) for schema, name in found}
