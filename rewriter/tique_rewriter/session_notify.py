"""NOTIFY, and ``SELECT pg_notify(channel, payload)`` as a whole statement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.plan import Literal
from tique_rewriter.session import SessionPlan
from tique_rewriter.session_calls import call, given_value

if TYPE_CHECKING:
    from tique_rewriter.plan import Operand
    from tique_rewriter.source import Source

_FUNCTION = "pg_notify"


@dataclass(frozen=True)
class Notify(SessionPlan):
    """A message for listeners; ``result`` is its column's name in a query."""

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
    found = call(source, words[1:], _FUNCTION)
    if found is None or len(found.arguments) != 2:
        return None
    channel, payload = found.arguments
    if channel is None or payload is None:
        return None
    return Notify(len(source.lexed.arguments), (), channel, payload, found.result)
