"""The position of a replica in the order of its source's commits.

A *replica* is a database whose only writer is another database's log. One thread, that of the
replication (:mod:`tique.replica`), publishes the source's commits with the source's
timestamps; all else of this process reads.

Argument
--------
*Whole epochs, in order (P1, P2).* All versions of an epoch are in the index before the local
sequencer, whose sts is what readers take, passes the first of its timestamps. A reader that begins
while it passes them sees a whole number of commits. Timestamps that were aborted are passed like
the others. No other thread takes one: every way to write is refused. λ is the local
sequencer's, as in any database: folds pass no reader's snapshot.

*Gaps.* A column that is ``MISSING`` in a version is as in the version before. For the source that
may be in storage, and here in the index: so a gap is filled from the version before
if the index has that. If not, storage has the value, as folds move whole prefixes.

*Nothing twice, nothing left out (P4, P5).* What is in storage is what the engine transaction
of the last fold or copy says: the position, and per table how far it is folded. At opening the
rest is forgotten, for the source has it, and the replication goes on behind the position. A table
that is a copy of a later state passes over the commits that it has; until the position
has reached that state (``ready_at``) no reader begins.

*What storage has* is a whole number of commits, too. A transaction that may be so old reads it as an
ordinary program would, without the versions in memory (:mod:`tique.query.transaction.held`). The position,
and that no table is a copy of a later state, is read in the same engine transaction as its rows.

*A table that is copied anew* has the name of the one before, and newer rows. A statement that was planned
before it was there, and that the engine begins afterwards, reads these. So what the engine has done is
looked at after it has begun: ``redefines`` is set before the copy's COMMIT, and taken back when the
catalog that readers plan by has the new table and not the old one. So one of both is seen (P1).

*Torn.* If publishing, or reading the catalog after a copy, fails, it is not known what memory has.
Then the database is not followed until it was opened anew; readers go on with the state before.

*Commit records* reach the engine with the folds, and before a transaction is handed to it: so
the past by time and the feed know every commit that they can see. They are kept until the position
has passed them, and those that the engine has are not added again: it does no harm if its answer is lost.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from contextlib import contextmanager
from math import inf
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from typing_extensions import override

from tique import errors
from tique.store.rows import merged
from tique.timeline.local import Timeline
from tique.timeline.recovery import Restored
from tique_backends.catalog import replicas
from tique_backends.names import cache_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique.timeline.following import Published
    from tique.timeline.ids import TransactionIds
    from tique_backends.catalog.replicas import ReplicaRecord, Stop
    from tique_backends.engine import Engine
    from tique_backends.records import Row
    from tique_backends.session import Session
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer


_FOLLOWED = ("following", "copying")
_MOST_ASKED = 1000
"""So many epochs that are not in storage are remembered, by when they were asked for."""


class ReplicationStatus(NamedTuple):
    """How a replica stands.

    ``state`` is ``"copying"``, ``"following"``, ``"stopped"`` or ``"failed"``, ``error`` that
    with which it failed, or which keeps it from the source for the moment. The source's commits
    up to ``applied`` are published, up to ``durable`` in storage, up to ``newest`` known of;
    ``lag`` is the time in seconds since the source was asked for these, None before the first
    epoch. ``epochs`` with commits, ``commits`` and ``rows`` are counted, and ``seconds`` of the
    steps ``ask``, ``publish``, ``fold`` and ``copy``, all in this process. ``stopped`` are the
    tables that are not replicated any more, and why; ``notes`` say that all was copied anew,
    and why.
    """

    state: str
    error: str | None
    source: str
    applied: int
    durable: int
    newest: int
    lag: float | None
    epochs: int
    commits: int
    rows: int
    stopped: Mapping[str, str]
    seconds: Mapping[str, float]
    notes: Sequence[str]

    @property
    def behind(self) -> int:
        """The number of the source's timestamps that are known of and not published."""
        return self.newest - self.applied


