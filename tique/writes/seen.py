"""What a transaction has seen of its snapshot, in as far as it bears on a later one.

A transaction whose mergeable updates (:mod:`tique.commit.mergeable`) were overtaken can be
committed as if it had begun later, if everything that it saw is still so. What a
statement sees is noted where the rows are found, under one of three forms:

* *rows*, by their keys, with the columns that were looked at. That a row is not there is
  seen too, and so is that it is there (no columns);
* *groups*: all rows with some values in key columns;
* *tables*, whole: any query that the engine answers.

It is only ever added to. A savepoint gives back what was written; what was seen stays
seen.
"""

from __future__ import annotations

from decimal import Decimal
from math import copysign
from typing import TYPE_CHECKING, Any, NamedTuple

from tique.store.rows import merged
from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.schema import Table


class SeenGroup(NamedTuple):
    """All rows of a table with ``values`` in ``positions``, some of its key columns."""

    table_id: int
    positions: tuple[int, ...]
    values: Key
    columns: frozenset[int]

    def has(self, table: Table, key: Key) -> bool:
        """Whether a row with this primary key is one of them."""
        places = [table.primary_key.index(i) for i in self.positions]
        return tuple([key[i] for i in places]) == self.values


class Seen:
    """What one transaction has seen; used by one thread at a time."""

    __slots__ = ("definitions", "groups", "own", "rows", "tables")

    def __init__(self) -> None:
        self.definitions: dict[int, Table] = {}
        """The tables as they were defined, by id."""
        self.rows: dict[tuple[int, Key], tuple[Row | None, frozenset[int]]] = {}
        """By table and key: the row, and the columns of it that were looked at."""
        self.groups: set[SeenGroup] = set()
        self.tables: set[int] = set()
        self.own: set[tuple[int, Key]] = set()
        """Rows that the transaction had changed: nothing of them may have changed."""

    def __bool__(self) -> bool:
        """Whether anything was seen."""
        return bool(self.rows or self.groups or self.tables or self.own)

    def row(
        self, table: Table, key: Key, row: Row | None, columns: Collection[int]
    ) -> None:
        """Note a row of the snapshot, or that there is none."""
        place = table.id, key
        before = self.rows.get(place)
        self.definitions[table.id] = table
        looked_at = frozenset(columns)
        if before is not None and before[0] is not None and row is not None:
            row = merged(row, before[0])
            looked_at |= before[1]
        self.rows[place] = row, looked_at

    def has(self, table: Table, key: Key, row: Row, columns: Collection[int]) -> bool:
        """Whether the same statement has noted this very row, with the definition."""
        before = self.rows.get((table.id, key))
        return before is not None and before[0] is row and before[1] is columns

    def own_row(self, table: Table, key: Key) -> None:
        """Note a row that the transaction had changed."""
        self.own.add((table.id, key))

    def group(
        self, table: Table, bound: Mapping[int, Any], columns: Iterable[int]
    ) -> None:
        """Note all rows with values in key columns."""
        self.definitions[table.id] = table
        values = tuple(bound.values())
        self.groups.add(SeenGroup(table.id, tuple(bound), values, frozenset(columns)))

    def table(self, table: Table) -> None:
        """Note that anything of a table may have been seen."""
        self.definitions[table.id] = table
        self.tables.add(table.id)


def is_same_row(newest: Row | None, seen: Row | None, columns: Iterable[int]) -> bool:
    """Whether a row is there as before, in some columns; a gap is no change."""
    if newest is None or seen is None:
        return newest is seen
    return all(
        newest[i] is MISSING or _is_same_value(newest[i], seen[i]) for i in columns
    )


def _is_same_value(new: Any, old: Any) -> bool:
    """Whether a value is the same, to the last digit."""
    if new is old:
        return True
    if type(new) is not type(old) or new != old:
        return False
    if isinstance(new, float):
        return copysign(1, new) == copysign(1, old)
    return not isinstance(new, Decimal) or new.same_quantum(old)
