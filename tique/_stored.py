"""What of a storage table is in memory: rows that were used, pages, key ranges.

Used by :class:`tique._versions.TableVersions` under its lock and its rules of
when something read may be remembered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tique._marks import HighWaterMarks
from tique._pages import Address, Page, PageCache, Paging
from tique._rows import difference, lacks, merged
from tique_backends.base import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Set

    from tique._rows import Key
    from tique_backends.base import Row
    from tique_rewriter.schema import Table

_UNKNOWN = object()


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
