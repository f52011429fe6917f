"""CREATE and REFRESH MATERIALIZED VIEW.

The engine's own materialized view is a managed table without a key, to which no version is
ever written. It is filled by the engine, from storage, in a transaction with DDL, which is
opened for the statement if need be (:mod:`tique.query.migration`). Each refresh gives
it another number (P1): a statement finds the rows of the number that its snapshot
knows, or fails (:mod:`tique.query.redefinition`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.statements.base import Outcome, Statement
from tique_rewriter.materialized import tables_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.ddl_plans import CreateMaterialized, RefreshMaterialized
    from tique_rewriter.schema import Table


class CreateMaterializedStatement(Statement):
    """CREATE MATERIALIZED VIEW."""

    defines = is_held = True

    def __init__(self, plan: CreateMaterialized) -> None:
        super().__init__(plan)
        self._create = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Create the view, without rows; then fill it."""
        create, catalog = self._create, transaction.catalog
        schema, name = create.name
        if catalog.named(schema, name) or catalog.view(schema, name):
            if create.if_not_exists:
                return Outcome()
            raise errors.ProgrammingError(
                f"table or view {schema}.{name} exists already", sqlstate="42P07"
            )

        def define() -> Table:
            engine, session = transaction.engine, transaction.session
            session.execute(f"{create.text} WITH NO DATA").close()
            if create.has_rows:
                made = engine.describe(session, schema, name)
                expect_in_storage(transaction, made)
                place = engine.forms.plain(made)
                session.execute(f"REFRESH MATERIALIZED VIEW {place}").close()
            return engine.describe(session, schema, name)

        fill(transaction, define)
        return Outcome()


class RefreshMaterializedStatement(Statement):
    """REFRESH MATERIALIZED VIEW."""

    defines = is_held = True

    def __init__(self, plan: RefreshMaterialized) -> None:
        super().__init__(plan)
        self._refresh = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Have the engine compute its rows anew."""
        refresh, catalog = self._refresh, transaction.catalog
        # Its number may be another one by now.
        view = catalog.find(refresh.view.schema, refresh.view.name)
        if view is None or not view.is_materialized:
            raise errors.ProgrammingError(
                f"{refresh.view.qualified_name} was dropped meanwhile", sqlstate="42P01"
            )

        def define() -> Table:
            engine, session = transaction.engine, transaction.session
            if refresh.has_rows:
                expect_in_storage(transaction, view)
            engine.unmanage(session, view)
            session.execute(refresh.text).close()
            return engine.describe(session, view.schema, view.name)

        fill(transaction, define)
        return Outcome()


def fill(transaction: Transaction, define: Callable[[], Table]) -> None:
    """Run what gives a materialized view other rows, and manage it under another number."""
    changes, session = transaction.ddl.changes, transaction.session
    changes.expect_possible(transaction)
    since: dict[int, float] = {}

    def change() -> None:
        made = transaction.engine.manage(session, define())
        since[made.id] = transaction.sts

    changes.transact(session, change, since)


def expect_in_storage(transaction: Transaction, view: Table) -> None:
    """Refuse to fill a view from tables that storage has not as the transaction sees them."""
    engine, migration = transaction.engine, transaction.migration
    assert migration is not None
    for each in engine.materialized_views(transaction.session):
        if (each.table.schema, each.table.name) == (view.schema, view.name):
            for table in tables_of(
                transaction.catalog, engine.capabilities.dialect, each
            ):
                migration.expect_in_storage(table)
