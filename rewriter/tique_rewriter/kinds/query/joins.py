"""Joins of two tables, in pieces, so that the tables can be read in parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.plan import JoinRead
from tique_rewriter.scope.bindings import scope_of
from tique_rewriter.scope.relations import TABLE, relations_of
from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark, in_order
from tique_rewriter.tree.shape import clause_words, has_only, place_of, starts_at

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tique_rewriter.plans.plan import Reference
    from tique_rewriter.scope.reads import Reads
    from tique_rewriter.text.source import Source

_SELECT = frozenset(
    [
        *("distinct", "expressions", "from_", "joins", "where"),
        *("group", "having", "order", "limit", "offset"),
    ]
)
_AFTER_FROM = ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "FETCH")
_JOIN = frozenset({"this", "on", "kind"})
_JOINED = "_joined"

# A result that is no column keeps the name that it has, or has none.
_ITEMS = (exp.Alias, exp.Column, exp.AggFunc, exp.Add, exp.Sub, exp.Mul, exp.Div)


def join_read(
    source: Source, tree: exp.Expr, reads: Reads, references: Sequence[Reference]
) -> JoinRead | None:
    """Return a SELECT from an inner join of two tables in pieces.

    None if it is anything else, or if some name in it might mean another thing once
    the joined rows are a relation of their own.
    """
    rules = source.rules
    join = inner_join(tree, reads) if rules.joins_in_parts else None
    if join is None or not isinstance(tree, exp.Select) or not _is_join(tree):
        return None
    if not rules.moves_conditions and join.args.get("on") is None:
        return None
    scope = scope_of(relations_of(tree), reads)
    # Results that are columns get aliases.
    if rules.confuses_aliases and _has_one_name_twice(tree):
        return None
    # No columns are known where a star or a row stands for them.
    if not scope.closed or any(r.columns is None for r in references):
        return None
    start = reads.reads[0].span.start
    after = [word.start for _, word in clause_words(source, tree, *_AFTER_FROM)]
    end = min(after, default=source.end)
    if end < start:
        return None
    named = {item.alias for item in tree.expressions}
    taken: set[tuple[int, int]] = set()
    looked_at: set[int] = set()
    replaced: dict[tuple[int, int], str] = {}
    for node in tree.find_all(exp.Column):
        if start <= starts_at(node) < end:
            continue
        if not node.table and node.name in named:
            continue
        column, place = scope.column(node), place_of(node)
        if column is None or place is None:
            return None
        read, position = column
        taken.add((read.span.index, position))
        if node.find_ancestor(exp.Where) is None:
            looked_at.add(read.span.index)
        replaced[place] = f"{_JOINED}.{_name(read.span.index, position)}"
        if node.parent is tree:
            replaced[place] += f" AS {quote(read.table.columns[position].name)}"
    if _names_more(source, reads, [*replaced, (start, end)]):
        return None
    # MonetDB 11.41 makes a semijoin of a join if the operators above WHERE look at one
    # side only and the other is joined by a column of its key, as if that were all of
    # the key.
    if looked_at != {0, 1} and not rules.moves_conditions:
        return None
    columns = ", ".join(
        f"{read.qualifier}.{quote(read.table.columns[position].name)} "
        f"AS {_name(index, position)}"
        for index, position in sorted(taken)
        for read in [reads.reads[index]]
    )
    return JoinRead(
        _replace(source, source.words[0].start, start, replaced),
        ("SELECT ", columns, " FROM ", *source.cut(start, end, reads.marks)),
        f" AS {_JOINED} {_replace(source, end, source.end, replaced)}".rstrip(),
    )


def inner_join(tree: exp.Expr, reads: Reads) -> exp.Join | None:
    """Return the only join of a SELECT that reads two tables, if it is an inner one."""
    if len(reads.reads) != 2 or not isinstance(tree, exp.Select):
        return None
    first, second = (read.node for read in reads.reads)
    joins = tree.args.get("joins") or []
    from_ = tree.args.get("from_")
    if from_ is None or from_.this is not first or len(joins) != 1:
        return None
    (join,) = joins
    is_plain = (
        join.this is second
        and has_only(join, _JOIN)
        and join.kind.upper() in ("", "INNER")
        and has_only(first, TABLE)
        and has_only(second, TABLE)
    )
    return join if is_plain else None


def _is_join(tree: exp.Select) -> bool:
    """Whether a SELECT is no more than a join and a select list over its rows."""
    return (
        sum(1 for _ in tree.find_all(exp.Query)) == 1
        and has_only(tree, _SELECT)
        and all(isinstance(item, _ITEMS) for item in tree.expressions)
    )


def _has_one_name_twice(tree: exp.Select) -> bool:
    names = [item.alias_or_name.lower() for item in tree.expressions]
    named = [name for name in names if name]
    return len(set(named)) < len(named)


def _name(index: int, position: int) -> str:
    return f"_{index}_{position}"


def _names_more(
    source: Source, reads: Reads, places: Iterable[tuple[int, int]]
) -> bool:
    """Whether a word outside these places may be one of the tables or a column."""
    names = {read.name for read in reads.reads}.union(
        *(read.table.spellings for read in reads.reads)
    )
    return any(
        source.raw(word).strip('"').lower() in names
        for word in source.words
        if not any(start <= word.start < end for start, end in places)
    )


def _replace(
    source: Source, start: int, end: int, replaced: Mapping[tuple[int, int], str]
) -> str:
    marks = in_order(Mark(*place, text) for place, text in replaced.items())
    return "".join(map(str, source.cut(start, end, marks)))
