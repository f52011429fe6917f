"""Statements that write."""

from __future__ import annotations

from abc import abstractmethod
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from tique.query.base import Outcome, Statement
from tique.query.transaction.rereading import read_again
from tique.query.write.changes import exactness, not_held
from tique.query.write.foreign_keys import enforce
from tique.query.write.returning import JoinedReturningClause, ReturningClause

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique import errors
    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Computed, Written
    from tique_backends.records import Row
    from tique_rewriter.plans.change_plans import (
        Delete,
        InsertQuery,
        InsertRows,
        JoinedReturning,
        Merge,
        Returning,
        Update,
    )
    from tique_rewriter.schema import Table


class WritingStatement(Statement):
    """A statement that writes to one table: INSERT, UPDATE, DELETE."""

    privileges: ClassVar[tuple[str, ...]]
    """The privileges on the table that it needs, besides SELECT."""

    def __init__(
        self,
        plan: InsertRows | InsertQuery | Update | Delete | Merge,
        returning: Returning | None,
        joined: JoinedReturning | None = None,
    ) -> None:
        super().__init__(plan)
        self._table = plan.table
        self._is_exact = exactness(plan.table)
        # Every such statement looks up keys.
        self.needs |= {(plan.table, name) for name in ("SELECT", *self.privileges)}
        self._returning = (
            None
            if returning is None
            else ReturningClause(returning, plan.table, self.text)
        )
        self._joined = (
            None
            if joined is None
            else JoinedReturningClause(joined, plan.table, self.text)
        )
        self._returns = returning is not None or joined is not None
        """Whether the statement has RETURNING."""

    def write(self, transaction: Transaction) -> None:
        """Carry out its writes as a part of another statement, without parameters."""
        self._write(transaction, ())

    @abstractmethod
    def _write(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        """Carry out the statement's writes."""

    def _write_many(
        self, transaction: Transaction, parameter_rows: Sequence[Sequence[Any]]
    ) -> int:
        """Write for every row of parameters; return the number of rows."""
        outcomes = self._outcomes(transaction, parameter_rows)
        return sum(outcome.rowcount for outcome in outcomes)

    def _are_exact(self, rows: Iterable[Row | None]) -> bool:
        """Whether the engine's values in these rows came unchanged."""
        return all(map(self._is_exact, filter(None, rows)))

    def _execute(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Write, and compute the result of RETURNING."""
        returning = self._returning
        if returning is None:
            return Outcome(self._write(transaction, parameters).rowcount)
        items = returning.items(transaction, parameters)
        written = self._write(transaction, parameters)
        return returning.outcome(transaction, parameters, items, written)

    def _outcomes(
        self, transaction: Transaction, parameter_rows: Sequence[Sequence[Any]]
    ) -> list[Outcome]:
        """Write for every row of parameters; each sees the writes of those before."""
        outcomes = []
        for parameters in parameter_rows:
            transaction.visible_sequence = transaction.sequence - 2
            outcomes.append(self._execute(transaction, parameters))
            transaction.sequence += 2
        return outcomes

    def compute(self, transaction: Transaction, parameters: Sequence[Any]) -> Computed:
        """The changes that the statement makes, without writing them.

        Raises
        ------
        NotSupportedError
            If the driver cannot hold the rows.
        """
        raise NotImplementedError

    def _not_beside_others(self) -> errors.NotSupportedError:
        return not_held(
            f"a change of {self._table.qualified_name} in WITH, or after a change in WITH,",
            "execute the statements one by one",
        )

    @property
    def returning(self) -> ReturningClause | None:
        """RETURNING, if the statement has it."""
        return self._returning

    @property
    def table(self) -> Table:
        """The table that the statement changes."""
        return self._table

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Write, and return the result of RETURNING."""
        with transaction.statement():
            return read_again(
                transaction, (self,), lambda: self.run_within(transaction, parameters)
            )

    def run_within(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> Outcome:
        """As :meth:`run`, as the last part of a statement that has begun."""
        outcome = self._execute(transaction, parameters)
        enforce(transaction)
        return outcome

    @override
    def run_many(
        self,
        transaction: Transaction,
        parameter_rows: Iterable[Sequence[Any]],
        *,
        returning: bool = False,
    ) -> Outcome:
        """Write for every row of parameters, as one statement."""
        rows = list(parameter_rows)
        run = partial(self._run_many, transaction, rows, returning=returning)
        with transaction.statement():
            return read_again(transaction, (self,), run)

    def _run_many(
        self,
        transaction: Transaction,
        parameter_rows: Sequence[Sequence[Any]],
        *,
        returning: bool,
    ) -> Outcome:
        if not self._returns:
            outcome = Outcome(self._write_many(transaction, parameter_rows))
        else:
            outcomes = self._outcomes(transaction, parameter_rows)
            outcome = outcomes[0]
            if returning:
                outcome.more = outcomes[1:]
            else:
                outcome = Outcome(sum(each.rowcount for each in outcomes))
        enforce(transaction)
        return outcome
