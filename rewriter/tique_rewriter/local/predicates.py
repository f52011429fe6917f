"""Conditions that speak of one table alone: rows that do not satisfy them do not matter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.local.local_expressions import local_condition
from tique_rewriter.plans.plan import Comparison, Condition, Junction, Negation

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlglot import expressions as exp

    from tique_rewriter.plans.plan import Operand
    from tique_rewriter.scope.bindings import Bindings, Filter
    from tique_rewriter.text.source import Source


def predicates_of(
    source: Source, filters: Iterable[Filter], bindings: Bindings
) -> dict[int, tuple[Condition, ...]]:
    """Return the conditions on single reads that no binding says, by read number.

    Those that the driver cannot evaluate are left out: more rows matter then.
    """
    result: dict[int, tuple[Condition, ...]] = {}
    for scope, conditions, is_strict in filters:
        for node in conditions:
            reads: set[int] = set()

            def position(column: exp.Column) -> int | None:
                found = scope.column(column)  # noqa: B023
                if found is None:
                    return None
                reads.add(found[0].span.index)  # noqa: B023
                return found[1]

            condition = local_condition(source, node, position)
            if condition is None or len(reads) != 1:
                continue
            if is_strict and not _rejects_null(condition):
                continue
            (index,) = reads
            if _is_binding(condition, bindings.get(index, {})):
                continue
            result[index] = (*result.get(index, ()), condition)
    return result


def _is_binding(condition: Condition, bound: Mapping[int, Operand]) -> bool:
    return (
        isinstance(condition, Comparison)
        and condition.operator == "="
        and bound.get(condition.position) == condition.operand
    )


def _rejects_null(condition: Condition) -> bool:
    """Whether a condition is certainly not true of a row with NULL in all columns."""
    if isinstance(condition, Comparison):
        return True
    if isinstance(condition, Negation):
        return isinstance(condition.condition, Comparison)
    if isinstance(condition, Junction):
        sides = _rejects_null(condition.left), _rejects_null(condition.right)
        return any(sides) if condition.operator == "AND" else all(sides)
    return False