class ReplicaState:
    """How far a replica is: written by its replication, read by all.

    Attributes
    ----------
    source, slot : str
        The URL of the source, without its password, and the name of the replica's slot there.
    applied, durable, newest : int
        The source's commits up to here are published, are in storage, are known of.
    ready_at : int
        Readers begin when this is applied.
    stored_ready_at : int
        What storage has is one state when this is durable.
    asked : float
        By the monotonic clock: every commit that was acknowledged then is published.
    stopped : Mapping of str to Stop
        The tables that are not replicated any more.
    is_torn : bool
        Whether publishing was cut short.
    redefines : bool
        Whether the engine may have other tables than the catalog.
    phase, error, notes
        As :class:`ReplicationStatus` has them.
    counts, seconds : dict
        How many epochs, commits and rows were published; how long each step has taken.
    """

    def __init__(self, record: ReplicaRecord) -> None:
        self.source, self.slot = record.source, record.slot
        self.applied = self.durable = self.newest = record.position
        self.ready_at = self.stored_ready_at = record.ready_at
        self.asked = -inf
        self.stopped: Mapping[str, Stop] = record.stopped
        self.is_torn = self.redefines = False
        self.phase = "stopped"
        self.error: str | None = None
        self.notes: list[str] = []
        self.counts = dict.fromkeys(("epochs", "commits", "rows"), 0)
        self.seconds = dict.fromkeys(("ask", "publish", "fold", "copy"), 0.0)
        self._changed = threading.Condition()
        self._asked: deque[tuple[int, float]] = deque([(0, -inf)], _MOST_ASKED)

    @property
    def stored_asked(self) -> float:
        """By the monotonic clock: every commit that was acknowledged then is in storage."""
        with self._changed:
            while len(self._asked) > 1 and self._asked[1][0] <= self.durable:
                self._asked.popleft()
            position, asked = self._asked[0]
            return asked if position <= self.durable else -inf

    @property
    def is_followed(self) -> bool:
        """Whether a replication runs in this process."""
        return self.phase in _FOLLOWED

    def claim(self) -> None:
        """Begin to follow; OperationalError (55006) if there is a replication, or was torn."""
        with self._changed:
            if self.is_followed or self.is_torn:
                raise errors.OperationalError(
                    "a replication into this replica runs already in this process, or has "
                    "failed: stop it, and close all connections to the replica",
                    sqlstate="55006",
                )
            self.phase = "following"

    def let_go(self, phase: str) -> None:
        """Follow no longer; those that wait are told."""
        with self._changed:
            self.phase = phase
            self._changed.notify_all()

    def note(self, applied: int, asked: float) -> None:
        """Note that an epoch is published."""
        with self._changed:
            if self._asked[-1][0] == applied:
                self._asked.pop()
            self._asked.append((applied, asked))
            self.applied, self.asked = applied, asked
            self.newest = max(applied, self.newest)
            self._changed.notify_all()

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Count the time of a block as that of a step."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] += time.perf_counter() - began

    def wait(self, cts: int | None, asked: float | None, timeout: float) -> bool:
        """Wait until ``cts`` is published, by an epoch asked for at ``asked`` or later.

        It ends early, with False, if no replication runs in this process.
        """

        def is_there() -> bool:
            return self.applied >= (cts or 0) and self.asked >= (asked or -inf)

        with self._changed:
            self._changed.wait_for(lambda: is_there() or not self.is_followed, timeout)
            return is_there()

    def status(self) -> ReplicationStatus:
        """How far it is."""
        return ReplicationStatus(
            state=self.phase,
            error=self.error,
            source=self.source,
            applied=self.applied,
            durable=self.durable,
            newest=self.newest,
            lag=None if self.asked == -inf else time.monotonic() - self.asked,
            **self.counts,
            stopped={name: stop.why for name, stop in self.stopped.items()},
            seconds=dict(self.seconds),
            notes=(*self.notes,),
        )


