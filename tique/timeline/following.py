"""Following the log of a shared database, so that the index of versions is complete.

Argument
--------
*Complete (P1).* The local sequencer's sts is how far this process has followed. Before
a transaction begins, the process asks the shared sequencer for sts and follows up to
it. Of each timestamp in between it knows the outcome, because the commit was its own,
or it reads the log, in a statement that begins after sts was read; the server may run
that statement in the same request. A finished commit's entry is visible by then (P2), a
fenced one is named in the answer. (A transaction that begins blindly sees what was followed
before, as a whole: :mod:`tique.query.write.blind`.)

*Together (P2).* Threads that begin transactions at the same time share an answer whose
question was sent after all of them had come: it covers the commits that any of them
must see. A thread does not use the answer to a question that was under way when it
came; and if that one takes long, the thread asks for itself.

*In order.* Versions are published in cts order, and the local sts covers a timestamp
after its versions. One thread follows at a time.

*DDL.* A schema change has a log entry of its own. The catalog is read again before
anything is published that the same step covers, so that no versions of a new table are
missed; versions of a dropped table are ignored. There is no fence for one (:mod:`tique_backends.sharing`).

*No table that is newer than the snapshot (P1).* A table that was made, altered or renamed has a
new number, and the entry has these. Storage has rows of it that an older snapshot does not
see, or its name was another table's in that snapshot. So only snapshots that cover the entry may
use it. The catalog that is read may be newer than the entries that are followed: a number that none
of them has is for no snapshot, until its entry is followed.

*Nothing twice.* If publishing is cut short, it is not known which versions the index
has. So no signal handler may do that (:mod:`tique_backends.concurrency.undisturbed`). If something
else does (no memory), the process gives itself up: its connections must be opened
again.

*A replica's source* (:mod:`tique.replica.source`) gets each commit when it is published, before sts covers
it, or from the log; which, is decided under the lock: each once, and none is left out that the log has.

*Nothing is missed.* This process's anchor in the shared sequencer is never newer than
its local λ, which is never newer than its sts. Nothing is folded beyond any process's
anchor, and the log is not pruned beyond the folds.
"""

from __future__ import annotations

import threading
from contextlib import closing
from math import inf
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tique.store.rows import key_of, tuple_of
from tique.writes.table import columns_set
from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import ErrorKind
from tique_backends.sharing import FencedError

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Collection, Mapping, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.writes.tickets import Ticket
    from tique_backends.engine import Engine
    from tique_backends.records import CommitRecord, Row
    from tique_backends.sharing import SharedSequencer, SharedSnapshot
    from tique_udfs import Sequencer

Writes: TypeAlias = "Mapping[int, Sequence[tuple[Key, Row, bool]]]"

_PATIENCE = 60.0
"""Seconds that an interrupted thread goes on publishing, which asks no server."""


class Published(NamedTuple):
    """A commit in the form in which the index takes it, by table id.

    ``writes`` are keys, rows, and whether they are tombstones; columns that did not change are
    ``MISSING``, and values are as the engine keeps them. ``bulk`` are numbers of rows, and
    ``columns_set`` is that of :class:`~tique_backends.records.CommitRecord`.
    """

    cts: int
    txid: int
    writes: Writes
    bulk: Mapping[int, int]
    columns_set: Mapping[int, Collection[int]] = MappingProxyType({})


