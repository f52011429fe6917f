"""Indexes of DuckDB's tables, which belong to no constraint.

A unique index on columns keeps duplicates out just as a UNIQUE constraint on them does, so that
certification has to know it as a key of the table. DuckDB's catalog has its columns as
text: a name, quoted where it has to be. Everything else is an expression, in brackets.

An expression may be an error for a row. DuckDB computes it when a transaction commits, so
that storage would refuse the row at a fold (P4): it is computed at the statement, too,
unless it is known to be an error for no row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tique_backends.records import Row

UNIQUE_INDEXES = """
SELECT schema_name, table_name, index_name FROM duckdb_indexes()
WHERE database_name = current_database() AND is_unique AND sql IS NOT NULL
  AND schema_name <> 'tique'
ORDER BY 1, 2, 3"""
"""A query for schema, table and name of all there are."""

INDEXES_OF_TABLES = """
SELECT schema_name, table_name, index_name, is_unique, CAST(expressions AS VARCHAR[])
FROM duckdb_indexes()
WHERE database_name = current_database() AND sql IS NOT NULL ORDER BY index_name"""
"""A query for schema and table of each, its name, whether it is unique, its columns' texts."""

_NEVER_AN_ERROR = re.compile(
    r'\((?:lower|upper|length|strlen|reverse)\((?:[a-z_]\w*|"(?:[^"]|"")*")\)\)'
)

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')


def fallible(indexes: Iterable[Row]) -> tuple[str, ...]:
    """Return the expressions of these indexes that may be an error for a row."""
    texts = [text for _, _, columns in indexes for text in columns if text[:1] == "("]
    return tuple(
        dict.fromkeys(text for text in texts if not _NEVER_AN_ERROR.fullmatch(text))
    )


def unique_indexes(
    indexes: Iterable[Row], schema: str, name: str, positions: Mapping[str, int]
) -> dict[tuple[int, ...], str]:
    """Return a table's unique indexes: the name of one by the positions of its columns.

    ``indexes`` are all that it has, and ``positions`` those of the columns, by name in small
    letters.

    Raises
    ------
    EngineError
        UNSUPPORTED if one is on an expression.
    """
    found: dict[tuple[int, ...], str] = {}
    for index, is_unique, columns in indexes:
        if not is_unique:
            continue
        key = [positions.get(_column(text)) for text in columns]
        if None in key:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"table {schema}.{name} has a unique index on an expression, {index}; "
                "certification takes a key of columns",
            )
        found.setdefault(tuple([i for i in key if i is not None]), index)
    return found


def _column(text: str) -> str:
    quoted = _QUOTED.fullmatch(text)
    return (quoted[1].replace('""', '"') if quoted else text).lower()
