"""Reading storage rows by their key: the text of the queries, and the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.monetdb.literals import typed
from tique_backends.names import key_list, storage_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table


def storage_query(table: Table, read: Sequence[int], condition: str) -> str:
    """A query for some columns of the storage rows that match."""
    return (
        f"SELECT {key_list(table, read)} FROM {storage_name(table)} WHERE {condition}"
    )


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
