"""Statements over one PostgreSQL connection: their results, notices and COPY."""

from __future__ import annotations

import json
import re
import threading
import time
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from psycopg.pq import TransactionStatus
from typing_extensions import override

from tique_backends.errors import ConflictError, EngineError, ErrorKind
from tique_backends.postgresql.errors import is_outdated, translated
from tique_backends.postgresql.sessions.connection import rows_of, tolerate
from tique_backends.postgresql.sessions.results import (
    PIECE,
    PostgreSQLResult,
    Stream,
    StreamedResult,
)
from tique_backends.postgresql.values.parameters import ParameterTypes, typed_values
from tique_backends.postgresql.values.text_values import (
    Showing,
    are_shown_otherwise,
    kept_name,
)
from tique_backends.records import CopyPart, Notice, ResultColumn, Row
from tique_backends.session import Result, Session

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    import psycopg

    from tique_backends.postgresql.sessions.connection import Connection
    from tique_backends.postgresql.sessions.presence import Presence
    from tique_rewriter.schema import Table

_OWN = re.compile('tique_|schema "pg_temp"')
"""In notices of tique's own statements, which drop what may not be there."""

_SYNTAX = "42601"
_NO_TYPE = ("42P18", "42P08")
"""A placeholder's type is not clear: the statement is."""

_IN_ERROR = TransactionStatus.INERROR
MARK = "tique_held"
"""The savepoint of a statement while a snapshot is held."""

MOST_PARAMETERS = 65_535
"""In the protocol their number is of 16 bits."""


