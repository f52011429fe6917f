"""One PostgreSQL connection, used by one thread at a time."""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from tique_backends.errors import (
    ConflictError,
    ConnectionLostError,
    EngineError,
    ErrorKind,
)
from tique_backends.gaps import widened
from tique_backends.names import cache_name, column_list, key_list, quote, storage_name
from tique_backends.postgresql.bounds import STORED
from tique_backends.postgresql.connection import SETTINGS, rows_of, tolerate
from tique_backends.postgresql.errors import is_outdated, translated
from tique_backends.postgresql.index_guards import IndexGuards
from tique_backends.postgresql.keeping import Showing, are_shown_otherwise, kept_name
from tique_backends.postgresql.log import NOW, encode_content
from tique_backends.postgresql.names import stage_name
from tique_backends.postgresql.parameters import ParameterTypes, typed_values
from tique_backends.postgresql.paths import USER, without_user
from tique_backends.postgresql.reading import range_query, row_query, rows_query
from tique_backends.postgresql.results import (
    PIECE,
    PostgreSQLResult,
    Stream,
    StreamedResult,
)
from tique_backends.postgresql.settings import TIMEOUTS
from tique_backends.postgresql.text_rows import TextRows
from tique_backends.records import (
    CommitRecord,
    CopyPart,
    Notice,
    ResultColumn,
    Row,
    Versions,
)
from tique_backends.retrying import insist, persist
from tique_backends.server_forms import newest
from tique_backends.session import Result, Session
from tique_backends.settings import SEARCH_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence

    import psycopg

    from tique_backends.postgresql.connection import Connection
    from tique_backends.postgresql.presence import Presence
    from tique_backends.ranges import RangeRows
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

COMMIT = "COMMIT"

_OWN = re.compile('tique_|schema "pg_temp"')
"""In notices of tique's own statements, which drop what may not be there."""

_MISMATCH = "42804"
_SYNTAX = "42601"
_NO_TYPE = ("42P18", "42P08")
"""A placeholder's type is not clear: the statement is."""

_INCOMING = "tique_incoming"

LOCK_PATIENCE = "5s"
"""How long DDL waits for a lock of PostgreSQL's."""

FOLD_PATIENCE = "100ms"
"""How long an uncommitted fold waits for one: less than until PostgreSQL looks for
deadlocks, so that it is the one that gives up."""

MOST_PARAMETERS = 65_535
"""In the protocol their number is of 16 bits."""


