"""DESCRIBE and SUMMARIZE of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique.query.statements.select import SelectStatement

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.session_describe import Described


class DescribedStatement(SelectStatement):
    """The engine summarizes the snapshot query, or describes its results.

    A description has no rows in it, and names the keys and defaults of columns: so it
    is that of the query over the storage tables, which have them.
    """

    def __init__(self, plan: Described) -> None:
        super().__init__(plan.statement)
        self._verb = plan.verb
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
