"""Plans of UPDATE and DELETE."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from sqlglot import expressions as exp

from tique_rewriter.kinds.change.assignments import plan_assignments
from tique_rewriter.kinds.change.clauses import find_clause, plan_returning
from tique_rewriter.kinds.change.joined import looks_only_at, plan_joined_returning
from tique_rewriter.kinds.query.query import references_of
from tique_rewriter.local.comparisons import keyed_row
from tique_rewriter.plans.change_plans import Delete, SearchedChange, Update
from tique_rewriter.scope.bindings import (
    Filter,
    Scope,
    conditions_of,
    equalities,
    scope_of,
)
from tique_rewriter.scope.references import find_reads, two_tables
from tique_rewriter.scope.relations import with_joins
from tique_rewriter.tree.shape import clause_words, starts_at

if TYPE_CHECKING:
    from tique_rewriter.plans.change_plans import JoinedReturning
    from tique_rewriter.plans.plan import Comparison, Operand, Reference
    from tique_rewriter.plans.text import Text
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.scope.reads import Read
    from tique_rewriter.text.source import Source, Word

_Planned = TypeVar("_Planned", bound=SearchedChange)

_CLAUSES = ("SET", "WHERE", "RETURNING")
_KNOWN = frozenset({"this", "expressions", "from_", "using", "where", "returning"})
_PARTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "with_": ("WITH before the statement", ("WITH",), "write WITH in a subquery"),
    "order": ("ORDER BY", ("ORDER",), ""),
    "limit": ("LIMIT", ("LIMIT",), "use WHERE key IN (SELECT … LIMIT …)"),
}


class _Change:
    """The common part of UPDATE and DELETE: a target, WHERE and RETURNING.

    ``words`` are those before RETURNING; that with the number ``start`` stands after the
    target, ``last`` is WHERE's or how many there are. ``joined`` are the relations that UPDATE … FROM
    or DELETE … USING joins with the target.
    """

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
        _check_order(source, self.tree)
        self.words = source.words
        if self.tree.args.get("returning"):
            self.words = source.words[: find_clause(source, self.tree, "RETURNING")]
        node = self.tree.this
        if not isinstance(node, exp.Table) or node.args.get("joins"):
            raise source.unsupported("a list of tables", source.words[0].start)
        if node.alias_column_names:
            raise source.unsupported(
                "an alias with columns", node.parts[0].meta["start"]
            )
        from_ = self.tree.args.get("from_")
        using: list[exp.Expr] = self.tree.args.get("using") or []
        self.where: exp.Expr | None = self.tree.args.get("where")
        self.joined = with_joins([*([from_.this] if from_ else ()), *using])
        self.reads = find_reads(source, [*self.tree.iter_expressions()], catalog, node)
        target = self.reads.of(node)
        if target is None:
            raise source.unsupported("the changed table", source.words[0].start)
        self.target: Read = target
        self.start = source.number(target.span.end)
        self.last = _number_of(self.words, "WHERE", self.start)
        self.scope: Scope = scope_of([node, *self.joined], self.reads)
        self._check_joined()

    def _check_joined(self) -> None:
        """Refuse joined relations where they could mean something else than natively."""
        if not self.joined:
            return
        missing = self.source.rules.refused_parts.get(type(self.tree), {}).get("using")
        if missing is not None:
            construct, keywords = missing
            raise self.source.unsupported(
                construct, self.source.find(*keywords), "use a subquery"
            )
        names = [each.alias_or_name.lower() for each in self.joined]
        if (name := self.target.name) in names:
            start = starts_at(self.joined[names.index(name)])
            raise two_tables(self.source, name, start)

    def joined_from(self, start: int, keyword: str) -> int:
        """Return the number of the word that begins the list of joined relations.

        The words from number ``start`` on are looked at; it is the number of words if
        nothing is joined.
        """
        words = self.words
        if not self.joined:
            return len(words)
        found = [
            number
            for number in range(start, len(words))
            if words[number].keyword == keyword
            and words[number].depth == 0
            and words[number - 1].keyword != "DISTINCT"
        ]
        if not found or words[found[0]].start > starts_at(self.joined[0]):
            raise self.source.unsupported(
                f"the way {keyword} is written", starts_at(self.joined[0])
            )
        return found[0]

    def joined_returning(self) -> JoinedReturning | None:
        """Return the plan of RETURNING, if it looks at joined relations."""
        source, returning = self.source, self.tree.args.get("returning")
        if not (self.joined and source.rules.returns_joined and returning):
            return None
        if looks_only_at(source, returning, self.target, self.joined, self.reads):
            return None
        words = source.words[len(self.words) + 1 :]
        return plan_joined_returning(
            source, self.tree, words, self.target, self.joined, self.reads
        )

    def references(self, *, returns_joined: bool) -> tuple[Reference, ...]:
        """Return the plan's references; RETURNING may look at joined relations."""
        source, tree, reads = self.source, self.tree, self.reads
        own = Filter(self.scope, conditions_of(self.where), bool(self.joined))
        whole = [self.target]
        if returns_joined:
            whole += [read for read in map(reads.of, self.joined) if read]
        joined = self.target if self.joined else None
        return references_of(source, tree, reads, [tree], whole, joined, own)

    def plan(
        self, kind: type[_Planned], first: int, joins: int, **others: Any
    ) -> _Planned:
        """Return the plan, whose rows are `` FROM <hole> <alias>, <joined> <where>``.

        The alias stands before word ``first``, ``joins`` begins the joined relations.
        ``others`` are fields that the kind has of its own.
        """
        source, words, marks = self.source, self.words, self.reads.marks
        target = self.target
        hole = source.cut(target.span.start, target.span.end, marks)
        rows: Text = (" FROM ", *hole)
        if first > self.start:
            rows += source.cut(target.span.end, words[first - 1].end)
        if self.joined:
            start, end = words[joins + 1].start, words[self.last - 1].end
            rows += (", ", *source.cut(start, end, marks))
        if self.last < len(words):
            where = source.cut(words[self.last].start, words[-1].end, marks)
            rows += (" ", *where)
        row: tuple[tuple[Operand, ...] | None, tuple[Comparison, ...]] = None, ()
        is_bound = False
        if not self.joined:
            row = keyed_row(source, self.scope, self.where, target) or row
            conditions = conditions_of(self.where)
            bound = equalities(source, self.scope, conditions, target)
            is_bound = bound is not None and len(self.reads.reads) == 1
        key, comparisons = row
        joined, returning = self.joined_returning(), None
        if joined is None:
            returning = plan_returning(source, self.tree, target, self.reads)
        return kind(
            source.parameters_before(words[-1].end),
            self.references(returns_joined=joined is not None),
            target.table,
            rows,
            target.qualifier,
            key,
            is_bound,
            returning,
            is_joined=bool(self.joined),
            joined_returning=joined,
            comparisons=comparisons,
            **others,
        )


