"""Ranges: all rows of a storage table whose keys lie in a range, in memory.

A range has the rows with one prefix of the key and an interval of numbers in the key
column after it. It is read whole, so it also knows which keys are *not* in storage: the
engine need not be asked whether a new key is free. Ranges have one of four shapes.

* *page*: the keys around one. A point read costs a column store about as much as the
  rows around it, because it scans in vectors and row groups (how many rows, the engine's
  backend says). Keys that are spread wide (hashes, time stamps) hardly meet in a page.
* *group*: all keys with one prefix. A query that binds every key column but the last
  reads one group: the lines of an order, a small table as a whole.
* *stretch*: a small group and its neighbours. The engine takes hardly longer to find the
  lines of many orders than the lines of one.
* *tail*: all keys from some number on. Numbers that only grow (of orders, of events) are
  the most common keys of new rows. A tail begins without rows, and gets those that folds
  store.

Rows of pages and of groups in which readers look for few rows are *columnar*, a tenth of
the size, in blocks; changed rows lie beside them. The rest are tuples.
How a range stays true is said in :mod:`tique.store.versions`.

*Blocks of stored rows, packed as the engine's backend packs them.*
Invariant: a block never changes, but for its indexes. The rows that folds change
afterwards lie beside it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from operator import gt
from typing import TYPE_CHECKING, Any, NamedTuple

from tique.store.rows import key_of, lacks, merged
from tique_backends.records import MISSING
from tique_rewriter.local.values import kind_of

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterable, Sequence

    from tique.store.cache import Place
    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_backends.rows.ranges import RangeRows
    from tique_rewriter.schema import Table


_UNKNOWN = object()
_VALUE_BYTES = 64
"""Bytes of a value as a Python object in a tuple and an index, about."""

ALL, FROM = 0, -1
"""Widths of shapes: all numbers, and all numbers from some one on."""


class Shape(NamedTuple):
    """One way to cut a table's keys into ranges.

    Attributes
    ----------
    column : int
        The key column of the interval; a range has one value in each before it.
    width : int
        Numbers in a range; ``ALL`` or ``FROM``.
    low, high : int
        The numbers that the column can hold.
    """

    column: int
    width: int
    low: int
    high: int

    def place(self, table: int, key: Key) -> Place:
        """The place in the cache of a key's range."""
        column, width = self.column, self.width
        number = key[column] // width if width > 0 else 0
        return table, key[:column], width, number

    def interval(self, key: Key) -> tuple[int, int]:
        """The first and the last number in a key's range; a tail begins at the key."""
        if self.width == ALL:
            return self.low, self.high
        number = key[self.column]
        if self.width == FROM:
            return number, self.high
        first = number // self.width * self.width
        return max(first, self.low), min(first + self.width - 1, self.high)


def shape(table: Table, column: int, width: int) -> Shape | None:
    """A shape of a table's ranges; None if that key column has no machine integers."""
    if not 0 <= column < len(table.primary_key):
        return None
    kind = kind_of(table.columns[table.primary_key[column]].type)
    if kind is None or kind.family != "integer" or kind.high >= 2**63:
        return None
    return Shape(column, width, kind.low, kind.high)


class Address(NamedTuple):
    """A range to read from storage.

    Attributes
    ----------
    shape : Shape
        Its shape.
    place : tuple
        Its place in the cache.
    prefix, first, last
        Its keys: the first columns, and the interval of the one after them.
    columns : sequence of int
        The columns to read; those of the key that ``prefix`` does not have are among
        them.
    most : int or None
        The range is not kept if it has more rows.
    as_rows : bool
        Whether rows are to be tuples.
    """

    shape: Shape
    place: Place
    prefix: Key
    first: int
    last: int
    columns: Sequence[int]
    most: int | None
    as_rows: bool


