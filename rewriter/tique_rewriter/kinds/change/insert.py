"""Plans of INSERT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import AlwaysGenerated
from tique_rewriter.kinds.change.clauses import find_clause, plan_returning
from tique_rewriter.kinds.change.conflict import (
    conflict_parts,
    plan_alternative,
    plan_conflict,
)
from tique_rewriter.kinds.define.generated import check_not_generated
from tique_rewriter.kinds.query.query import references_of
from tique_rewriter.local.local_expressions import kernel
from tique_rewriter.plans.change_plans import InsertQuery, InsertRows
from tique_rewriter.plans.plan import Expression
from tique_rewriter.schema import Column
from tique_rewriter.scope.moments import given_time
from tique_rewriter.scope.reads import Read, Reads
from tique_rewriter.scope.references import (
    column_position,
    find_reads,
    find_table,
    table_span,
)
from tique_rewriter.scope.relations import results_of
from tique_rewriter.scope.rows import check_rows
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import check_case
from tique_rewriter.tree.scalars import check_default, check_given, check_scalar, split
from tique_rewriter.tree.shape import clause_words

if TYPE_CHECKING:
    from tique_rewriter.errors import RewriteError
    from tique_rewriter.plans.change_plans import Conflict
    from tique_rewriter.plans.plan import Reference
    from tique_rewriter.schema import Table
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Source, Word

_PARTS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "overwrite": ("INSERT OVERWRITE", ("OVERWRITE",), ""),
    "ignore": ("INSERT IGNORE", ("IGNORE",), "use ON CONFLICT DO NOTHING"),
}
_KNOWN = frozenset(
    [
        *("this", "expression", "default", "with_", "alternative", "conflict"),
        *("returning", "by_name"),
    ]
)
_ADVICE = {"alternative": "use ON CONFLICT", "by_name": "give a column list"}
_GENERATED = Column("", "")
"""In the place of a generated column, for which only DEFAULT may be given."""

_BODIES = frozenset({"SELECT", "FROM", "VALUES", "WITH", "TABLE", "DEFAULT", "("})


class _Insert:
    """An INSERT taken apart: the target, the body, the clauses after it.

    ``insert`` is the number of the word INSERT; the body's words are those from
    ``start`` to before ``end``, those of ON CONFLICT follow to before ``returning``. Values
    belong to ``slots``: a column's position, or None for a generated column.
    """

    def __init__(self, source: Source, catalog: Catalog) -> None:
        by_position = system = user = None
        if source.rules.inserts_by_position:
            source, by_position = _without(source, "BY POSITION")
        if source.rules.overrides_identity:
            source, system = _without(source, "OVERRIDING SYSTEM VALUE")
            if system is None:
                source, user = _without(source, "OVERRIDING USER VALUE")
        self.overrides, self.keeps_generated = system is not None, user
        tree = source.parse()
        if not isinstance(tree, exp.Insert):
            raise source.unsupported("this statement", source.words[0].start)
        _check_parts(source, tree)
        self.source = source
        self.tree = tree
        self.insert = clause_words(source, tree, "INSERT")[0][0]
        into = self.insert + (3 if tree.args.get("alternative") else 1)
        if source.keywords(into)[:1] != ["INTO"]:
            raise source.syntax("INSERT without INTO", source.words[self.insert].start)
        listed = tree.this.expressions if isinstance(tree.this, exp.Schema) else []
        node = tree.this.this if isinstance(tree.this, exp.Schema) else tree.this
        if not isinstance(node, exp.Table) or node.args.get("joins"):
            raise source.unsupported(
                "this form of INSERT", source.find("INTO"), "name just the table"
            )
        self.table = find_table(source, node, catalog)
        self.target = Read(node, self.table, table_span(source, node, -1))
        check_case(source, tree, [self.table])
        self.listed = bool(listed)
        if by_position is not None and self.listed:
            raise source.syntax(
                "a list of columns before BY POSITION", by_position.start
            )
        self.slots = _columns(source, self.table, listed)
        self.columns = tuple([i for i in self.slots if i is not None])
        self.start = _after_target(source, self.target, self.listed)
        self.by_name = bool(tree.args.get("by_name"))
        if self.by_name:
            self._name_columns()
        self.returning = len(source.words)
        if tree.args.get("returning"):
            self.returning = find_clause(source, tree, "RETURNING")
        self.end = self.returning
        if (conflict := tree.args.get("conflict")) is not None:
            verb = "DUPLICATE" if conflict.args.get("duplicate") else "CONFLICT"
            self.end = find_clause(source, tree, verb) - 1
        if self.end <= self.start:
            raise source.syntax(
                "an INSERT without values", source.words[self.end - 1].start
            )
        self.reads, self.references = self._read(catalog)

    def _read(self, catalog: Catalog) -> tuple[Reads, tuple[Reference, ...]]:
        with_ = self.tree.args.get("with_")
        clauses = conflict_parts(self.tree)
        if returning := self.tree.args.get("returning"):
            clauses.append(returning)
        if with_ and any(clause.find(exp.Table) for clause in clauses):
            raise self.source.unsupported(
                "WITH before an INSERT with a subquery in ON CONFLICT or RETURNING",
                self.source.words[0].start,
                "write WITH in the query and in the subquery",
            )
        for clause in clauses:
            check_rows(self.source, clause, Reads([self.target]))
        parts = [part for part in (with_, self.tree.expression, *clauses) if part]
        if not parts:
            return Reads(), ()
        reads = find_reads(self.source, parts, catalog)
        return reads, references_of(self.source, self.tree, reads, parts)

    def _name_columns(self) -> None:
        """Check INSERT … BY NAME, whose columns are those that the query's results name."""
        words = self.source.words
        start = words[self.start].start
        if self.listed:
            raise self.source.syntax("a list of columns before BY NAME", start)
        self.start += 2
        if not isinstance(self.tree.expression, exp.Query) or isinstance(
            self.tree.expression, exp.Values
        ):
            raise self.source.syntax("BY NAME without a query", start)

    def _named(self) -> tuple[int, ...] | None:
        """The columns that the query's results name; None if the engine must say."""
        source = self.source
        results = results_of(source, self.tree.expression, self.reads)
        if results is None or not all(results):
            return None
        start = source.words[self.start - 2].start
        columns: list[int] = []
        for name in results:
            columns.append(column_position(source, self.table, name, start, columns))
        return tuple(columns)

    @property
    def parameters(self) -> int:
        return self.source.parameters_before(self.source.words[self.end - 1].end)

    def conflict(self) -> Conflict | None:
        """Return the plan of ON CONFLICT or of INSERT OR, if there is one."""
        source, tree = self.source, self.tree
        words = source.words[self.end : self.returning]
        alternative = tree.args.get("alternative")
        if alternative and words:
            raise source.syntax("ON CONFLICT after INSERT OR", words[0].start)
        if alternative:
            return plan_alternative(source, alternative, self.table, self.columns)
        if not words:
            return None
        return plan_conflict(source, tree, self.target, words, self.reads)

    def rows(self, body: exp.Values) -> InsertRows:
        """Return the plan of INSERT … VALUES."""
        source = self.source
        if self.tree.args.get("with_"):
            raise source.unsupported(
                "WITH before INSERT … VALUES",
                source.words[0].start,
                "use INSERT … SELECT",
            )
        row = body.expressions[0]
        if source.rules.fewer_values and not self.listed and isinstance(row, exp.Tuple):
            self.slots = self.slots[: len(row.expressions)]
        slots = [_GENERATED if i is None else self.table.columns[i] for i in self.slots]
        words = source.words[self.start + 1 : self.end]
        rows = self._without_generated(_rows(source, body, words, self.reads, slots))
        given = [self.table.columns[i] for i in self.columns]
        if self.keeps_generated is not None:
            own = [self._is_generated(column) for column in given]
            rows = tuple(
                tuple(
                    None if skip else value
                    for skip, value in zip(own, row, strict=True)
                )
                for row in rows
            )
        for position, column in enumerate(given):
            if any(row[position] is not None for row in rows):
                self._check_given(column)
        return self.given(self.columns, rows)

    def _without_generated(
        self, rows: tuple[tuple[Expression | None, ...], ...]
    ) -> tuple[tuple[Expression | None, ...], ...]:
        """The rows without DEFAULT for generated columns, which may stand in their places."""
        self.columns = tuple([i for i in self.slots if i is not None])
        if None not in self.slots:
            return rows
        kept = []
        for row in rows:
            pairs = list(zip(self.slots, row, strict=True))
            if any(i is None and value is not None for i, value in pairs):
                raise self._given_generated()
            kept.append(tuple([value for i, value in pairs if i is not None]))
        return tuple(kept)

    def _given_generated(self) -> RewriteError:
        return self.source.error(
            AlwaysGenerated,
            "a value for a generated column",
            self.source.words[self.start].start,
            "write DEFAULT, or leave it out",
        )

    def _queried_columns(self) -> tuple[int, ...]:
        """The columns of a query's results.

        Raises
        ------
        AlwaysGenerated
            One of them is generated.
        UnsupportedSQL
            The table has generated ones, and it is not known how many results there are.
        """
        source, slots = self.source, self.slots
        if not self.listed and (None in slots or source.rules.fewer_values):
            results = results_of(source, self.tree.expression, self.reads)
            if results is not None:
                slots = slots[: len(results)]
            elif None in slots:
                raise source.unsupported(
                    "INSERT of a query without a list of columns, into a table with a "
                    "generated column",
                    source.words[self.start].start,
                    "list the columns",
                )
        if None in slots:
            raise self._given_generated()
        return tuple([i for i in slots if i is not None])

    def _is_generated(self, column: Column) -> bool:
        """Whether OVERRIDING USER VALUE puts the column's own value in the given one's place.

        Raises
        ------
        UnsupportedSQL
            The catalog does not tell GENERATED BY DEFAULT from SERIAL, whose values stay.
        """
        if not column.is_always and "nextval" in (column.default or "").lower():
            assert self.keeps_generated is not None
            raise self.source.unsupported(
                f'OVERRIDING USER VALUE with the column "{column.name}", which has a sequence,',
                self.keeps_generated.start,
                "leave its values out",
            )
        return column.is_always

    def _check_given(self, column: Column) -> None:
        if not self.overrides:
            check_given(self.source, column, self.source.words[self.start].start)

    def given(
        self,
        columns: tuple[int, ...],
        rows: tuple[tuple[Expression | None, ...], ...],
    ) -> InsertRows:
        """Return the plan of INSERT of these rows, which have values for these columns."""
        return InsertRows(
            self.parameters,
            self.references,
            self.table,
            columns,
            rows,
            self.conflict(),
            plan_returning(self.source, self.tree, self.target, self.reads),
        )

    def query(self) -> InsertQuery:
        """Return the plan of INSERT … SELECT."""
        source, marks = self.source, self.reads.marks
        is_named_later = False
        if self.by_name:
            named = self._named()
            is_named_later = named is None
            self.columns = named or ()
            if is_named_later and self.tree.args.get("alternative"):
                raise source.unsupported(
                    "BY NAME after INSERT OR with results that the query does not name",
                    source.find("NAME"),
                    "give each result an alias",
                )
        else:
            self.columns = self._queried_columns()
        for position in self.columns:
            column = self.table.columns[position]
            if self.keeps_generated is not None and self._is_generated(column):
                raise source.unsupported(
                    "OVERRIDING USER VALUE before a query",
                    self.keeps_generated.start,
                    "leave the column out",
                )
            self._check_given(column)
        first, last = source.words[self.start], source.words[self.end - 1]
        query = source.cut(first.start, last.end, marks)
        if self.tree.args.get("with_"):
            if first.keyword == "WITH":
                raise source.unsupported("a second WITH", first.start, "write one WITH")
            before = source.words[0].start, source.words[self.insert].start
            query = source.cut(*before, marks) + query
        return InsertQuery(
            self.parameters,
            self.references,
            self.table,
            self.columns,
            query,
            self.conflict(),
            plan_returning(source, self.tree, self.target, self.reads),
            is_named_later,
        )


