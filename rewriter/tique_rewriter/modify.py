"""Plans of UPDATE and DELETE."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.bindings import (
    Scope,
    bindings_of,
    conjuncts,
    equalities,
    scope_of,
    select_bindings,
    whole_key,
)
from tique_rewriter.insert import check_default, unknown_column
from tique_rewriter.operands import kernel
from tique_rewriter.plan import (
    Delete,
    Expression,
    Literal,
    Operand,
    Reference,
    Text,
    Update,
)
from tique_rewriter.query import references_of
from tique_rewriter.references import Read, Reads, find_reads, quote, table_span
from tique_rewriter.scalars import check_scalar, split

if TYPE_CHECKING:
    from tique_rewriter.schema import Catalog, Column
    from tique_rewriter.source import Source, Word

_KNOWN = frozenset({"this", "expressions", "where"})
_PARTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "from_": ("UPDATE … FROM", ("FROM",), "use a subquery in SET and WHERE"),
    "using": ("DELETE … USING", ("USING",), "use WHERE … IN (SELECT …)"),
    "returning": ("RETURNING", ("RETURNING",), "read the rows with a SELECT"),
    "with_": ("WITH before the statement", ("WITH",), "write WITH in a subquery"),
    "order": ("ORDER BY", ("ORDER",), ""),
    "limit": ("LIMIT", ("LIMIT",), "use WHERE key IN (SELECT … LIMIT …)"),
}


class _Change:
    """What UPDATE and DELETE have in common: a target and a WHERE clause."""

    def __init__(self, source: Source, catalog: Catalog, kind: type[exp.Expr]) -> None:
        self.source = source
        if source.keywords()[:1] == ["DELETE"] and source.keywords()[1:2] != ["FROM"]:
            raise source.syntax("DELETE without FROM", source.words[0].start)
        self.tree = source.parse()
        if not isinstance(self.tree, kind):
            raise source.unsupported("this statement", source.words[0].start)
        for part, value in self.tree.args.items():
            if value and part not in _KNOWN:
                construct, keywords, advice = _PARTS.get(
                    part, (part.strip("_").upper(), (), "")
                )
                raise source.unsupported(construct, source.find(*keywords), advice)
        node = self.tree.this
        if not isinstance(node, exp.Table) or node.args.get("joins"):
            raise source.unsupported("a list of tables", source.words[0].start)
        if node.args.get("alias") and node.args["alias"].args.get("columns"):
            raise source.unsupported(
                "an alias with columns", node.parts[0].meta["start"]
            )
        self.reads = self._find_reads(node, catalog)
        target = self.reads.of(node)
        if target is None:
            raise source.unsupported("the changed table", source.words[0].start)
        self.target: Read = target
        self.scope: Scope = scope_of([node], self.reads)

    def _find_reads(self, node: exp.Table, catalog: Catalog) -> Reads:
        parts = [node, *self.tree.expressions]
        if self.where is not None:
            parts.append(self.where)
        return find_reads(self.source, parts, catalog, node)

    @property
    def where(self) -> exp.Expr | None:
        where: exp.Expr | None = self.tree.args.get("where")
        return where

    @property
    def qualifier(self) -> str:
        return quote(self.target.node.alias or self.target.node.name)

    @property
    def key(self) -> tuple[Operand, ...] | None:
        return whole_key(self.source, self.scope, self.where, self.target)

    @property
    def is_bound(self) -> bool:
        bound = equalities(self.source, self.scope, self.where, self.target)
        return bound is not None and len(self.reads.reads) == 1

    @property
    def references(self) -> tuple[Reference, ...]:
        bindings = select_bindings(self.source, self.tree, self.reads)
        condition = self.where.this if self.where is not None else None
        own = bindings_of(self.source, self.scope, list(conjuncts(condition)))
        return references_of(self.reads, bindings | own, [self.tree], self.target)

    def from_where(self, alias: Text, where: Text) -> Text:
        """`` FROM <hole><alias> <where>``."""
        hole = self.source.cut(
            self.target.span.start, self.target.span.end, self.reads.spans
        )
        return (" FROM ", *hole, *alias, *((" ", *where) if where else ()))


def plan_update(source: Source, catalog: Catalog) -> Update:
    """Return the plan of an UPDATE."""
    change = _Change(source, catalog, exp.Update)
    words = source.words
    _, name_end = table_span(source, change.target.node)
    start = next(i for i, w in enumerate(words) if w.start >= name_end)
    first = next(i for i in range(start, len(words)) if words[i].keyword == "SET")
    last = next(
        (
            i
            for i in range(first, len(words))
            if words[i].keyword == "WHERE" and words[i].depth == 0
        ),
        len(words),
    )
    _check_alias(source, words[start:first])
    alias = source.cut(name_end, words[first - 1].end) if first > start else ()
    where = (
        source.cut(words[last].start, source.end, change.reads.spans)
        if last < len(words)
        else ()
    )
    return Update(
        len(source.lexed.arguments),
        change.references,
        change.target.table,
        _assignments(change, words[first + 1 : last]),
        change.from_where(alias, where),
        change.qualifier,
        change.key,
        change.is_bound,
    )


def plan_delete(source: Source, catalog: Catalog) -> Delete:
    """Return the plan of a DELETE."""
    change = _Change(source, catalog, exp.Delete)
    _, name_end = table_span(source, change.target.node)
    after = [w for w in source.words if w.start >= name_end]
    where = next((i for i, w in enumerate(after) if w.keyword == "WHERE"), len(after))
    _check_alias(source, after[:where])
    rest = source.cut(name_end, source.end, change.reads.spans)
    return Delete(
        len(source.lexed.arguments),
        change.references,
        change.target.table,
        change.from_where(rest, ()),
        change.qualifier,
        change.key,
        change.is_bound,
    )


def _check_alias(source: Source, words: list[Word]) -> None:
    """Refuse anything but ``[AS] alias`` after the table's name."""
    if words and words[0].keyword == "AS":
        words = words[1:]
    if len(words) > 1:
        shown = source.text[words[0].start : words[0].end]
        raise source.unsupported(f'"{shown}" after the table', words[0].start)


