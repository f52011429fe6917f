"""RETURNING of MERGE, and of UPDATE … FROM and DELETE … USING that looks at joined relations.

The query that finds the changed rows computes the result too: which of several joined
rows changes a row is the engine's choice, which is not made twice. It has the old row
as ``_o0`` … and the new values as ``_n0`` … by position, and the columns of the joined
relations; around it each relation gets its own name again, so that the application's
list means what it says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.query.snapshot import SnapshotText
    from tique.query.transaction import Transaction
    from tique_rewriter.change_plans import JoinedReturning
    from tique_rewriter.schema import Table


class JoinedReturningClause:
    """Such a RETURNING, ready to be made part of the query for the changed rows.

    Attributes
    ----------
    carried : list of str
        The items that the query must have besides the rows, among the joined relations.
    """

    def __init__(self, plan: JoinedReturning, table: Table, text: SnapshotText) -> None:
        self._plan = plan
        self._table = table
        self._text = text
        self.carried = [
            f"{name}.{column} AS _j{i}_{j}"
            for i, (name, columns) in enumerate(plan.relations)
            for j, column in enumerate(columns)
        ]

    def bound(self, parameters: Sequence[Any]) -> Sequence[Any]:
        """The parameters of a query that has the list."""
        return parameters[: self._plan.parameters]

    def items(self, transaction: Transaction, parameters: Sequence[Any]) -> str:
        """The select list. Subqueries in it see the rows before the statement."""
        (items,), _ = self._text.fill(transaction, parameters, self._plan.items)
        return items

    def relations(self, transaction: Transaction, changed: Sequence[int]) -> str:
        """What follows the relation ``_u`` of rows in FROM: the relations by name.

        ``changed`` are the positions of columns that have new values.
        """
        quote = transaction.engine.forms.quote
        columns = [
            f"_u._{'n' if i in changed else 'o'}{i} AS {quote(column.name)}"
            for i, column in enumerate(self._table.columns)
        ]
        own = f"(SELECT {', '.join(columns)})"
        if self._table.generated:
            own = transaction.engine.forms.computed(self._table, own)
        named = [(self._plan.qualifier, own)]
        for i, (name, others) in enumerate(self._plan.relations):
            items = [f"_u._j{i}_{j} AS {column}" for j, column in enumerate(others)]
            named.append((name, f"(SELECT {', '.join(items)})"))
        return "".join(f", LATERAL {query} AS {name}" for name, query in named)
