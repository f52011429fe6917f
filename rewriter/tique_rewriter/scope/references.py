"""Where a statement reads managed tables."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import (
    DuplicateAlias,
    DuplicateColumn,
    RewriteError,
    UnknownColumn,
    UnknownTable,
)
from tique_rewriter.plans.text import Outer
from tique_rewriter.safety.attaching import is_attached
from tique_rewriter.safety.listings import Listed, check_lateral, listed
from tique_rewriter.safety.token_checks import check_functions
from tique_rewriter.scope.descriptions import (
    Described,
    check_descriptions,
    described,
)
from tique_rewriter.scope.labels import distinct_names, labels
from tique_rewriter.scope.moments import marks_of, moments
from tique_rewriter.scope.past import check_past, note_past, past_marks, refuse_past
from tique_rewriter.scope.reads import Read, Reads
from tique_rewriter.scope.relations import columns_of, common_table, relations_of
from tique_rewriter.scope.rows import check_rows
from tique_rewriter.scope.samples import check_samples, sample_marks
from tique_rewriter.text.names import (
    check_case,
    check_kind,
    check_not_attached,
    check_reserved,
    quote,
    unmanaged,
)
from tique_rewriter.text.source import Mark, Source, Span
from tique_rewriter.tree.shape import check_query, place_of, starts_at
from tique_rewriter.tree.windows import check_windows

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from tique_rewriter.plans.plan import ViewQuery
    from tique_rewriter.schema import Table, View
    from tique_rewriter.scope.catalog import Catalog

_BEFORE_TABLES = frozenset({"FROM", "JOIN", "PIVOT", "UNPIVOT"})


def table_span(source: Source, node: exp.Table, index: int = 0) -> Span:
    """Return the place of the table's (qualified) name in the text, with ONLY before it.

    No managed table has others that inherit from it.
    """
    place = place_of(node)
    if place is None:
        raise source.unsupported(
            f'the way the table "{node.name}" is named',
            starts_at(node),
            'write its name plainly or in double quotes (")',
        )
    start, end = place
    if node.args.get("only"):
        start = source.words[source.number(start) - 1].start
    return Span(start, end, index)


def find_table(
    source: Source, node: exp.Table, catalog: Catalog, *, takes_views: bool = False
) -> Table:
    """Return the managed table that a statement changes or drops.

    A materialized view too if the statement ``takes_views``.

    Raises
    ------
    UnknownTable
        When there is none of that name.
    """
    for name in (node.catalog, node.db):
        check_not_attached(source, catalog, name, starts_at(node))
    check_private(source, node)
    refuse_past(source, node, "of a table that is changed")
    named = isinstance(node.this, exp.Identifier)
    table = catalog.find(node.db or None, node.name) if named else None
    if table is None and named and catalog.view(node.db or None, node.name):
        raise changed_view(source, node.name, starts_at(node))
    if table is None:
        raise unknown_table(source, node)
    if not takes_views:
        check_kind(source, table, starts_at(node))
    return table


def changed_view(
    source: Source, name: str, start: int, reason: str = ""
) -> RewriteError:
    """Return the complaint about a change of a view, for which there may be a reason."""
    if source.rules.changes_views:
        because = f" ({reason})" if reason else ""
        advice = "change the tables that it reads"
        return source.unsupported(
            f'a change of the view "{name}"{because}', start, advice
        )
    return source.error(UnknownTable, f'"{name}" is a view and no table', start)


def two_tables(source: Source, name: str, start: int) -> RewriteError:
    """Return the complaint about a second relation with a name."""
    what = f'the name "{name}" of two tables'
    return source.error(DuplicateAlias, what, start, "give an alias")


def unknown_table(source: Source, node: exp.Table) -> UnknownTable:
    """Return the complaint about a name that no managed table has."""
    name = ".".join(part.name for part in node.parts)
    error = unmanaged(source, f'unknown table "{name}"', starts_at(node))
    error.relation = name if len(node.parts) == 1 else None
    return error


def unknown_column(source: Source, table: Table, name: str, start: int) -> RewriteError:
    """Return the complaint about a column that the table does not have, or only computes."""
    if table.computed(name) is not None:
        return source.unsupported(
            f'the generated column "{name}" here', start, "name columns of values"
        )
    return source.error(
        UnknownColumn, f'table "{table.name}" has no column "{name}"', start
    )


def column_position(
    source: Source,
    table: Table,
    name: str,
    start: int,
    given: Container[int | None] = (),
) -> int:
    """Return the position of the column that is named at ``start``.

    Raises
    ------
    UnknownColumn
        The table has none of that name.
    DuplicateColumn
        It is one of those that are ``given`` already.
    """
    position = table.positions.get(name.lower())
    if position is None:
        raise unknown_column(source, table, name, start)
    if position in given:
        raise source.error(
            DuplicateColumn, f'the column "{name}" is given twice', start
        )
    return position


def check_private(source: Source, node: exp.Table) -> None:
    """Refuse names in the schema that belongs to tique."""
    if node.catalog:
        raise source.unsupported(
            "a name with a database in it", starts_at(node), "write schema.table"
        )
    check_reserved(source, node.db, starts_at(node))


def find_reads(
    source: Source,
    parts: Sequence[exp.Expr],
    catalog: Catalog,
    target: exp.Table | None = None,
) -> Reads:
    """Every place in these parts of a tree that reads a managed table.

    Parameters
    ----------
    parts
        The parts that the statement reads: of a query the whole tree, of a change its
        conditions and values, with the target where its rows are read too.
    target
        The table that the statement changes: its name is never that of a CTE.

    Raises
    ------
    UnsupportedSQL
        For any construct in the parts that is not understood.
    UnknownTable
        For a relation that is neither managed nor a system catalog or file.
    """
    found: list[Read] = []
    own: list[Listed] = []
    outer: list[Mark] = []
    rest = source
    for part in parts:
        check_query(source, part)
        check_lateral(source, part)
        check_descriptions(source, part)
        for node in part.find_all(exp.Table):
            shown = described(source, node, catalog)
            if isinstance(shown, Described):
                own.append(shown)
                continue
            if shown is not None:
                outer.append(shown)
            read = _read(source, node, catalog, is_target=node is target)
            if isinstance(read, Read):
                found.append(read)
                if words := note_past(source, read):
                    outer += past_marks(read, words)
                    rest = rest.without(words)
            elif isinstance(read, Mark):
                outer.append(read)
            elif read is not None:
                own.append(read)
    for part in parts:
        check_past(source, part, found)
    found.sort(key=lambda read: read.span.start)
    for index, read in enumerate(found):
        read.span = Span(read.span.start, read.span.end, index)
    reads = Reads(found, own)
    check_case(source, parts[0].root(), [read.table for read in found])
    check_functions(rest, parts[0].root(), catalog)
    if found:
        check_windows(source, parts[0].root())
    for part in parts:
        _check_names(source, part, reads)
        check_rows(source, part, reads)
    _check_accounted(source, parts[0].root(), catalog, [*found, *own])
    check_samples(source, parts[0].root(), found)
    timed = moments(source, parts[0].root(), [read.table for read in found])
    reads.others = [
        *outer,
        *sample_marks(source, found),
        *(each.mark(source) for each in own),
        *marks_of(source, timed),
        *labels(source, parts[0].root(), [*found, *own, *timed]),
        *distinct_names(source, parts[0].root()),
    ]
    return reads


def _read(
    source: Source, node: exp.Table, catalog: Catalog, *, is_target: bool
) -> Read | Listed | Mark | None:
    """Return the plan's replacement of a relation's name; None if the name stays."""
    if not isinstance(node.this, exp.Identifier):
        return listed(source, node)[1]
    if not is_target and is_attached(source, node, catalog):
        return None
    check_private(source, node)
    if is_target:
        table = find_table(source, node, catalog)
        return Read(node, table, table_span(source, node))
    name, schema = node.name.lower(), node.db.lower()
    if not schema and common_table(source, node, name) is not None:
        return None
    if not schema and name in source.outer:
        if not source.outer[name]:
            raise source.syntax(
                f'"{name}" in WITH has no RETURNING and is read', starts_at(node)
            )
        alias = "" if node.alias else f" AS {quote(node.name)}"
        span = table_span(source, node)
        return Mark(span.start, span.end, Outer(name, alias))
    managed = catalog.find(node.db or None, node.name)
    if managed is not None:
        return Read(node, managed, table_span(source, node))
    view = catalog.view(node.db or None, node.name)
    if view is not None:
        query = _query_of(source, node, catalog, view)
        return Read(node, view.table, table_span(source, node), query)
    is_own, part = listed(source, node)
    files = source.rules.files
    if is_own or (not schema and files is not None and files.fullmatch(name)):
        return part
    raise unknown_table(source, node)


def _query_of(
    source: Source, node: exp.Table, catalog: Catalog, view: View
) -> ViewQuery:
    """Return the query of a view, for this place."""
    start = starts_at(node)
    shown = f'the view "{view.table.name}"'
    try:
        query = catalog.query_of(view)
    except UnknownTable as error:
        raise source.error(UnknownTable, f"{shown} ({error.message})", start) from None
    except RewriteError as error:
        raise source.unsupported(f"{shown} ({error.message})", start) from None
    if query.bare_names:
        members = {member.alias.lower() for member in node.root().find_all(exp.CTE)}
        for name in sorted(query.bare_names & (members | set(source.outer))):
            raise source.unsupported(
                f'{shown} beside "{name}" in WITH', start, "call that otherwise"
            )
    return query


def _check_names(source: Source, tree: exp.Expr, reads: Reads) -> None:
    """Refuse names that a filled hole would resolve in another way."""
    qualified = {(r.table.schema.lower(), r.node.name.lower()) for r in reads.reads}
    qualified |= {(one.node.db.lower(), one.name.lower()) for one in reads.listed}
    for column in tree.find_all(exp.Column):
        if column.name.lower() == "rowid" and (
            not _defines_rowid(tree, reads) or _may_be_storages(source, column, reads)
        ):
            raise _pseudo_column(source, column)
        parts = [part.name.lower() for part in column.parts]
        if len(parts) > 2 and (parts[0], parts[1]) in qualified:
            raise source.unsupported(
                "a column qualified by schema and table",
                starts_at(column),
                "give the table an alias and qualify the column by it",
            )
    for join in tree.find_all(exp.Join):
        for name in join.args.get("using") or ():
            if name.name.lower() == "rowid" and _without_rowid(source, reads):
                raise _pseudo_column(source, name)
    for select in tree.find_all(exp.Select):
        names: set[str] = set()
        for relation in relations_of(select):
            read = reads.of(relation)
            name = relation.alias_or_name.lower()
            if read is not None and name in names:
                raise two_tables(source, name, read.span.start)
            names.add(name)


def _defines_rowid(tree: exp.Expr, reads: Reads) -> bool:
    if any("rowid" in read.table.spellings for read in reads.reads):
        return True
    aliases = tree.find_all(exp.Alias, exp.TableAlias)
    return any(
        name.lower() == "rowid"
        for each in aliases
        for name in (each.alias, *(c.name for c in each.args.get("columns") or ()))
    )


def _pseudo_column(source: Source, node: exp.Expr) -> RewriteError:
    return source.unsupported(
        "the pseudo-column rowid",
        starts_at(node),
        "rows of a snapshot have no place that stays: name the table's key instead",
    )


def _without_rowid(source: Source, reads: Reads) -> list[Read]:
    """Return the reads of tables without a column of that name, where storage has one."""
    if not source.rules.stores_rowid:
        return []
    return [read for read in reads.reads if "rowid" not in read.table.spellings]


def _may_be_storages(source: Source, column: exp.Column, reads: Reads) -> bool:
    """Whether ``rowid`` may be that of a stored table, beside another column called so."""
    lacking = _without_rowid(source, reads)
    if column.table:
        return any(read.name == column.table.lower() for read in lacking)
    select = column.find_ancestor(exp.Select)
    if isinstance(column.parent, exp.Ordered) and _orders(select, column.parent):
        return False
    while select is not None:
        if any(read.node.find_ancestor(exp.Select) is select for read in lacking):
            return True
        relations = [columns_of(source, r, reads) for r in relations_of(select)]
        if any("rowid" in (names or ()) for names in relations):
            return False
        select = select.find_ancestor(exp.Select)
    return bool(lacking) and not isinstance(column.root(), exp.Query)


def _orders(select: exp.Select | None, node: exp.Ordered) -> bool:
    """Whether a query is ordered by this, and has a result called rowid."""
    return (
        select is not None
        and node.parent is select.args.get("order")
        and any(each.alias.lower() == "rowid" for each in select.expressions)
    )


def _check_accounted(
    source: Source, tree: exp.Expr, catalog: Catalog, reads: Sequence[Read | Listed]
) -> None:
    """Every managed name that follows FROM or JOIN must be a name in the tree.

    A second look, by words: a name that the parser dropped or took for something else
    is refused here instead of being read outside the snapshot.
    """
    starts = {read.span.start for read in reads}
    ends = {read.span.end for read in reads}
    known = {n.meta.get("start") for n in tree.find_all(exp.Identifier)}
    for before, word in pairwise(source.words):
        if before.keyword == "TABLE" and word.start in starts:
            raise source.unsupported(
                "TABLE as a query",
                before.start,
                "write FROM and the table's name"
                if "FROM" in source.rules.queries
                else "write SELECT * FROM and the table's name",
            )
        if word.keyword == "*" and before.end in ends:
            raise source.unsupported(
                "* after a table's name", word.start, "leave it out"
            )
        if before.keyword not in _BEFORE_TABLES or word.start in known:
            continue
        raw = source.raw(word)
        name = raw.strip("\"'")
        if catalog.find(None, name) or catalog.view(None, name):
            raise source.unsupported(f"the way {raw} is named", word.start)