def _assignments(
    change: _Change, words: list[Word]
) -> tuple[tuple[int, Expression], ...]:
    source, table = change.source, change.target.table
    if not words:
        raise source.syntax("SET without a column", source.find("SET"))
    pieces = split(words)
    nodes = change.tree.expressions
    if len(pieces) != len(nodes):
        raise source.unsupported("this form of SET", words[0].start)
    found: dict[int, Expression] = {}
    for piece, node in zip(pieces, nodes, strict=True):
        if not isinstance(node, exp.EQ) or piece[1].keyword != "=":
            raise source.unsupported(
                "this form of SET", piece[0].start, "write SET column = value, …"
            )
        name = source.identifier(piece[0])
        position = table.positions.get(name.lower())
        if position is None:
            raise unknown_column(source, table, name, piece[0].start)
        if position in found:
            raise source.syntax(f'the column "{name}" is set twice', piece[0].start)
        column = table.columns[position]
        found[position] = _expression(change, column, piece[2:], node.expression)
    return tuple(found.items())


def _expression(
    change: _Change, column: Column, words: list[Word], node: exp.Expr
) -> Expression:
    source = change.source
    if len(words) == 1 and words[0].keyword == "DEFAULT":
        check_default(source, column, words[0].start)
        if column.default is None:
            return Expression(("NULL",), Literal(None))
        return Expression((f"({column.default})",))
    check_scalar(source, node, words[0].start, "SET")

    def position_of(node: exp.Column) -> int | None:
        found = change.scope.column(node)
        return None if found is None else found[1]

    text = source.cut(words[0].start, words[-1].end, change.reads.spans)
    return Expression(text, kernel(source, node, position_of))
