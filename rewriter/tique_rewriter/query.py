"""Plans of queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.bindings import Bindings, scope_of, select_bindings, whole_key
from tique_rewriter.calls import calls_of
from tique_rewriter.groups import group_read
from tique_rewriter.joins import join_read
from tique_rewriter.outputs import plain_columns
from tique_rewriter.plan import Beside, PointRead, Reference, Select
from tique_rewriter.references import Read, Reads, find_reads
from tique_rewriter.relations import only_read
from tique_rewriter.shape import RESHAPING, has_only
from tique_rewriter.used import used_columns
from tique_rewriter.windows import has_computed_order, is_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tique_rewriter.plan import ViewQuery
    from tique_rewriter.schema import Catalog
    from tique_rewriter.source import Source

_POINT_PARTS = frozenset({"expressions", "from_", "where"})


def plan_query(source: Source, catalog: Catalog) -> Select:
    """Return the plan of a SELECT, VALUES, TABLE or FROM statement."""
    tree = source.parse()
    is_pivot = isinstance(tree, exp.Pivot) and exp.Pivot in source.rules.allowed_kinds
    if not (is_pivot or isinstance(tree, exp.Query | exp.Values)):
        raise source.unsupported("this statement", source.words[0].start)
    reads = find_reads(source, [tree], catalog)
    references = references_of(reads, select_bindings(source, tree, reads), [tree])
    text = source.cut(source.words[0].start, source.end, reads.marks)
    if _reshapes([tree]) or any(read.view is not None for read in reads.reads):
        return Select(
            len(source.lexed.arguments),
            references,
            text,
            calls=calls_of(source, tree, reads),
        )
    return Select(
        len(source.lexed.arguments),
        references,
        text,
        _point_read(source, tree, reads),
        group_read(source, tree, reads),
        join_read(source, tree, reads, references),
        calls_of(source, tree, reads),
    )


def references_of(
    reads: Reads,
    bindings: Bindings,
    parts: Sequence[exp.Expr],
    whole: Sequence[Read] = (),
    joined: Read | None = None,
) -> tuple[Reference, ...]:
    """Return the plan's references, numbered like the reads.

    The statement looks at all columns of those in ``whole``. Rows of ``joined`` are to be
    told apart.
    """
    used = used_columns(parts, reads.reads)
    if _reshapes(parts):
        bindings, used = {}, [None] * len(reads.reads)
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
        beside |= {Beside.JOINS}
    return tuple(
        Reference(
            read.table,
            read.added_alias,
            bindings.get(read.span.index, {}),
            None if any(read is each for each in whole) else columns,
            beside=beside,
            view=read.view,
            is_numbered=read is joined and read.table.is_keyless,
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


def _beside(part: exp.Expr) -> Iterator[Beside]:
    """Yield the parts in whose presence a table may need another form."""
    for node in part.find_all(exp.In, exp.Any, exp.All, exp.Lateral, exp.Window):
        if isinstance(node, exp.Window):
            if is_whole(node):
                yield Beside.WHOLE_WINDOW
            elif has_computed_order(node):
                yield Beside.COMPUTED_ORDER
        elif not isinstance(node, exp.In) or node.args.get("query") is not None:
            yield Beside.COMPARISON


def _point_read(source: Source, tree: exp.Expr, reads: Reads) -> PointRead | None:
    read = only_read(tree, reads)
    if read is None or not has_only(tree, _POINT_PARTS):
        return None
    scope = scope_of([read.node], reads)
    key = whole_key(source, scope, tree.args.get("where"), read)
    outputs = plain_columns(tree.expressions, scope, read)
    if key is None or outputs is None:
        return None
    columns, names = zip(*outputs, strict=True)
    return PointRead(read.table, key, columns, names)
