"""Indexes of DuckDB's tables, which belong to no constraint.

A unique index on columns keeps duplicates out just as a UNIQUE constraint on them does, so that
certification has to know it as a key of the table. DuckDB's catalog has its columns as
text: a name, quoted where it has to be. Everything else is an expression, in brackets. One
on expressions is a key whose values the engine computes, from the rows' columns.

An expression may be an error for a row. DuckDB computes it when a transaction commits, so
that storage would refuse the row at a fold (P4): it is computed at the statement, too,
unless it is known to be an error for no row.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tique_backends.catalog.keys import with_unique_indexes
from tique_backends.duckdb.catalog.generated import names_in, parsed_expression
from tique_backends.duckdb.catalog.purity import nodes
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import quote
from tique_rewriter.schema import ComputedKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

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


def with_keys(session: Session, table: Table, indexes: Iterable[Row]) -> Table:
    """Return a table with its unique indexes as keys; ``indexes`` are all that it has.

    Raises
    ------
    EngineError
        UNSUPPORTED if one has a collation, or a generated column.
    """
    plain: dict[tuple[int, ...], str] = {}
    computed = []
    for index, is_unique, texts in indexes:
        if not is_unique:
            continue
        key = tuple([i for text in texts if (i := _column(table, text)) is not None])
        if len(key) == len(texts):
            plain.setdefault(key, index)
        else:
            computed.append(_computed(session, table, index, texts))
    return replace(with_unique_indexes(table, plain), computed_keys=tuple(computed))


def _computed(
    session: Session, table: Table, index: str, texts: Sequence[str]
) -> ComputedKey:
    parts, columns = [], set[int]()
    for text in texts:
        position = _column(table, text)
        if position is not None:
            parts.append(quote(table.columns[position].name))
            columns.add(position)
            continue
        parsed = parsed_expression(session, text)
        names = names_in(parsed)
        if any(column.name.lower() in names for column in table.generated):
            raise _refused(table, index, "with a generated column")
        if any(node.get("class") == "COLLATE" for node in nodes(parsed)):
            raise _refused(table, index, "with a collation")
        named = [i for name, i in table.positions.items() if name in names]
        if not named:
            raise _refused(table, index, f"on {text}, which cannot be examined")
        parts.append(text)
        columns.update(named)
    equalities = ("=",) * len(parts)
    return ComputedKey(index, tuple(parts), equalities, tuple(sorted(columns)))


def _refused(table: Table, index: str, what: str) -> EngineError:
    return EngineError(
        ErrorKind.UNSUPPORTED,
        f"table {table.qualified_name} has a unique index {what}, {index}",
    )


def _column(table: Table, text: str) -> int | None:
    """The position of the column that an index's text is; None for an expression."""
    quoted = _QUOTED.fullmatch(text)
    name = quoted[1].replace('""', '"') if quoted else text
    return table.positions.get(name.lower())
