"""The execution of a connection whose queries may run on a replica.

*What runs there* is run by a second execution, in the replica's database, which is closed, and
abandoned, with the connection. Its rows are read before the application is given one. If that fails for
another reason than that it was stopped, the statement runs on the source: what the application sees
is the source's result, or its error.

*A read-only transaction* reads in one place. Its first query decides: on the source it begins
as any other and nothing of it is routed; on the replica it is *pinned* there, in one transaction
of the replica's, and never begins one of the source (:meth:`RoutedExecution.begin`).
"""

from __future__ import annotations

import re
import time
import weakref
from contextlib import ExitStack, suppress
from dataclasses import replace
from datetime import UTC
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique._translation import translating
from tique.connection.execution import Execution
from tique.connection.routing.options import OFF
from tique.connection.routing.router import Router, expect_plain
from tique.database.database import join, release
from tique.query.base import Outcome
from tique.query.transaction.isolation import IsolationLevel
from tique.timeline.replica import ReplicaTimeline
from tique_backends.catalog import replicas
from tique_rewriter.kinds.session.session import SessionPlan
from tique_rewriter.plans.plan import TransactionControl
from tique_rewriter.replica import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.connection.execution import ExecutionOptions
    from tique.connection.routing.router import Route
    from tique.database.database import Database
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_backends.records import Row

_EXPLAIN = re.compile(
    r"\s*EXPLAIN\b\s*(?:\([^)]*\)\s*|(?:ANALYZE|VERBOSE)\b\s*)*", re.IGNORECASE
)
_STOPPED = "57014"


