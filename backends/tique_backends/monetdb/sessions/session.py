"""One MonetDB connection, used by one thread at a time.

Conflicts
---------
MonetDB aborts a transaction that touches a table in which another one inserted,
deleted or updated meanwhile, even other rows. Measured on 11.41.14 with an appender and
a logger against a fold and a prune ten times a second: with ``START TRANSACTION`` the
fold practically never commits; with ``ISOLATION LEVEL SNAPSHOT``, which is all that
the protocol asks for, it always did, and one in a hundred appends was aborted.

These are run again, which is safe:

* an append outside a transaction (:meth:`MonetDBSession.log`, ``append``,
  ``append_staged``): one statement. A conflict is the engine's own word that nothing
  of it was committed;
* :meth:`MonetDBSession.transact`: the whole body, which reads all that it needs again;
* a transaction of the caller's that consists of appends only: their texts do not
  depend on anything that the transaction read but this session's own temporary
  tables, so they are sent once more.

Only a conflict is a reason. When a connection is lost during COMMIT its outcome is not
known: the error surfaces, and the driver looks for the commit record.

Temporary tables
----------------
A rollback of a transaction that has made a local temporary table leaves the catalog of
11.41's session unreadable (README.md), also if the table was dropped before it. So the session
goes on with another connection then, and says that it :attr:`~MonetDBSession.is_lost`: what
the old one had, such as other temporary tables, is gone.
"""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager, suppress
from datetime import timedelta, timezone
from typing import TYPE_CHECKING, Any, TypeVar

from typing_extensions import override

from tique_backends.concurrency.retrying import insist, persist
from tique_backends.errors import ConflictError, EngineError, ErrorKind, speaking_of
from tique_backends.monetdb.catalog.paths import setting_schema
from tique_backends.monetdb.forms import (
    key_condition,
    key_literals,
    known_rows,
    still_there,
    storage_query,
)
from tique_backends.monetdb.log import NOW, encode_commits
from tique_backends.monetdb.names import stage_columns, stage_name
from tique_backends.monetdb.sessions.connection import NO_RESULT
from tique_backends.monetdb.sessions.reply import Reply, read_reply
from tique_backends.monetdb.sessions.results import MonetDBResult, read_table
from tique_backends.monetdb.values.inserting import insert
from tique_backends.monetdb.values.literals import quoted, substituted
from tique_backends.monetdb.values.text_values import are_shown_otherwise, shown_rows
from tique_backends.monetdb.values.types import INTEGERS
from tique_backends.names import (
    cache_name,
    key_list,
    storage_name,
)
from tique_backends.records import CommitRecord, ResultColumn, Row, Versions
from tique_backends.rows.arrow_rows import ArrowRows
from tique_backends.rows.gaps import widened
from tique_backends.servers.server_forms import appending_staged, listed_equality
from tique_backends.session import COMMIT, Result, Session
from tique_backends.settings import SEARCH_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tique_backends.monetdb.sessions.connection import Connection, Rest
    from tique_backends.monetdb.sessions.owner import Ownership
    from tique_backends.rows.ranges import RangeRows
    from tique_rewriter.schema import Table

_Outcome = TypeVar("_Outcome")

BEGIN = "START TRANSACTION ISOLATION LEVEL SNAPSHOT"

_WIDE, _NARROW = "default_pipe", "sequential_pipe"
"""MonetDB's optimizers: one cuts a statement into pieces for all cores, which costs it
a millisecond and, with many sessions, the other sessions' time; the other does not."""