def plan_insert(source: Source, catalog: Catalog) -> InsertRows | InsertQuery:
    """Return the plan of INSERT … VALUES, DEFAULT VALUES or a query."""
    insert = _Insert(source, catalog)
    if insert.tree.args.get("default"):
        return insert.given((), ((),))
    body = insert.tree.expression
    first = insert.source.words[insert.start]
    if isinstance(body, exp.Values) and first.keyword == "VALUES":
        return insert.rows(body)
    return insert.query()


def _without(source: Source, phrase: str) -> tuple[Source, Word | None]:
    """Return the statement without words before its body, and the first of them.

    They mean nothing to the parser. None if they are not there.
    """
    keywords = source.keywords()
    into = keywords.index("INTO") if "INTO" in keywords else 0
    cursor = Cursor(source, number=into)
    while not cursor.follows(phrase):
        is_body = cursor.keyword in _BODIES and cursor.word.depth == 0
        if is_body or not cursor.left:
            return source, None
        cursor.take()
    word, first, keyword = cursor.word, cursor.number, cursor.keyword
    cursor.accept(phrase)
    if cursor.follows(keyword):
        raise source.syntax(f"{keyword} after {phrase}", cursor.start)
    return source.without(cursor.words[first : cursor.number]), word


def _check_parts(source: Source, tree: exp.Insert) -> None:
    for part, (name, words) in source.rules.refused_parts.get(exp.Insert, {}).items():
        if tree.args.get(part):
            raise source.unsupported(name, source.find(*words), _ADVICE[part])
    for part, value in tree.args.items():
        if value and part not in _KNOWN:
            construct, keywords, advice = _PARTS.get(
                part, (f"INSERT with {part.strip('_').upper()}", ("INSERT",), "")
            )
            raise source.unsupported(construct, source.find(*keywords), advice)


