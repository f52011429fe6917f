"""Groups: all storage rows with one prefix of the key, in memory, kept up to date.

The orders of a customer, the lines of an order, a small table as a whole: a query
that binds every key column but the last reads one group. When recent versions
matter to it, storage has to be asked for the group without the rows that they
replace, which costs the engine two to four times what the query itself does. With
the group in memory, what the statement sees of it is written into the statement.

Invariants
----------
* A group has what storage has. It is read whole, and every fold is applied to it, key
  by key, before the index of recent versions forgets what was folded
  (:meth:`tique._stored.StoredRows.replace`, under the lock of the table's versions).
* *Versions first.* A reader takes the visible versions, then the group. A fold that
  comes between brings only rows that the reader's snapshot sees (λ ≤ sts), and
  those the reader has as versions, which count.
* Readers of rows take no lock: rows are immutable, and a dictionary or a set is
  copied in one step. Only who builds an index keeps folds away.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple

from tique._rows import merged
from tique_backends.base import MISSING, Row

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow

    from tique._rows import Key
    from tique_rewriter.schema import Table

GROUP_ROWS = 4096
"""A group of more rows is not kept."""

_VALUE_BYTES = 64
"""What a value takes as a Python object in a tuple and an index, about."""


class GroupAddress(NamedTuple):
    """A table, and the values of its key columns but the last."""

    table: int
    prefix: Key


class Group:
    """The storage rows of one address.

    Parameters
    ----------
    table
        The table.
    columns
        The columns' positions in the table; the key's last one is among them.
    rows
        These columns. If there are more than :data:`GROUP_ROWS`, the group is only
        a note that it is no use (``is_whole``).
    """

    def __init__(
        self, table: Table, columns: Sequence[int], rows: pyarrow.Table
    ) -> None:
        self.columns = tuple(columns)
        self.is_whole = rows.num_rows <= GROUP_ROWS
        self._lock = threading.Lock()
        self._rows: dict[int, Row] = {}
        self._indexes: dict[int, dict[Any, set[int]]] = {}
        try:
            values = [column.to_pylist() for column in rows.columns if self.is_whole]
        except (ValueError, OverflowError):
            # A date that Python cannot hold.
            self.is_whole = False
        if self.is_whole:
            numbers = values[self.columns.index(table.primary_key[-1])]
            self._rows = dict(zip(numbers, zip(*values, strict=True), strict=True))
        self.size = 1000 + len(self._rows) * len(columns) * _VALUE_BYTES

    def knows(self, columns: Iterable[int]) -> bool:
        """Whether the group has these columns."""
        return self.is_whole and set(self.columns).issuperset(columns)

    def get(self, number: int) -> Row | None:
        """The row with this value in the key's last column."""
        return self._rows.get(number)

    def matching(self, filters: Mapping[int, Any]) -> dict[int, Row]:
        """The rows with these values, by the key's last column."""
        if not filters:
            return self._rows.copy()
        first = next(iter(filters))
        numbers = list(self._index(first).get(filters[first], ()))
        tests = [(self.columns.index(i), value) for i, value in filters.items()]
        return {
            number: row
            for number in numbers
            if (row := self._rows.get(number)) is not None
            and all(row[at] == value for at, value in tests)
        }

    def _index(self, position: int) -> dict[Any, set[int]]:
        index = self._indexes.get(position)
        if index is None:
            at = self.columns.index(position)
            with self._lock:
                index = {}
                for number, row in self._rows.items():
                    index.setdefault(row[at], set()).add(number)
                self._indexes[position] = index
        return index

    def store(self, number: int, row: Row | None) -> bool:
        """Take over what a fold stored: a row of the table; None: it deleted it.

        Returns
        -------
        bool
            Whether the group may be kept; not if it grows beyond all bounds.
        """
        with self._lock:
            old = self._rows.get(number)
            new = None
            if row is not None:
                new = tuple([row[i] for i in self.columns])
                if old is not None:
                    new = merged(new, old)
                if MISSING in new or len(self._rows) > 2 * GROUP_ROWS:
                    return False
                self._rows[number] = new
            elif old is not None:
                del self._rows[number]
            for position, index in self._indexes.items():
                at = self.columns.index(position)
                if new is not None:
                    index.setdefault(new[at], set()).add(number)
                if old is not None and (new is None or new[at] != old[at]):
                    index[old[at]].discard(number)
            return True
