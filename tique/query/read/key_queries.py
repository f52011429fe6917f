"""Rows that the driver finds for a query by itself, in memory or by their keys.

They are those of a *group*, all rows with one prefix of the key (:mod:`tique.store.ranges`),
or of a range of adjacent groups. Each may be joined with a row of another table, which
is looked up by its key. Every part shows the transaction's snapshot, so the whole does.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tique.query.read.comparing import Compared, satisfying
from tique.query.read.sources import KeyReader
from tique.query.transaction.contested import wait_for_turn
from tique.store.rows import tuple_of
from tique.writes.predicates import Predicate
from tique_rewriter.local.conditions import ORDERED
from tique_rewriter.local.kernel import NotLocal
from tique_rewriter.local.values import Kind, kind_of
from tique_rewriter.plans.plan import ColumnValue

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from tique.commit.turns import Habit
    from tique.query.read.comparing import BoundComparison
    from tique.query.read.sources import Source
    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.plans.plan import GroupRead, Lookup, Operand
    from tique_rewriter.schema import Column, Table

_LOOKED_UP = ORDERED | {"text"}
"""Types of which every engine compares two columns of the same type alike."""


class Reader:
    """Finds the rows of a query that reads groups.

    Parameters
    ----------
    read
        The query.
    sources
        The plan's references.
    """

    def __init__(self, read: GroupRead, sources: Sequence[Source]) -> None:
        lookup = read.lookup
        self._outer = outer = sources[0 if lookup is None else lookup.outer]
        behind = len(outer.table.columns)
        self._lookup = None
        self.columns: tuple[Column, ...] = outer.table.columns
        """The columns of the rows."""
        self.keys = frozenset(outer.table.primary_key)
        """The positions of the key columns among them."""
        looked_at = _columns(read)
        if lookup is not None:
            inner = sources[1 - lookup.outer]
            later = [i - behind for i in looked_at if i >= behind]
            self._lookup = _InnerRows(lookup, outer.table, inner, later)
            self.columns += inner.table.columns
            self.keys |= {behind + i for i in inner.table.primary_key}
        self._needed = frozenset(i for i in looked_at if i < behind)
        compared = [
            Compared(comparison, self.columns) for comparison in read.comparisons
        ]
        self._before = [each for each in compared if each.position < behind]
        self._after = [each for each in compared if each.position >= behind]
        self._range = None
        if outer.is_range:
            kind = kind_of(outer.table.columns[outer.table.primary_key[-2]].type)
            if kind is not None and kind.family == "integer":
                self._range = kind
        self.is_possible = (
            (outer.is_group or self._range is not None)
            and all(each.is_possible for each in compared)
            and (self._lookup is None or self._lookup.is_possible)
        )
        """Whether the query can be answered without the engine at all."""

    def kept_types(self, read: GroupRead) -> Sequence[str]:
        """The types of the results if some of them may be kept in another form.

        Aggregates take none.
        """
        positions = [output.position for output in read.outputs]
        if any(output.function for output in read.outputs):
            return ()
        return [self.columns[i].type for i in positions if i is not None]

    def first_rows(self, read: GroupRead, parameters: int) -> FirstRows | None:
        """What a query has seen that gives the first rows in an order, or one's value."""
        if self._lookup is not None or not self.is_possible:
            return None
        return FirstRows.of(read, self._outer, self._needed, parameters)

    def wait_for_turn(
        self, transaction: Transaction, parameters: Sequence[Any], habit: Habit
    ) -> None:
        """Wait for the turn at the group if it is contested."""
        if self._outer.is_group:
            with suppress(NotLocal):
                place = self._outer.place(parameters)
                wait_for_turn(
                    transaction, self._outer.table, place, self._needed, habit
                )

    def rows(
        self,
        transaction: Transaction,
        parameters: Sequence[Any],
        *,
        is_seen: bool = False,
    ) -> Sequence[Row] | None:
        """The rows, or None if the engine must answer; unused columns may be gaps.

        ``is_seen`` as in :meth:`~tique.query.read.sources.Source.rows`.
        """
        try:
            before = [each.bound(parameters) for each in self._before]
            after = [each.bound(parameters) for each in self._after]
            numbers = None
            if self._range is not None:
                position = self._outer.table.primary_key[-2]
                first, last = _bounds(self._range, position, before)
                if last - first >= transaction.catalog.policy.answered_groups:
                    return None
                numbers = range(first, last + 1)
            found = self._outer.rows(
                transaction, parameters, self._needed, numbers, is_seen=is_seen
            )
            if found is None:
                return None
            rows = satisfying(found, before)
            if self._lookup is not None:
                joined = self._lookup.joined(transaction, parameters, rows)
                if joined is None:
                    return None
                rows = satisfying(joined, after)
        except NotLocal:
            return None
        return rows