class StatementSession(Session):
    """A session that runs statements, one at a time."""

    def __init__(self, connection: Connection, presence: Presence) -> None:
        self._connection = connection
        self._presence = presence
        self._in_transaction = False
        self._keeps_snapshot = False
        """Whether the engine transaction that is held has a savepoint for each statement."""
        self._stream: Stream | None = None
        self._guard = threading.Lock()
        self._is_running = False
        self._showing: Showing | None = None
        self._types: ParameterTypes | None = None
        self._deallocated = 0

    @property
    @override
    def is_lost(self) -> bool:
        return self._connection.is_lost

    def _run(
        self,
        sql: str,
        parameters: Sequence[Any] | None = None,
        *,
        prepare: bool | None = None,
        keeping: bool = False,
        rows: Iterable[Row] | None = None,
    ) -> psycopg.RawCursor[Row]:
        """Run a statement, which is COPY if it takes ``rows``.

        PostgreSQL runs no prepared statement whose results have other types since a
        table was altered. It is prepared again; in an engine transaction, which is
        aborted, the whole of that has to be run again. ROLLBACK drops what psycopg
        prepared.
        """
        _check_number(parameters)
        self._drain()
        try:
            return self._run_once(sql, parameters, prepare, rows, keeping=keeping)
        except EngineError as error:
            if not is_outdated(error, prepare):
                raise
            if self._in_transaction and not self._keeps_snapshot:
                raise ConflictError(error.kind, str(error), "40001") from error
        self._deallocate()
        return self._run_once(sql, parameters, prepare, rows, keeping=keeping)

    def _deallocate(self) -> None:
        """Have every statement prepared anew."""
        # psycopg looks only at the result of a text that it has not seen before.
        self._deallocated += 1
        sql = f"DEALLOCATE ALL /* {self._deallocated} */"
        self._run_once(sql, None, prepare=False)

    def _run_once(
        self,
        sql: str,
        parameters: Sequence[Any] | None,
        prepare: bool | None,
        rows: Iterable[Row] | None = None,
        *,
        keeping: bool = False,
    ) -> psycopg.RawCursor[Row]:
        with self._running():
            cursor = self._connection.cursor(keeping=keeping)
            if rows is None:
                cursor.execute(sql, parameters, prepare=prepare)
            else:
                with cursor.copy(sql) as copy:
                    for row in rows:
                        copy.write_row(row)
        return cursor

    def _drain(self) -> None:
        """Read the last result into memory, as its connection is needed.

        An abandoned result is not read: it may be large.
        """
        stream, self._stream = self._stream, None
        if stream is not None:
            result = stream.reader()
            if result is not None:
                result.drain()
            stream.close()

    @override
    def read_ahead(self, most: int) -> bool:
        result = None if self._stream is None else self._stream.reader()
        return result is None or result.read_ahead(most)

    @override
    def end_abandoned(self) -> None:
        if self._stream is not None and self._stream.reader() is None:
            self._drain()

    @contextmanager
    def _running(self, *, fetches: bool = False) -> Iterator[None]:
        """Use the connection, which may be interrupted."""
        expires = self.expires
        if expires is not None and not self._is_own and time.monotonic() > expires:
            self.expires = None
            raise EngineError(
                ErrorKind.INTERRUPTED, "the statement has taken its time", "57014"
            )
        with self._guard:
            self._is_running = True
        try:
            if self._keeps_snapshot and not fetches:
                self._mark()
            with self._connection.running(fetches=fetches):
                yield
        finally:
            if self._connection.is_lost:
                self._presence.lost(self._connection)
            with self._guard:
                self._is_running = False

    def _mark(self) -> None:
        """Set the savepoint of a statement, anew; after one that failed go back to it."""
        failed = self._connection.wire.pgconn.transaction_status == _IN_ERROR
        first = f"ROLLBACK TO {MARK}; " if failed else ""
        with self._connection.running(fetches=True):
            text = f"{first}RELEASE {MARK}; SAVEPOINT {MARK}"
            self._connection.cursor().execute(text, prepare=False)

    def _ask(
        self,
        sql: str,
        parameters: Sequence[Any] | None = None,
        *,
        prepare: bool | None = None,
    ) -> list[Row]:
        """The rows of a query, as they can be written again."""
        return rows_of(self._run(sql, parameters, prepare=prepare, keeping=True))

    @override
    def change(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        return max(self._run(sql, parameters).rowcount, 0)

    @override
    def understands(self, sql: str) -> bool | None:
        self._drain()
        with self._running():
            problem = self._connection.problem(sql)
        if problem is None or problem.sqlstate in _NO_TYPE:
            return True
        if problem.sqlstate == _SYNTAX:
            return False
        raise translated(problem)

    @override
    def execute(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        *,
        wide: bool = False,
        keeping: bool = False,
    ) -> Result:
        if not wide:
            cursor = self._run(sql, parameters, keeping=keeping)
            with self._connection.running(fetches=True):
                return PostgreSQLResult(cursor)
        _check_number(parameters)
        self._drain()
        cursor = self._connection.cursor(keeping=keeping)
        tolerate(cursor)
        rows = cursor.stream(sql, parameters, size=PIECE)
        with self._running():
            # Errors of the statement show with the first row.
            first = list(islice(rows, 1))
        if not first:
            # psycopg forgets the columns that there would have been.
            return PostgreSQLResult(self._run(_without_rows(sql), parameters))
        fetching = partial(self._running, fetches=True)
        wire = self._connection.wire.pgconn
        self._stream = stream = Stream(wire, rows, fetching, self._may_cancel)
        return StreamedResult(cursor, first, stream)

    @override
    def execute_some(
        self,
        query: str,
        parameters: Sequence[Any],
        most: int,
        *,
        wide: bool = False,
        of: Table | None = None,
    ) -> Result:
        if not self._may_cancel():
            query = f"{query}\nLIMIT {most}"
        return self.execute(query, parameters, wide=wide, keeping=True)

    @override
    def shown(self, type_names: Sequence[str], rows: list[Row]) -> list[Row]:
        if not are_shown_otherwise(tuple(type_names)):
            return rows
        if self._showing is None:
            reader = self._connection.cursor()
            tolerate(reader)
            self._showing = Showing(reader)
        with self._connection.running(fetches=True):
            return self._showing.rows(type_names, rows)

    @override
    def shown_results(
        self, columns: Sequence[ResultColumn], rows: list[Row]
    ) -> list[Row]:
        return self.shown([kept_name(column.type) for column in columns], rows)

    def _may_cancel(self) -> bool:
        return not self.is_held or self._keeps_snapshot

    @override
    def explain(
        self, query: str, parameters: Sequence[Any] = (), options: Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        shown = f"({', '.join(options)}) " if options else ""
        lines = self._ask(f"EXPLAIN {shown}{query}", parameters)
        return [("plan", "\n".join(line for (line,) in lines))]

    @override
    def types_to_prepare(
        self, statement: str, declared: Sequence[str]
    ) -> Sequence[str]:
        types = f" ({', '.join(declared)})" if declared else ""
        self._run(f"PREPARE tique_prepared{types} AS {statement}", prepare=False)
        try:
            ((found,),) = self._ask(
                "SELECT array_to_json(parameter_types::TEXT[])::TEXT "
                "FROM pg_catalog.pg_prepared_statements WHERE name = 'tique_prepared'"
            )
        finally:
            self._run("DEALLOCATE tique_prepared", prepare=False)
        return tuple(json.loads(found))

    @override
    def typed(self, types: Sequence[str], expressions: Sequence[str]) -> Sequence[Any]:
        return typed_values(self._run, types, expressions)

    @override
    def parameter_types(self, parameters: Sequence[Any]) -> Sequence[Hashable]:
        if self._types is None:
            self._types = ParameterTypes(self._connection.cursor())
        with self._connection.running(fetches=True):
            return self._types.of(parameters)

    @override
    def hear(self, handler: Callable[[Notice], None]) -> None:
        def heard(found: psycopg.errors.Diagnostic) -> None:
            message = found.message_primary or ""
            if not _OWN.search(message):
                handler(
                    Notice(
                        found.severity or "",
                        found.severity_nonlocalized or "",
                        found.sqlstate or "",
                        message,
                        found.message_detail,
                        found.message_hint,
                    )
                )

        self._connection.wire.add_notice_handler(heard)

    @override
    def notify(self, messages: Sequence[tuple[str, str]]) -> None:
        channels, payloads = map(list, zip(*messages, strict=True))
        self.execute(
            "SELECT pg_catalog.pg_notify(_c, _p) "
            "FROM unnest(CAST($1 AS TEXT[]), CAST($2 AS TEXT[])) AS _m(_c, _p)",
            [channels, payloads],
        ).close()

    @override
    def width(self, query: str, parameters: Sequence[Any] = ()) -> int:
        return len(self.execute(_without_rows(query), parameters).columns)

    @override
    def forget_plans(self) -> None:
        # One whose results have other types by now would abort the transaction.
        self._drain()
        self._deallocate()

    @override
    def copy_in(
        self, sql: str, parts: Iterable[CopyPart], types: Sequence[int | str]
    ) -> None:
        self._drain()
        with self._running(), self._connection.cursor().copy(sql) as copy:
            if types:
                copy.set_types(types)
            for part in parts:
                if isinstance(part, tuple):
                    copy.write_row(part)
                else:
                    copy.write(part)

    @override
    def copy_out(
        self, sql: str, types: Sequence[int | str] | None
    ) -> tuple[list[CopyPart], int]:
        self._drain()
        cursor = self._connection.cursor()
        with self._running(), cursor.copy(sql) as copy:
            found: list[CopyPart]
            if types is None:
                found = [bytes(piece) for piece in copy]
            else:
                if types:
                    copy.set_types(types)
                found = list(copy.rows())
        return found, cursor.rowcount

    @override
    def interrupt(self) -> None:
        with self._guard:
            if self._is_running:
                self._connection.interrupt()

    @property
    def _is_own(self) -> bool:
        """Whether what runs is tique's own, which no time-out of the application's ends."""
        return self._in_transaction and not self._keeps_snapshot

    @override
    def expire(self, moment: float) -> None:
        with self._guard:
            if self._is_running and self.expires == moment and not self._is_own:
                self.expires = None
                self._connection.interrupt()

    @override
    def close(self) -> None:
        self._stream = None
        self._connection.close()


def _check_number(parameters: Sequence[Any] | None) -> None:
    if parameters is not None and len(parameters) > MOST_PARAMETERS:
        raise EngineError(
            ErrorKind.OPERATIONAL,
            f"PostgreSQL takes {MOST_PARAMETERS:,} parameters in a statement, not "
            f"{len(parameters):,}: pass the values as a list, as in id = ANY (%s), or "
            "write rows with executemany()",
            "54000",
        )


def _without_rows(query: str) -> str:
    return f"SELECT * FROM (\n{query}\n) AS _w LIMIT 0"
