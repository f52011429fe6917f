"""Comparisons of columns with values, evaluated by the driver where all engines agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tique.query.read.sources import operand_value
from tique_rewriter.local.conditions import EQUATED, OPERATORS, ORDERED
from tique_rewriter.local.kernel import NotLocal, coercer
from tique_rewriter.local.values import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_backends.records import Row
    from tique_rewriter.plans.plan import Comparison
    from tique_rewriter.schema import Column


class BoundComparison(NamedTuple):
    """A comparison with a value."""

    position: int
    operator: str
    value: Any

    def holds(self, row: Row) -> bool:
        """Whether it is true of a row, not false nor unknown.

        Raises
        ------
        NotLocal
            If the row has a NaN there: of those every engine thinks otherwise.
        """
        value = row[self.position]
        if value is None:
            return False
        if value != value:
            raise NotLocal
        return OPERATORS[self.operator](value, self.value)


class Compared:
    """A comparison, ready for the values of each execution."""

    def __init__(self, comparison: Comparison, columns: Sequence[Column]) -> None:
        self.position = comparison.position
        self._operator = comparison.operator
        self._operand = comparison.operand
        type_name = columns[comparison.position].type
        kind = kind_of(type_name)
        self._coerce = coercer(type_name)
        families = EQUATED if self._operator in ("=", "<>") else ORDERED
        self.is_possible = kind is not None and kind.family in families

    def bound(self, parameters: Sequence[Any]) -> BoundComparison:
        """The comparison with its value.

        Raises
        ------
        NotLocal
            If the engine must say how the value compares.
        """
        value = self._coerce(operand_value(self._operand, parameters))
        if value is None:
            raise NotLocal
        return BoundComparison(self.position, self._operator, value)


def satisfying(
    rows: Sequence[Row], comparisons: Iterable[BoundComparison]
) -> Sequence[Row]:
    """The rows of which all comparisons are true; raises NotLocal as ``holds``."""
    for comparison in comparisons:
        rows = [row for row in rows if comparison.holds(row)]
    return rows
