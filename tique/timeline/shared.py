"""The order of commits in a database that several processes share.

Argument
--------
The process is a client of the shared sequencer with a lease, which a thread of its own
renews. Its own sequencer mirrors the shared one as far as this process has followed
(:mod:`tique.timeline.following`), and holds its transactions' snapshots.

*λ (P7).* For its transactions the process holds an *anchor*, one snapshot registered
in the shared sequencer. It is moved up to the local λ, never beyond, and that never
decreases. So no version is folded that a local transaction, or one that begins later,
would miss.

*Blind transactions* (:mod:`tique.query.write.blind`) begin on what was followed. Whether that pays is
judged by this process's last groups of commits: none of other processes came between these.

*Fencing (P6).* The lease is over for this process not later than for the server: it
counts from before the renewal was sent, by a clock that runs on while the process is
stopped. A statement's result counts only if the lease was still running when the result
arrived (:meth:`SharedTimeline.check`), because the anchor was there then. A commit is
acknowledged only if the shared sequencer let this client finish its timestamp.

*Company.* The processes that lock rows where others see it (:mod:`tique.query.transaction.rereading`) do so while there are others. Each
answer to the question for a snapshot says how many there are, so that it costs no round trip. A process
has joined before it asks for its first snapshot, and each statement of READ COMMITTED asks for its own. So of
two statements in two processes, each of which began when both processes had joined, both know of
each other, from the first second on. What a transaction had locked before the first other process joined, no other
one sees: it may lose at its commit.

*Definitions of an unfinished schema change (P1).* The engine shows a schema change from its COMMIT on, before its timestamp
is finished. A process that opens then has read a catalog that no snapshot may use yet, and its rows without their versions: it waits for the
timestamp, which is fenced if its process has died, and follows it before the first transaction begins.

*A time limit.* The client of a role that is not trusted to finish soon loses a barrier that
it keeps for too long, and nothing else: its anchor and its lease hold, so the above
holds for reads. That the commit is aborted it learns in COMMIT or from
:meth:`SharedTimeline.finish`. Until then, a bulk commit of such a client is not
expected, but found in the log like another process's, where a fence hides it.

*Dead processes hold up no other.* A killed process's sessions vanish. A waiting
process, or the next heartbeat of any process, makes the dead one's client leave and
fences its timestamps that are under way. A stopped process is given up when its lease
runs out.

*A restart of the server* ends the client: every call raises FencedError. The database
is *lost* then: its connections refuse, and a new ``connect`` opens it afresh, with
recovery before service, by one process.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from tique import errors
from tique._log import family, fields
from tique._translation import given_up
from tique.timeline.following import Follower
from tique.timeline.local import Timeline
from tique.timeline.recovery import Restored, beyond, prunable, restore
from tique_backends.catalog.managed import MANAGED
from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.records import CommitRecord
from tique_backends.sharing import FencedError, OverdueError, SharedSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.timeline.ids import TransactionIds
    from tique.writes.tickets import Ticket
    from tique_backends.engine import Engine
    from tique_backends.session import Session
    from tique_backends.sharing import Anchor, Position
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer

logger = logging.getLogger("tique.lease")

_Outcome = TypeVar("_Outcome")

_LAST = 2**62
_BEAT = 0.5
_BEATS_PER_LEASE = 5
_SLICE = 0.2
_CHECKPOINT_LEASE = 30.0
_PATIENCE = 20.0
_ABREAST_AFTER = 4
_TRIES = 3
_FOR_EVER = 1e9


class SharedTimeline(Timeline):
    """The order of commits in a database that other processes use too.

    Parameters
    ----------
    engine
        The database's engine, which is shared.
    catalog
        Its managed tables.
    sequencer
        This process's own, which mirrors the shared one.
    ids
        This process's transaction ids.
    lease
        Seconds for which the process may be silent.
    """

    is_shared = True

    def __init__(
        self,
        engine: Engine,
        catalog: ManagedCatalog,
        sequencer: Sequencer,
        ids: TransactionIds,
        *,
        lease: float,
    ) -> None:
        super().__init__(engine, catalog, sequencer, ids)
        assert engine.shared is not None
        self._shared = engine.shared
        self.follower = Follower(engine, catalog, sequencer, self._shared)
        self.upkeep: Callable[[], None] = lambda: None
        """Called at every heartbeat, for the layers above; it takes their locks."""
        self.on_loss: Callable[[], None] = lambda: None
        """Called when the process was given up: others go by its lease from now on."""
        self._lease = lease
        self._beat_interval = min(_BEAT, self._lease / _BEATS_PER_LEASE)
        self._anchor: Anchor | None = None
        self._anchoring = threading.Lock()
        self._asking = threading.Lock()
        self._questions = 0
        """So many questions for the shared sts have begun."""
        self._answered = 0
        """The last question that was answered, and followed."""
        self._barrier = 0
        """The timestamp of the DDL or bulk write under way, 0 if there is none.

        The committer's lock is held. A barrier that an interruption leaves behind is
        finished by the next holder of that lock (:meth:`lift`)."""
        self._expires = 0.0
        self._moment = 0
        self._has_company = False
        self._abreast = 0
        """So many groups of commits, one after the other, had nothing to follow before them."""
        self._folding = threading.Lock()
        """Held to take the checkpointer's lease or to give it back; it has two uses:"""
        self._is_checkpointing = False
        self._off = 0
        """The number of the time for which :meth:`keep_folds_off` has kept it, or of the
        last one."""
        self._off_until = 0.0
        self._is_lost = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(
            target=self._run, name="tique-lease", daemon=True
        )

    @override
    def open(self, session: Session) -> Restored:
        """Recover if the server was restarted, join, and read the log."""
        engine = self._engine
        restored = Restored(0, ())
        with self._shared.recovering() as is_needed:
            if is_needed:
                engine.next_epoch(session)
                engine.upgrade(session)
                last = engine.last_commit(session)
                tables = engine.managed_tables(session)
                restored = restore(engine, session, tables, last)
                # The index is filled from the log: that keeps unfolded versions.
                until = prunable(engine, session, restored.failures, last)
                # A checkpoint knows for how long histories need commits.
                engine.prune_log(session, until, _FOR_EVER)
                self._shared.recovered(beyond(last))
        joined = time.monotonic()
        self._shared.join(self._lease)
        self._expires = joined + self._lease
        self._count_epoch(session)
        self._thread.start()
        anchor = self._shared.hold()
        # Schema changes after this snapshot are followed.
        snapshot = self._shared.snapshot(_LAST)
        self._catalog.reload(session)
        ahead = self.follower.load(snapshot, self._ids.current.start)
        # From here on the thread follows too.
        self._anchor = anchor
        if ahead:
            self.wait(ahead)
            self.catch_up()
        return restored

    @override
    def _count_epoch(self, session: Session) -> None:
        # No transaction of the epoch begins before the other processes know of it.
        self._shared.introduce(self._ids.count_epoch(session))

    @override
    def begin(self, *, blindly: bool = False) -> tuple[int, int]:
        """Begin a transaction that sees the commits of all processes.

        One that begins ``blindly`` sees those that were followed.
        """
        if not blindly:
            self.catch_up()
        self.check()
        return super().begin()

    @override
    def refresh(self, txid: int, *, keeps: bool = False) -> int:
        """Take a new snapshot for a transaction."""
        self.catch_up()
        return super().refresh(txid, keeps=keeps)

    @override
    def catch_up(self) -> None:
        """Follow the commits of all processes up to now.

        Threads that ask meanwhile share the next answer, whose question is sent after
        they came.
        """
        asked = self._questions
        if not self._asking.acquire(timeout=_SLICE):
            # The other thread's connection may be dead: no thread waits longer (P6).
            self._ask()
            return
        try:
            if self._answered <= asked:
                self._questions = question = self._questions + 1
                self._ask()
                self._answered = question
        finally:
            self._asking.release()

    def _ask(self) -> None:
        with self.noticing():
            followed = self._sequencer.sts()
            snapshot = self._shared.snapshot(followed)
            self._moment = snapshot.moment
            self._has_company = snapshot.clients > 1
            self.follower.follow(snapshot)

    @property
    @override
    def moment(self) -> int:
        return self._moment

    @override
    def check(self, tables: Iterable[Table] = ()) -> None:
        if time.monotonic() >= self._expires:
            self._is_lost = True
        if self._is_lost:
            raise given_up(f"its lease is {self._lease:g} s")

    @property
    @override
    def can_skip_snapshot(self) -> bool:
        return self._abreast >= _ABREAST_AFTER and not self._shared.tells_privileges

    def fall_behind(self) -> None:
        """Note that another process has committed what this one has not followed."""
        self._abreast = 0

    @property
    @override
    def is_lost(self) -> bool:
        """Whether the lease ran out, or the server was restarted."""
        return self._is_lost

    @override
    def position(self) -> Position:
        """The shared sequencer's λ, sts and cts, and the number of its clients."""
        with self.noticing():
            return self._shared.position()

    @override
    def stable(self) -> int:
        # The local λ counts too: without an anchor (the process was given up) the
        # shared λ passes commits that were not followed, and a fold would lose them.
        return min(self.position().stable, self._sequencer.stable())

    @contextmanager
    @override
    def checkpointing(self) -> Iterator[bool]:
        """Keep other processes from folding; yield False if one does, after a wait."""
        self.advance()
        self.note_folds()
        deadline = time.monotonic() + _SLICE
        with self._folding:
            self._is_checkpointing = True
        is_mine = False
        try:
            while not (is_mine := self._shared.may_checkpoint(_CHECKPOINT_LEASE)):
                if time.monotonic() > deadline:
                    break
                time.sleep(_SLICE / 10)
            if is_mine:
                # Another process may have folded just before.
                self.note_folds()
            yield is_mine
        finally:
            with self._folding:
                self._is_checkpointing = False
                if is_mine and not self._off_until:
                    with suppress(EngineError):
                        self._shared.end_checkpoint()

    @override
    def keep_folds_off(self) -> int:
        with self._folding:
            now = time.monotonic()
            # It is not asked for each time: on MonetDB the answer is an UPDATE.
            if now >= self._off_until - _CHECKPOINT_LEASE / 2:
                is_broken = now >= self._off_until
                self._off_until = 0.0
                if not self._shared.may_checkpoint(_CHECKPOINT_LEASE):
                    return 0
                self._off_until = now + _CHECKPOINT_LEASE
                self._off += is_broken
            return self._off

    @override
    def are_folds_off(self, number: int) -> bool:
        now = time.monotonic()
        return number == self._off and now < min(self._off_until, self._expires)

    @override
    def let_fold(self) -> None:
        with self._folding:
            until, self._off_until = self._off_until, 0.0
            if until and not self._is_checkpointing:
                with suppress(EngineError):
                    self._shared.end_checkpoint()

    @override
    def expect_owner(self) -> None:
        self._shared.expect_owner()

    @override
    def is_undisturbed(self, folds: object) -> bool:
        is_mine = self._shared.may_checkpoint(_CHECKPOINT_LEASE)
        return is_mine and self.folds() == folds

    @override
    def folds(self) -> object:
        return self._shared.folds()

    @contextmanager
    @override
    def alone(self) -> Iterator[None]:
        self.bar()
        try:
            yield
        finally:
            self.lift()

    @override
    def define(self, session: Session, body: Callable[[], _Outcome]) -> _Outcome:
        known = {table.id for table in self._catalog}

        def change() -> _Outcome:
            outcome = body()
            numbers = {number for *_, number in session.execute(MANAGED).fetch_all()}
            made = dict.fromkeys(numbers - known, 0)
            session.log([CommitRecord(self._barrier, 0, {}, made, defines=True)])
            return outcome

        return self._shared.transact(session, change)

    @override
    def has_defined(self) -> bool:
        # No statement of a lost connection goes on: the catalog was read since.
        entries = self._shared.logged(self._barrier - 1)
        commits = self._shared.read(entries, self._catalog.by_id())
        return any(commit.cts == self._barrier for commit in commits)

    @property
    def has_barrier(self) -> bool:
        """Whether a barrier is not finished."""
        return self._barrier != 0 and not self._is_lost

    def lift(self) -> None:
        """Finish the barrier, if there is one; the log has the commit under it."""
        if not self.has_barrier:
            return
        self.follower.expect_nothing(self._barrier)
        for left in reversed(range(_TRIES)):
            try:
                self._shared.finish([self._barrier])
                break
            except OverdueError:
                # Another process fences it.
                break
            except EngineError as error:
                # The call may be repeated: perhaps somebody has stopped it.
                if left and not isinstance(error, FencedError):
                    continue
                # No process waits for it when the lease is over.
                self._is_lost = True
                raise
        self._barrier = 0

    def bar(self) -> int:
        """Keep other processes from committing; return the barrier's timestamp.

        They commit again when it is finished. On return every earlier timestamp is
        finished, and followed.
        """
        if self._shared.limits_barriers:
            # The time that other commits take to finish does not count for the barrier.
            self.wait(self.position().cts)

        def keep(cts: int) -> None:
            self._barrier = cts

        try:
            self.take(self._shared.barrier, keep)
            self.wait(self._barrier - 1)
            self.catch_up()
        except BaseException:
            self.lift()
            raise
        return self._barrier

    @override
    def part(self, session: Session, cts: int, tables: Collection[Table]) -> None:
        with self.noticing():
            self._shared.part(session, cts, tables)

    @override
    def commit(self, session: Session) -> None:
        with self.noticing():
            self._shared.commit(session)

    @override
    def expect_alone(self, session: Session) -> None:
        self._shared.expect_alone(session)

    @override
    def is_current(self) -> bool:
        try:
            if not self._is_lost:
                self.catch_up()
        except FencedError:
            return False
        except EngineError as error:
            if error.kind is not ErrorKind.PROGRAMMING:
                raise
            # Another process has detached the database: there are no functions to call.
            self._is_lost = True
        return not self._is_lost

    @override
    def epochs(self) -> tuple[set[int], int]:
        alive, last = self._shared.epochs()
        return alive - self._ids.epochs, last

    def finish(self, tickets: Sequence[Ticket], staged: dict[int, int]) -> None:
        """Finish durable commits; return when sts covers them."""
        if not self._shared.limits_barriers:
            # Otherwise their outcome is known from the log only.
            for ticket in tickets:
                self.follower.expect(ticket, staged)
        last = tickets[-1].cts
        with self.noticing():
            sts = self._shared.finish([ticket.cts for ticket in tickets])
        self._passed(ticket.cts for ticket in tickets)
        if sts < last:
            self.wait(last)

    def appended(self, tickets: Sequence[Ticket], covered: int) -> None:
        """Note commits that the server finished; return when sts covers them.

        ``covered`` is the shared sts while they were appended.
        """
        for ticket in tickets:
            self.follower.expect(ticket, {})
        last = tickets[-1].cts
        if last - covered > len(tickets):
            # Other processes have not finished commits that they began before.
            self.fall_behind()
            self.wait(last)
        elif covered == self._sequencer.sts():
            # There are no other commits to follow before them.
            self.follower.follow(SharedSnapshot(last, frozenset()))
            self._abreast += 1
        else:
            self.fall_behind()

    def abort(self, stamps: Sequence[int]) -> None:
        """Finish timestamps whose commits are not durable."""
        for cts in stamps:
            self.follower.expect_nothing(cts)
        with self.noticing():
            self._shared.abort(stamps)
        self._passed(stamps)

    def _passed(self, stamps: Iterable[int]) -> None:
        if self._barrier in stamps:
            self._barrier = 0

    @override
    def wait(self, cts: int) -> None:
        """Wait until sts covers a timestamp; fence dead processes meanwhile.

        Raises
        ------
        OperationalError
            A living process has kept a commit open for too long.
        """
        deadline = time.monotonic() + _PATIENCE
        while not self._shared.wait(cts, _SLICE):
            with self.noticing():
                self._shared.tend()
            if time.monotonic() > deadline:
                raise errors.OperationalError(
                    f"another process's commit did not end within {_PATIENCE:g} s "
                    f"({self._shared.others() or 'its client is not to be seen'})",
                    sqlstate="55P03",
                )

    @override
    def has_ahead(self, rows: Collection[tuple[int, Key]]) -> bool:
        return self.follower.has_ahead(rows)

    @property
    @override
    def has_company(self) -> bool:
        return self._has_company

    @override
    def await_begun(self, begun: int | None = None) -> None:
        if begun is None:
            begun = self.position().cts
        # Mostly the statement's snapshot has them all, or the next one does.
        if self._sequencer.sts() < begun:
            self.catch_up()
        if self._sequencer.sts() < begun:
            self.wait(begun)
            self.catch_up()

    def fence_own(self, cts: int) -> None:
        """Have this process's timestamp fenced, now that its client is gone."""
        self._is_lost = True
        self.wait(cts)

    @override
    def close(self) -> None:
        """Leave, so that no other process waits for the lease to end."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self._is_lost = True
        with suppress(EngineError):
            self._shared.leave()

    @contextmanager
    def noticing(self) -> Iterator[None]:
        """Ask the shared sequencer in this context; a fenced process is lost."""
        try:
            yield
        except EngineError as error:
            # The next transaction learns from its question that the server is gone.
            self.fall_behind()
            if isinstance(error, FencedError):
                self._is_lost = True
            raise

    def take(
        self, ask: Callable[[], _Outcome], keep: Callable[[_Outcome], None]
    ) -> None:
        """Ask for timestamps, and keep them, though a signal handler raises meanwhile.

        The committer then finishes those that are kept: an interruption costs
        no more than the commits that it hit. Where it cannot be known whether some were
        handed out (an exception in another thread than the main one, a server that does
        not answer), the process leaves, and other processes fence them: to go on would
        let a timestamp hold back sts for as long as the process lives (P2, P6). Nothing
        is logged for it yet, so that every snapshot (P1) is the same either way.
        """
        is_wanted = is_known = True

        def work() -> None:
            nonlocal is_known
            is_known = False
            # A caller that was interrupted before this, and again, waits no longer.
            if not is_wanted:
                is_known = True
                return
            try:
                with self.noticing():
                    keep(ask())
            except EngineError:
                # The sequencer refused, or has left by itself.
                is_known = True
                raise
            is_known = True

        try:
            undisturbed(work, _PATIENCE)
        except BaseException:
            is_wanted = False
            if not is_known:
                self._is_lost = True
                with suppress(EngineError):
                    self._shared.leave()
            raise

    def _run(self) -> None:
        while not self._stopping.wait(self._beat_interval) and not self._is_lost:
            try:
                self._beat()
            except (EngineError, errors.Error) as error:
                if time.monotonic() >= self._expires:
                    self._is_lost = True
                if not self._stopping.is_set():
                    logger.warning(
                        "this process's lease was not renewed (%s); it lasts for %.1f s",
                        family(error),
                        max(0.0, self._expires - time.monotonic()),
                        extra=fields(
                            "lease_not_renewed",
                            error=family(error),
                            sqlstate=error.sqlstate,
                            seconds=max(0.0, self._expires - time.monotonic()),
                        ),
                    )
        if self._is_lost:
            if not self._stopping.is_set():
                logger.error(
                    "this process was given up by the others, or its server has gone: "
                    "its open transactions are aborted; connect again",
                    extra=fields("lease_lost"),
                )
            self.on_loss()

    def _beat(self) -> None:
        started = time.monotonic()
        with self.noticing():
            self._shared.renew(self._lease)
        self._expires = started + self._lease
        self._shared.tend()
        if self._anchor is None:
            return
        self.advance()
        self.upkeep()

    @override
    def advance(self) -> None:
        """Move the anchor up to the local λ."""
        self.catch_up()
        with self._anchoring:
            stable = self._sequencer.stable()
            if self._anchor is not None and stable > self._anchor.sts:
                self._anchor = self._shared.advance(self._anchor, stable)

    @override
    def note_folds(self) -> None:
        folds = self._shared.folds()
        # These folds are not beyond the anchor if the anchor is still there. The server
        # says so; it may have given this process up before its lease ran out.
        self.catch_up()
        self.check()
        for table_id, folded in folds.items():
            versions = self._catalog.find_versions(table_id)
            if versions is not None and folded > versions.folded_until:
                with versions.no_draining():
                    versions.folded(folded, self._catalog.oldest_writer())
