"""Results without an alias in which a managed table is read.

Some engines call such a result by its text, and that text would be the filled one, with
the values of rows in it. So the name that the application's own text has is put after
it: queries around it may use the name, and it is the result's.

MonetDB numbers such results, and of SELECT DISTINCT gives none at all where it knows the
rows to be distinct (``backends/tique_backends/monetdb/README.md``), unless they are named.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plans.text import UNNAMED, Label, Variant
from tique_rewriter.scope.outputs import star_of
from tique_rewriter.text.source import Mark
from tique_rewriter.tree.ancestors import Ancestors
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique_rewriter.safety.listings import Listed
    from tique_rewriter.scope.moments import Found
    from tique_rewriter.scope.reads import Read
    from tique_rewriter.text.source import Source, Word

_ENDS = frozenset(
    [
        *("FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT"),
        *("OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT", "USING", "FOR"),
    ]
)


@dataclass(frozen=True)
class _Items:
    """The words of a select list, its place, and the number of the word after it.

    ``distinct`` is the word DISTINCT before it, if it is there.
    """

    items: list[list[Word]]
    start: int
    end: int
    following: int
    depth: int
    distinct: Word | None


def labels(
    source: Source, tree: exp.Expr, reads: Sequence[Read | Listed | Found]
) -> list[Mark]:
    """Return a label for every result that the engine would name after its filled text.

    Raises
    ------
    UnsupportedSQL
        Where the text of a result is not certain.
    """
    if not source.rules.names_by_text:
        return []
    results = Ancestors(_is_of_a_list)
    unnamed = [
        (read, _lists_above(source, read, results))
        for read in sorted(reads, key=lambda read: read.span.start)
    ]
    if not any(above for _, above in unnamed):
        return []
    names = {name.meta.get("start") for name in tree.find_all(exp.Identifier)}
    lists = sorted(_lists(source, names), key=lambda items: -items.start)
    inside: list[_Items] = []
    found: dict[int, Mark] = {}
    for read, above in unnamed:
        at = read.span.start
        while lists and lists[-1].start <= at:
            inside.append(lists.pop())
        inside = [items for items in inside if at < items.end]
        around = inside[::-1]
        if len(around) != len(above):
            raise _unclear(source, at)
        for items, node in zip(around, above, strict=True):
            parent, number = node.parent, node.index
            assert parent is not None
            assert number is not None
            if len(items.items) != len(parent.expressions):
                raise _unclear(source, at)
            words = items.items[number]
            if not words or not words[0].start <= at < words[-1].end:
                raise _unclear(source, at)
            if not _is_named(node):
                end = words[-1].end
                text = source.text[words[0].start : end]
                if _uses_windows(node):
                    text += f" {_windows(source, items, names)}"
                found[end] = Mark(end, end, Label(text))
    return list(found.values())


def distinct_names(source: Source, tree: exp.Expr) -> list[Mark]:
    """Return a name for every result of the outermost SELECT DISTINCT that has none.

    The engine is asked what they are called of the text without these, and without
    DISTINCT, which makes no difference to names.

    Raises
    ------
    UnsupportedSQL
        Where it is not certain which words are a result.
    """
    if not source.rules.distinct_needs_names:
        return []
    select, depth = _outermost(tree)
    if select is None or not select.args.get("distinct"):
        return []
    results: list[exp.Expr] = select.expressions
    unnamed = [
        number
        for number, item in enumerate(results)
        if not isinstance(item, exp.Column) and not _is_named(item)
    ]
    if not unnamed:
        return []
    names = {name.meta.get("start") for name in tree.find_all(exp.Identifier)}
    lists = [
        (items.distinct, items.items)
        for items in _lists(source, names)
        if items.depth == depth and items.distinct is not None
    ]
    if len(lists) != 1 or len(lists[0][1]) != len(results) or not all(lists[0][1]):
        what = "a result of SELECT DISTINCT in this place"
        raise _unclear(source, source.find("DISTINCT"), what)
    ((distinct, items),) = lists
    ends = [items[number][-1].end for number in unnamed]
    return [
        Mark(distinct.start, distinct.end, Variant("", "DISTINCT")),
        *(
            Mark(end, end, Variant("", f" AS {UNNAMED}{number}"))
            for number, end in enumerate(ends, 1)
        ),
    ]


def _outermost(tree: exp.Expr) -> tuple[exp.Select | None, int]:
    """Return the outermost query, if it is one SELECT, and the brackets around it."""
    query = tree.expression if isinstance(tree, exp.Insert) else tree
    depth = 0
    while isinstance(query, exp.Subquery):
        query = query.this
        depth += 1
    return (query if isinstance(query, exp.Select) else None), depth


def _unclear(
    source: Source, start: int, what: str = "a result with a subquery"
) -> Exception:
    return source.unsupported(
        f"{what} and without a name",
        start,
        "give every result of the query an alias",
    )


def _lists_above(
    source: Source, read: Read | Listed | Found, results: Ancestors
) -> list[exp.Expr]:
    """Return the results, from the innermost out, that a table is read in."""
    found: list[exp.Expr] = []
    current = results.nearest(read.node)
    while current is not None:
        parent = current.parent
        assert parent is not None
        if current.arg_key == "expressions":
            found.append(current)
        elif any(
            _uses_windows(item) and not _is_named(item) for item in parent.expressions
        ):
            raise _unclear(source, read.span.start)
        current = results.nearest(parent)
    return found


def _is_of_a_list(node: exp.Expr) -> bool:
    """Whether a node is a result, or a window that results may be of."""
    of = isinstance(node.parent, exp.Select | exp.Returning)
    return of and node.arg_key in ("expressions", "windows")


def _uses_windows(item: exp.Expr) -> bool:
    """Whether a result is of a window that is defined elsewhere, by its name."""
    return any(window.args.get("alias") for window in item.find_all(exp.Window))


def _is_named(item: exp.Expr) -> bool:
    """Whether a result has a name that does not depend on its text."""
    # The parser's alias of a window is the name of its definition.
    if (item.alias and not isinstance(item, exp.Window)) or star_of(item) is not None:
        return True
    select = item.parent
    return any(
        columns.find_ancestor(exp.Select) is select
        for columns in item.find_all(exp.Columns)
    )


def _lists(source: Source, names: set[int | None]) -> Iterator[_Items]:
    """Yield the select lists of a statement's text, and RETURNING's."""
    words = source.words
    for number, word in enumerate(words):
        is_list = word.keyword == "SELECT" or (
            word.keyword == "RETURNING" and word.depth == 0
        )
        if not is_list or word.start in names:
            continue
        first = number + 1
        distinct = None
        if words[first : first + 1] and words[first].keyword in ("DISTINCT", "ALL"):
            distinct = words[first] if words[first].keyword == "DISTINCT" else None
            first += 1
            if words[first : first + 1] and words[first].keyword == "ON":
                first += 2 + source.closing(words[first + 1 :])
        last = _end_of_list(words, first, word.depth, names)
        items = split(words[first:last]) or [[]]
        if not items[-1] and len(items) > 1:
            # A comma after the last one is allowed.
            items.pop()
        start = words[first].start if first < len(words) else source.end
        end = words[last].start if last < len(words) else source.end
        yield _Items(items, start, end, last, word.depth, distinct)


def _windows(source: Source, items: _Items, names: set[int | None]) -> str:
    """Return the WINDOW clause of the query that has this select list."""
    clause: list[Word] = []
    depth = items.depth
    for word in islice(source.words, items.following, None):
        if word.depth < depth or (word.depth == depth and word.keyword == ")"):
            break
        is_name = word.depth > depth or word.start in names
        if clause and not is_name and word.keyword in _ENDS:
            break
        if clause or (word.keyword == "WINDOW" and not is_name):
            clause.append(word)
    return source.words_text(clause) if clause else ""


def _end_of_list(
    words: Sequence[Word], first: int, depth: int, names: set[int | None]
) -> int:
    for number in range(first, len(words)):
        word = words[number]
        if word.depth < depth or (word.depth == depth and word.keyword == ")"):
            return number
        if word.depth > depth or word.keyword not in _ENDS or word.start in names:
            continue
        before = words[number - 1].keyword
        # IS DISTINCT FROM, and WITHIN GROUP, go on.
        if (before, word.keyword) not in (("DISTINCT", "FROM"), ("WITHIN", "GROUP")):
            return number
    return len(words)