def plan_update(source: Source, catalog: Catalog) -> Update:
    """Return the plan of an UPDATE."""
    change = _Change(source, catalog, exp.Update)
    words = change.words
    first = _number_of(words, "SET", change.start)
    if first == len(words):
        raise source.syntax("UPDATE without SET", words[-1].start)
    joins = min(change.joined_from(first, "FROM"), change.last)
    _check_alias(source, words[change.start : first])
    assignments = plan_assignments(
        source,
        change.target.table,
        words[first + 1 : joins],
        change.tree.expressions,
        (lambda column: None) if change.joined else change.scope.position,
        lambda start, end: source.cut(start, end, change.reads.marks),
        change.target.qualifier,
    )
    return change.plan(Update, first, joins, assignments=assignments)


def plan_delete(source: Source, catalog: Catalog) -> Delete:
    """Return the plan of a DELETE."""
    change = _Change(source, catalog, exp.Delete)
    joins = min(change.joined_from(change.start, "USING"), change.last)
    _check_alias(source, change.words[change.start : joins])
    return change.plan(Delete, joins, joins)


def _number_of(words: list[Word], keyword: str, start: int) -> int:
    """Return the number of the keyword outside brackets, or how many words there are."""
    found = (
        number
        for number in range(start, len(words))
        if words[number].keyword == keyword and words[number].depth == 0
    )
    return next(found, len(words))


def _check_order(source: Source, tree: exp.Expr) -> None:
    """Refuse clauses twice or in another order: the parser keeps the last of each."""
    words = [word for _, word in clause_words(source, tree, *_CLAUSES)]
    for before, word in pairwise(words):
        if _CLAUSES.index(before.keyword) >= _CLAUSES.index(word.keyword):
            raise source.unsupported(
                f"{word.keyword} after {before.keyword}", word.start
            )


def _check_alias(source: Source, words: list[Word]) -> None:
    """Refuse anything but ``[AS] alias`` after the table's name."""
    if words and words[0].keyword == "AS":
        words = words[1:]
    if len(words) > 1:
        shown = source.raw(words[0])
        raise source.unsupported(f'"{shown}" after the table', words[0].start)
