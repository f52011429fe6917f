"""Rows of which some columns were not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table


def widened(table: Table, read: Sequence[int], row: Row) -> Row:
    """A row of the columns ``read`` as a whole row with gaps."""
    if len(read) == len(table.columns):
        return row
    whole: list[Any] = [MISSING] * len(table.columns)
    for position, value in zip(read, row, strict=True):
        whole[position] = value
    return tuple(whole)


def is_partial(row: Row) -> bool:
    """Whether the row has gaps. Values are not compared: some refuse to be."""
    return any(value is MISSING for value in row)


def completed(row: Row, base: Row) -> Row:
    """The row with ``base`` in its gaps."""
    return tuple(
        [b if value is MISSING else value for value, b in zip(row, base, strict=True)]
    )
