"""The engine's own relations, which list the content of a database.

Some list the schema ``tique`` and its objects too, or the statements that a plan was
made into. Natively these are not there. So a query without them takes the place of
such a relation, as a snapshot form takes the place of a table. An unknown relation is
refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.text import Variant
from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark, Span
from tique_rewriter.tree.shape import function_name, place_of, starts_at

if TYPE_CHECKING:
    from tique_rewriter.text.source import Source


@dataclass(frozen=True)
class Listed:
    """A place that reads a relation of which only a part is shown."""

    node: exp.Table
    span: Span
    query: str

    @property
    def name(self) -> str:
        """The relation's own name."""
        function = self.node.this
        return function.name if isinstance(function, exp.Anonymous) else self.node.name

    def mark(self, source: Source) -> Mark:
        """The plan's listing at that place."""
        start, end = self.span.start, self.span.end
        alias = "" if self.node.alias else f" AS {quote(self.name)}"
        listing = Variant(source.text[start:end], f"({self.query}){alias}")
        return Mark(start, end, listing)


def listed(source: Source, node: exp.Table) -> tuple[bool, Listed | None]:
    """Return whether a relation is the engine's own, and which part of it is shown.

    None stands for all.

    Raises
    ------
    UnsupportedSQL
        For one that might show objects or activity of tique's beside the application.
    """
    rules = source.rules
    if not isinstance(node.this, exp.Identifier):
        query = rules.listings.get(f"{function_name(node.this)}()", "")
        return True, _called(source, node, query) if query else None
    name, schema = rules.same(node.name), rules.same(node.db)
    for place in [schema] if schema else rules.listing_schemas:
        key = f"{place}.{name}"
        if key in rules.listings:
            query = rules.listings[key]
            return True, _named(source, node, query) if query else None
    is_system = schema in rules.system_schemas or (
        schema in ("", *rules.listing_schemas)
        and rules.system_relations.fullmatch(name) is not None
    )
    if is_system:
        shown = f"{schema}.{name}" if schema else name
        raise source.unsupported(f'the relation "{shown}"', starts_at(node))
    return False, None


def _named(source: Source, node: exp.Table, query: str) -> Listed:
    place = place_of(node)
    if place is None:
        raise _unclear(source, node)
    return Listed(node, Span(*place, 0), query)


def _called(source: Source, node: exp.Table, query: str) -> Listed:
    """Return the place of a call without arguments."""
    start = node.this.meta.get("start")
    if start is None or node.db or node.args.get("ordinality"):
        raise _unclear(source, node)
    number = source.number(start)
    call = source.words[number : number + 3]
    if [word.keyword for word in call[1:]] != ["(", ")"] or call[0].start != start:
        raise _unclear(source, node)
    return Listed(node, Span(start, call[2].end, 0), query)


def _unclear(source: Source, node: exp.Table) -> Exception:
    name = function_name(node.this) or node.name
    return source.unsupported(
        f'the way the relation "{name}" is named',
        starts_at(node, source.find(name.upper())),
        "write its name plainly",
    )


def check_lateral(source: Source, tree: exp.Expr) -> None:
    """Refuse LATERAL before a function of which only a part may be shown.

    Raises
    ------
    UnsupportedSQL
        At the first of them.
    """
    for node in tree.find_all(exp.Lateral):
        name = function_name(node.this)
        if source.rules.listings.get(f"{name}()"):
            raise source.unsupported(
                f"LATERAL {name}()", source.find("LATERAL"), "leave LATERAL out"
            )
