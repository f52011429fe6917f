"""A table's recent versions in memory: by key, and in the order of their commits.

Invariants
----------
* *A chain is a linked list*, newest version first. Its parts never change: a commit puts
  a new head before it, a fold puts a shorter copy in its place. Readers take no lock.
* *Writers hold the lock* of the table's versions.
* *Commits come in cts order*, so a fold moves the beginning of ``_commits``, and its
  cost does not depend on how many later versions an open snapshot keeps.
* Versions and commits are plain tuples, which Python's garbage collector stops following
  (but for long chains), so that many of them do not make its pauses longer.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

Version: TypeAlias = "tuple[int, Row | None, Version | None]"
"""The commit timestamp, the row (None: a tombstone), and the version before."""

_Commit: TypeAlias = "tuple[int, tuple[Key, ...], int]"
"""The timestamp, the keys of its versions, and how many of these are tombstones."""


class Chains:
    """The recent MVCC versions of one table, but for those of bulk commits.

    Attributes
    ----------
    rows, tombstones : int
        How many versions there are, and how many of them are tombstones.
    """

    def __init__(self, table: Table) -> None:
        self.rows = 0
        self.tombstones = 0
        self._table = table
        self._heads: dict[Key, Version] = {}
        self._commits: deque[_Commit] = deque()
        self._unique: tuple[dict[Key, int], ...] = tuple({} for _ in table.unique)
        self._indexes: dict[tuple[int, ...], _Index] = {}

    def __len__(self) -> int:
        """The number of keys that have versions."""
        return len(self._heads)

    @property
    def oldest(self) -> int | None:
        """The cts of the oldest version."""
        return self._commits[0][0] if self._commits else None

    def newest(self, key: Key) -> Version | None:
        """The newest version of a key."""
        return self._heads.get(key)

    def visible(self, key: Key, sts: int) -> Iterator[Version]:
        """The versions of a key with cts ≤ ``sts``, newest first."""
        version = newest_until(self._heads.get(key), sts)
        while version is not None:
            yield version
            version = version[2]

    def last_unique_commit(self, constraint: int, values: Key) -> int:
        """The cts of the newest version with these values of a UNIQUE key; or 0."""
        return self._unique[constraint].get(values, 0)

    def keys(self) -> list[Key]:
        """The keys that have versions."""
        return list(self._heads)

    def index(self, positions: tuple[int, ...]) -> dict[Key, dict[Key, None]] | None:
        """The keys by their versions' values in some columns, if these are indexed.

        Keys that were changed last come last.
        """
        index = self._indexes.get(positions)
        return None if index is None else index.keys

    def build_index(self, positions: tuple[int, ...]) -> dict[Key, dict[Key, None]]:
        """Make such an index, and keep it from now on."""
        index = _Index(self._table, positions)
        for key, version in sorted(self._heads.items(), key=_last_change):
            index.replace(key, None, version)
        self._indexes[positions] = index
        return index.keys

    def add(self, cts: int, writes: Sequence[tuple[Key, Row, bool]]) -> None:
        """Add a commit's versions (key, row, whether it is a tombstone)."""
        keys = tuple([key for key, _, _ in writes])
        tombstones = sum([deleted for _, _, deleted in writes])
        self._commits.append((cts, keys, tombstones))
        self.rows += len(keys)
        self.tombstones += tombstones
        if self._table.is_keyless:
            return
        heads = self._heads
        for key, row, deleted in writes:
            older = heads.get(key)
            visible = None if deleted else row
            heads[key] = (cts, visible, older)
            for index in self._indexes.values():
                index.add(key, visible)
        for seen, positions in zip(self._unique, self._table.unique, strict=True):
            for _, row, deleted in writes:
                if not deleted:
                    values = tuple([row[i] for i in positions])
                    # Put last, as a fold takes them from the beginning.
                    seen.pop(values, None)
                    seen[values] = cts

    def complete(self, key: Key, version: Version, row: Row) -> None:
        """Put a row with fewer gaps in a version's place, if it is still there."""
        above = []
        found = before = self._heads.get(key)
        while found is not None and found is not version:
            above.append(found)
            found = found[2]
        if found is not None:
            cts, _, older = found
            head = _rebased([*above, (cts, row, None)], older)
            assert head is not None
            self._heads[key] = head
            for index in self._indexes.values():
                index.replace(key, before, head)

    def batch_end(self, stable: int, size: int) -> int:
        """The cts up to which there are about ``size`` versions, at most ``stable``."""
        versions = 0
        for cts, keys, _ in self._commits:
            versions += len(keys)
            if versions >= size or cts >= stable:
                return min(stable, cts)
        return stable

    def versions_until(self, until: int) -> dict[Key, Version]:
        """The newest version with cts ≤ ``until``, by key."""
        found: dict[Key, Version] = {}
        if self._table.is_keyless:
            # Rows without a key have no chains.
            return found
        heads = self._heads
        for _, keys, _ in self._commits_until(until):
            for key in keys:
                if key not in found:
                    version = newest_until(heads[key], until)
                    assert version is not None
                    found[key] = version
        return found

    def rows_until(self, until: int) -> dict[Key, Row | None]:
        """The newest row with cts ≤ ``until`` (None: a tombstone), by key."""
        return {key: row for key, (_, row, _) in self.versions_until(until).items()}

    def rows_between(self, after: int, until: int) -> dict[Key, Row | None]:
        """The newest row with ``after`` < cts ≤ ``until`` (None: a tombstone), by key.

        The cost depends on the commits after ``after`` alone.
        """
        rows: dict[Key, Row | None] = {}
        heads = self._heads
        for cts, keys, _ in reversed(self._commits):
            if cts <= after:
                break
            if cts <= until:
                for key in keys:
                    if key not in rows:
                        version = newest_until(heads[key], until)
                        assert version is not None
                        rows[key] = version[1]
        return rows

    def keys_since(self, after: int) -> set[Key]:
        """The keys of versions with cts > ``after``, at the cost of these alone."""
        found: set[Key] = set()
        for cts, keys, _ in reversed(self._commits):
            if cts <= after:
                break
            found.update(keys)
        return found

    def forget(self, until: int, changed: Iterable[Key]) -> None:
        """Drop the versions with cts ≤ ``until``, which belong to these keys."""
        for _, keys, tombstones in self._commits_until(until):
            self._commits.popleft()
            self.rows -= len(keys)
            self.tombstones -= tombstones
        heads = self._heads
        indexes = self._indexes.values()
        for key in changed:
            before = heads[key]
            if before[0] <= until:
                del heads[key]
                for index in indexes:
                    index.remove(key, before)
                continue
            newer = []
            version: Version | None = before
            while version is not None and version[0] > until:
                newer.append(version)
                version = version[2]
            after = _rebased(newer, None)
            assert after is not None
            heads[key] = after
            for index in indexes:
                index.replace(key, before, after)
        for seen in self._unique:
            for values, _ in list(takewhile(lambda e: e[1] <= until, seen.items())):
                del seen[values]

    def commits_until(self, until: int, after: int) -> list[Iterable[tuple[Key, int]]]:
        """The keys of commits with ``after`` < cts ≤ ``until``, oldest first.

        Those of the primary key, then the values of each UNIQUE one.
        """
        rows = [
            (key, cts)
            for cts, keys, _ in self._commits_until(until)
            if cts > after
            for key in keys
        ]
        return [
            rows,
            *(
                [
                    e
                    for e in takewhile(lambda e: e[1] <= until, seen.items())
                    if e[1] > after
                ]
                for seen in self._unique
            ),
        ]

    def _commits_until(self, until: int) -> list[_Commit]:
        return list(takewhile(lambda commit: commit[0] <= until, self._commits))


