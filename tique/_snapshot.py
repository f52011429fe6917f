"""Snapshot queries: a plan's texts with the forms of all tables in them (paper 2.3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique._sources import Source
from tique_rewriter.plan import JoinRead, Text, holes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique._transaction import Transaction
    from tique_rewriter.plan import Plan
    from tique_rewriter.schema import Table


class SnapshotText:
    """A plan's texts, made into engine SQL for one transaction's snapshot."""

    def __init__(self, plan: Plan) -> None:
        self.sources = [Source(reference) for reference in plan.references]
        """The plan's references, ready to be filled in."""
        self._parameters = plan.parameters
        self.is_wide = not all(source.is_narrow for source in self.sources)
        """Whether some table is read with no column of its key bound."""

    @property
    def tables(self) -> list[Table]:
        """The tables that the statement reads."""
        return [source.table for source in self.sources]

    def fill(
        self, transaction: Transaction, parameters: Sequence[Any], *texts: Text
    ) -> tuple[list[str], Sequence[Any]]:
        """The texts with all holes filled, and the parameters they need.

        (A clause's texts need others: see :class:`~tique_rewriter.plan.Clause`.)
        """
        filled: dict[int, str] = {}
        for text in texts:
            for index in holes(text):
                if index not in filled:
                    filled[index] = self.sources[index].text(transaction, parameters)
        return [_complete(text, filled) for text in texts], self._bound(parameters)

    def join(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        join: JoinRead,
        text: Text,
    ) -> tuple[str, Sequence[Any]]:
        """As :meth:`fill`, for a join; in parts where the engine is the better for it."""
        first, second = self.sources
        parts = first.queries(transaction, parameters)
        others = second.queries(transaction, parameters)
        forms = transaction.database.engine.forms
        if not forms.joins_in_parts(len(parts), len(others), wide=self.is_wide):
            sql = _complete(text, (first.relation(parts), second.relation(others)))
        else:
            rows = [
                _complete(join.rows, (first.relation([part]), second.relation([other])))
                for part in parts
                for other in others
            ]
            sql = f"{join.before}({' UNION ALL '.join(rows)}){join.after}"
        return sql, self._bound(parameters)

    def _bound(self, parameters: Sequence[Any]) -> Sequence[Any]:
        return parameters[: self._parameters]


def _complete(text: Text, filled: Mapping[int, str] | Sequence[str]) -> str:
    return "".join(
        [part if isinstance(part, str) else filled[part.index] for part in text]
    )
