"""DuckDB by itself: durable commits, its own primary keys, default settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

import duckdb
from typing_extensions import override

from benchmarks.targets.base import Connection, ParameterStyle, Target

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


class NativeConnection:
    """A DuckDB connection that opens a transaction with the first statement.

    DuckDB's own connections commit every statement unless told BEGIN; this is the
    DB-API's rule, and a counter. Not for use by two threads at a time.
    """

    def __init__(self, session: duckdb.DuckDBPyConnection, *, autocommit: bool) -> None:
        self.session = session
        self._autocommit = autocommit
        self.statements = 0
        self._in_transaction = False

    def cursor(self) -> NativeCursor:
        """Return a cursor over this connection's one result."""
        return NativeCursor(self)

    def begin(self) -> None:
        """Open a transaction unless one is open or every statement is one."""
        if not (self._autocommit or self._in_transaction):
            self._in_transaction = True
            self.statements += 1
            self.session.execute("BEGIN")

    def commit(self) -> None:
        """Commit the open transaction, if any."""
        self._finish("COMMIT")

    def rollback(self) -> None:
        """Roll back the open transaction, if any."""
        self._finish("ROLLBACK")

    def close(self) -> None:
        """Roll back and release the session."""
        self.rollback()
        self.session.close()

    def _finish(self, statement: str) -> None:
        if self._in_transaction:
            # A COMMIT that fails has ended DuckDB's transaction all the same.
            self._in_transaction = False
            self.statements += 1
            self.session.execute(statement)


class NativeCursor:
    """The result of the last statement of its connection."""

    def __init__(self, connection: NativeConnection) -> None:
        self._connection = connection
        self._session = connection.session

    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> None:
        """Run one statement."""
        self._connection.begin()
        self._connection.statements += 1
        self._session.execute(sql, parameters)

    def executemany(self, sql: str, rows: Sequence[Sequence[object]], /) -> None:
        """Run one statement per row, as DuckDB does."""
        self._connection.begin()
        self._connection.statements += len(rows)
        self._session.executemany(sql, rows)

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row, or None."""
        return self._session.fetchone()

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the remaining rows."""
        return self._session.fetchall()


class DuckDBTarget(Target):
    """One process, one database instance, a session per client thread."""

    name: ClassVar[str] = "duckdb"
    parameter_style: ClassVar[ParameterStyle] = "qmark"
    conflicts = (duckdb.TransactionException, duckdb.SerializationException)

    def __init__(self) -> None:
        self._database: duckdb.DuckDBPyConnection | None = None
        self._connections: list[NativeConnection] = []

    @override
    def prepare(self, path: Path) -> None:
        """Open the file; the loader has already created its primary keys."""
        self._database = duckdb.connect(str(path))

    @override
    def connect(self, *, autocommit: bool = False) -> NativeConnection:
        """Return a session of its own over the shared database instance."""
        if self._database is None:
            raise RuntimeError(f"target {self.name}: prepare() comes before connect()")
        connection = NativeConnection(self._database.cursor(), autocommit=autocommit)
        self._connections.append(connection)
        return connection

    @override
    def engine_statements(self) -> int:
        """Return the statements of all connections so far."""
        return sum(connection.statements for connection in self._connections)

    @override
    def compact(self, connection: Connection) -> None:
        """Run DuckDB's checkpoint."""
        connection.cursor().execute("CHECKPOINT")
        connection.commit()

    @override
    def close(self) -> None:
        """Close the database instance."""
        if self._database is not None:
            self._database.close()


TARGET = DuckDBTarget