def _columns(
    source: Source, table: Table, listed: list[exp.Expr]
) -> tuple[int | None, ...]:
    if not listed and source.rules.generated_takes_default:
        return tuple([table.positions.get(name.lower()) for name in table.names])
    if not listed:
        return tuple(range(len(table.columns)))
    columns: list[int | None] = []
    for node in listed:
        start = int(node.meta.get("start") or 0)
        if not isinstance(node, exp.Identifier):
            raise source.unsupported("this list of columns", source.find("INTO"))
        if table.computed(node.name) is not None:
            if not source.rules.generated_takes_default:
                check_not_generated(source, table, node.name, start)
            columns.append(None)
            continue
        columns.append(column_position(source, table, node.name, start, columns))
    return tuple(columns)


def _after_target(source: Source, target: Read, listed: bool) -> int:
    """Return the number of the first word after the table's name and column list."""
    node, words = target.node, source.words
    number = source.number(target.span.end)
    if node.alias:
        if words[number].keyword != "AS" or node.alias_column_names:
            raise source.unsupported("this form of alias", words[number].start)
        number += 2
    if listed:
        if words[number].keyword != "(":
            raise source.unsupported("this form of INSERT", words[number].start)
        number += source.closing(words[number:]) + 1
    return number


def _rows(
    source: Source,
    body: exp.Values,
    words: list[Word],
    reads: Reads,
    columns: list[Column],
) -> tuple[tuple[Expression | None, ...], ...]:
    """Return the rows of VALUES, given its words."""
    pieces = split(words)
    if len(pieces) != len(body.expressions):
        raise source.unsupported("this form of VALUES", words[0].start)
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
    text = source.cut(words[0].start, words[-1].end, reads.marks)
    return Expression(given_time(source, words, column, text), kernel(source, node))
