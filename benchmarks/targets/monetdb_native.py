"""MonetDB by itself: autocommit off, its own primary keys, default settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import pymonetdb
from typing_extensions import override

from benchmarks.targets.base import ParameterStyle, Target
from benchmarks.targets.monetdb_server import LoadedServer, connect_natively

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class Conflict(Exception):
    """MonetDB aborted the transaction because of a concurrent one."""


class NativeConnection:
    """A connection that tells conflicts from other errors, and counts statements."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.statements = 0

    def cursor(self) -> NativeCursor:
        """Return a cursor."""
        return NativeCursor(self)

    def commit(self) -> None:
        """Commit the open transaction."""
        self.statements += 1
        _telling(self.connection.commit)

    def rollback(self) -> None:
        """Roll the open transaction back."""
        self.statements += 1
        self.connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()


class NativeCursor:
    """pymonetdb's cursor, counted."""

    def __init__(self, connection: NativeConnection) -> None:
        self._connection = connection
        self._cursor = connection.connection.cursor()

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> None:
        """Run one statement."""
        self._connection.statements += 1
        _telling(lambda: self._cursor.execute(sql, parameters or None))

    def executemany(self, sql: str, rows: Sequence[Sequence[object]], /) -> None:
        """Run one statement per row, as pymonetdb does."""
        self._connection.statements += len(rows)
        _telling(lambda: self._cursor.executemany(sql, rows))

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        row: tuple[Any, ...] | None = self._cursor.fetchone()
        return row

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the remaining rows."""
        return list(self._cursor.fetchall())


def _telling(call: Any) -> None:
    try:
        call()
    except pymonetdb.Error as error:
        text = str(error).lower()
        if "conflict" in text or "update failed" in text or "aborted" in text:
            raise Conflict(str(error)) from error
        raise


class MonetDBTarget(Target):
    """One server process, a connection per client thread."""

    name: ClassVar[str] = "monetdb"
    is_server: ClassVar[bool] = True
    parameter_style: ClassVar[ParameterStyle] = "pyformat"
    conflicts = (Conflict,)

    def __init__(self) -> None:
        self._server: LoadedServer | None = None
        self._url = ""
        self._connections: list[NativeConnection] = []

    @override
    def prepare(self, path: Path) -> None:
        """Start a server with the file's tables."""
        self._server = LoadedServer(path)
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
            connect_natively(self._url, autocommit=autocommit)
        )
        self._connections.append(connection)
        return connection

    @override
    def engine_statements(self) -> int:
        """Return the statements of all connections so far."""
        return sum(connection.statements for connection in self._connections)

    @override
    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()


TARGET = MonetDBTarget
