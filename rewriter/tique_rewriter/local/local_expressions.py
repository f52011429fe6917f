"""Expressions and conditions in the small language that the driver evaluates.

COALESCE is in it where the word is the grammar's: quoted, behind a schema or a dot it may be a
function of the application's own. GREATEST, LEAST and NULLIF are not: on DuckDB a macro
can take their names, which another connection may make at any time, and the engines
disagree about NULL among the values. CASE says the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.local.comparisons import compared, sides
from tique_rewriter.plans.plan import (
    Arithmetic,
    Choice,
    Coalesced,
    ColumnValue,
    Condition,
    IsNull,
    Junction,
    Kernel,
    Literal,
    Negation,
)
from tique_rewriter.tree.operands import operand

if TYPE_CHECKING:
    from tique_rewriter.text.source import Source

ColumnPosition = Callable[[exp.Column], int | None]

_DEEPEST = 100
"""Operations inside each other: evaluating one takes two frames of Python's stack."""
_MOST_VALUES = 1000
"""Of IN: each is a comparison that the driver would make."""


def kernel(
    source: Source, node: exp.Expr, position_of: ColumnPosition | None = None
) -> Kernel | None:
    """Return the expression in the driver's language, if it fits.

    Without ``position_of`` there are no columns in it, and no operations.
    """
    if position_of is not None:
        return _Reader(source, position_of).kernel(node, 0)
    node = node.unnest()
    return Literal(None) if isinstance(node, exp.Null) else operand(source, node)


def local_condition(
    source: Source, node: exp.Expr, position_of: ColumnPosition
) -> Condition | None:
    """Return a condition in the driver's language, if it fits."""
    return _Reader(source, position_of).condition(node, 0)


def joined(operator: str, conditions: Sequence[Condition]) -> Condition:
    """Return conditions joined by AND or OR, as flat as can be: each level takes a frame."""
    if len(conditions) == 1:
        return conditions[0]
    half = len(conditions) // 2
    sides = (conditions[:half], conditions[half:])
    return Junction(operator, *[joined(operator, side) for side in sides])


class _Reader:
    def __init__(self, source: Source, position_of: ColumnPosition) -> None:
        self._source = source
        self._position_of = position_of

    def kernel(self, node: exp.Expr, depth: int) -> Kernel | None:
        if depth > _DEEPEST:
            return None
        if isinstance(node, exp.Paren):
            return self.kernel(node.this, depth)
        if isinstance(node, exp.Null):
            return Literal(None)
        if isinstance(node, exp.Column):
            position = self._position_of(node)
            return None if position is None else ColumnValue(position)
        if type(node) in (exp.Add, exp.Sub):
            left = self.kernel(node.this, depth + 1)
            right = self.kernel(node.expression, depth + 1)
            if left is None or right is None:
                return None
            return Arithmetic("+" if type(node) is exp.Add else "-", left, right)
        if type(node) is exp.Case:
            return self._choice(node, depth)
        if type(node) is exp.Coalesce:
            return self._coalesced(node, depth)
        return operand(self._source, node)

    def _choice(self, node: exp.Case, depth: int) -> Choice | None:
        branches = []
        for branch in node.args["ifs"]:
            when = branch.this
            if node.this is not None:
                when = exp.EQ(this=node.this, expression=when)
            condition = self.condition(when, depth + 1)
            value = self.kernel(branch.args["true"], depth + 1)
            if condition is None or value is None:
                return None
            branches.append((condition, value))
        default = node.args.get("default")
        otherwise = (
            Literal(None) if default is None else self.kernel(default, depth + 1)
        )
        return None if otherwise is None else Choice(tuple(branches), otherwise)

    def _coalesced(self, node: exp.Coalesce, depth: int) -> Coalesced | None:
        start, end = node.meta.get("start"), node.meta.get("end")
        # The parser takes functions of other names for it, which may be anybody's.
        if start is None or end is None:
            return None
        if self._source.text[start : end + 1].upper() != "COALESCE":
            return None
        values = [
            self.kernel(each, depth + 1) for each in (node.this, *node.expressions)
        ]
        known = tuple(value for value in values if value is not None)
        return Coalesced(known) if len(known) == len(values) else None

    def condition(self, node: exp.Expr, depth: int) -> Condition | None:
        """Return a condition in the driver's language, if it fits."""
        if depth > _DEEPEST:
            return None
        if isinstance(node, exp.Paren):
            return self.condition(node.this, depth)
        if type(node) is exp.Not:
            inner = self.condition(node.this, depth + 1)
            return None if inner is None else Negation(inner)
        if type(node) in (exp.And, exp.Or):
            left = self.condition(node.this, depth + 1)
            right = self.condition(node.expression, depth + 1)
            if left is None or right is None:
                return None
            return Junction("AND" if type(node) is exp.And else "OR", left, right)
        if type(node) is exp.Is:
            return self._is_null(node)
        return self._comparisons(node)

    def _is_null(self, node: exp.Is) -> Condition | None:
        position = self._column(node.this)
        if position is None or not isinstance(node.expression, exp.Null):
            return None
        found = IsNull(position)
        return Negation(found) if node.args.get("negate") else found

    def _comparisons(self, node: exp.Expr) -> Condition | None:
        """Return comparisons of one column with values, joined by AND or (of IN) OR."""
        operator, found = "AND", sides(node)
        if type(node) is exp.In and set(node.args) == {"this", "expressions"}:
            if len(node.expressions) > _MOST_VALUES:
                return None
            operator, found = "OR", [(node.this, "=", e) for e in node.expressions]
        known = compared(self._source, self._column, found)
        return joined(operator, known) if known else None

    def _column(self, node: exp.Expr) -> int | None:
        return self._position_of(node) if isinstance(node, exp.Column) else None
