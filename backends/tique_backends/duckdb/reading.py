"""Reading storage rows by their key, as they are kept: the text of the queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.duckdb.forms import equality, known_rows, listed_equality
from tique_backends.duckdb.keeping import kept_list
from tique_backends.names import key_list, storage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_SINGLE_READS = 16
"""Up to so many keys a UNION ALL of index look-ups beats a join with the keys."""


def row_query(table: Table, read: Sequence[int], key: Row) -> str:
    """The row that has a key."""
    return _query(table, read, _key_match(table, key))


def range_query(
    table: Table, read: Sequence[int], prefix: Row, first: int, last: int
) -> str:
    """Rows with a prefix of the key, and an integer between two after it."""
    return _query(table, read, _range_match(table, prefix, first, last))


def rows_query(table: Table, read: Sequence[int], keys: Sequence[Row]) -> str:
    """The rows that have one of some keys."""
    span = _contiguous(keys)
    if span is not None:
        return range_query(table, read, keys[0][:-1], *span)
    if len(keys) <= _SINGLE_READS:
        return " UNION ALL ".join(row_query(table, read, key) for key in keys)
    values = list(zip(*keys, strict=True))
    wanted = known_rows(table, table.primary_key, values, "_x")
    return (
        f"SELECT {kept_list(table, read, '_s.')} FROM {storage_name(table)} AS _s "
        f"JOIN {wanted} ON {listed_equality(table, table.primary_key)}"
    )


def every_column(table: Table) -> tuple[int, ...]:
    """The positions of all of the table's columns."""
    return tuple(range(len(table.columns)))


def _contiguous(keys: Sequence[Row]) -> tuple[int, int] | None:
    """First and last of the keys' last columns, if they are a run of integers.

    A range of an index's keys is one statement at the price of one look-up.
    """
    if len(keys) < 2 or any(key[:-1] != keys[0][:-1] for key in keys):
        return None
    values = [key[-1] for key in keys]
    if any(type(value) is not int for value in values):
        return None
    first, last = min(values), max(values)
    return (first, last) if last - first == len(set(values)) - 1 else None


def _query(table: Table, read: Sequence[int], match: str) -> str:
    """A query for some columns of the storage rows that match."""
    return f"SELECT {kept_list(table, read)} FROM {storage_name(table)} WHERE {match}"


def _key_match(table: Table, key: Row) -> str:
    # Literals: a parameter has DuckDB 1.5 look for pandas in the whole sys.path.
    return " AND ".join(
        equality(table, i, value)
        for i, value in zip(table.primary_key, key, strict=True)
    )


def _range_match(table: Table, prefix: Row, first: int, last: int) -> str:
    *fixed, ranged = table.primary_key[: len(prefix) + 1]
    matches = [equality(table, i, v) for i, v in zip(fixed, prefix, strict=True)]
    matches.append(f"{key_list(table, [ranged])} BETWEEN {first} AND {last}")
    return " AND ".join(matches)