class Follower:
    """Publishes other processes' commits, and this one's, in the index of versions.

    Parameters
    ----------
    engine
        The database's engine.
    catalog
        Its managed tables, whose versions are published.
    sequencer
        This process's own; its sts is how far the process has followed.
    shared
        The sequencer of all processes.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        sequencer: Sequencer,
        shared: SharedSequencer,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._sequencer = sequencer
        self._shared = shared
        self._lock = threading.Lock()
        self._own: dict[int, Published] = {}
        self._heard: list[deque[Published]] = []
        self._is_torn = False

    def expect(self, ticket: Ticket, staged: Mapping[int, int]) -> None:
        """Note one of this process's own commits, finished or about to be."""
        own = Published(
            ticket.cts,
            ticket.transaction.txid,
            {
                writes.table.id: [(k, w.row, w.deleted) for k, w in writes.buffered()]
                for writes in ticket.writes
                if not writes.is_staged
            },
            dict(staged),
            columns_set(ticket.writes),
        )
        with self._lock:
            # It may have been read from the log already.
            if ticket.cts > self._sequencer.sts():
                self._own[ticket.cts] = own

    def expect_nothing(self, cts: int) -> None:
        """Note a timestamp of this process's own that is about to be aborted."""
        self._own[cts] = Published(cts, 0, {}, {})

    def has_ahead(self, rows: Collection[tuple[int, Key]]) -> bool:
        """Whether one of this process's own commits that are not followed wrote a row.

        Or a value of a UNIQUE key (:func:`tique.commit.lock_keys.unique_key`). One that the
        engine computes has no columns: any row of the table may have written it.
        """
        unique = {
            (~number, values[0]) for number, values in rows if number < 0 and values
        }
        tables = {number for number, _ in rows if number >= 0}
        with self._lock:
            return any(
                not tables.isdisjoint(own.bulk)
                or any(
                    (number, key) in rows
                    for number in tables.intersection(own.writes)
                    for key, _, _ in own.writes[number]
                )
                or any(
                    not positions
                    or (~number, (positions, *key_of(positions, row))) in rows
                    for number, positions in unique
                    for _, row, _ in own.writes.get(number, ())
                )
                for own in self._own.values()
            )

    def load(self, snapshot: SharedSnapshot, epoch_start: int) -> int:
        """Fill the empty index from the log, up to the snapshot.

        Returns the last schema change after it that the catalog may have; 0 if none.
        """
        catalog = self._catalog
        for table_id, folded in self._shared.folds().items():
            versions = catalog.find_versions(table_id)
            if versions is not None:
                versions.folded_until = folded
        ahead = 0
        # A change of the catalog that is not finished has its entry in the log by now.
        entries = self._shared.logged(self._shared.replicated()[1])
        for cts, commit in self._others(snapshot, entries).items():
            if cts <= snapshot.sts:
                self._publish(self._read(commit))
            elif commit.defines:
                ahead = cts
        self._sequencer.recover(sts=snapshot.sts, txid=epoch_start)
        return ahead

    def listen(self, heard: deque[Published], after: int) -> list[Published]:
        """Put each commit there from now on; return those followed before, behind ``after``."""
        with self._lock:
            self._heard.append(heard)
            followed = self._sequencer.sts()
        # The fences first: an entry of one that is swept away meanwhile goes before it.
        snapshot = self._shared.snapshot(followed)
        others = self._others(snapshot, self._shared.logged(after))
        stamps = [cts for cts in others if after < cts <= followed]
        return [self._read(others[cts]) for cts in stamps]

    def forget(self, heard: deque[Published]) -> None:
        """Put no further commit there."""
        with self._lock:
            self._heard = [each for each in self._heard if each is not heard]

    def follow(self, snapshot: SharedSnapshot) -> None:
        """Publish every commit that the snapshot covers.

        Raises
        ------
        FencedError
            An earlier call was cut short: it is not known which versions the index has.
        """
        sequencer = self._sequencer
        if snapshot.sts <= sequencer.sts():
            return
        with self._lock:
            if self._is_torn:
                raise FencedError(
                    ErrorKind.OPERATIONAL, "it was interrupted as it followed commits"
                )
            followed = sequencer.sts()
            stamps = range(followed + 1, snapshot.sts + 1)
            logged: dict[int, CommitRecord] = {}
            if any(cts not in self._own for cts in stamps):
                entries = snapshot.entries
                if entries is None:
                    entries = self._shared.logged(followed)
                logged = self._others(snapshot, entries)
                defined = [
                    logged[c] for c in stamps if c in logged and logged[c].defines
                ]
                if defined:
                    self._reload({n: each.cts for each in defined for n in each.bulk})
                    logged = self._others(snapshot, entries)

            def publish() -> None:
                self._is_torn = True
                for cts in stamps:
                    own = self._own.pop(cts, None)
                    if cts in logged:
                        self._publish(self._read(logged[cts]))
                    elif own is not None and cts not in snapshot.fences:
                        self._publish(own)
                    sequencer.finish(sequencer.next_cts())
                self._is_torn = False

            undisturbed(publish, _PATIENCE)

    def _others(
        self, snapshot: SharedSnapshot, entries: Sequence[Row]
    ) -> dict[int, CommitRecord]:
        """The commits of log entries that count, but for the expected ones."""
        commits = self._shared.read(entries, self._catalog.by_id(), self._own)
        return {c.cts: c for c in commits if snapshot.counts(c)}

    def _reload(self, since: Mapping[int, int]) -> None:
        """Read the catalog, which is at least as new as the entries followed now.

        ``since`` has tables that were made, and when.
        """
        with closing(self._engine.session()) as session:
            self._catalog.reload(session, since, inf)

    def _read(self, commit: CommitRecord) -> Published:
        tables = self._catalog.by_id()
        writes = {}
        for number, rows in commit.writes.items():
            # One that was dropped since the commit was read is of no interest.
            if number in tables:
                key = tuple_of(tables[number].primary_key)
                writes[number] = [(key(row), row, deleted) for row, deleted in rows]
        return Published(
            commit.cts, commit.txid, writes, commit.bulk, commit.columns_set
        )

    def _publish(self, commit: Published) -> None:
        cts, lacking = commit.cts, self._catalog.lacking
        for versions, writes in lacking(cts, commit.writes):
            columns = commit.columns_set.get(versions.table.id)
            versions.publish(cts, writes, columns)
        for versions, rows in lacking(cts, commit.bulk):
            versions.publish_bulk(cts, rows, rows)
        for heard in self._heard:
            heard.append(commit)
