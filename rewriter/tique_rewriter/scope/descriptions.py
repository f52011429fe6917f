"""DESCRIBE, SHOW and SUMMARIZE in FROM: relations that tell of other relations.

They answer as the statements of these names do (:mod:`tique_rewriter.kinds.session.describe`).
The definition of a table is that of storage, which has exactly the application's; those of a
query, and rows, are the snapshot's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp
from typing_extensions import override

from tique_rewriter.plans.text import Variant
from tique_rewriter.safety.listings import Listed
from tique_rewriter.scope.relations import common_table
from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark, Span
from tique_rewriter.tree.shape import has_only, place_of, starts_at

if TYPE_CHECKING:
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source

DESCRIPTIONS = (exp.Describe, exp.Summarize)
_PARTS = frozenset({"this", "kind", "table"})
_NAME = frozenset({"this", "db", "catalog"})


@dataclass(frozen=True)
class Described(Listed):
    """A place of which the engine gets another text, as it stands."""

    @override
    def mark(self, source: Source) -> Mark:
        start, end = self.span.start, self.span.end
        return Mark(start, end, Variant(source.text[start:end], self.query))


def check_descriptions(source: Source, tree: exp.Expr) -> None:
    """Refuse a description that is no relation of FROM, or one of neither a name nor a query.

    Raises
    ------
    UnsupportedSQL
        At the first of them.
    """
    for node in tree.find_all(*DESCRIPTIONS):
        around, of = node.parent, node.this
        is_relation = isinstance(around, exp.Subquery) and isinstance(
            around.parent, exp.From | exp.Join
        )
        is_name = (
            isinstance(of, exp.Table)
            and isinstance(of.this, exp.Identifier)
            and has_only(of, _NAME)
        )
        is_known = is_name or isinstance(of, exp.Query | exp.Values)
        if not (is_relation and is_known and has_only(node, _PARTS)):
            verb = "SUMMARIZE" if isinstance(node, exp.Summarize) else "DESCRIBE"
            start = source.find(verb, "DESC", "SHOW")
            advice = "write FROM (DESCRIBE …) with a name or a query in it"
            raise source.unsupported(f"{verb} here", start, advice)


def described(
    source: Source, node: exp.Table, catalog: Catalog
) -> Described | Mark | None:
    """Return what takes the place of the name after DESCRIBE, SHOW or SUMMARIZE, or of all.

    A mark is what stands before a name that is read like any other: its FROM. None if the
    node is no such name.
    """
    if not isinstance(node.parent, DESCRIPTIONS):
        return None
    place = place_of(node)
    number = source.number(starts_at(node)) - 1
    verb = source.words[number - (source.words[number].keyword == "TABLE")]
    if place is None or verb.keyword not in ("DESCRIBE", "DESC", "SHOW", "SUMMARIZE"):
        raise source.unsupported("the way this is described", starts_at(node))
    start, end = place
    shown = f"{verb.keyword} {node.name.upper()}"
    if shown in source.rules.listings and not node.db and not node.this.quoted:
        return Described(node, Span(verb.start, end, 0), source.rules.listings[shown])
    name, schema = node.name, node.db or None
    is_member = not schema and (
        common_table(source, node, name.lower()) is not None
        or name.lower() in source.outer
    )
    is_elsewhere = node.catalog or (node.db and catalog.attached(node.db))
    if verb.keyword != "SUMMARIZE" and not (is_member or is_elsewhere):
        found = definition(source, catalog, schema, name, start)
        if found:
            return Described(node, Span(verb.end, end, 0), f" {found}")
    return Mark(verb.end, start, Variant(source.text[verb.end : start], " FROM "))


def definition(
    source: Source, catalog: Catalog, schema: str | None, name: str, start: int
) -> str:
    """Return the qualified name of a table, or of a view; empty if there is none.

    Raises
    ------
    UnsupportedSQL
        For a temporary one, which the engine has by another name or not at all.
    """
    table, view = catalog.find(schema, name), catalog.view(schema, name)
    table = view.table if view is not None else table
    if table is not None and table.is_temporary:
        raise source.unsupported(
            f'DESCRIBE of "{name}", which is temporary,',
            start,
            "describe a query of it",
        )
    return "" if table is None else f"{quote(table.schema)}.{quote(table.name)}"
