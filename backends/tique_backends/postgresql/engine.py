"""One PostgreSQL database: tique's schema in it, folding, recovery.

Atomicity rests on PostgreSQL's own transactions: a commit is one row of the log, in one
engine transaction with its timestamp, and every fold is one engine transaction. A crash
of either side at any instruction leaves all of it or nothing.

Engine transactions are at READ COMMITTED, where every statement sees all earlier
commits, and bodies that depend on rows that they read lock them first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from tique_backends.catalog import foreign_keys, histories, slots
from tique_backends.catalog.managed import managed_tables, renew
from tique_backends.engine import FORMAT_VERSION, Capabilities
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import (
    cache_name,
    column_list,
    history_name,
    key_list,
    quote,
    storage_name,
)
from tique_backends.postgresql import folding
from tique_backends.postgresql.catalog import introspection, purity
from tique_backends.postgresql.catalog.functions import (
    Volatility,
    functions,
    hidden_calls,
)
from tique_backends.postgresql.catalog.installing import (
    Form,
    expect_nobody_of_before,
    expect_rights_of_owner,
    guests_script,
    readable_as,
)
from tique_backends.postgresql.catalog.paths import path_locked, resolve, without_path
from tique_backends.postgresql.catalog.unique_indexes import (
    UNIQUE_INDEXES,
    expect_hashes,
)
from tique_backends.postgresql.catalog.views import views
from tique_backends.postgresql.forms import PostgreSQLForms
from tique_backends.postgresql.log import NOW
from tique_backends.postgresql.names import stage_name
from tique_backends.postgresql.sequencer import SCHEMA, PostgreSQLSequencer
from tique_backends.postgresql.sessions.session import PostgreSQLSession
from tique_backends.postgresql.sessions.settings import RULES
from tique_backends.postgresql.sessions.transactions import LOCK_PATIENCE
from tique_backends.postgresql.values.bounds import STORED
from tique_backends.postgresql.values.literals import quoted
from tique_backends.postgresql.values.text_values import (
    KEEPING_ATTRIBUTES,
    is_kept,
    is_own,
)
from tique_backends.postgresql.values.types import (
    is_number,
    rows_to_arrow,
    survives_python,
)
from tique_backends.servers.server_engine import ServerEngine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.records import Row, Statistics
    from tique_rewriter.schema import Function, HiddenCall, Table, View

_BY_TIME = (
    "CREATE INDEX IF NOT EXISTS outcomes_by_time ON tique.outcomes (committed_at)"
)
"""By which the version at a time is found."""

_SCHEMA = (
    "CREATE SCHEMA tique",
    "CREATE TABLE tique.format (version INTEGER NOT NULL, epoch BIGINT NOT NULL, "
    "forgotten BIGINT NOT NULL, last_table BIGINT NOT NULL, sequencer TEXT NOT NULL)",
    'CREATE TABLE tique."tables" (id BIGINT PRIMARY KEY, schema_name TEXT NOT NULL, '
    "table_name TEXT NOT NULL, folded BIGINT NOT NULL, drained BIGINT NOT NULL) "
    "WITH (fillfactor = 50)",
    "CREATE TABLE tique.log (cts BIGINT PRIMARY KEY, txid BIGINT NOT NULL, "
    "committed_at BIGINT NOT NULL, commits TEXT NOT NULL)",
    "CREATE TABLE tique.outcomes (cts BIGINT PRIMARY KEY, txid BIGINT NOT NULL, "
    "committed_at BIGINT NOT NULL)",
    "CREATE INDEX ON tique.outcomes (txid)",
    _BY_TIME,
    "CREATE TABLE tique.fences (cts BIGINT PRIMARY KEY, settled XID8, "
    "is_swept BOOLEAN NOT NULL DEFAULT FALSE)",
    *histories.SCHEMA,
    slots.SCHEMA,
    # Parts of the log that could not be applied; table number 0 stands for all tables.
    "CREATE TABLE IF NOT EXISTS tique.aside (cts BIGINT, id BIGINT, "
    "reason TEXT NOT NULL, PRIMARY KEY (cts, id))",
)

_TIDY = " WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000)"
"""Cache tables are filled and emptied all the time, however large they are."""

_LATE = 60_000_000
"""Microseconds by which a commit may seem older than one before it.

