"""One MonetDB database: tique's schema in it, folding, recovery.

Atomicity rests on MonetDB's own transactions and write-ahead log: a commit is one row
of the log, and every fold is one engine transaction under snapshot isolation. A crash
of either side at any instruction leaves all of it or nothing. No table of tique's own
has a key: concurrent inserts into a table with one abort each other.

Bodies that may meet a concurrent change are run again as a whole by
:meth:`MonetDBSession.transact`, whose module says why that is safe. It is enough that
each body here reads all that it depends on inside its transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.catalog import foreign_keys, histories, slots
from tique_backends.catalog.managed import managed_tables, renew
from tique_backends.engine import FORMAT_VERSION, Capabilities
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb import folding
from tique_backends.monetdb.catalog import introspection
from tique_backends.monetdb.catalog.functions import (
    OF_ROWS,
    SHADOWED,
    functions,
    hidden_calls,
)
from tique_backends.monetdb.catalog.paths import resolve
from tique_backends.monetdb.catalog.widening import widening
from tique_backends.monetdb.forms import ApartForms, MonetDBForms
from tique_backends.monetdb.log import NOW, unfenced
from tique_backends.monetdb.names import version_columns
from tique_backends.monetdb.sequencer import MonetDBSequencer
from tique_backends.monetdb.sessions.owner import OWNER_SCHEMA, Ownership
from tique_backends.monetdb.sessions.session import MonetDBSession
from tique_backends.monetdb.sessions.settings import RULES
from tique_backends.monetdb.values.inserting import insert
from tique_backends.monetdb.values.types import (
    is_kept_as_text,
    reads_alike,
    rows_to_arrow,
)
from tique_backends.names import cache_name, history_label, history_name, storage_name
from tique_backends.records import Statistics
from tique_backends.servers.server_engine import ServerEngine
from tique_rewriter.plans.plan import SiblingConstruct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.forms import Forms
    from tique_backends.monetdb.sessions.connection import Address
    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_SCHEMA = (
    "CREATE SCHEMA tique",
    "CREATE TABLE tique.format (version INTEGER NOT NULL, epoch BIGINT NOT NULL, "
    "forgotten BIGINT NOT NULL, last_table BIGINT NOT NULL)",
    f"INSERT INTO tique.format VALUES ({FORMAT_VERSION}, 0, 0, 0)",
    'CREATE TABLE tique."tables" (id BIGINT NOT NULL, schema_name CLOB NOT NULL, '
    "table_name CLOB NOT NULL, folded BIGINT NOT NULL, drained BIGINT NOT NULL)",
    "CREATE TABLE tique.log (cts BIGINT NOT NULL, committed_at BIGINT NOT NULL, "
    "commits CLOB NOT NULL)",
    "CREATE TABLE tique.outcomes (cts BIGINT NOT NULL, txid BIGINT NOT NULL, "
    "committed_at BIGINT NOT NULL)",
    "CREATE TABLE tique.fences (cts BIGINT NOT NULL)",
    *histories.SCHEMA,
    slots.SCHEMA,
    *widening(
        "tique.log",
        {
            "cts": ("BIGINT", True),
            "committed_at": ("BIGINT", True),
            "commits": ("CLOB", True),
        },
    ),
)

_FOREIGN_KEYS = (
    foreign_keys.CREATION,
    *widening(
        "tique.foreign_keys",
        {
            "id": ("BIGINT", True),
            "number": ("BIGINT", True),
            "definition": ("CLOB", True),
        },
    ),
)


class MonetDBEngine(ServerEngine[MonetDBSession]):
    """A database of a MonetDB server.

    Several processes share it if the server has tique's module; without it a process
    owns the database while it is open.
    """

    _introspection = introspection
    _folding = folding
    settings = RULES
    resolve_path = staticmethod(resolve)
    functions = staticmethod(functions)
    hidden_calls = staticmethod(hidden_calls)
    views = staticmethod(introspection.views)
    columnar = staticmethod(reads_alike)
    arrow = staticmethod(rows_to_arrow)
    # A page of 1024 rows takes the server as long as one row, and the driver 4 µs a
    # row; VALUES in FROM take more than linear time.
    capabilities = Capabilities(
        dialect="monetdb",
        page_keys=1024,
        overlay_values=2000,
        # Its COMMIT is refused beside one (README).
        defines_beside_snapshots=False,
        number_prefix="%",
        picks_joined_row=False,
        alters_foreign_keys=True,
        # 11.41: "BATproject2: does not match always".
        undoes_temporary_tables=False,
        reads_uncommitted_folds=True,
        computes_deleted_rows=True,
    )

    keeping_foreign_keys = _FOREIGN_KEYS
    newest_commit = (
        "SELECT coalesce(max(cts), 0) FROM (SELECT cts FROM tique.log "
        "UNION ALL SELECT cts FROM tique.outcomes "
        'UNION ALL SELECT folded FROM tique."tables") AS _c'
    )

    def __init__(self, address: Address) -> None:
        super().__init__()
        self.forms = MonetDBForms()
        self._forms_beside = {
            (False, False): self.forms,
            (False, True): MonetDBForms(hides_keys=True),
            (True, False): ApartForms(),
            (True, True): ApartForms(hides_keys=True),
        }
        self.statistics = Statistics()
        self._ownership = Ownership(address, self.statistics)
        self.shared: MonetDBSequencer | None = None
        try:
            if MonetDBSequencer.is_loaded(self._ownership):
                self.shared = MonetDBSequencer(self._ownership)
            else:
                self._ownership.claim()
            if self._ownership.ask(r"SELECT length('\\')") != [(1,)]:
                raise EngineError(
                    ErrorKind.UNSUPPORTED,
                    "the server was started with raw_strings=true: tique reads "
                    "statements by the default, in which strings have escapes",
                )
            ((schema,),) = self._ownership.ask("SELECT CURRENT_SCHEMA")
            if schema != "sys":
                # Names are looked for there after the user's own schema.
                self.search_path = (schema, "sys")
        except BaseException:
            self.close()
            raise

    @override
    def forms_beside(
        self, parts: frozenset[SiblingConstruct], company: Sequence[Table] = ()
    ) -> Forms:
        apart = bool(
            parts & {SiblingConstruct.COMPARISON, SiblingConstruct.COMPUTED_ORDER}
        )
        return self._forms_beside[apart, SiblingConstruct.JOINS in parts]

    @override
    def session(self, *, logs_only: bool = False) -> MonetDBSession:
        connection = self._ownership.connect()
        try:
            return MonetDBSession(connection, self._ownership)
        except BaseException:
            connection.close()
            raise

    @override
    def round_trips(self, type_name: str) -> bool:
        return not is_kept_as_text(type_name)

    @override
    def keeps(self, type_name: str) -> bool:
        # Other types than it knows no table has.
        return True

    @override
    def compares(self, type_name: str) -> bool:
        # 0 and -0 are equal.
        return type_name != "REAL"

    @override
    def is_managed(self) -> bool:
        sql = "SELECT 1 FROM sys.schemas WHERE name = R'tique'"
        return bool(self._ownership.ask(sql))

    @override
    def format_version(self) -> int:
        rows = self._ownership.ask("SELECT version FROM tique.format")
        return int(rows[0][0]) if rows else -1

    @override
    def install(self, session: MonetDBSession) -> None:
        statements = [*_SCHEMA, *OWNER_SCHEMA]
        if self.shared is None:
            statements.append(self._ownership.claiming())
        else:
            statements += self.shared.schema()

        def create() -> None:
            for statement in statements:
                session.execute(statement)

        try:
            session.transact(create)
        except EngineError:
            if self.shared is None:
                # Another process may have been faster, and is the owner then.
                self._ownership.claim()
                raise
            if not self.is_managed():
                raise
        if self.shared is None:
            self._ownership.claimed()

    @override
    def renew_format(self, session: MonetDBSession) -> None:
        def change() -> None:
            if self.format_version() == FORMAT_VERSION:
                # Another process was faster.
                return
            if self.shared is not None:
                self.shared.expect_nobody(session)
            renew(session)
            session.execute(slots.SCHEMA)

        session.transact(change)

    @override
    def managed_tables(self, session: MonetDBSession) -> list[Table]:
        def read() -> list[Table]:
            descriptions = introspection.Descriptions(session)
            return managed_tables(
                session, introspection.LAYOUTS, lambda _: descriptions.describe
            )

        # Another process may drop one of them meanwhile.
        return session.transact(read)

    @override
    def _manage(self, session: MonetDBSession, table: Table) -> Table:
        managed = self._numbered(session, table)
        session.execute(
            'INSERT INTO tique."tables" VALUES ($1, $2, $3, 0, 0)',
            [managed.id, table.schema, table.name],
        )
        layout = version_columns(table, "_cts BIGINT", "_deleted BOOLEAN")
        session.execute(f"CREATE TABLE {cache_name(managed)} ({layout})")
        self._widen(session, managed)
        return introspection.describe(session, table.schema, table.name, managed.id)

    def _widen(self, session: MonetDBSession, table: Table) -> None:
        columns = {c.name: (c.type, c.not_null) for c in table.columns}
        stamps = {"_cts": ("BIGINT", True), "_deleted": ("BOOLEAN", True)}
        statements = widening(cache_name(table), columns | stamps)
        storage = storage_name(table)
        # Rows in an adopted table have been read already.
        is_used = session.execute(f"SELECT 1 FROM {storage} LIMIT 1").fetch_all()
        if not is_used:
            keys = [
                [table.columns[i].name for i in key]
                for key in (table.primary_key, *table.unique)
                if key
            ]
            statements += widening(storage, columns, keys)
        for statement in statements:
            session.execute(statement)

    @override
    def _create_history(self, session: MonetDBSession, table: Table) -> None:
        columns = [replace(column, not_null=False) for column in table.columns]
        images = replace(table, columns=tuple(columns))
        name = history_name(table)
        layout = [version_columns(images), *histories.STAMPS]
        session.execute(f"CREATE TABLE {name} ({', '.join(layout)})")
        stamps = {"_until": ("BIGINT", True), "_there": ("BOOLEAN", True)}
        kinds = {c.name: (c.type, False) for c in columns}
        for statement in widening(name, kinds | stamps):
            session.execute(statement)

    @override
    def _count(self, session: Session, counter: str) -> int:
        session.execute(f"UPDATE tique.format SET {counter} = {counter} + 1")
        rows = session.execute(f"SELECT {counter} FROM tique.format").fetch_all()
        return int(rows[0][0])

    @override
    def _count_alone(self, session: Session, counter: str) -> int:
        return session.transact(lambda: self._count(session, counter))

    @override
    def find_commit(self, session: MonetDBSession, txid: int) -> int | None:
        self._ownership.await_lost()
        rows = session.execute(
            "SELECT cts FROM tique.outcomes WHERE txid = $1", [txid]
        ).fetch_all()
        if rows:
            return int(rows[0][0])
        rows = session.execute(
            "SELECT commits FROM tique.log WHERE commits LIKE $1", [f"%,{txid},%"]
        ).fetch_all()
        found = [c.cts for c, _ in unfenced(session, rows) if c.txid == txid]
        return found[0] if found else None

    @override
    def commits(
        self, session: MonetDBSession, since: int, until: int, most: int
    ) -> list[tuple[int, int, int]]:
        between = f"cts > {since} AND cts <= {until}"
        found: list[tuple[int, int, int]] = session.execute(
            f"SELECT cts, txid, committed_at FROM tique.outcomes WHERE {between} "
            f"ORDER BY cts LIMIT {most}"
        ).fetch_all()
        # A group of commits is logged under the cts of one of them.
        entries = session.execute(
            f"SELECT commits, committed_at FROM tique.log WHERE cts > {since}"
        ).fetch_all()
        found += [
            (commit.cts, commit.txid, at)
            for commit, (_, at) in unfenced(session, entries)
            if since < commit.cts <= until
        ]
        return sorted(found)[:most]

    @override
    def remove_orphans(self, session: MonetDBSession, table: Table) -> int:
        cache = cache_name(table)

        def remove() -> int:
            # Release 0.1.0 may have drained versions beside the fold that moved
            # them: the next fold would take them for newer than storage.
            session.execute(
                f"DELETE FROM {cache} WHERE _cts <= {self.folded_until(session, table)}"
            )
            # Outcomes are deleted only up to timestamps that have been folded.
            stamps = {
                cts
                for (cts,) in session.execute(
                    f"SELECT DISTINCT _cts FROM {cache} "
                    "WHERE _cts NOT IN (SELECT cts FROM tique.outcomes)"
                ).fetch_all()
            }
            if stamps:
                rows = session.execute("SELECT commits FROM tique.log").fetch_all()
                stamps.difference_update(c.cts for c, _ in unfenced(session, rows))
            if not stamps:
                return 0
            orphans = ", ".join(map(str, sorted(stamps)))
            return session.change(f"DELETE FROM {cache} WHERE _cts IN ({orphans})")

        return session.transact(remove)

    @override
    def depend_on_rows(
        self, calls: frozenset[str], parameters: Sequence[object]
    ) -> bool:
        # One may have been created since the last query.
        return calls <= OF_ROWS and not self._ownership.ask(SHADOWED)

    @override
    def history_bytes(self, session: MonetDBSession, table: Table) -> int:
        ((found,),) = session.execute(
            "SELECT coalesce(sum(columnsize + heapsize), 0) "
            f"FROM sys.storage('tique', '{history_label(table.id)}')"
        ).fetch_all()
        return int(found)

    @override
    def clock(self, session: MonetDBSession) -> int:
        return int(session.execute(f"SELECT {NOW}").fetch_all()[0][0])

    @override
    def prune_log(self, session: MonetDBSession, until: int, retention: float) -> None:
        def prune() -> None:
            last = slots.prunable(session, until, lambda: self.clock(session))
            _prune(session, last, retention)

        session.transact(prune)

    @override
    def close(self) -> None:
        if self.shared is not None:
            self.shared.close()
        self._ownership.close()


def _prune(session: MonetDBSession, until: int, retention: float) -> None:
    """Turn log entries into outcomes, and forget outcomes that are too old."""
    entries = session.execute(
        f"SELECT commits, committed_at FROM tique.log WHERE cts <= {until}"
    ).fetch_all()
    if entries:
        outcomes = [
            (commit.cts, commit.txid, committed_at)
            for commit, (_, committed_at) in unfenced(session, entries)
        ]
        if outcomes:
            session.change(insert("tique.outcomes", outcomes, ["BIGINT"] * 3))
        session.execute(f"DELETE FROM tique.log WHERE cts <= {until}")
    # The newest outcome stays: it is where the next cts starts.
    ((now,),) = session.execute(f"SELECT {NOW}").fetch_all()
    oldest = int(now) - int(retention * 1e6)
    old = (
        f"FROM tique.outcomes WHERE committed_at < {oldest} "
        "AND cts < (SELECT max(cts) FROM tique.outcomes)"
    )
    ((forgotten,),) = session.execute(
        f"SELECT coalesce(max(txid), 0) {old}"
    ).fetch_all()
    if forgotten:
        going = f"SELECT cts, committed_at {old}"
        session.execute(histories.KEEPING_MOMENTS.format(commits=going))
        session.execute(
            f"UPDATE tique.format SET forgotten = {forgotten} "
            f"WHERE forgotten < {forgotten}"
        )
        session.execute(f"DELETE {old}")
