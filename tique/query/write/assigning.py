"""Assignments: what becomes of a row, and whether an engine would assign converted values.

Values are converted with a CAST (:meth:`Forms.cast`), and an engine may have casts that
it does not apply on assignment. So before a statement's values are converted for the
first time the engine checks them unconverted; and again for parameters of other types.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tique_rewriter.local.kernel import compile_kernel

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from tique.query.transaction.transaction import Transaction
    from tique_backends.records import Row
    from tique_rewriter.local.kernel import Evaluator
    from tique_rewriter.plans.plan import Expression
    from tique_rewriter.schema import Table


class Assigned:
    """The values that a statement assigns to a table; threads share it."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._known: frozenset[tuple[int, Hashable]] | None = None

    def is_known(self, transaction: Transaction, parameters: Sequence[Any]) -> bool:
        """Whether the engine was asked, with parameters of such types."""
        known = self._known
        return known is not None and known.issuperset(_types(transaction, parameters))

    def check(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        positions: Sequence[int],
        query: str,
        bound: Sequence[Any],
    ) -> None:
        """Have the engine check the assignment, as it would do it itself, unless it is known.

        Parameters
        ----------
        transaction
            The transaction.
        parameters
            The statement's.
        positions, query
            The assigned columns, and a query for the values assigned to them.
        bound
            The query's parameters.
        """
        if self.is_known(transaction, parameters):
            return
        transaction.session.check_assigned(self._table, positions, query, bound)
        self._known = (self._known or frozenset()).union(
            _types(transaction, parameters)
        )


def _types(
    transaction: Transaction, parameters: Sequence[Any]
) -> Iterator[tuple[int, Hashable]]:
    return enumerate(transaction.session.parameter_types(parameters))


def compiled(
    assignments: Iterable[tuple[int, Expression]],
    types: Sequence[str],
    looked_at: Sequence[str],
) -> list[Evaluator] | None:
    """Functions for the assigned values, if no engine is needed for any of them.

    ``types`` are those of the table's columns, ``looked_at`` those of the rows that the
    expressions look at.
    """
    found = []
    for position, expression in assignments:
        if expression.kernel is None:
            return None
        kernel = compile_kernel(expression.kernel, types[position], looked_at)
        if kernel is None:
            return None
        found.append(kernel)
    return found


def with_values(row: Row, positions: Sequence[int], values: Iterable[Any]) -> Row:
    """The row with other values in these columns."""
    changed = list(row)
    for position, value in zip(positions, values, strict=True):
        changed[position] = value
    return tuple(changed)


_PLACEHOLDER = re.compile(r"\$(\d+)")


def with_all_parameters(query: str, count: int) -> str:
    """A query without WHERE that has all of ``$1`` to ``$count`` in it, to be checked.

    An engine may refuse parameters that a query does not have.
    """
    named = {int(number) for number in _PLACEHOLDER.findall(query)}
    others = [f"CAST(${n} AS TEXT)" for n in range(1, count + 1) if n not in named]
    if not others:
        return query
    return f"{query} WHERE coalesce({', '.join(others)}, '') IS NOT NULL"
