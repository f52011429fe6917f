"""EXPLAIN: the rewritten statement, the engine's plan for it, and the forms of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.base import Outcome, Statement
from tique.query.read.forms import Form
from tique.query.read.select import SelectStatement
from tique.query.write.change import ChangeStatement
from tique.query.write.insert import InsertQueryStatement
from tique.query.write.merging import MergeStatement
from tique_backends.records import ResultColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.read.forms import Choice
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_rewriter.plans.plan import Explain

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
    def run(self, transaction: DDLTransaction, parameters: Sequence[Any]) -> Outcome:
        """Fill the snapshot forms in and ask the engine for its plan."""
        statement = self._statement
        if not isinstance(
            statement,
            SelectStatement | ChangeStatement | InsertQueryStatement | MergeStatement,
        ):
            raise errors.NotSupportedError(
                "EXPLAIN takes a SELECT, UPDATE, DELETE, MERGE or INSERT … SELECT"
            )
        choices: list[Choice] = []
        transaction.choices = choices
        try:
            obstacle = None
            if isinstance(statement, SelectStatement):
                sql, plans, obstacle = statement.explained(
                    transaction, parameters, self._options
                )
            else:
                sql, bound = statement.query(transaction, parameters)
                plans = transaction.session.explain(sql, bound, self._options)
        finally:
            transaction.choices = None
        rows = [("rewritten statement", sql), *plans]
        rows += dict.fromkeys([choice.shown() for choice in choices])
        forms = {choice.form for choice in choices}
        if (
            obstacle is not None
            and Form.HISTORY not in forms
            and transaction.engine.capabilities.reads_uncommitted_folds
            and forms - {Form.STORAGE}
        ):
            rows.append(("no uncommitted fold", obstacle))
        if self._analyzes and not isinstance(statement, SelectStatement):
            statement.run(transaction, parameters).close()
        return Outcome(len(rows), _COLUMNS, rows)
