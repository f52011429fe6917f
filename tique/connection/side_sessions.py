"""Results that are read beside their connection's other statements.

An engine has one result per session at a time, so that the rows of a large one would be read
into memory when the connection runs another statement. The query of a named cursor gets an
engine session of its own, where its rows wait until they are fetched.

Argument
--------
*Its rows are those of the snapshot (P1).* The query is filled by the same transaction as any
other, and all that it reads is in storage and in cache tables, which every session sees:
versions are drained there, committed by the engine, before the query runs. A fold between the
two is no other case than between any two statements of the engine. What only the connection's
own session has is read there: the transaction's own writes, temporary tables, the state of an
engine transaction with DDL, changed settings (:func:`runs_apart` is false).

*An uncommitted fold* serves the query first, where it may: its rows are then in memory, at most as many
as one is held for (:mod:`tique.checkpoint.uncommitted`). A larger result waits in a session of
its own: in the fold's, an application that reads slowly would keep folds and all other queries waiting.

*Nothing stays.* The session is closed with the last row, with the result, with the
connection, and by the checkpointer's thread if the result was garbage-collected. It is used
under the connection's lock only.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeGuard

from typing_extensions import override

from tique.query.read.select import SelectStatement
from tique_backends.errors import EngineError
from tique_backends.session import Result, Session

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow

    from tique.database.database import Database
    from tique.query.base import Outcome, Statement
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_backends.records import Row


class SideSessions:
    """The engine sessions beside one connection's own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._results: weakref.WeakSet[ApartResult] = weakref.WeakSet()
        self._running: Session | None = None

    def run(
        self,
        statement: SelectStatement,
        transaction: DDLTransaction,
        parameters: Sequence[Any],
    ) -> Outcome:
        """Run a query in a session of its own, or in the uncommitted fold."""
        opened: list[Session] = []

        def open_session() -> Session:
            opened.append(self._database.engine.session())
            self._running = opened[0]
            return opened[0]

        try:
            outcome = statement.run_apart(open_session, transaction, parameters)
        except BaseException:
            for session in opened:
                with suppress(EngineError):
                    session.close()
            raise
        finally:
            self._running = None
        if not opened:
            return outcome
        (session,) = opened
        assert outcome.result is not None
        result = ApartResult(self, session, outcome.result, self._database)
        self._results.add(result)
        outcome.result = result
        return outcome

    @contextmanager
    def using(self, session: Session) -> Iterator[None]:
        """Run something in a session, which :meth:`interrupt` stops."""
        self._running = session
        try:
            yield
        finally:
            self._running = None

    def interrupt(self) -> None:
        """Make what runs here fail soon; from any thread."""
        session = self._running
        if session is not None:
            session.interrupt()

    def close(self) -> None:
        """Close all results."""
        for result in list(self._results):
            with suppress(EngineError):
                result.close()


class ApartResult(Result):
    """A result with an engine session of its own."""

    def __init__(
        self, apart: SideSessions, session: Session, result: Result, database: Database
    ) -> None:
        self.columns = result.columns
        self.row_count = result.row_count
        self._apart = apart
        self._session = session
        self._result = result
        self._finalizer = weakref.finalize(self, database.leave, session)
        self._finalizer.atexit = False

    @override
    def fetch(self, size: int) -> list[Row]:
        if not self._finalizer.alive:
            return []
        with self._apart.using(self._session):
            rows = self._result.fetch(size)
        if len(rows) < size:
            self.close()
        return rows

    @override
    def fetch_all(self) -> list[Row]:
        if not self._finalizer.alive:
            return []
        with self._apart.using(self._session):
            rows = self._result.fetch_all()
        self.close()
        return rows

    @override
    def arrow(self) -> pyarrow.Table:
        with self._apart.using(self._session):
            table = self._result.arrow()
        self.close()
        return table

    @override
    def close(self) -> None:
        if self._finalizer.detach() is not None:
            try:
                with suppress(EngineError):
                    self._result.close()
            finally:
                self._session.close()


def runs_apart(
    statement: Statement, transaction: DDLTransaction
) -> TypeGuard[SelectStatement]:
    """Whether all that a query reads is the same in any session."""
    return (
        isinstance(statement, SelectStatement)
        and transaction.migration is None
        and not (transaction.is_held or statement.text.reads_past)
        and not any(
            table.is_temporary or transaction.writes.get(table.id)
            for table in statement.text.tables
        )
    )
