"""Groups: all storage rows with one prefix of the key, in memory, kept up to date.

The orders of a customer, the lines of an order, a small table as a whole: a query
that binds every key column but the last reads one group. When recent versions
matter to it, storage has to be asked for the group without the rows that they
replace, which costs the engine two to four times as much as the query itself. With the
group in memory, its visible rows are written into the statement as constants, and a
simple statement needs no engine at all.

Small groups are read with their neighbours, a *stretch* at a time: the engine takes
hardly longer to find the lines of many orders than the lines of one.

Invariants
----------
* A group has the same rows as storage. It is read whole, and every fold is applied to
  it, key by key, before the index of recent versions drops the folded versions
  (:meth:`tique.store.stored.StoredRows.replace`, under the lock of the table's
  versions).
* *Versions first.* A reader takes the visible versions, then the group's rows. A fold
  in between brings only rows that the reader's snapshot sees (λ ≤ sts), and the reader
  has those as versions, which take precedence. (A reader that looks for rows with some
  value takes, in this order: the keys of versions with it, the numbers of the group's
  rows with it, the versions of these keys, their rows. A version with the value that
  was folded before the first step is in the group's rows and indexes by then; one that
  is folded after it is the row at the last step. A row whose versions have gaps there
  has the value in the group throughout.)
* Readers of rows take no lock: rows and an index's entries are immutable, and a
  dictionary is copied in one step. Only a reader that builds an index keeps folds away.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tique.store.blocks import Block, BlockIndex
from tique.store.policy import CachePolicy
from tique.store.rows import lacks, merged
from tique_backends.base import MISSING, Row

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    import pyarrow

    from tique.store.rows import Key
    from tique_rewriter.schema import Table

_UNCHANGED = object()

_VALUE_BYTES = 64
"""Bytes of a value as a Python object in a tuple and an index, about."""


class Stretch(NamedTuple):
    """Storage rows to read: ``prefix`` and the range of the key column after it.

    That is one group, or some whose prefixes differ in the last column only.
    """

    prefix: Key
    first: int
    last: int


class Group:
    """The storage rows with one prefix of the key.

    Parameters
    ----------
    columns
        The positions of the columns that are known of all rows.
    lock
        Keeps folds away while an index is built. Groups that are read together share
        the lock, and the columns: Python's garbage collector follows each group's own
        objects.
    rows
        Rows of the table, with gaps, by the key's last column. None: the group only
        notes that it is not worth keeping (``is_whole``).
    block
        Many rows instead, for readers that look for few of them.
    most_rows
        The group is not kept if it grows to more than twice as many.
    """

    def __init__(
        self,
        columns: frozenset[int],
        lock: threading.Lock,
        rows: Mapping[int, Row] | None,
        block: Block | None = None,
        most_rows: int = CachePolicy.group_rows,
    ) -> None:
        self.columns = columns
        self.is_used = False
        self.is_whole = rows is not None
        self._lock = lock
        self._most_rows = most_rows
        self._rows: dict[int, Row | None] = dict(rows or {})
        self._block = block
        self._indexes: dict[int, dict[Any, tuple[int, ...]]] = {}
        self._block_indexes: dict[int, BlockIndex] = {}
        self.size = 1000 + len(self._rows) * len(columns) * _VALUE_BYTES
        if block is not None:
            self.size += block.size + BlockIndex.SIZE * len(block)

    def __len__(self) -> int:
        """The number of rows, as they were read."""
        return len(self._rows if self._block is None else self._block)

    def knows(self, columns: Iterable[int], *, as_rows: bool = False) -> bool:
        """Whether the group has these columns, and as rows if the caller wants all."""
        return (
            self.is_whole
            and self.columns.issuperset(columns)
            and not (as_rows and self._block is not None)
        )

    def get(self, number: int) -> Row | None:
        """The row with this value in the key's last column."""
        row = self._rows.get(number, _UNCHANGED)
        if row is not _UNCHANGED:
            return cast("Row | None", row)
        return None if self._block is None else self._block.row(number, self.columns)

    def rows(self) -> dict[int, Row]:
        """All rows, by the key's last column; not of a group with a block."""
        assert self._block is None
        return cast("dict[int, Row]", self._rows.copy())

    def numbers(self, position: int, value: Any) -> Collection[int]:
        """The key's last column in all rows with the value, perhaps in others too."""
        numbers = self._index(position).get(value, ())
        index = self._block_index(position)
        return numbers if index is None else (*numbers, *index.numbers(value))

    def _block_index(self, position: int) -> BlockIndex | None:
        index = self._block_indexes.get(position)
        if index is None and self._block is not None:
            index = self._block_indexes[position] = BlockIndex(self._block, position)
        return index

    def _index(self, position: int) -> dict[Any, tuple[int, ...]]:
        """An index of the rows beside the block by a column."""
        index = self._indexes.get(position)
        if index is None:
            with self._lock:
                found: dict[Any, list[int]] = {}
                for number, row in self._rows.items():
                    if row is not None:
                        found.setdefault(row[position], []).append(number)
                # Python's garbage collector stops following tuples of numbers.
                index = {value: tuple(numbers) for value, numbers in found.items()}
                self._indexes[position] = index
        return index

    def store(self, number: int, row: Row | None) -> bool:
        """Apply a fold's change: the row that it stored, or None if it deleted the row.

        Returns
        -------
        bool
            Whether the group may be kept; not if it grows too large.
        """
        with self._lock:
            old = self._rows.get(number)
            new = row
            if new is not None:
                if MISSING in new:
                    before = old or self.get(number)
                    if before is not None:
                        new = merged(new, before)
                    if lacks(new, self.columns):
                        return False
                if len(self._rows) > 2 * self._most_rows:
                    return False
            if new is None and self._block is None:
                self._rows.pop(number, None)
            else:
                self._rows[number] = new
            for i, index in self._indexes.items():
                if new is not None and old is not None and new[i] == old[i]:
                    continue
                if new is not None:
                    index[new[i]] = (*index.get(new[i], ()), number)
                if old is not None:
                    rest = tuple([n for n in index[old[i]] if n != number])
                    index[old[i]] = rest
            return True


