"""Connections."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, overload

from typing_extensions import TypeVar

from tique import _observer, errors
from tique._apart import Apart, runs_apart
from tique._bulk import BulkStatements
from tique._connection_info import ConnectionInfo, Pipeline, TransactionStatus
from tique._control import Controls
from tique._cursor import Cursor
from tique._foreign_keys import ForeignKey, foreign_keys
from tique._functions import trust_function
from tique._log import fields
from tique._notices import Notices
from tique._planning import Planner
from tique._portals import Portals
from tique._server_cursor import ServerCursor
from tique._session_statements import SessionStatements
from tique._translation import judged, translated, translating
from tique._variables import plan_with_variables, run_with_variables
from tique.commit.behind_locks import commit_behind_locks
from tique.commit.locks import LOCK_TIMEOUT
from tique.commit.turns import Contender
from tique.database import process
from tique.database.database import Database, release
from tique.database.status import Status, status
from tique.query.foreign_keys import check_deferred
from tique.query.lockable import expect_kept_locked
from tique.query.redefinition import redefined
from tique.query.statements import Outcome, Statement
from tique.query.temporary import Temporaries
from tique.query.transaction import IsolationLevel, Transaction
from tique_backends.errors import EngineError
from tique_rewriter.errors import RewriteError, UnknownTable
from tique_rewriter.plan import DEFAULT_ISOLATION, TransactionControl
from tique_rewriter.session import SessionPlan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    import pyarrow

    from tique.query.migration import Migration
    from tique.rows import RowFactory
    from tique_backends.records import Notice, ResultColumn, Row
    from tique_backends.session import Session

logger = logging.getLogger("tique.commit")

_TRIES_FOR = 10.0
"""For so many seconds a statement in autocommit is run again after it lost."""
_PAUSE = 0.0005

RowT = TypeVar("RowT", default=Any)
OtherT = TypeVar("OtherT")


class _Holder:
    """The parts of a connection to clean up if the application does not close it."""

    def __init__(
        self, database: Database, session: Session, temporaries: Temporaries
    ) -> None:
        self.database = database
        self.temporaries = temporaries
        self.session = session
        self.transaction: Transaction | None = None
        self.migration: Migration | None = None

    def abandon(self) -> None:
        """End the transaction and leave the rest to the checkpointer's thread.

        Runs as a finalizer: at any point of any thread, so it takes no lock.
        """
        if self.transaction is not None:
            self.database.sequencer.end(self.transaction.txid)
            self.database.transactions.pop(self.transaction.txid, None)
            self.database.locks.abandon(self.transaction.txid)
        self.temporaries.forget()
        self.database.abandon(self.session, self.migration)


class Connection(Generic[RowT]):
    """A connection to a database under tique's management (PEP 249).

    Threads may share the module and connections: calls on one connection wait for
    each other. A transaction begins with the first statement after a commit or
    rollback and sees the commits up to then.

    Use :func:`tique.connect` to make one.
    """

    Warning: ClassVar = errors.Warning
    Error: ClassVar = errors.Error
    InterfaceError: ClassVar = errors.InterfaceError
    DatabaseError: ClassVar = errors.DatabaseError
    DataError: ClassVar = errors.DataError
    OperationalError: ClassVar = errors.OperationalError
    IntegrityError: ClassVar = errors.IntegrityError
    InternalError: ClassVar = errors.InternalError
    ProgrammingError: ClassVar = errors.ProgrammingError
    NotSupportedError: ClassVar = errors.NotSupportedError

    def __init__(
        self,
        database: Database,
        *,
        isolation_level: IsolationLevel,
        autocommit: bool,
        paramstyle: str,
        row_factory: RowFactory[RowT],
        merges: bool = True,
        lock_timeout: float | None = LOCK_TIMEOUT,
        transactional_ddl: bool = False,
        python_variables: bool = True,
    ) -> None:
        capabilities = database.engine.capabilities
        self._reads_variables = python_variables and capabilities.reads_variables
        self.lock_timeout = lock_timeout
        """Seconds that a wait for a row lock may take; None: as long as it takes."""
        self.row_factory = row_factory
        self._merges = merges
        self._transactional_ddl = transactional_ddl
        self._database = database
        self._number = database.number()
        self._isolation = isolation_level
        self._autocommit = autocommit
        self._lock = threading.RLock()
        self._process = process.current()
        self._temporaries = Temporaries(database.engine, database.catalog, paramstyle)
        self._planner = Planner(self, database, paramstyle, self._temporaries)
        with translating():
            self._session = database.engine.session()
        self._contender = Contender(database.turns)
        self._controls = Controls(self)
        self._portals = Portals(self)
        self._apart = Apart(database)
        self._sessions = SessionStatements(self)
        self._bulk = BulkStatements(self)
        self._notices = Notices()
        self._holder = _Holder(database, self._session, self._temporaries)
        self._finalizer = weakref.finalize(self, self._holder.abandon)
        self._finalizer.atexit = False
        database.users.add(weakref.ref(self, database.users.discard))

    # State

    @property
    def closed(self) -> bool:
        """Whether the connection was closed."""
        return not self._finalizer.alive

    @property
    def broken(self) -> bool:
        """Whether the process was given up by the others: connect again."""
        if self.closed:
            return False
        try:
            self._database.timeline.check()
        except errors.Error:
            return True
        return False

    @property
    def autocommit(self) -> bool:
        """Whether every statement is a transaction of its own."""
        return self._autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        with self._lock:
            self._check_usable()
            if self.in_transaction:
                raise errors.ProgrammingError(
                    "autocommit cannot change inside a transaction", sqlstate="25001"
                )
            # Its settings are as if they had been committed each.
            self._sessions.settings.end(committed=True)
            self._autocommit = bool(value)

    def set_autocommit(self, value: bool) -> None:
        """Change :attr:`autocommit`, as in psycopg."""
        self.autocommit = value

    def set_isolation_level(self, value: str | IsolationLevel) -> None:
        """Change :attr:`isolation_level`, as in psycopg."""
        self.isolation_level = value

    @property
    def isolation_level(self) -> str:
        """The level of the transactions to come."""
        return self._isolation.value

    @isolation_level.setter
    def isolation_level(self, value: str | IsolationLevel) -> None:
        with self._lock:
            self._check_usable()
            if self.in_transaction:
                raise errors.ProgrammingError(
                    "the isolation level cannot change inside a transaction",
                    sqlstate="25001",
                )
            self._isolation = IsolationLevel.parse(value)
            self._sessions.settings.note(DEFAULT_ISOLATION, self._isolation.value)

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._holder.transaction is not None or self._controls.is_explicit

    @property
    def txid(self) -> int | None:
        """The open transaction's id, for :meth:`outcome`."""
        transaction = self._holder.transaction
        return None if transaction is None else transaction.txid

    @property
    def info(self) -> ConnectionInfo:
        """Figures for operators and benchmarks."""
        database = self._database
        return ConnectionInfo(
            database.sequencer.kind,
            database.certifier.name,
            database.engine.statistics.statements,
            database.engine.statistics.seconds,
            database.catalog.caches(),
            self._transaction_status(),
            self._number,
        )

    def _transaction_status(self) -> TransactionStatus:
        if self.closed:
            return TransactionStatus.UNKNOWN
        transaction = self._holder.transaction
        migration = self._holder.migration
        if transaction is not None and (
            transaction.has_failed or (migration is not None and migration.has_failed)
        ):
            return TransactionStatus.INERROR
        if self.in_transaction:
            return TransactionStatus.INTRANS
        return TransactionStatus.IDLE

    def status(self) -> Status:
        """The current state of the whole database."""
        self._check_usable()
        return status(self._database)

    def outcome(self, txid: int) -> str:
        """The outcome of a transaction of any connection, or of a crashed process.

        Returns
        -------
        str
            ``"committed"``, ``"active"``, ``"aborted"``, or ``"unknown"`` if its
            record may have been pruned or it was never begun.
        """
        self._check_usable()
        with translating():
            return self._database.outcome(txid)

    def foreign_keys(self) -> list[ForeignKey]:
        """All FOREIGN KEYs that the open transaction sees, if there is one, or the next.

        tique keeps them, so the engine's catalog does not show them.
        """
        with self._statement():
            if self._database.timeline.is_shared and not self.in_transaction:
                # Another process may have made some meanwhile.
                self._begin()
            migration = self._holder.migration
            catalog = self._database.catalog if migration is None else migration.catalog
            found = foreign_keys(catalog)
            self._drop_statement()
            return found

    # Statements

    @overload
    def cursor(
        self,
        name: str = "",
        *,
        row_factory: None = None,
        binary: bool = False,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> Cursor[RowT]: ...

    @overload
    def cursor(
        self,
        name: str = "",
        *,
        row_factory: RowFactory[OtherT],
        binary: bool = False,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> Cursor[OtherT]: ...

    def cursor(
        self,
        name: str = "",
        *,
        row_factory: RowFactory[Any] | None = None,
        binary: bool = False,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> Cursor[Any]:
        """Return a new cursor.

        Parameters
        ----------
        name
            With a name the cursor is for one large query, whose rows wait in the engine
            (:class:`~tique._server_cursor.ServerCursor`).
        row_factory
            Makes its rows; by default the connection's.
        binary, withhold
            psycopg's: they change nothing here. A named cursor outlives its transaction.
        scrollable
            Whether a named cursor goes back, which is not supported.
        """
        self._check_usable()
        factory = row_factory or self.row_factory
        if not name:
            return Cursor(self, factory)
        if scrollable:
            raise errors.NotSupportedError(
                "scrollable=True is not supported: a cursor goes forward only; on "
                "PostgreSQL there is DECLARE … SCROLL CURSOR"
            )
        return ServerCursor(self, factory, name)

    def execute(
        self,
        query: str,
        parameters: Any = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> Cursor[RowT]:
        """Execute on a new cursor and return the cursor."""
        return self.cursor().execute(query, parameters)

    def _run(self, query: str, parameters: Any) -> Outcome:
        """Execute one statement for a cursor."""
        with self._lock:
            if not self._finalizer.alive or self._process != process.current():
                self._check_usable()
            commits = self._commits_each
            try:
                return self._run_once(query, parameters)
            except errors.SerializationError:
                if not commits:
                    raise
            except RuntimeError:
                # When the interpreter ends, a module that is imported then raises it.
                process.park_if_exiting()
                raise
            return self._run_again(lambda: self._run_once(query, parameters))

    def _run_once(self, query: str, parameters: Any) -> Outcome:
        try:
            try:
                prepared = self._planner.plan(query, parameters is not None)
            except UnknownTable as error:
                if not self._reads_variables:
                    raise
                return self._run_with_variables(query, parameters, error)
            bound = prepared.bind(parameters)
            statement = self._planner.statement(prepared)
            if statement is None:
                return self._run_other(prepared.plan, bound)
            return self._in_transaction(statement, bound, statement.run)
        except (EngineError, RewriteError) as error:
            process.park_if_exiting()
            self._drop_statement()
            raise self._translated(error) from error

    def _run_other(self, plan: object, bound: Sequence[Any]) -> Outcome:
        """Run a statement about transactions or the session."""
        if isinstance(plan, TransactionControl):
            self._controls.run(plan)
            return Outcome()
        assert isinstance(plan, SessionPlan)
        if self._holder.transaction is not None:
            self._holder.transaction.expect_sound()
        return self._sessions.run(plan, bound)

    def _run_apart(self, query: str, parameters: Any) -> Outcome:
        """Execute one query, whose rows wait in the engine."""
        with self._statement():
            prepared = self._planner.plan(query, parameters is not None)
            statement = self._planner.statement(prepared)
            if statement is None or statement.writes or statement.defines:
                raise errors.ProgrammingError("a named cursor takes queries only")
            bound = prepared.bind(parameters)
            settings = self._sessions.settings

            def run(transaction: Transaction, values: Sequence[Any]) -> Outcome:
                if not settings.names() and runs_apart(statement, transaction):
                    return self._apart.run(statement, transaction, values)
                return statement.run(transaction, values)

            return self._in_transaction(statement, bound, run)

    def _run_with_variables(
        self, query: str, parameters: Any, error: UnknownTable
    ) -> Outcome:
        has_parameters = parameters is not None
        plan = partial(self._planner.rewriter.plan_beside, query, has_parameters)
        prepared, data = plan_with_variables(plan, error)
        bound = prepared.bind(parameters)
        statement = self._planner.statement(prepared)
        if statement is None:
            return self._run_other(prepared.plan, bound)
        run = partial(run_with_variables, statement, data)
        return self._in_transaction(statement, bound, run)

    def _run_again(self, run: Callable[[], Outcome]) -> Outcome:
        """Run a statement that is a transaction of its own, and lost, until it wins.

        The application has seen nothing of the attempts that lost (P6).
        """
        latest = time.monotonic() + _TRIES_FOR
        while True:
            try:
                return run()
            except errors.SerializationError:
                if time.monotonic() > latest:
                    raise
                # The turn was waited for; but the conflict may be another process's.
                time.sleep(_PAUSE)

    @property
    def _commits_each(self) -> bool:
        """Whether every statement is a transaction of its own."""
        return self._autocommit and not self._controls.is_explicit

    def _arrow(
        self, rows: Sequence[Row], columns: Sequence[ResultColumn]
    ) -> pyarrow.Table:
        return self._database.engine.arrow(rows, columns)

    def _run_many(
        self, query: str, parameter_rows: Iterable[Any], *, returning: bool
    ) -> Outcome:
        rows = list(parameter_rows)
        with self._lock:
            commits = self._commits_each
            try:
                return self._run_many_once(query, rows, returning=returning)
            except errors.SerializationError:
                if not commits:
                    raise
            return self._run_again(
                lambda: self._run_many_once(query, rows, returning=returning)
            )

    def _run_many_once(
        self, query: str, parameter_rows: Sequence[Any], *, returning: bool
    ) -> Outcome:
        with self._statement():
            prepared = self._planner.plan(query, True)
            statement = self._planner.statement(prepared)
            if statement is None:
                raise errors.ProgrammingError(
                    "executemany() takes INSERT, UPDATE or DELETE"
                )
            bound = [prepared.bind(parameters) for parameters in parameter_rows]
            if not bound:
                self._drop_statement()
                return Outcome(0)
            run = partial(statement.run_many, returning=returning)
            return self._in_transaction(statement, bound, run)

    @contextmanager
    def _statement(self) -> Iterator[None]:
        """One statement's work: no other runs, and errors are those of PEP 249."""
        with self._lock:
            self._check_usable()
            try:
                yield
            except errors.Error:
                self._drop_statement()
                raise
            except (EngineError, RewriteError) as error:
                process.park_if_exiting()
                self._drop_statement()
                raise self._translated(error) from error

    def _translated(self, error: EngineError | RewriteError) -> errors.Error:
        """The error to raise; the engine says whether an unknown construct is SQL."""
        if isinstance(error, RewriteError) and error.text is not None:
            try:
                # An error there must not end an engine transaction that is held.
                session = self._session.aside or self._session
                is_sql = session.understands(error.text)
            except EngineError as problem:
                return translated(problem)
            if is_sql is not None:
                error = judged(error, is_sql=is_sql)
        return translated(error)

    def _drop_statement(self) -> None:
        """End a transaction that began for a statement that failed."""
        if self._commits_each and self._holder.transaction is not None:
            self._rollback()

    def _in_transaction(
        self,
        statement: Statement,
        bound: Sequence[Any],
        run: Callable[[Transaction, Sequence[Any]], Outcome],
    ) -> Outcome:
        transaction = self._holder.transaction
        if transaction is None:
            transaction = self._begin()
        elif transaction.has_failed:
            transaction.expect_sound()
        transaction.lock_timeout = self.lock_timeout
        commits = self._commits_each
        migrates = transaction.migration is not None or (
            statement.defines and self._defines_within
        )
        if migrates:
            migration = transaction.migration or self._migrate(transaction)
            run = partial(migration.run, run, defines=statement.defines)
        observer = _observer.observer
        if observer is not None:
            kind = type(statement).__name__.removesuffix("Statement")
            run = observer.observed(self._system, kind, run)
        shared = self._database.engine.shared
        try:
            if shared is not None:
                shared.expect_privileges(statement.needs)
            outcome = run(transaction, bound)
            self._database.timeline.check()
        except BaseException as error:
            if commits:
                self._rollback()
            if isinstance(error, EngineError):
                tables = {table for table, _ in statement.needs}
                if migrates:
                    # Its own definitions are not there for others.
                    lasting = self._database.catalog.by_id()
                    tables = {table for table in tables if table.id in lasting}
                changed = redefined(error, self._database.engine, tables)
                if changed is not None:
                    raise changed from error
            raise
        if commits:
            self._commit()
        self._database.committer.let_work()
        return outcome

    @property
    def _defines_within(self) -> bool:
        """Whether DDL is a part of the transaction."""
        if self._controls.is_explicit:
            return True
        return self._transactional_ddl and not self._autocommit

    def _migrate(self, transaction: Transaction) -> Migration:
        """Begin the DDL of a transaction."""
        migration = self._holder.migration = self._database.migration(transaction)
        migration.open()
        self._planner.plan_by(migration.catalog)
        return migration

    def _leave_migration(self) -> None:
        """Note that the transaction has no DDL, or no longer."""
        if self._holder.migration is not None:
            self._holder.migration.close()
            self._holder.migration = None
            self._planner.plan_by(self._database.catalog)

    # Transactions

    def _begin(self) -> Transaction:
        session = self._live_session()
        transaction = self._database.begin(
            session,
            self._controls.isolation or self._isolation,
            read_only=self._controls.is_read_only(default=self._sessions.is_read_only),
            merges=self._merges,
            contender=self._contender,
            temporaries=self._temporaries,
        )
        transaction.is_single = self._commits_each
        transaction.holder = self._number, threading.current_thread().name
        self._holder.transaction = transaction
        self._database.transactions[transaction.txid] = transaction
        if self._contender.begin():
            self._database.commits.note_retry()
        return transaction

    def _live_session(self) -> Session:
        """The session, or another one with the same settings if it is of no use."""
        settings = self._sessions.settings
        if self._session.is_lost or settings.is_unsure:
            with suppress(EngineError):
                self._session.close()
            if self._temporaries:
                self._temporaries.lose("its connection to the engine was lost")
                self._temporaries.forget_engine()
            self._session = self._holder.session = self._database.engine.session()
            self._notices.follow(self._session)
            settings.is_unsure = True
            settings.give_all()
        return self._session

    def commit(self) -> None:
        """Commit: on return it is durable and every new transaction sees it.

        Raises
        ------
        SerializationError
            If another transaction committed one of the keys first; the
            transaction is rolled back and can be run again.
        OutcomeUnknown
            If the outcome cannot be known; ask :meth:`outcome` later.
        """
        with self._lock:
            self._check_usable()
            self._commit()

    def _commit(self) -> None:
        observer, transaction = _observer.observer, self._holder.transaction
        if (
            observer is None
            or transaction is None
            or not (transaction.has_writes or transaction.migration)
        ):
            self._commit_or_lose()
            return
        with observer.commit(self._system, transaction.txid):
            self._commit_or_lose()

    @property
    def _system(self) -> str:
        return self._database.engine.capabilities.dialect

    def _commit_or_lose(self) -> None:
        transaction, locks = self._holder.transaction, self._database.locks
        committed = has_lost = False
        own = {}
        if self._temporaries and transaction is not None:
            own = self._temporaries.withdraw(transaction)
        try:
            if transaction is not None:
                transaction.expect_sound()
            if transaction is not None and (
                transaction.has_writes or transaction.migration is not None
            ):
                if transaction.deferred:
                    with translating():
                        check_deferred(transaction)
                if not locks.are_held or not locks.of(transaction.txid):
                    self._contender.give_way(transaction)
                elif transaction.locked:
                    with translating():
                        expect_kept_locked(transaction)
                committer, migration = self._database.committer, transaction.migration
                if migration is None:
                    commit_behind_locks(
                        committer, locks, transaction, self.lock_timeout
                    )
                else:
                    locks.enter(transaction, self.lock_timeout, whole=True)
                    with translating():
                        migration.commit()
            committed = True
            if transaction is not None:
                transaction.notifications.send(transaction.session)
            if self._temporaries and transaction is not None:
                self._temporaries.keep(transaction, own)
        except RuntimeError:
            process.park_if_exiting()
            raise
        except errors.Error as error:
            process.park_if_exiting()
            if isinstance(error, errors.SerializationError) and transaction is not None:
                has_lost = True
                self._database.commits.note_conflict()
                # No key: its values are the application's (P11).
                logger.debug(
                    "a commit met a conflict on %s",
                    error.table,
                    extra=fields(
                        "conflict",
                        table=error.table,
                        txid=transaction.txid,
                        winner=error.winner,
                        connection=self._number,
                    ),
                )
                self._contender.lose(transaction, error)
                if error.table is not None and error.key:
                    self._database.hot_keys.note_conflict(error.table, error.key)
            raise
        finally:
            if transaction is not None:
                transaction.writes.update(own)
                locks.leave(transaction.txid)
            self._end(committed=committed, has_lost=has_lost)
            if has_lost:
                self._contender.wait()

    def rollback(self) -> None:
        """Undo everything since the transaction began."""
        with self._lock:
            self._check_usable()
            self._rollback()

    def _rollback(self) -> None:
        self._end()

    def _end(self, *, committed: bool = False, has_lost: bool = False) -> None:
        transaction, self._holder.transaction = self._holder.transaction, None
        self._controls.reset()
        self._leave_migration()
        if transaction is not None and not has_lost:
            self._contender.end(transaction)
        if transaction is not None:
            self._database.transactions.pop(transaction.txid, None)
            transaction.end()
        if self._temporaries:
            self._temporaries.end(self._session, committed=committed)
        # The transaction's outcome stands, even if a result cannot be closed.
        with suppress(EngineError):
            self._portals.end(committed=committed)
            self._session.end_abandoned()
        if self._sessions.settings.has_changes:
            self._sessions.settings.end(committed=committed)

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """A block as that of psycopg's pipeline mode; it changes nothing here.

        What saves round trips (buffered writes, one statement for a commit) is always on.
        """
        self._check_usable()
        yield Pipeline()

    @contextmanager
    def transaction(
        self,
        savepoint_name: str | None = None,
        force_rollback: bool = False,
        *,
        priority: bool = False,
    ) -> Iterator[Self]:
        """A block that commits at its end or rolls back if it raises.

        Inside a transaction it is a savepoint, as in psycopg.

        Parameters
        ----------
        savepoint_name
            The savepoint's name, if it is one.
        force_rollback
            Whether it rolls back in any case.
        priority
            Whether the transaction is a long one. If it meets a conflict, the keys that
            it wrote are reserved for the connection's next attempt: other connections of
            this process that write one of them wait with their commits, for four times
            as long as the attempt took, at most 30 seconds (otherwise one).
        """
        if self.in_transaction:
            with self._controls.savepoint(savepoint_name, rolls_back=force_rollback):
                yield self
            return
        with self._lock:
            self._check_usable()
            self._controls.is_explicit = True
        self._contender.has_priority = priority
        try:
            yield self
        except BaseException:
            self.rollback()
            raise
        else:
            if force_rollback:
                self.rollback()
            else:
                self.commit()
        finally:
            self._contender.has_priority = False

    def checkpoint(self) -> int:
        """Fold all stable versions into storage now.

        Returns
        -------
        int
            The number of versions that left the cache tables.

        Raises
        ------
        OperationalError
            If another checkpoint, perhaps of another process, does not end for ten
            seconds (SQLSTATE 55P03).
        DatabaseError
            If a table cannot be folded, of the class of the engine's error; the
            others were folded, and the rows stay readable where they are.
        """
        self._check_usable()
        with translating():
            return self._database.checkpointer.checkpoint_now()

    def trust_function(self, name: str) -> None:
        """Vouch for a function of your own: it reads and writes no managed table.

        Statements may call functions of the application's whose body is one expression
        in SQL, and those of some extensions. Any other has to be vouched for, in every
        process: one that is STABLE or IMMUTABLE, returns one value, and whose text names
        no table and runs none. That holds until the function is changed.

        Parameters
        ----------
        name
            ``schema.name`` for all functions of that name, or ``schema.name(type, …)``
            for one, as PostgreSQL writes it.

        Raises
        ------
        ProgrammingError
            If there is none (SQLSTATE 42883).
        NotSupportedError
            If it cannot be trusted; the message says why.
        """
        with self._lock:
            self._check_usable()
            with translating():
                database = self._database
                trust_function(
                    database.engine, database.catalog, self._live_session(), name
                )

    def add_notice_handler(self, handler: Callable[[Notice], None]) -> None:
        """Have a function called with each notice of this connection's statements.

        It runs while the statement does: it cannot use the connection. An error in it
        is logged by psycopg. DuckDB and MonetDB have no notices.
        """
        with self._lock:
            self._check_usable()
            self._notices.add(handler, self._session)

    def remove_notice_handler(self, handler: Callable[[Notice], None]) -> None:
        """Call a function that :meth:`add_notice_handler` took no more.

        Raises
        ------
        ValueError
            If it was not added.
        """
        with self._lock:
            self._notices.remove(handler)

    def cancel(self) -> None:
        """Make the statement that runs on this connection fail; from any thread."""
        self._check_usable()
        txid = self.txid
        if txid is not None:
            self._database.locks.cancel(txid)
            self._database.uncommitted.interrupt(txid)
        self._apart.interrupt()
        self._session.interrupt()

    def cancel_safe(self, *, timeout: float | None = None) -> None:
        """Do what :meth:`cancel` does, which is safe; psycopg's name."""
        self.cancel()

    def _fail(self, txid: int) -> None:
        """Refuse all but a rollback to a transaction, if it is still open."""
        with self._lock:
            transaction = self._holder.transaction
            if transaction is not None and transaction.txid == txid:
                transaction.has_failed = True

    # The end

    def seize(self, patience: float) -> None:
        """Let the call under way end, and no other begin: the interpreter ends.

        After ``patience`` (in seconds) the engine is asked to stop it, and after as long
        again it is left alone.
        """
        if not self._lock.acquire(timeout=patience):
            txid = self.txid
            if txid is not None:
                self._database.uncommitted.interrupt(txid)
            with suppress(EngineError):
                self._session.interrupt()
            if not self._lock.acquire(timeout=patience):
                return
        if self._holder.migration is not None:
            # The last checkpoint would wait for its end.
            with suppress(EngineError):
                self._holder.migration.close()

    def close(self) -> None:
        """Roll back and close; further use is an error. Idempotent."""
        with self._lock:
            if self._finalizer.detach() is None:
                return
            try:
                if self._process == process.current():
                    with suppress(EngineError, errors.Error):
                        self._end()
                        self._contender.end()
                    self._temporaries.forget()
                    self._apart.close()
                    with suppress(EngineError):
                        self._session.close()
            finally:
                if self._process == process.current():
                    with translating():
                        release(self._database)

    def _check_usable(self) -> None:
        if process.is_exiting:
            process.park_if_exiting()
        if not self._finalizer.alive:
            raise errors.InterfaceError("the connection is closed", sqlstate="08003")
        if self._process != process.current():
            raise errors.InterfaceError(
                "the connection belongs to the process that this one was forked from",
                sqlstate="08003",
            )

    def __enter__(self) -> Self:
        """Enter a block at whose end the connection is closed."""
        self._check_usable()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Commit, or roll back if the block raised; then close."""
        if self.closed:
            return
        try:
            if kind is None:
                self.commit()
            else:
                self.rollback()
        finally:
            self.close()
