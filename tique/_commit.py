"""Group commit: certify, stamp, append, publish (paper 2.3.4).

Committers queue a ticket. Whoever gets the leader's lock takes all that is
queued, certifies it in order, and appends every certified transaction's
versions and commit records in one engine transaction; so one flush to disk
serves them all. A lone committer is its own leader and runs inline.

Argument
--------
*Invariant (P2, P3).* Only the holder of ``_leader`` certifies, takes a cts,
appends and publishes. It does so in cts order, and publishes a batch in the
index of versions, then finishes its timestamps, before it releases the lock. So
when a transaction is certified, everything with a smaller cts is visible to the
certifier; within a batch an earlier ticket's keys are in ``claimed``.

*Durability and atomicity (P4, P5).* The engine transaction holds the versions
and the commit records. If the process dies before the engine's COMMIT is
durable, neither is there after reopening; after it, both are. sts lives in
memory and is recovered from the commit records. No reader sees a cts before
``finish`` because sts is smaller.

*If the engine fails* inside the engine transaction it is rolled back, and every
ticket of the batch gets the error; their timestamps are finished (aborted), so
that there is no hole in front of later commits. If it fails *in* COMMIT, a new
session looks for the commit records: they decide. If that is impossible too,
the error is ``OutcomeUnknown``.

*Liveness (P6).* A follower waits for its ticket, at most ``_RECHECK`` seconds at
a time, and then tries for the lock itself; so it needs nobody's wake-up to make
progress. A leader runs batches until its own ticket is done, then hands over.
An exception in the leader (KeyboardInterrupt too) settles the whole batch
before it propagates.

Staged writes (bulk) are in their own session's staging tables: such a
transaction is a batch of its own, in its own session. So is one that deletes
from a bag, whose rows have no keys to claim.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from tique import errors
from tique._certification import Conflict, written_keys
from tique._translation import translated
from tique._versions import Key
from tique._writes import TableWrites
from tique_backends.base import CommitRecord, Row, Session, Versions
from tique_backends.errors import EngineError
from tique_rewriter.schema import Table

if TYPE_CHECKING:
    from tique._database import Database
    from tique._transaction import Transaction

_BATCH = 256
_RECHECK = 1.0


class _Ticket:
    """One transaction's place in the queue and, later, its outcome."""

    __slots__ = ("cts", "done", "error", "gate", "transaction")

    def __init__(self, transaction: Transaction) -> None:
        self.transaction = transaction
        self.cts = 0
        self.error: BaseException | None = None
        self.done = False
        self.gate = threading.Lock()
        self.gate.acquire()

    @property
    def writes(self) -> list[TableWrites]:
        return [writes for writes in self.transaction.writes.values() if writes]

    @property
    def stands_alone(self) -> bool:
        """Whether it cannot share a batch."""
        return any(
            writes.is_staged or any(write.deleted for write in writes.bag)
            for writes in self.transaction.writes.values()
        )

    def settle(self, error: BaseException | None = None) -> None:
        self.error = error
        self.done = True
        self.wake()

    def wake(self) -> None:
        # Already open: whoever waits is on its way and looks at ``done`` itself.
        with suppress(RuntimeError):
            self.gate.release()


