"""Statements that write."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from tique import errors
from tique.query.foreign_keys import enforce
from tique.query.statements.base import Outcome, Statement
from tique.query.statements.returning import ReturningClause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.query.changes import Written
    from tique.query.transaction import Transaction
    from tique_rewriter.plan import Delete, InsertQuery, InsertRows, Update


class WritingStatement(Statement):
    """A statement that writes to one table: INSERT, UPDATE, DELETE."""

    privileges: ClassVar[tuple[str, ...]]
    """The privileges on the table that it needs, besides SELECT."""

    def __init__(self, plan: InsertRows | InsertQuery | Update | Delete) -> None:
        super().__init__(plan)
        self._table = plan.table
        # Every such statement looks up keys.
        self.needs |= {(plan.table, name) for name in ("SELECT", *self.privileges)}
        self._returning = (
            None
            if plan.returning is None
            else ReturningClause(plan.returning, plan.table, self.text)
        )

    @abstractmethod
    def _write(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        """Carry out the statement's writes."""

    def _write_many(
        self, transaction: Transaction, parameter_rows: Sequence[Sequence[Any]]
    ) -> int:
        """Write for every row of parameters; return the number of rows."""
        raise errors.ProgrammingError(
            "executemany() takes INSERT … VALUES, UPDATE or DELETE; use execute() for "
            "this statement"
        )

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Write, and return the result of RETURNING."""
        with transaction.statement():
            returning = self._returning
            if returning is None:
                outcome = Outcome(self._write(transaction, parameters).rowcount)
            else:
                items = returning.items(transaction, parameters)
                written = self._write(transaction, parameters)
                outcome = returning.outcome(transaction, parameters, items, written)
            if transaction.unchecked:
                enforce(transaction)
            return outcome

    @override
    def run_many(
        self, transaction: Transaction, parameter_rows: Iterable[Sequence[Any]]
    ) -> Outcome:
        """Write for every row of parameters, as one statement.

        Raises
        ------
        NotSupportedError
            With RETURNING.
        """
        if self._returning is not None:
            raise errors.NotSupportedError(
                "RETURNING in executemany() is not supported; use execute() for each "
                "row of parameters, or one INSERT of several rows"
            )
        with transaction.statement():
            outcome = Outcome(self._write_many(transaction, list(parameter_rows)))
            if transaction.unchecked:
                enforce(transaction)
            return outcome
