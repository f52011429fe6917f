"""How a connection runs statements, each in a transaction.

A connection is what the application holds, and this is what it does: its cursors, and the
statements about transactions, settings, cursors and rows in bulk, come together here.

Nothing here refers to the :class:`~tique.Connection`, so that one that the application has
dropped without closing it is finalized at once (:meth:`Execution.abandon`).
"""

from __future__ import annotations

import logging
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tique import _observer, errors
from tique._translation import given, translated_by, translating, unexpected
from tique.commit.locks import Usual
from tique.commit.turns import Contender
from tique.connection.committing import commit_writes, note_loss
from tique.connection.connection_info import TransactionStatus
from tique.connection.control import Controls
from tique.connection.deadline import Deadlines, overdue
from tique.connection.notices import Notices
from tique.connection.planning import Planner
from tique.connection.portals import Portals
from tique.connection.session_statements import SessionStatements
from tique.connection.side_sessions import SideSessions, runs_apart
from tique.connection.transfer.bulk import BulkStatements
from tique.connection.variables import plan_with_variables, run_with_variables
from tique.database import process
from tique.database.database import release
from tique.query.base import Outcome, Statement
from tique.query.define.migration import Migration
from tique.query.define.redefinition import redefined
from tique.query.define.schema_changes import expect_writable
from tique.query.define.temporary import Temporaries
from tique.query.read.fences import run_fenced_if_needed
from tique.query.read.past import point_at
from tique.query.transaction.contested import reacquire_turn
from tique.query.transaction.ddl_transaction import DDLTransaction
from tique.query.transaction.isolation import IsolationLevel
from tique.query.transaction.rereading import look_again
from tique.query.write.blind import run_blindly
from tique_backends.concurrency.undisturbed import undisturbed
from tique_backends.errors import EngineError
from tique_rewriter.errors import RewriteError, UnknownTable
from tique_rewriter.kinds.session.session import SessionPlan
from tique_rewriter.plans.plan import (
    DEFAULT_ISOLATION,
    TransactionControl,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from tique.connection.routing.options import RoutingOptions
    from tique.connection.routing.router import Router
    from tique.database.database import Database
    from tique.store.catalog import ManagedCatalog
    from tique_backends.session import Session

logger = logging.getLogger("tique.commit")

_TRIES_FOR = 10.0
"""For so many seconds a statement in autocommit is run again after it lost."""
_PAUSE = 0.0005
_CLOSING = 1.0
"""Seconds that closing waits for another thread's call, and again once it was stopped."""
_AGAIN = 0.05


def checked_timeout(value: float | None) -> float | None:
    """A ``lock_timeout``; InterfaceError if it is none."""
    if value is not None and not given(lambda value: value >= 0, value, "lock_timeout"):
        raise errors.InterfaceError(f"lock_timeout={value!r} is below zero")
    return value


@dataclass(frozen=True)
class ExecutionOptions:
    """How a connection runs statements: the options of :func:`tique.connect`."""

    isolation: IsolationLevel | None
    autocommit: bool
    paramstyle: str
    merges: bool
    lock_timeout: float | None
    transactional_ddl: bool
    python_variables: bool
    routing: RoutingOptions | None = None


class Execution:
    """Runs the statements of one connection, one at a time, under its lock.

    Parameters
    ----------
    owner
        The connection; what is left open is abandoned when it is gone.
    database
        Its database.
    options
        Its options.
    """

    router: Router | None = None
    """Decides which queries run on a replica (:mod:`tique.connection.routing.routed`)."""

    def __init__(
        self,
        owner: object,
        database: Database,
        options: ExecutionOptions,
    ) -> None:
        self._options = options
        capabilities = database.engine.capabilities
        self._reads_variables = (
            options.python_variables and capabilities.reads_variables
        )
        self.lock_timeout = checked_timeout(options.lock_timeout)
        self.deadlines = Deadlines(self)
        self._overdue: str | None = None
        """The setting by which the connection was closed."""
        self.database = database
        self.number = database.number()
        self.autocommit = options.autocommit
        self.lock: Any = threading.RLock()
        self._process = process.current()
        self.transaction: DDLTransaction | None = None
        """The open one."""
        self.migration: Migration | None = None
        """Its DDL."""
        self.temporaries = Temporaries(
            database.engine, database.catalog, options.paramstyle
        )
        self.planner = Planner(self, options.paramstyle)
        with translating():
            self.session = database.engine.session()
        self.contender = Contender(database.turns)
        self.controls = Controls(self, options.isolation)
        self.portals = Portals(self)
        self._apart = SideSessions(database)
        self.sessions = SessionStatements(self)
        self.bulk = BulkStatements(self)
        self.notices = Notices()
        self.last_cts = 0
        """The timestamp of its last commit that has written."""
        try:
            with translating():
                self._obey(options.isolation)
        except BaseException:
            self.session.close()
            raise
        with self.lock:
            # Behind this the connection rests.
            self._finalizer = weakref.finalize(owner, self.abandon)
            self._finalizer.atexit = False

    def _obey(self, isolation: IsolationLevel | None) -> None:
        """Begin with the settings of the session, but for those of the connection."""
        first = {**self.session.starting()}
        if isolation is not None:
            first[DEFAULT_ISOLATION] = isolation.value
        if not isinstance(self.lock_timeout, Usual):
            first.pop("lock_timeout", None)
        self.sessions.obey(first)

    def abandon(self) -> None:
        """End the transaction and leave the rest to the checkpointer's thread.

        Runs as a finalizer: at any point of any thread, so it takes no lock.
        """
        database = self.database
        if self.is_inherited:
            return
        if self.transaction is not None:
            database.sequencer.end(self.transaction.txid)
            database.transactions.pop(self.transaction.txid, None)
            database.catalog.long_writers.pop(self.transaction.txid, None)
            database.locks.abandon(self.transaction.txid)
        self.temporaries.forget()
        database.abandon(self.session, self.migration)

    def expect_router(self) -> Router:
        """What decides about a replica; ProgrammingError if the connection has none."""
        if self.router is None:
            raise errors.ProgrammingError(
                "freshness is for a connection with a replica: connect(…, replica=…)",
                sqlstate="55000",
            )
        return self.router

    # State

    @property
    def closed(self) -> bool:
        """Whether the connection was closed."""
        return not self._finalizer.alive

    @property
    def is_inherited(self) -> bool:
        """Whether it is that of the process which this one was forked from."""
        return self._process != process.current()

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.transaction is not None or self.controls.is_explicit

    @property
    def txid(self) -> int | None:
        """The open transaction's id."""
        transaction = self.transaction
        return None if transaction is None else transaction.txid

    def check_usable(self) -> None:
        """Raise an error if the connection takes no statements any more."""
        if process.is_exiting:
            process.park_if_exiting()
        if not self._finalizer.alive:
            if self._overdue is not None:
                raise overdue(self._overdue)
            raise errors.InterfaceError("the connection is closed", sqlstate="08003")
        if self.is_inherited:
            raise errors.InterfaceError(
                "the connection belongs to the process that this one was forked from: "
                "connect in each process (SQLAlchemy: engine.dispose(close=False) there)",
                sqlstate="08003",
            )

    @property
    def commits_each(self) -> bool:
        """Whether every statement is a transaction of its own."""
        return self.autocommit and not self.controls.is_explicit

    def transaction_status(self) -> TransactionStatus:
        """Return what the connection is in the middle of."""
        if self.closed:
            return TransactionStatus.UNKNOWN
        transaction = self.transaction
        migration = self.migration
        if transaction is not None and (
            transaction.has_failed or (migration is not None and migration.has_failed)
        ):
            return TransactionStatus.INERROR
        if self.in_transaction:
            return TransactionStatus.INTRANS
        return TransactionStatus.IDLE

    @contextmanager
    def outside_transaction(self, what: str) -> Iterator[None]:
        """Change something of the connection, which is refused inside a transaction."""
        with self.guarded():
            if self.in_transaction:
                raise errors.ProgrammingError(
                    f"{what} cannot change inside a transaction", sqlstate="25001"
                )
            yield

    def set_autocommit(self, value: bool) -> None:
        """Change it, outside of transactions."""
        with self.outside_transaction("autocommit"):
            # Its settings are as if they had been committed each.
            self.sessions.settings.end(committed=True)
            self.autocommit = value

    def version(self) -> int:
        """The version that the open transaction reads; else the newest one."""
        with self.guarded():
            if self.transaction is None and self.controls.is_explicit:
                self.begin()
            transaction = self.transaction
            if transaction is not None:
                past = transaction.past
                return transaction.sts if past is None else past.version
            self.database.make_ready()
            self.database.timeline.catch_up()
            return self.database.timeline.position().sts

    def newest_catalog(self) -> ManagedCatalog:
        """The definitions that the open transaction sees, or the next one."""
        with self.guarded():
            if self.database.timeline.is_shared and not self.in_transaction:
                # Another process may have changed some meanwhile.
                self.begin()
            migration = self.migration
            catalog = self.database.catalog if migration is None else migration.catalog
            self.drop_statement()
            return catalog

    # Statements

    def run(self, query: str, parameters: Any) -> Outcome:
        """Execute one statement for a cursor."""
        if not self.deadlines.limits:
            return self._run(query, parameters)
        with self.lock, self.deadlines.statement():
            return self._run(query, parameters)

    def _run(self, query: str, parameters: Any) -> Outcome:
        with self.lock:
            if not self._finalizer.alive or self._process != process.current():
                self.check_usable()
            # (This is what a statement costs that memory answers.)
            commits = self.commits_each
            try:
                return self._run_once(query, parameters, blindly=commits)
            except errors.SerializationError:
                if not commits:
                    raise
            return self._run_until_won(partial(self._run_once, query, parameters))

    def _run_once(
        self, query: str, parameters: Any, *, blindly: bool = False
    ) -> Outcome:
        try:
            if blindly and self.database.timeline.can_skip_snapshot:
                outcome = self._run_blindly(query, parameters)
                if outcome is not None:
                    return outcome
            try:
                prepared = self.planner.plan(query, parameters is not None)
            except UnknownTable as error:
                if not self._reads_variables:
                    raise
                return self._run_with_variables(query, parameters, error)
            bound = prepared.bind(parameters)
            statement = self.planner.statement(prepared)
            if statement is None:
                return self._run_other(prepared.plan, bound)
            return self.run_in_transaction(statement, bound, statement.run)
        except Exception as error:
            self._expected(error, query)
            raise

    def _expected(self, error: Exception, query: str) -> None:
        """Raise an error of PEP 249 in place of another one: an unforeseen is internal."""
        # When the interpreter ends, a module that is imported then raises RuntimeError.
        process.park_if_exiting()
        if isinstance(error, EngineError | RewriteError):
            self.drop_statement()
            # An error there must not end an engine transaction that is held.
            raise translated_by(self.session.aside, error) from error
        fault = unexpected(error, query)
        if fault is not None:
            self.drop_statement()
            raise fault from error

    def _run_blindly(self, query: str, parameters: Any) -> Outcome | None:
        """Run a statement that need not ask for a snapshot; None: it has to."""
        if (
            self.controls.level is not IsolationLevel.SNAPSHOT
            or not self._options.merges
            or self.controls.as_of is not None
            or self.transaction is not None
        ):
            return None
        version = self.database.catalog.version
        prepared = self.planner.plan_blindly(query, parameters is not None)
        statement = prepared and self.planner.statement(prepared)
        if not prepared or not statement or not statement.may_begin_blindly:
            return None
        bound = prepared.bind(parameters)
        self.begin(planned_at=version)
        run = partial(run_blindly, statement)
        return self.run_in_transaction(statement, bound, run)

    def _run_other(self, plan: object, bound: Sequence[Any]) -> Outcome:
        """Run a statement about transactions or the session."""
        if isinstance(plan, TransactionControl):
            self.controls.run(plan, bound)
            return Outcome()
        assert isinstance(plan, SessionPlan)
        if self.transaction is not None:
            self.transaction.expect_sound()
        return self.sessions.run(plan, bound)

    def run_apart(self, query: str, parameters: Any) -> Outcome:
        """Execute one query, whose rows wait in the engine."""
        with self.guarded(query):
            prepared = self.planner.plan(query, parameters is not None)
            statement = self.planner.statement(prepared)
            if statement is None or statement.writes or statement.defines:
                raise errors.ProgrammingError("a named cursor takes queries only")
            bound = prepared.bind(parameters)

            def run(transaction: DDLTransaction, values: Sequence[Any]) -> Outcome:
                if self.sessions.are_usual and runs_apart(statement, transaction):
                    return self._apart.run(statement, transaction, values)
                return statement.run(transaction, values)

            return self.run_in_transaction(statement, bound, run)

    def _run_with_variables(
        self, query: str, parameters: Any, error: UnknownTable
    ) -> Outcome:
        has_parameters = parameters is not None
        plan = partial(self.planner.rewriter.plan_beside, query, has_parameters)
        prepared, data = plan_with_variables(plan, error)
        bound = prepared.bind(parameters)
        statement = self.planner.statement(prepared)
        if statement is None:
            return self._run_other(prepared.plan, bound)
        run = partial(run_with_variables, statement, data)
        return self.run_in_transaction(statement, bound, run)

    def _run_until_won(self, run: Callable[[], Outcome]) -> Outcome:
        """Run a statement that is a transaction of its own, and lost, until it wins.

        The application has seen nothing of the attempts that lost (P6).
        """
        latest = time.monotonic() + _TRIES_FOR
        while True:
            try:
                return run()
            except errors.SerializationError:
                if time.monotonic() > (self.session.expires or latest):
                    raise
                # The turn was waited for; but the conflict may be another process's.
                time.sleep(_PAUSE)

    def run_many(
        self, query: str, parameter_rows: Iterable[Any], *, returning: bool
    ) -> Outcome:
        """Run a statement once for every row of parameters, as one statement."""
        rows = list(parameter_rows)
        run = partial(self._run_many_once, query, rows, returning=returning)
        with self.lock:
            commits = self.commits_each
            try:
                return run()
            except errors.SerializationError:
                if not commits:
                    raise
            return self._run_until_won(run)

    def _run_many_once(
        self, query: str, parameter_rows: Sequence[Any], *, returning: bool
    ) -> Outcome:
        with self.guarded(query):
            prepared = self.planner.plan(query, True)
            statement = self.planner.statement(prepared)
            if statement is None:
                raise errors.ProgrammingError(
                    "executemany() takes INSERT, UPDATE or DELETE"
                )
            bound = [prepared.bind(parameters) for parameters in parameter_rows]
            if not bound:
                self.drop_statement()
                return Outcome(0)
            run = partial(statement.run_many, returning=returning)
            return self.run_in_transaction(statement, bound, run)

    @contextmanager
    def guarded(self, query: str = "") -> Iterator[None]:
        """One statement's work: no other runs, and errors are those of PEP 249."""
        with self.lock:
            self.check_usable()
            try:
                yield
            except errors.Error:
                self.drop_statement()
                raise
            except Exception as error:
                self._expected(error, query)
                raise

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Work beside the calls: another thread may close the connection meanwhile."""
        self.check_usable()
        try:
            with translating():
                yield
        except Exception:
            self.check_usable()
            raise

    def drop_statement(self) -> None:
        """End a transaction that began for a statement that failed."""
        if self.commits_each and self.transaction is not None:
            self.rollback()

    def run_in_transaction(
        self,
        statement: Statement,
        bound: Sequence[Any],
        run: Callable[[DDLTransaction, Sequence[Any]], Outcome],
    ) -> Outcome:
        """Run a statement in the open transaction, or in one of its own."""
        transaction = self.transaction
        if transaction is None:
            transaction = self.begin()
        elif transaction.is_long:
            undisturbed(partial(self.database.long_snapshots.hand_over, transaction))
        held = transaction.held
        if transaction.has_failed or held is not None:
            transaction.expect_sound()
        transaction.lock_timeout = self.lock_timeout
        commits = self.commits_each
        migrates = transaction.migration is not None or (
            statement.defines and (self._defines_within or statement.is_held)
        )
        if held is not None and (migrates or statement.defines):
            expect_writable(transaction)
            if transaction.has_one_snapshot:
                raise errors.SerializationError(
                    "the snapshot of this transaction was handed to the engine, and DDL "
                    "needs one of now, in which its statements would have read other rows: "
                    "run it in a transaction that begins with it"
                )
            transaction.let_go()
        if migrates:
            migration = transaction.migration or self._migrate(transaction)
            run = partial(migration.run, run, defines=statement.defines)
        else:
            run = partial(run_fenced_if_needed, run)
            if not (transaction.has_one_snapshot or statement.writes):
                run = partial(look_again, run)
        if migrates or statement.defines:
            # Ctrl-C stops it as cancel() does: it fails, or is over.
            run = partial(_whole, self.cancel, run)
        observer = _observer.observer
        if observer is not None:
            run = observer.observed(self._system, statement.kind, run)
        shared = self.database.engine.shared
        try:
            if shared is not None:
                shared.expect_privileges(statement.needs)
            outcome = run(transaction, bound)
            self.database.timeline.check([table for table, _ in statement.needs])
        except BaseException as error:
            if commits:
                self.rollback()
            if isinstance(error, EngineError):
                catalog = self.database.catalog if migrates else None
                changed = redefined(error, self.database.engine, statement, catalog)
                if changed is not None:
                    raise changed from error
            raise
        if commits:
            # A commit that has begun is not stopped.
            self.session.expires = None
            self.commit()
        self.database.committer.let_work()
        return outcome

    @property
    def _defines_within(self) -> bool:
        """Whether DDL is a part of the transaction."""
        if self.controls.is_explicit:
            return True
        return self._options.transactional_ddl and not self.autocommit

    def _migrate(self, transaction: DDLTransaction) -> Migration:
        """Begin the DDL of a transaction."""
        migration = self.migration = Migration(self.database.changes, transaction)
        undisturbed(migration.open)
        self.planner.plan_by(migration.catalog)
        return migration

    def leave_migration(self) -> None:
        """Note that the transaction has no DDL, or no longer."""
        if self.migration is not None:
            undisturbed(self.migration.close)
            self.migration = None
            self.planner.plan_by(self.database.catalog)

    # Transactions

    def begin(self, *, planned_at: int | None = None) -> DDLTransaction:
        """Begin a transaction, blindly if its statement was planned at a known version."""
        session, database = self.live_session(), self.database
        database.make_ready()
        transaction = DDLTransaction(
            database.engine,
            database.catalog,
            database.timeline,
            database.ddl,
            database.alterations,
            self.temporaries,
            session,
            self.controls.level,
            locks=database.locks,
            certifier=database.certifier,
            protocol=database.protocol,
            uncommitted=database.uncommitted,
            read_only=self.controls.is_read_only,
            merges=self._options.merges,
            contender=self.contender,
            planned_at=planned_at,
            begun=self.controls.begun,
        )
        transaction.lock = self.lock
        transaction.is_single = self.commits_each
        transaction.holder = self.number, threading.current_thread().name
        self.transaction = transaction
        database.transactions[transaction.txid] = transaction
        if self.contender.begin():
            database.commits.note_retry()
        if planned_at is None:
            as_of = self.controls.as_of
            try:
                reacquire_turn(transaction)
                if self.controls.stored is not None:
                    with translating():
                        transaction.hold(self.controls.stored)
                if as_of is not None:
                    with translating():
                        transaction.past = point_at(transaction, as_of)
            except BaseException:
                self.end()
                raise
        return transaction

    def live_session(self) -> Session:
        """The session, or another one with the same settings if it is of no use."""
        settings = self.sessions.settings
        if self.session.is_lost or settings.is_unsure:
            with suppress(EngineError):
                self.session.close()
            if self.temporaries:
                self.temporaries.lose("its connection to the engine was lost")
                self.temporaries.forget_engine()
            self.session = self.database.engine.session()
            self.notices.follow(self.session)
            settings.is_unsure = True
            self.sessions.give_all()
        return self.session

    def commit(self) -> None:
        """Commit the open transaction, if there is one."""
        observer, transaction = _observer.observer, self.transaction
        if transaction is None:
            self.end(committed=True)
        elif observer is None or not (transaction.has_writes or transaction.migration):
            self._commit_or_lose(transaction)
        else:
            with observer.commit(self._system, transaction.txid):
                self._commit_or_lose(transaction)

    @property
    def _system(self) -> str:
        return self.database.engine.capabilities.dialect

    def _commit_or_lose(self, transaction: DDLTransaction) -> None:
        committed = has_lost = False
        own = self.temporaries.withdraw(transaction) if self.temporaries else {}
        try:
            if transaction.has_failed or transaction.has_writes or own:
                transaction.expect_sound()
            with translating():
                transaction.let_go()
            if transaction.has_writes or transaction.migration is not None:
                self.last_cts = commit_writes(
                    self.database, self.contender, transaction, self.lock_timeout
                )
            elif transaction.is_validated:
                self.database.protocol.ended(transaction)
            committed = True
            transaction.notifications.send(transaction.session)
            if self.temporaries:
                self.temporaries.keep(transaction, own)
        except RuntimeError:
            process.park_if_exiting()
            raise
        except errors.Error as error:
            process.park_if_exiting()
            if isinstance(error, errors.SerializationError):
                has_lost = transaction.takes_turns
                note_loss(
                    self.database, self.contender, transaction, error, self.number
                )
            raise
        finally:
            transaction.writes.update(own)
            self.end(committed=committed, has_lost=has_lost)
            if has_lost:
                self.contender.wait()

    def rollback(self) -> None:
        """Undo the open transaction, if there is one."""
        self.end()

    def leave_turn(self) -> None:
        """Hold others up no more for a transaction that is not tried again (P6)."""
        with self.lock:
            self.contender.end()

    def end(self, *, committed: bool = False, has_lost: bool = False) -> None:
        """Leave the transaction, which was committed or not.

        If a signal handler's exception comes in between, all of it is done first: a
        snapshot or a lock that is left would hold others up until the process ends.
        """
        leave = partial(self._leave, committed=committed, has_lost=has_lost)
        try:
            leave()
        except BaseException:
            try:
                undisturbed(leave)
            finally:
                self.transaction = None
            raise

    def _leave(self, *, committed: bool, has_lost: bool) -> None:
        """Leave the transaction; idempotent, wherever an earlier attempt has ended."""
        transaction = self.transaction
        if transaction is not None:
            # First: what comes to its turn next waits for no commit that is over.
            self.database.locks.leave(transaction.txid)
        self.controls.reset()
        self.leave_migration()
        if transaction is not None:
            if not has_lost:
                self.contender.end(transaction)
            self.database.transactions.pop(transaction.txid, None)
            transaction.end()
            self.transaction = None
        if self.temporaries:
            self.temporaries.end(self.session, committed=committed)
        # The transaction's outcome stands, even if a result cannot be closed.
        with suppress(EngineError):
            self.portals.end(committed=committed)
            self.session.end_abandoned()
        if self.sessions.settings.has_changes:
            self.sessions.settings.end(committed=committed)

    def fail(self, txid: int) -> None:
        """Refuse all but a rollback to a transaction, if it is still open."""
        with self.lock:
            transaction = self.transaction
            if transaction is not None and transaction.txid == txid:
                transaction.has_failed = True

    def cancel(self) -> None:
        """Make the statement fail that runs; from any thread."""
        with self.beside():
            self._stop()

    def _stop(self) -> None:
        self.cancel_waits()
        self._apart.interrupt()
        self.session.interrupt()

    def cancel_waits(self) -> None:
        """Make the open transaction wait for no row lock, nor read a fold, any more."""
        txid = self.txid
        if txid is not None:
            self.database.locks.cancel(txid)
            self.database.uncommitted.interrupt(txid)

    # The end

    def seize(self, patience: float) -> None:
        """Let the call under way end, and no other begin."""
        if self._take_lock(patience) and self.migration is not None:
            # The last checkpoint would wait for its end.
            with suppress(EngineError):
                self.migration.close()

    def _take_lock(self, patience: float) -> bool:
        """Take the lock for good; False if another thread's call does not end.

        After ``patience`` (in seconds) it is stopped, and after as long again left alone.
        """
        if self.lock.acquire(timeout=patience):
            return True
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            # Between two of its statements there is none to stop.
            with suppress(EngineError):
                self._stop()
            if self.lock.acquire(timeout=_AGAIN):
                return True
        return False

    def terminate(self, name: str) -> None:
        """Close the connection, whose time by this setting is over."""
        self._overdue = name
        self.close()

    def close(self) -> None:
        """Roll back, and give everything back; at once, or when a call ends that is stuck."""
        if self._finalizer.detach() is None or self.is_inherited:
            return
        is_mine = False
        try:
            is_mine = self._take_lock(_CLOSING)
            if is_mine:
                self._give_back()
        finally:
            if is_mine:
                self.lock.release()
            else:
                # Also if a signal handler ends the wait.
                threading.Thread(
                    target=self._give_back, daemon=True, name="tique-closing"
                ).start()

    def _give_back(self) -> None:
        with self.lock:
            try:
                # (The end of its session undoes it.)
                with suppress(EngineError, errors.Error), translating("closing"):
                    self.end()
                    self.contender.end()
                self.temporaries.forget()
                self._apart.close()
                with suppress(EngineError):
                    self.session.close()
            finally:
                with translating():
                    release(self.database)


def _whole(
    stop: Callable[[], None],
    run: Callable[[DDLTransaction, Sequence[Any]], Outcome],
    transaction: DDLTransaction,
    bound: Sequence[Any],
) -> Outcome:
    """Run a statement that no signal handler cuts short."""
    return undisturbed(lambda: run(transaction, bound), stop=stop)
