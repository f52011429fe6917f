"""Connections."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, overload

from typing_extensions import TypeVar

from tique import errors
from tique._translation import translating
from tique.connection.committing import await_replica, replicated
from tique.connection.connection_info import (
    ConnectionInfo,
    ForeignKey,
    Pipeline,
    foreign_keys,
)
from tique.connection.cursor import Cursor
from tique.connection.execution import Execution, checked_timeout
from tique.connection.feed import (
    Feed,
    read_batches,
    read_changes,
    read_differences,
    restore,
)
from tique.connection.routing.options import freshness_of
from tique.connection.server_cursor import ServerCursor
from tique.database.database import keep, release, users
from tique.database.status import Status, status
from tique.rows import tuple_row
from tique_rewriter.plans.past import as_point
from tique_rewriter.safety.functions import why_unsafe, why_untrusted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from types import TracebackType

    import pyarrow

    from tique.connection.execution import ExecutionOptions
    from tique.connection.feed import Read
    from tique.connection.query_text import Query
    from tique.database.database import Database
    from tique.history.feed import Change, Difference
    from tique.query.transaction.isolation import IsolationLevel
    from tique.rows import RowFactory
    from tique_backends.records import Notice

RowT = TypeVar("RowT", default=Any)
OtherT = TypeVar("OtherT")


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
        options: ExecutionOptions,
        row_factory: RowFactory[RowT],
    ) -> None:
        self.row_factory = row_factory
        self._database = database
        self._options = options
        kind: type[Execution] = Execution
        if options.routing is not None:
            # It is loaded if it is needed.
            from tique.connection.routing.routed import RoutedExecution as kind
        self._execution = kind(self, database, options)
        users.add(self)

    # State

    @property
    def closed(self) -> bool:
        """Whether the connection was closed."""
        return self._execution.closed

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
        return self._execution.autocommit

    @autocommit.setter
    def autocommit(self, value: bool) -> None:
        self._execution.set_autocommit(bool(value))

    def set_autocommit(self, value: bool) -> None:
        """Change :attr:`autocommit`, as in psycopg."""
        self.autocommit = value

    def set_isolation_level(self, value: str | IsolationLevel) -> None:
        """Change :attr:`isolation_level`, as in psycopg."""
        self.isolation_level = value

    @property
    def isolation_level(self) -> str:
        """The level of the transactions to come."""
        return self._execution.controls.always_isolation.value

    @isolation_level.setter
    def isolation_level(self, value: str | IsolationLevel) -> None:
        self._execution.controls.always_isolate(value)

    @property
    def read_only(self) -> bool:
        """Whether transactions to come are read-only, if they do not say so themselves."""
        return self._execution.controls.is_always_read_only

    @read_only.setter
    def read_only(self, value: bool) -> None:
        self._execution.controls.always_read_only(bool(value))

    def set_read_only(self, value: bool) -> None:
        """Change :attr:`read_only`, as in psycopg."""
        self.read_only = value

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._execution.in_transaction

    @property
    def txid(self) -> int | None:
        """The open transaction's id, for :meth:`outcome`."""
        return self._execution.txid

    @property
    def as_of(self) -> int | datetime | None:
        """The point of the past that transactions to come read; None: they read what is.

        They write nothing then. It is a :attr:`version`, or a time with a time zone.
        """
        return self._execution.controls.always_as_of

    @as_of.setter
    def as_of(self, value: int | datetime | None) -> None:
        self._execution.controls.always_read(value)

    @property
    def version(self) -> int:
        """The version that the open transaction reads; without one the newest.

        Each commit makes a later one. What :meth:`transaction` takes as ``as_of``, and
        ``AT (VERSION => …)`` in a statement.
        """
        return self._execution.version()

    @property
    def lock_timeout(self) -> float | None:
        """Seconds that a wait for a row lock may take; None: as long as it takes."""
        return self._execution.lock_timeout

    @lock_timeout.setter
    def lock_timeout(self, value: float | None) -> None:
        self._execution.lock_timeout = checked_timeout(value)

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
            self._execution.transaction_status(),
            self._execution.number,
        )

    def status(self) -> Status:
        """The current state of the whole database."""
        with self._execution.beside():
            return status(self._database)

    def outcome(self, txid: int) -> str:
        """The outcome of a transaction of any connection, or of a crashed process.

        Returns
        -------
        str
            ``"committed"``, ``"active"``, ``"aborted"``, or ``"unknown"`` if its
            record may have been pruned or it was never begun.
        """
        with self._execution.beside():
            return self._database.outcome(txid)

    def foreign_keys(self) -> list[ForeignKey]:
        """All FOREIGN KEYs that the open transaction sees, if there is one, or the next.

        tique keeps them, so the engine's catalog does not show them.
        """
        return foreign_keys(self._execution.newest_catalog())

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
            (:class:`~tique.connection.server_cursor.ServerCursor`).
        row_factory
            Makes its rows; by default the connection's.
        binary, withhold
            psycopg's: they change nothing here. A named cursor outlives its transaction.
        scrollable
            Whether a named cursor goes back, which is not supported.
        """
        self._execution.check_usable()
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
        query: Query,
        parameters: Any = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> Cursor[RowT]:
        """Execute on a new cursor and return the cursor."""
        return self.cursor().execute(query, parameters)

    # Transactions

    def commit(
        self, *, wait_for: Literal["replica"] | None = None, timeout: float = 30.0
    ) -> None:
        """Commit: on return it is durable and every new transaction sees it.

        Parameters
        ----------
        wait_for
            ``"replica"``: on return all replicas have it durably, too, and what this connection has
            committed before. ``timeout``: the seconds that this may take after the commit.

        Raises
        ------
        SerializationError
            If another transaction committed one of the keys first; the
            transaction is rolled back and can be run again.
        OutcomeUnknown
            If the outcome cannot be known; ask :meth:`outcome` later.
        OperationalError
            If there is no replica to wait for: nothing is committed (SQLSTATE 55000). Or if not all
            had it in time: it is committed (57014).
        """
        if wait_for not in (None, "replica"):
            raise errors.InterfaceError(f"wait_for={wait_for!r} is not 'replica'")
        execution = self._execution
        with execution.guarded("COMMIT"):
            if wait_for is not None:
                replicated(execution.database, "nothing was committed")
            execution.commit()
        if wait_for is not None:
            with translating():
                await_replica(execution.database, execution.last_cts, timeout)

    def rollback(self) -> None:
        """Undo everything since the transaction began."""
        with self._execution.guarded("ROLLBACK"):
            self._execution.rollback()

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """A block as that of psycopg's pipeline mode; it changes nothing here.

        What saves round trips (buffered writes, one statement for a commit) is always on.
        """
        self._execution.check_usable()
        yield Pipeline()

    @contextmanager
    def transaction(
        self,
        savepoint_name: str | None = None,
        force_rollback: bool = False,
        *,
        priority: bool = False,
        as_of: int | datetime | None = None,
        read_only: bool | None = None,
        freshness: float | str | None = None,
    ) -> Iterator[Self]:
        """A block that commits at its end or rolls back if it raises.

        Inside a transaction it is a savepoint, as in psycopg. One that raises
        :class:`tique.Rollback` is undone and left, and the program goes on behind it.

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
        as_of
            A point of the past that all of its statements read, which write nothing: a
            :attr:`version`, or a time with a time zone.
        read_only
            Whether it writes nothing; by default what the connection says.
        freshness
            How old a state its queries may see, for a connection with a replica: seconds, or
            ``"own"``, or ``"off"``. Where its first query runs, all of them do.

        Raises
        ------
        ProgrammingError
            ``as_of`` is in the future, or no point (SQLSTATE 22023); or a transaction is
            open already (25001).
        OperationalError
            Nothing is known of so long ago (72000).
        """
        fresh = None if freshness is None else freshness_of(freshness)
        block = self._block(
            savepoint_name, force_rollback, priority, as_of, fresh, read_only
        )
        with suppress(errors.Rollback), block:
            yield self

    @contextmanager
    def _block(
        self,
        savepoint_name: str | None,
        force_rollback: bool,
        priority: bool,
        as_of: int | datetime | None,
        freshness: float | None,
        read_only: bool | None,
    ) -> Iterator[None]:
        if self.in_transaction:
            modes = {"as_of": as_of, "freshness": freshness, "read_only": read_only}
            for name in [name for name, mode in modes.items() if mode is not None]:
                raise errors.ProgrammingError(
                    f"{name} inside a transaction: commit or roll back first",
                    sqlstate="25001",
                )
            with self._execution.controls.savepoint(
                savepoint_name, rolls_back=force_rollback
            ):
                yield
            return
        with self._execution.guarded("BEGIN"):
            if as_of is not None:
                as_of = as_point(as_of)
            if freshness is not None:
                self._execution.expect_router().within = freshness
            if read_only is not None:
                self._execution.controls.read_only = read_only
            self._execution.controls.open(as_of)
        self._execution.contender.has_priority = priority
        try:
            yield
        except BaseException:
            self.rollback()
            raise
        else:
            if force_rollback:
                self.rollback()
            else:
                self.commit()
        finally:
            self._execution.contender.has_priority = False

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
        with self._execution.beside():
            return self._database.checkpointer.checkpoint_now()

    # The past

    def changes(
        self,
        table: str,
        /,
        *,
        since: int | datetime,
        until: int | datetime | None = None,
        schema: str | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> Feed[Change[RowT]]:
        """Iterate over what commits have changed in a table that has a history.

        Changes come in the order of commits, those of one commit in the order of their keys.
        They are read beside this connection, as they are needed; what an open transaction
        has written is not among them.

        Parameters
        ----------
        table, schema
            The table's name and its schema, as for :meth:`Cursor.append`.
        since, until
            After which version, and up to which one; by default up to that of now. A time stands for
            the last commit at or before it.
        follow
            Whether it waits for further commits, and gives their changes.
        timeout
            Seconds without a change after which it follows no longer; None: it goes on
            until it is closed.

        Raises
        ------
        ProgrammingError
            If there is no such table, it has no history, or a version is in the future.
        OperationalError
            If its history does not have every change since then (SQLSTATE 72000); the message
            has the first version since which it has.
        """
        read = partial(read_changes, self.row_factory)
        return self._feed((schema, table), since, until, read, follow, timeout)

    def changes_arrow(
        self,
        table: str,
        /,
        *,
        since: int | datetime,
        until: int | datetime | None = None,
        schema: str | None = None,
        follow: bool = False,
        timeout: float | None = None,
    ) -> Feed[pyarrow.RecordBatch]:
        """Iterate over what :meth:`changes` does, in Arrow's record batches.

        Their columns are called as the parts of :class:`Change`. Of these, ``old`` and ``new``
        are structs of the table's columns, NULL where there is no row. The changes of a commit may
        be in several batches.
        """
        return self._feed((schema, table), since, until, read_batches, follow, timeout)

    def _feed(
        self,
        place: tuple[str | None, str],
        since: int | datetime,
        until: int | datetime | None,
        read: Read[OtherT],
        follows: bool = False,
        timeout: float | None = None,
    ) -> Feed[OtherT]:
        """A feed, with a connection of its own to the database."""
        options = replace(self._options, isolation=None, autocommit=False, routing=None)
        with self._execution.beside():
            keep(self._database)
            try:
                reader = Connection(self._database, options, tuple_row)
            except BaseException:
                release(self._database)
                raise
            return Feed(
                reader, place, since, until, read, follows=follows, timeout=timeout
            )

    def differences(
        self,
        table: str,
        /,
        since: int | datetime,
        until: int | datetime,
        *,
        schema: str | None = None,
    ) -> Feed[Difference[RowT]]:
        """Iterate over the rows of a table that are not the same in two versions.

        Parameters
        ----------
        table, since, until, schema
            As for :meth:`changes`; both versions can be any that the retention keeps.

        Raises
        ------
        ProgrammingError
            If there is no such table, it has no history, or a version is in the future.
        OperationalError
            If its history does not have one of the versions (SQLSTATE 72000).
        """
        read = partial(read_differences, self.row_factory, (since, until))
        return self._feed((schema, table), since, until, read)

    def restore(
        self, table: str, /, as_of: int | datetime, *, schema: str | None = None
    ) -> int:
        """Bring the rows of a table back to what they were, as one ordinary statement.

        Only rows that are not the same now are written. It is part of the open transaction,
        and conflicts with others that write these rows, as any statement does.

        Parameters
        ----------
        table, schema
            As for :meth:`changes`.
        as_of
            The version, or the time, as for :meth:`differences`.

        Returns
        -------
        int
            The number of rows that were not the same.

        Raises
        ------
        ProgrammingError
            As for :meth:`differences`, or if the open transaction has changed the table.
        OperationalError
            If its history does not have that version (SQLSTATE 72000).
        """
        return restore(self._execution, (schema, table), as_of)

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
        catalog = self._database.catalog
        with self._execution.lock, translating():
            self._execution.check_usable()
            functions = self._database.engine.functions(self._execution.live_session())
            found = [
                function
                for function in functions
                if name in (function.signature, function.signature.partition("(")[0])
            ]
            if not found:
                raise errors.ProgrammingError(
                    f"there is no function {name} of your own; give schema.name, or "
                    "schema.name(type, …) as PostgreSQL writes it",
                    sqlstate="42883",
                )
            relations = catalog.relations()
            for function in found:
                reason = why_unsafe(function) or why_untrusted(function, relations)
                if reason is not None:
                    raise errors.NotSupportedError(
                        f"function {function.signature} cannot be trusted: {reason}"
                    )
            catalog.trust(found, functions)

    def add_notice_handler(self, handler: Callable[[Notice], None]) -> None:
        """Have a function called with each notice of this connection's statements.

        It runs while the statement does: it cannot use the connection. An error in it
        is logged by psycopg. DuckDB and MonetDB have no notices.
        """
        execution = self._execution
        with execution.lock:
            execution.check_usable()
            execution.notices.add(handler, execution.session)

    def remove_notice_handler(self, handler: Callable[[Notice], None]) -> None:
        """Call a function that :meth:`add_notice_handler` took no more.

        Raises
        ------
        ValueError
            If it was not added.
        """
        with self._execution.lock:
            self._execution.notices.remove(handler)

    def cancel(self) -> None:
        """Make the statement that runs on this connection fail; from any thread."""
        self._execution.cancel()

    def cancel_safe(self, *, timeout: float | None = None) -> None:
        """Do what :meth:`cancel` does, which is safe; psycopg's name."""
        self.cancel()

    # The end

    def seize(self, patience: float) -> None:
        """Let the call under way end, and no other begin: the interpreter ends.

        After ``patience`` (in seconds) the engine is asked to stop it, and after as long
        again it is left alone.
        """
        self._execution.seize(patience)

    def inherit(self) -> None:
        """Wait for no call of a thread of the process that this one was forked from."""
        self._execution.lock = threading.RLock()

    def close(self) -> None:
        """Roll back and close; further use is an error. Idempotent.

        A call of another thread is stopped after a second. After another one it is left
        alone, and the connection gives back what it has when that call ends.
        """
        self._execution.close()

    def __enter__(self) -> Self:
        """Enter a block at whose end the connection is closed."""
        self._execution.check_usable()
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
