"""Reading storage rows by their key: the text of the queries, and the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.monetdb.literals import typed
from tique_backends.names import cache_name, key_list, storage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table


def storage_query(table: Table, read: Sequence[int], condition: str) -> str:
    """A query for some columns of the storage rows that match."""
    return (
        f"SELECT {key_list(table, read)} FROM {storage_name(table)} "
        f"WHERE {condition}{still_there(table)}"
    )


def still_there(table: Table) -> str:
    """A condition that is TRUE, in a statement that fails when the table is gone.

    A prepared statement finds its tables by their names whenever it is executed, those
    that are in its plan: a WITH that nothing reads is not. It costs 10 µs.
    """
    if table.is_temporary:
        return ""
    return f" AND NOT EXISTS (SELECT 1 FROM {cache_name(table)} WHERE FALSE)"


def key_literals(table: Table, key: Row) -> list[str]:
    """A key's first values, as literals of its columns' types."""
    types = [table.columns[i].type for i in table.primary_key]
    return [
        typed(value, type_name) for value, type_name in zip(key, types, strict=False)
    ]


def key_condition(
    table: Table, key: Sequence[str], between: tuple[object, object] | None = None
) -> str:
    """A condition on the key's first columns, and on the range of the one after them."""
    names = [key_list(table, [i]) for i in table.primary_key]
    terms = [f"{name} = {text}" for name, text in zip(names, key, strict=False)]
    if between:
        terms.append(f"{names[len(key)]} BETWEEN {between[0]} AND {between[1]}")
    return " AND ".join(terms)
