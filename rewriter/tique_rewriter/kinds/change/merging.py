"""Plans of MERGE.

The plan takes the statement apart at its keywords, and every part stays as it stands.
The statement joins the source with the target in one query, in which the columns of both
are visible everywhere; natively a clause for rows without a partner sees one side only. So
in these clauses names without a qualifier get the one that they have natively, and the
other side's are refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import UnknownTable
from tique_rewriter.kinds.change.assignments import plan_assignments, plan_default
from tique_rewriter.kinds.change.clauses import find_clause
from tique_rewriter.kinds.change.joined import plan_joined_returning
from tique_rewriter.kinds.query.query import references_of
from tique_rewriter.plans.change_plans import Merge, MergeAction, MergeClause, MergeKind
from tique_rewriter.plans.plan import Expression
from tique_rewriter.scope.moments import given_time
from tique_rewriter.scope.references import (
    column_position,
    find_reads,
    two_tables,
    unknown_column,
)
from tique_rewriter.scope.relations import columns_of
from tique_rewriter.scope.targets import listed_columns
from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark
from tique_rewriter.tree.scalars import (
    check_default,
    check_given,
    check_scalar,
    outside_subqueries,
    split,
    stands_for_value,
)
from tique_rewriter.tree.shape import starts_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique_rewriter.plans.change_plans import JoinedReturning
    from tique_rewriter.plans.text import Text
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.source import Source, Word

_KNOWN = frozenset({"this", "using", "on", "using_cond", "whens", "returning", "with_"})
_KINDS = {
    ("MATCHED",): MergeKind.MATCHED,
    ("NOT", "MATCHED"): MergeKind.BY_TARGET,
    ("NOT", "MATCHED", "BY", "TARGET"): MergeKind.BY_TARGET,
    ("NOT", "MATCHED", "BY", "SOURCE"): MergeKind.BY_SOURCE,
}


def plan_merge(source: Source, catalog: Catalog) -> Merge:
    """Return the plan of a MERGE statement."""
    return _Merge(source, catalog).plan()


class _Merge:
    """A MERGE taken apart; ``top`` has the numbers of words outside of brackets and CASE."""

    def __init__(self, source: Source, catalog: Catalog) -> None:
        self.source = source
        rules = source.rules
        first = source.words[0].start
        if not rules.merges:
            raise source.unsupported("MERGE", first, "use INSERT … ON CONFLICT")
        tree = source.parse()
        if not isinstance(tree, exp.Merge):
            raise source.unsupported("this statement", first)
        for part, value in tree.args.items():
            if value and part not in _KNOWN:
                raise source.unsupported(f"MERGE with {part.strip('_').upper()}", first)
        self.tree = tree
        self.top = list(_outside_case(source, tree))
        self.merge = self._word("MERGE", 0)
        if source.keywords(self.merge + 1)[:1] != ["INTO"]:
            raise source.syntax("MERGE without INTO", source.words[self.merge].start)
        self.using = self._word("USING", self.merge)
        self.whens = [
            number
            for number in self.top
            if number > self.using and source.words[number].keyword == "WHEN"
        ]
        self.end = len(source.words)
        if tree.args.get("returning"):
            self.end = find_clause(source, tree, "RETURNING")
        nodes = tree.args["whens"].expressions
        if len(self.whens) != len(nodes) or self.end < self.whens[-1]:
            raise source.unsupported("this form of MERGE", first)
        self.nodes: Sequence[exp.When] = nodes
        self.reads = self._read(catalog)
        self.target = self._target()
        self.joined: exp.Expr = tree.args["using"]
        self.name = self.joined.alias_or_name
        self._check_names()
        self.extra: list[Mark] = []
        self.is_spread = False
        """Whether a clause takes all columns of the source, without their names."""

    def _word(self, keyword: str, start: int) -> int:
        for number in self.top:
            if number >= start and self.source.words[number].keyword == keyword:
                return number
        raise self.source.syntax(
            f"MERGE without {keyword}", self.source.words[-1].start
        )

    def _read(self, catalog: Catalog) -> Reads:
        tree = self.tree
        parts: list[exp.Expr] = [tree.this, tree.args["using"]]
        if tree.args.get("with_"):
            parts.append(tree.args["with_"])
        if isinstance(tree.args.get("on"), exp.Expr):
            parts.append(tree.args["on"])
        for node in self.nodes:
            condition, then = node.args.get("condition"), node.args["then"]
            parts += [condition] if condition is not None else []
            if isinstance(then, exp.Update):
                parts += then.expressions
            elif isinstance(then, exp.Insert) and then.expression:
                parts.append(then.expression)
        if tree.args.get("returning"):
            parts.append(tree.args["returning"])
        return find_reads(self.source, parts, catalog, tree.this)

    def _target(self) -> Read:
        source, node = self.source, self.tree.this
        if not isinstance(node, exp.Table) or node.args.get("joins"):
            raise source.unsupported("this target of MERGE", source.words[0].start)
        target = self.reads.of(node)
        assert target is not None
        if node.alias_column_names:
            raise source.unsupported("an alias with columns", target.span.start)
        start = source.number(target.span.end)
        words = source.words[start : self.using]
        if words and words[0].keyword == "AS":
            words = words[1:]
        if len(words) > 1:
            raise source.unsupported("this form of MERGE", words[0].start)
        return target

    def _check_names(self) -> None:
        source, node = self.source, self.joined
        start = source.words[self.using + 1].start
        if not isinstance(node, exp.Table | exp.Subquery | exp.Values) or (
            node.args.get("joins") or not self.name
        ):
            raise source.unsupported(
                "this source of MERGE", start, "use a table or a subquery with an alias"
            )
        if self.name.lower() == self.target.name:
            raise two_tables(source, self.name, start)

    def _cut(self, start: int, end: int) -> Text:
        return self.source.cut(start, end, self.reads.marks_with(self.extra))

    def _words_cut(self, words: Sequence[Word]) -> Text:
        return self._cut(words[0].start, words[-1].end)

    def plan(self) -> Merge:
        """Return the plan."""
        source = self.source
        words = source.words
        join = next(
            (
                number
                for number in self.top
                if number > self.using + 1 and words[number].keyword in ("ON", "USING")
            ),
            self.whens[0],
        )
        if join >= self.whens[0] or join + 1 == self.whens[0]:
            raise source.syntax("MERGE without ON", words[self.using].start)
        on = self._words_cut(words[join + 1 : self.whens[0]])
        condition: Text = ("USING ", *on)
        if words[join].keyword == "ON":
            condition = ("ON (", *on, ")")
        clauses = tuple(
            self._clause(node, words[start:end])
            for node, start, end in zip(
                self.nodes, self.whens, [*self.whens[1:], self.end], strict=True
            )
        )
        self._check_reachable(clauses)
        returning = self._returning()
        whole = [self.target]
        if self.is_spread or (returning is not None and returning.relations):
            whole += [read for read in [self.reads.of(self.joined)] if read]
        before: Text = ()
        if self.merge:
            before = self._cut(words[0].start, words[self.merge].start)
        return Merge(
            source.parameters_before(words[self.end - 1].end),
            references_of(
                source, self.tree, self.reads, [self.tree], whole, self.target
            ),
            self.target.table,
            before,
            self._words_cut(words[self.merge + 2 : self.using]),
            self.target.qualifier,
            self._words_cut(words[self.using + 1 : join]),
            quote(self.name),
            condition,
            clauses,
            returning,
        )

    def _check_reachable(self, clauses: Sequence[MergeClause]) -> None:
        done = set()
        for clause, number in zip(clauses, self.whens, strict=True):
            if clause.kind in done:
                raise self.source.syntax(
                    "a WHEN clause after one of its kind without a condition",
                    self.source.words[number].start,
                )
            if not clause.condition:
                done.add(clause.kind)

    # Clauses

    def _clause(self, node: exp.When, words: list[Word]) -> MergeClause:
        """Return the plan of ``WHEN … THEN …``."""
        source = self.source
        tops = {source.words[number].start for number in self.top}
        then, *_ = [
            i for i, w in enumerate(words) if w.keyword == "THEN" and w.start in tops
        ]
        conjunction = next(
            (i for i, w in enumerate(words[:then]) if w.keyword == "AND"), then
        )
        kind = _KINDS.get(tuple(word.keyword for word in words[1:conjunction]))
        if kind is None:
            raise source.unsupported("this form of WHEN", words[0].start)
        if kind is MergeKind.BY_SOURCE and "by source" not in source.rules.merges:
            raise source.unsupported("WHEN NOT MATCHED BY SOURCE", words[0].start)
        condition: Text = ()
        if conjunction < then:
            if conjunction + 1 == then:
                raise source.syntax("WHEN without a condition", words[then].start)
            tree: exp.Expr = node.args["condition"]
            check_scalar(source, tree, words[conjunction].start, "WHEN")
            self._see(kind, tree)
            condition = self._words_cut(words[conjunction + 1 : then])
        action, assignments = self._action(kind, node.args["then"], words[then + 1 :])
        return MergeClause(kind, condition, action, assignments)

    def _action(
        self, kind: MergeKind, node: exp.Expr, words: list[Word]
    ) -> tuple[MergeAction, tuple[tuple[int, Expression], ...]]:
        source = self.source
        if not words:
            raise source.syntax("THEN without an action", source.words[-1].start)
        inserts = kind is MergeKind.BY_TARGET
        match [word.keyword for word in words]:
            case ["DO", "NOTHING"]:
                return MergeAction.NOTHING, ()
            case ["DELETE"] if not inserts:
                return MergeAction.DELETE, ()
            case ["UPDATE"] | ["UPDATE", "SET", "*"] if kind is MergeKind.MATCHED:
                return MergeAction.UPDATE, self._by_position(words)
            case ["UPDATE", "SET", _, *_] if not inserts:
                assert isinstance(node, exp.Update)
                return MergeAction.UPDATE, self._update(kind, node, words[2:])
            case ["INSERT"] | ["INSERT", "*"] | ["INSERT", "BY", "POSITION"] if inserts:
                return MergeAction.INSERT, self._by_position(words)
            case ["INSERT", "BY", "NAME"] if inserts:
                return MergeAction.INSERT, self._by_name(words)
            case ["INSERT", "DEFAULT", "VALUES"] if inserts:
                return MergeAction.INSERT, self._defaults(())
            case ["INSERT", "(" | "VALUES", *_] if inserts:
                return MergeAction.INSERT, self._insert(node, words[1:])
        raise source.unsupported(
            f"this action of a WHEN {kind.value} clause", words[0].start
        )

    def _update(
        self, kind: MergeKind, node: exp.Update, words: list[Word]
    ) -> tuple[tuple[int, Expression], ...]:
        for assignment in node.expressions:
            value = assignment.args.get("expression")
            if value is not None:
                self._see(kind, value)
        return plan_assignments(
            self.source,
            self.target.table,
            words,
            node.expressions,
            lambda column: None,
            self._cut,
        )

    def _insert(
        self, node: exp.Expr, words: list[Word]
    ) -> tuple[tuple[int, Expression], ...]:
        """Return the values of ``[(columns)] VALUES (values)``."""
        source, table = self.source, self.target.table
        columns = list(range(len(table.columns)))
        is_listed = words[0].keyword == "("
        if table.generated and not is_listed and source.rules.generated_takes_default:
            raise source.unsupported(
                "INSERT without a list of columns, into a table with a generated column",
                words[0].start,
                "list the columns",
            )
        if is_listed:
            end = source.closing(words)
            columns = [*listed_columns(source, table, words[1:end], words[0].start)]
            words = words[end + 1 :]
        if [w.keyword for w in words[:2]] != ["VALUES", "("] or (
            source.closing(words[1:]) != len(words) - 2
        ):
            raise source.unsupported(
                "this form of INSERT", (words or source.words)[0].start
            )
        pieces = split(words[2:-1])
        row = node.args.get("expression")
        trees = row.expressions if isinstance(row, exp.Tuple) else [row]
        if len(trees) != len(pieces):
            raise source.unsupported("this form of VALUES", words[0].start)
        if source.rules.fewer_values and not is_listed:
            columns = columns[: len(pieces)]
        if len(columns) != len(pieces):
            raise source.syntax(
                f"{len(pieces)} values for {len(columns)} columns", words[0].start
            )
        given: list[tuple[int, Expression]] = []
        for position, piece, tree in zip(columns, pieces, trees, strict=True):
            if [word.keyword for word in piece] == ["DEFAULT"]:
                check_default(source, table.columns[position], piece[0].start)
                given.append((position, plan_default(table.columns[position])))
                continue
            check_given(source, table.columns[position], piece[0].start)
            check_scalar(source, tree, piece[0].start, "VALUES")
            self._see(MergeKind.BY_TARGET, tree)
            text = self._words_cut(piece)
            text = given_time(source, piece, table.columns[position], text)
            given.append((position, Expression(text)))
        return self._defaults(given)

    def _defaults(
        self, given: Sequence[tuple[int, Expression]]
    ) -> tuple[tuple[int, Expression], ...]:
        """Return the values of all columns of a new row."""
        known = dict(given)
        return tuple(
            (i, known[i] if i in known else plan_default(column))
            for i, column in enumerate(self.target.table.columns)
        )

    def _by_position(self, words: list[Word]) -> tuple[tuple[int, Expression], ...]:
        """Return the source's columns in their order, where these are not written out."""
        source, table = self.source, self.target.table
        values = self._source_columns(words)
        if len(values) != len(table.columns):
            raise source.syntax(
                f"{len(values)} values for {len(table.columns)} columns", words[0].start
            )
        return tuple((i, value) for i, (_, value) in enumerate(values))

    def _by_name(self, words: list[Word]) -> tuple[tuple[int, Expression], ...]:
        """Return the source's columns where the target has them; defaults elsewhere."""
        source, table = self.source, self.target.table
        given: dict[int, Expression] = {}
        for name, value in self._source_columns(words):
            position = column_position(source, table, name, words[0].start, given)
            given[position] = value
        return self._defaults(list(given.items()))

    def _source_columns(self, words: list[Word]) -> list[tuple[str, Expression]]:
        source = self.source
        names = columns_of(source, self.joined, self.reads)
        if names is None or not all(names) or "all columns" not in source.rules.merges:
            raise source.unsupported(
                f"{words[0].keyword} without its values",
                words[0].start,
                "write the columns and values out",
            )
        self.is_spread = True
        return [
            (name, Expression((f"{quote(self.name)}.{quote(name)}",))) for name in names
        ]

    def _see(self, kind: MergeKind, tree: exp.Expr) -> None:
        """Let names in a part of a clause mean what they mean natively."""
        if kind is MergeKind.MATCHED:
            return
        source, table = self.source, self.target.table
        own, other = quote(self.name), self.target.name
        if kind is MergeKind.BY_SOURCE:
            own, other = self.target.qualifier, self.name.lower()
        for node in outside_subqueries(tree):
            if isinstance(node, exp.Lambda):
                raise source.unsupported("a lambda in MERGE", starts_at(node))
        inside = {id(node) for node in outside_subqueries(tree)}
        for column in tree.find_all(exp.Column):
            start = starts_at(column)
            if column.table.lower() == other and id(column) in inside:
                raise source.error(
                    UnknownTable,
                    f'no table "{other}" in a WHEN {kind.value} clause',
                    start,
                )
            if column.table or isinstance(column.this, exp.Star):
                continue
            if not isinstance(column.this, exp.Identifier):
                continue
            is_own = column.name.lower() in table.spellings
            if id(column) not in inside:
                if is_own:
                    raise source.unsupported(
                        f'an unqualified name "{column.name}" in a subquery of MERGE',
                        start,
                        "qualify it",
                    )
                continue
            if stands_for_value(column):
                continue
            if is_own:
                self.extra.append(Mark(start, start, f"{own}."))
            elif kind is MergeKind.BY_SOURCE:
                raise unknown_column(source, table, column.name, start)

    def _returning(self) -> JoinedReturning | None:
        if not self.tree.args.get("returning"):
            return None
        source = self.source
        words = source.words[self.end + 1 :]
        joined = [self.joined] if source.rules.returns_joined else []
        actions = list(_merge_actions(source, words))
        return plan_joined_returning(
            source, self.tree, words, self.target, joined, self.reads, actions
        )


def _outside_case(source: Source, tree: exp.Expr) -> Iterator[int]:
    """Yield the numbers of the words outside of brackets and of CASE … END."""
    names = {name.meta.get("start") for name in tree.find_all(exp.Identifier)}
    inside = 0
    for number, word in enumerate(source.words):
        if word.depth or word.start in names:
            continue
        if word.keyword == "CASE":
            inside += 1
        elif word.keyword == "END" and inside:
            inside -= 1
        elif not inside:
            yield number


def _merge_actions(source: Source, words: list[Word]) -> Iterator[Mark]:
    """Yield the places in RETURNING of a function for the action that was taken."""
    call = source.rules.merge_action
    if not call:
        return
    pieces = split(words)
    bare = {piece[0].start for piece in pieces if len(piece) == 3}
    for number, word in enumerate(words):
        after = [w.keyword for w in words[number + 1 : number + 3]]
        if word.keyword == call.upper() and after == ["(", ")"]:
            name = f" AS {quote(call)}" if word.start in bare else ""
            end = words[number + 2].end
            yield Mark(word.start, end, f"_action.{quote(call)}{name}")