class KeyRange:
    """All storage rows of one address, kept up to date.

    Parameters
    ----------
    table
        The table.
    address
        What was read.
    rows
        The columns of the address, in any order. None: there are no rows.
    lock
        The lock of the table's versions: keeps folds away while an index is built.

    Raises
    ------
    ValueError, OverflowError
        If Python cannot hold a value: a date beyond its calendar.
    """

    __slots__ = (
        "_block",
        "_indexes",
        "_lock",
        "_prefix",
        "_row_bytes",
        "_rows",
        "_split",
        "columns",
        "first",
        "is_used",
        "place",
        "shape",
        "size",
    )

    def __init__(
        self,
        table: Table,
        address: Address,
        rows: RangeRows | None,
        lock: threading.Lock,
    ) -> None:
        self.shape, self.place = address.shape, address.place
        self.first = address.first
        self.is_used = False
        self._prefix = address.prefix
        self._lock = lock
        self._split = table.primary_key[len(address.prefix)]
        self._indexes: dict[int, dict[Any, tuple[Key, ...]]] | None = None
        if rows is not None and not len(rows):
            rows = None
        # A range without rows lacks no column of any.
        read = range(len(table.columns)) if rows is None else address.columns
        self.columns = frozenset((*read, *table.primary_key[: len(address.prefix)]))
        self._row_bytes = _VALUE_BYTES * len(self.columns)
        self._rows: dict[Key, Row | None] = {}
        self._block: Block | None = None
        if rows is not None and address.as_rows:
            self._rows.update(_tuples(table, address, rows))
        elif rows is not None:
            self._block = Block(table, address.prefix, address.columns, rows)
        self.size = 1000 + len(self._rows) * self._row_bytes
        if self._block is not None:
            self.size += self._block.size

    @property
    def tuples(self) -> int:
        """The number of rows that are tuples."""
        return len(self._rows)

    @property
    def is_columnar(self) -> bool:
        """Whether readers had better look for few rows only."""
        return self._block is not None

    def check(self) -> None:
        """Raise if Python cannot hold some value: then no reader ever meets it."""
        if self._block is not None:
            self._block.check()

    def find(self, key: Key, columns: Collection[int]) -> tuple[bool, Row | None]:
        """Whether these columns are known under a key, and the row (None: no row)."""
        row: Any = self._rows.get(key, _UNKNOWN)
        if row is None or (row is not _UNKNOWN and not lacks(row, columns)):
            return True, row
        if self._block is None:
            return row is _UNKNOWN, None
        if row is not _UNKNOWN:
            columns = [i for i in columns if row[i] is MISSING]
        try:
            base = self._block.row(key[-1], columns)
        except (KeyError, ValueError, OverflowError):
            # A column that the range lacks, or a date that Python cannot hold: the
            # engine has to answer.
            return False, None
        if row is _UNKNOWN:
            return True, base
        return (False, None) if base is None else (True, merged(row, base))

    def rows(self, prefix: Key) -> dict[Key, Row]:
        """All rows of a group in the range; not of a columnar one."""
        found: dict[Key, Any] = self._rows
        if len(prefix) == len(self._prefix):
            return found.copy()
        keys = self._index(self._split).get(prefix[-1], ())
        return {key: row for key in keys if (row := found.get(key)) is not None}

    def keys(self, prefix: Key, position: int, value: Any) -> Collection[Key]:
        """The keys of all rows of a group with a value, perhaps of others too."""
        if len(prefix) > len(self._prefix):
            return self._index(self._split).get(prefix[-1], ())
        keys = self._index(position).get(value, ())
        if self._block is None:
            return keys
        numbers = self._block.numbers(position, value)
        return *keys, *[(*prefix, number) for number in numbers]

    def _index(self, position: int) -> dict[Any, tuple[Key, ...]]:
        """An index of the tuples by a column. A gap is the columnar row's value."""
        index = None if self._indexes is None else self._indexes.get(position)
        if index is None:
            with self._lock:
                found: dict[Any, list[Key]] = {}
                for key, row in self._rows.items():
                    if row is not None and row[position] is not MISSING:
                        found.setdefault(row[position], []).append(key)
                index = {value: tuple(keys) for value, keys in found.items()}
                self._indexes = {**(self._indexes or {}), position: index}
        return index

    def store(self, key: Key, row: Row | None) -> int | None:
        """Apply a fold's change: the row that it stored, or None if it deleted the row.

        Returns
        -------
        int or None
            By how many bytes the range grew; None if it is not true any more.
        """
        rows = self._rows
        before = rows.get(key, _UNKNOWN)
        old: Any = None if before is _UNKNOWN else before
        if row is not None and old is not None:
            row = merged(row, old)
        if self._block is not None:
            rows[key] = row
        elif row is None:
            rows.pop(key, None)
        elif MISSING in row and lacks(row, self.columns):
            return None
        else:
            rows[key] = row
        for i, index in (self._indexes or {}).items():
            was = MISSING if old is None else old[i]
            now = MISSING if row is None else row[i]
            if was is now or (old is not None and row is not None and was == now):
                continue
            if now is not MISSING:
                index[now] = (*index.get(now, ()), key)
            if was is not MISSING:
                rest = tuple([each for each in index.pop(was) if each != key])
                if rest:
                    index[was] = rest
        return ((key in rows) - (before is not _UNKNOWN)) * self._row_bytes

    def beyond(self, table: Table) -> KeyRange:
        """The range without rows after the last of this tail."""
        first = 1 + max([key[self.shape.column] for key in self._rows])
        last, prefix = self.shape.high, self._prefix
        address = Address(self.shape, self.place, prefix, first, last, (), None, True)
        return KeyRange(table, address, None, self._lock)

    def items(self) -> Iterable[tuple[Key, Row | None]]:
        """The rows that are tuples, by key."""
        return self._rows.items()


