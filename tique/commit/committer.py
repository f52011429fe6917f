"""Group commit: certify, stamp, append, publish (paper 2.3.4).

Committers queue a ticket. The thread that gets the leader's lock takes all queued
tickets, certifies them in order, and appends every certified transaction's commit
record, with its versions in it, to the log: one engine statement and one flush to
disk serve them all. The versions reach their cache tables later (see
:mod:`tique.store.versions`). A lone committer is its own leader and runs inline.

Argument
--------
*Invariant (P2, P3).* Only the holder of ``_leader`` certifies, takes a cts,
appends and publishes. It does so in cts order, and publishes a batch in the
index of versions, then finishes its timestamps, before it releases the lock. So
when a transaction is certified, everything with a smaller cts is visible to the
certifier; within a batch an earlier ticket's keys are claimed
(:mod:`tique.commit.batch`).

*Durability and atomicity (P4, P5).* The log's row is the commit: it holds the
batch's versions and commit records. If the process dies before the engine made it
durable, nothing is there after reopening; after it, everything is. sts lives in
memory and is recovered from the commit records. No reader sees a cts before
``finish`` because sts is smaller.

*If anything fails* before COMMIT, the engine transaction is rolled back and every
ticket of the batch gets the error; their timestamps are finished (aborted), so
that there is no hole in front of later commits. From COMMIT until memory knows
of the batch it is ``_unsettled``: if that is cut short (an engine error, a
KeyboardInterrupt at any instruction), a new session looks for the commit records,
and they decide. If that is impossible too, the error is ``OutcomeUnknown``, the
timestamps stay unfinished, so that no transaction sees versions that may be there, and
the next leader asks again before anything else.

*Liveness (P6).* A follower waits for its ticket, at most ``_RECHECK`` seconds at
a time, and then tries for the lock itself; so it needs no other thread's wake-up to
make progress. A leader runs batches until its own ticket is done, then hands over.
Before it takes a batch it yields as long as the queue grows, which is at most once per
open transaction. A ticket is in the queue or in ``_batch`` at every instant until it is
done, and an exception in the leader settles its batch before it propagates. If it is an
interruption (a signal handler raised in the leader's thread), only the leader's own
commit fails. The other tickets go back to the queue, and the outcome of the
``_unsettled`` ones is looked up: a ticket that is committed is done then, and a ticket
in the queue that is done is passed over. A second interruption disturbs none of that
(:mod:`tique_backends.concurrency.undisturbed`). Work that is left all the same, because the engine
does not answer, is the first thing that the next leader does. A follower that is
interrupted withdraws, so that its connection can drop the writes.

Staged writes (bulk) are in their own session's staging tables: such a
transaction is a batch of its own, in its own session. So is one that deletes
from a table without a primary key, whose rows have no keys to claim.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import deque
from contextlib import closing, contextmanager, suppress
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from tique import _observer, errors
from tique.commit.batch import BatchCertifier
from tique.writes.table import columns_set
from tique.writes.tickets import Ticket, failure, outcome_unknown
from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import ConnectionLostError, EngineError
from tique_backends.records import CommitRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence, Sized

    from tique.commit.certification import Certifier
    from tique.commit.figures import CommitCounts
    from tique.commit.hot_keys import HotKeys
    from tique.commit.protocols.optimistic import Optimistic
    from tique.store.catalog import ManagedCatalog
    from tique.timeline.local import Timeline
    from tique.writes.tickets import Committing
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_udfs import Sequencer

_BATCH = 256
_QUESTIONS = 3
_RECHECK = 1.0
_STATEMENTS = 16
"""After so many statements, of all connections, a thread yields the GIL."""
_PATIENCE = 10.0


class Committer:
    """Commits the transactions of one database.

    Parameters
    ----------
    engine
        The database's engine.
    catalog
        Its managed tables.
    sequencer
        This process's own.
    timeline
        How commits are ordered.
    certifier
        Finds conflicts.
    protocol
        Keeps SERIALIZABLE transactions apart.
    transactions
        The open transactions: at most so many commit together.
    committed
        Called after every batch.
    hot_keys
        Counts updates that were computed again, by key.
    counts
        Counts commits, and times their phases.
    """

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        sequencer: Sequencer,
        timeline: Timeline,
        certifier: Certifier,
        protocol: Optimistic,
        transactions: Sized,
        committed: Callable[[], None],
        hot_keys: HotKeys,
        counts: CommitCounts,
    ) -> None:
        self._engine = engine
        self._catalog = catalog
        self._sequencer = sequencer
        self._timeline = timeline
        self._certifier = BatchCertifier(
            catalog,
            engine.forms,
            sequencer,
            certifier,
            protocol,
            counts,
            are_apart=engine.shared is not None and not engine.shared.appends_whole,
        )
        self._protocol = protocol
        self._transactions = transactions
        self._committed = committed
        self._hot_keys = hot_keys
        self._counts = counts
        self._leader = threading.Lock()
        self._queue: deque[Ticket] = deque()
        self._batch: list[Ticket] = []
        """Tickets that a leader commits, or has left. Only the leader touches them."""
        self._session: Session | None = None
        self._logger: Session | None = None
        self._unsettled: Sequence[Ticket] = ()
        self._reload: Callable[[], None] | None = None
        """Reads the catalog that an engine transaction with DDL may have changed."""
        self._is_left = False
        """Whether an interrupted leader may have left something to settle."""
        self._statements = itertools.count(1)

    def prepare(self, transaction: Committing) -> None:
        """Decide how the transaction is committed, before it looks for row locks."""

    def commit(self, transaction: Committing, *, needs_barrier: bool = False) -> int:
        """Commit; return the cts once sts covers it.

        With a barrier no other process commits in the meantime.

        Raises
        ------
        SerializationError
            If another transaction committed one of its keys first.
        OutcomeUnknown
            If the engine failed in such a way that the outcome cannot be known.
        RowsLockedError
            If another process has locked a row: nothing is committed.
        OvertakenError
            If it should be tried with a barrier: nothing is committed.
        """
        ticket = Ticket(transaction, needs_barrier=needs_barrier)
        self._queue.append(ticket)
        try:
            while not ticket.done:
                if self._leader.acquire(blocking=False):
                    self._lead(ticket)
                else:
                    ticket.gate.acquire(timeout=_RECHECK)
        except BaseException:
            undisturbed(partial(self._withdraw, ticket), _PATIENCE)
            raise
        if ticket.error is not None:
            raise ticket.error
        return ticket.cts

    @contextmanager
    def paused(self, timeout: float) -> Iterator[None]:
        """Keep all threads from committing (for DDL and detaching)."""
        if not self._leader.acquire(timeout=timeout):
            raise errors.OperationalError(
                f"other transactions kept committing for {timeout:g} s; try again",
                sqlstate="55P03",
            )
        try:
            self._settle_earlier()
            yield
        finally:
            self._resign()

    def commit_held(
        self,
        transaction: Committing,
        write: Callable[[Ticket], dict[int, int]],
        reload: Callable[[Ticket], None],
    ) -> int:
        """Commit the engine transaction that the session holds, alone; return the cts.

        Commits are :meth:`paused` meanwhile.

        Parameters
        ----------
        transaction
            The transaction.
        write
            Refuses, or brings the writes and the commit record into the engine
            transaction; returns the numbers of staged rows, by table.
        reload
            Reads the catalog again; called before anything is published, and also when
            it is not known whether COMMIT has happened.

        Raises
        ------
        OutcomeUnknown
            If the engine failed in such a way that the outcome cannot be known.
        """
        ticket = Ticket(transaction)
        try:
            self._bar(ticket)
            staged = write(ticket)
            self._unsettled, self._reload = (ticket,), partial(reload, ticket)
            self._timeline.commit(transaction.session)
            self._reload_definitions()
            self._publish([ticket], staged)
            self._protocol.committed([ticket])
            self._unsettled = ()
            self._counts.committed += 1
        except BaseException as error:
            self._is_left = True
            undisturbed(partial(self._settle_held, ticket, error), _PATIENCE)
            if ticket.error is not None:
                raise ticket.error from error
            if not isinstance(error, Exception):
                raise
        return ticket.cts

    def _bar(self, ticket: Ticket) -> None:
        """Give a ticket a timestamp behind which nothing is committed before it ends."""
        ticket.cts = self._sequencer.next_cts()

    def _settle_held(self, ticket: Ticket, error: BaseException) -> None:
        """Find out the outcome of :meth:`commit_held` after ``error``."""
        with suppress(EngineError):
            ticket.transaction.session.end_hold()
        self._settle_or_doubt()
        self._is_left = self.is_in_doubt
        if not ticket.done:
            is_ordinary = isinstance(error, Exception)
            ticket.settle(failure(error) if is_ordinary else None)

    def let_work(self) -> None:
        """Yield the GIL, after some statements, if a thread is committing.

        A thread that answers statement after statement from memory never waits for the
        engine, and a committer, which does wait for it, would get the GIL back only
        every few milliseconds. But to yield it costs as much as a statement.
        """
        if next(self._statements) % _STATEMENTS == 0 and self._leader.locked():
            time.sleep(0)

    def reread(self, reload: Callable[[], None]) -> bool:
        """Read the catalog; if that fails, before anything else happens, and False."""
        self._reload = reload
        try:
            self._reload_definitions()
        except BaseException as error:
            self._is_left = True
            if not isinstance(error, EngineError):
                raise
            return False
        return True

    @property
    def is_outdated(self) -> bool:
        """Whether the catalog has yet to be read after a schema change."""
        return self._is_left and self._reload is not None

    @property
    def is_in_doubt(self) -> bool:
        """Whether a commit's outcome is not known."""
        return bool(self._unsettled)

    @property
    def is_left(self) -> bool:
        """Whether an interruption may have left something to :meth:`settle_left`."""
        return self._is_left

    def settle(self) -> None:
        """Look up the outcome of a commit in doubt."""
        with self.paused(_PATIENCE):
            pass

    def settle_left(self) -> None:
        """Settle the commits that an interrupted leader left, if no thread leads."""
        if self._leader.acquire(blocking=False):
            try:
                self._settle_earlier()
                self._is_left = False
            finally:
                self._resign()

    def close(self) -> None:
        """Close the committer's sessions."""
        for session in (self._session, self._logger):
            if session is not None:
                session.close()
        self._session = self._logger = None

    def _hand_over(self) -> None:
        with suppress(IndexError):
            self._queue[0].wake()

    def _withdraw(self, ticket: Ticket) -> None:
        with self._leader:
            if not ticket.done:
                ticket.settle(errors.OperationalError("the commit was interrupted"))
            with suppress(ValueError):
                self._queue.remove(ticket)
        self._hand_over()

    def _gather(self) -> None:
        """Let threads that are about to commit join, as long as one of them does.

        A larger group costs the engine no more; one group more costs it a flush.
        """
        waiting = 0
        possible = min(len(self._transactions), _BATCH)
        while waiting < len(self._queue) < possible:
            waiting = len(self._queue)
            time.sleep(0)

    def _fill(self) -> None:
        """Move tickets that can be committed together from the queue to the batch."""
        batch = self._batch
        while self._queue and len(batch) < _BATCH:
            ticket = self._queue[0]
            if not ticket.done:
                if batch and (batch[-1].stands_alone or ticket.stands_alone):
                    break
                batch.append(ticket)
            self._queue.popleft()

    def _lead(self, own: Ticket) -> None:
        """Commit all threads' queued tickets until ``own`` is done; then hand over."""
        is_handed_on = False

        def clear_up() -> None:
            # The thread that waits for this to end may give up: then it no longer has
            # the lock.
            nonlocal is_handed_on
            is_handed_on = True
            try:
                self._clear_up(own)
            finally:
                self._resign()

        try:
            while not own.done:
                self._run()
        except BaseException:
            self._is_left = True
            undisturbed(clear_up, _PATIENCE)
            raise
        finally:
            if not is_handed_on:
                self._resign()

    def _resign(self) -> None:
        self._leader.release()
        self._hand_over()

    def _run(self) -> None:
        try:
            self._settle_earlier()
            self._requeue()
            self._gather()
            self._fill()
            self._commit_batch(self._batch)
            self._batch = []
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Give every ticket of the batch its outcome after ``error``."""
        if not self._batch:
            self._fill()
        self._settle_or_doubt()
        for ticket in self._batch:
            if not ticket.done:
                ticket.settle(failure(error))
        self._batch = []

    def _clear_up(self, own: Ticket) -> None:
        """Fail the leader's own ticket after an interruption, and no other.

        Tickets of its batch that are not committed wait for the next leader.
        """
        if not own.done:
            own.settle(errors.OperationalError("the commit was interrupted"))
        self._requeue()
        self._settle_or_doubt()
        self._is_left = False

    def _requeue(self) -> None:
        """Put the rest of an interrupted leader's batch back into the queue."""
        for ticket in reversed(self._batch):
            # It is still there if the interruption came while the batch was filled.
            if not ticket.done and ticket not in self._queue:
                self._queue.appendleft(ticket)
        self._batch = []

    def _settle_or_doubt(self) -> None:
        try:
            self._settle_earlier()
        except Exception as cause:
            for ticket in self._unsettled:
                ticket.settle(outcome_unknown(ticket, cause))

    def _settle_earlier(self) -> None:
        """Bring memory in line with a batch that was cut short, if there is one.

        Repeating it does no harm. How far the batch was published is not known, so
        its versions are noted as being in the cache table only.
        """
        self._reload_definitions()
        sequencer = self._sequencer
        if not self._unsettled and sequencer.sts() == sequencer.cts():
            return
        if self._unsettled and self._is_recorded(self._unsettled[0].transaction.txid):
            self._replay(self._unsettled)
            self._finish_all()
            self._acknowledge(self._unsettled)
        self._unsettled = ()
        self._finish_all()

    def _acknowledge(self, tickets: Sequence[Ticket]) -> None:
        """Let the transactions know that they are committed."""
        self._protocol.committed(tickets)
        for ticket in tickets:
            ticket.settle()
        self._counts.committed += len(tickets)

    def _reload_definitions(self) -> None:
        """Read the catalog again before anything is published by it."""
        if self._reload is not None:
            self._reload()
            self._reload = None

    def _replay(self, tickets: Sequence[Ticket]) -> None:
        """Bring logged versions to their cache tables, past the index."""
        engine = self._engine
        witness = engine.session()
        try:
            for ticket in tickets:
                for writes in ticket.writes:
                    versions = self._catalog.versions(writes.table)
                    versions.drain(witness)
                    engine.replay(witness, writes.table)
                    count = writes.staged_count + sum(1 for _ in writes.buffered())
                    versions.publish_bulk(ticket.cts, count, count)
        finally:
            witness.close()

    def _finish_all(self) -> None:
        """Finish every timestamp; the caller has the leader's lock: all are its own."""
        sequencer = self._sequencer
        for cts in range(sequencer.sts() + 1, sequencer.cts() + 1):
            sequencer.finish(cts)

    def _is_recorded(self, txid: int) -> bool:
        return self._recorded(txid) is not None

    def _recorded(self, txid: int) -> int | None:
        """The cts of a transaction if it is committed, asked in a new session.

        A process that gives this one up ends its sessions, and may end this session
        too.
        """
        engine = self._engine
        for _ in range(_QUESTIONS - 1):
            with suppress(ConnectionLostError), closing(engine.session()) as witness:
                return engine.find_commit(witness, txid)
        with closing(engine.session()) as witness:
            return engine.find_commit(witness, txid)

    def _commit_batch(self, batch: list[Ticket]) -> None:
        if not batch:
            return
        if batch[0].stands_alone:
            session = batch[0].transaction.session
        else:
            if self._session is None or self._session.is_lost:
                self._session = self._engine.session()
            session = self._session
        with session.unhurried(), session.planned_apart():
            self._commit_in(session, batch)

    def _commit_in(self, session: Session, batch: list[Ticket]) -> None:
        counts = self._counts
        began = perf_counter()
        certified = self._take_timestamps(self._certify(batch, session))
        is_certified = perf_counter()
        counts.certify.note(is_certified - began)
        if not certified:
            return
        committed, staged = self._append(certified, session)
        is_appended = perf_counter()
        counts.append.note(is_appended - is_certified)
        self._publish(committed, staged)
        is_published = perf_counter()
        counts.publish.note(is_published - is_appended)
        self._unsettled = ()
        for ticket in committed:
            for writes, key, _ in ticket.merged:
                self._hot_keys.note_merge(writes.table.qualified_name, key)
                counts.merges += 1
        self._acknowledge(committed)
        observer = _observer.observer
        if observer is not None:
            observer.grouped(
                self._engine.capabilities.dialect,
                len(committed),
                (began, is_certified, is_appended, is_published),
            )
        self._committed()

    def _certify(self, batch: list[Ticket], session: Session) -> list[Ticket]:
        """The tickets that may be committed; the others are settled."""
        certified, later = self._certifier.certify(batch, session)
        self._queue.extendleft(reversed(later))
        return certified

    def _take_timestamps(self, certified: list[Ticket]) -> list[Ticket]:
        """Give each ticket its cts; return the tickets that may be appended."""
        for ticket in certified:
            ticket.cts = self._sequencer.next_cts()
        return certified

    def _append(
        self, certified: Sequence[Ticket], session: Session
    ) -> tuple[Sequence[Ticket], dict[int, int]]:
        """Log the batch; return the committed tickets, and staged row counts by table.

        Buffered writes need one engine statement. Staged ones go to their cache
        tables in the same engine transaction, behind everything older.
        """
        records = [
            CommitRecord(
                ticket.cts,
                ticket.transaction.txid,
                {
                    writes.table.id: [(w.row, w.deleted) for _, w in writes.buffered()]
                    for writes in ticket.writes
                    if not writes.is_staged
                },
                {
                    writes.table.id: writes.staged_count
                    for writes in ticket.writes
                    if writes.is_staged
                },
                columns_set=columns_set(ticket.writes),
            )
            for ticket in certified
        ]
        bulk = [writes for writes in certified[0].writes if writes.is_staged]
        if not certified[0].needs_barrier:
            return self._log(certified, records), {}
        staged: dict[int, int] = {}
        try:
            for writes in bulk:
                self._catalog.versions(writes.table).drain(session)
            session.begin()
            for writes in bulk:
                staged[writes.table.id] = session.append_staged(
                    writes.table, certified[0].cts
                )
            tables = [writes.table for writes in bulk]
            self._timeline.part(session, certified[0].cts, tables)
            session.log(records)
            self._unsettled = certified
            self._timeline.commit(session)
        except BaseException:
            # A rollback after COMMIT changes nothing.
            with suppress(EngineError):
                session.rollback()
            raise
        return certified, staged

    def _log(
        self, certified: Sequence[Ticket], records: Sequence[CommitRecord]
    ) -> Sequence[Ticket]:
        """Log buffered writes, all or nothing."""
        if self._logger is None:
            self._logger = self._engine.session(logs_only=True)
        try:
            self._unsettled = certified
            self._logger.log(records)
        except BaseException:
            # The session may be of no use any more.
            logger, self._logger = self._logger, None
            with suppress(EngineError):
                logger.close()
            raise
        return certified

    def _publish(self, certified: Sequence[Ticket], staged: dict[int, int]) -> None:
        """Make durable commits known, in cts order, and finish their timestamps."""
        catalog = self._catalog
        for ticket in certified:
            for writes in ticket.writes:
                versions = catalog.versions(writes.table)
                if writes.is_staged:
                    count = staged[writes.table.id]
                    versions.publish_bulk(ticket.cts, count, count, writes.columns_set)
                else:
                    versions.publish(
                        ticket.cts,
                        [
                            (key, write.row, write.deleted)
                            for key, write in writes.buffered()
                        ],
                        writes.columns_set,
                    )
        for ticket in certified:
            self._sequencer.finish(ticket.cts)
