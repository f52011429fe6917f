"""Other files that DuckDB reads beside the database.

The file is opened to be read, so no process changes it: what it has when it is attached, it
has until it is detached.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_rewriter.schema import Attached

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.session import Session

_TAKEN = """
SELECT 1 FROM duckdb_schemas() WHERE lower(schema_name) = lower($1)
  AND database_name IN (current_database(), 'system', 'temp')"""
_SCHEMAS = (
    "SELECT 1 FROM duckdb_schemas() WHERE database_name = $1 AND schema_name = 'tique'"
)
_TABLES = """
SELECT lower(schema_name), lower(table_name) FROM duckdb_tables()
WHERE database_name = $1"""
_VIEWS = """
SELECT lower(schema_name), lower(view_name) FROM duckdb_views()
WHERE database_name = $1 AND NOT internal"""
_MACROS = """
SELECT schema_name || '.' || function_name FROM duckdb_functions()
WHERE database_name = $1 AND NOT internal ORDER BY 1 LIMIT 1"""


def attach(session: Session, path: str, name: str, options: Sequence[str]) -> Attached:
    """Attach a file under a name, with such options in SQL, and say what is in it.

    Raises
    ------
    EngineError
        UNSUPPORTED for a name that a schema has, and for a file that tique manages or that
        has macros. Whatever DuckDB says of the file.
    """
    if name.lower() == "tique" or session.execute(_TAKEN, [name]).fetch_all():
        # Natively the names in that schema would be ambiguous, tique's among them.
        raise _refusal(name, "a schema has that name; write ATTACH … AS another one")
    if "://" in path:
        raise _refusal(name, f"{path} is no file, and would need an extension")
    text = path.replace("'", "''")
    listed = ", ".join(["TYPE duckdb", "READ_ONLY", *options])
    session.execute(f"ATTACH '{text}' AS {quote(name)} ({listed})").close()
    try:
        if session.execute(_SCHEMAS, [name]).fetch_all():
            raise _refusal(
                name,
                f"tique manages {path}, whose tables lack recent versions; detach it with "
                "`tique detach`, or connect() to it",
            )
        macros = session.execute(_MACROS, [name]).fetch_all()
        if macros:
            raise _refusal(
                name,
                f"{path} has the macro {macros[0][0]}(), and macros may read tables "
                "outside of the snapshot; drop it there",
            )
        tables, views = (
            frozenset((schema, table) for schema, table in rows)
            for rows in (
                session.execute(query, [name]).fetch_all()
                for query in (_TABLES, _VIEWS)
            )
        )
    except BaseException:
        with suppress(EngineError):
            session.execute(f"DETACH {quote(name)}").close()
        raise
    return Attached(name, tables, views)


def _refusal(name: str, reason: str) -> EngineError:
    return EngineError(
        ErrorKind.UNSUPPORTED, f'ATTACH of "{name}" is not supported: {reason}'
    )