class MonetDBSession(Session):
    """A connection with its own engine transaction and its own staging tables."""

    def __init__(self, connection: Connection, ownership: Ownership) -> None:
        self._connection = connection
        self._ownership = ownership
        self._in_transaction = False
        self._appends: list[str] | None = None
        """The transaction's statements, as long as it only appended."""
        self._guard = threading.Lock()
        self._is_running = False
        self._is_stopped = False
        self._is_wide = False
        self._unread: deque[int] = deque()
        """Numbers of results that the server keeps without a reader."""
        self._first_zone: timedelta | None = None
        """The time zone with which the session began, if it was changed."""
        self._zone: timezone | None = None
        """The time zone that it has, if it was asked for."""
        self._first_schema: str | None = None
        """The schema with which the session began, if it was changed."""
        self._given: dict[str, str] = {}
        """The statements that gave it its settings, by name."""
        self._has_made_temporary = False
        """Whether the open transaction has made a temporary table, dropped or not."""
        self._stages: set[str] = set()
        """The staging tables that are there."""
        self._is_another = False
        """Whether it went on with another connection."""
        connection.ask(_optimizer(_NARROW))

    @property
    @override
    def is_lost(self) -> bool:
        return self._connection.is_lost or self._is_another

    def _ask(self, sql: str, *, wide: bool = False) -> Reply:
        return read_reply(self._ask_text(sql, wide=wide))

    def _ask_text(
        self, sql: str, *, wide: bool = False, once: bool = True, whole: bool = True
    ) -> str:
        with self._running(wide=wide):
            return self._connection.ask_text(sql, once=once, whole=whole)

    @contextmanager
    def _running(self, *, wide: bool) -> Iterator[None]:
        """Run a statement, which may be stopped, under the optimizer that suits it."""
        with self._guard:
            self._is_running = True
        try:
            self._forget_unread()
            if wide != self._is_wide:
                self._connection.ask_text(_optimizer(_WIDE if wide else _NARROW))
                self._is_wide = wide
            yield
        finally:
            with self._guard:
                self._is_running = False
                if self._is_stopped and self._connection.is_open:
                    self._is_stopped = False
                    self._ownership.let_run(self._connection.session_id)
            if self._connection.is_lost:
                self._ownership.lost(self._connection)

    def _forget_unread(self) -> None:
        while self._unread:
            self._connection.forget(self._unread.popleft())

    def _run(self, sql: str, *, wide: bool = False) -> Reply:
        """Send a statement after which a transaction cannot be sent once more."""
        return read_reply(self._run_text(sql, wide=wide))

    def _run_text(self, sql: str, *, wide: bool = False, whole: bool = True) -> str:
        self._appends = None
        once = self._in_transaction
        return self._ask_text(sql, wide=wide, once=once, whole=whole)

    def _append(self, statement: str) -> int:
        """Run an append; returns its number of rows."""
        if not self._in_transaction:
            return persist(lambda: self._ask(statement).count)
        count = self._ask(statement).count
        if self._appends is not None:
            self._appends.append(statement)
        return count

    @override
    def transact(self, body: Callable[[], _Outcome], ending: str = COMMIT) -> _Outcome:
        def commit() -> None:
            # The whole body is run again, rather than what it appended.
            self._appends = None
            self.commit(ending)

        return self._transact(self.begin, body, commit)

    @override
    def execute(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        *,
        wide: bool = False,
        keeping: bool = False,
    ) -> Result:
        text = self._run_text(substituted(sql, parameters), wide=wide, whole=False)
        if not text:
            # Even of a definition it says that it was done.
            raise EngineError(ErrorKind.INTERNAL, NO_RESULT)
        return MonetDBResult(text, self._read_more, self._unread, keeping=keeping)

    def _read_more(self, rest: Rest) -> str:
        with self._running(wide=self._is_wide):
            return self._connection.more(rest)

    @override
    def end_abandoned(self) -> None:
        if self._unread:
            self._forget_unread()

    @override
    def change(
        self, sql: str, parameters: Sequence[Any] = (), *, wide: bool = False
    ) -> int:
        # Many have their values in them already.
        text = substituted(sql, parameters) if parameters else sql
        return self._run(text, wide=wide).count

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
        # All rows come with the reply.
        limited = f"{query}\nLIMIT {most}"
        return self.execute(limited, parameters, wide=wide, keeping=True)

    @override
    def typed(self, types: Sequence[str], expressions: Sequence[str]) -> Sequence[Any]:
        # A parameter is of the type that goes with its Python type.
        return self.execute(f"SELECT {', '.join(expressions)}").fetch_all()[0]

    @override
    def explain(
        self, query: str, parameters: Sequence[Any] = (), options: Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        verb, kind = ("PLAN", "plan") if "PLAN" in options else ("EXPLAIN", "MAL")
        lines = self._run(f"{verb} {substituted(query, parameters)}", wide=True).rows
        return [(kind, "\n".join(str(line) for (line,) in lines))]

    @override
    def maintain(self, text: str) -> None:
        # The server says nothing when it is done.
        self._run(text)

    @override
    def assign(self, name: str, value: str | None) -> None:
        if name == SEARCH_PATH:
            self._assign_schema(value)
            return
        self.is_as_opened = False
        if self._first_zone is None:
            self._first_zone = self._current_zone()
        if value is None:
            zone = f"INTERVAL '{int(self._first_zone.total_seconds())}' SECOND"
        else:
            zone = f"{value} HOUR TO MINUTE"
        statement = f"SET TIME ZONE {zone}"
        self._run(statement)
        self._zone, self._given[name] = None, statement

    def _assign_schema(self, schema: str | None) -> None:
        """Look for names in another schema; None is the first one."""
        if self._first_schema is None:
            ((self._first_schema,),) = self._run("SELECT CURRENT_SCHEMA").rows
        assert self._first_schema is not None
        statement = setting_schema(
            self, self._first_schema if schema is None else schema
        )
        self.is_as_opened = False
        self._run(statement)
        self._given[SEARCH_PATH] = statement

    def _current_zone(self) -> timedelta:
        ((offset,),) = self._run("SELECT current_timezone").rows
        assert isinstance(offset, timedelta)
        return offset

    @override
    def shown(self, type_names: Sequence[str], rows: list[Row]) -> list[Row]:
        if not are_shown_otherwise(tuple(type_names)):
            return rows
        return shown_rows(type_names, rows, self._zone_now)

    def _zone_now(self) -> timezone:
        if self._zone is None:
            self._zone = timezone(self._current_zone())
        return self._zone

    @override
    def width(self, query: str, parameters: Sequence[Any] = ()) -> int:
        return len(self.result_names(query, parameters))

    @override
    def result_names(self, query: str, parameters: Sequence[Any] = ()) -> list[str]:
        self._appends = None
        with self._running(wide=False):
            text = self._connection.describe(substituted(query, parameters))
        # Parameters are described too: by their types alone.
        return [column for *_, column in read_reply(text).rows if column is not None]

    @override
    def begin(self) -> None:
        # Its reply may get lost.
        self._in_transaction = True
        self._appends = []
        self._ask(BEGIN)

    @override
    def commit(self, ending: str = COMMIT) -> None:
        self._in_transaction = False
        appends, self._appends = self._appends, None
        try:
            self._finish(ending)
        except ConflictError:
            if not appends:
                raise
            persist(lambda: self._repeat(appends, ending))

    def _finish(self, ending: str) -> None:
        try:
            # After a statement that failed MonetDB goes on, but does not commit.
            self._ask(ending)
            self._has_made_temporary = False
        except EngineError:
            # MonetDB has rolled back itself, and says so; any other error must not
            # leave a transaction open.
            with suppress(EngineError):
                insist(lambda: self._ask("ROLLBACK", wide=self._is_wide))
            self._go_on_readably()
            raise

    def _repeat(self, appends: Sequence[str], ending: str) -> None:
        self._ask(BEGIN)
        try:
            for statement in appends:
                self._ask(statement)
        except BaseException:
            with suppress(EngineError):
                insist(lambda: self._ask("ROLLBACK", wide=self._is_wide))
            raise
        self._finish(ending)

    @override
    def rollback(self) -> None:
        if self._in_transaction:
            self._in_transaction = False
            # In an aborted transaction the optimizer cannot be changed.
            insist(lambda: self._run("ROLLBACK", wide=self._is_wide))
            self._go_on_readably()

    def _go_on_readably(self) -> None:
        """Go on with another connection, if a rollback made this one's catalog unreadable."""
        if not self._has_made_temporary or not self._connection.is_open:
            return
        self._has_made_temporary = False
        self._stages.clear()
        self._is_another = True
        old = self._connection
        with self._guard:
            old.close()
            self._unread.clear()
            self._connection = self._ownership.connect()
            self._is_wide = False
        self._connection.ask(_optimizer(_NARROW))
        for statement in self._given.values():
            self._connection.ask(statement)

    @override
    def create_temporary(self, place: str, layout: str, condition: str = "") -> None:
        # Before it: the reply may get lost.
        self._has_made_temporary = self._has_made_temporary or self._in_transaction
        self._run(
            f"CREATE LOCAL TEMPORARY TABLE {condition}{place.partition('.')[2]} "
            f"({layout}) ON COMMIT PRESERVE ROWS"
        )

    @override
    def drop_temporary(self, place: str) -> None:
        self._run(f"DROP TABLE IF EXISTS {place}")

    @override
    def read_row(
        self, table: Table, key: Row, columns: Sequence[int] | None = None
    ) -> Row | None:
        read = tuple(range(len(table.columns)) if columns is None else columns)
        # A row may be wanted for its being there only.
        read = read or table.primary_key
        rows = read_reply(self._read(table, read, key), keeping=True).rows
        return widened(table, read, rows[0]) if rows else None

    @override
    def _stored_rows(
        self, table: Table, keys: Sequence[Row], read: Sequence[int]
    ) -> Sequence[Row]:
        *fixed, last = table.primary_key
        prefix = keys[0][:-1]
        if table.columns[last].type in INTEGERS and all(k[:-1] == prefix for k in keys):
            items = ", ".join(str(int(key[-1])) for key in keys)
            matches = [f"{key_list(table, [last])} IN ({items})"]
            if fixed:
                matches.insert(0, key_condition(table, key_literals(table, prefix)))
            sql = storage_query(table, read, " AND ".join(matches))
        else:
            wanted = known_rows(table, table.primary_key, keys, "_x")
            sql = (
                f"SELECT {key_list(table, read, '_s.')} FROM {storage_name(table)} AS "
                f"_s JOIN {wanted} ON {listed_equality(table, table.primary_key)} "
                f"WHERE TRUE{still_there(table)}"
            )
        return read_reply(self._run_text(sql), keeping=True).rows

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
        # MonetDB 11.41 refuses LIMIT 0.
        end = " AND FALSE" if limit == 0 else "" if limit is None else f" LIMIT {limit}"
        ranged = table.columns[table.primary_key[len(prefix)]]
        largest = (1 << INTEGERS[ranged.type] - 1) - 1
        between = max(first, -largest), min(last, largest)
        text = self._read(table, columns, prefix, between, end)
        names = [table.columns[i] for i in columns]
        shape = [ResultColumn(column.name, column.type) for column in names]
        return ArrowRows(read_table(text, shape))

    def _read(
        self,
        table: Table,
        columns: Sequence[int],
        key: Row,
        between: tuple[int, int] | None = None,
        end: str = "",
    ) -> str:
        """Read storage rows by a part of their key, and a range of the column after it."""
        types = {table.columns[i].type for i in table.primary_key[: len(key)]}
        if self._in_transaction or not types <= INTEGERS.keys():
            # EXEC refuses values too long for a column, where text is just not found.
            condition = key_condition(table, key_literals(table, key), between)
            return self._run_text(storage_query(table, columns, condition) + end)
        self._appends = None
        condition = key_condition(table, ["?"] * len(key), between and ("?", "?"))
        with self._running(wide=False):
            return self._connection.ask_prepared(
                storage_query(table, columns, condition) + end,
                [str(int(value)) for value in (*key, *(between or ()))],
            )

    @override
    def append(self, versions: Versions) -> None:
        if versions.rows:
            self._append(_insert(cache_name(versions.table), versions))

    @override
    def newest_version(self, table: Table) -> int:
        # The caller may have lost the connection over which it appended.
        self._ownership.await_lost()
        return super().newest_version(table)

    @override
    def append_staged(self, table: Table, cts: int) -> int:
        return self._append(appending_staged(table, stage_name(table), cts))

    @override
    def log(self, commits: Sequence[CommitRecord]) -> None:
        entry = quoted(encode_commits(commits))
        self._append(
            f"INSERT INTO tique.log VALUES ({commits[-1].cts}, {NOW}, {entry})"
        )

    @override
    def create_stage(self, table: Table) -> None:
        place = stage_name(table)
        if place in self._stages:
            # Its rows may be back, by a rollback.
            self.drop_stage(table)
            return
        # It is there if the session was interrupted when it had made it.
        self.create_temporary(place, stage_columns(table), "IF NOT EXISTS ")
        self._stages.add(place)

    @override
    def stage(self, versions: Versions) -> None:
        place = stage_name(versions.table)
        if versions.rows:
            with speaking_of(versions.table, place):
                self._append(_insert(place, versions))

    @override
    def stage_query(self, table: Table, query: str, parameters: Sequence[Any]) -> int:
        place = stage_name(table)
        statement = f"INSERT INTO {place} {substituted(query, parameters)}"
        self._appends = None
        if self._in_transaction:
            with speaking_of(table, place):
                return self._ask(statement, wide=True).count
        # By itself it would be aborted by transactions that change the rows it reads.
        text = "; ".join((BEGIN, statement, COMMIT))

        def attempt() -> int:
            try:
                return self._ask(text, wide=True).count
            except EngineError:
                with suppress(EngineError):
                    insist(lambda: self._ask("ROLLBACK", wide=self._is_wide))
                raise

        with speaking_of(table, place):
            return persist(attempt)

    @override
    def unstage(self, table: Table, after: int) -> None:
        self._run(f"DELETE FROM {stage_name(table)} WHERE _sequence > {after}")

    @override
    def drop_stage(self, table: Table) -> None:
        # While an engine transaction lasts long, as an uncommitted fold's does, MonetDB
        # fails to drop temporary tables at times (HY013, also when it is asked again).
        # So the session keeps them.
        place = stage_name(table)
        if place in self._stages:
            self._run(f"TRUNCATE TABLE {place}")

    @override
    def interrupt(self) -> None:
        with self._guard:
            if self._is_running:
                self._is_stopped = True
                self._ownership.stop(self._connection.session_id)

    @override
    def close(self) -> None:
        self._connection.close()


def _optimizer(name: str) -> str:
    return f"SET optimizer = '{name}'"


def _insert(target: str, versions: Versions) -> str:
    """A statement that inserts versions into a cache or staging table."""
    rows = [
        (*row, stamp, bool(deleted))
        for row, stamp, deleted in zip(
            versions.rows, versions.stamps, versions.deleted, strict=True
        )
    ]
    return insert(target, rows, [*versions.table.types, "BIGINT", "BOOLEAN"])
