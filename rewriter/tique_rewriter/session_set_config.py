"""``SELECT set_config('name', value, is_local)``: SET as a query, with parameters.

It is understood where a query is nothing else: anywhere else the engine would change the
setting behind the driver's back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.plan import Literal, Parameter
from tique_rewriter.scalars import split
from tique_rewriter.session import SessionPlan
from tique_rewriter.words import check_cut

if TYPE_CHECKING:
    from tique_rewriter.plan import Operand
    from tique_rewriter.source import Source, Word

_NAME = "set_config"
_TRUTHS = {"TRUE": True, "FALSE": False}


@dataclass(frozen=True)
class GivenSetting:
    """One call: its three arguments, and the result's name."""

    name: Operand
    value: Operand
    is_local: Operand
    result: str


@dataclass(frozen=True)
class SetConfig(SessionPlan):
    """A query of calls of ``set_config``."""

    settings: tuple[GivenSetting, ...]


def may_set_config(text: str) -> bool:
    """Whether a statement's text has the function's name in it."""
    return _NAME in text.lower()


def plan_set_config(source: Source) -> SetConfig | None:
    """Return the plan of a query that is nothing but calls; None if it is another one."""
    words = source.words
    if words[0].keyword != "SELECT" or not source.rules.sets_by_query:
        return None
    settings = [_setting(source, piece) for piece in split(words[1:])]
    if not settings or None in settings:
        return None
    source.check_placeholders()
    check_cut(source)
    found = tuple([setting for setting in settings if setting is not None])
    return SetConfig(len(source.lexed.arguments), (), found)


def _setting(source: Source, words: list[Word]) -> GivenSetting | None:
    if [word.keyword for word in words[:2]] == [
        source.rules.function_schema.upper(),
        ".",
    ]:
        words = words[2:]
    if len(words) < 2 or words[1].keyword != "(":
        return None
    raw = source.text[words[0].start : words[0].end]
    if raw != f'"{_NAME}"' and words[0].keyword != _NAME.upper():
        return None
    end = 1 + source.closing(words[1:])
    arguments = [given_value(source, piece) for piece in split(words[2:end])]
    rest = words[end + 1 :]
    if rest and rest[0].keyword == "AS":
        rest = rest[1:]
    if len(rest) > 1 or len(arguments) != 3 or None in arguments:
        return None
    result = source.identifier(rest[0]) if rest else _NAME
    name, value, is_local = [a for a in arguments if a is not None]
    return GivenSetting(name, value, is_local, result)


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
