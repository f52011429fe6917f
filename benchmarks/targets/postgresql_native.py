"""PostgreSQL by itself: its own isolation levels, primary keys, default settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, ClassVar

from psycopg import IsolationLevel, errors
from psycopg.pq import TransactionStatus
from typing_extensions import override

from benchmarks.targets.base import (
    READ_COMMITTED,
    SERIALIZABLE,
    SNAPSHOT,
    Connection,
    ParameterStyle,
    Target,
)
from benchmarks.targets.postgresql_server import LoadedServer, connect_natively

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import psycopg

# A conflict within executemany is raised, and psycopg warns of the rest of its pipeline.
logging.getLogger("psycopg").setLevel(logging.ERROR)

_LEVELS = {
    READ_COMMITTED: IsolationLevel.READ_COMMITTED,
    SNAPSHOT: IsolationLevel.REPEATABLE_READ,
    SERIALIZABLE: IsolationLevel.SERIALIZABLE,
}


class NativeConnection:
    """psycopg's connection with a counter; it prepares every statement at once."""

    def __init__(
        self, connection: psycopg.Connection[tuple[Any, ...]], level: str = SNAPSHOT
    ) -> None:
        connection.isolation_level = _LEVELS[level]
        connection.prepare_threshold = 0
        self.connection = connection
        self.statements = 0

    def cursor(self) -> NativeCursor:
        """Return a cursor."""
        return NativeCursor(self)

    def count(self, statements: int) -> None:
        """Count some statements, and the BEGIN that psycopg puts before the first."""
        if not (self.connection.autocommit or self._in_transaction()):
            self.statements += 1
        self.statements += statements

    def commit(self) -> None:
        """Commit the open transaction, if any."""
        self.statements += self._in_transaction()
        self.connection.commit()

    def rollback(self) -> None:
        """Roll back the open transaction, if any."""
        self.statements += self._in_transaction()
        self.connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def _in_transaction(self) -> bool:
        return self.connection.info.transaction_status != TransactionStatus.IDLE


class NativeCursor:
    """psycopg's cursor, counted."""

    def __init__(self, connection: NativeConnection) -> None:
        self._connection = connection
        self._cursor = connection.connection.cursor()

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> None:
        """Run one statement."""
        self._connection.count(1)
        self._cursor.execute(sql, parameters or None)

    def executemany(self, sql: str, rows: Sequence[Sequence[object]], /) -> None:
        """Run one statement per row, which psycopg sends without waiting in between."""
        self._connection.count(len(rows))
        self._cursor.executemany(sql, rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        return self._cursor.fetchone()

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the remaining rows."""
        return self._cursor.fetchall()


class PostgreSQLTarget(Target):
    """One server, reached over its Unix socket, a connection per client thread."""

    name: ClassVar[str] = "postgresql"
    is_server: ClassVar[bool] = True
    has_distance: ClassVar[bool] = True
    parameter_style: ClassVar[ParameterStyle] = "pyformat"
    levels = tuple(_LEVELS)
    conflicts = (errors.SerializationFailure, errors.DeadlockDetected)

    load: Callable[..., LoadedServer] = LoadedServer
    """Starts a server with a file's tables."""

    def __init__(self) -> None:
        self._server: LoadedServer | None = None
        self._url = ""
        self._connections: list[NativeConnection] = []

    @override
    def prepare(self, path: Path) -> None:
        """Start a server with the file's tables."""
        self._server = self.load(path, self.distance)
        self._url = self._server.url

    @override
    def address(self) -> str:
        """Return the server's URL."""
        return self._url

    @override
    def attach(self, address: str) -> None:
        """Use another process's server."""
        self._url = address

    @override
    def connect(self, *, autocommit: bool = False) -> NativeConnection:
        """Return a connection of its own."""
        connection = NativeConnection(
            connect_natively(self._url, autocommit=autocommit), self.level
        )
        self._connections.append(connection)
        return connection

    @override
    def engine_statements(self) -> int:
        """Return the statements of all connections so far."""
        return sum(connection.statements for connection in self._connections)

    @property
    def server(self) -> LoadedServer:
        """The server that was prepared."""
        assert self._server is not None
        return self._server

    @override
    def settings(self) -> dict[str, str]:
        """Return the server's version and settings."""
        return self._server.settings() if self._server else {}

    @override
    def sizes(self) -> dict[str, int]:
        """Return the size of the tables."""
        return self._server.sizes() if self._server else {}

    @override
    def compact(self, connection: Connection) -> None:
        """Run PostgreSQL's checkpoint, which brings the log's changes to the tables."""
        connection.cursor().execute("CHECKPOINT")
        connection.commit()

    @override
    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()


TARGET = PostgreSQLTarget