If the clock was put back by more, its record is kept until another process prunes.
"""

_SURROUNDINGS = (
    "SELECT datcollate, current_schemas(FALSE)::TEXT[], datname::TEXT "
    "FROM pg_catalog.pg_database "
    "WHERE datname = current_database() AND datlocprovider = 'c' UNION ALL "
    "SELECT '', current_schemas(FALSE)::TEXT[], current_database()::TEXT LIMIT 1"
)

_BY_BYTES = frozenset({"C", "POSIX", "C.UTF8"})
"""Collations that sort text by its bytes."""

_UNORDERED = """
SELECT t.id, (SELECT min(CAST(CAST(i.indexrelid AS pg_catalog.regclass) AS TEXT))
              FROM pg_catalog.pg_index AS i WHERE i.indrelid = c.oid)
FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN tique."tables" AS t ON c.relname = concat('tique_cache_', t.id)
WHERE n.nspname = 'tique' AND pg_has_role(c.relowner, 'USAGE') AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_index AS i JOIN pg_catalog.pg_attribute AS a
  ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
  WHERE i.indrelid = c.oid AND a.attname = '_cts')"""
"""Earlier releases' cache tables, whose only index, if they have one, is by key alone."""

_FOREIGN_KEYS = (
    foreign_keys.CREATION,
    "SELECT tique.guest_deny('tique.foreign_keys')",
    "GRANT SELECT ON tique.foreign_keys TO PUBLIC",
)


_AS_OWNER = (
    "SELECT set_config('role', r.rolname, TRUE) FROM pg_catalog.pg_namespace AS n "
    "JOIN pg_catalog.pg_roles AS r ON r.oid = n.nspowner WHERE n.nspname = 'tique'"
)


def _run_all(session: PostgreSQLSession, statements: str) -> None:
    """Run the statements that a query gives, whatever the search path is (P11)."""
    with without_path(session):
        for (statement,) in session.execute(statements).fetch_all():
            session.execute(statement)


def _key_and(stamp: str, table: Table) -> str:
    """The columns of an index by key, and by a stamp if there is room for that."""
    key = table.primary_key
    # Not every index that has room for a key has room for more.
    is_tight = any(set(bound.columns) & set(key) for bound in table.bounds)
    return key_list(table, key) + ("" if is_tight else f", {stamp}")


