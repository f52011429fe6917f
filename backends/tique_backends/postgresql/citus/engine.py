"""A PostgreSQL database that Citus distributes over several servers.

This process talks to the coordinator alone. Where tables are says
:mod:`tique_backends.postgresql.citus.placement`; how they are written is argued in
:mod:`tique_backends.postgresql.citus.moves`.

*Only what is tique's own is kept from the workers*: the schema is made without propagation, but
for cache tables. DDL of the application's, and adoption, are propagated as ever.

*Not on distributed tables:* folds from memory (each row would be its own shard's statement),
uncommitted folds and engine snapshots (each node has a snapshot of its own), histories, and many
rows that are written in a transaction with DDL.
"""

from __future__ import annotations

from dataclasses import replace
from importlib.resources import files
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.names import cache_name
from tique_backends.postgresql import folding
from tique_backends.postgresql.citus import moves
from tique_backends.postgresql.citus.forms import CitusForms
from tique_backends.postgresql.citus.placement import (
    Placement,
    expect_placed,
    moved,
    place,
    placements,
    shape_name,
)
from tique_backends.postgresql.citus.sequencer import (
    CitusGuestSequencer,
    CitusSequencer,
)
from tique_backends.postgresql.engine import PostgreSQLEngine
from tique_backends.postgresql.guests import GuestEngine
from tique_backends.postgresql.log import decoded
from tique_backends.postgresql.sessions.limits import LIMIT
from tique_backends.records import Versions
from tique_backends.servers.logged import versions_of
from tique_backends.servers.replaying import fences, whole_versions
from tique_backends.sharing import FoldedMeanwhileError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tique_backends.postgresql.sessions.presence import Presence
    from tique_backends.postgresql.sessions.session import PostgreSQLSession
    from tique_backends.records import Row, Statistics
    from tique_rewriter.plans.plan import SiblingConstruct
    from tique_rewriter.schema import Table

_FOUND = (
    "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL, "
    "current_setting('citus.enable_ddl_propagation', TRUE)"
)
_GROUP = "SELECT groupid FROM pg_catalog.pg_dist_local_group"

_SETTING = "set_config('citus.multi_shard_modify_mode', 'sequential', FALSE)"
"""Parallel connections to a node cost a drain thirty times its time, and deadlock where foreign
keys are (``docs/howto/distributed.md``)."""

_HIDDEN = "SET LOCAL citus.enable_ddl_propagation TO off"


def is_distributed(presence: Presence) -> bool:
    """Whether the database is a coordinator's; then this process's sessions are prepared.

    Raises
    ------
    EngineError
        UNSUPPORTED for a worker's, or a session that does not propagate DDL.
    """
    ((is_there, propagation),) = presence.ask(_FOUND)
    if not is_there:
        return False
    ((group,),) = presence.ask(_GROUP)
    if group != 0:
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            "this server is a worker of Citus: connect to the coordinator",
        )
    if propagation != "on":
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            "citus.enable_ddl_propagation is off here: DDL would not reach the shards; leave "
            "that setting out of the URL, the role and the database",
        )
    presence.prepare(_SETTING)
    return True


