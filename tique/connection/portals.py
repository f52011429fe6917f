"""Cursors in SQL text: DECLARE, FETCH, MOVE and CLOSE.

A cursor's rows are those that its query has when it is declared (P1). They are read as
they are fetched, unless it may go back (SCROLL) or outlives its transaction (WITH HOLD):
then they are in memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tique import errors
from tique.query.base import Outcome
from tique.query.kinds import executable
from tique_rewriter.kinds.session.cursors import Towards

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from tique.connection.runner import Runner
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique_backends.records import Row
    from tique_rewriter.kinds.session.cursors import (
        CloseCursor,
        DeclareCursor,
        FetchCursor,
    )


@dataclass
class _Portal:
    """An open cursor.

    ``rows`` are those that were read: all of them if it ``is_buffered``, else the last one,
    which is number ``position``; 0 stands before the first one.
    """

    outcome: Outcome
    scrolls: bool | None
    holds: bool
    sequence: int
    rows: list[Row] = field(default_factory=list)
    position: int = 0
    is_buffered: bool = False
    is_committed: bool = False

    def read_all(self) -> None:
        """Have all rows in memory."""
        self.rows = self._further(None)
        self.is_buffered = True

    def fetch(self, towards: Towards, count: int | None) -> list[Row]:
        """Go on, or back, and return the rows on the way."""
        if towards is Towards.BACKWARD:
            towards = Towards.FORWARD
            count = -(self.position if count is None else count)
        if towards is Towards.RELATIVE and count == 0:
            towards = Towards.FORWARD
        goes_on = towards is Towards.FORWARD and (count is None or count >= 0)
        if not goes_on and self.scrolls is False:
            raise errors.OperationalError(
                "the cursor goes forward only; declare it SCROLL", sqlstate="55000"
            )
        if self.is_buffered:
            return self._scroll(towards, count)
        if not goes_on:
            raise errors.NotSupportedError(
                "this direction of FETCH needs a cursor that was declared SCROLL"
            )
        if count == 0:
            return self.rows[-1:]
        found = self._further(count)
        self.position += len(found)
        self.rows = found[-1:] if count is not None and len(found) == count else []
        return found

    def _back(self, count: int) -> list[Row]:
        last = min(self.position - 1, len(self.rows))
        first = max(last - count, 0)
        self.position = max(self.position - count, 0)
        return self.rows[first : max(last, 0)][::-1]

    def _scroll(self, towards: Towards, count: int | None) -> list[Row]:
        total = len(self.rows)
        if towards is Towards.FORWARD:
            if count is None:
                count = total + 1 - self.position
            if count < 0:
                return self._back(-count)
            if count == 0:
                return self._at(self.position)
            found = self.rows[self.position : self.position + count]
            self.position = min(self.position + count, total + 1)
            return found
        assert count is not None
        if towards is Towards.RELATIVE:
            target = self.position + count
        else:
            target = count if count >= 0 else total + 1 + count
        self.position = min(max(target, 0), total + 1)
        return self._at(self.position)

    def _at(self, position: int) -> list[Row]:
        return self.rows[position - 1 : position] if position > 0 else []

    def _further(self, count: int | None) -> list[Row]:
        """The next rows of the query."""
        outcome = self.outcome
        if outcome.error is not None:
            raise outcome.error
        if outcome.result is not None:
            result = outcome.result
            return result.fetch_all() if count is None else result.fetch(count)
        rows = outcome.rows or []
        count = len(rows) if count is None else count
        found, outcome.rows = rows[:count], rows[count:]
        return found


class Portals:
    """The open cursors of one connection, by name."""

    def __init__(self, execution: Runner) -> None:
        self._execution = execution
        self._open: dict[str, _Portal] = {}

    def declare(self, plan: DeclareCursor, bound: Sequence[Any]) -> Outcome:
        """Open a cursor: run its query."""
        execution = self._execution
        if execution.commits_each and not plan.holds:
            raise errors.ProgrammingError(
                "DECLARE needs a transaction: BEGIN first, turn autocommit off, or "
                "declare it WITH HOLD",
                sqlstate="25P01",
            )
        if plan.name in self._open:
            raise errors.ProgrammingError(
                f'cursor "{plan.name}" exists already', sqlstate="42P03"
            )
        statement = executable(plan.select)
        opened: list[_Portal] = []

        def run(transaction: DDLTransaction, values: Sequence[Any]) -> Outcome:
            outcome = statement.run(transaction, values)
            # A savepoint before it has another number.
            transaction.sequence += 2
            transaction.visible_sequence = transaction.sequence
            portal = _Portal(outcome, plan.scrolls, plan.holds, transaction.sequence)
            if plan.scrolls or plan.holds:
                portal.read_all()
            opened.append(portal)
            return Outcome()

        if execution.transaction is None:
            execution.begin()
        is_committed = execution.commits_each
        done = execution.run_in_transaction(statement, bound, run)
        opened[0].is_committed = is_committed
        self._open[plan.name] = opened[0]
        return done

    def fetch(self, plan: FetchCursor) -> Outcome:
        """Show rows of a cursor, or step over them."""
        portal = self._open.get(plan.name)
        if portal is None:
            raise _no_cursor(plan.name)
        rows = portal.fetch(plan.towards, plan.count)
        if plan.moves:
            return Outcome(len(rows))
        return Outcome(len(rows), portal.outcome.columns, rows)

    def close(self, plan: CloseCursor) -> None:
        """Close one cursor, or all."""
        if plan.name is None:
            self.close_all()
        elif (portal := self._open.pop(plan.name, None)) is None:
            raise _no_cursor(plan.name)
        else:
            portal.outcome.close()

    def close_all(self) -> None:
        """Close all cursors."""
        for portal in self._open.values():
            portal.outcome.close()
        self._open.clear()

    def rollback_to(self, sequence: int) -> None:
        """Close the cursors that were declared after a statement that stays."""
        self._keep(lambda portal: portal.is_committed or portal.sequence <= sequence)

    def end(self, *, committed: bool) -> None:
        """Close the cursors that end with the transaction."""
        self._keep(lambda portal: portal.is_committed or (committed and portal.holds))
        for portal in self._open.values():
            portal.is_committed = True

    def _keep(self, stays: Callable[[_Portal], bool]) -> None:
        for name, portal in list(self._open.items()):
            if not stays(portal):
                portal.outcome.close()
                del self._open[name]


def _no_cursor(name: str) -> errors.ProgrammingError:
    return errors.ProgrammingError(f'cursor "{name}" does not exist', sqlstate="34000")