class PostgreSQLEngine(ServerEngine[PostgreSQLSession]):
    """A database of a PostgreSQL server, which several processes share."""

    _introspection = introspection
    _folding = folding
    _committed = (
        "SELECT cts, txid FROM tique.outcomes UNION ALL SELECT cts, txid FROM tique.log "
        "WHERE cts NOT IN (SELECT cts FROM tique.fences)"
    )
    _recorded = (
        "SELECT cts, txid, committed_at FROM tique.outcomes UNION ALL "
        "SELECT cts, txid, committed_at FROM tique.log "
        "WHERE cts NOT IN (SELECT cts FROM tique.fences)"
    )
    settings = RULES
    resolve_path = staticmethod(resolve)
    round_trips = staticmethod(survives_python)
    arrow = staticmethod(rows_to_arrow)
    follows_path = True
    keeping_foreign_keys = _FOREIGN_KEYS
    writes_storage: ClassVar[bool] = True
    """Whether this role folds by statements of its own."""

    def __init__(
        self, presence: Presence, statistics: Statistics, sequencer: str | None
    ) -> None:
        super().__init__()
        self.forms = PostgreSQLForms()
        self.statistics = statistics
        self._wanted = sequencer
        self._presence = presence
        self._volatility = Volatility(presence)
        self.shared: PostgreSQLSequencer = self._client()
        self._pruned = self._forgotten = 0
        ((collation, self.search_path, self.database),) = self._presence.ask(
            _SURROUNDINGS
        )
        self._presence.own()
        # A row store reads single rows; neighbours mostly share a block.
        self.capabilities = Capabilities(
            dialect="postgresql",
            page_keys=64,
            overlay_values=10_000,
            sorts_by_bytes=collation.upper().replace("-", "") in _BY_BYTES,
            widest_sum=32,
            checks_proposed_rows=True,
            alters_foreign_keys=True,
            nests_transactions=True,
            reads_uncommitted_folds=self.writes_storage,
            keeps_undone_rows=True,
            has_replica_subset=True,
        )

    def _client(self) -> PostgreSQLSequencer:
        return PostgreSQLSequencer(self._presence)

    @override
    def session(self, *, logs_only: bool = False) -> PostgreSQLSession:
        return PostgreSQLSession(self._presence.connect(), self._presence)

    @override
    def keeps(self, type_name: str) -> bool:
        return is_kept(type_name) or is_number(type_name) or is_own(type_name)

    @override
    def columnar(self, type_name: str) -> bool:
        return self.round_trips(type_name) or self.keeps(type_name)

    @override
    def is_managed(self) -> bool:
        ((form,),) = self._presence.ask("SELECT to_regclass('tique.format')::TEXT")
        return form is not None

    @override
    def format_version(self) -> int:
        rows = self._presence.ask("SELECT version, sequencer FROM tique.format")
        if not rows:
            return -1
        ((version, form),) = rows
        self.shared.form = form
        if self._wanted not in (None, form):
            raise EngineError(
                ErrorKind.PROGRAMMING,
                f"this database uses tique's sequencer in the form {form!r}, and all "
                f"of its processes must: leave ?sequencer={self._wanted} out, or detach "
                "the database and adopt it again",
            )
        return int(version)

    @override
    def install(self, session: PostgreSQLSession) -> None:
        form = Form.choose(session, self._wanted)

        def create() -> None:
            self._begin_schema_change(session)
            for statement in (*_SCHEMA, *form.statements, *SCHEMA, *self._functions()):
                session.change(statement)
            session.change(
                "INSERT INTO tique.format VALUES ($1, 0, 0, 0, $2)",
                [FORMAT_VERSION, form.name],
            )

        try:
            session.transact(create)
        except EngineError:
            # Of two processes that install at once the second one finds it done.
            found = session.execute("SELECT to_regclass('tique.format')::TEXT")
            if found.fetch_all() == [(None,)]:
                raise
        self.format_version()

    def _begin_schema_change(self, session: PostgreSQLSession) -> None:
        """Begin an engine transaction that changes what schema ``tique`` consists of."""
        session.change(f"SET LOCAL lock_timeout = '{LOCK_PATIENCE}'")
        session.execute(f"SELECT {path_locked('TRUE')}").fetch_all()

    def _functions(self) -> Sequence[str]:
        """Return the statements that make the functions beside the sequencer's."""
        return [guests_script()]

    @override
    def renew_format(self, session: PostgreSQLSession) -> None:
        form = Form.of(self.shared.form)

        def change() -> None:
            self._begin_schema_change(session)
            # Definer functions run as the role that makes them, never as another one.
            session.execute(_AS_OWNER).fetch_all()
            # Only one at a time: readers of the row go on.
            session.execute("SELECT FROM tique.format FOR UPDATE").fetch_all()
            if self.format_version() == FORMAT_VERSION:
                return
            expect_nobody_of_before(session)
            renew(session)
            for statement in (*form.removal, *form.statements, *SCHEMA):
                session.change(statement)
            session.change(_BY_TIME)
            session.change(slots.SCHEMA)
            session.change(_SCHEMA[-1])
            for statement in self._functions():
                session.change(statement)

        session.transact(change)

    @override
    def uninstall(self, session: PostgreSQLSession) -> None:
        session.execute("DROP EXTENSION IF EXISTS tique")
        super().uninstall(session)

    @override
    def managed_tables(self, session: PostgreSQLSession) -> list[Table]:
        def numbers() -> list[Row]:
            return session.execute(
                'SELECT id FROM tique."tables" ORDER BY id'
            ).fetch_all()

        def read() -> list[Table]:
            with without_path(session):
                return managed_tables(
                    session,
                    introspection.LAYOUTS,
                    lambda names: introspection.Descriptions(session, names).describe,
                )

        # The caller may have lost the connection over which it changed them.
        self._presence.await_lost()
        before = numbers()
        while True:
            found, failure = [], None
            try:
                found = session.transact_repeatable(read)
            except EngineError as error:
                failure = error
            # PostgreSQL looks some of it up in the catalog of the moment, where a table
            # that another process has dropped meanwhile is not any more.
            if (now := numbers()) == before:
                break
            before = now
        if failure is not None:
            raise failure
        return found

    @override
    def check_definition(self, session: PostgreSQLSession, table: Table) -> None:
        if not table.is_materialized:
            with without_path(session):
                purity.check_definition(session, table)
                expect_hashes(session, self.forms, table)

    @override
    def unique_indexes(self, session: PostgreSQLSession) -> Sequence[Row]:
        with without_path(session):
            return session.execute(UNIQUE_INDEXES).fetch_all()

    @override
    def owned_sequences(
        self, session: PostgreSQLSession, table: Table
    ) -> Sequence[str]:
        found = session.execute(introspection.OWNED_SEQUENCES, [storage_name(table)])
        return [name for (name,) in found.fetch_all()]

    @override
    def check_versions(self, session: PostgreSQLSession, table: Table) -> None:
        if not table.generated:
            session.guards.add(table, cache_name(table))
            session.guards.remove(table, cache_name(table))
            return
        # Versions lack the columns that the index may be of; staged rows have them.
        session.create_stage(table)
        columns = column_list(table)
        session.execute(
            f"INSERT INTO {stage_name(table)} ({columns}, _sequence, _deleted) "
            f"SELECT {columns}, _cts, _deleted FROM {cache_name(table)}"
        )
        session.guard_stage(table)
        session.drop_stage(table)

    @override
    def functions(self, session: PostgreSQLSession) -> list[Function]:
        return session.look(lambda: functions(session))

    @override
    def hidden_calls(self, session: PostgreSQLSession) -> list[HiddenCall]:
        return session.look(lambda: hidden_calls(session))

    @override
    def views(self, session: PostgreSQLSession) -> list[View]:
        return session.look(lambda: views(session))

    @override
    def materialized_views(self, session: PostgreSQLSession) -> list[View]:
        return session.look(lambda: views(session, "m"))

    @override
    def without_storage(
        self, session: PostgreSQLSession, tables: Sequence[Table]
    ) -> list[Table]:
        gone = session.execute(
            'SELECT id FROM tique."tables" WHERE id = ANY(CAST($1 AS BIGINT[])) AND '
            "to_regclass(format('%I.%I', schema_name, table_name)) IS NULL",
            [[table.id for table in tables]],
        ).fetch_all()
        return [table for table in tables if (table.id,) in gone]

    @override
    def user_tables(self, session: PostgreSQLSession) -> list[tuple[str, str]]:
        with without_path(session):
            return super().user_tables(session)

    @override
    def tables_of_type(self, session: PostgreSQLSession, name: str) -> Sequence[Row]:
        return session.execute(introspection.OF_TYPE, [name]).fetch_all()

    @override
    def _manage(self, session: PostgreSQLSession, table: Table) -> Table:
        expect_rights_of_owner(session, table)
        if not table.is_materialized:
            self._expect_own(session, table)
        table = self._numbered(session, table)
        cache = cache_name(table)
        stamps = ("_cts BIGINT NOT NULL", "_deleted BOOLEAN NOT NULL")
        self._create_alike(session, table, cache, stamps, _TIDY)
        self._index_cache(session, table)
        session.execute(
            'INSERT INTO tique."tables" VALUES ($1, $2, $3, 0, 0)',
            [table.id, table.schema, table.name],
        )
        if not any(is_own(column.type) for column in table.columns):
            return table
        # Columns of these types are held from now on.
        _run_all(session, KEEPING_ATTRIBUTES)
        return introspection.describe(session, table.schema, table.name, table.id)

    def _index_cache(self, session: PostgreSQLSession, table: Table) -> None:
        """Create indexes by which a scan begins behind what was folded."""
        cache = cache_name(table)
        session.execute(f"CREATE INDEX ON {cache} (_cts)")
        if not table.is_keyless:
            session.execute(f"CREATE INDEX ON {cache} ({_key_and('_cts', table)})")

    def _create_alike(
        self,
        session: PostgreSQLSession,
        table: Table,
        name: str,
        stamps: Sequence[str],
        options: str = "",
    ) -> None:
        """Create a table of tique's with the columns of a managed one, and its readers."""
        session.execute(
            f"CREATE TABLE {name} (LIKE {storage_name(table)} {STORED}, "
            f"{', '.join(stamps)}){options}"
        )
        for column in table.generated:
            session.execute(f"ALTER TABLE {name} DROP COLUMN {quote(column.name)}")
        for statement in readable_as(table, name):
            session.execute(statement)

    @override
    def _create_history(self, session: PostgreSQLSession, table: Table) -> None:
        name, key = history_name(table), table.primary_key
        self._create_alike(session, table, name, histories.STAMPS)
        for position, column in enumerate(table.columns):
            if column.not_null and position not in key:
                session.execute(
                    f"ALTER TABLE {name} ALTER {quote(column.name)} DROP NOT NULL"
                )
        session.execute(f"CREATE INDEX ON {name} USING brin (_until)")
        if key:
            session.execute(f"CREATE INDEX ON {name} ({_key_and('_until', table)})")

    @override
    def _take_history(
        self, session: PostgreSQLSession, table: Table, before: Table
    ) -> None:
        super()._take_history(session, table, before)
        name = history_name(table)
        # It names the table.
        session.execute(f"DROP POLICY as_its_table ON {name}")
        for statement in readable_as(table, name):
            session.execute(statement)

    @override
    def await_lockers(self, session: PostgreSQLSession, table: Table) -> None:
        if table.is_materialized:
            # There is no such statement for it.
            return

        def lock() -> None:
            session.change(f"SET LOCAL lock_timeout = '{LOCK_PATIENCE}'")
            session.execute(
                f"LOCK TABLE {storage_name(table)} IN ACCESS EXCLUSIVE MODE"
            ).close()

        session.transact(lock)

    @override
    def upgrade(self, session: PostgreSQLSession) -> None:
        _run_all(session, KEEPING_ATTRIBUTES)
        found: dict[int, str | None] = dict(session.execute(_UNORDERED).fetch_all())
        for table in self.managed_tables(session) if found else ():
            if table.id in found:
                if found[table.id] is not None:
                    session.execute(f"DROP INDEX {found[table.id]}")
                self._index_cache(session, table)

    @override
    def find_commit(self, session: PostgreSQLSession, txid: int) -> int | None:
        self._presence.await_lost()
        return super().find_commit(session, txid)

    @override
    def overwrite(
        self, session: PostgreSQLSession, table: Table, rows: Mapping[Row, Row | None]
    ) -> None:
        self._expect_own_now(session, table)
        super().overwrite(session, table, rows)

    @override
    def overwrite_cached(
        self, session: PostgreSQLSession, table: Table, after: int, until: int
    ) -> int:
        self._expect_own_now(session, table)
        return super().overwrite_cached(session, table, after, until)

    def _expect_own(self, session: PostgreSQLSession, table: Table) -> None:
        """Let the role's own code alone run with its rights, as in a fold (P11)."""
        session.execute(f"SELECT tique.guest_expect_own({quoted(storage_name(table))})")

    def _expect_own_now(self, session: PostgreSQLSession, table: Table) -> None:
        """The same in an engine transaction with one snapshot, which must not tell it.

        Another session looks, and waits for no lock: others may wait behind this one's.
        """
        place = storage_name(table)
        session.execute(f"LOCK TABLE {place} IN ROW EXCLUSIVE MODE")
        self._presence.ask(f"SELECT tique.guest_look_at({quoted(place)})")

    @override
    def storage_rows(self, session: PostgreSQLSession, table: Table) -> int:
        # The planner's estimate, for a size of now; a row takes a hundred bytes until
        # PostgreSQL has counted some.
        ((rows,),) = session.execute(
            "SELECT CASE WHEN reltuples > 0 AND relpages > 0 THEN reltuples / relpages * "
            "pg_relation_size(oid) / 8192 ELSE pg_relation_size(oid) / 100 END "
            "FROM pg_catalog.pg_class WHERE oid = "
            f"CAST({quoted(storage_name(table))} AS pg_catalog.regclass)"
        ).fetch_all()
        return int(rows)

    @override
    def depend_on_rows(
        self, calls: frozenset[str], parameters: Sequence[object]
    ) -> bool:
        return self._volatility.depend_on_rows(calls, parameters)

    @override
    def history_bytes(self, session: PostgreSQLSession, table: Table) -> int:
        name = quoted(history_name(table))
        found = session.execute(f"SELECT pg_total_relation_size({name})").fetch_all()
        return int(found[0][0])

    @override
    def clock(self, session: PostgreSQLSession) -> int:
        return int(session.execute(f"SELECT {NOW}").fetch_all()[0][0])

    @override
    def prune_log(
        self, session: PostgreSQLSession, until: int, retention: float
    ) -> None:
        fresh = self.shared.aside.fresh()

        def prune() -> tuple[int, int]:
            last = slots.prunable(session, until, lambda: self.clock(session))
            for part in fresh:
                # No other process can find these parts once they are pruned from the
                # log.
                session.change(
                    "INSERT INTO tique.aside VALUES ($1, $2, $3) ON CONFLICT DO NOTHING",
                    [part.cts, part.table_id or 0, part.reason],
                )
            session.change(
                "WITH _gone AS (DELETE FROM tique.log WHERE cts > $1 AND cts <= $2 "
                "RETURNING cts, txid, committed_at) "
                "INSERT INTO tique.outcomes SELECT * FROM _gone "
                "WHERE cts NOT IN (SELECT cts FROM tique.fences)",
                [self._pruned, last],
            )
            # The newest outcome stays: it is where the next cts starts.
            ((forgotten, latest),) = session.execute(
                "WITH _old AS (DELETE FROM tique.outcomes WHERE committed_at >= $1 "
                f"AND committed_at < {NOW} - CAST($2 AS BIGINT) "
                "AND cts < (SELECT max(cts) FROM tique.outcomes) "
                "RETURNING cts, txid, committed_at), "
                f"_kept AS ({histories.KEEPING_MOMENTS.format(commits='TABLE _old')}) "
                "SELECT coalesce(max(txid), 0), coalesce(max(committed_at), 0) FROM _old",
                [self._forgotten - _LATE, int(retention * 1e6)],
            ).fetch_all()
            if forgotten:
                session.change(
                    "UPDATE tique.format SET forgotten = $1 WHERE forgotten < $1",
                    [forgotten],
                )
            return last, int(latest)

        # What this process has deleted before is not looked for again, since an open snapshot
        # may keep it.
        pruned, forgotten = session.transact(prune)
        self._forgotten = max(forgotten, self._forgotten)
        self._pruned = max(pruned, self._pruned)

    @override
    def close(self) -> None:
        self.shared.close()
        self._presence.close()
