"""CREATE VIEW and DROP VIEW.

A view is the engine's own, over the storage tables: its listings have it, and after
detaching it is what it was. Statements read its query in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique.query.statements.base import Outcome, Statement
from tique_rewriter.views import check_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.ddl_plans import DefineViews
    from tique_rewriter.schema import Table


class DefineViewsStatement(Statement):
    """CREATE VIEW or DROP VIEW, which the engine runs as it stands."""

    defines = True

    def __init__(self, plan: DefineViews) -> None:
        super().__init__(plan)
        self._define = plan

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Create or drop the views."""
        catalog = transaction.catalog

        def used() -> list[Table]:
            found = (catalog.view(*name) for name in self._define.names)
            return [view.table for view in found if view is not None]

        def define() -> None:
            transaction.session.execute(self._define.text)
            if self._define.creates:
                self._check(transaction)

        transaction.ddl.changes.change(transaction, define, used)
        return Outcome()

    def _check(self, transaction: Transaction) -> None:
        """Refuse a view whose query, as the engine has written it, cannot be read."""
        engine = transaction.engine
        views = engine.views(transaction.session)
        catalog = transaction.catalog.with_views(views)
        for name in self._define.names:
            view = catalog.view(*name)
            if view is not None and view != transaction.catalog.view(*name):
                check_view(catalog, engine.capabilities.dialect, view)
