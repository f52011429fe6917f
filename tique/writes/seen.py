"""What a transaction has seen of its snapshot.

A SERIALIZABLE transaction is committed if everything that it saw is still so just before
its commit (:mod:`tique.commit.validation`); one whose mergeable updates
(:mod:`tique.commit.mergeable`) were overtaken is, if all else that it saw is. What a
statement sees is noted where the rows are found, under one of two forms:

* *rows*, by their keys, with the columns that were looked at. That a row is not there is
  seen too, and so is that it is there (no columns);
* *predicates*: all rows of a table of which some conditions are true, those that were not
  there too. A condition on other tables' rows, or one that the driver cannot evaluate, is
  none of them: more rows have been seen then, and without any condition all of them.
  An aggregate, LIMIT or min() has seen all rows of its predicate: any of them could have
  changed the result.

It is only ever added to. A savepoint gives back what was written; what was seen stays
seen, and a row that was written and given back was seen.
"""

from __future__ import annotations

from decimal import Decimal
from math import copysign
from typing import TYPE_CHECKING, Any

from tique.store.rows import merged
from tique.writes.predicates import Predicate, SeenPredicate
from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_MOST_PREDICATES = 1000
"""Of one transaction; a further one is noted as its whole table."""


class Seen:
    """What one transaction has seen; used by one thread at a time."""

    __slots__ = ("_whole", "definitions", "own", "predicates", "rows")

    def __init__(self) -> None:
        self.definitions: dict[int, Table] = {}
        """The tables as they were defined, by id."""
        self.rows: dict[tuple[int, Key], tuple[Row | None, frozenset[int]]] = {}
        """By table and key: the row, and the columns of it that were looked at."""
        self.predicates: dict[SeenPredicate, None] = {}
        self.own: set[tuple[int, Key]] = set()
        """Rows that the transaction had changed: nothing of them may have changed."""
        self._whole: set[int] = set()

    def copy(self) -> Seen:
        """Return what was seen so far."""
        other = Seen()
        other.definitions = dict(self.definitions)
        other.rows = dict(self.rows)
        other.predicates = dict(self.predicates)
        other.own = set(self.own)
        other._whole = set(self._whole)
        return other

    def __bool__(self) -> bool:
        """Whether anything was seen."""
        return bool(self.rows or self.predicates or self.own)

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
        self.definitions[table.id] = table
        self.own.add((table.id, key))

    def rows_of(
        self,
        predicate: Predicate,
        parameters: Sequence[Any],
        columns: frozenset[int] | None,
    ) -> None:
        """Note the rows of a predicate, and that there are no others."""
        table = predicate.table
        self.definitions[table.id] = table
        if len(self.predicates) < _MOST_PREDICATES:
            try:
                found = SeenPredicate(predicate, tuple(parameters), columns)
                self.predicates[found] = None
                return
            except TypeError:
                # Lists and objects cannot be told apart.
                pass
        self.table(table)

    def table(self, table: Table) -> None:
        """Note that anything of a table may have been seen."""
        self.definitions[table.id] = table
        if table.id not in self._whole:
            self._whole.add(table.id)
            self.predicates[SeenPredicate(Predicate(table))] = None


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
