"""Rows that are known in part.

A point statement on a wide table rarely looks at all of its columns, and each
column of a stored row costs the engine time. So the driver reads the columns that a
statement needs; the others are ``MISSING``.

Invariant: a column that is ``MISSING`` in a version has not been changed by any
version since the one that storage holds, because a version is made from the row
before it and keeps the known columns of it. So storage has the column's value for as
long as any snapshot may read it: a fold moves versions in cts order, and stores none
newer than the oldest snapshot. An inserted row is always whole.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tique.store.policy import CachePolicy
from tique_backends.records import MISSING, Row
from tique_rewriter.local.values import has_zeros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from tique_backends.session import Session
    from tique_rewriter.schema import Table

Key = tuple[Any, ...]
"""The values of some key columns, in the key's order."""


def key_of(positions: Sequence[int], row: Row) -> Key:
    """The columns of ``row`` at ``positions``."""
    return tuple([row[position] for position in positions])


def tuple_of(positions: Sequence[int]) -> Callable[[Row], Key]:
    """A function from a row to its values at ``positions``."""
    if len(positions) == 1:
        (only,) = positions
        return lambda row: (row[only],)
    return itemgetter(*positions) if positions else lambda _: ()


def lacks(row: Row, columns: Iterable[int]) -> bool:
    """Whether any of these columns is not known."""
    return MISSING in map(row.__getitem__, columns)


def merged(newer: Row, older: Row) -> Row:
    """``newer``, with its ``MISSING`` columns taken from ``older``."""
    if MISSING not in newer:
        return newer
    return tuple(
        [old if new is MISSING else new for new, old in zip(newer, older, strict=True)]
    )


def difference(row: Row, stored: Row, key: Sequence[int]) -> Row:
    """The row, with ``MISSING`` for values that storage has, but for its key.

    If the key has become an equal one, storage has another row.
    """
    if not all(row[i] is stored[i] or _is_same(row[i], stored[i]) for i in key):
        return row
    return tuple(
        [
            MISSING if i not in key and (new is old or _is_same(new, old)) else new
            for i, (new, old) in enumerate(zip(row, stored, strict=True))
        ]
    )


def _is_same(new: Any, old: Any) -> bool:
    """Whether two values are the same to the last digit, and not equal only."""
    if new != old or type(new) is float:
        return False
    return type(new) is not Decimal or new.same_quantum(old)


def columns_to_read(table: Table, needed: Iterable[int] | None) -> tuple[int, ...]:
    """Which columns to read for a statement that needs these (None: all).

    Rows whose key may become an equal one are whole: such a row takes another's place.
    """
    columns = None if needed is None else tuple(needed)
    return _columns_to_read(table.types, table.primary_key, columns)


@lru_cache(maxsize=4096)
def _columns_to_read(
    types: tuple[str, ...], primary_key: Key, needed: tuple[int, ...] | None
) -> tuple[int, ...]:
    if (
        needed is None
        or len(types) <= CachePolicy.narrow
        or any(has_zeros(types[i]) for i in primary_key)
    ):
        return tuple(range(len(types)))
    return tuple(sorted({*needed, *primary_key}))


def completed(
    session: Session, table: Table, rows: Sequence[Row]
) -> Sequence[Row | None]:
    """The rows, with missing columns read from storage in one engine statement.

    None stands for a row that storage does not have: such a version comes only from a
    log that was written by hand (:mod:`tique_backends.servers.aside`).
    """
    partial = [
        tuple(row[i] for i in table.primary_key) for row in rows if MISSING in row
    ]
    if not partial:
        return rows
    stored = session.read_rows(table, list(dict.fromkeys(partial)))
    whole: list[Row | None] = []
    for row in rows:
        if MISSING in row:
            base = stored.get(tuple(row[i] for i in table.primary_key))
            whole.append(None if base is None else merged(row, base))
        else:
            whole.append(row)
    return whole
