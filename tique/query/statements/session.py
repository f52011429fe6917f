"""DESCRIBE and SUMMARIZE of a query, and SET VARIABLE to one's value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique.query.statements.base import Outcome
from tique.query.statements.select import SelectStatement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.session_describe import Described, SetVariable


class DescribedStatement(SelectStatement):
    """The engine summarizes the snapshot query, or describes its results.

    A description has no rows in it, and names the keys and defaults of columns: so it
    is that of the query over the storage tables, which have them.
    """

    def __init__(self, plan: Described) -> None:
        super().__init__(plan.statement)
        self._verb = plan.verb
        self._calls = None
        self._reads_rows = plan.reads_rows

    @override
    def query(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        if self._reads_rows:
            sql, bound = super().query(transaction, parameters)
        else:
            sql, bound = self.text.plain(transaction, self._query), parameters
        return f"{self._verb} {sql}", bound


class SetVariableStatement(SelectStatement):
    """The engine keeps the value of the snapshot query for its session."""

    def __init__(self, plan: SetVariable) -> None:
        super().__init__(plan.statement)
        self._name = plan.name
        self._calls = None

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Set it; the session keeps it whatever becomes of the transaction."""
        transaction.refresh()
        sql, bound = self.query(transaction, parameters)
        name = transaction.engine.forms.quote(self._name)
        transaction.session.execute(f"SET VARIABLE {name} = ({sql})", bound).close()
        return Outcome()
