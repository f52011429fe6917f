"""Plans of INSERT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.bindings import select_bindings
from tique_rewriter.errors import UnknownColumn
from tique_rewriter.names import check_case
from tique_rewriter.operands import kernel
from tique_rewriter.plan import Expression, InsertQuery, InsertRows
from tique_rewriter.query import references_of
from tique_rewriter.references import Reads, find_reads, find_table, table_span
from tique_rewriter.scalars import check_scalar, split

if TYPE_CHECKING:
    from tique_rewriter.schema import Catalog, Column, Table
    from tique_rewriter.source import Source, Word

_PARTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "conflict": ("ON CONFLICT", ("CONFLICT",), ""),
    "returning": ("RETURNING", ("RETURNING",), "read the rows with a SELECT"),
    "alternative": ("INSERT OR", ("OR",), ""),
    "by_name": ("INSERT BY NAME", ("BY",), "give a column list"),
    "overwrite": ("INSERT OVERWRITE", ("OVERWRITE",), ""),
    "ignore": ("INSERT IGNORE", ("IGNORE",), ""),
}
_KNOWN = frozenset({"this", "expression", "default", "with_"})


def plan_insert(source: Source, catalog: Catalog) -> InsertRows | InsertQuery:
    """Return the plan of INSERT … VALUES, DEFAULT VALUES or a query."""
    tree = source.parse()
    if not isinstance(tree, exp.Insert):
        raise source.unsupported("this statement", source.words[0].start)
    _check_parts(source, tree)
    insert = source.words.index(source.word("INSERT", _end_of_with(tree)))
    if source.keywords(insert + 1)[:1] != ["INTO"]:
        raise source.syntax("INSERT without INTO", source.words[insert].start)
    listed = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
    node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
    if not isinstance(node, exp.Table) or node.alias or node.args.get("joins"):
        raise source.unsupported(
            "this form of INSERT", source.find("INTO"), "name just the table"
        )
    table = find_table(source, node, catalog)
    check_case(source, tree, [table])
    columns = _columns(source, table, listed)
    start = _after_target(source, node, bool(listed))
    if tree.args.get("default"):
        return InsertRows(len(source.lexed.arguments), (), table, (), ((),))
    if tree.expression is None:
        raise source.syntax("an INSERT without values", source.words[-1].start)
    body = tree.expression
    parts = [part for part in (tree.args.get("with_"), body) if part is not None]
    reads = find_reads(source, parts, catalog)
    references = references_of(reads, select_bindings(source, tree, reads), parts)
    parameters = len(source.lexed.arguments)
    if isinstance(body, exp.Values) and source.words[start].keyword == "VALUES":
        if tree.args.get("with_"):
            raise source.unsupported(
                "WITH before INSERT … VALUES",
                source.words[0].start,
                "use INSERT … SELECT",
            )
        given = [table.columns[i] for i in columns]
        rows = _rows(source, body, start + 1, reads, given)
        return InsertRows(parameters, references, table, columns, rows)
    query = source.cut(source.words[start].start, source.end, reads.spans)
    if tree.args.get("with_"):
        if source.words[start].keyword == "WITH":
            raise source.unsupported(
                "a second WITH", source.words[start].start, "write one WITH"
            )
        before = source.words[0].start, source.words[insert].start
        query = source.cut(*before, reads.spans) + query
    return InsertQuery(parameters, references, table, columns, query)


def _check_parts(source: Source, tree: exp.Insert) -> None:
    for part, value in tree.args.items():
        if value and part not in _KNOWN:
            construct, keywords, advice = _PARTS.get(
                part, (f"INSERT with {part.strip('_').upper()}", ("INSERT",), "")
            )
            raise source.unsupported(construct, source.find(*keywords), advice)


def _columns(source: Source, table: Table, listed: list[exp.Expr]) -> tuple[int, ...]:
    if not listed:
        return tuple(range(len(table.columns)))
    columns: list[int] = []
    for node in listed:
        start = int(node.meta.get("start") or 0)
        if not isinstance(node, exp.Identifier):
            raise source.unsupported("this list of columns", source.find("INTO"))
        position = table.positions.get(node.name.lower())
        if position is None:
            raise unknown_column(source, table, node.name, start)
        if position in columns:
            raise source.syntax(f'the column "{node.name}" is given twice', start)
        columns.append(position)
    return tuple(columns)


def unknown_column(
    source: Source, table: Table, name: str, start: int
) -> UnknownColumn:
    """Return the complaint about a column that the table does not have."""
    return source.error(
        UnknownColumn, f'table "{table.name}" has no column "{name}"', start
    )


def check_default(source: Source, column: Column, start: int) -> None:
    """Complain of DEFAULT for a column that has none, where the engine does."""
    if column.default is None and not source.rules.default_may_lack:
        raise source.syntax(f'the column "{column.name}" has no DEFAULT', start)


def _after_target(source: Source, node: exp.Table, listed: bool) -> int:
    """Return the number of the first word after the table's name and column list."""
    _, end = table_span(source, node)
    words = source.words
    number = next(i for i, w in enumerate(words) if w.start >= end)
    if listed:
        depth = words[number].depth
        while words[number].keyword != ")" or words[number].depth != depth:
            number += 1
        number += 1
    return number


def _end_of_with(tree: exp.Insert) -> int:
    with_ = tree.args.get("with_")
    nodes = with_.walk() if with_ is not None else ()
    return max((n.meta["end"] for n in nodes if "end" in n.meta), default=0)


def _rows(
    source: Source,
    body: exp.Values,
    start: int,
    reads: Reads,
    columns: list[Column],
) -> tuple[tuple[Expression | None, ...], ...]:
    """Return the rows of VALUES, whose words begin at number ``start``."""
    pieces = split(source.words[start:])
    if len(pieces) != len(body.expressions):
        raise source.unsupported("this form of VALUES", source.words[start].start)
    rows: list[tuple[Expression | None, ...]] = []
    for piece, row in zip(pieces, body.expressions, strict=True):
        nodes = row.expressions if isinstance(row, exp.Tuple) else []
        values = split(piece[1:-1])
        if not _enclosed(piece) or len(values) != len(nodes):
            raise source.unsupported("this form of VALUES", piece[0].start)
        if len(values) != len(columns):
            raise source.syntax(
                f"{len(values)} values for {len(columns)} columns", piece[0].start
            )
        rows.append(
            tuple(
                _value(source, words, node, reads, column)
                for words, node, column in zip(values, nodes, columns, strict=True)
            )
        )
    return tuple(rows)


def _enclosed(words: list[Word]) -> bool:
    return (
        (words[0].keyword, words[-1].keyword) == ("(", ")")
        and words[0].depth == words[-1].depth
        and all(word.depth >= words[0].depth for word in words)
    )


def _value(
    source: Source, words: list[Word], node: exp.Expr, reads: Reads, column: Column
) -> Expression | None:
    if len(words) == 1 and words[0].keyword == "DEFAULT":
        check_default(source, column, words[0].start)
        return None
    check_scalar(source, node, words[0].start, "VALUES")
    text = source.cut(words[0].start, words[-1].end, reads.spans)
    return Expression(text, kernel(source, node))
