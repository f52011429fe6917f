"""The dialects for asyncio: ``duckdb+tique_async``, ``postgresql+tique_async`` and so on.

SQLAlchemy calls a dialect without ``await``, in a greenlet; its adapters hand what a
coroutine of :class:`tique.AsyncConnection` does over to the event loop. A task that is
cancelled in a statement makes that stop; SQLAlchemy then closes the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy.connectors.asyncio import (
    AsyncAdapt_dbapi_connection,
    AsyncAdapt_dbapi_cursor,
    AsyncAdapt_dbapi_module,
    AsyncAdapt_dbapi_ss_cursor,
    AsyncAdapt_terminate,
)
from sqlalchemy.pool import AsyncAdaptedQueuePool
from sqlalchemy.util.concurrency import await_only
from typing_extensions import override

import tique
from tique.sqlalchemy.driver import TiqueDriver
from tique.sqlalchemy.duckdb import DuckDBDialect
from tique.sqlalchemy.monetdb import MonetDBDialect, MonetDBExecutionContext
from tique.sqlalchemy.postgresql import PostgreSQLDialect, PostgreSQLExecutionContext

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from sqlalchemy.engine import URL
    from sqlalchemy.engine.interfaces import DBAPICursor
    from sqlalchemy.pool import Pool


class AdaptedCursor(AsyncAdapt_dbapi_cursor):
    """A cursor that has its whole result."""

    __slots__ = ()

    @override
    def setinputsizes(self, *inputsizes: Any) -> None:
        """Do nothing (PEP 249 allows it)."""


class AdaptedStream(AsyncAdapt_dbapi_ss_cursor):
    """A cursor whose rows come as they are asked for."""

    __slots__ = ()

    @override
    def setinputsizes(self, *inputsizes: Any) -> None:
        """Do nothing (PEP 249 allows it)."""


def _awaited(name: str) -> Any:
    """A property of the connection, which a coroutine sets."""

    def get(adapted: AdaptedConnection) -> Any:
        return getattr(adapted._connection, name)

    def change(adapted: AdaptedConnection, value: Any) -> None:
        adapted._await(getattr(adapted._connection, f"set_{name}")(value))

    return property(get, change)


class AdaptedConnection(AsyncAdapt_terminate, AsyncAdapt_dbapi_connection):
    """A connection with the methods that a dialect calls, over an ``AsyncConnection``."""

    __slots__ = ()
    _cursor_cls = AdaptedCursor
    _ss_cursor_cls = AdaptedStream
    _connection: tique.AsyncConnection

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._connection.closed

    autocommit = _awaited("autocommit")
    """Whether every statement is a transaction of its own."""
    isolation_level = _awaited("isolation_level")
    """The level of the transactions to come."""
    as_of = _awaited("as_of")
    """The point of the past that the transactions to come read."""
    read_only = _awaited("read_only")
    """Whether the transactions to come are read-only."""

    def foreign_keys(self) -> Any:
        """The FOREIGN KEYs, which tique keeps."""
        return self._await(self._connection.foreign_keys())

    def _await(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await_only(work)
        except Exception as error:
            self._handle_exception(error)

    @override
    async def _terminate_graceful_close(self) -> None:
        await self._connection.close()

    @override
    def _terminate_force_close(self) -> None:
        self._connection.terminate()


class AdaptedDriver(AsyncAdapt_dbapi_module):
    """The module that SQLAlchemy takes for a driver of PEP 249."""

    def __init__(self) -> None:
        super().__init__(tique)

    def __getattr__(self, name: str) -> Any:
        """Errors, constructors and ``paramstyle`` are tique's."""
        return getattr(tique, name)

    def connect(self, *args: Any, **options: Any) -> AdaptedConnection:
        """Open a connection, by ``async_creator_fn`` if that is given."""
        creator = options.pop("async_creator_fn", tique.AsyncConnection.connect)
        opened: AdaptedConnection = await_only(
            AdaptedConnection.create(self, creator(*args, **options))
        )
        return opened


class _Streaming:
    """An execution that streams if it is asked for that."""

    _dbapi_connection: Any

    def create_server_side_cursor(self) -> DBAPICursor:
        """A cursor whose rows come as they are asked for."""
        cursor: DBAPICursor = self._dbapi_connection.cursor(server_side=True)
        return cursor


class AsyncPostgreSQLExecutionContext(_Streaming, PostgreSQLExecutionContext):
    """A statement's execution."""


class AsyncMonetDBExecutionContext(_Streaming, MonetDBExecutionContext):
    """A statement's execution."""


class AsyncTiqueDriver(TiqueDriver):
    """A dialect's half that talks to tique, for asyncio."""

    driver = "tique_async"
    is_async = True
    has_terminate = True

    @override
    @classmethod
    def import_dbapi(cls) -> Any:
        """The driver."""
        return AdaptedDriver()

    @override
    @classmethod
    def get_pool_class(cls, url: URL) -> type[Pool]:
        """A pool whose waits leave the event loop free."""
        return AsyncAdaptedQueuePool

    @override
    def get_driver_connection(self, connection: Any) -> Any:
        """Tique's own connection."""
        return connection._connection

    @override
    def do_terminate(self, dbapi_connection: Any) -> None:
        """Close without waiting, where there is nothing to wait with."""
        dbapi_connection.terminate()


class AsyncDuckDBDialect(AsyncTiqueDriver, DuckDBDialect):
    """``duckdb+tique_async://``."""

    supports_statement_cache = True
    execution_ctx_cls = AsyncPostgreSQLExecutionContext


class AsyncPostgreSQLDialect(AsyncTiqueDriver, PostgreSQLDialect):
    """``postgresql+tique_async://``."""

    supports_statement_cache = True
    execution_ctx_cls = AsyncPostgreSQLExecutionContext


class AsyncMonetDBDialect(AsyncTiqueDriver, MonetDBDialect):
    """``monetdb+tique_async://``."""

    supports_statement_cache = True
    execution_ctx_cls = AsyncMonetDBExecutionContext
