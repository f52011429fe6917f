"""Tables as of the past: ``t AT (VERSION => …)`` and ``t FOR SYSTEM_TIME AS OF …``.

The parser says which table such a clause belongs to; what it says is read by words. The
engine sees none of it: the words are cut out of a plan's text, and the driver fills the
table's hole with its rows of then. A placeholder in it stays in the text, around the hole, in a
condition that always holds: engines refuse values of placeholders that a text lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import NotAPoint
from tique_rewriter.plans.past import TIMESTAMP, VERSION, Past, as_point
from tique_rewriter.plans.plan import Literal, Parameter
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.source import Mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tique_rewriter.errors import UnsupportedSQL
    from tique_rewriter.plans.plan import Operand, Plan
    from tique_rewriter.scope.reads import Read
    from tique_rewriter.text.source import Source, Word

_PARTS = ("when", "version")
"""The parser's names for it."""
_KINDS = {
    **dict.fromkeys((TIMESTAMP, "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE"), TIMESTAMP),
    VERSION: VERSION,
}
_LONGEST_FIRST = sorted(_KINDS, key=len, reverse=True)


def is_past(node: exp.Expr) -> bool:
    """Whether a table is read as of the past."""
    return any(node.args.get(part) for part in _PARTS)


def refuse_past(source: Source, node: exp.Expr, what: str) -> None:
    """Refuse a table as of the past.

    Raises
    ------
    UnsupportedSQL
        It is one; ``what`` says where.
    """
    if is_past(node):
        raise _refusal(source, what)


def note_past(source: Source, read: Read) -> list[Word]:
    """Note the past of a read, if it is one; return the words that say so.

    Raises
    ------
    UnsupportedSQL
        For a form of the clause that is not understood, and for a temporary table.
    """
    if not is_past(read.node):
        return []
    if read.table.is_temporary:
        raise _refusal(source, "of a temporary table", "it has no past")
    words, name = source.words, source.number(read.span.start)
    depth = words[name].depth
    for number in range(source.number(read.span.end), len(words)):
        cursor = Cursor(source, number=number)
        if words[number].depth == depth and cursor.accept("AT (", _SYSTEM_TIME):
            is_at = cursor.before.keyword == "("
            read.past = _read_at(cursor) if is_at else read_point(cursor)
            return words[number : cursor.number]
    raise _refusal(source, "of this form")


_SYSTEM_TIME = "FOR SYSTEM_TIME AS OF"


def _read_at(cursor: Cursor) -> Past:
    kind = cursor.accept(VERSION, TIMESTAMP)
    if not kind or not cursor.accept("=>"):
        raise _refusal(cursor.source, "of this form", "VERSION or TIMESTAMP")
    past = read_point(cursor, kind)
    if not cursor.accept(")"):
        raise _no_value(cursor)
    return past


def read_point(cursor: Cursor, kind: str = "") -> Past:
    """Read a literal, before which its type may stand, or a placeholder.

    Raises
    ------
    RewriteError
        It is anything else, or no point of the past.
    """
    start = cursor.start
    named = _KINDS.get(cursor.accept(*_LONGEST_FIRST), "")
    if cursor.is_done or (kind and named not in ("", kind)):
        raise _no_value(cursor)
    past = Past(_operand(cursor), kind or named)
    if isinstance(past.operand, Literal):
        try:
            as_point(past.operand.value, past.kind)
        except NotAPoint as error:
            raise cursor.source.error(NotAPoint, error.message, start) from None
    return past


def _operand(cursor: Cursor) -> Operand:
    source, word = cursor.source, cursor.word
    raw = source.raw(word)
    if word.start in source.lexed.starts:
        ((_, number),) = source.placeholders(word.start, word.end)
        # Some parsers take it for a sign and a number.
        cursor.number += 1 if len(raw) > 1 else 2
        return Parameter(number)
    cursor.take()
    if raw.isascii() and raw.isdigit():
        return Literal(int(raw))
    if raw.startswith("'") and raw.endswith("'") and "\\" not in raw:
        return Literal(raw[1:-1].replace("''", "'"))
    cursor.number -= 1
    raise _no_value(cursor)


def past_marks(read: Read, words: Sequence[Word]) -> Iterator[Mark]:
    """Yield the plan's text for a table as of the past, which these words say."""
    yield Mark(words[0].start, words[-1].end, "")
    assert read.past is not None
    operand = read.past.operand
    if isinstance(operand, Parameter):
        start, end = read.span.start, read.span.end
        inner = f" AS {read.qualifier}" if read.own_alias else ""
        outer = "" if read.own_alias else f" AS {read.qualifier}"
        given = f"CAST(${operand.number} AS TEXT) IS NOT NULL"
        yield Mark(start, start, "(SELECT * FROM ")
        yield Mark(end, end, f"{inner} WHERE {given}){outer}")


def expect_present(source: Source, plan: Plan, where: str, advice: str = "") -> None:
    """Refuse a query of the past.

    Raises
    ------
    UnsupportedSQL
        It reads a table as of the past; ``where`` it stands.
    """
    if any(reference.past for reference in plan.references):
        raise _refusal(source, where, advice)


def check_past(source: Source, tree: exp.Expr, reads: Sequence[Read]) -> None:
    """Refuse the past of relations that are not managed.

    Raises
    ------
    UnsupportedSQL
        There is one.
    """
    known = {id(read.node) for read in reads}
    for node in tree.find_all(exp.Table):
        if id(node) not in known:
            refuse_past(source, node, "of anything but a managed table or view")


def _no_value(cursor: Cursor) -> UnsupportedSQL:
    return cursor.source.unsupported(
        "this point of the past", cursor.start, "write a literal or a placeholder"
    )


def _refusal(source: Source, what: str, advice: str = "") -> UnsupportedSQL:
    place = source.find("AT", "SYSTEM_TIME")
    return source.unsupported(f"AT (time travel) {what}", place, advice)