class _Index:
    """An index of keys by their versions' values in some columns.

    In a column outside the key, tombstones and gaps have no value; a key is listed
    under the values of all its other versions.

    Parameters
    ----------
    table
        The table.
    positions
        The columns.
    """

    def __init__(self, table: Table, positions: tuple[int, ...]) -> None:
        self.keys: dict[Key, dict[Key, None]] = {}
        of_key, of_row = [], []
        for position in positions:
            if position in table.primary_key:
                of_key.append(table.primary_key.index(position))
            else:
                of_row.append(position)
        self._of_key, self._of_row = tuple(of_key), tuple(of_row)
        self._is_prefix = of_key == list(range(len(of_key)))

    def _prefix(self, key: Key) -> Key:
        if self._is_prefix:
            return key[: len(self._of_key)]
        return tuple([key[i] for i in self._of_key])

    def add(self, key: Key, row: Row | None) -> None:
        """Note a key's newest version."""
        values = self._values(key, row)
        if values is not None:
            keys = self.keys.setdefault(values, {})
            keys.pop(key, None)
            keys[key] = None

    def remove(self, key: Key, version: Version) -> None:
        """Note that a key, which had this chain, has no versions any more."""
        for values in self._all_values(key, version):
            self._take(values, key)

    def _take(self, values: Key, key: Key) -> None:
        keys = self.keys[values]
        keys.pop(key, None)
        if not keys:
            del self.keys[values]

    def replace(self, key: Key, before: Version | None, after: Version | None) -> None:
        """Note that a key has another chain."""
        gone, kept = (
            set(self._all_values(key, before)),
            set(self._all_values(key, after)),
        )
        for values in gone - kept:
            self._take(values, key)
        for values in kept - gone:
            self.keys.setdefault(values, {}).setdefault(key)

    def _all_values(self, key: Key, version: Version | None) -> Collection[Key]:
        if not self._of_row:
            # All versions have the same key.
            return () if version is None else (self._prefix(key),)
        found: set[Key] = set()
        while version is not None:
            values = self._values(key, version[1])
            if values is not None:
                found.add(values)
            version = version[2]
        return found

    def _values(self, key: Key, row: Row | None) -> Key | None:
        """The values in the key's columns, then in others; None: one is missing."""
        prefix = self._prefix(key)
        if not self._of_row:
            return prefix
        if row is None:
            return None
        rest = tuple([row[i] for i in self._of_row])
        return None if MISSING in rest else prefix + rest


def _last_change(entry: tuple[Key, Version]) -> int:
    return entry[1][0]


def newest_until(version: Version | None, until: int) -> Version | None:
    """The first version of a chain with cts ≤ ``until``."""
    while version is not None and version[0] > until:
        version = version[2]
    return version


def _rebased(chain: Sequence[Version], older: Version | None) -> Version | None:
    """The same versions, newest first, before ``older``."""
    head = older
    for cts, row, _ in reversed(chain):
        head = (cts, row, head)
    return head
