"""Plans of queries.

*Columns that are used:* which columns of a table a statement can be looking at.
A superset is enough: snapshot forms leave the other columns out, which makes
them cheaper to plan and lets the driver work with rows that it knows in part.

*What a query calls:* whether its result depends on more than rows and parameters.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.kinds.query.groups import group_read
from tique_rewriter.kinds.query.joins import join_read
from tique_rewriter.local.comparisons import keyed_row
from tique_rewriter.local.predicates import predicates_of
from tique_rewriter.plans.plan import (
    CONVERSION,
    MOMENT,
    PointRead,
    Reference,
    Select,
    SiblingConstruct,
)
from tique_rewriter.plans.text import Outer
from tique_rewriter.scope.bindings import bindings_of, filters_of, scope_of
from tique_rewriter.scope.descriptions import DESCRIPTIONS
from tique_rewriter.scope.outputs import plain_columns
from tique_rewriter.scope.references import find_reads
from tique_rewriter.scope.relations import common_table, only_read
from tique_rewriter.tree.shape import RESHAPING, has_only
from tique_rewriter.tree.windows import has_computed_order, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tique_rewriter.plans.plan import ViewQuery
    from tique_rewriter.scope.bindings import Bindings, Filter
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source


_POINT_PARTS = frozenset({"expressions", "from_", "where"})


def plan_query(source: Source, catalog: Catalog) -> Select:
    """Return the plan of a SELECT, VALUES, TABLE or FROM statement."""
    tree = source.parse()
    is_pivot = isinstance(tree, exp.Pivot) and exp.Pivot in source.rules.allowed_kinds
    if not (is_pivot or isinstance(tree, exp.Query | exp.Values)):
        raise source.unsupported("this statement", source.words[0].start)
    reads = find_reads(source, [tree], catalog)
    references = references_of(source, tree, reads, [tree])
    select = Select(
        len(source.lexed.arguments),
        references,
        source.cut(source.words[0].start, source.end, reads.marks),
        calls=calls_of(source, tree, reads),
    )
    if _reshapes([tree]) or any(read.view or read.past for read in reads.reads):
        return select
    return replace(
        select,
        point=point_read(source, tree, reads),
        group=group_read(source, tree, reads),
        join=join_read(source, tree, reads, references),
    )


def references_of(
    source: Source,
    tree: exp.Expr,
    reads: Reads,
    parts: Sequence[exp.Expr],
    whole: Sequence[Read] = (),
    joined: Read | None = None,
    own: Filter | None = None,
) -> tuple[Reference, ...]:
    """Return the plan's references, numbered like the reads.

    The statement looks at all columns of those in ``whole``. Rows of ``joined`` are to be
    told apart. The statement's ``own`` WHERE, if it is no query, filters rows, too.
    """
    filters = [*filters_of(tree, reads), *([] if own is None else [own])]
    bindings: Bindings = {}
    for scope, conditions, _ in filters:
        bindings |= bindings_of(source, scope, conditions)
    predicates = predicates_of(source, filters, bindings)
    used = used_columns(parts, reads.reads)
    if _reshapes(parts):
        bindings, predicates, used = {}, {}, [None] * len(reads.reads)
    beside = frozenset(found for part in parts for found in _beside(part))
    queries = [read.view for read in reads.reads if read.view is not None]
    beside = beside.union(
        *(
            reference.beside
            for query in queries
            for reference in query.select.references
        )
    )
    joins = any(part.find(exp.Join) is not None for part in parts) or bool(queries)
    if joins and _tables(read.view for read in reads.reads) > 2:
        beside |= {SiblingConstruct.JOINS}
    return tuple(
        Reference(
            read.table,
            read.added_alias,
            bindings.get(read.span.index, {}),
            None if any(read is each for each in whole) else columns,
            beside=beside,
            view=read.view,
            is_numbered=read is joined and read.table.is_keyless,
            past=read.past,
            conditions=predicates.get(read.span.index, ()),
        )
        for read, columns in zip(reads.reads, used, strict=True)
    )


def _tables(views: Iterable[ViewQuery | None]) -> int:
    """The number of tables that are read, by views too; None stands for a table."""
    return sum(
        1 if view is None else _tables(each.view for each in view.select.references)
        for view in views
    )


def _reshapes(parts: Sequence[exp.Expr]) -> bool:
    """Whether a condition or a select list says nothing of the rows that matter."""
    return any(part.find(*RESHAPING) is not None for part in parts)


def _beside(part: exp.Expr) -> Iterator[SiblingConstruct]:
    """Yield the parts in whose presence a table may need another form."""
    for node in part.find_all(exp.In, exp.Any, exp.All, exp.Lateral, exp.Window):
        if isinstance(node, exp.Window):
            if is_whole(node):
                yield SiblingConstruct.WHOLE_WINDOW
            elif has_computed_order(node):
                yield SiblingConstruct.COMPUTED_ORDER
        elif not isinstance(node, exp.In) or node.args.get("query") is not None:
            yield SiblingConstruct.COMPARISON


def point_read(source: Source, tree: exp.Expr, reads: Reads) -> PointRead | None:
    """Return a query for plain columns of one row by its key; None for any other."""
    read = only_read(tree, reads)
    if read is None or not has_only(tree, _POINT_PARTS):
        return None
    scope = scope_of([read.node], reads)
    row = keyed_row(source, scope, tree.args.get("where"), read)
    outputs = plain_columns(tree.expressions, scope, read)
    if row is None or outputs is None:
        return None
    key, comparisons = row
    columns, names = zip(*outputs, strict=True)
    return None if comparisons else PointRead(read.table, key, columns, names)


def used_columns(
    parts: Iterable[exp.Expr], reads: Sequence[Read]
) -> list[frozenset[int] | None]:
    """Positions of the columns that may be used, per read; None for all of them.

    Parameters
    ----------
    parts
        The trees that the statement consists of.
    reads
        The places that read managed tables.
    """
    names: set[str] = set()
    rows: set[str] = set()
    for part in parts:
        for node in part.walk():
            if _may_use_any(node):
                return [None] * len(reads)
            if isinstance(node, exp.Identifier):
                names.add(node.name.lower())
            if isinstance(node, exp.Column) and not node.table:
                rows.add(node.name.lower())
    return [_used_of(read, names, rows) for read in reads]


def _may_use_any(node: exp.Expr) -> bool:
    """Whether a node may stand for columns that it does not name."""
    if isinstance(node, exp.Star):
        return not isinstance(node.parent, exp.Count)
    if isinstance(node, exp.Join):
        return bool(node.args.get("method"))
    if isinstance(node, exp.DataType):
        # ``list[1]`` of a column that is called like a type.
        return bool(node.args.get("values"))
    if isinstance(node, exp.Summarize):
        return True
    if isinstance(node, exp.Subquery):
        # ``(a JOIN b …) AS j``: its row is ``j``, and it may list columns.
        return bool(node.args.get("alias")) and not isinstance(node.this, exp.Query)
    return isinstance(node, exp.Columns | exp.PositionalColumn)


def _used_of(read: Read, names: set[str], rows: set[str]) -> frozenset[int] | None:
    # ``SELECT t FROM t`` means the whole row.
    if read.node.alias_column_names or read.name in rows:
        return None
    if any(column.name.lower() in names for column in read.table.generated):
        return None
    return frozenset(
        i for i, column in enumerate(read.table.columns) if column.name.lower() in names
    )


_WITHOUT_BRACKETS = frozenset(
    {
        *("CURRENT_CATALOG", "CURRENT_DATE", "CURRENT_ROLE", "CURRENT_SCHEMA"),
        *("CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME"),
        *("LOCALTIMESTAMP", "SESSION_USER", "USER"),
        *("PIVOT", "UNPIVOT", "SAMPLE", "TABLESAMPLE", "COLUMNS", "INTO"),
    }
)
"""Words that need no brackets, or take a text for something else than it seems."""

_MOMENT = re.compile(
    r"\b(?:now|today|tomorrow|yesterday)\b|\b(?:e|u&)'[^']*\\|'\s*\n\s*'", re.IGNORECASE
)
"""What such a string looks like, or one that may be it: with escapes, or in two pieces."""

_NO_MOMENTS = frozenset(
    {
        *exp.DataType.NUMERIC_TYPES,
        *exp.DataType.TEXT_TYPES,
        *(exp.DataType.Type.BOOLEAN, exp.DataType.Type.INTERVAL),
        *(exp.DataType.Type.UUID, exp.DataType.Type.VARBINARY),
    }
)


def calls_of(source: Source, tree: exp.Expr, reads: Reads) -> frozenset[str] | None:
    """Return the plan's ``calls``: see :class:`~tique_rewriter.plans.plan.Select`.

    Every word before a bracket is one, keywords and names of types among them.
    """
    if reads.listed or any(isinstance(mark.piece, Outer) for mark in reads.others):
        return None
    if tree.find(*DESCRIPTIONS) is not None or any(read.past for read in reads.reads):
        return None
    for node in tree.find_all(exp.Table):
        if reads.of(node) is None and not _is_common_table(source, node):
            return None
    calls: set[str] = set()
    for read in reads.reads:
        if read.view is not None:
            if read.view.select.calls is None:
                return None
            calls |= read.view.select.calls
    for word, following in pairwise(source.words):
        raw = source.raw(word)
        if following.keyword == "(" and (raw[0] in '_"' or raw[0].isalpha()):
            calls.add(raw.lower())
    if _MOMENT.search(source.text):
        calls.add(MOMENT)
    for cast in tree.find_all(exp.Cast):
        if cast.to.this not in _NO_MOMENTS and not isinstance(cast.this, exp.Literal):
            calls.add(CONVERSION)
    calls |= {w.keyword.lower() for w in source.words if w.keyword in _WITHOUT_BRACKETS}
    return frozenset(calls)


def _is_common_table(source: Source, node: exp.Table) -> bool:
    return (
        isinstance(node.this, exp.Identifier)
        and not node.db
        and common_table(source, node, node.name.lower()) is not None
    )
