"""Groups: all storage rows with one prefix of the key, in memory, kept up to date.

The orders of a customer, the lines of an order, a small table as a whole: a query
that binds every key column but the last reads one group. When recent versions
matter to it, storage has to be asked for the group without the rows that they
replace, which costs the engine two to four times what the query itself does. With
the group in memory, what the statement sees of it is written into the statement, and
a simple statement needs no engine at all.

Small groups are read with their neighbours, a *stretch* at a time: the engine takes
hardly longer to find the lines of many orders than those of one.

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

from tique._rows import lacks, merged
from tique_backends.base import MISSING, Row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow

    from tique._rows import Key
    from tique_rewriter.schema import Table

GROUP_ROWS = 4096
"""A group of more rows is not kept."""

STRETCH = 32
"""So many small groups are read at once."""

_VALUE_BYTES = 64
"""What a value takes as a Python object in a tuple and an index, about."""


class GroupAddress(NamedTuple):
    """A table, and the values of its key columns but the last."""

    table: int
    prefix: Key


class Stretch(NamedTuple):
    """Storage rows to read: ``prefix`` and the range of the key column after it.

    That is one group, or some whose prefixes differ in the last column only.
    """

    prefix: Key
    first: int
    last: int


class Group:
    """The storage rows of one address.

    Parameters
    ----------
    columns
        The positions of the columns that the rows have.
    rows
        Rows of the table, with gaps, by the key's last column. None: the group is only
        a note that it is no use (``is_whole``).
    """

    def __init__(
        self, columns: Collection[int], rows: Mapping[int, Row] | None
    ) -> None:
        self.columns = frozenset(columns)
        self.is_whole = rows is not None
        self._lock = threading.Lock()
        self._rows: dict[int, Row] = dict(rows or {})
        self._indexes: dict[int, dict[Any, set[int]]] = {}
        self.size = 1000 + len(self._rows) * len(columns) * _VALUE_BYTES

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._rows)

    def knows(self, columns: Iterable[int]) -> bool:
        """Whether the group has these columns."""
        return self.is_whole and self.columns.issuperset(columns)

    def get(self, number: int) -> Row | None:
        """The row with this value in the key's last column."""
        return self._rows.get(number)

    def matching(self, filters: Mapping[int, Any]) -> dict[int, Row]:
        """The rows with these values, by the key's last column."""
        if not filters:
            return self._rows.copy()
        first = next(iter(filters))
        numbers = list(self._index(first).get(filters[first], ()))
        return {
            number: row
            for number in numbers
            if (row := self._rows.get(number)) is not None
            and all(row[i] == value for i, value in filters.items())
        }

    def _index(self, position: int) -> dict[Any, set[int]]:
        index = self._indexes.get(position)
        if index is None:
            with self._lock:
                index = {}
                for number, row in self._rows.items():
                    index.setdefault(row[position], set()).add(number)
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
            new = row
            if new is not None:
                if old is not None:
                    new = merged(new, old)
                if lacks(new, self.columns) or len(self._rows) > 2 * GROUP_ROWS:
                    return False
                self._rows[number] = new
            elif old is not None:
                del self._rows[number]
            for i, index in self._indexes.items():
                if new is not None:
                    index.setdefault(new[i], set()).add(number)
                if old is not None and (new is None or new[i] != old[i]):
                    index[old[i]].discard(number)
            return True


def groups_of(
    table: Table, stretch: Stretch, columns: Sequence[int], rows: pyarrow.Table
) -> dict[Key, Group]:
    """The groups of a stretch, by prefix.

    Parameters
    ----------
    columns
        The columns' positions in the table; those of the key that the stretch's prefix
        does not have are among them.
    rows
        These columns; if there are more than :data:`GROUP_ROWS`, not all of them.
    """
    fixed = len(stretch.prefix)
    is_one = fixed == len(table.primary_key) - 1
    numbers = range(stretch.first, stretch.last + 1)
    prefixes = (
        [stretch.prefix]
        if is_one
        else [(*stretch.prefix, number) for number in numbers]
    )
    known = {*columns, *table.primary_key[:fixed]}
    try:
        if rows.num_rows > GROUP_ROWS:
            raise OverflowError
        values = [column.to_pylist() for column in rows.columns]
    except (ValueError, OverflowError):
        # Too many rows, or a date that Python cannot hold.
        return {prefix: Group(known, None) for prefix in prefixes}
    found: dict[Key, dict[int, Row]] = {prefix: {} for prefix in prefixes}
    whole: list[Any] = [MISSING] * len(table.columns)
    for position, value in zip(table.primary_key, stretch.prefix, strict=False):
        whole[position] = value
    *_, last = table.primary_key
    for row in zip(*values, strict=True):
        for position, value in zip(columns, row, strict=True):
            whole[position] = value
        prefix = tuple([whole[i] for i in table.primary_key[:-1]])
        found[prefix][whole[last]] = tuple(whole)
    return {prefix: Group(known, group) for prefix, group in found.items()}
