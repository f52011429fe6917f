"""One open DuckDB database: tique's schema in it, folding, recovery, compaction.

Atomicity rests on DuckDB's own transaction and write-ahead log: a commit's
versions and its commit record are written in one engine transaction, and so is
every fold. A crash at any instruction leaves either all of it or nothing.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import closing, suppress
from functools import partial
from typing import TYPE_CHECKING

import duckdb
from typing_extensions import override

from tique_backends.catalog import histories
from tique_backends.catalog.managed import managed_tables, renew
from tique_backends.concurrency.inherited import noted
from tique_backends.duckdb.catalog import attaching, introspection, macros, purity
from tique_backends.duckdb.catalog.paths import resolve
from tique_backends.duckdb.catalog.unique_indexes import UNIQUE_INDEXES
from tique_backends.duckdb.errors import translated, translating
from tique_backends.duckdb.forms import (
    DuckDBForms,
    GatheredForms,
    newest_in_order,
    version_columns,
)
from tique_backends.duckdb.log import APPEND, COMMITS, replay_statement
from tique_backends.duckdb.sessions.log_session import LogSession
from tique_backends.duckdb.sessions.session import DuckDBSession
from tique_backends.duckdb.sessions.settings import RULES, check_options
from tique_backends.duckdb.values.arrow import (
    has_arrow_type,
    is_kept,
    reads_alike,
    rows_to_arrow,
)
from tique_backends.duckdb.values.keyless import (
    FLOATS,
    among_counted,
    counted,
    images,
    numbered,
)
from tique_backends.duckdb.values.text_values import is_kept_as_text
from tique_backends.duckdb.values.zones import Zones
from tique_backends.engine import FORMAT_VERSION, Capabilities, Engine
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.forms import difference
from tique_backends.names import (
    cache_name,
    column_list,
    history_name,
    key_equality,
    quote,
    storage_name,
)
from tique_backends.records import Row, Statistics
from tique_backends.rows.gaps import (
    by_columns,
    is_partial,
    unique_columns,
    whole_in_keys,
)
from tique_rewriter.plans.plan import SiblingConstruct
from tique_udfs import Sequencer
from tique_udfs import duckdb as extension

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tique_backends.forms import Forms
    from tique_backends.location import Location
    from tique_backends.records import Images
    from tique_rewriter.schema import Attached, Function, Table, View

_COMPACT_BYTES = 256 << 20
"""Size of the write-ahead log at which the engine's own checkpoint is run."""

_PATIENCE = 5
"""Of folds that write rows anew: each reads the rows' other columns by a scan of the table, and
that costs five times as many rows hardly more."""

_SCHEMA = (
    "CREATE SCHEMA tique",
    "CREATE TABLE tique.format (version INTEGER NOT NULL, epoch BIGINT NOT NULL, "
    "forgotten BIGINT NOT NULL, last_table BIGINT NOT NULL)",
    f"INSERT INTO tique.format VALUES ({FORMAT_VERSION}, 0, 0, 0)",
    'CREATE TABLE tique."tables" (id BIGINT NOT NULL, schema_name VARCHAR NOT NULL, '
    "table_name VARCHAR NOT NULL, folded BIGINT NOT NULL)",
    "CREATE TABLE tique.log (cts BIGINT NOT NULL, committed_at BIGINT NOT NULL, "
    "commits VARCHAR NOT NULL)",
    "CREATE TABLE tique.outcomes (cts BIGINT NOT NULL, txid BIGINT NOT NULL, "
    "committed_at BIGINT NOT NULL)",
    *histories.SCHEMA,
)


def _check_catalog(path: str) -> None:
    """Refuse a file whose catalog has the name of tique's schema.

    DuckDB calls a database after its file, and every ``tique.…`` would be ambiguous.
    """
    name = os.path.basename(path)
    if name.lstrip(".").partition(".")[0].lower() == "tique":
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"a DuckDB file cannot be called {name}: DuckDB names the catalog after it, "
            "and tique's own schema has that name; call the file something else",
        )


