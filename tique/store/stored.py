"""The cached parts of a storage table: rows, pages, groups, high-water marks.

Used by :class:`tique.store.versions.TableVersions`, under its lock and by its rules for
remembering rows that were read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from tique.store.cache import Cache, Place, oldest
from tique.store.groups import Group, Stretch
from tique.store.marks import HighWaterMarks
from tique.store.pages import Address, Page, Paging
from tique.store.rows import difference, lacks, merged
from tique_backends.base import MISSING
from tique_rewriter.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Set

    from tique.store.policy import CachePolicy
    from tique.store.rows import Key
    from tique.store.views import View
    from tique_backends.base import Row
    from tique_rewriter.schema import Table

_UNKNOWN = object()
_NO_COLUMNS: frozenset[int] = frozenset()


class StorageCache:
    """The caches of parts of all storage tables of a database.

    Parameters
    ----------
    policy
        The caches' capacities.
    page_keys
        Keys per page.
    """

    def __init__(self, policy: CachePolicy, page_keys: int) -> None:
        self.page_keys = page_keys
        size = policy.bytes
        self.pages: Cache[Page] = Cache("pages", size, policy.page_misses, policy)
        self.groups: Cache[Group] = Cache(
            "groups", int(size * policy.group_share), policy.group_misses, policy
        )
        self.views: Cache[View] = Cache(
            "views", int(size * policy.view_share), 1, policy
        )


class StoredRows:
    """The remembered part of one storage table.

    Parameters
    ----------
    table
        The table.
    policy
        How many rows are kept as Python rows, and which groups are read.
    cache
        Where pages and groups are kept; None if the table's columns cannot be read
        in that way.
    """

    def __init__(
        self, table: Table, policy: CachePolicy, cache: StorageCache | None
    ) -> None:
        self._table = table
        self._policy = policy
        self.hits = self.misses = self.evictions = 0
        """Counts for single rows."""
        self._rows: dict[Key, Row | None] = {}
        self._cache = cache
        self._paging = (
            None
            if cache is None or table.is_keyless
            else Paging(table, cache.page_keys)
        )
        self._largest_group: int | None = None
        """Rows of the largest group that was seen; None before the first."""
        self.marks = HighWaterMarks(table, policy)

    def changes(
        self, rows: Mapping[Key, Row | None]
    ) -> tuple[dict[Key, Row | None], set[Key]]:
        """The changes of a fold that stores these rows (None: deletes the stored row).

        Returns
        -------
        rows : dict of Key to (Row or None)
            The rows, with ``MISSING`` for values that storage is known to have.
        new : set of Key
            The keys under which storage is known to have no row.
        """
        primary_key = self._table.primary_key
        changed, new = dict(rows), set()
        for key, row in rows.items():
            stored = self._rows.get(key, _UNKNOWN)
            if stored is _UNKNOWN:
                known, _, stored = self.find(key, (), _NO_COLUMNS)
                if known and stored is None:
                    new.add(key)
                    continue
                group = self._kept_group(key[:-1])
                stored = None if group is None else group.get(key[-1])
            elif stored is None:
                new.add(key)
                continue
            if row is not None and stored is not None:
                changed[key] = difference(row, cast("Row", stored), primary_key)
        return changed, new

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
            Columns that are added where that costs nothing.

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
            self.hits += 1
            return True, False, None
        if row is _UNKNOWN:
            self.misses += 1
            if self.marks.excludes(key):
                return True, False, None
            page = self.page(key)
            if page is None:
                return self._find_in_group(key, columns)
            known, found = page.row(key, {*columns, *page.columns & welcome})
            return known, known, found
        remembered = cast("Row", row)
        if not lacks(remembered, columns):
            self.hits += 1
            return True, False, remembered
        self.misses += 1
        page = self.page(key)
        if page is None:
            return False, False, None
        gaps = [i for i in columns if remembered[i] is MISSING]
        known, rest = page.row(key, gaps)
        if not known or rest is None:
            return False, False, None
        return True, True, merged(remembered, rest)

    def _find_in_group(
        self, key: Key, columns: Collection[int]
    ) -> tuple[bool, bool, Row | None]:
        group = None if self._table.is_keyless else self.group(key[:-1])
        if group is None or not group.knows(columns):
            return False, False, None
        return True, True, group.get(key[-1])

    def page(self, key: Key) -> Page | None:
        """The page in which the key lies, if it is in memory."""
        place = self.place(key)
        if place is None or self._cache is None:
            return None
        return self._cache.pages.find(place)

    def _kept_page(self, key: Key) -> Page | None:
        """The same for a fold, not counted as a use."""
        place = self.place(key)
        if place is None or self._cache is None:
            return None
        return self._cache.pages.peek(place)

    def _kept_group(self, prefix: Key) -> Group | None:
        if self._cache is None:
            return None
        return self._cache.groups.peek((self._table.id, prefix))

    def place(self, key: Key) -> Place | None:
        """The place of the key's page."""
        return None if self._paging is None else self._paging.place(key)

    def page_to_read(self, key: Key) -> Address | None:
        """The page to read instead of one row that was missed; None: the row."""
        place = self.place(key)
        if place is None or self._cache is None or self._paging is None:
            return None
        return self._paging.address(key) if self._cache.pages.wants(place) else None

    def group(self, prefix: Key) -> Group | None:
        """The group of the key's columns but the last, if it is in memory."""
        if self._cache is None:
            return None
        return self._cache.groups.find((self._table.id, prefix))

    def view(self, prefix: Key) -> View | None:
        """A view of the group, if there is one in memory."""
        if self._cache is None:
            return None
        return self._cache.views.find((self._table.id, prefix))

    def put_view(self, prefix: Key, view: View) -> None:
        """Remember a view of the group."""
        if self._cache is not None:
            self._cache.views.put((self._table.id, prefix), view)

    def groups_to_read(self, prefix: Key, misses: int = 1) -> Stretch | None:
        """Count a miss of a group; the stretch to read now, if that pays.

        Parameters
        ----------
        prefix
            The group's.
        misses
            How many groups were missed, this one and those beside it.
        """
        if self._cache is None or self._paging is None or self._paging.span is None:
            return None
        largest = self._largest_group or 0
        stretch = group = Stretch(prefix, *self._paging.span)
        if prefix and largest * self._policy.stretch <= self._policy.group_rows:
            stretch = self._stretch(prefix) or group
        place = (self._table.id, (*stretch.prefix, *stretch[1:]))
        if not self._cache.groups.wants(place, misses):
            return None
        return group if self._largest_group is None else stretch

    def _stretch(self, prefix: Key) -> Stretch | None:
        """The stretch of a group and its neighbours, if it can have any."""
        kind = kind_of(self._table.columns[self._table.primary_key[-2]].type)
        if kind is None or kind.family != "integer":
            return None
        width = self._policy.stretch
        first = prefix[-1] // width * width
        last = min(first + width - 1, kind.high)
        return Stretch(prefix[:-1], max(first, kind.low), last)

    def put(self, rows: Iterable[tuple[Key, Row | None]]) -> None:
        """Remember rows, and keep known values of their other columns."""
        # Readers take no lock, and one that misses a row looks at its page: a row is
        # replaced in place, and a stale page notes that before the row is evicted.
        known = self._rows
        for key, row in rows:
            old = known.get(key)
            known[key] = row if row is None or old is None else merged(row, old)
        for key in oldest(known, self._policy.rows, self._policy):
            page = self._kept_page(key)
            if page is not None:
                page.note_forgotten(key[-1])
            del known[key]
            self.evictions += 1

    def put_page(self, key: Key, page: Page) -> None:
        """Remember the page in which a key lies."""
        place = self.place(key)
        if place is not None and self._cache is not None:
            self._cache.pages.put(place, page)

    def put_groups(self, groups: Mapping[Key, Group]) -> None:
        """Remember groups that were read together."""
        if self._cache is None:
            return
        for prefix, group in groups.items():
            rows = len(group) if group.is_whole else self._policy.group_rows
            self._largest_group = max(self._largest_group or 0, rows)
            self._cache.groups.put((self._table.id, prefix), group)

    def _forget_group(self, prefix: Key) -> None:
        if self._cache is not None:
            self._cache.groups.forget((self._table.id, prefix))

    def replace(self, rows: Mapping[Key, Row | None], *, only_known: bool) -> None:
        """Note that a fold stored these rows (None: deleted the stored row).

        They are remembered; with ``only_known`` only rows that are in memory, or whose
        neighbours are: rows that other processes write need not be of use here.
        """
        known = self._rows
        remembered = []
        for key, row in rows.items():
            is_wanted = not only_known or key in known
            group = self._kept_group(key[:-1])
            if group is not None:
                is_wanted = True
                if group.is_whole and not group.store(key[-1], row):
                    self._forget_group(key[:-1])
            if row is not None and self.marks.raise_to(key):
                is_wanted = True
            page = self._kept_page(key)
            if page is not None:
                page.note_change(key[-1])
            if is_wanted or page is not None:
                remembered.append((key, row))
        self.put(remembered)

    def __len__(self) -> int:
        """The number of rows that are cached as rows."""
        return len(self._rows)

    def clear(self) -> None:
        """Drop everything."""
        self._rows.clear()
        self.marks.clear()
        if self._cache is not None:
            self._cache.pages.clear(self._table.id)
            self._cache.groups.clear(self._table.id)
            self._cache.views.clear(self._table.id)
