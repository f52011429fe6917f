"""The keys that locks are taken of: rows, values of UNIQUE keys, updates that merge."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique.store.rows import Key
    from tique.writes.tickets import Committing

LockKey: TypeAlias = "tuple[int, Key]"
"""A table's id, and a primary key.

That of a row whose lock is this process's alone, though there is a server, has ``~id``. So
has that of a value of a UNIQUE key (:func:`unique_key`), which is nowhere else.
"""

MERGING = (-1,)
"""In place of columns: the updates of a row that merge."""


def own_key(key: LockKey) -> LockKey:
    """The key of a lock that is this process's alone."""
    table, values = key
    return (~table if table >= 0 else table), values


def unique_key(
    table_id: int, positions: tuple[int, ...], values: tuple[object, ...]
) -> LockKey:
    """The key of a value of a UNIQUE key in these columns."""
    return ~table_id, (positions, *values)


def merging_key(key: LockKey) -> LockKey:
    """The key that transactions share which have changed a row by updates that merge."""
    table, values = key
    return (~table if table >= 0 else table), (MERGING, *values)


def seen_key(key: LockKey) -> LockKey:
    """The key of the one among these that has looked at the row since."""
    table, values = key
    return (~table if table >= 0 else table), ((-2,), *values)


def reference_key(
    table_id: int, positions: tuple[int, ...], values: tuple[object, ...]
) -> LockKey:
    """The key that references to a row's key share, and a transaction has that gives it up."""
    return ~table_id, ((-3, *positions), *values)


def is_shown(key: LockKey) -> bool:
    """Whether other processes may see it: it is no row, and not this process's alone."""
    table, values = key
    return table < 0 and isinstance(values[0], tuple) and values[0] != (-2,)


def in_order(keys: Iterable[LockKey]) -> list[LockKey]:
    """Keys in an order that all transactions lock them in, so that few meet a deadlock.

    Rows come first: a transaction that waits for one has no value that a commit of the row looks for.
    """
    keys = list(keys)
    try:
        return sorted(keys, key=lambda key: (key[0] < 0, key))
    except TypeError:
        # Values of one column need have no order: addresses of two kinds.
        return sorted(keys, key=lambda key: (key[0] < 0, repr(key)))


def may_write(transaction: Committing, key: LockKey) -> bool:
    """Whether a transaction writes a key, or may."""
    table, values = key
    if table < 0 and isinstance(values[0], tuple):
        if values[0] != (-2,):
            return False
        values = values[1:]
    writes = transaction.writes.get(table if table >= 0 else ~table)
    return writes is not None and writes.may_write(values)