class CitusEngine(PostgreSQLEngine):
    """A database of a coordinator, which several processes share."""

    shared: CitusSequencer

    def __init__(
        self, presence: Presence, statistics: Statistics, sequencer: str | None
    ) -> None:
        self.forms: CitusForms
        self._placed: dict[int, Placement] = {}
        self._moves = moves.Moves(self._fold_shards, self._undo_drain)
        super().__init__(presence, statistics, sequencer)
        self.forms = CitusForms(self._placed)
        self._alone = CitusForms(self._placed, alone=True)
        self.capabilities = replace(
            self.capabilities,
            defines_beside_snapshots=False,
            reads_uncommitted_folds=False,
            keeps_undone_rows=False,
            refuses_joins=True,
        )

    @override
    def _client(self) -> CitusSequencer:
        return CitusSequencer(self._presence, self._placed, self._moves)

    @override
    def forms_beside(
        self, parts: frozenset[SiblingConstruct], company: Sequence[Table] = ()
    ) -> CitusForms:
        return self._alone if len(company) == 1 else self.forms

    def _column(self, table: Table) -> str | None:
        placed = self._placed.get(table.id)
        return None if placed is None else placed.column

    @override
    def overlays(self, table: Table, bound: Collection[int]) -> bool:
        # Rows of the statement's own are the coordinator's, where those of all shards would
        # have to come.
        column = self._column(table)
        if column is None:
            return table.id not in self._placed or bool(bound)
        return any(table.columns[i].name == column for i in bound)

    @override
    def _begin_schema_change(self, session: PostgreSQLSession) -> None:
        super()._begin_schema_change(session)
        session.change(_HIDDEN)

    @override
    def _functions(self) -> Sequence[str]:
        return [*super()._functions(), *_own_statements()]

    @override
    def upgrade(self, session: PostgreSQLSession) -> None:
        def add() -> None:
            # Citus may have come to a database that was managed before.
            self._begin_schema_change(session)
            for statement in _own_statements():
                session.change(statement)

        session.transact(add)
        moves.settle_in(session)
        super().upgrade(session)

    @override
    def managed_tables(self, session: PostgreSQLSession) -> list[Table]:
        tables, placed = placements(session, super().managed_tables(session))
        # Other threads go by it meanwhile.
        self._placed.update(placed)
        for number in set(self._placed).difference(placed):
            del self._placed[number]
        return tables

    @override
    def _index_cache(self, session: PostgreSQLSession, table: Table) -> None:
        super()._index_cache(session, table)
        placed = place(session, table)
        if placed is not None:
            self._placed[table.id] = placed
            cache = cache_name(table)
            session.execute(f"CREATE TABLE {shape_name(table)} (LIKE {cache})").close()

    @override
    def unmanage(
        self, session: PostgreSQLSession, table: Table, *, keeps_history: bool = False
    ) -> None:
        super().unmanage(session, table, keeps_history=keeps_history)
        session.change("DELETE FROM tique.moves WHERE id = $1", [table.id])
        session.change(f"DROP TABLE IF EXISTS {shape_name(table)}")
        self._placed.pop(table.id, None)

    @override
    def _create_history(self, session: PostgreSQLSession, table: Table) -> None:
        if table.id in self._placed:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"{table.qualified_name} is distributed by Citus: it cannot have a history",
            )
        super()._create_history(session, table)

    @override
    def folds_rows(self, table: Table) -> bool:
        return table.id not in self._placed

    @override
    def fold(
        self,
        session: PostgreSQLSession,
        table: Table,
        until: int,
        *,
        since: int | None = None,
        appended: bool = False,
        columns_set: Collection[int] | None = None,
    ) -> int:
        if table.id not in self._placed:
            return super().fold(
                *(session, table, until),
                since=since,
                appended=appended,
                columns_set=columns_set,
            )
        _expect_alone(session, table)
        if since is None:
            self._moves.complete(session, table)
            since = self.folded_until(session, table)
            if since >= until:
                return 0
        folded = self._moves.fold(session, table, until, since)
        if folded is None:
            raise FoldedMeanwhileError(
                ErrorKind.OPERATIONAL,
                f"another process has folded {table.qualified_name} meanwhile",
            )
        return folded

    def _fold_shards(
        self, session: PostgreSQLSession, table: Table, state: moves.State, until: int
    ) -> int:
        session.execute(f"SELECT {folding.sealed(session, table)}").close()
        expect_placed(session, table, self._placed.get(table.id))
        folding.overwrite_cached(session, table, state.folded, until)
        return session.change(f"DELETE FROM {cache_name(table)} WHERE _cts <= {until}")

    def _undo_drain(
        self, session: PostgreSQLSession, table: Table, state: moves.State, until: int
    ) -> int:
        stamps = [cts for cts, *_ in self._logged(session, table, max(state), until)]
        if not stamps:
            return 0
        return session.change(
            f"DELETE FROM {cache_name(table)} WHERE _cts = ANY (CAST($1 AS BIGINT[]))",
            [sorted(set(stamps))],
        )

    def _logged(
        self, session: PostgreSQLSession, table: Table, after: int, until: int
    ) -> list[tuple[int, Row, bool]]:
        """The logged versions of a table, perhaps in part, with ``after`` < cts ≤ ``until``."""
        entries = session.execute(
            "SELECT cts, txid, commits FROM tique.log WHERE cts > $1 AND cts <= $2 "
            "ORDER BY cts",
            [after, until],
        ).fetch_all()
        aside = self.shared.aside
        found = decoded(entries, aside)
        return list(versions_of(table, found, aside, fences(session)))

    @override
    def _move(
        self,
        session: PostgreSQLSession,
        table: Table,
        since: int | None,
        until: int,
        write: Callable[[], object],
    ) -> int:
        # Folds of distributed tables, and nothing else, are moves of moves.py.
        assert table.id not in self._placed

        def checked() -> None:
            expect_placed(session, table, None)
            write()

        return super()._move(session, table, since, until, checked)

    @override
    def changed_past(self, table: Table) -> str | None:
        return moved(self._presence.ask, table, self._placed.get(table.id))

    @override
    def remove_orphans(self, session: PostgreSQLSession, table: Table) -> int:
        if table.id not in self._placed:
            return super().remove_orphans(session, table)
        self._moves.complete(session, table)
        stamps = [cts for cts, _ in self.cached_commits(session, table)]
        orphans = session.execute(
            "SELECT _n.cts FROM unnest(CAST($1 AS BIGINT[])) AS _n(cts) "
            f"WHERE _n.cts NOT IN (SELECT cts FROM ({self._committed}) AS _c)",
            [stamps],
        ).fetch_all()
        if not orphans:
            return 0
        gone = session.change(
            f"DELETE FROM {cache_name(table)} WHERE _cts = ANY (CAST($1 AS BIGINT[]))",
            [[cts for (cts,) in orphans]],
        )
        moves.settle_in(session)
        return gone

    @override
    def replay(self, session: PostgreSQLSession, table: Table) -> int:
        if table.id not in self._placed:
            return super().replay(session, table)
        replayed = 0

        def append(state: moves.State, until: int) -> int:
            nonlocal replayed
            logged = self._logged(session, table, max(state), until)
            versions = whole_versions(session, table, logged, self.shared.aside)
            if versions:
                stamps, rows, deleted = zip(*versions, strict=True)
                session.append(Versions(table, rows, stamps, deleted))
            replayed = len(versions)
            return replayed

        self._moves.drain(session, table, self.last_commit(session), append)
        return replayed


def _own_statements() -> list[str]:
    script = files(__package__).joinpath("shards.sql").read_text("utf-8")
    return [moves.SCHEMA, script.replace("{limit}", str(LIMIT))]


def _expect_alone(session: PostgreSQLSession, table: Table) -> None:
    if session.is_held:
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"{table.qualified_name} is distributed: its rows cannot be written in bulk in a "
            "transaction that changes definitions; commit first",
            "25001",
        )


class CitusGuestEngine(CitusEngine, GuestEngine):
    """Such a database that another role owns."""

    shared: CitusGuestSequencer

    @override
    def _client(self) -> CitusGuestSequencer:
        return CitusGuestSequencer(self._presence, self._placed, self._moves)
