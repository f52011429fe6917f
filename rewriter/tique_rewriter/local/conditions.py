"""Evaluation of conditions on a row, where all engines agree about them.

The three truth values are True, False, and None for unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from tique_rewriter.local.values import NotLocal, coercer, kind_of
from tique_rewriter.plans.plan import (
    Comparison,
    Condition,
    IsNull,
    Literal,
    Negation,
    Parameter,
)

Test = Callable[[Sequence[Any], Sequence[Any]], bool | None]

ORDERED = frozenset({"integer", "decimal", "date", "timestamp"})
"""Types whose values every engine puts in the same order."""

EQUATED = ORDERED | {"text", "boolean", "blob", "uuid"}
"""Types whose values are equal in every engine if they are in Python."""

OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": eq,
    "<>": ne,
    "<": lt,
    "<=": le,
    ">": gt,
    ">=": ge,
}


def compile_condition(condition: Condition, column_types: Sequence[str]) -> Test | None:
    """Return a function of a row and the parameters that says whether it is true.

    The function raises :class:`NotLocal` where the engine must say. It evaluates every
    part, as an engine may that evaluates a column at a time. None is returned if the
    engine must always say.
    """
    if isinstance(condition, Comparison):
        return _comparison(condition, column_types[condition.position])
    if isinstance(condition, IsNull):
        position = condition.position
        # Of other types the driver may not hold the values as they are.
        if kind_of(column_types[position]) is None:
            return None
        return lambda row, parameters: row[position] is None
    if isinstance(condition, Negation):
        inner = compile_condition(condition.condition, column_types)
        return None if inner is None else _negation(inner)
    left = compile_condition(condition.left, column_types)
    right = compile_condition(condition.right, column_types)
    if left is None or right is None:
        return None
    return _junction(left, right, decisive=condition.operator == "OR")


def _comparison(condition: Comparison, type_: str) -> Test | None:
    kind = kind_of(type_)
    families = EQUATED if condition.operator in ("=", "<>") else ORDERED
    if kind is None or kind.family not in families:
        return None
    position, operand = condition.position, condition.operand
    compare, coerce = OPERATORS[condition.operator], coercer(type_)

    def test(row: Sequence[Any], parameters: Sequence[Any]) -> bool | None:
        value = row[position]
        given = coerce(_operand(operand, parameters))
        # Of a NaN every engine thinks otherwise, and NULL has no type.
        if given is None or value != value:
            raise NotLocal
        return None if value is None else compare(value, given)

    return test


def _operand(operand: Parameter | Literal, parameters: Sequence[Any]) -> object:
    if isinstance(operand, Literal):
        return operand.value
    return parameters[operand.number - 1]


def _negation(inner: Test) -> Test:
    def test(row: Sequence[Any], parameters: Sequence[Any]) -> bool | None:
        result = inner(row, parameters)
        return None if result is None else not result

    return test


def _junction(left: Test, right: Test, *, decisive: bool) -> Test:
    """Return AND or OR: one side decides that is False or True, or else an unknown."""

    def test(row: Sequence[Any], parameters: Sequence[Any]) -> bool | None:
        one, other = left(row, parameters), right(row, parameters)
        if one is decisive or other is decisive:
            return decisive
        return None if one is None or other is None else not decisive

    return test
