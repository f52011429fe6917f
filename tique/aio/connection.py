"""Connections for asyncio."""

from __future__ import annotations

import asyncio
import weakref
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, overload

from typing_extensions import TypeVar, Unpack

from tique import errors
from tique._connect import connect
from tique.aio.cursor import AsyncCursor
from tique.aio.feed import iterate
from tique.aio.worker import Worker
from tique.rows import RowFactory, TupleRow, tuple_row

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from datetime import datetime
    from types import TracebackType

    import pyarrow

    from tique._connect import ConnectionOptions
    from tique.aio.feed import FeedOptions
    from tique.connection.connection import Connection
    from tique.connection.connection_info import ConnectionInfo, ForeignKey, Pipeline
    from tique.connection.notices import Notice
    from tique.connection.query_text import Query
    from tique.database.status import Status
    from tique.history.feed import Change
    from tique.query.transaction.isolation import IsolationLevel

RowT = TypeVar("RowT", default=Any)
OtherT = TypeVar("OtherT")


class AsyncConnection(Generic[RowT]):
    """A connection for asyncio: :class:`tique.Connection` by coroutines.

    Tasks may share it: their calls are made one after the other, in one transaction. A
    task that is cancelled in a call makes the statement stop, and its transaction fail (SQLSTATE
    25P02 until a rollback, at least to a savepoint); see :mod:`tique.aio.worker`.

    Use :meth:`connect` to make one.
    """

    def __init__(self, worker: Worker) -> None:
        assert worker.connection is not None
        self._worker = worker
        self._connection: Connection[RowT] = worker.connection
        weakref.finalize(self, worker.dismiss).atexit = False

    @overload
    @classmethod
    async def connect(
        cls, url: str | os.PathLike[str], **options: Unpack[ConnectionOptions]
    ) -> AsyncConnection[TupleRow]: ...

    @overload
    @classmethod
    async def connect(
        cls,
        url: str | os.PathLike[str],
        *,
        row_factory: RowFactory[OtherT],
        **options: Unpack[ConnectionOptions],
    ) -> AsyncConnection[OtherT]: ...

    @classmethod
    async def connect(
        cls,
        url: str | os.PathLike[str],
        *,
        row_factory: RowFactory[Any] = tuple_row,
        **options: Unpack[ConnectionOptions],
    ) -> AsyncConnection[Any]:
        """Open a connection; parameters and errors are those of :func:`tique.connect`.

        Python variables are no tables: statements run in a thread that has none.
        """
        if options.get("python_variables"):
            raise errors.NotSupportedError(
                "python_variables is not supported by AsyncConnection, whose statements "
                "run in another thread; insert the data by cursor.append()"
            )
        options["python_variables"] = False
        worker = Worker()
        opening = partial(connect, url, row_factory=row_factory, **options)
        try:
            await worker.run(partial(worker.open, opening), ends=True)
            return cls(worker)
        except BaseException:
            await worker.close()
            raise

    # State

    @property
    def closed(self) -> bool:
        """Whether the connection was closed."""
        return self._worker.is_closed or self._connection.closed

    @property
    def broken(self) -> bool:
        """Whether it was given up: connect again."""
        return self._worker.is_given_up or self._connection.broken

    @property
    def row_factory(self) -> RowFactory[RowT]:
        """What makes the rows of cursors to come."""
        return self._connection.row_factory

    @row_factory.setter
    def row_factory(self, value: RowFactory[RowT]) -> None:
        self._connection.row_factory = value

    @property
    def lock_timeout(self) -> float | None:
        """Seconds that a wait for a row lock may take; None: as long as it takes."""
        return self._connection.lock_timeout

    @lock_timeout.setter
    def lock_timeout(self, value: float | None) -> None:
        self._connection.lock_timeout = value

    @property
    def autocommit(self) -> bool:
        """Whether every statement is a transaction of its own."""
        return self._connection.autocommit

    async def set_autocommit(self, value: bool) -> None:
        """Change it; not inside a transaction."""
        await self._worker.run(partial(self._connection.set_autocommit, value))

    @property
    def isolation_level(self) -> str:
        """The level of the transactions to come."""
        return self._connection.isolation_level

    async def set_isolation_level(self, value: str | IsolationLevel) -> None:
        """Change it; not inside a transaction."""
        await self._worker.run(partial(self._connection.set_isolation_level, value))

    @property
    def read_only(self) -> bool:
        """Whether transactions to come are read-only, if they do not say so themselves."""
        return self._connection.read_only

    async def set_read_only(self, value: bool) -> None:
        """Change it; not inside a transaction."""
        await self._worker.run(partial(self._connection.set_read_only, value))

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    @property
    def txid(self) -> int | None:
        """The open transaction's id, for :meth:`outcome`."""
        return self._connection.txid

    @property
    def as_of(self) -> int | datetime | None:
        """The point of the past that transactions to come read."""
        return self._connection.as_of

    async def set_as_of(self, value: int | datetime | None) -> None:
        """Change it; not inside a transaction."""
        await self._worker.run(partial(setattr, self._connection, "as_of", value))

    async def version(self) -> int:
        """The version that is read (:attr:`tique.Connection.version`)."""
        return await self._worker.run(lambda: self._connection.version)

    @property
    def info(self) -> ConnectionInfo:
        """Figures for operators and benchmarks."""
        return self._connection.info

    async def status(self) -> Status:
        """The current state of the whole database."""
        return await self._worker.run(self._connection.status)

    async def outcome(self, txid: int) -> str:
        """The outcome of a transaction (:meth:`tique.Connection.outcome`)."""
        return await self._worker.run(partial(self._connection.outcome, txid))

    async def foreign_keys(self) -> list[ForeignKey]:
        """The FOREIGN KEYs (:meth:`tique.Connection.foreign_keys`)."""
        return await self._worker.run(self._connection.foreign_keys)

    def add_notice_handler(self, handler: Callable[[Notice], None]) -> None:
        """Have a function called with each notice, in the connection's own thread."""
        self._connection.add_notice_handler(handler)

    def remove_notice_handler(self, handler: Callable[[Notice], None]) -> None:
        """Call the function no more; ValueError if it was not added."""
        self._connection.remove_notice_handler(handler)

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
    ) -> AsyncCursor[RowT]: ...

    @overload
    def cursor(
        self,
        name: str = "",
        *,
        row_factory: RowFactory[OtherT],
        binary: bool = False,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> AsyncCursor[OtherT]: ...

    def cursor(
        self,
        name: str = "",
        *,
        row_factory: RowFactory[Any] | None = None,
        binary: bool = False,
        scrollable: bool | None = None,
        withhold: bool = False,
    ) -> AsyncCursor[Any]:
        """Return a new cursor; the parameters are those of :meth:`tique.Connection.cursor`."""
        made = self._connection.cursor(
            name, row_factory=row_factory, scrollable=scrollable
        )
        return AsyncCursor(self, self._worker, made)

    async def execute(
        self,
        query: Query,
        parameters: Any = None,
        *,
        prepare: bool | None = None,
        binary: bool = False,
    ) -> AsyncCursor[RowT]:
        """Execute on a new cursor and return the cursor."""
        return await self.cursor().execute(query, parameters)

    async def cancel_safe(self) -> None:
        """Make the statement that another task runs on this connection fail."""
        self._connection._execution.check_usable()
        await asyncio.to_thread(self._connection.cancel)

    # Transactions

    async def commit(
        self, *, wait_for: Literal["replica"] | None = None, timeout: float = 30.0
    ) -> None:
        """Commit: on return it is durable and every new transaction sees it.

        If the task is cancelled meanwhile, the transaction is committed or not, as
        :meth:`outcome` of its ``txid`` says. ``wait_for``: :meth:`tique.Connection.commit`.

        Raises
        ------
        SerializationError
            If another transaction committed one of the keys first; the
            transaction is rolled back and can be run again.
        OutcomeUnknown
            If the outcome cannot be known; ask :meth:`outcome` later.
        """
        commit = partial(self._connection.commit, wait_for=wait_for, timeout=timeout)
        await self._worker.run(commit)

    async def rollback(self) -> None:
        """Undo everything since the transaction began, even if cancelled meanwhile."""
        await self._worker.run(self._connection.rollback, ends=True)

    @asynccontextmanager
    async def pipeline(self) -> AsyncIterator[Pipeline]:
        """A block that changes nothing (:meth:`tique.Connection.pipeline`)."""
        with self._connection.pipeline() as pipeline:
            yield pipeline

    @asynccontextmanager
    async def transaction(
        self,
        savepoint_name: str | None = None,
        force_rollback: bool = False,
        *,
        priority: bool = False,
        as_of: int | datetime | None = None,
        read_only: bool | None = None,
        freshness: float | str | None = None,
    ) -> AsyncIterator[Self]:
        """A block that commits at its end or rolls back if it raises.

        Inside a transaction it is a savepoint. A statement that was cancelled in the
        block is undone with it, and the transaction around it goes on.

        Parameters
        ----------
        savepoint_name, force_rollback, priority, as_of, read_only, freshness
            As for :meth:`tique.Connection.transaction`.
        """
        block = ExitStack()
        entered = self._connection.transaction(
            savepoint_name,
            force_rollback,
            priority=priority,
            as_of=as_of,
            read_only=read_only,
            freshness=freshness,
        )
        enter = partial(block.enter_context, entered)
        try:
            await self._worker.run(enter)
            yield self
            await self._worker.run(block.close)
        except BaseException as error:
            # It has been left already if the commit failed.
            leave = partial(block.__exit__, type(error), error, error.__traceback__)
            if not self._worker.is_closed:
                await self._worker.run(leave, ends=True)
            if not isinstance(error, errors.Rollback):
                raise

    async def checkpoint(self) -> int:
        """Fold all stable versions into storage now (:meth:`tique.Connection.checkpoint`)."""
        return await self._worker.run(self._connection.checkpoint)

    # The past

    def changes(
        self, table: str, /, **options: Unpack[FeedOptions]
    ) -> AsyncGenerator[Change[RowT]]:
        """Iterate over what commits have changed (:meth:`tique.Connection.changes`).

        It begins with the first change that is asked for, and refuses then. It is at its end
        when the task that waits for a change is cancelled.
        """
        return iterate(partial(self._connection.changes, table, **options))

    def changes_arrow(
        self, table: str, /, **options: Unpack[FeedOptions]
    ) -> AsyncGenerator[pyarrow.RecordBatch]:
        """The same in batches (:meth:`tique.Connection.changes_arrow`)."""
        return iterate(partial(self._connection.changes_arrow, table, **options))

    async def trust_function(self, name: str) -> None:
        """Vouch for a function of your own (:meth:`tique.Connection.trust_function`)."""
        await self._worker.run(partial(self._connection.trust_function, name))

    # The end

    async def close(self) -> None:
        """Roll back and close, after the calls of other tasks. Idempotent."""
        await self._worker.close()

    def terminate(self) -> None:
        """Close without waiting: what is open is rolled back by the garbage collector.

        For a pool that has no event loop any more; asyncpg's name.
        """
        self._worker.terminate()

    async def __aenter__(self) -> Self:
        """Enter a block at whose end the connection is closed."""
        self._connection._execution.check_usable()
        return self

    async def __aexit__(
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
                await self.commit()
        finally:
            await self.close()
