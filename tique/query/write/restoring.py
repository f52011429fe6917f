"""Bringing a table's rows back to what they were: a MERGE of a version into the snapshot.

Its query is not made of clauses: it is for what differs between both
(:mod:`tique_backends.changes`). All else is as in any MERGE. So what others commit after the
snapshot to the rows that differ is a conflict, and all else stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.query.read.sources import at
from tique.query.write.merging import MergeStatement
from tique_backends.changes import difference
from tique_rewriter.plans.change_plans import (
    Merge,
    MergeAction,
    MergeClause,
    MergeKind,
)
from tique_rewriter.plans.plan import Expression

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from tique.query.base import Outcome
    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Written
    from tique_rewriter.schema import Table


class RestoreStatement(MergeStatement):
    """Bringing a table's rows back to what they were at a version."""

    def __init__(self, table: Table, as_of: int | datetime) -> None:
        every = [(i, Expression(())) for i in range(len(table.columns))]
        others = [each for each in every if each[0] not in table.primary_key]
        clauses = (
            MergeClause(MergeKind.MATCHED, (), MergeAction.UPDATE, tuple(others)),
            MergeClause(MergeKind.BY_SOURCE, (), MergeAction.DELETE, ()),
            MergeClause(MergeKind.BY_TARGET, (), MergeAction.INSERT, tuple(every)),
        )
        super().__init__(Merge(0, (), table, (), (), "", (), "", (), clauses))
        self._as_of = as_of

    @override
    def _apply(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[Written, Outcome | None]:
        if transaction.writes.get(self._table.id):
            raise errors.ProgrammingError(
                f"{self._table.qualified_name} cannot be restored in a transaction that "
                "has changed it: commit or roll back first",
                sqlstate="25001",
            )
        if self._moves_keys:
            return super()._apply(transaction, parameters)
        # The rows may be many, and memory knows none of those that are missing.
        return self._stage(transaction, parameters), None

    @override
    def query(
        self, transaction: Transaction, parameters: Sequence[Any]
    ) -> tuple[str, Sequence[Any]]:
        table = self._table
        then, now = (at(transaction, table, each) for each in (self._as_of, None))
        differing = difference(transaction.engine.forms, table, then, now)
        # What is there now is the old row.
        items = [
            f"_{side}_{i}" for side in ("new", "old") for i in range(len(table.columns))
        ]
        return (
            "SELECT * FROM (SELECT CASE WHEN NOT _is THEN 3 WHEN _was THEN 1 ELSE 2 END "
            f"AS _a, row_number() OVER () AS _r, {', '.join(items)} "
            f"FROM ({differing}) AS _d OFFSET 0) AS _w"
        ), ()
