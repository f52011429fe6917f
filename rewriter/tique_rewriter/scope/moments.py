"""The names of a transaction's moment: ``now()``, ``CURRENT_DATE`` and their like.

Invariant (P12): an application's transaction has one moment, that of its begin, and each name of
it means that moment wherever it stands: in queries, in values and conditions of changes,
in the queries of views, in the text of a column's DEFAULT. To the engine these names mean
*its* transaction, which is one statement long. So the text that it gets has a value in
the place of each name, and the name that the result has natively.

A moment is found by words, and the parser's node of it says whether it is a value there.
PostgreSQL's strings such as ``'now'`` are moments where a conversion is written, or VALUES or
SET gives them to a column of times. Where only the engine knows their type they stay.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.dialects import rules_of
from tique_rewriter.errors import RewriteError
from tique_rewriter.plans.text import Moment, Text
from tique_rewriter.text.placeholders import OWN_STYLE, number_placeholders
from tique_rewriter.text.source import Mark, Source, Span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique_rewriter.schema import Column, Table
    from tique_rewriter.text.source import Word

_STRINGS = {
    "now": "{}",
    "today": "CAST({} AS DATE)",
    "tomorrow": "(CAST({} AS DATE) + 1)",
    "yesterday": "(CAST({} AS DATE) - 1)",
}
_TIMES = re.compile(r"(?i)date|time(?:stamp)?(?:tz|\(\d\)| with(out)? time zone)*")
_RESULTS = frozenset({"expressions", "order", "group", "distinct"})


class Found:
    """A moment in a statement's text; ``span`` and ``node`` are its place."""

    def __init__(self, source: Source, start: int, end: int, form: str) -> None:
        self.span = Span(start, end, 0)
        self.written = source.text[start:end]
        self.form = form
        self.node: exp.Expr = exp.Null()

    def mark(self, form: str) -> Mark:
        """The plan's mark for it."""
        return Mark(self.span.start, self.span.end, Moment(self.written, form))


def moments(source: Source, tree: exp.Expr, tables: Sequence[Table]) -> list[Found]:
    """Return the moments of a statement that are values, in the text's order.

    Raises
    ------
    UnsupportedSQL
        At one that is a relation, or in a form that cannot be replaced; at a word that
        some column has for its name, where that does not have to be quoted.
    """
    found = list(_by_words(source)) if source.rules.moments else []
    if not found:
        return []
    nodes = {node.meta.get("start"): node for node in tree.walk() if node.meta}
    for each in found:
        places = (w.start for w in source.words if w.start >= each.span.start)
        node = next((nodes[at] for at in places if at in nodes), None)
        if node is None or isinstance(node.parent, exp.Table):
            what = f"{each.written} in this place"
            raise source.unsupported(what, each.span.start, "put it in a SELECT")
        each.node = node
        name = each.written.lower()
        if source.rules.names_by_text and (
            any(name in table.spellings for table in tables)
            or any(alias.alias.lower() == name for alias in tree.find_all(exp.Alias))
        ):
            what = f"{each.written} beside a column of that name"
            raise source.unsupported(what, each.span.start, "qualify the column")
    return found


def marks_of(source: Source, found: Sequence[Found]) -> Iterator[Mark]:
    """Yield the plan's marks for moments.

    Where results are called after the function that they are, a subquery has that name.
    """
    for each in found:
        form = each.form
        if not source.rules.names_by_text and _may_be_named(each.node):
            name = each.written.split("(")[0].split(".")[-1].strip().lower()
            if not name.startswith("'") and each.written:
                form = f'(SELECT {form} AS "{name}")'
        yield each.mark(form)


def _may_be_named(node: exp.Expr) -> bool:
    """Whether a result may be called after a node, or has to be equal to one that is."""
    while not isinstance(node.parent, exp.Select | exp.Returning | None):
        node = node.parent
    return node.parent is not None and node.arg_key in _RESULTS


@lru_cache(maxsize=1024)
def timed(text: str, dialect: str) -> Text:
    """Return the text of an expression that has no statement around it, a DEFAULT's."""
    try:
        lexed = number_placeholders(text, OWN_STYLE, lexicon=rules_of(dialect).lexicon)
        source = Source(lexed, rules_of(dialect))
        marks = [each.mark(each.form) for each in _by_words(source)]
    except RewriteError:
        return (text,)
    return source.cut(0, len(source.text), marks)


def given_time(source: Source, value: list[Word], column: Column, text: Text) -> Text:
    """Return the text of a value that a column is given, which may make it a moment."""
    written = source.raw(value[0])
    form = _STRINGS.get(written.strip("'").strip().lower())
    is_string = len(value) == 1 and written[0] == "'" and source.rules.moment_strings
    if form is None or not is_string or not _TIMES.fullmatch(column.type):
        return text
    return (Moment(written, f"CAST({form} AS {column.type})"),)


def _by_words(source: Source) -> Iterator[Found]:
    rules, words, text = source.rules, source.words, source.text
    known = rules.moments
    for number, word in enumerate(words):
        after = [w.keyword for w in words[number + 1 : number + 4]]
        before = [w.keyword for w in words[max(number - 2, 0) : number]]
        start, end, types = word.start, word.end, known.get(word.keyword)
        if not word.keyword and rules.moment_strings:
            form = _STRINGS.get(text[start:end].strip("'").strip().lower())
            if form is not None and _is_converted(source, words, number):
                yield Found(source, start, end, form)
        elif word.keyword == "AGE" and known and after[:1] == ["("]:
            call = words[number + 1 :]
            call = call[: source.closing(call)]
            if len(call) > 1 and not any(
                w.keyword == "," and w.depth == call[0].depth for w in call
            ):
                yield Found(source, call[1].start, call[1].start, "CAST({} AS DATE), ")
        elif f"{word.keyword}()" in known and after[:2] == ["(", ")"]:
            types, end = known[f"{word.keyword}()"], words[number + 2].end
            if before[-1:] == ["."]:
                if before[0].lower() not in (rules.function_schema, "main"):
                    continue
                start = words[number - 2].start
            yield Found(source, start, end, _form(types))
        elif types is not None and before[-1:] not in (["."], ["AS"]):
            precision = ""
            if after[:1] == ["("] and after[2:] == [")"]:
                end = words[number + 3].end
                precision = text[words[number + 1].start : end]
            yield Found(source, start, end, _form(types, precision))


def _form(types: Sequence[str], precision: str = "") -> str:
    form = "{}"
    for type_ in types if types or not precision else ("TIMESTAMPTZ",):
        form = f"CAST({form} AS {type_}{precision})"
    return form


def _is_converted(source: Source, words: Sequence[Word], number: int) -> bool:
    """Whether a string becomes a moment by a conversion that is written beside it."""
    before = [w.keyword for w in words[max(number - 2, 0) : number]]
    after = [w.keyword for w in words[number + 1 : number + 6]]
    if before[-1:] and (_TIMES.fullmatch(before[-1]) or before == ["TIME", "ZONE"]):
        what = f"{before[-1]} {source.raw(words[number])}"
        raise source.unsupported(what, words[number].start, "write now() or CAST")
    if after[:2] == ["::", "TEXT"]:
        after = after[3:] if after[2:3] == [")"] else after[2:]
    is_cast = before == ["CAST", "("] or (before[-1:] == ["("] and after[:1] == ["AS"])
    return (
        len(after) > 1
        and _TIMES.fullmatch(after[1]) is not None
        and (after[0] == "::" or (is_cast and after[0] == "AS"))
    )
