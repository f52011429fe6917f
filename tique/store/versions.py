"""The index of recent versions in memory: the fast form of the cache tables.

The process that has an embedded database open is its only writer, and one that shares
a database follows the log of all commits (:mod:`tique.timeline.following`), so an index of the
MVCC versions in the cache tables can be complete. It answers three questions
without a round trip to the engine: which version of a key a snapshot sees, whether
a transaction committed a key after a snapshot was taken (certification, paper 2.3.4),
and whether a statement needs to look at a cache table at all.

Invariants
----------
* *Publish before sts.* The committer adds a commit's versions before sts covers
  its cts; a reader whose sts is older skips them.
* *Fold before dropping.* The checkpointer drops versions with cts ≤ λ only after
  the engine committed the fold. A reader that finds no version ≤ its sts reads
  storage afterwards; because its snapshot is registered, λ ≤ sts, so storage then
  has exactly the row that it may see.
* *Readers take no lock*: a key's versions are in a list that never changes
  (:mod:`tique.store.chains`), put in place of the one before under ``lock``. So are
  rows, and the entries of indexes; a dictionary is copied in one step. Only a reader that
  builds an index takes the lock, to keep folds away.
* *Memory has what storage has.* Single rows and ranges of the storage table are
  remembered (:mod:`tique.store.stored`). All of them are true at any time: after the
  engine committed a fold, and under the lock, the fold is written through to them, key
  by key, before the index drops the folded versions. So a reader that finds no version
  may take whichever of them it finds first, if it looks for it *after* the versions.
  A reader that holds a row or a range from before a fold has looked before the versions
  were dropped: they were visible to it (λ ≤ sts), and take precedence. A gap in a row
  is a column that no fold has changed since the rest of the range was read.
* *No fold is missed between reading and remembering.* A fold raises ``epoch`` under the
  lock, last of all; rows that were read before or meanwhile are not remembered after
  it. An evicted row or range is gone: no fold has to reach it.
* *Rows by value.* A reader that looks for rows with some value in a range takes, in this
  order: the keys of versions with it, the keys of the range's rows with it, the versions
  of these keys, their rows; then the range must still be kept. A version with the value
  that was folded before the first step is in the range's rows and indexes by then; one
  that is folded after it is the row at the last step. A row whose versions have gaps
  there has the value in the range throughout.
* Versions of a bulk commit stay in the engine: while ``bulk`` is not empty the
  index is incomplete and only SQL may answer (the fold empties it).
* *Drain before reading.* A commit is durable in the log; its versions reach the
  cache table later, in cts order, when a statement is about to read that table or
  a fold is about to move them. Until then only this index has them.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from tique import errors
from tique.store.cache import Cache
from tique.store.chains import Chains, newest_until
from tique.store.kept_keys import KeptKeys
from tique.store.rows import completed
from tique.store.stored import StoredRows
from tique_backends.records import Images, Row, Versions
from tique_backends.servers.aside import NO_ROW

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tique.store.chains import Version
    from tique.store.policy import CachePolicy
    from tique.store.ranges import Address, KeyRange
    from tique.store.rows import Key
    from tique_backends.rows.ranges import RangeRows
    from tique_backends.session import Session
    from tique_backends.sharing import SharedSequencer
    from tique_rewriter.schema import Table


_PIECE = 10_000
"""So many versions, and the rest of the last commit, are drained at once."""


class BulkCommit(NamedTuple):
    """A commit whose versions are in the cache table only, or several from ``first`` on."""

    cts: int
    rows: int
    tombstones: int
    first: int


class TableVersions:
    """The recent versions of one table.

    Parameters
    ----------
    table
        The table.
    policy
        The policy of the caches of storage.
    cache
        The cache of ranges of the database's storage tables; None: one of its own.
    shared
        The sequencer of a database that other processes use too: each of them drains
        and folds.
    arrow_mismatch_columns
        Positions of columns whose values are others in Arrow than in a row.
    """

    def __init__(
        self,
        table: Table,
        policy: CachePolicy,
        cache: Cache | None = None,
        shared: SharedSequencer | None = None,
        *,
        arrow_mismatch_columns: frozenset[int] = frozenset(),
    ) -> None:
        self.table = table
        self.folded_until = 0
        """The cts up to which all versions are in storage, as far as is known here."""
        self.last_cts = 0
        """The cts of the newest commit to the table that is known here."""
        self.published_at = 0.0
        """When that was published, by the monotonic clock."""
        self._replaced_cts = 0
        """The cts of the newest commit that may have changed or deleted a row."""
        self._reshaped_cts = 0
        """The cts of the newest commit that may have done more than set columns of rows."""
        self._columns_set: frozenset[int] = frozenset()
        """The columns that the others have set since there was no version."""
        self.since: float = 0
        """The oldest snapshot that may use the table; 0: all of them."""
        self._shared = shared
        self.lock = threading.Lock()
        self.changed_columns: frozenset[int] = frozenset()
        """Columns that changes by key look at: read along with any others."""
        self.bulk: tuple[BulkCommit, ...] = ()
        self.epoch = 0
        self.rows = 0
        self.tombstones = 0
        self.oldest: int | None = None
        self.is_flat = True
        """Whether no key has two versions in the cache table."""
        self.is_fold_open = False
        """Whether a fold has begun of which it is not known how it ended."""
        self.is_behind = False
        """Whether recovery could not bring the log's versions to the cache table."""
        self._chains = Chains(table)
        self._kept = KeptKeys(table)
        self._stored = StoredRows(
            table,
            policy,
            cache or Cache(policy),
            self.lock,
            arrow_mismatch_columns=arrow_mismatch_columns,
        )
        self._undrained: list[tuple[int, Row, bool]] = []
        self._undrained_since: int | None = None
        self._is_in_doubt = False
        self._draining = threading.Lock()

    @property
    def remembered(self) -> tuple[int, int, int, int]:
        """Of cached storage rows: their number, hits, misses, evictions."""
        stored = self._stored
        return len(stored), stored.hits, stored.misses, stored.evictions

    @property
    def is_complete(self) -> bool:
        """Whether the index holds every version that the cache table holds."""
        return not self.bulk

    @property
    def is_appended(self) -> bool:
        """Whether no version takes a row's place, in storage or of another version.

        Then storage and the cache table have no key in common, whichever folds a query's
        engine snapshot has: a fold moves versions from one to the other at once.
        """
        return self._replaced_cts <= self.folded_until

    @property
    def columns_set(self) -> frozenset[int] | None:
        """The columns in which versions may differ from the row that storage has.

        None: it may have none under a key, or there are tombstones, or it is not known.
        """
        is_known = self._reshaped_cts <= self.folded_until
        return self._columns_set if is_known and not self.table.is_keyless else None

    def prunable(self, until: int) -> int:
        """The cts up to which the log is not needed any more, at most ``until``."""
        if self.is_behind:
            return 0
        return until if self.oldest is None else min(until, self.oldest - 1)

    @contextmanager
    def no_draining(self) -> Iterator[None]:
        """Keep the cache table from being filled, while a fold empties it.

        A version that came late would hide the newer row that storage has by then.
        """
        with self._draining:
            yield

    @property
    def is_empty(self) -> bool:
        """Whether the cache table holds nothing."""
        return self.rows == 0

    @property
    def keys(self) -> int:
        """How many keys have versions in the index."""
        return len(self._chains)

    def newest_visible(self, key: Key, sts: int) -> Version | None:
        """The newest version with cts ≤ sts (P1); None: storage has the row, if any."""
        version = self._chains.newest(key)
        if version is None or version[0] <= sts:
            return version
        return newest_until(version, sts)

    def visible_rows(self, key: Key, sts: int) -> Iterator[Row | None]:
        """The rows of all versions with cts ≤ sts, newest first."""
        return (row for _, row, _ in self._chains.visible(key, sts))

    def newest(self, key: Key) -> Version | None:
        """The newest version of a key, whichever snapshots see it."""
        return self._chains.newest(key)

    def later(self, key: Key, sts: int) -> list[Version]:
        """The versions of a key with cts > sts, oldest first."""
        found = []
        version = self._chains.newest(key)
        while version is not None and version[0] > sts:
            found.append(version)
            version = version[2]
        return found[::-1]

    @property
    def judges_since(self) -> int:
        """The oldest snapshot of which the later commits are known by their keys.

        Asked after :meth:`last_commit`: it may rise meanwhile.
        """
        return self._kept.since

    def last_commit(self, key: Key) -> int:
        """The cts of the key's newest version; 0 if none is known."""
        version = self._chains.newest(key)
        if version is not None:
            return version[0]
        return self._kept.rows.get(key, 0)

    def last_unique_commit(self, constraint: int, values: Key) -> int:
        """The cts of the newest version with these values of a UNIQUE key; or 0."""
        newest = self._chains.last_unique_commit(constraint, values)
        return newest or self._kept.last_unique_commit(constraint, values)

    def matching(self, positions: tuple[int, ...], values: Key) -> Sequence[Key]:
        """The keys with versions that have ``values`` in the columns ``positions``.

        ``positions`` are key columns, in key order, and others after them, where a gap
        has no value. Keys that were changed last come last, if there are positions.
        The first lookup by a set of columns builds an index of it.
        """
        if not positions:
            return self._chains.keys()
        index = self._chains.index(positions)
        if index is None:
            with self.lock:
                index = self._chains.build_index(positions)
        # A copy made in one step: the committer adds keys meanwhile.
        return list(index.get(values, ()))

    def complete(self, key: Key, version: Version, row: Row) -> None:
        """Put a row with fewer gaps in a version's place."""
        with self.lock:
            self._chains.complete(key, version, row)

    def storage_row(
        self, key: Key, columns: Collection[int] = ()
    ) -> tuple[bool, Row | None]:
        """Whether these columns of the storage row are known, and the row.

        If the row is None storage has none.
        """
        if self.bulk:
            return False, None
        epoch = self.epoch
        known, is_made, row = self._stored.find(key, columns, self.changed_columns)
        if is_made:
            self.remember(epoch, [(key, row)])
        return known, row

    def group_range(
        self, prefix: Key, columns: Collection[int], *, as_rows: bool
    ) -> KeyRange | None:
        """A range in memory that has a group, with these columns (``as_rows``: tuples)."""
        if self.bulk:
            return None
        return self._stored.group_range(prefix, columns, as_rows=as_rows)

    def range_to_read(
        self,
        key: Key,
        columns: Iterable[int],
        misses: int = 1,
        *,
        as_rows: bool = False,
    ) -> Address | None:
        """The range to read after a miss of a row, or of a group (``key`` is shorter).

        None: not worth it yet. A miss may count for several groups.
        """
        if self.bulk:
            return None
        return self._stored.range_to_read(key, columns, misses, as_rows=as_rows)

    def tail_to_read(self, key: Key) -> Address | None:
        """The range to read after a miss of a key that is probably new, if any."""
        return None if self.bulk else self._stored.tail_to_read(key)

    def remember_range(
        self, epoch: int, address: Address, rows: RangeRows | None
    ) -> KeyRange | None:
        """Keep a range that was read when the epoch was ``epoch``.

        If ``rows`` is None they cannot be held column-wise: it is not read again.

        Returns
        -------
        KeyRange or None
            The range; None if it is not kept.
        """
        part = self._stored.range_of(address, rows)
        with self.lock:
            if part is None or epoch != self.epoch or not self.is_complete:
                return None
            self._stored.put_range(part)
            return part

    def keeps(self, part: KeyRange) -> bool:
        """Whether a range is in memory still, so that folds reach it."""
        return self._stored.keeps(part)

    def remember(self, epoch: int, rows: Iterable[tuple[Key, Row | None]]) -> None:
        """Keep storage rows that were read when the epoch was ``epoch``."""
        with self.lock:
            if epoch == self.epoch and self.is_complete:
                self._stored.put(rows)

    def publish(
        self,
        cts: int,
        writes: Sequence[tuple[Key, Row, bool]],
        columns_set: Collection[int] | None = None,
    ) -> None:
        """Add a commit's versions (key, row, whether it is a tombstone).

        If all that it did was to set columns of rows, ``columns_set`` are these; if all of
        its rows are new, there are none.
        """
        with self.lock:
            if self.table.is_keyless:
                columns_set = None if any(deleted for _, _, deleted in writes) else ()
            self._note_replaced(cts, columns_set)
            if self._undrained_since is None:
                self._undrained_since = cts
            self.last_cts = max(self.last_cts, cts)
            self.published_at = time.monotonic()
            self._undrained += [(cts, row, deleted) for _, row, deleted in writes]
            self._chains.add(cts, writes)
            self._count()

    def _note_replaced(self, cts: int, columns_set: Collection[int] | None) -> None:
        """Before a commit is seen; the lock is held."""
        if columns_set is None or columns_set:
            self._replaced_cts = max(self._replaced_cts, cts)
        if columns_set:
            self._columns_set = self._columns_set.union(columns_set)
        else:
            self._reshaped_cts = max(self._reshaped_cts, cts)

    def publish_bulk(
        self,
        cts: int,
        rows: int,
        tombstones: int,
        columns_set: Collection[int] | None = None,
    ) -> None:
        """Note a commit whose versions are in the cache table only."""
        with self.lock:
            self._note_replaced(cts, columns_set)
            self.last_cts = max(self.last_cts, cts)
            self.published_at = time.monotonic()
            self.bulk = (*self.bulk, BulkCommit(cts, rows, tombstones, cts))
            self._count()
            self._stored.clear()

    def restore(self, commits: Sequence[tuple[int, int]]) -> None:
        """Note the commits, each with its rows, that recovery left in the cache table.

        They are kept as one, apart from the first, which says where they begin.
        """
        with self.lock:
            self.last_cts = max([self.last_cts, *(cts for cts, _ in commits)])
            self._note_replaced(self.last_cts, None)
            rows = sum(count for _, count in commits[1:])
            kept = [*commits[:1], *((cts, rows) for cts, _ in commits[-1:] if rows)]
            self.bulk = tuple(
                BulkCommit(cts, count, count, commits[number][0])
                for number, (cts, count) in enumerate(kept)
            )
            self.is_behind = False
            self._count()
            self._stored.clear()

    def _count(self) -> None:
        """Count the versions in the cache table; the lock is held."""
        bulk, chains = self.bulk, self._chains
        self.rows = chains.rows + sum([commit.rows for commit in bulk])
        self.tombstones = chains.tombstones + sum([each.tombstones for each in bulk])
        oldest = [commit.cts for commit in bulk[:1]]
        if chains.oldest is not None:
            oldest.append(chains.oldest)
        self.oldest = min(oldest, default=None)
        # Last of all, in one step: a commit that is being added is in no snapshot yet.
        self.is_flat = len(bulk) < 2 and self.rows == (
            bulk[0].rows if bulk else len(chains)
        )

    def drain(self, session: Session, sts: int | None = None) -> None:
        """Make sure that the cache table has every version with cts ≤ ``sts``.

        A statement that reads the cache table calls this first. ``session`` must
        not be in an engine transaction: drained versions have been committed.

        Beside an old snapshot there may be millions of versions. They go in pieces: a
        server ends an engine transaction that is idle for long.
        """
        if sts is None:
            with self.lock:
                # If none is left, another thread may be draining the last of them.
                left = self._undrained[-1:]
                sts = left[0][0] if left else self._undrained_since
        while not self._has_drained(sts):
            with self._draining:
                if not self._has_drained(sts):
                    self._drain_piece(session)

    def _has_drained(self, sts: int | None) -> bool:
        since = self._undrained_since
        return since is None or sts is None or since > sts

    def _drain_piece(self, session: Session) -> None:
        """Drain some of the oldest versions, whole commits; ``_draining`` is held."""
        # They are committed, whatever becomes of a transaction that is held.
        session = session.aside
        drained: list[tuple[int, Row, bool]] = []
        try:
            with self.lock:
                entries = self._undrained
                end = len(entries)
                if end > _PIECE:
                    end = bisect_right(entries, entries[_PIECE - 1][0], key=_cts)
                # In one step: at an interruption each entry is in one of the lists.
                drained, self._undrained = entries[:end], entries[end:]
            if self._shared is not None:
                if drained:
                    self._append_shared(session, drained)
            else:
                if self._is_in_doubt or self.is_fold_open:
                    # A fold that was interrupted may have moved some to storage.
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
        """Append versions that no other process has."""
        assert self._shared is not None
        self._shared.fill(
            session,
            self.table,
            entries[-1][0],
            lambda arrived: self._append(
                session, [e for e in entries if e[0] > arrived]
            ),
        )

    def _append(
        self, session: Session, entries: Sequence[tuple[int, Row, bool]]
    ) -> None:
        if entries:
            whole = completed(session, self.table, [row for _, row, _ in entries])
            known = []
            for (cts, _, deleted), row in zip(entries, whole, strict=True):
                if row is None:
                    self.set_aside(cts)
                else:
                    known.append((cts, row, deleted))
            if known:
                stamps, rows, tombstones = zip(*known, strict=True)
                session.append(Versions(self.table, rows, stamps, tombstones))

    def set_aside(self, cts: int) -> None:
        """Note a version with gaps that storage has no row for.

        Raises
        ------
        InternalError
            If no other process writes the database's log.
        """
        if self._shared is None:
            raise self._unstored()
        self._shared.aside.note(cts, self.table.id, NO_ROW)

    def _unstored(self) -> errors.InternalError:
        return errors.InternalError(
            f"a row of {self.table.qualified_name} that is known in part is not in "
            "storage; please report this"
        )

    def batch_end(self, stable: int, size: int) -> int:
        """The cts up to which about ``size`` versions can be folded, at most λ."""
        with self.lock:
            return self._chains.batch_end(stable, size)

    def changes(self, until: int) -> tuple[dict[Key, Row | None], set[Key]]:
        """The changes to storage by a fold of all versions with cts ≤ ``until``.

        Returns
        -------
        rows : dict of Key to (Row or None)
            The newest of these versions by key (None: a tombstone). Columns that are
            known to be the same in storage are ``MISSING``.
        new : set of Key
            The keys that storage certainly does not have.
        """
        with self.lock:
            newest = self._chains.rows_until(until)
            columns_set = self.columns_set
        return self._stored.changes(newest, columns_set)

    def images(self, session: Session, until: int, new: Collection[Key]) -> Images:
        """What a fold of all versions with cts ≤ ``until`` leaves in the table's history.

        Storage certainly has no rows with the keys ``new``. What versions lack is read.
        """
        table = self.table
        stored: dict[Key, int] = {}
        unstored: dict[Key, int] = {}
        passed: list[tuple[int, Row, int, bool]] = []
        with self.lock:
            newest = self._chains.versions_until(until)
        for key, version in newest.items():
            end, _, older = version
            while older is not None and older[0] > self.folded_until:
                cts, row, before = older
                state = self._gone(key) if row is None else row
                passed.append((end, state, cts, row is None))
                end, older = cts, before
            (unstored if key in new else stored)[key] = end
        # In the order in which they end, which is how they are found again.
        passed.sort(key=_cts)
        ends, rows, stamps, deleted = zip(*passed, strict=True) if passed else [()] * 4
        whole = completed(session, table, rows)
        known = [row for row in whole if row is not None]
        if len(known) < len(whole):
            raise self._unstored()
        versions = Versions(table, known, stamps, deleted)
        return Images(stored, unstored, versions, ends)

    def _gone(self, key: Key) -> Row:
        """A row that stands for none."""
        values = dict(zip(self.table.primary_key, key, strict=True))
        return tuple([values.get(i) for i in range(len(self.table.columns))])

    def changed_since(self, sts: int) -> set[Key]:
        """The keys of versions that are later than a snapshot."""
        with self.lock:
            return self._chains.keys_since(sts)

    def changes_between(self, after: int, until: int) -> dict[Key, Row | None] | None:
        """The newest rows with ``after`` < cts ≤ ``until`` (None: a tombstone), by key.

        None: the index does not have all of these. A column that no version has changed
        since storage was written may be ``MISSING``.
        """
        with self.lock:
            if self.table.is_keyless or any(
                bulk.first <= until and bulk.cts > after for bulk in self.bulk
            ):
                return None
            return self._chains.rows_between(after, until)

    def forget_storage(self) -> None:
        """Drop cached storage rows: it is not known whether a fold changed them."""
        with self._changing_storage():
            self._stored.clear()

    @contextmanager
    def _changing_storage(self) -> Iterator[None]:
        """Hold the lock; rows that were read before it is free are not remembered."""
        with self.lock:
            try:
                yield
            finally:
                self.epoch += 1

    def folded(self, until: int, oldest_writer: float = inf) -> None:
        """Drop the versions with cts ≤ ``until``: the engine committed the fold.

        The keys of those later than ``oldest_writer`` are kept.
        """
        with self._changing_storage():
            del self._undrained[: bisect_right(self._undrained, until, key=_cts)]
            left = self._undrained
            self._undrained_since = left[0][0] if left else None
            # Written through first: a reader that misses a version looks there next.
            rows = self._chains.rows_until(until)
            self._keep_keys(until, oldest_writer)
            self._stored.replace(rows, only_known=self._shared is not None)
            self._chains.forget(until, rows)
            if not self.is_complete:
                # A bulk commit may have changed a key after its chain's last version.
                self._stored.clear()
            self.bulk = tuple(bulk for bulk in self.bulk if bulk.cts > until)
            self._count()
            if self.is_empty:
                self._columns_set = frozenset()
            # Last: an interruption before it has this done again.
            self.folded_until = until
            self.is_fold_open = False

    def _keep_keys(self, until: int, oldest_writer: float) -> None:
        """Keep the keys of versions that are folded, for snapshots that λ has passed."""
        if oldest_writer >= until or self.table.is_keyless:
            self._kept.lose(until)
            return
        unknown = [bulk.cts for bulk in self.bulk if bulk.cts <= until]
        self._kept.lose(max([int(oldest_writer), *unknown]))
        self._kept.keep(self._chains.commits_until(until, after=self._kept.since))

    def forget_keys(self) -> None:
        """Drop the keys of folded versions: no snapshot that λ has passed may write."""
        with self.lock:
            self._kept.lose(self.folded_until)


def _cts(entry: tuple[Any, ...]) -> int:
    cts: int = entry[0]
    return cts
