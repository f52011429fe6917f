"""Pages: columnar stretches of storage tables in memory.

A point read costs a column store about as much as the rows around it, because it scans
in vectors and row groups (how many, the engine's backend says). So a page that is
missed a second time is read whole: the rows whose keys are equal but for the last
column, which lies in one range. Keys that are spread wide (hashes, time stamps) hardly
meet in a page and are read one by one.

A page also knows which keys are *not* in storage, so that the engine need not be asked
whether a new key is free.

Invariant: a page has the rows that storage had at one moment. When a fold changes a
row, the page notes that; the new row is cached as a row (:mod:`tique.store.stored`),
which takes precedence: columns that are missing in it have not changed. Before the row
is evicted, the page notes that too: its content under the key is stale then, and it
does not answer any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tique.store.blocks import Block
from tique_rewriter.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence, Set

    import pyarrow

    from tique.store.cache import Place
    from tique.store.rows import Key
    from tique_backends.base import Row
    from tique_rewriter.schema import Table


class Address(NamedTuple):
    """The keys of a page: the key columns but the last, and the last one's range."""

    prefix: tuple[Any, ...]
    first: int
    last: int


class Page:
    """The storage rows of one address, as they were at one moment.

    Parameters
    ----------
    table
        The table.
    address
        The page's keys.
    columns
        The columns' positions in the table; the key's last one is among them.
    rows
        These columns, in any order.
    """

    def __init__(
        self,
        table: Table,
        address: Address,
        columns: Sequence[int],
        rows: pyarrow.Table,
    ) -> None:
        self._block = Block(table, address.prefix, columns, rows)
        self._first = address.first
        self.size = self._block.size
        self.is_used = False
        # A bit for each key: Python's garbage collector would have to follow the sets
        # of thousands of pages.
        self._changed = 0
        self._stale = 0

    @property
    def columns(self) -> Set[int]:
        """The columns that the page has."""
        return self._block.columns

    def note_change(self, number: int) -> None:
        """Note that a fold changed the row under a key; the new row is remembered."""
        self._changed |= 1 << (number - self._first)

    def note_forgotten(self, number: int) -> None:
        """Note that the remembered row under a key is about to be evicted."""
        self._stale |= self._changed & (1 << (number - self._first))

    def row(self, key: Key, columns: Collection[int]) -> tuple[bool, Row | None]:
        """Whether the page knows these columns under the key, and the row."""
        number = key[-1]
        if self._stale >> (number - self._first) & 1:
            return False, None
        try:
            return True, self._block.row(number, columns)
        except (KeyError, ValueError, OverflowError):
            # A column that the page lacks, or a date that Python cannot hold: the
            # engine has to answer.
            return False, None


class Paging:
    """The mapping of a table's keys to pages.

    Parameters
    ----------
    table
        A table with a primary key.
    keys
        Keys per page.
    """

    def __init__(self, table: Table, keys: int) -> None:
        self._table = table
        self._keys = keys
        kind = kind_of(table.columns[table.primary_key[-1]].type)
        self._kind = (
            kind
            if kind is not None and kind.family == "integer" and kind.high < 2**63
            else None
        )

    @property
    def span(self) -> tuple[int, int] | None:
        """The range of the key's last column; None if the table has no pages."""
        return None if self._kind is None else (self._kind.low, self._kind.high)

    def place(self, key: Key) -> Place | None:
        """The place of a key's page; None if the table has no pages."""
        if self._kind is None:
            return None
        return self._table.id, key[:-1], key[-1] // self._keys

    def address(self, key: Key) -> Address:
        """The address of a key's page, of a table that has pages."""
        assert self._kind is not None
        first = key[-1] // self._keys * self._keys
        last = first + self._keys - 1
        return Address(key[:-1], max(first, self._kind.low), min(last, self._kind.high))
