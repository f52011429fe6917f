"""The outputs of a select list that has plain columns or aggregates of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.plan import Output
from tique_rewriter.tree.shape import has_only

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.scope.bindings import Scope
    from tique_rewriter.scope.reads import Read

PositionOf = Callable[[exp.Expr], int | None]
"""The position of a column in the rows; None for anything else."""

_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
}


def plain_columns(
    items: Sequence[exp.Expr], scope: Scope, read: Read
) -> list[tuple[int, str]] | None:
    """Position and output name of every column in a select list.

    None if anything in it is not a column as it stands. DuckDB names a column as the
    table defines it, however the query spells it.
    """
    outputs: list[tuple[int, str]] = []
    for node in items:
        star = star_of(node)
        if star is not None:
            is_foreign = (
                isinstance(node, exp.Column) and node.table.lower() != read.name
            )
            if any(star.args.values()) or is_foreign or read.table.generated:
                return None
            outputs.extend((i, c.name) for i, c in enumerate(read.table.columns))
            continue
        found = scope.column(node.unalias())
        if found is None:
            return None
        name = read.table.columns[found[1]].name
        outputs.append((found[1], node.alias or name))
    return outputs or None


def star_of(node: exp.Expr) -> exp.Star | None:
    """Return the star of ``*`` or ``t.*``; None for anything else."""
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        return node.this
    return node if isinstance(node, exp.Star) else None


def aggregates(
    items: Sequence[exp.Expr], position_of: PositionOf
) -> tuple[Output, ...] | None:
    """Return a select list of aggregates of columns; None if anything else is in it."""
    found = [_aggregate(node, position_of) for node in items]
    known = tuple(output for output in found if output is not None)
    return known if len(known) == len(found) else None


def _aggregate(node: exp.Expr, position_of: PositionOf) -> Output | None:
    node = node.unalias()
    function = _AGGREGATES.get(type(node))
    if function is None or not has_only(node, ("this", "big_int")):
        return None
    inner = node.this
    if function == "COUNT" and type(inner) is exp.Star:
        return None if any(inner.args.values()) else Output(function, None)
    is_distinct = function == "COUNT" and type(inner) is exp.Distinct
    if is_distinct:
        if not has_only(inner, ("expressions",)) or len(inner.expressions) != 1:
            return None
        (inner,) = inner.expressions
    position = position_of(inner)
    return None if position is None else Output(function, position, is_distinct)
