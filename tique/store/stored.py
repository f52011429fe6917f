"""The rows of one storage table that are in memory: single ones, and ranges.

Used by :class:`tique.store.versions.TableVersions`, under its lock and by its rules for
remembering rows that were read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique.store.cache import oldest
from tique.store.ranges import ALL, FROM, Address, KeyRange, shape
from tique.store.rows import difference, lacks, merged
from tique_backends.records import MISSING

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterable, Iterator, Mapping, Set

    from tique.store.cache import Cache
    from tique.store.policy import CachePolicy
    from tique.store.ranges import Shape
    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_backends.rows.ranges import RangeRows
    from tique_rewriter.schema import Table

_UNKNOWN = object()


class StoredRows:
    """The remembered part of one storage table.

    Parameters
    ----------
    table
        The table.
    policy
        How many single rows are kept, and which ranges are read.
    cache
        Where ranges are kept.
    lock
        The lock of the table's versions.
    arrow_mismatch_columns
        Positions of columns whose values are others in Arrow than in a row. A range
        has none of them: its keys would not be found.
    """

    def __init__(
        self,
        table: Table,
        policy: CachePolicy,
        cache: Cache,
        lock: threading.Lock,
        *,
        arrow_mismatch_columns: frozenset[int] = frozenset(),
    ) -> None:
        self._table = table
        self._policy = policy
        self._cache = cache
        self._lock = lock
        self.hits = self.misses = self.evictions = 0
        """Counts for single rows."""
        self._rows: dict[Key, Row | None] = {}
        last = len(table.primary_key) - 1
        self._tails = [
            tail
            for column in (last, last - 1)
            if (tail := shape(table, column, FROM)) is not None
            and arrow_mismatch_columns.isdisjoint(table.primary_key[column:])
        ]
        self._page = self._group = self._stretch = None
        if not arrow_mismatch_columns:
            self._page = shape(table, last, policy.page_keys)
            self._group = shape(table, last, ALL)
            self._stretch = shape(table, last - 1, policy.stretch)
        self._shapes: tuple[Shape, ...] = ()
        """The shapes of ranges that have been read."""
        self._looked_at: dict[int, frozenset[int]] = {}
        """Columns that readers have looked at, of rows and of groups: ranges have them."""
        self._largest_group: int | None = None
        """Rows of the largest group that was read; None before the first."""

    def __len__(self) -> int:
        """The number of rows that are cached as single rows."""
        return len(self._rows)

    def _with(self, key: Key) -> Iterator[KeyRange]:
        """The ranges in memory that a key lies in."""
        for each in self._shapes:
            part = self._cache.get(each.place(self._table.id, key))
            if part is not None and key[each.column] >= part.first:
                yield part

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
        is_made : bool
            Whether the row was made of columns: it had better be remembered.
        row : Row or None
            The row; None if there is none.
        """
        row: Any = self._rows.get(key, _UNKNOWN)
        if row is None or (row is not _UNKNOWN and not lacks(row, columns)):
            self.hits += 1
            return True, False, row
        self.misses += 1
        for part in self._with(key):
            known, row = part.find(key, {*columns, *part.columns & welcome})
            if known:
                part.is_used = True
                self._cache.hits += 1
                return True, part.is_columnar and row is not None, row
        self._cache.misses += 1
        return False, False, None

    def group_range(
        self, prefix: Key, columns: Collection[int], *, as_rows: bool
    ) -> KeyRange | None:
        """A range that has a group and knows these columns of it.

        Parameters
        ----------
        prefix
            The group's key, but for the last column.
        columns
            The columns that are needed.
        as_rows
            Whether the reader wants all rows, and not some by a value.
        """
        for each in self._shapes:
            is_wider = each.column < len(prefix)
            if not is_wider and each.width != ALL:
                continue
            part = self._cache.get(each.place(self._table.id, prefix))
            if (
                part is not None
                and not (is_wider and prefix[-1] < part.first)
                and not (as_rows and part.is_columnar)
                and part.columns.issuperset(columns)
            ):
                part.is_used = True
                self._cache.hits += 1
                return part
        self._cache.misses += 1
        return None

    def range_to_read(
        self, key: Key, columns: Iterable[int], misses: int, *, as_rows: bool
    ) -> Address | None:
        """Count a miss of a row or a group; the range to read now, if that pays.

        Parameters
        ----------
        key
            The row's key, or the group's, which lacks the last column.
        columns
            The columns that are needed.
        misses
            How many groups were missed, this one and those beside it.
        as_rows
            Whether all rows of the group are wanted, and not some by a value.
        """
        table, policy = self._table, self._policy
        is_group = len(key) < len(table.primary_key)
        wanted = self._group if is_group else self._page
        if wanted is None:
            return None
        needed = {*columns, *table.primary_key[-2 if is_group else -1 :]}
        looked_at = self._looked_at.get(len(key), frozenset())
        if not looked_at.issuperset(needed):
            looked_at = self._looked_at[len(key)] = looked_at | needed
        largest = self._largest_group
        is_small = (largest or 0) * policy.stretch <= policy.group_rows
        place = wanted.place(table.id, key)
        if is_group and key and is_small and self._stretch is not None:
            # Its neighbours count, too, even before it is known that groups are small.
            place = self._stretch.place(table.id, key)
            if largest is not None:
                wanted = self._stretch
        if not self._cache.wants(place, misses):
            return None
        as_rows = is_group and (as_rows or wanted is self._stretch)
        most = policy.most_rows(as_rows=as_rows) if is_group else None
        return self._address(wanted, key, sorted(looked_at), most, as_rows)

    def tail_to_read(self, key: Key) -> Address | None:
        """The tail that begins at a new key, if that is worth reading.

        The second new key with one prefix is: numbers are given out in their order.
        """
        for each in self._tails if self._policy.tail_rows else ():
            place = each.place(self._table.id, key)
            if self._cache.get(place) is None and self._cache.wants(place):
                columns = self._table.primary_key[each.column :]
                most = self._policy.few_rows
                return self._address(each, key, columns, most, True)
        return None

    def _address(
        self,
        wanted: Shape,
        key: Key,
        columns: Iterable[int],
        most: int | None,
        as_rows: bool,
    ) -> Address:
        place, prefix = wanted.place(self._table.id, key), key[: wanted.column]
        return Address(
            wanted, place, prefix, *wanted.interval(key), tuple(columns), most, as_rows
        )

    def range_of(self, address: Address, rows: RangeRows | None) -> KeyRange | None:
        """The range that was read; None if it is not worth keeping."""
        width = address.shape.width
        is_group = address.most is not None and width != FROM
        try:
            if rows is None:
                raise ValueError
            if address.most is not None and len(rows) > address.most:
                raise OverflowError
            part = KeyRange(self._table, address, rows, self._lock)
            if is_group:
                part.check()
        except (ValueError, OverflowError):
            # Too many rows, or a value that columns or Python cannot hold.
            self._cache.reject(address.place)
            if is_group:
                self._largest_group = self._policy.group_rows
            return None
        if width == ALL:
            self._largest_group = max(self._largest_group or 0, len(rows))
        return part

    def put_range(self, part: KeyRange) -> None:
        """Remember a range."""
        if part.shape not in self._shapes:
            self._shapes = (*self._shapes, part.shape)
        self._cache.put(part)

    def keeps(self, part: KeyRange) -> bool:
        """Whether the range is in memory still, so that folds reach it."""
        return self._cache.get(part.place) is part

    def put(self, rows: Iterable[tuple[Key, Row | None]]) -> None:
        """Remember single rows, and keep known values of their other columns."""
        known = self._rows
        for key, row in rows:
            old = known.get(key)
            known[key] = row if row is None or old is None else merged(row, old)
        for key in oldest(known, self._policy.rows, self._policy):
            del known[key]
            self.evictions += 1

    def changes(
        self, rows: Mapping[Key, Row | None], columns_set: Set[int] | None = None
    ) -> tuple[dict[Key, Row | None], set[Key]]:
        """The changes of a fold that stores these rows (None: deletes the stored row).

        Rows that are stored differ in ``columns_set`` at the most, if that is not None.

        Returns
        -------
        rows : dict of Key to (Row or None)
            The rows, with ``MISSING`` for values that storage is known to have.
        new : set of Key
            The keys under which storage is known to have no row.
        """
        primary_key = self._table.primary_key
        changed, new = dict(rows), set()
        width = range(len(self._table.columns))
        same = set() if columns_set is None else {*width} - columns_set - {*primary_key}
        for key, row in rows.items():
            stored: Any = self._rows.get(key, _UNKNOWN)
            if stored is _UNKNOWN:
                for part in self._with(key):
                    known, found = part.find(key, ())
                    if known:
                        stored = found
                        break
            if stored is None:
                new.add(key)
            elif row is not None and same:
                # All of a commit's rows the same: a fold writes them with one statement.
                changed[key] = tuple(
                    [MISSING if i in same else value for i, value in enumerate(row)]
                )
            elif row is not None and stored is not _UNKNOWN:
                changed[key] = difference(row, stored, primary_key)
        return changed, new

    def replace(self, rows: Mapping[Key, Row | None], *, only_known: bool) -> None:
        """Write a fold through: it stored these rows (None: deleted the stored row).

        Rows that lie in no range become single rows; with ``only_known`` only those
        that are in memory: rows that other processes write need not be of use here.
        """
        single = []
        for key, row in rows.items():
            is_in_range = False
            for part in self._with(key):
                is_in_range = True
                self._store(part, key, row)
            if key in self._rows or not (is_in_range or only_known):
                single.append((key, row))
        self.put(single)

    def _store(self, part: KeyRange, key: Key, row: Row | None) -> None:
        grown = part.store(key, row)
        if grown is None or part.tuples > 2 * self._policy.group_rows:
            self._cache.forget(part)
        elif part.shape.width == FROM and part.tuples > self._policy.tail_rows:
            # It begins anew, after its rows.
            self.put(part.items())
            self._cache.put(part.beyond(self._table))
        elif grown:
            self._cache.grow(part, grown)

    def clear(self) -> None:
        """Drop everything."""
        self._rows.clear()
        self._cache.clear(self._table.id)