class FirstRows:
    """The rows of a group up to the last one of a result, or up to the least or greatest.

    All others could come, go, or change, and the result would be the same.

    Parameters
    ----------
    source
        The table.
    position, operator
        The column by which they are in order, and how the others' values compare with the
        last one's.
    number
        That of a placeholder more than the statement has.
    limit
        How many rows the result has then; None: one value.
    output
        The column's number in the result.
    columns
        What the statement looks at.
    """

    def __init__(
        self,
        source: Source,
        position: int,
        operator: str,
        number: int,
        limit: int | None,
        output: int,
        columns: frozenset[int],
    ) -> None:
        self._predicate = source.up_to(position, operator, number)
        self._columns = columns | self._predicate.columns
        self._whole = Predicate(source.table, self._predicate.conditions[:-1])
        self._limit = limit
        self._output = output

    @classmethod
    def of(
        cls,
        read: GroupRead,
        source: Source,
        columns: frozenset[int],
        parameters: int,
    ) -> FirstRows | None:
        """Return what a query has seen, if there is an order of it that all engines share."""
        table = source.table
        outputs, order = read.outputs, read.order
        if len(outputs) == 1 and outputs[0].function in ("MIN", "MAX"):
            position = outputs[0].position
            descends, limit, output = outputs[0].function == "MAX", None, 0
        elif read.limit and len(order) == 1:
            (position, descends), limit = order[0], read.limit
            found = [n for n, each in enumerate(outputs) if each.position == position]
            if not found or any(each.function for each in outputs):
                return None
            output = found[0]
            if position not in table.primary_key:
                # Of NULL every engine thinks otherwise.
                return None
        else:
            return None
        kind = None if position is None else kind_of(table.columns[position].type)
        if position is None or kind is None or kind.family not in ORDERED:
            return None
        operator = ">=" if descends else "<="
        return cls(source, position, operator, parameters + 1, limit, output, columns)

    def see(
        self, transaction: Transaction, parameters: Sequence[Any], rows: Sequence[Row]
    ) -> None:
        """Note what the application learns from a result."""
        last = None
        if rows and (self._limit is None or len(rows) == self._limit):
            last = rows[-1][self._output]
        if last is None:
            transaction.see_rows(self._whole, parameters, self._columns)
        else:
            values = (*parameters, last)
            transaction.see_rows(self._predicate, values, self._columns)


class _InnerRows:
    """The other table of a join, whose rows are looked up."""

    def __init__(
        self, lookup: Lookup, outer: Table, source: Source, needed: Collection[int]
    ) -> None:
        self._source = source
        self._table = table = source.table
        self._needed = sorted({*needed, *table.primary_key})
        operands: list[Operand] = []
        bound: list[int] = []
        places: list[int] = []
        self.is_possible = True
        for position, part in zip(table.primary_key, lookup.key, strict=True):
            if isinstance(part, ColumnValue):
                kind = kind_of(outer.columns[part.position].type)
                self.is_possible &= kind is not None and kind.family in _LOOKED_UP
                places.append(part.position)
            else:
                places.append(len(outer.columns) + len(bound))
                bound.append(position)
                operands.append(part)
        self._keys = KeyReader(table, bound, operands)
        self._key = tuple_of(places)
        """A function from an outer row, followed by ``_keys``' values, to a key."""

    def joined(
        self, transaction: Transaction, parameters: Sequence[Any], rows: Iterable[Row]
    ) -> list[Row] | None:
        """The rows, each with its matching row; rows without one are left out."""
        if not self._source.is_known(transaction):
            return None
        values = self._keys.read(parameters)
        pairs = [(self._key(row + values), row) for row in rows]
        keys: list[Key] = [
            key for key in dict.fromkeys([key for key, _ in pairs]) if None not in key
        ]
        if len(keys) > transaction.catalog.policy.lookups:
            return None
        transaction.prefetch(self._table, keys, self._needed)
        found = {key: transaction.row(self._table, key, self._needed) for key in keys}
        for key, row in found.items():
            transaction.see_row(self._table, key, row, self._needed)
        return [
            row + other for key, row in pairs if (other := found.get(key)) is not None
        ]


def _columns(read: GroupRead) -> frozenset[int]:
    """The columns that a query looks at."""
    positions = [
        *[output.position for output in read.outputs],
        *[position for position, _ in read.order],
        *[comparison.position for comparison in read.comparisons],
    ]
    if read.lookup is not None:
        positions += [p.position for p in read.lookup.key if isinstance(p, ColumnValue)]
    return frozenset(i for i in positions if i is not None)


def _bounds(
    kind: Kind, position: int, comparisons: Iterable[BoundComparison]
) -> tuple[int, int]:
    """The least and the greatest integer that satisfy the comparisons of one column."""
    first, last = kind.least, kind.high
    for comparison in comparisons:
        if comparison.position == position:
            value = comparison.value
            if comparison.operator in (">", ">="):
                first = max(first, value + (comparison.operator == ">"))
            else:
                last = min(last, value - (comparison.operator == "<"))
    return first, last
