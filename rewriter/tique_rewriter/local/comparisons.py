"""Comparisons of a row's columns with values, which the driver can evaluate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.plan import Comparison
from tique_rewriter.scope.bindings import conditions_of, equalities
from tique_rewriter.tree.operands import operand

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_rewriter.plans.plan import Operand
    from tique_rewriter.scope.bindings import Scope
    from tique_rewriter.scope.outputs import PositionOf
    from tique_rewriter.scope.reads import Read
    from tique_rewriter.text.source import Source

_OPERATORS: dict[type[exp.Expr], tuple[str, str]] = {
    exp.EQ: ("=", "="),
    exp.LT: ("<", ">"),
    exp.LTE: ("<=", ">="),
    exp.GT: (">", "<"),
    exp.GTE: (">=", "<="),
    exp.NEQ: ("<>", "<>"),
}
"""How a comparison is written, and how with its sides changed."""


def keyed_row(
    source: Source, scope: Scope, where: exp.Expr | None, read: Read
) -> tuple[tuple[Operand, ...], tuple[Comparison, ...]] | None:
    """Return the key of the one row that WHERE can be true of, and what else it says.

    None if it says anything but that the whole key has certain values, and comparisons
    of other columns with values.
    """
    key = read.table.primary_key
    compared, others = comparisons(source, scope.position, conditions_of(where))
    bound = equalities(source, scope, others, read)
    if not key or bound is None or not bound.keys() >= set(key):
        return None
    equal = [Comparison(i, "=", bound[i]) for i in sorted(bound.keys() - set(key))]
    return tuple(bound[i] for i in key), (*equal, *compared)


def order_comparisons(
    source: Source, position_of: PositionOf, conditions: Sequence[exp.Expr]
) -> tuple[tuple[Comparison, ...], list[exp.Expr]]:
    """Return the comparisons by order, and the other conditions."""
    others = [each for each in conditions if type(each) is exp.NEQ]
    ordered = [each for each in conditions if type(each) is not exp.NEQ]
    found, more = comparisons(source, position_of, ordered)
    return found, more + others


def comparisons(
    source: Source, position_of: PositionOf, conditions: Sequence[exp.Expr]
) -> tuple[tuple[Comparison, ...], list[exp.Expr]]:
    """Return the comparisons of a column with a value among conditions, and the others.

    An equality, which is a binding, is one of the others.
    """
    found: list[Comparison] = []
    others: list[exp.Expr] = []
    for condition in conditions:
        is_binding = type(condition) is exp.EQ
        known = [] if is_binding else compared(source, position_of, sides(condition))
        found += known
        if not known:
            others.append(condition)
    return tuple(found), others


def sides(condition: exp.Expr) -> list[tuple[exp.Expr, str, exp.Expr]]:
    """Return both sides and the operator of the comparisons that a condition says."""
    operators = _OPERATORS.get(type(condition))
    this = condition.this
    if operators is not None:
        written, changed = operators
        other = condition.expression
        if isinstance(this, exp.Column):
            return [(this, written, other)]
        return [(other, changed, this)]
    if type(condition) is exp.Between and not condition.args.get("symmetric"):
        low, high = condition.args["low"], condition.args["high"]
        return [(this, ">=", low), (this, "<=", high)]
    return []


def compared(
    source: Source,
    position_of: PositionOf,
    found: Iterable[tuple[exp.Expr, str, exp.Expr]],
) -> list[Comparison]:
    """Return the comparisons of these sides; none if one is not of a column with a value."""
    known = []
    for column, sign, other in found:
        position, value = position_of(column), operand(source, other)
        if position is None or value is None:
            return []
        known.append(Comparison(position, sign, value))
    return known