def groups_of(
    table: Table,
    stretch: Stretch,
    columns: Sequence[int],
    rows: pyarrow.Table,
    policy: CachePolicy,
    *,
    as_rows: bool,
) -> dict[Key, Group]:
    """The groups of a stretch, by prefix.

    Parameters
    ----------
    columns
        The columns' positions in the table; those of the key that the stretch's prefix
        does not have are among them.
    rows
        These columns; if there are more than the policy's ``most_rows``, not all of them.
    policy
        Says how many rows are kept, and in which form.
    as_rows
        Whether the reader wants all rows of a group, and not some by a value.
    """
    fixed = len(stretch.prefix)
    is_one = fixed == len(table.primary_key) - 1
    numbers = range(stretch.first, stretch.last + 1)
    prefixes = (
        [stretch.prefix]
        if is_one
        else [(*stretch.prefix, number) for number in numbers]
    )
    known = frozenset((*columns, *table.primary_key[:fixed]))
    lock = threading.Lock()
    try:
        if rows.num_rows > policy.most_rows(as_rows=as_rows):
            raise OverflowError
        if is_one and not as_rows and rows.num_rows > policy.few_rows:
            block = Block(table, stretch.prefix, columns, rows)
            block.check()
            return {stretch.prefix: Group(known, lock, {}, block)}
        values = [column.to_pylist() for column in rows.columns]
    except (ValueError, OverflowError):
        # Too many rows, or a date that Python cannot hold.
        return {prefix: Group(known, lock, None) for prefix in prefixes}
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
    return {prefix: Group(known, lock, group) for prefix, group in found.items()}
