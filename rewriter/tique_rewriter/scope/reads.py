"""The places of a statement that read managed tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from tique_rewriter.plans.text import Hole
from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark, in_order

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlglot import expressions as exp

    from tique_rewriter.plans.past import Past
    from tique_rewriter.plans.plan import ViewQuery
    from tique_rewriter.safety.listings import Listed
    from tique_rewriter.schema import Table
    from tique_rewriter.text.source import Span


@dataclass
class Read:
    """A place that reads a managed table; ``span`` covers the name."""

    node: exp.Table
    table: Table
    span: Span
    view: ViewQuery | None = None
    """The query of the view that ``table`` describes; None if it is a table."""
    past: Past | None = None
    """The point of the past as of which it is read."""

    @property
    def own_alias(self) -> bool:
        """Whether the application gave an alias."""
        return bool(self.node.alias)

    @property
    def name(self) -> str:
        """The folded name by which the statement's columns may qualify."""
        return (self.node.alias or self.node.name).lower()

    @property
    def qualifier(self) -> str:
        """The quoted name by which the statement knows the rows."""
        return quote(self.node.alias or self.node.name)

    @property
    def added_alias(self) -> str:
        """The alias that must follow the text that fills the hole."""
        return "" if self.own_alias else f" AS {quote(self.node.name)}"


@dataclass
class Reads:
    """All of a statement's reads, in the text's order: numbers of the holes."""

    reads: list[Read] = field(default_factory=list)
    listed: list[Listed] = field(default_factory=list)
    """The engine's own relations, where not all of them is shown."""
    others: list[Mark] = field(default_factory=list)
    """The plan's marks for these, labels, and names of results."""
    _by_node: dict[int, Read] = field(init=False)

    def __post_init__(self) -> None:
        self._by_node = {id(read.node): read for read in self.reads}

    @cached_property
    def marks(self) -> list[Mark]:
        """All marks, in the text's order."""
        spans = [read.span for read in self.reads]
        holes = [Mark(span.start, span.end, Hole(span.index)) for span in spans]
        return in_order(holes + self.others)

    def marks_with(self, more: Iterable[Mark]) -> list[Mark]:
        """These, and more of them."""
        return in_order([*self.marks, *more])

    def of(self, node: exp.Expr) -> Read | None:
        """Return the read that a node of the tree is."""
        return self._by_node.get(id(node))
