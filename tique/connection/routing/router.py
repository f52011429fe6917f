"""Which queries of a connection run on a replica in the same process, and when.

*Invariant (P1, P2).* A query that is routed sees the source after a whole number of commits, at least up to the
connection's *floor*: its own last commit, and all that it was shown by the source or the replica. So it
reads its own writes, and never goes back in time. With seconds as freshness it sees,
besides, all that was committed so long before the statement was called.

*Nothing is opened here.* The file belongs to the process that replicates into it. Where no replication
runs, the replica counts as too old. *The same role* is that of the connection and of the replication: who may
read the replica may read the source. If the process dies, nothing of this is left.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from tique import errors
from tique.connection.routing.options import (
    FRESHNESS,
    ON_STALE,
    freshness_of,
    shown_freshness,
    way_of,
)
from tique.database.url import shown_url
from tique_rewriter.dialects import rules_of
from tique_rewriter.plans.plan import Select
from tique_rewriter.replica import Refusal, family, parameter_type, translate
from tique_rewriter.text.placeholders import number_placeholders

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tique.connection.routing.options import RoutingOptions
    from tique.database.database import Database
    from tique.timeline.replica import ReplicaState
    from tique_backends.records import ResultColumn
    from tique_backends.session import Session
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.replica.types import Type
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.catalog import Catalog

_PATIENCE, _SLICE = 30.0, 0.05
_MOST_ROUTES = 1000


class Route(NamedTuple):
    """What the replica runs in place of a query, and what the source says of its result."""

    sql: str
    tables: Sequence[Table]
    columns: Sequence[ResultColumn]


class Router:
    """Decides for one connection, under its lock, with its options and database."""

    def __init__(self, options: RoutingOptions, source: Database, style: str) -> None:
        self.options, self._source, self._style = options, source, style
        self._always, self._way = options.freshness, options.on_stale
        self.within: float | None = None
        """The freshness that the open transaction was given, if it was."""
        self.floor = 0
        """The newest timestamp that the connection was shown, or has committed."""
        self.routed = 0
        """Queries that ran on the replica."""
        self.state: ReplicaState | None = None
        """That of the replica, while a replication runs in this process."""
        self._routes: dict[object, Route | str] = {}
        """By text, version of the definitions and types; or the reason why there is none."""
        if not source.engine.capabilities.has_replica_subset:
            raise errors.NotSupportedError(
                "replica= is not supported for this engine: what runs on a replica is "
                "translated from PostgreSQL's SQL"
            )
        self._name = shown_url(source.url)

    @property
    def freshness(self) -> float:
        """How old a state a query may be shown, in seconds."""
        return self._always if self.within is None else self.within

    def assign(self, name: str, value: str | None) -> None:
        """Give a setting a value; None: that of the connection's options."""
        options = self.options
        if name == FRESHNESS:
            self._always = options.freshness if value is None else freshness_of(value)
        else:
            self._way = options.on_stale if value is None else way_of(value)

    def shown(self) -> dict[str, str]:
        """The settings, as SHOW has them."""
        return {FRESHNESS: shown_freshness(self.freshness), ON_STALE: self._way}

    # The replica

    def see(self, cts: int) -> None:
        """Note that the connection was shown the source's commits up to here."""
        self.floor = max(self.floor, cts)

    def follow(self, replica: Database) -> bool:
        """Follow a replica if a replication of it runs in this process; InterfaceError if of another source."""
        state = replica.replica
        if state is None or not state.is_followed:
            return False
        if state.source != self._name:
            raise errors.InterfaceError(
                f"{self.options.replica.path} is a replica of {state.source}: connect by "
                "the URL, and as the role, by which it is replicated"
            )
        self.state = state
        return True

    def lack(self, since: float) -> str | None:
        """Why the replica is too old for a statement that was called then; None: it is not."""
        state, age = self.state, self.freshness
        if state is None or not state.is_followed:
            return "no replication into it runs in this process"
        if state.applied < self.floor:
            return (
                f"it has the commits up to {state.applied}, and this connection was shown, "
                f"or has made, {self.floor}"
            )
        if state.asked < since - age:
            return f"it may be {since - state.asked:.3g} s behind, allowed are {age:g}"
        return None

    def reads_storage(self, since: float) -> bool:
        """Whether what the replica has in storage is fresh enough for a statement of then.

        The engine reads that as it is, by its native plan.
        """
        state = self.state
        return (
            state is not None
            and state.durable >= max(self.floor, state.stored_ready_at)
            and state.stored_asked >= since - self.freshness
        )

    def is_fresh(self, patience: float | None, is_stopped: Callable[[], bool]) -> bool:
        """Whether the replica is fresh enough for a statement that is called now.

        It is waited for, for so many seconds, if the connection says so. OperationalError if it does
        not want the source then (SQLSTATE 55000), or the statement was stopped (57014).
        """
        since, state = time.monotonic(), self.state
        until = since + (_PATIENCE if patience is None else patience)
        while (lack := self.lack(since)) is not None and self._way != "source":
            rest = until - time.monotonic()
            if is_stopped():
                message = "canceling statement due to user request"
                raise errors.OperationalError(message, sqlstate="57014")
            if self._way == "error" or state is None or rest <= 0:
                message = f"the replica is too old: {lack}"
                raise errors.OperationalError(message, sqlstate="55000")
            state.wait(self.floor, since - self.freshness, min(rest, _SLICE))
        return lack is None

    # Queries

    def route(
        self,
        text: str,
        values: Sequence[Any] | None,
        catalog: Catalog,
        session: Session,
    ) -> Route:
        """What the replica runs in place of a query, for parameters as these; Refusal if nothing.

        The source's session is asked, once, whether it takes it, and for the names and types of its
        results: its tables have the same names, and no row is asked for.
        """
        types = None if values is None else tuple(map(parameter_type, values))
        key = text, catalog.version, types
        found = self._routes.get(key)
        if found is None:
            try:
                found = self._translate(text, types, values or (), catalog, session)
            except Refusal as refusal:
                found = str(refusal)
            if len(self._routes) >= _MOST_ROUTES:
                self._routes.clear()
            self._routes[key] = found
        if isinstance(found, str):
            raise Refusal(found)
        return found

    def _translate(
        self,
        text: str,
        types: Sequence[Type | None] | None,
        values: Sequence[Any],
        catalog: Catalog,
        session: Session,
    ) -> Route:
        engine, given = self._source.engine.capabilities, types is not None
        lexicon = rules_of(engine.dialect).lexicon
        lexed = number_placeholders(text, self._style, given, lexicon=lexicon)
        is_c = engine.sorts_by_bytes
        made = translate(lexed, types or (), catalog.find, collation_is_c=is_c)
        body = lexed.text.rstrip("; \t\r\n")
        query = f"SELECT * FROM ({body}\n) AS _tique LIMIT 0"
        result = session.execute(query, values)
        result.close()
        found = tuple(family(column.type) for column in result.columns)
        if found != made.types:
            raise Refusal(f"its results are {', '.join(found)}, not as translated")
        return Route(made.sql, made.tables, result.columns)


def expect_plain(plan: Plan) -> None:
    """Raise Refusal for all but queries of tables, as they are."""
    if not isinstance(plan, Select):
        raise Refusal("it is no plain query")
    if not plan.references:
        raise Refusal("it reads no table")
    for reference in plan.references:
        table = reference.table
        if reference.past or reference.view or table.is_temporary:
            raise Refusal(f"{table.name} is a view, temporary, or read as it was")
