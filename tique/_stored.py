"""What of a storage table is in memory: rows that were used, pages, key ranges.

Used by :class:`tique._versions.TableVersions` under its lock and its rules of
when something read may be remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tique._pages import Address, Page, PageCache, Paging
from tique._rows import difference, lacks, merged
from tique_backends.base import MISSING
from tique_rewriter.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Set

    from tique._versions import Key
    from tique_backends.base import Row
    from tique_rewriter.schema import Table

_UNKNOWN = object()

_MARKS = 10_000


class HighWaterMarks:
    """Beyond which values of a key column a storage table has no rows.

    Numbers that only grow (of orders, of events) are the most common keys of new
    rows. A mark is the greatest value of one key column among the rows with one
    prefix of the key; a key beyond it is free without a question to the engine.
    A mark may be too high, after deletes, but never too low: folds raise it.

    Parameters
    ----------
    table
        A table with a primary key.
    """

    def __init__(self, table: Table) -> None:
        kinds = [kind_of(table.columns[i].type) for i in table.primary_key]
        self._positions = [
            n
            for n, kind in enumerate(kinds)
            if n >= len(kinds) - 2 and kind is not None and kind.family == "integer"
        ]
        self._marks: dict[Key, int | None] = {}
        self._missed: dict[Key, None] = {}

    def excludes(self, key: Key) -> bool:
        """Whether storage certainly has no row under the key."""
        for n in self._positions:
            mark = self._marks.get(key[:n], _UNKNOWN)
            if mark is not _UNKNOWN and (mark is None or key[n] > mark):
                return True
        return False

    def to_read(self, key: Key) -> Key | None:
        """Note a new key; the prefix whose mark had better be read, if any."""
        for n in reversed(self._positions):
            prefix = key[:n]
            if prefix in self._marks:
                continue
            if prefix in self._missed:
                del self._missed[prefix]
                return prefix
            if len(self._missed) >= _MARKS:
                self._missed.clear()
            self._missed[prefix] = None
        return None

    def put(self, prefix: Key, mark: int | None) -> None:
        """Remember a mark; None: there are no rows with that prefix."""
        if len(self._marks) >= _MARKS:
            self._marks.clear()
        self._marks[prefix] = mark

    def raise_to(self, key: Key) -> None:
        """Note that a fold stored a row under the key."""
        for n in self._positions:
            mark = self._marks.get(key[:n], _UNKNOWN)
            if mark is not _UNKNOWN and (mark is None or key[n] > mark):
                self._marks[key[:n]] = key[n]

    def clear(self) -> None:
        """Forget all marks."""
        self._marks.clear()


class StoredRows:
    """The remembered part of one storage table.

    Parameters
    ----------
    table
        The table.
    capacity
        The number of rows to remember as Python rows.
    pages
        Where pages are kept; None if the table's columns cannot be read in pages.
    """

    def __init__(self, table: Table, capacity: int, pages: PageCache | None) -> None:
        self._table = table
        self._capacity = capacity
        self._rows: dict[Key, Row | None] = {}
        self._pages = pages
        self._paging = None if pages is None or table.is_bag else Paging(table)
        self.marks = HighWaterMarks(table)

    def peek(self, key: Key) -> Row | None:
        """The row as far as it is known."""
        return self._rows.get(key)

    def find(
        self, key: Key, columns: Collection[int], welcome: Set[int]
    ) -> tuple[bool, bool, Row | None]:
        """Look a row up in memory.

        Parameters
        ----------
        key
            The row's primary key.
        columns
            The columns that are needed.
        welcome
            Columns that are added where they cost nothing.

        Returns
        -------
        known : bool
            Whether these columns are known.
        is_new : bool
            Whether the row was not remembered in this form.
        row : Row or None
            The row; None if there is none.
        """
        row = self._rows.get(key, _UNKNOWN)
        if row is None:
            return True, False, None
        if row is _UNKNOWN:
            if self.marks.excludes(key):
                return True, False, None
            page = self.page(key)
            if page is None:
                return False, False, None
            known, found = page.row(key, {*columns, *page.columns & welcome})
            return known, known, found
        remembered = cast("Row", row)
        if not lacks(remembered, columns):
            return True, False, remembered
        page = self.page(key)
        if page is None:
            return False, False, None
        gaps = [i for i in columns if remembered[i] is MISSING]
        known, rest = page.row(key, gaps)
        if not known or rest is None:
            return False, False, None
        return True, True, merged(remembered, rest)

    def page(self, key: Key) -> Page | None:
        """The page in which the key lies, if it is in memory."""
        address = self.address(key)
        if address is None or self._pages is None:
            return None
        return self._pages.find(address)

    def address(self, key: Key) -> Address | None:
        """Where the key's page lies."""
        return None if self._paging is None else self._paging.address(key)

    def page_to_read(self, key: Key) -> Address | None:
        """The page to read instead of one row that was missed; None: the row."""
        address = self.address(key)
        if address is None or self._pages is None or not self._pages.wants(address):
            return None
        return address

    def put(self, rows: Iterable[tuple[Key, Row | None]]) -> None:
        """Remember rows, keeping what was known of their other columns."""
        known = self._rows
        for key, row in rows:
            old = known.pop(key, None)
            known[key] = row if row is None or old is None else merged(row, old)
        while len(known) > self._capacity:
            known.pop(next(iter(known)))

    def put_page(self, page: Page) -> None:
        """Remember a page."""
        if self._pages is not None:
            self._pages.put(page)

    def replace(self, key: Key, row: Row | None) -> None:
        """Note that a fold stored this row."""
        page = self.page(key)
        if page is not None:
            page.invalidate(key[-1], self._changed(key, row))
        if row is not None:
            self.marks.raise_to(key)
        self.put([(key, row)])

    def _changed(self, key: Key, row: Row | None) -> frozenset[int] | None:
        """The columns in which a row replaces what storage had; None: all."""
        if row is None:
            return None
        old = self._rows.get(key)
        if old is None:
            # A row that is known in part was there already; a whole one may be new.
            known = [i for i, value in enumerate(row) if value is not MISSING]
            return frozenset(known) if len(known) < len(row) else None
        new = difference(row, old, self._table.primary_key)
        return frozenset(
            i
            for i, value in enumerate(new)
            if value is not MISSING and i not in self._table.primary_key
        )

    def clear(self) -> None:
        """Forget everything."""
        self._rows.clear()
        self.marks.clear()
        if self._pages is not None:
            self._pages.clear(self._table)
