"""Plans of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.bindings import (
    Bindings,
    Scope,
    equalities,
    scope_of,
    select_bindings,
    whole_key,
)
from tique_rewriter.joins import join_read
from tique_rewriter.operands import operand
from tique_rewriter.plan import GroupRead, Literal, Output, PointRead, Reference, Select
from tique_rewriter.references import Read, Reads, find_reads
from tique_rewriter.used import used_columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Catalog
    from tique_rewriter.source import Source

_POINT_PARTS = frozenset({"expressions", "from_", "where"})
_GROUP_PARTS = _POINT_PARTS | {"order", "limit"}

_AGGREGATES: dict[type[exp.Expr], str] = {
    exp.Count: "COUNT",
    exp.Sum: "SUM",
    exp.Min: "MIN",
    exp.Max: "MAX",
}


def plan_query(source: Source, catalog: Catalog) -> Select:
    """Return the plan of a SELECT, VALUES, TABLE or FROM statement."""
    tree = source.parse()
    if not isinstance(tree, exp.Query | exp.Values):
        raise source.unsupported("this statement", source.words[0].start)
    reads = find_reads(source, [tree], catalog)
    references = references_of(reads, select_bindings(source, tree, reads), [tree])
    return Select(
        len(source.lexed.arguments),
        references,
        source.cut(source.words[0].start, source.end, reads.spans),
        _point_read(source, tree, reads),
        _group_read(source, tree, reads),
        join_read(source, tree, reads, references),
    )


def references_of(
    reads: Reads,
    bindings: Bindings,
    parts: Sequence[exp.Expr],
    target: Read | None = None,
) -> tuple[Reference, ...]:
    """Return the plan's references, numbered like the reads.

    The statement looks at all columns of its ``target``.
    """
    used = used_columns(parts, reads.reads)
    apart = any(map(_compares_with_rows, parts))
    return tuple(
        Reference(
            read.table,
            read.added_alias,
            bindings.get(read.span.index, {}),
            None if read is target else columns,
            apart=apart,
        )
        for read, columns in zip(reads.reads, used, strict=True)
    )


def _compares_with_rows(part: exp.Expr) -> bool:
    """Whether there is an IN, ANY or ALL of a subquery in it, or LATERAL."""
    return any(
        not isinstance(node, exp.In) or node.args.get("query") is not None
        for node in part.find_all(exp.In, exp.Any, exp.All, exp.Lateral)
    )


def _point_read(source: Source, tree: exp.Expr, reads: Reads) -> PointRead | None:
    read = _only_read(tree, reads, _POINT_PARTS)
    if read is None or not isinstance(tree, exp.Select):
        return None
    scope = scope_of([read.node], reads)
    key = whole_key(source, scope, tree.args.get("where"), read)
    outputs = plain_columns(tree.expressions, scope, read)
    if key is None or outputs is None:
        return None
    columns, names = zip(*outputs, strict=True)
    return PointRead(read.table, key, columns, names)


def _only_read(tree: exp.Expr, reads: Reads, parts: frozenset[str]) -> Read | None:
    """Return the one table that a SELECT of no more than these parts reads."""
    if len(reads.reads) != 1:
        return None
    if any(value and part not in parts for part, value in tree.args.items()):
        return None
    (read,) = reads.reads
    from_ = tree.args.get("from_")
    if from_ is None or from_.this is not read.node or read.node.args.get("joins"):
        return None
    return read


def _group_read(source: Source, tree: exp.Expr, reads: Reads) -> GroupRead | None:
    read = _only_read(tree, reads, _GROUP_PARTS)
    if read is None or not isinstance(tree, exp.Select):
        return None
    scope = scope_of([read.node], reads)
    if equalities(source, scope, tree.args.get("where"), read) is None:
        return None
    order, limit = _order(tree, scope), _limit(source, tree)
    plain = plain_columns(tree.expressions, scope, read)
    if plain is not None:
        if order is None or limit is None:
            return None
        outputs = tuple(Output(None, position) for position, _ in plain)
        return GroupRead(outputs, order, limit.value)
    found = [_aggregate(node, scope) for node in tree.expressions]
    aggregates = tuple(output for output in found if output is not None)
    if len(aggregates) < len(found) or tree.args.get("order") or tree.args.get("limit"):
        return None
    return GroupRead(aggregates)


def _aggregate(node: exp.Expr, scope: Scope) -> Output | None:
    node = node.this if isinstance(node, exp.Alias) else node
    function = _AGGREGATES.get(type(node))
    if function is None:
        return None
    if any(
        value and part not in ("this", "big_int") for part, value in node.args.items()
    ):
        return None
    if function == "COUNT" and type(node.this) is exp.Star:
        return None if any(node.this.args.values()) else Output(function, None)
    found = scope.column(node.this)
    return None if found is None else Output(function, found[1])


def _order(tree: exp.Expr, scope: Scope) -> tuple[tuple[int, bool], ...] | None:
    """Return the columns to sort by; None if it is by anything else."""
    order = tree.args.get("order")
    if order is None:
        return ()
    if any(isinstance(node, exp.Alias) for node in tree.expressions):
        # A name may be that of an output.
        return None
    columns = []
    for node in order.expressions:
        found = scope.column(node.this) if type(node) is exp.Ordered else None
        if found is None or node.args.get("with_fill"):
            return None
        columns.append((found[1], bool(node.args.get("desc"))))
    return tuple(columns)


def _limit(source: Source, tree: exp.Expr) -> Literal | None:
    """Return the number of rows, None in it for all; None if it is not known."""
    limit = tree.args.get("limit")
    if limit is None:
        return Literal(None)
    if type(limit) is not exp.Limit:
        return None
    if any(value and part != "expression" for part, value in limit.args.items()):
        return None
    found = operand(source, limit.expression)
    if isinstance(found, Literal) and type(found.value) is int and found.value >= 0:
        return found
    return None


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
            if star.args.get("except_") or star.args.get("replace"):
                return None
            if any(star.args.values()) or _foreign_star(node, read):
                return None
            outputs.extend((i, c.name) for i, c in enumerate(read.table.columns))
            continue
        plain = node.this if isinstance(node, exp.Alias) else node
        found = scope.column(plain)
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


def _foreign_star(node: exp.Expr, read: Read) -> bool:
    return isinstance(node, exp.Column) and node.table.lower() != read.name
