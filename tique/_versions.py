"""The recent versions of every table, in memory: the fast form of the cache tables.

The process that has an embedded database open is its only writer, and one that shares
a database follows the log of all commits (:mod:`tique._following`), so an index of the
versions in the cache tables can be complete. It answers three questions
without asking the engine: which version of a key a snapshot sees, whether
anybody committed a key after a snapshot was taken (certification, paper 2.3.4),
and whether a statement needs to look at a cache table at all.

Invariants
----------
* *Publish before sts.* The committer adds a commit's versions before sts covers
  its cts; a reader whose sts is older skips them.
* *Fold before forget.* The checkpointer removes versions with cts ≤ λ only after
  the engine committed the fold. A reader that finds no version ≤ its sts reads
  storage afterwards; because its snapshot is registered, λ ≤ sts, so storage then
  holds exactly what it may see.
* *Chains are immutable tuples*, newest first, replaced under ``lock``; readers
  take no lock.
* Rows and pages of the storage table are remembered. A fold raises ``epoch`` under
  the lock; what was read before a fold is not remembered after it.
* Versions of a bulk commit stay in the engine: while ``bulk`` is not empty the
  index is incomplete and only SQL may answer (the fold empties it).
* *Drain before reading.* A commit is durable in the log; its versions reach the
  cache table later, in cts order, when a statement is about to read that table or
  a fold is about to move them. Until then only this index has them.
"""

from __future__ import annotations

import heapq
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from tique._rows import completed, difference
from tique._stored import StorageCache, StoredRows
from tique_backends.base import Row, Session, Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from tique._groups import Group, Stretch
    from tique._pages import Address, Page
    from tique._rows import Key
    from tique_backends.sharing import SharedSequencer
    from tique_rewriter.schema import Table


class Version(NamedTuple):
    """One version of a row: its commit timestamp, and None for a tombstone."""

    cts: int
    row: Row | None


class BulkCommit(NamedTuple):
    """A commit whose versions are in the cache table only."""

    cts: int
    rows: int
    tombstones: int