class DuckDBEngine(Engine[DuckDBSession]):
    """A DuckDB instance that this process shares among its threads."""

    _introspection = introspection
    _committed = (
        "SELECT cts, txid FROM tique.outcomes UNION ALL "
        f"SELECT cts, txid FROM ({COMMITS.format(after=0, until=2**62)})"
    )
    _recorded = (
        "SELECT cts, txid, committed_at FROM tique.outcomes UNION ALL "
        "SELECT cts, txid, committed_at FROM ("
        + COMMITS.format(after="{since}", until=2**62)
        + ")"
    )
    settings = RULES
    resolve_path = staticmethod(resolve)
    check_definition = staticmethod(purity.check_definition)
    round_trips = staticmethod(has_arrow_type)
    columnar = staticmethod(reads_alike)
    arrow = staticmethod(rows_to_arrow)
    # A column store scans in vectors of 2,048, and its rows come in Arrow's form.
    capabilities = Capabilities(
        dialect="duckdb",
        page_keys=8192,
        overlay_values=10_000,
        picks_merged_row=True,
        changes_in_turn=True,
        reads_uncommitted_folds=True,
        keeps_insertion_order=True,
        keeps_known_images=True,
        reads_variables=True,
        # 1.5 refuses the COMMIT ("another transaction has altered this table").
        alters_changed_tables=not duckdb.__version__.startswith("1."),
    )

    def __init__(self, location: Location) -> None:
        super().__init__()
        self.forms = DuckDBForms()
        self._gathered = GatheredForms()
        self.statistics = Statistics()
        self._zones = Zones()
        self._path = location.path
        self._compacting = threading.Lock()
        self._append: extension.Prepared | None = None
        check_options(location.options)
        # DuckDB's automatic checkpoint would stall the commit that triggers it.
        config: dict[str, str | bool | int | float | list[str]] = {
            **location.options,
            "allow_unsigned_extensions": "true",
            "checkpoint_threshold": "16GB",
            # A Python variable is no table, whatever it is called.
            "python_enable_replacements": "false",
        }
        if location.identity is not None:
            _check_catalog(location.path)
        files = (location.path, location.path + ".wal")
        is_new = location.identity is None or not any(map(os.path.exists, files))
        if location.identity is not None and not os.path.exists(location.path):
            parent = os.path.dirname(location.path)
            if not os.path.isdir(parent):
                raise EngineError(
                    ErrorKind.OPERATIONAL,
                    f"cannot create {location.path}: no folder {parent}",
                )
        try:
            self._instance = noted(duckdb.connect(location.path, config=config))
        except Exception as error:
            raise translated(error) from error
        # An obsolete view among all that are described must not end the transaction in
        # which that is done. DuckDB 1.5 has no such setting, and needs none.
        with suppress(duckdb.CatalogException):
            self._instance.execute(
                "SET GLOBAL default_transaction_invalidation_policy = "
                "'SYNTACTIC_ERRORS_DO_NOT_INVALIDATE'"
            )
        try:
            instance = self._instance
            self._may_have_macros = not is_new and macros.check_names(
                lambda *asked: instance.execute(*asked).fetchall()
            )
        except EngineError:
            self._instance.close()
            raise
        ((collation, self.database),) = self._instance.execute(
            "SELECT current_setting('default_collation'), current_database()"
        ).fetchall()
        if collation.lower() not in ("", "binary"):
            self._instance.close()
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                "default_collation must be binary: keys that another one calls equal "
                "are different ones for tique",
            )

    @property
    @override
    def fold_patience(self) -> int:
        return 1 if self.in_place else _PATIENCE

    @override
    def forms_beside(
        self, parts: frozenset[SiblingConstruct], company: Sequence[Table] = ()
    ) -> Forms:
        return self._gathered if SiblingConstruct.WHOLE_WINDOW in parts else self.forms

    @override
    def session(self, *, logs_only: bool = False) -> DuckDBSession:
        connection = noted(self._instance.cursor())
        if not logs_only:
            return DuckDBSession(connection, self.statistics, self._zones)
        return LogSession(connection, self.statistics, self._zones, self._append)

    @override
    def keeps(self, type_name: str) -> bool:
        return is_kept(type_name) or is_kept_as_text(type_name)

    @override
    def is_managed(self) -> bool:
        found = self._instance.cursor().execute(
            "SELECT 1 FROM duckdb_schemas() WHERE schema_name = 'tique' "
            "AND database_name = current_database()"
        )
        return found.fetchone() is not None

    @override
    def format_version(self) -> int:
        with translating():
            cursor = self._instance.cursor()
            row = cursor.execute("SELECT version FROM tique.format").fetchone()
        return -1 if row is None else int(row[0])

    @override
    def install(self, session: DuckDBSession) -> None:
        def create() -> None:
            for statement in _SCHEMA:
                session.execute(statement)

        session.transact(create)

    @override
    def renew_format(self, session: DuckDBSession) -> None:
        session.transact(partial(renew, session))

    @override
    def attach_sequencer(self, sequencer: Sequencer) -> bool:
        if not extension.load(self._instance, sequencer, for_prepared=True):
            return False
        self._append = extension.prepared(self._instance, sequencer, APPEND)
        return True

    @override
    def managed_tables(self, session: DuckDBSession) -> list[Table]:
        descriptions = introspection.Descriptions(session)
        return managed_tables(
            session, introspection.LAYOUTS, lambda _: descriptions.describe
        )

    @override
    def unique_indexes(self, session: DuckDBSession) -> Sequence[Row]:
        return session.execute(UNIQUE_INDEXES).fetch_all()

    @override
    def functions(self, session: DuckDBSession) -> list[Function]:
        return macros.functions(_asking(session)) if self._may_have_macros else []

    @override
    def check_macro(self, session: DuckDBSession, name: str, expression: str) -> None:
        macros.check_new(_asking(session), name, expression)
        # Before it is there: it stays true if the statement is undone.
        self._may_have_macros = True

    @override
    def attach_database(self, path: str, name: str, options: Sequence[str]) -> Attached:
        with closing(self.session()) as session:
            return attaching.attach(session, path, name, options)

    @override
    def detach_database(self, name: str) -> None:
        with closing(self.session()) as session:
            session.execute(f"DETACH {quote(name)}").close()

    @override
    def views(self, session: DuckDBSession) -> list[View]:
        with session.without_path():
            return introspection.views(session)

    @override
    def _manage(self, session: DuckDBSession, table: Table) -> Table:
        managed = self._numbered(session, table)
        session.execute(
            'INSERT INTO tique."tables" VALUES ($1, $2, $3, 0)',
            [managed.id, table.schema, table.name],
        )
        self._create_cache(session, managed)
        return managed

    def _create_cache(self, session: DuckDBSession, table: Table) -> None:
        stamps = ["_cts BIGINT NOT NULL", "_deleted BOOLEAN NOT NULL"]
        layout = ", ".join(version_columns(table) + stamps)
        session.execute(f"CREATE TABLE {cache_name(table)} ({layout})")

    @override
    def _create_history(self, session: DuckDBSession, table: Table) -> None:
        layout = ", ".join([*version_columns(table), *histories.STAMPS])
        session.execute(f"CREATE TABLE {history_name(table)} ({layout})")

    @override
    def replay(self, session: DuckDBSession, table: Table) -> int:
        return session.change(replay_statement(table, session.newest_version(table)))

    @override
    def store(
        self,
        session: DuckDBSession,
        table: Table,
        rows: Mapping[Row, Row | None],
        until: int,
        new: Collection[Row] = (),
        *,
        since: int | None = None,
        images: Images | None = None,
    ) -> None:
        if table.unique or table.computed_keys:
            rows = {**rows, **whole_in_keys(session, table, rows)}
        whole, partly = _by_gaps(rows)
        change = session.update if self.in_place else session.write_anew

        def move() -> None:
            if images is not None:
                session.remember(table, images, self.forms.ended_images)
            if whole:
                session.replace(
                    table,
                    [key for key in whole if key not in new],
                    [row for row in whole.values() if row],
                )
            for known, changed in partly.items():
                change(table, known, changed)
            self._drop_versions(session, table, until)

        session.transact(move)

    @override
    def overwrite(
        self, session: DuckDBSession, table: Table, rows: Mapping[Row, Row | None]
    ) -> None:
        whole, partly = _by_gaps(rows)
        session.replace(table, [key for key, row in whole.items() if row is None], ())
        for known, changed in partly.items():
            session.update(table, known, changed)
        present = {key: row for key, row in whole.items() if row is not None}
        if _has_float_key(table):
            session.replace(table, list(present), list(present.values()))
        elif present:
            # In their places, unlike rows deleted and inserted, they cost a scan nothing.
            session.upsert(table, list(present.values()))

    @override
    def overwrite_cached(
        self, session: DuckDBSession, table: Table, after: int, until: int
    ) -> int:
        between = f"_cts > {after} AND _cts <= {until}"
        recent = f"(SELECT * FROM {cache_name(table)} WHERE {between})"
        changed = newest_in_order(table, cache_name(table), "_cts", between)
        same = key_equality(table, table.primary_key, "_s.", "_r.")
        session.bind_indexes(table)
        which = "TRUE" if _has_float_key(table) else "_r._deleted"
        gone = f"SELECT count(*) FROM {recent} AS _r WHERE {which}"
        written = 0
        # A DELETE that finds no row makes later joins in DuckDB 1.5 three times slower.
        if session.execute(gone).fetch_all() != [(0,)]:
            written = session.change(
                f"DELETE FROM {storage_name(table)} AS _s USING ({changed}) AS _r "
                f"WHERE {which} AND {same}"
            )
        return written + session.upsert_from(
            table, f"(SELECT * FROM ({changed}) WHERE NOT _deleted)"
        )

    @override
    def depend_on_rows(
        self, calls: frozenset[str], parameters: Sequence[object]
    ) -> bool:
        return calls <= purity.OF_ROWS

    @override
    def fold(
        self,
        session: DuckDBSession,
        table: Table,
        until: int,
        *,
        since: int | None = None,
        appended: bool = False,
        columns_set: Collection[int] | None = None,
    ) -> int:
        fold = self._fold_keyless if table.is_keyless else self._fold_keyed
        if appended:
            fold = self._fold_appended
        elif (
            columns_set
            and self.in_place
            and unique_columns(table).isdisjoint(columns_set)
        ):
            fold = partial(self._fold_columns, columns_set)

        def move() -> int:
            self._keep_images(session, table, 0, until, appended=appended)
            return fold(session, table, until)

        return session.transact(move)

    def _fold_appended(self, session: DuckDBSession, table: Table, until: int) -> int:
        session.execute(
            f"INSERT INTO {storage_name(table)} SELECT {column_list(table)} "
            f"FROM {cache_name(table)} WHERE _cts <= {until}"
        )
        return self._drop_versions(session, table, until)

    def _fold_columns(
        self,
        columns: Collection[int],
        session: DuckDBSession,
        table: Table,
        until: int,
    ) -> int:
        newest = newest_in_order(table, cache_name(table), "_cts", f"_cts <= {until}")
        session.update_from(table, columns, f"({newest})")
        return self._drop_versions(session, table, until)

    def _fold_keyed(self, session: DuckDBSession, table: Table, until: int) -> int:
        session.bind_indexes(table)
        cache, storage = cache_name(table), storage_name(table)
        columns = column_list(table)
        session.execute(
            f"DELETE FROM {storage} AS _s WHERE EXISTS (SELECT 1 FROM {cache} AS _v "
            f"WHERE _v._cts <= {until} AND "
            f"{key_equality(table, table.primary_key, '_s.', '_v.')})"
        )
        session.execute(
            f"INSERT INTO {storage} SELECT {columns} FROM "
            f"({newest_in_order(table, cache, '_cts', f'_cts <= {until}')}) "
            "WHERE NOT _deleted"
        )
        return self._drop_versions(session, table, until)

    def _fold_keyless(self, session: DuckDBSession, table: Table, until: int) -> int:
        """Remove one copy per tombstone, then add the inserted rows.

        Rows both inserted and deleted since cancel out: storage never had them.
        """
        cache, storage = cache_name(table), storage_name(table)
        inserted = f"{cache} WHERE _cts <= {until} AND NOT _deleted"
        deleted = f"{cache} WHERE _cts <= {until} AND _deleted"
        columns = column_list(table)
        added = f"SELECT {columns} FROM {inserted}"
        tombstones = session.execute(f"SELECT count(*) FROM {deleted}").fetch_all()
        if tombstones[0][0]:
            session.bind_indexes(table)
            gone = f"({difference(table, deleted, inserted, images(table))})"
            same = among_counted(table)
            session.execute(
                f"DELETE FROM {storage} WHERE rowid IN (SELECT _p._rowid FROM "
                f"({numbered(table, storage, ', rowid AS _rowid')}) AS _p "
                f"JOIN ({counted(table, gone)}) AS _g ON {same})"
            )
            added = (
                f"SELECT {columns} FROM ({numbered(table, inserted)}) AS _p "
                f"ANTI JOIN ({counted(table, deleted)}) AS _g ON {same}"
            )
        session.execute(f"INSERT INTO {storage} {added}")
        return self._drop_versions(session, table, until)

    def _drop_versions(self, session: DuckDBSession, table: Table, until: int) -> int:
        moved = session.change(f"DELETE FROM {cache_name(table)} WHERE _cts <= {until}")
        self._set(session, 'tique."tables"', "folded", until, f"id = {table.id}")
        return moved

    def _set(
        self,
        session: DuckDBSession,
        relation: str,
        column: str,
        value: int,
        condition: str,
    ) -> None:
        """Set a column of the rows that meet a condition, in a table of tique's own."""
        if self.in_place:
            session.execute(
                f"UPDATE {relation} SET {column} = {value} WHERE {condition}"
            )
            return
        found = session.execute(
            f"DELETE FROM {relation} WHERE {condition} "
            f"RETURNING * REPLACE ({value} AS {column})"
        ).fetch_all()
        for row in found:
            values = ", ".join(f"${number}" for number in range(1, len(row) + 1))
            session.execute(f"INSERT INTO {relation} VALUES ({values})", row)

    @override
    def history_bytes(self, session: DuckDBSession, table: Table) -> int:
        # Blocks are written by DuckDB's own checkpoint.
        ((found,),) = session.execute(
            "SELECT count(DISTINCT block_id) * (SELECT any_value(block_size) FROM "
            "pragma_database_size()) FROM pragma_storage_info($1) WHERE block_id >= 0",
            [history_name(table)],
        ).fetch_all()
        return int(found)

    @override
    def prune_log(self, session: DuckDBSession, until: int, retention: float) -> None:
        entries = COMMITS.format(after=0, until=until)
        oldest = int((time.time() - retention) * 1e6)
        # The newest outcome stays: it is where the next cts starts.
        old = (
            f"FROM tique.outcomes WHERE committed_at < {oldest} "
            "AND cts < (SELECT max(cts) FROM tique.outcomes)"
        )

        def prune() -> None:
            session.execute(
                "INSERT INTO tique.outcomes SELECT cts, txid, committed_at "
                f"FROM ({entries})"
            )
            session.execute(f"DELETE FROM tique.log WHERE cts <= {until}")
            going = f"SELECT cts, committed_at {old}"
            session.execute(histories.KEEPING_MOMENTS.format(commits=going))
            ((newest,),) = session.execute(
                f"SELECT coalesce(max(txid), 0) {old}"
            ).fetch_all()
            if newest:
                self._set(
                    session,
                    "tique.format",
                    "forgotten",
                    newest,
                    f"forgotten < {newest}",
                )
                session.execute(f"DELETE {old}")

        session.transact(prune)

    @override
    def compact(self, session: DuckDBSession, *, force: bool = False) -> bool:
        log = self._path + ".wal"
        if not force and (
            not os.path.exists(log) or os.path.getsize(log) < _COMPACT_BYTES
        ):
            return False
        with self._compacting:
            session.execute("CHECKPOINT")
        return True

    @override
    def close(self) -> None:
        if self._append is not None:
            self._append.close()
        self._instance.close()


def _asking(session: DuckDBSession) -> macros.Ask:
    return lambda *asked: session.execute(*asked).fetch_all()


def _has_float_key(table: Table) -> bool:
    """Whether a row's key may become an equal one, which no UPDATE of DuckDB's does."""
    return any(table.types[i] in FLOATS for i in table.primary_key)


def _by_gaps(
    rows: Mapping[Row, Row | None],
) -> tuple[dict[Row, Row | None], dict[tuple[int, ...], list[Row]]]:
    """Rows by key that are whole (or gone), and the others by the columns they have."""
    partial = {key: row for key, row in rows.items() if row and is_partial(row)}
    whole = {key: row for key, row in rows.items() if key not in partial}
    return whole, by_columns(partial.values())
