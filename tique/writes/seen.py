"""What a transaction has seen of its snapshot.

A SERIALIZABLE transaction is committed if everything that it saw is still so just before
its commit (:mod:`tique.commit.validation`); one whose mergeable updates
(:mod:`tique.commit.mergeable`) were overtaken is, if all else that it saw is. What a
statement sees is noted where the rows are found, under one of two forms:

* *rows*, by their keys, with the columns that were looked at. That a row is not there is
  seen too, and so is that it is there (no columns);
* *predicates*: all rows of a table of which some conditions are true, those that were not
  there too. A condition on other tables' rows, or one that the driver cannot evaluate, is
  none of them: more rows have been seen then, and without any condition all of them.
  An aggregate, LIMIT or min() has seen all rows of its predicate: any of them could have
  changed the result.

It is only ever added to. A savepoint gives back what was written; what was seen stays
seen, and a row that was written and given back was seen.
"""

from __future__ import annotations

from decimal import Decimal
from math import copysign
from typing import TYPE_CHECKING, Any, NamedTuple

from tique.store.rows import merged
from tique_backends.records import MISSING
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
    from tique_rewriter.schema import Table

_MOST_PREDICATES = 1000
"""Of one transaction; a further one is noted as its whole table."""


class Predicate(NamedTuple):
    """The rows of a table of which all conditions are true, and the columns looked at.

    The operands of its conditions are values of the columns' types.
    """

    table_id: int
    conditions: tuple[Condition, ...] = ()
    columns: frozenset[int] | None = None
    """Those that the statement looks at, and those of the conditions; None: all."""

    def group(self) -> tuple[tuple[int, ...], Key]:
        """The columns that it binds to one value, in order, and these values."""
        bound = {
            each.position: each.operand.value
            for each in self.conditions
            if isinstance(each, Comparison)
            and each.operator == "="
            and isinstance(each.operand, Literal)
        }
        positions = tuple(sorted(bound))
        return positions, tuple([bound[i] for i in positions])

    def text(self, table: Table) -> str:
        """The conditions in SQL, without their values (P11)."""
        shown = [_shown(condition, table) for condition in self.conditions]
        return " AND ".join(shown)


class Seen:
    """What one transaction has seen; used by one thread at a time."""

    __slots__ = ("definitions", "own", "predicates", "rows")

    def __init__(self) -> None:
        self.definitions: dict[int, Table] = {}
        """The tables as they were defined, by id."""
        self.rows: dict[tuple[int, Key], tuple[Row | None, frozenset[int]]] = {}
        """By table and key: the row, and the columns of it that were looked at."""
        self.predicates: dict[Predicate, None] = {}
        self.own: set[tuple[int, Key]] = set()
        """Rows that the transaction had changed: nothing of them may have changed."""

    def copy(self) -> Seen:
        """Return what was seen so far."""
        other = Seen()
        other.definitions = dict(self.definitions)
        other.rows = dict(self.rows)
        other.predicates = dict(self.predicates)
        other.own = set(self.own)
        return other

    def __bool__(self) -> bool:
        """Whether anything was seen."""
        return bool(self.rows or self.predicates or self.own)

    def row(
        self, table: Table, key: Key, row: Row | None, columns: Collection[int]
    ) -> None:
        """Note a row of the snapshot, or that there is none."""
        place = table.id, key
        before = self.rows.get(place)
        self.definitions[table.id] = table
        looked_at = frozenset(columns)
        if before is not None and before[0] is not None and row is not None:
            row = merged(row, before[0])
            looked_at |= before[1]
        self.rows[place] = row, looked_at

    def has(self, table: Table, key: Key, row: Row, columns: Collection[int]) -> bool:
        """Whether the same statement has noted this very row, with the definition."""
        before = self.rows.get((table.id, key))
        return before is not None and before[0] is row and before[1] is columns

    def own_row(self, table: Table, key: Key) -> None:
        """Note a row that the transaction had changed."""
        self.definitions[table.id] = table
        self.own.add((table.id, key))

    def predicate(self, table: Table, predicate: Predicate) -> None:
        """Note the rows of a predicate, and that there are no others."""
        self.definitions[table.id] = table
        if len(self.predicates) >= _MOST_PREDICATES:
            predicate = Predicate(table.id)
        self.predicates[predicate] = None

    def table(self, table: Table) -> None:
        """Note that anything of a table may have been seen."""
        self.predicate(table, Predicate(table.id))


def bound_conditions(
    table: Table, conditions: Iterable[Condition], parameters: Sequence[Any]
) -> Iterator[Condition]:
    """Yield conditions with the values of an execution in them.

    One with a value that the driver cannot compare is left out.
    """
    for condition in conditions:
        try:
            yield _bound(table, condition, parameters)
        except NotLocal:
            continue


def _bound(table: Table, condition: Condition, parameters: Sequence[Any]) -> Condition:
    if isinstance(condition, Comparison):
        operand = condition.operand
        given = (
            operand.value
            if isinstance(operand, Literal)
            else parameters[operand.number - 1]
        )
        value = coercer(table.columns[condition.position].type)(given)
        if value is None:
            raise NotLocal
        return Comparison(condition.position, condition.operator, Literal(value))
    if isinstance(condition, Negation):
        return Negation(_bound(table, condition.condition, parameters))
    if isinstance(condition, Junction):
        return Junction(
            condition.operator,
            _bound(table, condition.left, parameters),
            _bound(table, condition.right, parameters),
        )
    return condition


def predicate_columns(
    conditions: Iterable[Condition], columns: Collection[int] | None
) -> frozenset[int] | None:
    """The columns that a statement looks at, by conditions and otherwise; None: all."""
    if columns is None:
        return None
    return frozenset(columns).union(*map(kernel_columns, conditions))


def _shown(condition: Condition, table: Table) -> str:
    if isinstance(condition, Comparison):
        return f"{table.columns[condition.position].name} {condition.operator} ?"
    if isinstance(condition, IsNull):
        return f"{table.columns[condition.position].name} IS NULL"
    if isinstance(condition, Negation):
        return f"NOT ({_shown(condition.condition, table)})"
    sides = (_shown(side, table) for side in (condition.left, condition.right))
    return f"({f' {condition.operator} '.join(sides)})"


def is_same_row(newest: Row | None, seen: Row | None, columns: Iterable[int]) -> bool:
    """Whether a row is there as before, in some columns; a gap is no change."""
    if newest is None or seen is None:
        return newest is seen
    return all(
        newest[i] is MISSING or _is_same_value(newest[i], seen[i]) for i in columns
    )


def _is_same_value(new: Any, old: Any) -> bool:
    """Whether a value is the same, to the last digit."""
    if new is old:
        return True
    if type(new) is not type(old) or new != old:
        return False
    if isinstance(new, float):
        return copysign(1, new) == copysign(1, old)
    return not isinstance(new, Decimal) or new.same_quantum(old)