def _tuples(
    table: Table, address: Address, rows: RangeRows
) -> Iterable[tuple[Key, Row]]:
    whole: list[Any] = [MISSING] * len(table.columns)
    for position, value in zip(table.primary_key, address.prefix, strict=False):
        whole[position] = value
    for each in rows.rows():
        for position, value in zip(address.columns, each, strict=True):
            whole[position] = value
        row = tuple(whole)
        yield key_of(table.primary_key, row), row


_INDEX_BYTES = 16
"""Bytes per row of an index."""


class Block:
    """Stored rows that differ in the key's last column, sorted by it.

    Parameters
    ----------
    table
        The table.
    prefix
        The rows' values in the other columns of the key.
    columns
        The columns' positions in the table; the key's last one is among them.
    rows
        These columns, in any order; at least one row.
    """

    def __init__(
        self, table: Table, prefix: Key, columns: Sequence[int], rows: RangeRows
    ) -> None:
        *others, self._last = table.primary_key
        empty: list[Any] = [MISSING] * len(table.columns)
        for position, value in zip(others, prefix, strict=True):
            empty[position] = value
        self._empty = tuple(empty)
        self._columns = {position: i for i, position in enumerate(columns)}
        numbers = rows.column(self._columns[self._last])
        self._places: Sequence[int] = range(len(numbers))
        if any(map(gt, numbers, numbers[1:])):
            self._places = sorted(self._places, key=numbers.__getitem__)
            numbers = [numbers[place] for place in self._places]
        self._numbers = array("q", numbers)
        self._indexes: dict[int, tuple[array[int], array[int]]] = {}
        self._packed = rows.packed()
        self.size = self._packed.size + _INDEX_BYTES * len(numbers)

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._numbers)

    def row(self, number: int, columns: Iterable[int]) -> Row | None:
        """These columns under a key; None: there is no row.

        Parameters
        ----------
        number
            The value of the key's last column.
        columns
            The columns' positions. All others but the key's are ``MISSING``.

        Raises
        ------
        KeyError
            If one of the columns is not known.
        ValueError, OverflowError
            If Python cannot hold a value: a date beyond its calendar.
        """
        at = bisect_left(self._numbers, number)
        if at == len(self._numbers) or self._numbers[at] != number:
            return None
        row = list(self._empty)
        row[self._last] = number
        at, value = self._places[at], self._packed.value
        for position in columns:
            if row[position] is MISSING:
                row[position] = value(self._columns[position], at)
        return tuple(row)

    def check(self) -> None:
        """Raise if Python cannot hold some value: then :meth:`row` never does."""
        self._packed.check()

    def numbers(self, position: int, value: Any) -> Sequence[int]:
        """The key's last column in all rows with the value, perhaps in others too."""
        index = self._indexes.get(position)
        if index is None:
            column, of = self._columns[position], self._packed.value
            hashes = [hash(of(column, place)) for place in self._places]
            order = sorted(range(len(hashes)), key=hashes.__getitem__)
            index = (
                array("q", [hashes[at] for at in order]),
                array("q", [self._numbers[at] for at in order]),
            )
            self._indexes[position] = index
        known, numbers = index
        wanted = hash(value)
        return numbers[bisect_left(known, wanted) : bisect_right(known, wanted)]
