"""Answers to simple queries from rows that the driver has.

Only queries that mean the same in every engine: plain columns, sorted by columns that
are never NULL, and aggregates that are exact in whatever order they are computed.
Everything else is left to the engine, and so are decimal numbers that are none (NaN), which
Python neither sorts nor takes for equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import partial, reduce
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tique.store.rows import tuple_of
from tique_rewriter.local.values import EXACT, NotLocal, kind_of

if TYPE_CHECKING:
    from tique.query.read.key_queries import Reader
    from tique_backends.engine import Capabilities
    from tique_backends.records import Row
    from tique_rewriter.plans.plan import GroupRead, Output
    from tique_rewriter.schema import Column

Answer = Callable[[Sequence["Row"]], list["Row"]]
"""A function from the rows that a query finds to the rows that it returns."""

_SORTED = frozenset({"integer", "decimal", "date", "timestamp", "text"})
"""Text sorts by code points, as its bytes do."""

_COUNTED = _SORTED - {"text"}
"""Without text: a collation decides which texts are equal."""

_WIDEST = 18
"""Digits: the sum of some thousand numbers is no overflow anywhere."""


def group_answer(
    reader: Reader, read: GroupRead, engine: Capabilities
) -> Answer | None:
    """The function that answers a query; None if the engine has to answer.

    It raises ``NotLocal`` if the engine has to answer because of the rows' values.
    """
    if any(output.function is not None for output in read.outputs):
        return _aggregates(reader.columns, read.outputs, engine.widest_sum)
    decimals = []
    for position, _ in read.order:
        column = reader.columns[position]
        kind = kind_of(column.type)
        is_never_null = column.not_null or position in reader.keys
        if not is_never_null or kind is None or kind.family not in _SORTED:
            return None
        is_by_bytes = engine.sorts_by_bytes and column.collation is None
        if kind.family == "text" and not is_by_bytes:
            return None
        if kind.family == "decimal":
            decimals.append(position)
    shown = tuple_of([o.position for o in read.outputs if o.position is not None])

    def answer(rows: Sequence[Row]) -> list[Row]:
        for position in decimals:
            _expect_numbers([row[position] for row in rows])
        # The last column to sort by comes first: sorting keeps the order of equals.
        for position, is_descending in reversed(read.order):
            rows = sorted(rows, key=itemgetter(position), reverse=is_descending)
        return [shown(row) for row in rows[: read.limit]]

    return answer


def _aggregates(
    columns: Sequence[Column], outputs: Sequence[Output], widest_sum: int
) -> Answer | None:
    functions = [_aggregate(columns, output, widest_sum) for output in outputs]
    known = [function for function in functions if function is not None]
    if len(known) < len(functions):
        return None
    return lambda rows: [tuple([function(rows) for function in known])]


def _aggregate(
    columns: Sequence[Column], output: Output, widest_sum: int
) -> Callable[[Sequence[Row]], Any] | None:
    position = output.position
    if position is None:
        return len
    combine = _combination(columns[position].type, output, widest_sum)
    if combine is None:
        return None
    value = itemgetter(position)
    kind = kind_of(columns[position].type)
    may_be_none = kind is not None and kind.family == "decimal"

    def aggregate(rows: Sequence[Row]) -> Any:
        values = [v for v in map(value, rows) if v is not None]
        if may_be_none:
            _expect_numbers(values)
        return combine(values)

    return aggregate


def _expect_numbers(values: Iterable[Decimal]) -> None:
    """Leave a NaN or an infinity among decimals to the engine."""
    if not all(map(Decimal.is_finite, values)):
        raise NotLocal


def _combination(
    type_name: str, output: Output, widest_sum: int
) -> Callable[[Sequence[Any]], Any] | None:
    """An aggregate as a function of values that are not NULL."""
    function, kind = output.function, kind_of(type_name)
    if output.distinct:
        is_exact = kind is not None and kind.family in _COUNTED
        return (lambda values: len(set(values))) if is_exact else None
    if function == "COUNT":
        return len
    if kind is None:
        return None
    if kind.family == "decimal" and kind.precision <= _WIDEST:
        total: Callable[[Sequence[Any]], Any] = partial(reduce, EXACT.add)
    elif kind.family == "integer" and kind.high < 2**64:
        if function == "SUM" and kind.high >= 2**widest_sum:
            return None
        total = sum
    else:
        return None
    functions: dict[str | None, Callable[[Sequence[Any]], Any]] = {
        "SUM": total,
        "MIN": min,
        "MAX": max,
    }
    combine = functions[function]
    return lambda values: combine(values) if values else None
