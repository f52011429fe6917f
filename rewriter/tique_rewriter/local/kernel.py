"""Evaluation of simple expressions without the engine, where that is exact.

The result is the value that the engine would store in the target column, or the value
must be left to the engine (:class:`NotLocal`): every operand and every result on the
way must fit the target column's type.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add, sub
from typing import TYPE_CHECKING, Any

from tique_rewriter.local.conditions import Test, compile_condition
from tique_rewriter.local.values import EXACT, Kind, NotLocal, coercer, kind_of
from tique_rewriter.plans.plan import (
    Arithmetic,
    Choice,
    Coalesced,
    ColumnValue,
    Kernel,
    Literal,
    Parameter,
)

if TYPE_CHECKING:
    from decimal import Decimal

__all__ = ["NotLocal", "coercer", "compile_kernel"]

Evaluator = Callable[[Sequence[Any], Sequence[Any]], Any]

_WIDEST_ARITHMETIC = 18
_CHOSEN = frozenset({"integer", "text", "boolean"})
"""Types, beside narrow decimals, of which CASE and COALESCE are evaluated here."""


def compile_kernel(
    kernel: Kernel, target_column_type: str, column_types: Sequence[str]
) -> Evaluator | None:
    """Return a function of a row and the parameters that returns the column's new value.

    Parameters
    ----------
    kernel
        The expression.
    target_column_type
        The type of the column that it is stored in.
    column_types
        The types of the row's columns.

    Returns
    -------
    The function, which raises :class:`NotLocal` where the values at hand must be left
    to the engine, or None if all must.
    """
    kind = kind_of(target_column_type)
    if kind is None:
        return None
    compiler = _Compiler(kind, target_column_type, column_types)
    return compiler.compile(kernel)[0]


class _Compiler:
    def __init__(self, kind: Kind, type_: str, column_types: Sequence[str]) -> None:
        self.kind = kind
        self.coerce = coercer(type_)
        self.column_types = column_types

    def compile(self, kernel: Kernel) -> tuple[Evaluator | None, bool]:
        """Return the function, and whether a column is in it."""
        if isinstance(kernel, Parameter):
            return self.parameter(kernel.number - 1), False
        if isinstance(kernel, Literal):
            return self.literal(kernel.value), False
        if isinstance(kernel, ColumnValue):
            return self.column(kernel.position), True
        if isinstance(kernel, Arithmetic):
            return self.arithmetic(kernel)
        return self.alternatives(kernel)

    def parameter(self, index: int) -> Evaluator:
        coerce = self.coerce
        return lambda row, parameters: coerce(parameters[index])

    def literal(self, value: object) -> Evaluator | None:
        try:
            stored = self.coerce(value)
        except NotLocal:
            return None
        return lambda row, parameters: stored

    def column(self, position: int) -> Evaluator | None:
        """Leave a column of another type to the engine, which converts it."""
        kind = kind_of(self.column_types[position])
        if kind is None or not _holds(self.kind, kind):
            return None
        return lambda row, parameters: row[position]

    def arithmetic(self, kernel: Arithmetic) -> tuple[Evaluator | None, bool]:
        left, in_left = self.compile(kernel.left)
        right, in_right = self.compile(kernel.right)
        has_column = in_left or in_right
        if left is None or right is None:
            return None, has_column
        if not has_column:
            # The engine types an operation on values alone by their own size, and may
            # overflow, or know no type at all.
            return None, False
        return self.combine(kernel.operator, left, right), True

    def alternatives(self, kernel: Choice | Coalesced) -> tuple[Evaluator | None, bool]:
        """Compile CASE and COALESCE, if a column among their values gives them its type.

        All values are evaluated, as an engine may that evaluates a column at a time.
        """
        kind = self.kind
        is_exact = kind.family in _CHOSEN or (
            kind.family == "decimal" and kind.precision <= _WIDEST_ARITHMETIC
        )
        if isinstance(kernel, Choice):
            kernels = [value for _, value in kernel.branches] + [kernel.otherwise]
        else:
            kernels = list(kernel.values)
        compiled = [self.compile(each) for each in kernels]
        values = [evaluate for evaluate, _ in compiled if evaluate is not None]
        has_column = any(found for _, found in compiled)
        if not is_exact or not has_column or len(values) < len(kernels):
            return None, has_column
        if isinstance(kernel, Coalesced):
            return _coalesced(values), True
        tests = [
            compile_condition(condition, self.column_types)
            for condition, _ in kernel.branches
        ]
        known = [test for test in tests if test is not None]
        return (_choice(known, values) if len(known) == len(tests) else None), True

    def combine(
        self, operator: str, left: Evaluator, right: Evaluator
    ) -> Evaluator | None:
        kind, is_sum = self.kind, operator == "+"
        if kind.family == "integer":
            combine = add if is_sum else sub
            return _sum(combine, left, right, kind.least, kind.high)
        if kind.family == "decimal" and kind.precision <= _WIDEST_ARITHMETIC:
            greatest = EXACT.scaleb(10**kind.precision - 1, -kind.scale)
            exactly = EXACT.add if is_sum else EXACT.subtract
            return _sum(exactly, left, right, EXACT.minus(greatest), greatest)
        return None


def _choice(tests: Sequence[Test], values: Sequence[Evaluator]) -> Evaluator:
    """Return CASE; the last value is that of ELSE."""

    def evaluate(row: Sequence[Any], parameters: Sequence[Any]) -> object:
        outcomes = [test(row, parameters) for test in tests]
        results = [value(row, parameters) for value in values]
        for outcome, result in zip(outcomes, results, strict=False):
            if outcome:
                return result
        return results[-1]

    return evaluate


def _coalesced(values: Sequence[Evaluator]) -> Evaluator:
    def evaluate(row: Sequence[Any], parameters: Sequence[Any]) -> object:
        results = [value(row, parameters) for value in values]
        return next((result for result in results if result is not None), None)

    return evaluate


def _holds(target: Kind, kind: Kind) -> bool:
    """Whether every value of ``kind`` is stored as it is in a column of ``target``."""
    if target.family == kind.family == "text":
        return not target.high or 0 < kind.high <= target.high
    return target == kind


def _sum(
    combine: Callable[[Any, Any], Any],
    left: Evaluator,
    right: Evaluator,
    least: int | Decimal,
    greatest: int | Decimal,
) -> Evaluator:
    """Return the sum or difference of two values, if it is one of the column's."""

    def evaluate(row: Sequence[Any], parameters: Sequence[Any]) -> object:
        one, other = left(row, parameters), right(row, parameters)
        if one is None or other is None:
            return None
        result = combine(one, other)
        if least <= result <= greatest:
            return result
        raise NotLocal

    return evaluate
