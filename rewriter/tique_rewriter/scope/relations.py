"""The relations of a query's FROM, and the columns that they are known to have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.tree.shape import has_only, starts_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source

TABLE = frozenset({"this", "db", "alias"})
"""The parts of a table in FROM that stands there as it is."""

_UNNAMED = ""


def relations_of(select: exp.Expr) -> list[exp.Expr]:
    """Return the relations that a SELECT lists and joins, outermost level only."""
    from_ = select.args.get("from_")
    relations = [from_.this] if from_ is not None else []
    relations.extend(join.this for join in select.args.get("joins") or ())
    relations.extend(select.args.get("laterals") or ())
    return with_joins(relations)


def with_joins(relations: list[exp.Expr]) -> list[exp.Expr]:
    """Return these relations, and after them those that are joined to one of them."""
    joined = [
        join.this for relation in relations for join in relation.args.get("joins") or ()
    ]
    return [*relations, *joined]


def only_read(tree: exp.Expr, reads: Reads) -> Read | None:
    """Return the one table that a SELECT reads, alone in FROM."""
    from_ = tree.args.get("from_") if isinstance(tree, exp.Select) else None
    if from_ is None or len(reads.reads) != 1 or tree.args.get("joins"):
        return None
    (read,) = reads.reads
    return read if from_.this is read.node and has_only(read.node, TABLE) else None


def common_table(source: Source, table: exp.Table, name: str) -> exp.CTE | None:
    """Return the CTE in scope that the unqualified folded ``name`` means, if any."""
    below: exp.Expr = table
    common: exp.CTE | None = None
    node = source.with_lists.nearest(table.parent)
    while node is not None:
        if isinstance(node, exp.CTE):
            common = node
        with_ = node.args.get("with_")
        found = None
        if isinstance(with_, exp.With) and with_ is below:
            if common is not None:
                found = _seen_from(source, with_, common, table, name)
        elif isinstance(with_, exp.With):
            found = _member(source, with_, name)
        if found is not None:
            return found
        below, node = node, source.with_lists.nearest(node.parent)
    return None


def _seen_from(
    source: Source, with_: exp.With, common: exp.CTE, table: exp.Table, name: str
) -> exp.CTE | None:
    """Return WITH's member ``name`` as seen where its member ``common`` is read."""
    if with_.args.get("recursive") and source.rules.recursive_sees_all:
        return _member(source, with_, name)
    sibling = _member(source, with_, name)
    if sibling is not None and _number(sibling) < _number(common):
        return sibling
    if not (with_.args.get("recursive") and common.alias.lower() == name):
        return None
    body = common.this
    if not isinstance(body, exp.Union):
        if body.find(exp.Union):
            raise source.unsupported(
                f'the way the recursive query "{name}" names itself',
                starts_at(table),
                "write WITH RECURSIVE … AS (first UNION ALL next)",
            )
        return None
    return common if any(n is body.expression for n in _ancestors(table)) else None


def _number(common: exp.CTE) -> int:
    """Return the place of a member in its WITH list."""
    assert common.index is not None
    return common.index


def _member(source: Source, with_: exp.With, name: str) -> exp.CTE | None:
    """Return the first member of a WITH list with this name."""
    members = source.members.get(id(with_))
    if members is None:
        members = source.members[id(with_)] = {}
        for node in with_.expressions:
            if isinstance(node, exp.CTE):
                members.setdefault(node.alias.lower(), node)
    return members.get(name)


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    current: exp.Expr | None = node
    while current is not None:
        yield current
        current = current.parent


def seen_from(node: exp.Expr) -> Iterator[exp.Select]:
    """Yield the SELECTs whose relations' columns can certainly be named at ``node``.

    A member of WITH and a subquery in FROM do not see the relations beside them, and
    one after LATERAL only some.
    """
    below: exp.Expr = node
    unseen: exp.Expr | None = None
    for current in _ancestors(node):
        if isinstance(current, exp.With):
            unseen = current.parent
        elif isinstance(current, exp.From | exp.Join | exp.Lateral):
            if below is current.this:
                unseen = current.find_ancestor(exp.Select)
        elif isinstance(current, exp.Select) and current is not unseen:
            yield current
        below = current


def columns_of(source: Source, relation: exp.Expr, reads: Reads) -> list[str] | None:
    """Return the folded names of a relation's columns; None if they are not known."""
    if relation.args.get("pivots"):
        return None
    read = reads.of(relation)
    names: list[str] | None = None
    if read is not None:
        names = [name.lower() for name in read.table.names]
    elif isinstance(relation, exp.Subquery):
        names = results_of(source, relation.this, reads)
    elif isinstance(relation, exp.Values):
        names = results_of(source, relation, reads)
    elif isinstance(relation, exp.Table) and not relation.db:
        common = common_table(source, relation, relation.name.lower())
        if common is not None:
            names = results_of(source, common.this, reads)
            names = _renamed(names, common)
    return _renamed(names, relation)


def _renamed(names: list[str] | None, relation: exp.Expr) -> list[str] | None:
    """Return the names with those that an alias lists in front."""
    given = relation.alias_column_names
    if names is None:
        return None
    return [name.lower() for name in given] + names[len(given) :]


def results_of(source: Source, query: exp.Expr, reads: Reads) -> list[str] | None:
    """Return the folded names of a query's results; None if they are not known.

    A result that has no alias and is no column has no name here, but is counted.
    """
    while isinstance(query, exp.SetOperation | exp.Subquery | exp.Paren):
        query = query.this
    if isinstance(query, exp.Values):
        row = query.expressions[0]
        return [_UNNAMED] * len(row.expressions) if isinstance(row, exp.Tuple) else None
    if not isinstance(query, exp.Select) or not query.expressions:
        return None
    names: list[str] = []
    for item in query.expressions:
        found = _results_of_item(source, query, item, reads)
        if found is None:
            return None
        names += found
    return names


def _results_of_item(
    source: Source, select: exp.Select, item: exp.Expr, reads: Reads
) -> list[str] | None:
    if isinstance(item, exp.Alias):
        return [item.alias.lower()]
    if isinstance(item, exp.Column) and not isinstance(item.this, exp.Star):
        return [item.name.lower()]
    if isinstance(item, exp.Dot) and isinstance(item.expression, exp.Star):
        return None
    if not isinstance(item, exp.Column | exp.Star):
        return [_UNNAMED]
    star = item.this if isinstance(item, exp.Column) else item
    if any(star.args.values()):
        # EXCLUDE, REPLACE or RENAME.
        return None
    qualifier = item.table.lower() if isinstance(item, exp.Column) else ""
    relations = relations_of(select)
    if qualifier:
        relations = [r for r in relations if r.alias_or_name.lower() == qualifier]
    elif any(
        join.args.get("using") or join.args.get("method")
        for relation in [select, *relations]
        for join in relation.args.get("joins") or ()
    ):
        # Columns of the same name are one.
        return None
    names: list[str] = []
    for relation in relations:
        found = columns_of(source, relation, reads)
        if found is None:
            return None
        names += found
    return names or None
