"""NOTIFY, and ``SELECT pg_notify(channel, payload)`` as a whole statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.plan import Literal
from tique_rewriter.scalars import split
from tique_rewriter.session import SessionPlan
from tique_rewriter.session_set_config import given_value
from tique_rewriter.words import check_cut

if TYPE_CHECKING:
    from tique_rewriter.plan import Operand
    from tique_rewriter.source import Source

_FUNCTION = "pg_notify"


@dataclass(frozen=True)
class Notify(SessionPlan):
    """A message for those who listen; ``result`` is its column's name in a query."""

    channel: Operand
    payload: Operand
    result: str | None


def may_notify(text: str) -> bool:
    """Whether a statement's text has the function's name in it."""
    return _FUNCTION in text.lower()


def plan_notify(source: Source) -> Notify:
    """Return the plan of NOTIFY channel [, 'payload']."""
    words = source.words
    if len(words) < 2:
        raise source.syntax("a channel is missing", words[0].start)
    channel = Literal(source.identifier(words[1]))
    payload: Operand | None = Literal("")
    if len(words) > 2:
        payload = given_value(source, words[3:])
        is_text = isinstance(payload, Literal) and isinstance(payload.value, str)
        if words[2].keyword != "," or not is_text:
            raise source.syntax("a text in quotes is expected", words[2].start)
    assert payload is not None
    return Notify(0, (), channel, payload, None)


def plan_notifying_query(source: Source) -> Notify | None:
    """Return the plan of a query that is nothing but a call; None if it is another one."""
    words = source.words
    if words[0].keyword != "SELECT" or not source.rules.notifies:
        return None
    words = words[1:]
    schema = (source.rules.function_schema or "").upper()
    if [word.keyword for word in words[:2]] == [schema, "."]:
        words = words[2:]
    if len(words) < 2 or words[1].keyword != "(":
        return None
    raw = source.text[words[0].start : words[0].end]
    if raw != f'"{_FUNCTION}"' and words[0].keyword != _FUNCTION.upper():
        return None
    end = 1 + source.closing(words[1:])
    arguments = [given_value(source, piece) for piece in split(words[2:end])]
    rest = words[end + 1 :]
    if rest and rest[0].keyword == "AS":
        rest = rest[1:]
    if len(rest) > 1 or len(arguments) != 2:
        return None
    channel, payload = arguments
    if channel is None or payload is None:
        return None
    result = source.identifier(rest[0]) if rest else _FUNCTION
    source.check_placeholders()
    check_cut(source)
    return Notify(len(source.lexed.arguments), (), channel, payload, result)
