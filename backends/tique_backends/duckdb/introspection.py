"""Tables' schemas, read from DuckDB's catalog."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.duckdb.generated import generated_columns
from tique_backends.duckdb.unique_indexes import (
    fallible,
    indexes_of,
    unique_indexes,
)
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.keys import with_unique_indexes
from tique_backends.names import quote
from tique_rewriter.schema import Check, Column, Table

if TYPE_CHECKING:
    from tique_backends.session import Session
    from tique_rewriter.schema import Generated

_RESERVED = ("_cts", "_deleted", "_sequence")

_CONSTRAINTS = """
SELECT constraint_type, constraint_column_names, expression, constraint_name
FROM duckdb_constraints()
WHERE database_name = current_database() AND schema_name = $1 AND table_name = $2
ORDER BY constraint_index"""

_REFERENCED = """
SELECT 1 FROM duckdb_constraints()
WHERE database_name = current_database() AND schema_name = $1
  AND referenced_table = $2"""

# A macro of the application's may be called lower.
_FOUND = """
SELECT database_name, schema_name, table_name, sql FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
  AND system.main.lower(schema_name) = system.main.lower($1)
  AND system.main.lower(table_name) = system.main.lower($2)
  AND schema_name <> 'tique'"""

_QUOTED = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"")

USER_TABLES = """
SELECT schema_name, table_name FROM duckdb_tables()
WHERE database_name = current_database() AND NOT internal AND NOT temporary
  AND schema_name <> 'tique'
ORDER BY 1, 2"""


LAYOUTS = """
SELECT table_name, column_name FROM duckdb_columns()
WHERE database_name = current_database() AND schema_name = 'tique'
ORDER BY table_oid, column_index"""
"""A query for the columns of tique's tables: table and column name, in order."""


def describe(session: Session, schema: str, name: str, table_id: int = 0) -> Table:
    """Read a table's schema; the names are matched without regard to case.

    Raises
    ------
    EngineError
        PROGRAMMING if there is no such table, UNSUPPORTED if it has something
        whose promises tique cannot keep.
    """
    found = session.execute(_FOUND, [schema, name]).fetch_all()
    if not found:
        raise EngineError(ErrorKind.PROGRAMMING, f"there is no table {schema}.{name}")
    database, schema, name, definition = map(str, found[0])
    label = f"{schema}.{name}"
    # duckdb_columns() would go through those of every table and view there is.
    described = session.execute(
        f"DESCRIBE {quote(database)}.{quote(schema)}.{quote(name)}"
    ).fetch_all()
    words = _QUOTED.sub("", definition).upper()
    generated: tuple[Generated, ...] = ()
    if "GENERATED ALWAYS AS" in words:
        generated = generated_columns(session, schema, name, described)
    computed = {column.name for column in generated}
    columns = tuple(
        Column(column, type_name, nullable == "NO", default)
        for column, type_name, nullable, _, default, _ in described
        if column not in computed
    )
    # A constraint's names are as they were written there, in whichever case.
    positions = {column.name.lower(): i for i, column in enumerate(columns)}
    for column in columns:
        if column.name.lower() in _RESERVED:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"table {label}: the column name {column.name!r} is reserved",
            )
    if " COLLATE " in words:
        # Keys that are equal there would be different ones in memory.
        raise EngineError(
            ErrorKind.UNSUPPORTED, f"table {label} has a column with a collation"
        )
    if session.execute(_REFERENCED, [schema, name]).fetch_all():
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"table {label} is referenced by another table's FOREIGN KEY constraint",
        )
    primary_key: tuple[int, ...] = ()
    unique: list[tuple[int, ...]] = []
    checks: list[Check] = []
    for kind, names, expression, constraint in session.execute(
        _CONSTRAINTS, [schema, name]
    ).fetch_all():
        if kind == "PRIMARY KEY":
            primary_key = tuple(positions[n.lower()] for n in names)
        elif kind == "UNIQUE":
            unique.append(tuple(positions[n.lower()] for n in names))
        elif kind == "CHECK":
            checks.append(Check(expression, constraint))
        elif kind == "FOREIGN KEY":
            raise EngineError(
                ErrorKind.UNSUPPORTED, f"table {label} has a FOREIGN KEY constraint"
            )
    indexes = indexes_of(session, schema, name)
    table = Table(
        schema,
        name,
        columns,
        primary_key,
        tuple(unique),
        tuple(checks),
        table_id,
        generated=generated,
        indexed=fallible(indexes),
    )
    return with_unique_indexes(table, unique_indexes(indexes, schema, name, positions))
