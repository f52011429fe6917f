"""RETURNING of an UPDATE … FROM or DELETE … USING, where it names joined columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.change_plans import JoinedReturning
from tique_rewriter.scope.outputs import star_of
from tique_rewriter.scope.relations import columns_of
from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark
from tique_rewriter.tree.scalars import check_scalar, outside_subqueries, split
from tique_rewriter.tree.shape import starts_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source, Word

Relations = list[tuple[str, tuple[str, ...]]]
"""Quoted name and quoted columns of each joined relation."""


def looks_only_at(
    source: Source,
    returning: exp.Expr,
    target: Read,
    joined: Sequence[exp.Expr],
    reads: Reads,
) -> bool:
    """Whether every name in RETURNING is certainly a column of the changed table."""
    known = [columns_of(source, each, reads) for each in joined]
    others = {name for names in known for name in names or ()}
    names = {each.alias_or_name.lower() for each in joined}
    inside = {
        id(node) for item in returning.expressions for node in outside_subqueries(item)
    }
    for column in returning.find_all(exp.Column):
        if column.table:
            if column.table.lower() in names:
                return False
        elif column.name.lower() in others or (
            id(column) in inside and column.name.lower() not in target.table.spellings
        ):
            return False
    return not any(isinstance(item, exp.Star) for item in returning.expressions)


def plan_joined_returning(
    source: Source,
    tree: exp.Expr,
    words: list[Word],
    target: Read,
    joined: Sequence[exp.Expr],
    reads: Reads,
    replaced: Sequence[Mark] = (),
) -> JoinedReturning:
    """Return the plan of RETURNING over changed rows and these joined relations.

    In MERGE the joined relation comes first.

    Parameters
    ----------
    source, tree
        The statement.
    words
        The words after RETURNING.
    target
        The changed table.
    joined
        The relations that are joined with it.
    reads
        The statement's reads.
    replaced
        Further places in the list that the plan has other text for.

    Raises
    ------
    UnsupportedSQL
        If it is not known which columns the relations have.
    """
    returning: exp.Expr = tree.args["returning"]
    nodes: list[exp.Expr] = returning.expressions
    pieces = split(words)
    if returning.args.get("into") or len(pieces) != len(nodes):
        raise source.unsupported("this form of RETURNING", words[0].start)
    if looks_only_at(source, returning, target, joined, reads):
        joined = ()
    relations = [_relation(source, each, reads) for each in joined]
    _check_merged(source, returning, joined)
    stars: list[Mark] = []
    names = [target.qualifier, *dict(relations)]
    if isinstance(tree, exp.Merge):
        names = [*names[1:], names[0]]
    every = ", ".join(f"{name}.*" for name in names)
    for piece, node in zip(pieces, nodes, strict=True):
        if star_of(node) is None:
            check_scalar(source, node, piece[0].start, "RETURNING")
        elif isinstance(node, exp.Star):
            if any(node.args.values()):
                raise source.unsupported("this form of * in RETURNING", piece[0].start)
            stars.append(Mark(piece[0].start, piece[-1].end, every))
    marks = reads.marks_with([*stars, *replaced])
    return JoinedReturning(
        source.parameters_before(words[-1].end),
        source.cut(words[0].start, words[-1].end, marks),
        target.qualifier,
        tuple(relations),
    )


def _relation(
    source: Source, relation: exp.Expr, reads: Reads
) -> tuple[str, tuple[str, ...]]:
    """Return the quoted name of a joined relation, and those of its columns."""
    name = relation.alias_or_name
    names = columns_of(source, relation, reads)
    read = reads.of(relation)
    if read is not None and not relation.alias_column_names:
        names = list(read.table.names)
    elif any(
        node.name != node.name.lower() for node in relation.find_all(exp.Identifier)
    ):
        # Names of results are known without regard to the case of their letters.
        names = None
    if not name or names is None or not all(names) or len(set(names)) != len(names):
        raise source.unsupported(
            "RETURNING beside a joined relation whose columns are not known",
            starts_at(relation),
            "join a subquery with an alias that lists its columns, or return columns of "
            "the changed table",
        )
    return quote(name), tuple(map(quote, names))


def _check_merged(
    source: Source, returning: exp.Expr, joined: Sequence[exp.Expr]
) -> None:
    """Refuse names that may be those of columns that USING or NATURAL merged."""
    merged = any(
        join.args.get("using") or join.args.get("method")
        for relation in joined
        for join in relation.args.get("joins") or ()
    )
    columns = [n for n in returning.find_all(exp.Column) if not n.table]
    stars = [item for item in returning.expressions if isinstance(item, exp.Star)]
    if merged and (columns or stars):
        raise source.unsupported(
            "an unqualified name in RETURNING beside a join with USING",
            source.find("RETURNING"),
            "qualify all of its columns",
        )
