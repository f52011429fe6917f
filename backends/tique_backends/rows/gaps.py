"""Rows of which some columns were not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session
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


def by_columns(rows: Iterable[Row]) -> dict[tuple[int, ...], list[Row]]:
    """Rows without their gaps, by the columns that they have."""
    found: dict[tuple[int, ...], list[Row]] = {}
    for row in rows:
        known = tuple([i for i, value in enumerate(row) if value is not MISSING])
        found.setdefault(known, []).append(tuple([row[i] for i in known]))
    return found


def unique_columns(table: Table) -> set[int]:
    """The columns of UNIQUE keys, but for those of the primary key."""
    keys = (*table.unique, *(key.columns for key in table.computed_keys))
    return {i for columns in keys for i in columns} - {*table.primary_key}


def whole_in_keys(
    session: Session, table: Table, rows: Mapping[Row, Row | None]
) -> dict[Row, Row]:
    """Those of the rows, by primary key, without gaps that change a UNIQUE key.

    An UPDATE of storage would meet the value that another row is about to give up: such
    rows are deleted before any is inserted.
    """
    unique = unique_columns(table)
    gaps = {
        key: row
        for key, row in rows.items()
        if unique
        and row is not None
        and is_partial(row)
        and any(row[i] is not MISSING for i in unique)
    }
    stored = session.read_rows(table, list(gaps))
    return {
        key: completed(row, stored[key]) for key, row in gaps.items() if key in stored
    }
