"""The keys that a table has by unique indexes, beside those of its constraints."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique_rewriter.schema import Table


def with_unique_indexes(table: Table, indexes: Mapping[tuple[int, ...], str]) -> Table:
    """Return a table with these unique indexes, names by columns, as keys of its own.

    They are in the order of their columns, so that it does not matter when or where each was made;
    one on the columns of a constraint adds nothing.
    """
    known = {table.primary_key, *table.unique}
    added = {key: indexes[key] for key in sorted(indexes) if key not in known}
    if not added:
        return table
    return replace(
        table,
        unique=(*table.unique, *added),
        unique_names=(*(None for _ in table.unique), *added.values()),
    )