class PostgreSQLSession(Session):
    """A connection with its own engine transaction and its own staging tables."""

    def __init__(self, connection: Connection, presence: Presence) -> None:
        self._connection = connection
        self._presence = presence
        self._in_transaction = False
        self._stream: Stream | None = None
        self._guard = threading.Lock()
        self._is_running = False
        self._showing: Showing | None = None
        self._types: ParameterTypes | None = None
        self._timeouts: dict[str, str] = {}
        """The application's own, which tique's statements are not under."""
        self._is_unhurried = False
        self._deallocated = 0
        self._first_path: str | None = None
        """The search path that it began with, if it was changed."""
        self.guards = IndexGuards(self._ask, self._run)

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
            if self._in_transaction:
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
    def end_abandoned(self) -> None:
        if self._stream is not None and self._stream.reader() is None:
            self._drain()

    @contextmanager
    def _running(self, *, fetches: bool = False) -> Iterator[None]:
        """Use the connection, which may be interrupted."""
        with self._guard:
            self._is_running = True
        try:
            with self._connection.running(fetches=fetches):
                yield
        finally:
            if self._connection.is_lost:
                self._presence.lost(self._connection)
            with self._guard:
                self._is_running = False

    def _ask(
        self,
        sql: str,
        parameters: Sequence[Any] | None = None,
        *,
        prepare: bool | None = None,
    ) -> list[Row]:
        """The rows of a query, as they can be written again."""
        return rows_of(self._run(sql, parameters, prepare=prepare, keeping=True))

    def change(self, sql: str, parameters: Sequence[Any] | None = None) -> int:
        """Run a statement; returns its number of rows."""
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
        self, sql: str, parameters: Sequence[Any] = (), *, wide: bool = False
    ) -> Result:
        return self._execute(sql, parameters, wide=wide)

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
        return self._execute(query, parameters, wide=wide, keeping=True)

    @override
    def rows_to_keep(
        self, query: str, parameters: Sequence[Any] = (), *, of: Table | None = None
    ) -> list[Row]:
        return self._execute(query, parameters, keeping=True).fetch_all()

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

    def _execute(
        self,
        sql: str,
        parameters: Sequence[Any],
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
        self._stream = stream = Stream(wire, rows, fetching)
        return StreamedResult(cursor, first, stream)

    @override
    def explain(
        self, query: str, parameters: Sequence[Any] = (), options: Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        shown = f"({', '.join(options)}) " if options else ""
        lines = self._ask(f"EXPLAIN {shown}{query}", parameters)
        return [("plan", "\n".join(line for (line,) in lines))]

    @override
    def assign(self, name: str, value: str | None) -> None:
        self.is_as_opened = False
        if name == SEARCH_PATH:
            self._assign_path(value)
            return
        usual = dict(SETTINGS).get(name) if value is None else value
        if usual is None:
            self._run(f"RESET {'.'.join(map(quote, name.split('.')))}")
        else:
            self._run("SELECT set_config($1, $2, FALSE)", [name, usual])
        # Loaders remember the time zone.
        self._showing = None
        if name in TIMEOUTS:
            self._timeouts.pop(name, None)
            if value is not None:
                self._timeouts[name] = value

    def _assign_path(self, value: str | None) -> None:
        """Look for names along another path; None is the first one."""
        if self._first_path is None:
            ((self._first_path,),) = self._ask(
                "SELECT pg_catalog.current_setting('search_path')"
            )
        path = self._first_path if value is None else value
        if USER in path:
            # For a role that is called tique it would be tique's own schema.
            ((role,),) = self._ask("SELECT current_user::TEXT")
            path = without_user(path, role)
        self._run("SELECT pg_catalog.set_config('search_path', $1, FALSE)", [path])
        # A text means other tables' columns, of other types, perhaps.
        self._deallocate()
        self._types = self._showing = None

    @override
    def show(self, name: str | None) -> Result:
        if name is None:
            return self._execute("SHOW ALL", ())
        return self._execute(f"SHOW {'.'.join(map(quote, name.split('.')))}", ())

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
    def discard(self, what: str) -> None:
        self._run(f"DISCARD {what}", prepare=False)

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
    def check_assigned(
        self,
        table: Table,
        columns: Sequence[int],
        query: str,
        parameters: Sequence[Any] = (),
    ) -> None:
        names = key_list(table, columns)
        try:
            self._run(
                f"EXPLAIN INSERT INTO {storage_name(table)} ({names}) "
                f"OVERRIDING SYSTEM VALUE {query}",
                parameters,
                prepare=False,
            )
        except ConnectionLostError:
            raise
        except EngineError as error:
            # The statement itself reports any other error better.
            if error.sqlstate == _MISMATCH or error.kind is ErrorKind.INTERRUPTED:
                raise

    @override
    def width(self, query: str, parameters: Sequence[Any] = ()) -> int:
        return len(self.execute(_without_rows(query), parameters).columns)

    def _without_timeouts(self, scope: str) -> str:
        """Statements after which the application's timeouts do not count."""
        return "".join(f"; SET {scope} {name} = 0" for name in self._timeouts)

    @override
    @contextmanager
    def unhurried(self) -> Iterator[None]:
        timeouts = self._timeouts
        if not timeouts or self._in_transaction or self._is_unhurried:
            yield
            return
        self._run(self._without_timeouts("SESSION")[2:])
        self._is_unhurried = True
        try:
            yield
        finally:
            self._is_unhurried = False
            # Another session gets the application's settings anew.
            if not self.is_lost:
                for name, value in timeouts.items():
                    self._run("SELECT set_config($1, $2, FALSE)", [name, value])

    @override
    def begin(self) -> None:
        self._begin(f"BEGIN{self._without_timeouts('LOCAL')}")

    def _begin(self, statement: str) -> None:
        # One may be left of which an interruption stopped the second half.
        self.rollback()
        self._in_transaction = True
        self._run(statement)

    @override
    def hold(self, aside: Session) -> None:
        super().hold(aside)
        # What it locks other clients wait for: it must not wait for long for them (P6).
        # And it lasts as long as the application's transaction does.
        self._run(
            f"SET LOCAL lock_timeout = '{LOCK_PATIENCE}'; "
            "SET LOCAL idle_in_transaction_session_timeout = 0"
        )

    @override
    def forget_plans(self) -> None:
        # One whose results have other types by now would abort the transaction.
        self._drain()
        self._deallocate()

    def begin_repeatable(self) -> None:
        """Start an engine transaction whose statements share one snapshot."""
        ending = self._without_timeouts("LOCAL")
        self._begin(f"BEGIN ISOLATION LEVEL REPEATABLE READ{ending}")

    @override
    def begin_uncommitted_fold(self) -> None:
        self.begin_repeatable()
        self._run(f"SET LOCAL lock_timeout = '{FOLD_PATIENCE}'")

    @override
    def commit(self, ending: str = COMMIT) -> None:
        """Commit durably; unless a statement before COMMIT in ``ending`` fails."""
        self._in_transaction = False
        try:
            cursor = self._run(ending)
        except EngineError:
            with suppress(EngineError):
                insist(lambda: self._run("ROLLBACK"))
            raise
        if ending == COMMIT and cursor.statusmessage == "ROLLBACK":
            raise EngineError(
                ErrorKind.OPERATIONAL, "a statement of the transaction had failed"
            )

    @override
    def rollback(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            insist(lambda: self._run("ROLLBACK"))

    @override
    def transact(self, body: Callable[[], _Outcome], ending: str = COMMIT) -> _Outcome:
        return self._transact(self.begin, body, ending)

    def transact_repeatable(self, body: Callable[[], _Outcome]) -> _Outcome:
        """As :meth:`transact`; the body's statements share one snapshot."""
        return self._transact(self.begin_repeatable, body, COMMIT)

    def _transact(
        self, begin: Callable[[], None], body: Callable[[], _Outcome], ending: str
    ) -> _Outcome:
        if self.aside is not None:
            return body()

        def attempt() -> _Outcome:
            try:
                begin()
                outcome = body()
                self.commit(ending)
            except BaseException:
                with suppress(EngineError):
                    self.rollback()
                raise
            return outcome

        return persist(attempt)

    @override
    def read_row(
        self, table: Table, key: Row, columns: Sequence[int] | None = None
    ) -> Row | None:
        read = tuple(range(len(table.columns)) if columns is None else columns)
        # A row may be wanted for its being there only.
        read = read or table.primary_key
        sql, parameters = row_query(table, read, key)
        rows = self._ask(sql, parameters, prepare=True)
        return widened(table, read, rows[0]) if rows else None

    @override
    def read_rows(
        self, table: Table, keys: Sequence[Row], columns: Sequence[int] | None = None
    ) -> dict[Row, Row]:
        if not keys:
            return {}
        read = tuple(range(len(table.columns)))
        if columns is not None:
            read = tuple(sorted({*columns, *table.primary_key}))
        sql, parameters = rows_query(table, read, keys)
        rows = self._ask(sql, parameters, prepare=True)
        found = [widened(table, read, row) for row in rows]
        return {tuple([row[i] for i in table.primary_key]): row for row in found}

    @override
    def read_range(
        self,
        table: Table,
        prefix: Row,
        first: int,
        last: int,
        columns: Sequence[int],
        limit: int | None = None,
    ) -> RangeRows:
        sql, parameters = range_query(table, columns, prefix, first, last)
        end = "" if limit is None else f" LIMIT {limit}"
        cursor = self._run(sql + end, parameters, prepare=True, keeping=True)
        assert cursor.pgresult is not None
        return TextRows(cursor.pgresult, cursor)

    @override
    def append(self, versions: Versions) -> None:
        if versions.rows:
            self._append(versions, cache_name(versions.table), "_cts")

    def _append(self, versions: Versions, target: str, stamp: str) -> None:
        stamped = zip(versions.rows, versions.stamps, versions.deleted, strict=True)
        # Of one row too it is the fastest way.
        self._run(
            f"COPY {target} ({column_list(versions.table)}, {stamp}, _deleted) FROM STDIN",
            rows=((*row, stamp, bool(deleted)) for row, stamp, deleted in stamped),
        )

    @override
    def newest_version(self, table: Table) -> int:
        # The caller may have lost the connection over which it appended.
        self._presence.await_lost()
        rows = self._ask(f"SELECT coalesce(max(_cts), 0) FROM {cache_name(table)}")
        return int(rows[0][0])

    @override
    def append_staged(self, table: Table, cts: int) -> int:
        source = stage_name(table)
        latest = ""
        if not table.is_keyless:
            latest = f" WHERE {newest(table, source, '_sequence', '_n')}"
        return self.change(
            f"INSERT INTO {cache_name(table)} SELECT {column_list(table, '_n.')}, "
            f"{cts}, _n._deleted FROM {source} AS _n{latest}"
        )

    @override
    def log(self, commits: Sequence[CommitRecord]) -> None:
        self._run(
            f"INSERT INTO tique.log SELECT _c, _t, {NOW}, _e FROM unnest("
            "CAST($1 AS BIGINT[]), CAST($2 AS BIGINT[]), CAST($3 AS TEXT[])) "
            "AS _n(_c, _t, _e)",
            [
                [commit.cts for commit in commits],
                [commit.txid for commit in commits],
                [encode_content(commit) for commit in commits],
            ],
        )

    @override
    def create_stage(self, table: Table) -> None:
        # NOT NULL and CHECK are the engine's: a statement that breaks them fails here.
        # There may be one whose removal was interrupted.
        self.drop_stage(table)
        self._run(
            f"CREATE TEMPORARY TABLE {stage_name(table).partition('.')[2]} "
            f"(LIKE {storage_name(table)} INCLUDING CONSTRAINTS INCLUDING GENERATED "
            f"{STORED}, "
            "_sequence BIGINT NOT NULL, _deleted BOOLEAN NOT NULL)"
        )

    @override
    def create_incoming(self, table: Table) -> str:
        self.drop_incoming()
        self._run(
            f"CREATE TEMPORARY TABLE {_INCOMING} "
            f"(LIKE {storage_name(table)} INCLUDING DEFAULTS INCLUDING GENERATED)"
        )
        return f"pg_temp.{_INCOMING}"

    @override
    def drop_incoming(self) -> None:
        self._run(f"DROP TABLE IF EXISTS pg_temp.{_INCOMING}")

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
    def guard_stage(self, table: Table) -> None:
        self.guards.add(table, stage_name(table))

    @override
    def stage(self, versions: Versions) -> None:
        if versions.rows:
            with self.guards.named():
                self._append(versions, stage_name(versions.table), "_sequence")

    @override
    def stage_query(self, table: Table, query: str, parameters: Sequence[Any]) -> int:
        with self.guards.named():
            columns = f"{column_list(table)}, _sequence, _deleted"
            return self.change(
                f"INSERT INTO {stage_name(table)} ({columns}) {query}", parameters
            )

    @override
    def unstage(self, table: Table, after: int) -> None:
        with self.unhurried():
            self._run(f"DELETE FROM {stage_name(table)} WHERE _sequence > {after}")

    @override
    def drop_stage(self, table: Table) -> None:
        with self.unhurried():
            self._run(f"DROP TABLE IF EXISTS {stage_name(table)}")

    @override
    def interrupt(self) -> None:
        with self._guard:
            if self._is_running:
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