class ReplicaTimeline(Timeline):
    """The order of the source's commits, in the process that has the replica open.

    ``record`` is what the replica knows of its source.
    """

    is_read_only: ClassVar[bool] = True

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        sequencer: Sequencer,
        ids: TransactionIds,
        record: ReplicaRecord,
    ) -> None:
        super().__init__(engine, catalog, sequencer, ids)
        self.state = ReplicaState(record)
        self._records: deque[tuple[int, int, int]] = deque()
        self.recording = threading.RLock()
        """Held from when commit records go to the engine until they are there, once."""

    @override
    def open(self, session: Session) -> Restored:
        self._ids.count_epoch(session)
        engine, position = self._engine, self.state.durable
        engine.upgrade(session)
        self._catalog.reload(session)

        def forget() -> None:
            for versions in self._catalog.all_versions():
                table = versions.table
                session.execute(f"DELETE FROM {cache_name(table)}")
                versions.folded_until = engine.folded_until(session, table)
            session.execute(f"DELETE FROM tique.outcomes WHERE cts > {position}")

        session.transact(forget)
        self._sequencer.recover(sts=position, txid=self._ids.current.start)
        return Restored(0, ())

    @override
    def begin(self, *, blindly: bool = False) -> tuple[int, int]:
        begun = super().begin(blindly=blindly)
        if begun[1] < self.state.ready_at:
            self.end(begun[0])
            raise _unready()
        return begun

    def stored(self, session: Session) -> int:
        """The version in storage; OperationalError (SQLSTATE 55000) if tables are newer than that."""
        position, ready_at = replicas.positions(session)
        if position < ready_at:
            raise _unready()
        return position

    @override
    def check(self, tables: Iterable[Table] = ()) -> None:
        known = self._catalog.by_id()
        for table in tables:
            if self.state.redefines or (
                table.id not in known and not table.is_temporary
            ):
                raise errors.SerializationError(
                    f"table {table.qualified_name} was copied anew, or dropped, meanwhile; "
                    "run the transaction again",
                    table=table.qualified_name,
                )

    @override
    def expect_owner(self) -> None:
        raise errors.OperationalError(
            "this database is a replica, which only its source changes: write there, or "
            "make it an ordinary database with `tique promote`",
            sqlstate="25006",
        )

    def publish(self, commits: Sequence[Published], sts: int, asked: float) -> None:
        """Publish an epoch: all commits up to ``sts`` that are newer than the last one's.

        Their tables are the replica's. What they wrote to a table is passed over if the table is a copy
        that has it. ``asked`` is for :attr:`ReplicaState.asked`.
        """
        state, sequencer, now = self.state, self._sequencer, self.moment
        state.is_torn = True
        for cts, txid, writes, _, columns in commits:
            for versions, rows in self._catalog.lacking(cts, writes):
                filled = _filled(versions, rows)
                versions.publish(cts, filled, columns.get(versions.table.id))
                state.counts["rows"] += len(rows)
            self._records.append((cts, txid, now))
        while sequencer.sts() < sts:
            sequencer.finish(sequencer.next_cts())
        state.is_torn = False
        state.counts["commits"] += len(commits)
        state.counts["epochs"] += bool(commits)
        state.note(sts, asked)

    @override
    def record_commits(self, session: Session) -> None:
        with self.recording:
            while self._records and self._records[0][0] <= self.state.durable:
                self._records.popleft()
            replicas.record(session, [*self._records])


def _unready() -> errors.OperationalError:
    return errors.OperationalError(
        "the replica is not ready: some of its tables are newer than others, or not "
        "there yet; it will be when `tique replicate` has run for a moment",
        sqlstate="55000",
    )


def _filled(
    versions: TableVersions, writes: Sequence[tuple[Key, Row, bool]]
) -> Sequence[tuple[Key, Row, bool]]:
    """The writes, with the gaps filled that the versions before do not have."""
    if versions.table.is_keyless:
        return writes
    found = []
    for key, row, deleted in writes:
        before = None if deleted else versions.newest(key)
        if before is not None and before[1] is not None:
            row = merged(row, before[1])
        found.append((key, row, deleted))
    return found