class Committer:
    """Commits the transactions of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._leader = threading.Lock()
        self._queue: deque[_Ticket] = deque()
        self._session: Session | None = None

    def commit(self, transaction: Transaction) -> int:
        """Commit; return the cts once sts covers it.

        Raises
        ------
        SerializationError
            If another transaction committed one of its keys first.
        OutcomeUnknown
            If the engine failed in such a way that nobody can tell.
        """
        ticket = _Ticket(transaction)
        self._queue.append(ticket)
        while not ticket.done:
            if self._leader.acquire(blocking=False):
                try:
                    while not ticket.done:
                        self._run(self._take_batch())
                finally:
                    self._leader.release()
                    self._hand_over()
            else:
                ticket.gate.acquire(timeout=_RECHECK)
        if ticket.error is not None:
            raise ticket.error
        return ticket.cts

    @contextmanager
    def paused(self, timeout: float) -> Iterator[None]:
        """Keep everybody from committing (for definitions and detaching)."""
        if not self._leader.acquire(timeout=timeout):
            raise errors.OperationalError(
                f"other transactions kept committing for {timeout:g} s; try again",
                sqlstate="55P03",
            )
        try:
            yield
        finally:
            self._leader.release()
            self._hand_over()

    def close(self) -> None:
        """Close the committer's session."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _hand_over(self) -> None:
        with suppress(IndexError):
            self._queue[0].wake()

    def _take_batch(self) -> list[_Ticket]:
        batch = [self._queue.popleft()]
        while self._queue and len(batch) < _BATCH:
            if batch[-1].stands_alone or self._queue[0].stands_alone:
                break
            batch.append(self._queue.popleft())
        return batch

    def _run(self, batch: list[_Ticket]) -> None:
        try:
            self._commit_batch(batch)
        except BaseException as error:
            for ticket in batch:
                if not ticket.done:
                    ticket.settle(
                        translated(error)
                        if isinstance(error, EngineError)
                        else error
                        if isinstance(error, errors.Error)
                        else errors.OperationalError(f"the commit failed: {error!r}")
                    )
            if not isinstance(error, Exception):
                raise

    def _commit_batch(self, batch: list[_Ticket]) -> None:
        if batch[0].stands_alone:
            session = batch[0].transaction.session
        else:
            if self._session is None:
                self._session = self._database.engine.session()
            session = self._session
        certified = self._certify(batch, session)
        if not certified:
            return
        sequencer = self._database.sequencer
        for ticket in certified:
            ticket.cts = sequencer.next_cts()
        staged: dict[int, int] = {}
        committed = False
        try:
            staged = self._append(certified, session)
            committed = True
            self._publish(certified, staged)
        finally:
            for ticket in certified:
                sequencer.finish(ticket.cts)
            if committed:
                for ticket in certified:
                    ticket.settle()
        self._database.checkpointer.notice()

    def _certify(self, batch: list[_Ticket], session: Session) -> list[_Ticket]:
        certifier = self._database.certifier
        claimed: dict[tuple[int, tuple[int, ...], Key], None] = {}
        certified = []
        for ticket in batch:
            conflict = None
            keys = []
            for writes in ticket.writes:
                if writes.is_staged:
                    conflict = conflict or self._staged_conflict(writes, session)
                    continue
                conflict = conflict or certifier.conflict(writes, session)
                if len(batch) > 1:
                    keys += [
                        (writes.table.id, positions, key)
                        for positions, entries in written_keys(writes)
                        for key, _ in entries
                    ]
                    conflict = conflict or next(
                        (
                            Conflict(writes.table, key[2], self._database.sequencer.cts())
                            for key in keys
                            if key in claimed
                        ),
                        None,
                    )
            if conflict is not None:
                ticket.settle(_serialization_error(conflict))
                continue
            claimed.update(dict.fromkeys(keys))
            certified.append(ticket)
        return certified

    def _staged_conflict(
        self, writes: TableWrites, session: Session
    ) -> Conflict | None:
        table = writes.table
        sts = writes.staged_sts
        assert sts is not None
        keys = [table.primary_key or tuple(range(len(table.columns))), *table.unique]
        for positions in keys:
            sql = self._database.engine.forms.staged_conflicts(table, positions, sts)
            rows = session.execute(sql).fetch_all()
            if rows:
                return Conflict(table, rows[0][:-1], rows[0][-1])
        return None

    def _append(
        self, certified: Sequence[_Ticket], session: Session
    ) -> dict[int, int]:
        """Write versions and commit records; the staged rows' number per table."""
        staged: dict[int, int] = {}
        rows: dict[int, tuple[Table, list[Row], list[int], list[bool]]] = {}
        for ticket in certified:
            for writes in ticket.writes:
                if writes.is_staged:
                    continue
                table = writes.table
                _, values, stamps, deleted = rows.setdefault(
                    table.id, (table, [], [], [])
                )
                for _, write in writes.buffered():
                    values.append(write.row)
                    stamps.append(ticket.cts)
                    deleted.append(write.deleted)
        session.begin()
        try:
            for table, values, stamps, deleted in rows.values():
                session.append(Versions(table, values, stamps, deleted))
            for writes in certified[0].writes:
                if writes.is_staged:
                    staged[writes.table.id] = session.append_staged(
                        writes.table, certified[0].cts
                    )
            session.record(
                [CommitRecord(t.cts, t.transaction.txid) for t in certified]
            )
        except BaseException:
            session.rollback()
            raise
        try:
            session.commit()
        except BaseException as error:
            if not self._is_recorded(certified, session, error):
                raise
        return staged

    def _is_recorded(
        self, certified: Sequence[_Ticket], session: Session, error: BaseException
    ) -> bool:
        """Whether the batch is committed although COMMIT raised ``error``."""
        txid = certified[0].transaction.txid
        try:
            if session is self._session:
                self._session = None
                session.close()
            witness = self._database.engine.session()
            try:
                return (
                    self._database.engine.find_commit(witness, txid) is not None
                )
            finally:
                witness.close()
        except EngineError:
            for ticket in certified:
                ticket.settle(
                    errors.OutcomeUnknown(
                        "the engine failed inside COMMIT and cannot be asked for "
                        f"the outcome of transaction {ticket.transaction.txid}; "
                        f"reconnect and ask then ({error})",
                        txid=ticket.transaction.txid,
                    )
                )
            raise

    def _publish(
        self, certified: Sequence[_Ticket], staged: dict[int, int]
    ) -> None:
        catalog = self._database.catalog
        for ticket in certified:
            for writes in ticket.writes:
                versions = catalog.versions(writes.table)
                if writes.is_staged:
                    count = staged[writes.table.id]
                    versions.publish_bulk(ticket.cts, count, count)
                else:
                    versions.publish(
                        ticket.cts,
                        [
                            (key, write.row, write.deleted)
                            for key, write in writes.buffered()
                        ],
                    )


def _serialization_error(conflict: Conflict) -> errors.SerializationError:
    table = conflict.table.qualified_name
    return errors.SerializationError(
        f"another transaction committed first: a row of {table} was changed since "
        f"this transaction's snapshot, at cts {conflict.winner}; run the "
        "transaction again",
        table=table,
        key=conflict.key,
        winner=conflict.winner,
    )
