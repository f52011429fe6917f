"""Rows as values, and the properties that a table's rows have and a snapshot's lack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.scope.relations import columns_of, relations_of, seen_from
from tique_rewriter.tree.shape import starts_at

if TYPE_CHECKING:
    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source

_RELATIONS = (exp.Table, exp.Subquery, exp.Lateral, exp.Unnest, exp.Values, exp.CTE)
_WHOLE_ROWS = frozenset(
    ["COUNT", "TO_JSON", "TO_JSONB", "ROW_TO_JSON", "JSON_AGG", "JSONB_AGG"]
)
_AGGREGATES = (exp.AggFunc, exp.Filter, exp.WithinGroup, exp.Query)
_OTHER_AGGREGATES = frozenset(
    [
        *("json_agg", "jsonb_agg", "json_object_agg", "jsonb_object_agg"),
        *("array_agg", "string_agg", "bool_and", "bool_or", "every", "bit_xor"),
        *("range_agg", "range_intersect_agg", "xmlagg"),
    ]
)


def check_rows(source: Source, tree: exp.Expr, reads: Reads) -> None:
    """Refuse constructs that would show that a hole is not filled with the table.

    A row of the table has the table's type, a row of a snapshot has none: it may be
    counted, made JSON of and asked for a column. Columns that the engine adds to every
    stored table are another row's than the application means. An expression that looks
    like a column and is none may be a call of a function. And only of a stored table
    does the engine know that its key determines the other columns.
    """
    rules = source.rules
    changes = not isinstance(tree.root(), exp.Query)
    for column in tree.find_all(exp.Column):
        name = column.name.lower()
        if (reads.reads or reads.listed or changes) and name in rules.hidden_columns:
            raise source.unsupported(
                f"the system column {name}",
                starts_at(column),
                "name the table's key instead",
            )
        if rules.typed_rows:
            _check_row(source, column, reads)
            _check_attribute(source, tree, column, reads)
    if rules.typed_rows:
        for select in tree.find_all(exp.Select):
            _check_group(source, select, reads)


def _named(reads: Reads, name: str) -> list[Read]:
    return [read for read in reads.reads if read.name == name]


def _check_row(source: Source, column: exp.Column, reads: Reads) -> None:
    parent = column.parent
    is_star = isinstance(column.this, exp.Star)
    name = (column.table if is_star else column.name).lower()
    if not _named(reads, name) or (column.table and not is_star):
        return
    if is_star and isinstance(parent, exp.Select | exp.Returning):
        return
    if not is_star and _is_column(source, column, name, reads):
        return
    if isinstance(parent, exp.Ordered | exp.Group) and _is_result(parent, name):
        return
    attribute = parent.parent if isinstance(parent, exp.Paren) else None
    if isinstance(attribute, exp.Dot):
        field = attribute.expression
        if isinstance(field, exp.Star) or any(
            field.name.lower() in read.table.spellings for read in _named(reads, name)
        ):
            return
    number = source.number(starts_at(column))
    before, after = source.keywords()[:number], source.keywords(number + 1)
    if before[-1:] == ["DISTINCT"]:
        before.pop()
    if is_star and before[-2:] == ["ROW", "("]:
        return
    if before[-1:] == ["("] and not _WHOLE_ROWS.isdisjoint(before[-2:-1]):
        if before[-2] != "COUNT" and any(
            read.node.alias_column_names for read in _named(reads, name)
        ):
            # Releases before 16 make JSON of it with the table's own names.
            raise source.unsupported(
                f'the row "{name}" with other names for its columns',
                starts_at(column),
                "name its columns",
            )
        return
    if after[:2] == ["IS", "NULL"] or after[:3] == ["IS", "NOT", "NULL"]:
        return
    raise source.unsupported(
        f'the row "{name}" as a value', starts_at(column), "name its columns"
    )


def _is_column(source: Source, node: exp.Expr, name: str, reads: Reads) -> bool:
    """Whether a relation that can be seen from there has a column of that name."""
    changed = [read for read in reads.reads if read.node.parent_select is None]
    if any(name in read.table.spellings for read in changed):
        return True
    return any(
        name in (columns_of(source, relation, reads) or ())
        for select in seen_from(node)
        for relation in relations_of(select)
    )


def _is_result(node: exp.Expr, name: str) -> bool:
    """Whether the SELECT calls one of its results so."""
    select = node.parent_select
    return select is not None and any(i.alias == name for i in select.expressions)


def _check_attribute(
    source: Source, tree: exp.Expr, column: exp.Column, reads: Reads
) -> None:
    """Refuse a qualified name that is no column of the only table that it can mean."""
    table = column.table.lower()
    if not table or isinstance(column.this, exp.Star) or column.args.get("db"):
        return
    found = [
        reads.of(node)
        for node in tree.root().find_all(*_RELATIONS)
        if node.alias_or_name.lower() == table
    ]
    for read in found:
        if read is None or read.node.alias_column_names:
            return
        if column.name.lower() in read.table.spellings:
            return
    if found:
        raise source.unsupported(
            f'"{column.name}", which is no column of "{table}",', starts_at(column)
        )


def _check_group(source: Source, select: exp.Select, reads: Reads) -> None:
    """Refuse columns that are not grouped by, where the table's whole key is."""
    group = select.args.get("group")
    if group is None:
        return
    names = {
        (node.table.lower(), node.name.lower())
        for item in group.find_all(exp.Column, exp.Literal)
        for node in _output(select, item).find_all(exp.Column)
    }
    parts = [*select.expressions, select.args.get("having"), select.args.get("order")]
    aliases = {node.alias.lower() for node in select.expressions if node.alias}
    for read in reads.reads:
        table = read.table
        if read.node.parent_select is not select or not table.primary_key:
            continue
        key = {table.columns[i].name.lower() for i in table.primary_key}
        if not all(names & {("", name), (read.name, name)} for name in key):
            continue
        for part in parts:
            for node in part.find_all(exp.Column) if part is not None else ():
                name, qualifier = node.name.lower(), node.table.lower()
                if (
                    qualifier in ("", read.name)
                    and (name in table.spellings or isinstance(node.this, exp.Star))
                    and not names & {("", name), (read.name, name)}
                    and not (part is parts[-1] and not qualifier and name in aliases)
                    and not _aggregated(node, select)
                ):
                    raise source.unsupported(
                        f'the column "{name}" that is not grouped by',
                        starts_at(node),
                        "add it to GROUP BY",
                    )


def _output(select: exp.Select, item: exp.Expr) -> exp.Expr:
    """Return the expression of an item of GROUP BY, which may be a result's number."""
    if isinstance(item, exp.Literal) and item.name.isdigit():
        number = int(item.name) - 1
        items = select.expressions[number : number + 1]
    else:
        items = [node for node in select.expressions if node.alias == item.name]
        items = [] if getattr(item, "table", "") else items
    return items[0] if items else item


def _aggregated(node: exp.Expr, select: exp.Select) -> bool:
    """Whether an aggregate or a subquery stands between a node and its SELECT."""
    inside = node.parent
    while inside is not None and inside is not select:
        name = inside.name.lower() if isinstance(inside, exp.Anonymous) else ""
        if isinstance(inside, _AGGREGATES) or name in _OTHER_AGGREGATES:
            return True
        inside = inside.parent
    return False
