"""Calls of functions that are a whole query, with what the driver needs of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tique_rewriter.plan import Literal, Parameter
from tique_rewriter.scalars import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.plan import Operand
    from tique_rewriter.source import Source, Word

_TRUTHS = {"TRUE": True, "FALSE": False}


class Call(NamedTuple):
    """A call: its arguments, None for those that are expressions, and the result's name."""

    arguments: Sequence[Operand | None]
    result: str


def call(source: Source, words: list[Word], name: str) -> Call | None:
    """Return the call of the function ``name`` that these words are; None if they are none."""
    schema = (source.rules.function_schema or "").upper()
    if [word.keyword for word in words[:2]] == [schema, "."]:
        words = words[2:]
    if len(words) < 2 or words[1].keyword != "(":
        return None
    raw = source.raw(words[0])
    if raw != f'"{name}"' and words[0].keyword != name.upper():
        return None
    end = 1 + source.closing(words[1:])
    arguments = [given_value(source, piece) for piece in split(words[2:end])]
    rest = words[end + 1 :]
    if rest and rest[0].keyword == "AS":
        rest = rest[1:]
    if len(rest) > 1:
        return None
    return Call(arguments, source.identifier(rest[0]) if rest else name)


def given_value(source: Source, words: list[Word]) -> Operand | None:
    """The value of an argument; None if it is neither written out nor a placeholder."""
    if [word.keyword for word in words[-2:]] in (["::", "TEXT"], ["::", "BOOLEAN"]):
        words = words[:-2]
    if not words:
        return None
    word = words[0]
    raw = source.text[word.start : words[-1].end]
    if word.start in source.lexed.starts and raw[1:].isdigit():
        return Parameter(int(raw[1:]))
    if len(words) > 1:
        return None
    if word.keyword in _TRUTHS:
        return Literal(_TRUTHS[word.keyword])
    if word.keyword == "NULL":
        return Literal(None)
    if raw.startswith("'") and raw.endswith("'") and len(raw) > 1:
        return Literal(raw[1:-1].replace("''", "'"))
    return None
