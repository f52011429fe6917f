"""INSERT, UPDATE and DELETE through a view: of the table below it.

A view is *simple* if its query is of one table or simple view, with columns of that by
their own names, and perhaps a condition without a query. The statement then names the
table in the place of the view, and goes on calling it as it called the view. Its rows are
those for which the view's condition is true, too. A row that it writes need not be one,
unless the view has a CHECK OPTION, or one above it a CASCADED one.

*No name means anything else.* The view's condition is qualified by the statement's name of
the table. A column of the table that the view does not have could be meant by a name that
means something else beside a view; so a statement with such a name is refused.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import RewriteError
from tique_rewriter.kinds.define.views import body_of, inside_view
from tique_rewriter.schema import Check
from tique_rewriter.scope.references import changed_view
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import quote
from tique_rewriter.text.placeholders import number_placeholders
from tique_rewriter.text.source import Source
from tique_rewriter.tree.shape import has_only, place_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_rewriter.schema import Table, View
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.placeholders import Lexed
    from tique_rewriter.text.source import Word

_INTO = {"INSERT": "INTO", "DELETE": "FROM", "UPDATE": ""}
_AFTER_TARGET = frozenset(
    [
        *("SET", "FROM", "USING", "WHERE", "RETURNING", "DEFAULT", "OVERRIDING"),
        *("VALUES", "SELECT", "WITH", "TABLE", "(", "ON"),
    ]
)
_QUERIES = frozenset(["SELECT", "VALUES", "WITH", "TABLE", "("])
_SELECT = frozenset(
    {"kind", "expressions", "from_", "where", "hint", "operation_modifiers"}
)
_NAMED = frozenset({"this", "db", "alias", "only"})


@dataclass(frozen=True)
class _Below:
    """The table or view that a simple view is of, and the view's condition.

    The condition is its text, and the columns in it with their places.
    """

    table: Table
    text: str
    columns: tuple[tuple[int, int, str], ...]

    def condition(self, name: str) -> str:
        """The condition, empty for none, where the table is called so."""
        text = self.text
        for start, end, column in sorted(self.columns, reverse=True):
            text = f"{text[:start]}{quote(name)}.{quote(column)}{text[end:]}"
        return text


@dataclass(frozen=True)
class _Target:
    """The name of a changed view, from word number ``first`` up to ``after``."""

    view: View
    first: int
    after: int
    alias: str | None
    """What the statement calls it instead, if it does."""
    end: int
    """The number of the word after that."""


def through_view(source: Source, catalog: Catalog) -> tuple[Source, tuple[Check, ...]]:
    """Return a change of a view as one of the table below; any other as it is.

    With it come the conditions for the rows that it writes (:attr:`Table.conditions`),
    those of the views below first.

    Raises
    ------
    UnsupportedSQL
        The view is not simple, or the statement has what might mean another thing then.
    """
    conditions: tuple[Check, ...] = ()
    if not source.rules.changes_views:
        return source, conditions
    writes_rows = source.words[0].keyword != "DELETE"
    is_cascaded = False
    while (target := _target(source, catalog)) is not None:
        below = _below(source, catalog, target)
        option = target.view.check_option
        is_cascaded |= option == "CASCADED"
        if writes_rows and below.text and (is_cascaded or option):
            own = Check(below.condition("_c"), target.view.table.name)
            conditions = (own, *conditions)
        text = source.lexed.spliced(_splices(source, target, below))
        source = Source(text, source.rules, source.outer)
    return source, conditions


def _target(source: Source, catalog: Catalog) -> _Target | None:
    cursor = Cursor(source)
    verb = cursor.take().keyword
    into = _INTO.get(verb)
    if into is None or (into and not cursor.accept(into)):
        return None
    first = cursor.number
    cursor.accept("ONLY")
    names = []
    while cursor.left and _is_name(source, cursor.word):
        names.append(cursor.name())
        if not cursor.accept("."):
            break
    if not 0 < len(names) < 3:
        return None
    schema = names[0] if len(names) == 2 else None
    view = catalog.view(schema, names[-1])
    if view is None or catalog.named(schema, names[-1]) is not None:
        return None
    after, alias = cursor.number, None
    has_as = cursor.accept("AS")
    if cursor.left and (has_as or cursor.keyword not in _AFTER_TARGET):
        alias = cursor.name()
    return _Target(view, first, after, alias, cursor.number)


def _is_name(source: Source, word: Word) -> bool:
    raw = source.text[word.start]
    return raw == '"' or (bool(word.keyword) and (raw == "_" or raw.isalpha()))


def _below(source: Source, catalog: Catalog, target: _Target) -> _Below:
    view, start = target.view, source.words[target.first].start

    def refusal(reason: str) -> Exception:
        return changed_view(source, view.table.name, start, reason)

    if view.obstacle is not None:
        raise refusal(view.obstacle)
    try:
        # What a statement may not read decides of no change either.
        catalog.query_of(view)
    except RewriteError as error:
        raise refusal(error.message) from None
    inside = inside_view(catalog, source.rules, view.table.schema)
    body = body_of(view, inside, source.rules)
    tree = body.parse()
    from_ = tree.args.get("from_") if isinstance(tree, exp.Select) else None
    node = None if from_ is None else from_.this
    is_simple = (
        has_only(tree, _SELECT)
        and isinstance(node, exp.Table)
        and isinstance(node.this, exp.Identifier)
        and has_only(node, _NAMED)
    )
    if not is_simple:
        raise refusal("its query is more than some columns and rows of one table")
    assert isinstance(node, exp.Table)
    found = inside.find(node.db or None, node.name)
    if found is None:
        below = inside.view(node.db or None, node.name)
        if below is None:
            raise refusal("it is of no table that tique manages")
        found = below.table
    name = node.alias_or_name
    shown = [column.name for column in view.table.columns]
    columns = [each.unalias() for each in tree.expressions]
    if len(columns) != len(shown) or len(set(shown)) < len(shown):
        raise refusal("its columns are not those of its query")
    for column, known in zip(columns, shown, strict=True):
        if not _is_column(column, name, known, found):
            raise refusal(f'its column "{known}" is none of a table by that name')
    where = tree.args.get("where")
    if where is None:
        return _Below(found, "", ())
    if where.find(exp.Query):
        raise refusal("a query in its condition")
    start = body.word("WHERE", 0).end
    columns = []
    for column in where.find_all(exp.Column):
        place = place_of(column)
        is_known = any(known.name == column.name for known in found.columns)
        if not is_known or place is None:
            raise refusal("the way a column in its condition is named")
        columns.append((place[0] - start, place[1] - start, column.name))
    return _Below(found, body.text[start : body.end], tuple(columns))


def _is_column(node: exp.Expr, table: str, name: str, found: Table) -> bool:
    return (
        isinstance(node, exp.Column)
        and node.name == name
        and node.table in ("", table)
        and any(column.name == name for column in found.columns)
    )


def _splices(
    source: Source, target: _Target, below: _Below
) -> Iterator[tuple[int, int, Lexed]]:
    """Yield the pieces that make the statement one about the table below."""
    words, table = source.words, below.table
    verb = words[0].keyword
    shown = [column.name for column in target.view.table.columns]
    is_whole = shown == [column.name for column in table.columns]
    name = target.alias or target.view.table.name
    clauses = _clauses(source, target)
    if not is_whole:
        hidden = {column.name for column in table.columns}.difference(shown)
        _check_names(source, target, name, hidden, clauses)
    place = f"{quote(table.schema)}.{quote(table.name)}"
    if target.alias is None:
        place += f" AS {quote(name)}"
    yield _piece(source, words[target.first].start, words[target.after - 1].end, place)
    if verb == "INSERT":
        if "CONFLICT" in clauses and below.text:
            raise source.unsupported(
                f'ON CONFLICT in INSERT into the view "{target.view.table.name}"',
                words[clauses["CONFLICT"]].start,
                "insert into the table",
            )
        following = source.keywords(target.end)[:2]
        has_list = following[:1] == ["("] and following[1:] not in [
            [q] for q in _QUERIES
        ]
        if not (is_whole or has_list or following[:1] == ["DEFAULT"]):
            end = words[target.end - 1].end
            yield _piece(source, end, end, f" ({', '.join(map(quote, shown))})")
    elif below.text:
        condition = below.condition(name)
        last = clauses.get("RETURNING", len(words))
        end = words[last - 1].end
        if "WHERE" in clauses:
            after = words[clauses["WHERE"]].end
            yield _piece(source, after, after, " (")
            yield _piece(source, end, end, f") AND ({condition})")
        else:
            yield _piece(source, end, end, f" WHERE ({condition})")
    if "RETURNING" in clauses and not is_whole:
        yield from _returned(source, clauses, name, shown)


def _piece(source: Source, start: int, end: int, text: str) -> tuple[int, int, Lexed]:
    lexed = number_placeholders(text, "pyformat", False, lexicon=source.rules.lexicon)
    return start, end, lexed


def _clauses(source: Source, target: _Target) -> dict[str, int]:
    """Return the number of the word that begins each clause behind the target."""
    found: dict[str, int] = {}
    names = ("WHERE", "RETURNING", "CONFLICT", "FROM", "USING")
    for number in range(target.end, len(source.words)):
        word = source.words[number]
        if word.depth == 0 and word.keyword in names:
            found.setdefault(word.keyword, number)
    return found


def _check_names(
    source: Source,
    target: _Target,
    name: str,
    hidden: set[str],
    clauses: dict[str, int],
) -> None:
    """Refuse names of columns that the table has and the view has not."""
    words = source.words
    view = target.view.table
    is_insert = words[0].keyword == "INSERT"
    end = len(words)
    if is_insert:
        # A query between them is another scope.
        first = min([clauses.get(c, end) for c in ("CONFLICT", "RETURNING")])
        closing = target.end
        if source.keywords(target.end)[:1] == ["("]:
            closing += source.closing(words[target.end :])
        numbers = [*range(target.end, closing), *range(first, end)]
    else:
        numbers = list(range(target.end, end))
    for number in numbers:
        word = words[number]
        if not _is_name(source, word):
            continue
        named = source.identifier(word)
        before, after = (source.keywords(i)[:1] for i in (number - 1, number + 1))
        if before == ["."] and source.identifier(words[number - 2]) != name:
            continue
        is_row = named == name and before == ["("] and after == [")"]
        if is_row or named in hidden:
            raise changed_view(
                source, view.name, word.start, f'beside the name "{named}"'
            )


def _returned(
    source: Source, clauses: dict[str, int], name: str, shown: list[str]
) -> Iterator[tuple[int, int, Lexed]]:
    """Yield the view's columns for a star, which would stand for all of the table's."""
    words, first = source.words, clauses["RETURNING"] + 1
    keywords = source.keywords(first)
    if keywords == ["*"] and not {"FROM", "USING"} & clauses.keys():
        columns = ", ".join(f"{quote(name)}.{quote(column)}" for column in shown)
        yield _piece(source, words[first].start, words[first].end, columns)
        return
    for before, word in zip(["RETURNING", *keywords], words[first:], strict=False):
        if word.keyword == "*" and before in ("RETURNING", ",", "."):
            raise source.unsupported(
                "* in RETURNING of a change of a view", word.start, "list the columns"
            )
