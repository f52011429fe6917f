"""Predicates: which rows of a table a statement looks at, and at which of their columns."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tique_rewriter.local.conditions import compile_condition
from tique_rewriter.local.kernel import NotLocal, coercer
from tique_rewriter.plans.plan import (
    Comparison,
    Condition,
    IsNull,
    Junction,
    Literal,
    Negation,
    kernel_columns,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.plans.plan import Operand
    from tique_rewriter.schema import Table


class Predicate:
    """The rows of a table of which all conditions are true.

    Each is a predicate of its own: two with the same conditions are not equal.

    Parameters
    ----------
    table
        The table.
    conditions
        The conditions; those that the driver cannot evaluate are left out.
    """

    def __init__(self, table: Table, conditions: Iterable[Condition] = ()) -> None:
        types = [column.type for column in table.columns]
        tests = [(each, compile_condition(each, types)) for each in conditions]
        self.table = table
        self._tests = [(each, test) for each, test in tests if test is not None]
        self.columns = frozenset().union(*map(kernel_columns, self.conditions))
        """The columns that the conditions look at."""

    @property
    def conditions(self) -> list[Condition]:
        """Its conditions."""
        return [condition for condition, _ in self._tests]

    @cached_property
    def equalities(self) -> list[tuple[int, Operand]]:
        """The columns that have to have one value, in order, and that."""
        return sorted(
            (
                (each.position, each.operand)
                for each in self.conditions
                if isinstance(each, Comparison) and each.operator == "="
            ),
            key=lambda bound: bound[0],
        )

    def is_true(self, row: Row, parameters: Sequence[Any]) -> bool:
        """Whether no condition is false or unknown, as far as the driver can say."""
        return all(_is_true(test, row, parameters) for _, test in self._tests)

    def text(self) -> str:
        """The conditions in SQL, without values (P11)."""
        return " AND ".join(_shown(each, self.table) for each in self.conditions)

    def bound(self, parameters: Sequence[Any]) -> Iterator[Condition]:
        """Yield the conditions with values; not those that cannot be evaluated for these."""
        for condition in self.conditions:
            try:
                yield _bound(condition, self.table, parameters)
            except NotLocal:
                continue


class SeenPredicate(NamedTuple):
    """A predicate for the parameters of one execution, and the columns looked at."""

    predicate: Predicate
    parameters: tuple[Any, ...] = ()
    columns: frozenset[int] | None = None
    """Those of the conditions among them; None: all."""

    @property
    def table(self) -> Table:
        """The table."""
        return self.predicate.table

    def group(self, positions: Collection[int]) -> tuple[tuple[int, ...], Key]:
        """Those of some columns that it binds to one value, and these values."""
        bound: dict[int, Any] = {}
        for position, operand in self.predicate.equalities:
            if position in positions:
                value = _value(operand, self.parameters)
                try:
                    value = coercer(self.table.columns[position].type)(value)
                except NotLocal:
                    continue
                if value is not None:
                    bound[position] = value
        return tuple(bound), tuple(bound.values())


def _is_true(test: Any, row: Row, parameters: Sequence[Any]) -> bool:
    try:
        return test(row, parameters) is True
    except NotLocal:
        return True


def _value(operand: Operand, parameters: Sequence[Any]) -> Any:
    if isinstance(operand, Literal):
        return operand.value
    return parameters[operand.number - 1]


def _bound(condition: Condition, table: Table, parameters: Sequence[Any]) -> Condition:
    if isinstance(condition, Comparison):
        given = _value(condition.operand, parameters)
        value = coercer(table.columns[condition.position].type)(given)
        if value is None:
            raise NotLocal
        return Comparison(condition.position, condition.operator, Literal(value))
    if isinstance(condition, Negation):
        return Negation(_bound(condition.condition, table, parameters))
    if isinstance(condition, Junction):
        sides = (condition.left, condition.right)
        return Junction(
            condition.operator, *[_bound(side, table, parameters) for side in sides]
        )
    return condition


def _shown(condition: Condition, table: Table) -> str:
    if isinstance(condition, Comparison):
        return f"{table.columns[condition.position].name} {condition.operator} ?"
    if isinstance(condition, IsNull):
        return f"{table.columns[condition.position].name} IS NULL"
    if isinstance(condition, Negation):
        return f"NOT ({_shown(condition.condition, table)})"
    sides = (_shown(side, table) for side in (condition.left, condition.right))
    return f"({f' {condition.operator} '.join(sides)})"
