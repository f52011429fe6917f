"""Queries of the rows under a part of a key, in pieces that the driver can evaluate.

They read one table, or a second one too, whose row is looked up by its whole key for
every row of the first.
"""

from __future__ import annotations

from itertools import permutations
from operator import itemgetter
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.kinds.query.joins import inner_join
from tique_rewriter.local.comparisons import order_comparisons
from tique_rewriter.plans.plan import (
    ColumnValue,
    Comparison,
    GroupRead,
    Literal,
    Lookup,
    Operand,
    Output,
)
from tique_rewriter.scope.bindings import conditions_of, conjuncts, equalities, scope_of
from tique_rewriter.scope.outputs import aggregates, plain_columns
from tique_rewriter.scope.relations import only_read
from tique_rewriter.tree.operands import operand
from tique_rewriter.tree.shape import has_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.scope.bindings import Scope
    from tique_rewriter.scope.outputs import PositionOf
    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source

_PARTS = frozenset({"expressions", "from_", "where", "order", "limit"})


def group_read(source: Source, tree: exp.Expr, reads: Reads) -> GroupRead | None:
    """Return a query in pieces; None if it is anything else."""
    if not isinstance(tree, exp.Select):
        return None
    conditions = conditions_of(tree.args.get("where"))
    only = only_read(tree, reads)
    if only is not None:
        return _of_one(source, tree, reads, only, conditions)
    join = inner_join(tree, reads)
    if join is not None:
        conditions.extend(conjuncts(join.args.get("on")))
        return _of_two(source, tree, reads, conditions)
    return None


def _of_one(
    source: Source,
    tree: exp.Select,
    reads: Reads,
    read: Read,
    conditions: Sequence[exp.Expr],
) -> GroupRead | None:
    if not has_only(tree, _PARTS):
        return None
    scope = scope_of([read.node], reads)
    position_of = _positions(scope, read)
    compared, others = order_comparisons(source, position_of, conditions)
    if equalities(source, scope, others, read) is None:
        return None
    plain = plain_columns(tree.expressions, scope, read)
    columns = None if plain is None else [position for position, _ in plain]
    return _read(source, tree, position_of, columns, compared)


def _of_two(
    source: Source, tree: exp.Select, reads: Reads, conditions: Sequence[exp.Expr]
) -> GroupRead | None:
    if not has_only(tree, _PARTS | {"joins"}):
        return None
    scope = scope_of([read.node for read in reads.reads], reads)
    ways = []
    for outer, inner in permutations(reads.reads):
        position_of = _positions(scope, outer)
        compared, others = order_comparisons(source, position_of, conditions)
        found = _looked_up(source, scope, outer, inner, others)
        if found is not None:
            key, bound = found
            lookup = Lookup(outer.span.index, key)
            ways.append((bound, position_of, compared, lookup))
    if not ways:
        return None
    # The more columns are bound, the fewer rows there are to look up.
    _, position_of, compared, lookup = max(ways, key=itemgetter(0))
    found_columns = [position_of(item.unalias()) for item in tree.expressions]
    columns = [position for position in found_columns if position is not None]
    plain = columns if len(columns) == len(found_columns) else None
    return _read(source, tree, position_of, plain, compared, lookup)


def _positions(scope: Scope, outer: Read) -> PositionOf:
    """Return where columns are in a row: those of the outer table come first."""
    behind = len(outer.table.columns)

    def position_of(node: exp.Expr) -> int | None:
        found = scope.column(node)
        if found is None:
            return None
        read, position = found
        return position if read is outer else behind + position

    return position_of


def _read(
    source: Source,
    tree: exp.Select,
    position_of: PositionOf,
    columns: Sequence[int] | None,
    compared: tuple[Comparison, ...],
    lookup: Lookup | None = None,
) -> GroupRead | None:
    if columns is not None:
        order, limit = _order(tree, position_of), _limit(source, tree)
        if order is None or limit is None:
            return None
        outputs = tuple(Output(None, position) for position in columns)
        return GroupRead(outputs, order, limit.value, compared, lookup)
    found = aggregates(tree.expressions, position_of)
    if found is None or tree.args.get("order") or tree.args.get("limit"):
        return None
    return GroupRead(found, comparisons=compared, lookup=lookup)


def _looked_up(
    source: Source,
    scope: Scope,
    outer: Read,
    inner: Read,
    conditions: Sequence[exp.Expr],
) -> tuple[tuple[Operand | ColumnValue, ...], int] | None:
    """Return the values of the inner table's key, and how much of the outer is bound.

    None if the condition says more than that.
    """
    own: list[exp.Expr] = []
    key: dict[int, Operand | ColumnValue] = {}
    for condition in conditions:
        if type(condition) is not exp.EQ:
            return None
        sides = [condition.this, condition.expression]
        columns = [scope.column(side) for side in sides]
        if all(c is None or c[0] is outer for c in columns):
            own.append(condition)
            continue
        if columns[0] is None or columns[0][0] is not inner:
            sides.reverse()
            columns.reverse()
        this, other = columns
        assert this is not None
        column = inner.table.columns[this[1]]
        equal: Operand | ColumnValue | None
        if other is None:
            equal = operand(source, sides[1])
        elif other[0] is inner or outer.table.columns[other[1]].type != column.type:
            # Values of different types may be equal without being the same.
            return None
        else:
            equal = ColumnValue(other[1])
        if equal is None or this[1] in key:
            return None
        key[this[1]] = equal
    primary_key = inner.table.primary_key
    if not primary_key or key.keys() != set(primary_key):
        return None
    bound = equalities(source, scope, own, outer)
    if bound is None:
        return None
    count = sum(position in outer.table.primary_key for position in bound)
    return tuple(key[position] for position in primary_key), count


def _order(
    tree: exp.Expr, position_of: PositionOf
) -> tuple[tuple[int, bool], ...] | None:
    """Return the columns to sort by; None if it is by anything else."""
    order = tree.args.get("order")
    if order is None:
        return ()
    if any(isinstance(node, exp.Alias) for node in tree.expressions):
        # A name may be that of an output.
        return None
    columns = []
    for node in order.expressions:
        position = position_of(node.this) if type(node) is exp.Ordered else None
        if position is None or node.args.get("with_fill"):
            return None
        columns.append((position, bool(node.args.get("desc"))))
    return tuple(columns)


def _limit(source: Source, tree: exp.Expr) -> Literal | None:
    """Return the number of rows, None in it for all; None if it is not known."""
    limit = tree.args.get("limit")
    if limit is None:
        return Literal(None)
    if type(limit) is not exp.Limit or not has_only(limit, ("expression",)):
        return None
    found = operand(source, limit.expression)
    if isinstance(found, Literal) and type(found.value) is int and found.value >= 0:
        return found
    return None