class RoutedExecution(Execution):
    """Runs a connection's statements, some of its queries on a replica."""

    router: Router

    def __init__(
        self, owner: object, database: Database, options: ExecutionOptions
    ) -> None:
        assert options.routing is not None
        self.router = Router(options.routing, database, options.paramstyle)
        self._owner = weakref.ref(owner)
        self._replica: Execution | None = None
        """What runs there, while a replication runs in this process."""
        self._is_pinned = False
        """Whether the open transaction reads there."""
        self._is_there = self._is_stopped = False
        """Whether a statement is there at the moment, and was told to stop."""
        self._copies: tuple[int, dict[int, int]] = -1, {}
        """The version of the replica's catalog, and its tables by the source's numbers."""
        super().__init__(owner, database, options)

    @property
    @override
    def in_transaction(self) -> bool:
        return self._is_pinned or super().in_transaction

    @override
    def begin(self, *, planned_at: int | None = None) -> DDLTransaction:
        if self._is_pinned:
            raise errors.NotSupportedError(
                "the transaction reads the replica, where its first query ran, and this "
                "does not run there (EXPLAIN, behind its end, says why): end it, and run "
                "this in a transaction without a freshness (SET tique.freshness = off)",
                sqlstate="0A000",
            )
        return super().begin(planned_at=planned_at)

    @override
    def _leave(self, *, committed: bool, has_lost: bool) -> None:
        if self.transaction is not None:
            self.router.see(max(self.transaction.sts, self.last_cts))
        if self._is_pinned and self._replica is not None:
            self._replica.end(committed=committed)
        self._is_pinned = False
        self.router.within = None
        super()._leave(committed=committed, has_lost=has_lost)

    @override
    def _run_once(
        self, query: str, parameters: Any, *, blindly: bool = False
    ) -> Outcome:
        explained = None
        try:
            if self._is_pinned or (
                self.transaction is None and self.router.freshness != OFF
            ):
                outcome = self._run_there(query, parameters)
                if outcome is not None:
                    return outcome
            if found := _EXPLAIN.match(query):
                # (Before it: what EXPLAIN itself is shown is newer than the replica.)
                explained = self._explained(query[found.end() :], parameters)
        except Exception as error:
            self._expected(error, query)
            raise
        outcome = super()._run_once(query, parameters, blindly=blindly)
        if explained and outcome.rows is not None:
            outcome.rows.append(("replica", explained))
            outcome.rowcount += 1
        return outcome

    def _run_there(self, query: str, parameters: Any) -> Outcome | None:
        """Run a query on the replica; None: it runs on the source."""
        try:
            found = self._routed(query, parameters)
        except Refusal:
            return None
        self._is_stopped = False
        if found is None or not (
            self._is_pinned
            or self.router.is_fresh(self.lock_timeout, lambda: self._is_stopped)
        ):
            return None
        return self._ask(*found)

    def _routed(
        self, query: str, parameters: Any
    ) -> tuple[Route, Sequence[Any]] | None:
        """What runs on the replica, if that is fresh, and its parameters.

        Refusal if nothing does; None for statements of transactions and the session, and of tables
        that are not known here.
        """
        catalog, session = self.planner.catalog, self.live_session()
        prepared = self.planner.plan_blindly(query, parameters is not None)
        others = TransactionControl | SessionPlan
        if prepared is None or isinstance(prepared.plan, others):
            return None
        expect_plain(prepared.plan)
        controls = self.controls
        if not (self._is_pinned or self.commits_each or controls.is_read_only):
            raise Refusal("its transaction may write: BEGIN READ ONLY, or autocommit")
        if controls.level is IsolationLevel.SERIALIZABLE or controls.as_of is not None:
            raise Refusal("its transaction is SERIALIZABLE, or reads the past")
        if changed := self.sessions.changes_meaning():
            raise Refusal(f'the session has changed setting "{changed}"')
        bound = prepared.bind(parameters)
        values = None if parameters is None else bound
        route = self.router.route(query, values, catalog, session)
        if not self._is_pinned:
            self._attach()
        if not self._has(route):
            raise Refusal("a table of it is not in the replica, by its name")
        return route, bound

    def _has(self, route: Route) -> bool:
        """Whether the replica has its tables, as they are defined in the source."""
        replica, state = self._replica, self.router.state
        if replica is None or state is None:
            return True
        catalog = replica.database.catalog
        version, tables = catalog.version, catalog.by_id()
        if self._copies[0] != version:
            self._copies = version, replicas.sources(replica.live_session())
        stopped = {stop.source_id for stop in state.stopped.values()}
        copies = [tables.get(self._copies[1].get(each.id, 0)) for each in route.tables]
        return all(
            table.id not in stopped and copy is not None and copy.schema == table.schema
            for copy, table in zip(copies, route.tables, strict=True)
        )

    def _attach(self) -> None:
        """Have an execution there, if and only if a replication runs in this process."""
        router, replica = self.router, self._replica
        if replica is not None:
            if router.follow(replica.database):
                return
            self._replica = router.state = None
            replica.close()
        found = join(router.options.replica)
        if found is None:
            return
        with ExitStack() as undo:
            undo.callback(release, found)
            if not router.follow(found):
                return
            options = replace(
                self._options,
                isolation=IsolationLevel.SNAPSHOT,
                autocommit=True,
                routing=None,
            )
            self._replica = Execution(self._owner(), found, options)
            self._replica.controls.is_always_read_only = True
            undo.pop_all()

    def _ask(self, route: Route, bound: Sequence[Any]) -> Outcome | None:
        """Run it there, and read all of its rows; None: it runs on the source."""
        replica = self._replica
        assert replica is not None
        begins = not (self._is_pinned or self.commits_each)
        if not self._is_pinned:
            timeline = replica.database.timeline
            assert isinstance(timeline, ReplicaTimeline)
            fresh = self.router.reads_storage(time.monotonic())
            replica.controls.stored = timeline.stored if fresh else None
        if begins:
            replica.controls.open()
        self._is_there = True
        try:
            version, found = _rows(replica, route.sql, bound)
            rows = self._shown(route, found)
            if not (self._is_pinned or self._has(route)):
                # A table was copied anew as it ran.
                return None
            self._is_pinned |= begins
        except errors.Error as error:
            if self._is_pinned or error.sqlstate == _STOPPED:
                raise
            return None
        finally:
            self._is_there = False
            if begins and not self._is_pinned:
                replica.end()
        self.router.see(version)
        self.router.routed += 1
        return Outcome(len(rows), route.columns, rows)

    def _shown(self, route: Route, rows: list[Row]) -> list[Row]:
        """The replica's rows as the source's: with the driver's values, shown as its session does."""
        names = [column.type.partition("(")[0] for column in route.columns]
        makers = [_MAKERS.get(name) for name in names]
        if any(makers):
            rows = [
                tuple(
                    value if make is None or value is None else make(value)
                    for make, value in zip(makers, row, strict=True)
                )
                for row in rows
            ]
        return self.session.shown_results(route.columns, rows)

    def _explained(self, query: str, parameters: Any) -> str:
        """What EXPLAIN says of where a query runs."""
        try:
            if self.router.freshness == OFF:
                raise Refusal("no freshness is set")
            found = self._routed(query, parameters)
            if found is None:
                raise Refusal("it is no query of known tables")
            lack = self.router.lack(time.monotonic())
            if lack is not None:
                raise Refusal(f"{lack}; it would be\n{found[0].sql}")
        except Refusal as refusal:
            return f"does not run on the replica: {refusal}"
        stored = self.router.reads_storage(time.monotonic())
        state = ", as it was folded last" if stored else ""
        return f"runs on the replica{state}:\n{found[0].sql}"

    @override
    def cancel_waits(self) -> None:
        self._is_stopped = True
        replica = self._replica
        if self._is_there and replica is not None:
            # (It may be closed meanwhile.)
            with suppress(errors.InterfaceError):
                replica.cancel()
        super().cancel_waits()

    @override
    def _give_back(self) -> None:
        super()._give_back()
        if self._replica is not None:
            self._replica.close()


def _rows(replica: Execution, text: str, bound: Sequence[Any]) -> tuple[int, list[Row]]:
    """Run a query there, which has the engine's own placeholders; its version and rows."""
    with replica.guarded(text), translating():
        prepared = replica.planner.rewriter.plan_body(text)
        statement = replica.planner.statement(prepared)
        assert statement is not None
        bound = [bound[int(position)] for position in prepared.arguments]
        version = 0

        def run(transaction: DDLTransaction, values: Sequence[Any]) -> Outcome:
            nonlocal version
            outcome = statement.run(transaction, values)
            version = transaction.sts
            return outcome

        outcome = replica.run_in_transaction(statement, bound, run)
        if outcome.result is None:
            return version, outcome.rows or []
        return version, outcome.result.fetch_all()


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "NUMERIC": Decimal,
    "TIME": str,
    "TIMESTAMPTZ": lambda moment: moment.astimezone(UTC).isoformat(" "),
}
"""What makes the values of a type that the driver keeps of the replica's."""
