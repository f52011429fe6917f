"""Statements with INSERT, UPDATE or DELETE in their WITH list.

In PostgreSQL all parts see the rows as they were before the statement. So everything is
computed first, in the list's order: the changes of each member, and the result. Then the
changes are written, one member after the other. In DuckDB the changes happen in the list's
order, and each sees those before it (:attr:`Capabilities.changes_in_turn`). So each member is
written before the next is computed. (When a query in the list is computed depends on
DuckDB's plan: one that reads a changed table is refused.)

The result of a member's RETURNING is a relation of constants for the parts after it. Changes
are checked as those of single statements are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.base import Outcome, Statement
from tique.query.read.locking import LockingSelectStatement
from tique.query.read.select import SelectStatement
from tique.query.transaction.rereading import read_again
from tique.query.write.changes import Written, write_changes
from tique.query.write.foreign_keys import enforce
from tique.query.write.writing import WritingStatement
from tique.store.rows import key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Computed
    from tique.store.rows import Key
    from tique_rewriter.plans.change_plans import ChangingWith, Member
    from tique_rewriter.plans.plan import Plan


class WithStatement(Statement):
    """A statement with changes in its WITH list.

    Parameters
    ----------
    plan
        Its plan.
    executable
        Makes the statement of a member's plan.
    """

    def __init__(
        self, plan: ChangingWith, executable: Callable[[Plan], Statement]
    ) -> None:
        super().__init__(plan)
        self._parts = [(member, executable(member.plan)) for member in plan.members]
        for _, statement in self._parts:
            self.needs |= statement.needs
        *before, (_, last) = self._parts
        self._is_one_change = isinstance(last, WritingStatement) and not any(
            isinstance(statement, WritingStatement) for _, statement in before
        )

    @override
    def run(self, transaction: Transaction, parameters: Sequence[Any]) -> Outcome:
        """Compute all parts, then write the changes."""
        with transaction.statement():
            changes = [s for _, s in self._parts if isinstance(s, WritingStatement)]
            return read_again(
                transaction, changes, lambda: self._run_within(transaction, parameters)
            )

    def _run_within(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> Outcome:
        try:
            if self._is_one_change:
                return self._run_alone(transaction, parameters)
            outcome = self._run_parts(transaction, parameters)
        finally:
            transaction.relations.clear()
        enforce(transaction)
        return outcome

    def _run_alone(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> Outcome:
        """Run a change that only queries stand before: as it is without them."""
        *queries, (change, statement) = self._parts
        assert isinstance(statement, WritingStatement)
        for member, query in queries:
            self._query(transaction, member, query, _bound(member, parameters))
        return statement.run_within(transaction, _bound(change, parameters))

    def _run_parts(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> Outcome:
        in_turn = transaction.engine.capabilities.changes_in_turn
        written: list[tuple[WritingStatement, Computed]] = []
        outcome = Outcome()
        for member, statement in self._parts:
            bound = _bound(member, parameters)
            if isinstance(statement, WritingStatement):
                outcome, computed = self._change(transaction, member, statement, bound)
                if in_turn:
                    _write(transaction, statement, computed)
                    transaction.visible_sequence = transaction.sequence
                    transaction.sequence += 2
                else:
                    written.append((statement, computed))
            else:
                outcome = self._query(transaction, member, statement, bound)
        self._check_once(written)
        for statement, computed in written:
            _write(transaction, statement, computed)
        return outcome

    def _change(
        self,
        transaction: Transaction,
        member: Member,
        statement: WritingStatement,
        bound: Sequence[Any],
    ) -> tuple[Outcome, Computed]:
        """Compute a member's changes, and what its RETURNING is."""
        transaction.writes_to(statement.table)
        returning = statement.returning
        items = ""
        if returning is not None:
            items = returning.items(transaction, bound)
        computed = statement.compute(transaction, bound)
        if returning is None:
            return Outcome(computed.rowcount), computed
        if not member.name:
            written = Written(computed.rowcount, computed.changes)
            return returning.outcome(transaction, bound, items, written), computed
        relation = returning.relation(transaction, items, computed.changes)
        self._name(transaction, member, relation)
        return Outcome(computed.rowcount), computed

    def _query(
        self,
        transaction: Transaction,
        member: Member,
        statement: Statement,
        bound: Sequence[Any],
    ) -> Outcome:
        """Compute the result, or name a query for the parts after it."""
        if isinstance(statement, LockingSelectStatement):
            relation = statement.relation(transaction, bound)
            self._name(transaction, member, relation)
            return Outcome()
        assert isinstance(statement, SelectStatement)
        if not member.name:
            outcome = statement.ask(transaction, bound)
            # The rows are those before the changes.
            result, outcome.result = outcome.result, None
            assert result is not None
            outcome.rows = result.fetch_all()
            outcome.rowcount = len(outcome.rows)
            return outcome
        sql, _ = statement.query(transaction, bound)
        self._name(transaction, member, f"({sql})")
        return Outcome()

    def _name(self, transaction: Transaction, member: Member, relation: str) -> None:
        if member.columns:
            relation = f"(SELECT * FROM {relation} AS _m{member.columns})"
        transaction.relations[member.name] = relation

    def _check_once(self, written: Sequence[tuple[WritingStatement, Computed]]) -> None:
        """Refuse a row that two members change: which of them does it is not said."""
        seen: set[tuple[int, Key]] = set()
        for statement, computed in written:
            table = statement.table
            if table.is_keyless:
                continue
            keys = {
                (table.id, key_of(table.primary_key, old))
                for old, _ in computed.changes
                if old is not None
            }
            if not seen.isdisjoint(keys):
                raise errors.CardinalityViolation(
                    f"a row of {table.qualified_name} is changed by two members of WITH, "
                    "and it is not said which of them changes it"
                )
            seen |= keys


def _bound(member: Member, parameters: Sequence[Any]) -> list[Any]:
    """The values of a member's own placeholders."""
    return [parameters[number - 1] for number in member.parameters]


def _write(
    transaction: Transaction, statement: WritingStatement, computed: Computed
) -> None:
    write_changes(transaction, statement.table, computed.changes, computed.changed)
