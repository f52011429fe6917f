"""EXPLAIN: the rewritten statement, and the engine's plan for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.statements.base import Outcome, Statement
from tique.query.statements.change import ChangeStatement
from tique.query.statements.insert import InsertQueryStatement
from tique.query.statements.merging import MergeStatement
from tique.query.statements.select import SelectStatement
from tique_backends.records import ResultColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.transaction import Transaction
    from tique_rewriter.plan import Explain

_COLUMNS = (
    ResultColumn("explain_key", "VARCHAR"),
    ResultColumn("explain_value", "VARCHAR"),
)


class ExplainStatement(Statement):
    """Shows the query that a statement runs; ANALYZE runs the statement too."""

    def __init__(self, plan: Explain, statement: Statement) -> None:
        super().__init__(statement.plan)
        self._statement = statement
        self._options = plan.options
        self._analyzes = plan.analyzes
        self.needs = statement.needs

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Fill the snapshot forms in and ask the engine for its plan."""
        if not isinstance(
            self._statement,
            SelectStatement | ChangeStatement | InsertQueryStatement | MergeStatement,
        ):
            raise errors.NotSupportedError(
                "EXPLAIN takes a SELECT, UPDATE, DELETE, MERGE or INSERT … SELECT"
            )
        sql, bound = self._statement.query(transaction, parameters)
        plans = transaction.session.explain(sql, bound, self._options)
        if self._analyzes and not isinstance(self._statement, SelectStatement):
            self._statement.run(transaction, parameters).close()
        rows = [("rewritten statement", sql), *plans]
        return Outcome(len(rows), _COLUMNS, rows)
