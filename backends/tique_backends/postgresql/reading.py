"""Reading storage rows by their key: the text of the queries, and their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique_backends.names import key_list, storage_name
from tique_backends.postgresql.literals import (
    array_parameter,
    array_parameters,
    arrays,
)
from tique_backends.postgresql.names import still_there
from tique_backends.postgresql.types import INTEGERS, comparable_type

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table


def row_query(table: Table, read: Sequence[int], key: Row) -> tuple[str, list[Any]]:
    """The row that has a key."""
    return _query(table, read, _key_condition(table, len(key))), list(key)


def rows_query(
    table: Table, read: Sequence[int], keys: Sequence[Row]
) -> tuple[str, list[Any]]:
    """The rows that have one of some keys."""
    *fixed, last = table.primary_key
    prefix = keys[0][:-1]
    if all(key[:-1] == prefix for key in keys):
        kind = table.columns[last].type
        parameters = [*prefix, array_parameter([key[-1] for key in keys], kind)]
        condition = _key_condition(table, len(fixed))
        condition += f"{' AND ' if fixed else ''}{key_list(table, [last])} = "
        condition += f"ANY (CAST(${len(parameters)} AS {kind}[]))"
        return _query(table, read, condition), parameters
    source = arrays(table, table.primary_key)
    names = ", ".join(f"_{i}" for i in table.primary_key)
    same = " AND ".join(
        f"_s.{key_list(table, [i])} = _x._{i}" for i in table.primary_key
    )
    sql = (
        f"SELECT {key_list(table, read, '_s.')} FROM ONLY {storage_name(table)} AS _s "
        f"JOIN {source} AS _x({names}) ON {same}{_still_there(table, ' WHERE ')}"
    )
    return sql, [*array_parameters(table, table.primary_key, keys)]


def range_query(
    table: Table, read: Sequence[int], prefix: Row, first: int, last: int
) -> tuple[str, list[Any]]:
    """Rows with a prefix of the key, and an integer between two after it."""
    ranged = table.columns[table.primary_key[len(prefix)]]
    largest = (1 << INTEGERS[ranged.type] - 1) - 1
    between = [max(first, -largest - 1), min(last, largest)]
    condition = _key_condition(table, len(prefix), ranges=True)
    return _query(table, read, condition), [*prefix, *between]


def _query(table: Table, read: Sequence[int], condition: str) -> str:
    """A query for some columns of the storage rows that match."""
    return (
        f"SELECT {key_list(table, read)} FROM ONLY {storage_name(table)} "
        f"WHERE {condition or 'TRUE'}{_still_there(table, ' AND ')}"
    )


def _still_there(table: Table, before: str) -> str:
    return "" if table.is_temporary else before + still_there(table)


def _key_condition(table: Table, bound: int, *, ranges: bool = False) -> str:
    """A condition on the key's first columns, and on the range of the one after them."""
    names = [key_list(table, [i]) for i in table.primary_key]
    types = [table.columns[i].type for i in table.primary_key]
    terms = [
        f"{names[n]} = CAST(${n + 1} AS {comparable_type(types[n])})"
        for n in range(bound)
    ]
    if ranges:
        kind = types[bound]
        terms.append(
            f"{names[bound]} BETWEEN CAST(${bound + 1} AS {kind}) "
            f"AND CAST(${bound + 2} AS {kind})"
        )
    return " AND ".join(terms)