class TableVersions:
    """The recent versions of one table.

    Parameters
    ----------
    table
        The table.
    capacity
        The number of storage rows to remember.
    cache
        Where parts of the storage table are kept; None: nowhere.
    shared
        The sequencer of a database that other processes use too: each of them drains
        and folds.
    """

    def __init__(
        self,
        table: Table,
        capacity: int,
        cache: StorageCache | None = None,
        shared: SharedSequencer | None = None,
    ) -> None:
        self.table = table
        self.folded_until = 0
        """The cts up to which storage has everything, as far as is known here."""
        self._shared = shared
        self.lock = threading.Lock()
        self.changed_columns: frozenset[int] = frozenset()
        """Columns that changes by key look at: read along with any others."""
        self.paged_columns: frozenset[int] = frozenset()
        """Columns that any point read has looked at: pages have all of them."""
        self.grouped_columns: frozenset[int] = frozenset()
        """Columns that queries of groups have looked at: groups have all of them."""
        self.chains: dict[Key, tuple[Version, ...]] = {}
        self.bulk: tuple[BulkCommit, ...] = ()
        self.epoch = 0
        self.rows = 0
        self.tombstones = 0
        self.oldest: int | None = None
        self.newest = 0
        self._stored = StoredRows(table, capacity, cache)
        self._unique: tuple[dict[Key, int], ...] = tuple({} for _ in table.unique)
        self._prefixes: dict[tuple[int, ...], dict[Key, set[Key]]] = {}
        self._bag: list[tuple[int, bool]] = []
        self._undrained: list[tuple[int, Row, bool]] = []
        self._undrained_since: int | None = None
        self._is_in_doubt = False
        self._draining = threading.Lock()

    @property
    def is_complete(self) -> bool:
        """Whether the index holds every version that the cache table holds."""
        return not self.bulk

    @property
    def is_flat(self) -> bool:
        """Whether no key has two versions in the cache table."""
        bulk = self.bulk
        if bulk:
            return len(bulk) == 1 and self.rows == bulk[0].rows
        return self.rows == len(self.chains)

    @contextmanager
    def no_draining(self) -> Iterator[None]:
        """Keep the cache table from being filled, while a fold empties it.

        A version that came late would stand before what storage has by then.
        """
        with self._draining:
            yield

    @property
    def is_empty(self) -> bool:
        """Whether the cache table holds nothing."""
        return self.rows == 0

    def newest_visible(self, key: Key, sts: int) -> Version | None:
        """The newest version with cts ≤ sts (P1); None sends you to storage."""
        for version in self.chains.get(key, ()):
            if version.cts <= sts:
                return version
        return None

    def last_commit(self, key: Key) -> int:
        """The cts of the key's newest version; 0 if it has none."""
        chain = self.chains.get(key)
        return chain[0].cts if chain else 0

    def last_unique_commit(self, constraint: int, values: Key) -> int:
        """The cts of the newest version with these values of a UNIQUE key."""
        return self._unique[constraint].get(values, 0)

    def matching(self, positions: tuple[int, ...], values: Key) -> Collection[Key]:
        """The keys with versions that have ``values`` in the columns ``positions``.

        ``positions`` are key columns, in key order. The first question about a set
        of columns builds an index for it.
        """
        if not positions:
            return list(self.chains)
        index = self._prefixes.get(positions)
        if index is None:
            index = {}
            with self.lock:
                for key in self.chains:
                    index.setdefault(self._prefix(positions, key), set()).add(key)
                self._prefixes[positions] = index
        # A copy made in one step: the committer adds to the set meanwhile.
        return list(index.get(values, ()))

    def _prefix(self, positions: tuple[int, ...], key: Key) -> Key:
        primary_key = self.table.primary_key
        return tuple(key[primary_key.index(position)] for position in positions)

    def complete(self, key: Key, version: Version, row: Row) -> None:
        """Put a row with fewer gaps in a version's place."""
        with self.lock:
            chain = self.chains.get(key, ())
            self.chains[key] = tuple(
                found._replace(row=row) if found is version else found
                for found in chain
            )
            if not chain:
                del self.chains[key]

    def storage_row(
        self, key: Key, columns: Collection[int] = ()
    ) -> tuple[bool, Row | None]:
        """Whether these columns of the storage row are known, and the row.

        None for the row: there is none.
        """
        if self.bulk:
            return False, None
        epoch = self.epoch
        known, is_new, row = self._stored.find(key, columns, self.changed_columns)
        if is_new:
            self.remember(epoch, [(key, row)])
        return known, row

    def page_to_read(self, key: Key) -> Address | None:
        """The page that had better be read, after a miss; None: just the row."""
        return None if self.bulk else self._stored.page_to_read(key)

    def group(self, prefix: Key) -> Group | None:
        """A group of storage rows, if it is in memory."""
        return None if self.bulk else self._stored.group(prefix)

    def groups_to_read(self, prefix: Key) -> Stretch | None:
        """What had better be read, after a miss, to have a group; None: nothing."""
        return None if self.bulk else self._stored.groups_to_read(prefix)

    def remember_groups(self, epoch: int, groups: Mapping[Key, Group]) -> bool:
        """Keep groups that were read when the epoch was ``epoch``, if it still is."""
        with self.lock:
            if epoch != self.epoch or not self.is_complete:
                return False
            self._stored.put_groups(groups)
            return True

    def mark_to_read(self, key: Key) -> Key | None:
        """The prefix whose high-water mark had better be read for a new key."""
        if self.bulk or self.table.is_bag:
            return None
        return self._stored.marks.to_read(key)

    def remember_mark(self, epoch: int, prefix: Key, mark: int | None) -> None:
        """Keep a high-water mark that was read when the epoch was ``epoch``."""
        with self.lock:
            if epoch == self.epoch and self.is_complete:
                self._stored.marks.put(prefix, mark)

    def remember(self, epoch: int, rows: Iterable[tuple[Key, Row | None]]) -> None:
        """Keep storage rows that were read when the epoch was ``epoch``."""
        with self.lock:
            if epoch == self.epoch and self.is_complete:
                self._stored.put(rows)

    def remember_page(self, epoch: int, page: Page) -> None:
        """Keep a page that was read when the epoch was ``epoch``."""
        with self.lock:
            if epoch == self.epoch and self.is_complete:
                self._stored.put_page(page)

    def publish(self, cts: int, writes: Sequence[tuple[Key, Row, bool]]) -> None:
        """Add a commit's versions (key, row, whether it is a tombstone)."""
        with self.lock:
            if self.oldest is None:
                self.oldest = cts
            self.newest = cts
            if self._undrained_since is None:
                self._undrained_since = cts
            for key, row, deleted in writes:
                self._undrained.append((cts, row, deleted))
                self.rows += 1
                self.tombstones += deleted
                if self.table.is_bag:
                    self._bag.append((cts, deleted))
                    continue
                version = Version(cts, None if deleted else row)
                chain = self.chains.get(key)
                if chain is None:
                    for positions, index in self._prefixes.items():
                        prefix = self._prefix(positions, key)
                        index.setdefault(prefix, set()).add(key)
                self.chains[key] = (version, *(chain or ()))
            for seen, positions in zip(self._unique, self.table.unique, strict=True):
                for _, row, deleted in writes:
                    if not deleted:
                        seen[tuple(row[i] for i in positions)] = cts

    def publish_bulk(self, cts: int, rows: int, tombstones: int) -> None:
        """Note a commit whose versions are in the cache table only."""
        with self.lock:
            if self.oldest is None:
                self.oldest = cts
            self.newest = cts
            self.bulk = (*self.bulk, BulkCommit(cts, rows, tombstones))
            self.rows += rows
            self.tombstones += tombstones
            self._stored.clear()

    def drain(self, session: Session, sts: int | None = None) -> None:
        """Make sure that the cache table has every version with cts ≤ ``sts``.

        A statement that reads the cache table calls this first. ``session`` must
        not be in an engine transaction: what is drained has been committed.
        """
        since = self._undrained_since
        if since is None or (sts is not None and since > sts):
            return
        with self._draining:
            drained: list[tuple[int, Row, bool]] = []
            try:
                with self.lock:
                    drained, self._undrained = self._undrained, []
                if self._shared is not None:
                    session.transact(lambda: self._append_shared(session, drained))
                else:
                    if self._is_in_doubt:
                        arrived = session.newest_version(self.table)
                        drained = [entry for entry in drained if entry[0] > arrived]
                        self._is_in_doubt = False
                    self._append(session, drained)
            except BaseException:
                # The engine may have them or not: the next drain asks.
                with self.lock:
                    self._undrained = drained + self._undrained
                    self._is_in_doubt = True
                raise
            with self.lock:
                left = self._undrained
                self._undrained_since = left[0][0] if left else None

    def _append_shared(
        self, session: Session, entries: Sequence[tuple[int, Row, bool]]
    ) -> None:
        """Append what no other process has; in an engine transaction."""
        if entries:
            assert self._shared is not None
            arrived = self._shared.claim_versions(session, self.table, entries[-1][0])
            self._append(session, [entry for entry in entries if entry[0] > arrived])

    def _append(
        self, session: Session, entries: Sequence[tuple[int, Row, bool]]
    ) -> None:
        if entries:
            stamps, partial, deleted = zip(*entries, strict=True)
            rows = completed(session, self.table, partial)
            session.append(Versions(self.table, rows, stamps, deleted))

    def batch_end(self, stable: int, size: int) -> int:
        """The cts up to which about ``size`` versions can be folded, at most λ."""
        if self.rows <= size:
            return stable
        with self.lock:
            stamps = [cts for cts, _ in self._bag] + [
                version.cts for chain in self.chains.values() for version in chain
            ]
            stamps += [bulk.cts for bulk in self.bulk]
        oldest = heapq.nsmallest(size, stamps)
        return min(stable, oldest[-1]) if oldest else stable

    def newest_until(self, until: int) -> dict[Key, Row | None]:
        """The newest version with cts ≤ ``until`` of every key that has one.

        Columns that are known to be the same in storage are ``MISSING``.
        """
        newest: dict[Key, Row | None] = {}
        primary_key = self.table.primary_key
        for key, chain in list(self.chains.items()):
            if chain[-1].cts > until:
                continue
            row = next(version.row for version in chain if version.cts <= until)
            stored = None if row is None else self._stored.peek(key)
            if row is not None and stored is not None:
                row = difference(row, stored, primary_key)
            newest[key] = row
        return newest

    def new_keys(self, keys: Iterable[Key]) -> set[Key]:
        """Those keys that storage certainly does not have."""
        return {key for key in keys if self._stored.excludes(key)}

    def forget_storage(self) -> None:
        """Forget what storage has: nobody knows whether a fold changed it."""
        with self.lock:
            self.epoch += 1
            self._stored.clear()

    def folded(self, until: int) -> None:
        """Forget the versions with cts ≤ ``until``: the engine committed the fold."""
        with self.lock:
            self.epoch += 1
            self.folded_until = until
            self._undrained = [entry for entry in self._undrained if entry[0] > until]
            left = self._undrained
            self._undrained_since = left[0][0] if left else None
            had_bulk = not self.is_complete
            self.bulk = tuple(bulk for bulk in self.bulk if bulk.cts > until)
            if self.table.is_bag:
                self._bag = [entry for entry in self._bag if entry[0] > until]
                self.rows = len(self._bag)
                self.tombstones = sum(deleted for _, deleted in self._bag)
                self.oldest = self._bag[0][0] if self._bag else None
            else:
                self._fold_chains(until)
            if had_bulk:
                # A bulk commit may have changed a key after its chain's last version.
                self._stored.clear()
            for bulk in self.bulk:
                self.oldest = min(self.oldest or bulk.cts, bulk.cts)
                self.rows += bulk.rows
                self.tombstones += bulk.tombstones
            for seen in self._unique:
                for values in [v for v, cts in seen.items() if cts <= until]:
                    del seen[values]

    def _fold_chains(self, until: int) -> None:
        oldest: int | None = None
        rows = tombstones = 0
        for key, chain in list(self.chains.items()):
            kept = chain
            if chain[0].cts <= until:
                kept = ()
                self._stored.replace(key, chain[0].row)
                self._forget(key)
            elif chain[-1].cts <= until:
                kept = tuple([version for version in chain if version.cts > until])
                self._stored.replace(key, chain[len(kept)].row)
                self.chains[key] = kept
            if kept:
                rows += len(kept)
                tombstones += sum([version.row is None for version in kept])
                last = kept[-1].cts
                oldest = last if oldest is None else min(oldest, last)
        self.rows, self.tombstones, self.oldest = rows, tombstones, oldest

    def _forget(self, key: Key) -> None:
        del self.chains[key]
        for positions, index in self._prefixes.items():
            prefix = self._prefix(positions, key)
            index[prefix].discard(key)
            if not index[prefix]:
                del index[prefix]
