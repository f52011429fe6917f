"""One DuckDB connection, used by one thread at a time.

Appends go through Arrow: a relation's ``insert_into`` costs about a
millisecond for one row or for a thousand, and no value ever becomes SQL text.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import duckdb
from typing_extensions import override

from tique_backends.concurrency.retrying import insist
from tique_backends.duckdb.catalog.paths import check_path
from tique_backends.duckdb.errors import translated, translating
from tique_backends.duckdb.forms import (
    every_column,
    newest_in_order,
    range_query,
    row_query,
    rows_query,
    stage_name,
    staged_checks,
    staged_columns,
    staged_generated,
    with_keys,
)
from tique_backends.duckdb.log import encode_commits
from tique_backends.duckdb.sessions.results import (
    DuckDBResult,
    Stream,
    name_in,
    naming,
    to_arrow,
)
from tique_backends.duckdb.values.arrow import arrow_table, has_arrow_type
from tique_backends.duckdb.values.text_values import (
    are_shown_otherwise,
    has_kept_text,
    keeping,
    moments_shown,
    showing,
    with_shown,
)
from tique_backends.errors import EngineError, ErrorKind, speaking_of
from tique_backends.names import (
    cache_name,
    column_list,
    history_name,
    key_equality,
    quote,
    storage_name,
)
from tique_backends.records import ResultColumn
from tique_backends.rows.arrow_rows import ArrowRows
from tique_backends.rows.gaps import widened
from tique_backends.session import COMMIT, Result, Session
from tique_backends.settings import SEARCH_PATH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import tzinfo

    import pyarrow

    from tique_backends.duckdb.values.zones import Zones
    from tique_backends.records import (
        CommitRecord,
        Images,
        Row,
        Statistics,
        Versions,
    )
    from tique_backends.rows.ranges import RangeRows
    from tique_rewriter.schema import Table

_INCOMING, _WHOLE = "tique_incoming", "tique_whole"


class DuckDBSession(Session):
    """A cursor of the database's one instance, with its own engine transaction."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        statistics: Statistics,
        zones: Zones,
    ) -> None:
        self._zones = zones
        self._path: str | None = None
        """The search path, if it has one of its own."""
        self._has_path = True
        """Whether the engine knows that."""
        self._zone: tzinfo | None = None
        """The time zone that it has, if it was asked for."""
        self._connection = connection
        self._statistics = statistics
        self._stream: Stream | None = None
        self._in_transaction = False
        # DuckDB 2.0 wants an execute()'s result ended before a relation is used.
        self._complete: Callable[[], None] = getattr(
            connection, "complete", lambda: None
        )

    def _drain(self) -> None:
        """Read the last result into memory, as its connection is needed.

        An abandoned result is not read: the next statement ends it.
        """
        stream, self._stream = self._stream, None
        if stream is not None and stream.is_open:
            result = stream.reader()
            if result is not None:
                result.drain()

    @override
    def read_ahead(self, most: int) -> bool:
        stream = self._stream
        result = stream.reader() if stream is not None and stream.is_open else None
        return result is None or result.read_ahead(most)

    @override
    def end_abandoned(self) -> None:
        stream = self._stream
        if stream is not None and stream.reader() is None:
            self._stream = None
            stream.close()

    def _make_way(self) -> None:
        """End the last result, before rows are written that come in Arrow's form."""
        self.end_abandoned()
        self._drain()
        # All results are at their end but one that failed, whose error was raised.
        with suppress(duckdb.Error):
            self._complete()

    def _run(self, statement: str, parameters: Sequence[Any]) -> None:
        self._drain()
        started = time.perf_counter()
        try:
            if parameters:
                self._connection.execute(statement, parameters)
            else:
                self._connection.execute(statement)
        except Exception as error:
            raise translated(error) from error
        finally:
            statistics = self._statistics
            statistics.statements += 1
            statistics.seconds += time.perf_counter() - started

    @override
    def execute(
        self,
        sql: str,
        parameters: Sequence[Any] = (),
        *,
        wide: bool = False,
        keeping: bool = False,
    ) -> Result:
        self._run(sql, parameters)
        self._stream = stream = Stream(self._connection)
        return DuckDBResult(stream)

    @override
    def explain(
        self, query: str, parameters: Sequence[Any] = (), options: Sequence[str] = ()
    ) -> list[tuple[str, str]]:
        shown = f"({', '.join(options)}) " if options else ""
        found = self.execute(f"EXPLAIN {shown}{query}", parameters).fetch_all()
        return [(str(name), str(text)) for name, text in found]

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
        if of is None or not has_kept_text(of):
            return self.execute(query, parameters, wide=wide)
        described = self.execute(f"DESCRIBE {query}", parameters).fetch_all()
        types = [row[1] for row in described]
        result = self.execute(keeping(query, types), parameters, wide=wide)
        result.columns = [ResultColumn(row[0], row[1]) for row in described]
        return result

    @override
    def rows_to_keep(
        self, query: str, parameters: Sequence[Any] = (), *, of: Table | None = None
    ) -> list[Row]:
        return self.execute_some(query, parameters, 0, of=of).fetch_all()

    @override
    def shown(self, type_names: Sequence[str], rows: list[Row]) -> list[Row]:
        if not are_shown_otherwise(tuple(type_names)):
            return rows
        # A time of day has an offset of its own.
        marker = "TIMESTAMP WITH TIME ZONE"
        rows = moments_shown(type_names, rows, self._zone_now)
        rows = self._zones.shown(type_names, rows, marker, self._zone_now)
        query, positions = showing(type_names, rows)
        if not positions:
            return rows
        return with_shown(rows, positions, self.execute(query).fetch_all())

    def _zone_now(self) -> tzinfo:
        if self._zone is None:
            moment = "SELECT TIMESTAMPTZ '2000-01-01 00:00:00+00'"
            ((shown,),) = self.execute(moment).fetch_all()
            self._zone = shown.tzinfo
            assert self._zone is not None
        return self._zone

    @override
    def assign(self, name: str, value: str | None) -> None:
        if name == SEARCH_PATH:
            if value is not None:
                check_path(self, value)
            self._path, before = value, self._path
            try:
                self._give_path()
            except BaseException:
                self._path = before
                raise
            return
        self.is_as_opened = False
        if name == "timezone":
            self._zones.differ = True
            self._zone = None
        if value is None:
            self._run(f"RESET {quote(name)}", ())
        else:
            text = value.replace("'", "''")
            self._run(f"SET {quote(name)} = '{text}'", ())

    def _give_path(self) -> None:
        self.is_as_opened = False
        text = "RESET search_path"
        if self._path is not None:
            path = self._path.replace("'", "''")
            text = f"SET search_path = '{path}'"
        self._run(text, ())
        self._has_path = True

    @contextmanager
    def without_path(self) -> Iterator[None]:
        """Look for names where a new session does."""
        if self._path is None:
            yield
            return
        # As it is written by now: with the database's name, perhaps.
        ((self._path,),) = self.execute(
            "SELECT system.main.current_setting('search_path')"
        ).fetch_all()
        self._has_path = False
        self._run("RESET search_path", ())
        try:
            yield
        finally:
            # In an engine transaction that has failed it comes back with the rollback.
            with suppress(EngineError):
                self._give_path()

    @override
    def show(self, name: str | None) -> Result:
        return self.execute(f"SHOW {'ALL' if name is None else quote(name)}")

    @override
    def types_to_prepare(
        self, statement: str, declared: Sequence[str]
    ) -> Sequence[str]:
        if declared:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                "PREPARE with types is not supported by DuckDB: use CAST in the statement",
            )
        return ()

    @override
    def typed(self, types: Sequence[str], expressions: Sequence[str]) -> Sequence[Any]:
        result = self.execute(f"SELECT {', '.join(expressions)}")
        for column, expression in zip(result.columns, expressions, strict=True):
            if not has_arrow_type(column.type) and column.type != '"NULL"':
                raise EngineError(
                    ErrorKind.UNSUPPORTED,
                    f"{expression} as a value of EXECUTE is not supported: it is of "
                    f"type {column.type}; give a text and CAST it in the statement",
                )
        return result.fetch_all()[0]

    @override
    def understands(self, sql: str) -> bool | None:
        self._drain()
        try:
            return len(self._connection.extract_statements(sql)) == 1
        except duckdb.ParserException:
            return False
        except Exception as error:
            raise translated(error) from error

    @override
    def names_of(self, expressions: Sequence[str]) -> Sequence[str]:
        rows = self.execute(naming(expressions)).fetch_all()
        return [
            name_in(expression, *row)
            for expression, row in zip(expressions, rows, strict=True)
        ]

    @override
    def width(self, query: str, parameters: Sequence[Any] = ()) -> int:
        return len(self.execute(f"SELECT * FROM ({query}) LIMIT 0", parameters).columns)

    @override
    def begin(self) -> None:
        # One may be left whose ROLLBACK was interrupted.
        self.rollback()
        # An interruption may come when the engine has begun it.
        self._in_transaction = True
        self._run("BEGIN", ())

    @override
    def commit(self, ending: str = COMMIT) -> None:
        try:
            self._run(ending, ())
        except EngineError as error:
            if error.kind is not ErrorKind.INTERRUPTED or self._is_undone():
                raise
        self._in_transaction = False

    def _is_undone(self) -> bool:
        """Roll back after an interrupted COMMIT; False: that has happened already.

        A COMMIT that DuckDB does not do for another reason gets an error of another kind.
        """
        try:
            insist(lambda: self._run("ROLLBACK", ()))
        except EngineError:
            return False
        return True

    @override
    def rollback(self) -> None:
        if self._in_transaction:
            # There is none if BEGIN failed, or an interrupted COMMIT did not.
            with suppress(EngineError):
                insist(lambda: self._run("ROLLBACK", ()))
            self._in_transaction = False
            if not self._has_path:
                self._give_path()

    @override
    def read_row(
        self, table: Table, key: Row, columns: Sequence[int] | None = None
    ) -> Row | None:
        read = tuple(columns) if columns is not None else every_column(table)
        self._run(row_query(table, read, key), ())
        started = time.perf_counter()
        try:
            # To its end: DuckDB's transaction would stay open, and keep old rows.
            rows: list[Row] = self._connection.fetchall()
        except Exception as error:
            raise translated(error) from error
        self._statistics.seconds += time.perf_counter() - started
        return widened(table, read, rows[0]) if rows else None

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
        end = "" if limit is None else f" LIMIT {limit}"
        self._run(range_query(table, columns, prefix, first, last) + end, ())
        started = time.perf_counter()
        try:
            rows = to_arrow(self._connection)
        except Exception as error:
            raise translated(error) from error
        self._statistics.seconds += time.perf_counter() - started
        return ArrowRows(rows)

    @override
    def _stored_rows(
        self, table: Table, keys: Sequence[Row], read: Sequence[int]
    ) -> Sequence[Row]:
        self._run(rows_query(table, read, keys), ())
        with translating():
            rows: list[Row] = self._connection.fetchall()
        return rows

    def _insert(self, rows: pyarrow.Table, target: str) -> None:
        started = time.perf_counter()
        try:
            self._make_way()
            if '""' in target:
                # insert_into() would look for a table of another name.
                with self._relation(rows) as source:
                    sql = f"INSERT INTO {target} SELECT * FROM {source}"
                    self._connection.execute(sql)
            else:
                self._connection.from_arrow(rows).insert_into(target)
        except Exception as error:
            raise translated(error) from error
        finally:
            self._statistics.statements += 1
            self._statistics.seconds += time.perf_counter() - started

    @contextmanager
    def _relation(self, rows: pyarrow.Table, name: str = "tique_rows") -> Iterator[str]:
        """Give an Arrow table a name in SQL for a while."""
        # An interruption may meet these calls too: each makes a view or drops one.
        with translating():
            self._make_way()
            self._register(name, rows)
        try:
            yield name
        except BaseException:
            # DuckDB 2.0 refuses this in an aborted transaction: then the name
            # stays until the next table takes it, and the body's error counts.
            with suppress(duckdb.Error):
                self._connection.unregister(name)
            raise
        with translating():
            self._complete()
            self._connection.unregister(name)

    def _register(self, name: str, rows: pyarrow.Table) -> None:
        try:
            self._connection.register(name, rows)
        except duckdb.CatalogException:
            # DuckDB 1.5 keeps a name whose unregister() was interrupted, and says nothing.
            self._connection.execute(f"DROP VIEW IF EXISTS {quote(name)}")
            self._connection.register(name, rows)

    def replace(self, table: Table, keys: Sequence[Row], rows: Sequence[Row]) -> None:
        """Delete the storage rows with these keys and insert ``rows``."""
        if keys:
            self.bind_indexes(table)
            same = key_equality(table, table.primary_key, "_s.", "_r.")
            gone = arrow_table(table, keys, table.primary_key)
            with self._relation(gone) as relation:
                self._run(
                    f"DELETE FROM {storage_name(table)} AS _s USING {relation} AS _r "
                    f"WHERE {same}",
                    (),
                )
        if rows:
            self._insert(arrow_table(table, rows), storage_name(table))

    def bind_indexes(self, table: Table) -> None:
        """Have DuckDB know the table's unique indexes before it deletes rows.

        DuckDB 1.5 else takes no note of the values that a first DELETE after its start
        gives up, and an INSERT of them fails (README).
        """
        if any(table.unique_names) or table.computed_keys:
            storage = storage_name(table)
            self._run(f"INSERT INTO {storage} SELECT * FROM {storage} WHERE FALSE", ())

    def update(self, table: Table, columns: Sequence[int], rows: Sequence[Row]) -> None:
        """Set ``columns`` (the key among them) of the storage rows to ``rows``."""
        with self._relation(arrow_table(table, rows, columns)) as relation:
            self.update_from(table, columns, relation)

    def update_from(self, table: Table, columns: Collection[int], source: str) -> None:
        """Set ``columns`` of the storage rows to those of something in FROM."""
        same = key_equality(table, table.primary_key, "_s.", "_r.")
        names = [
            quote(table.columns[i].name) for i in columns if i not in table.primary_key
        ]
        if not names:
            return
        values = ", ".join(f"{name} = _r.{name}" for name in names)
        self._run(
            f"UPDATE {storage_name(table)} AS _s SET {values} "
            f"FROM {source} AS _r WHERE {same}",
            (),
        )

    def write_anew(
        self, table: Table, columns: Sequence[int], rows: Sequence[Row]
    ) -> None:
        """Set ``columns`` as :meth:`update` does, of rows deleted and inserted again."""
        items = ", ".join(
            f"{'_r' if i in columns else '_s'}.{quote(column.name)}"
            for i, column in enumerate(table.columns)
        )
        same = key_equality(table, table.primary_key, "_s.", "_r.")
        storage = storage_name(table)
        with self._relation(arrow_table(table, rows, columns)) as relation:
            found = with_keys(table, f"{relation} AS _r", "_r", same)
            self._run(
                f"CREATE OR REPLACE TEMP TABLE {_WHOLE} AS SELECT {items} FROM {found}",
                (),
            )
        self.bind_indexes(table)
        self._run(
            f"DELETE FROM {storage} AS _s USING temp.{_WHOLE} AS _r WHERE {same}", ()
        )
        self._run(
            f"INSERT INTO {storage} ({column_list(table)}) FROM temp.{_WHOLE}", ()
        )
        self._run(f"DROP TABLE temp.{_WHOLE}", ())

    def upsert(self, table: Table, rows: Sequence[Row]) -> None:
        """Put ``rows`` into storage, in the place of those with their keys."""
        with self._relation(arrow_table(table, rows)) as relation:
            self._run(_upsert(table, relation), ())

    def upsert_from(self, table: Table, source: str) -> int:
        """The same with the rows of something in FROM; their number."""
        return self.change(_upsert(table, source))

    @override
    def append(self, versions: Versions) -> None:
        self._insert(_stamped(versions, "_cts"), cache_name(versions.table))

    def remember(self, table: Table, images: Images, ended: Callable[..., str]) -> None:
        """Add images to the table's history; storage is as it was before the fold.

        ``ended`` is :meth:`Forms.ended_images`.
        """
        history, key = history_name(table), table.primary_key
        names = ", ".join(
            f"CAST({name} AS {table.columns[i].type}) AS {name}"
            for i in key
            for name in [quote(table.columns[i].name)]
        )
        for ends, appended in ((images.stored, False), (images.new, True)):
            if not ends:
                continue
            keys = arrow_table(table, [*ends], key)
            keys = _with(keys, "_until", "int64", [*ends.values()])
            with self._relation(keys) as relation:
                query = ended(
                    table, f"SELECT {names}, _until FROM {relation}", appended=appended
                )
                self._run(f"INSERT INTO {history} {query} ORDER BY _until", ())
        # Last: the others begin where the images before these end.
        passed = images.passed
        if passed.rows:
            rows = arrow_table(table, passed.rows)
            rows = _with(rows, "_from", "int64", passed.stamps)
            rows = _with(rows, "_until", "int64", images.until)
            there = [not deleted for deleted in passed.deleted]
            self._insert(_with(rows, "_there", "bool_", there), history)

    @override
    def append_staged(self, table: Table, cts: int) -> int:
        columns = column_list(table)
        source = stage_name(table)
        if not table.is_keyless:
            source = f"({newest_in_order(table, source, '_sequence')})"
        return self.change(
            f"INSERT INTO {cache_name(table)} "
            f"SELECT {columns}, {cts}, _deleted FROM {source}"
        )

    @override
    def log(self, commits: Sequence[CommitRecord]) -> None:
        # JSON in ASCII needs no other escape; a parameter costs DuckDB 1.5 more.
        entry = encode_commits(commits).replace("'", "''")
        self._run(
            f"INSERT INTO tique.log VALUES ({commits[-1].cts}, "
            f"{time.time_ns() // 1000}, '{entry}')",
            (),
        )

    @override
    def create_stage(self, table: Table) -> None:
        # NOT NULL and CHECK are the engine's: a statement that breaks them fails here.
        stamps = ["_sequence BIGINT NOT NULL", "_deleted BOOLEAN NOT NULL"]
        layout = ", ".join(
            staged_columns(table)
            + stamps
            + staged_generated(table)
            + staged_checks(table)
        )
        # There may be one whose removal was interrupted.
        self._run(f"CREATE OR REPLACE TEMP TABLE {stage_name(table)} ({layout})", ())

    @override
    def stage(self, versions: Versions) -> None:
        place = stage_name(versions.table)
        with speaking_of(versions.table, place):
            self._insert(_stamped(versions, "_sequence"), place)

    @override
    def stage_query(self, table: Table, query: str, parameters: Sequence[Any]) -> int:
        if stage_name(table) in query:
            # DuckDB 1.5 may let a statement read the rows that it has just inserted.
            query = f"WITH _rows AS MATERIALIZED ({query}) SELECT * FROM _rows"
        place = stage_name(table)
        with speaking_of(table, place):
            return self.change(f"INSERT INTO {place} {query}", parameters)

    @override
    def unstage(self, table: Table, after: int) -> None:
        self._run(f"DELETE FROM {stage_name(table)} WHERE _sequence > {after}", ())

    @override
    def drop_stage(self, table: Table) -> None:
        self._run(f"DROP TABLE IF EXISTS {stage_name(table)}", ())

    @override
    def create_incoming(self, table: Table) -> str:
        defaults = [
            "" if column.default is None else f" DEFAULT ({column.default})"
            for column in table.columns
        ]
        columns = [
            column + default
            for column, default in zip(staged_columns(table), defaults, strict=True)
        ]
        self._run(
            f"CREATE OR REPLACE TEMP TABLE {_INCOMING} ({', '.join(columns)})", ()
        )
        return f"temp.{_INCOMING}"

    @override
    def drop_incoming(self) -> None:
        self._run(f"DROP TABLE IF EXISTS temp.{_INCOMING}", ())

    @override
    @contextmanager
    def arrow_relation(
        self, data: pyarrow.Table, name: str = "tique_appended"
    ) -> Iterator[str | None]:
        with self._relation(data, name) as relation:
            yield relation

    @override
    def interrupt(self) -> None:
        # It may be closed by now: nothing runs there.
        with suppress(duckdb.ConnectionException):
            self._connection.interrupt()

    @override
    def close(self) -> None:
        self._stream = None
        self._connection.close()


def _stamped(versions: Versions, stamp: str) -> pyarrow.Table:
    """The versions as an Arrow table in the cache (or staging) table's layout."""
    rows = arrow_table(versions.table, versions.rows)
    rows = _with(rows, stamp, "int64", versions.stamps)
    return _with(rows, "_deleted", "bool_", versions.deleted)


def _with(
    rows: pyarrow.Table, name: str, kind: str, values: Sequence[Any]
) -> pyarrow.Table:
    """Rows with a column more; ``kind`` is pyarrow's function that makes its type."""
    import pyarrow

    return rows.append_column(name, pyarrow.array(values, getattr(pyarrow, kind)()))


def _upsert(table: Table, source: str) -> str:
    """The statement that puts rows into storage, in the place of those with their keys."""
    columns = [quote(column.name) for column in table.columns]
    key = [quote(table.columns[i].name) for i in table.primary_key]
    changes = ", ".join(f"{c} = excluded.{c}" for c in columns if c not in key)
    names = ", ".join(columns)
    return (
        f"INSERT INTO {storage_name(table)} ({names}) "
        f"SELECT {names} FROM {source} ON CONFLICT ({', '.join(key)}) DO "
        + (f"UPDATE SET {changes}" if changes else "NOTHING")
    )
