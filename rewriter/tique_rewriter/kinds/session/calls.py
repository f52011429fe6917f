"""Calls of functions that are a whole query, with what the driver needs of them.

``SELECT set_config('name', value, is_local)`` is SET as a query, with parameters. It is understood where a query is nothing else: anywhere else the engine would change the
setting behind the driver's back.

*NOTIFY, and ``SELECT pg_notify(channel, payload)`` as a whole statement.*

``SELECT current_setting(%s)`` is SHOW as a query: only its execution tells whether the
setting is the driver's, which no engine's session has. With other things beside it the
name has to be written there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from tique_rewriter.kinds.session.session import SessionPlan
from tique_rewriter.plans.plan import Literal, Parameter
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.plans.plan import Operand
    from tique_rewriter.text.source import Source, Word


_TRUTHS = {"TRUE": True, "FALSE": False}


class Call(NamedTuple):
    """A call: its arguments, None for those that are expressions, and the result's name."""

    arguments: Sequence[Operand | None]
    result: str


def call(cursor: Cursor, name: str) -> Call | None:
    """Return the call of the function ``name`` that the rest is; None if it is none."""
    source = cursor.source
    cursor.accept(f"{source.rules.function_schema.upper()} .")
    is_named = cursor.follows(name.upper()) or (
        cursor.left and source.raw(cursor.word) == f'"{name}"'
    )
    if not is_named or cursor.keywords[1:2] != ["("]:
        return None
    cursor.take()
    listed = cursor.brackets() or []
    arguments = [given_value(source, piece) for piece in split(listed)]
    cursor.accept("AS")
    if cursor.left > 1:
        return None
    return Call(arguments, cursor.name() if cursor.left else name)


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


_NAME = "set_config"


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
    if words[0].keyword != "SELECT" or _NAME not in source.rules.calls:
        return None
    settings = [_setting(source, piece) for piece in split(words[1:])]
    if not settings or None in settings:
        return None
    found = tuple([setting for setting in settings if setting is not None])
    return SetConfig(len(source.lexed.arguments), (), found)


def _setting(source: Source, words: list[Word]) -> GivenSetting | None:
    found = call(Cursor(source, words), _NAME)
    if found is None or len(found.arguments) != 3 or None in found.arguments:
        return None
    name, value, is_local = [a for a in found.arguments if a is not None]
    return GivenSetting(name, value, is_local, found.result)


_FUNCTION = "pg_notify"


@dataclass(frozen=True)
class Notify(SessionPlan):
    """A message for listeners; ``result`` is its column's name in a query."""

    channel: Operand
    payload: Operand
    result: str | None


_SHOWN = "current_setting"


@dataclass(frozen=True)
class ShowGiven(SessionPlan):
    """A query of one call of ``current_setting`` with a placeholder for the name.

    ``result`` is its column's name, and ``text`` the whole query, for the engine.
    """

    name: Parameter
    result: str
    text: str


def may_show_given(text: str) -> bool:
    """Whether a statement's text has the function's name in it."""
    return _SHOWN in text.lower()


def plan_show_given(source: Source) -> ShowGiven | None:
    """Return the plan of a query that is nothing but a call; None if it is another one."""
    if source.words[0].keyword != "SELECT" or _SHOWN not in source.rules.calls:
        return None
    found = call(Cursor(source, number=1), _SHOWN)
    if found is None or None in found.arguments or not 0 < len(found.arguments) < 3:
        return None
    name, opens = found.arguments[0], source.keywords().index("(")
    if not isinstance(name, Parameter):
        return None
    # Nothing of that name along the search path may be called.
    place = f"{source.rules.function_schema}.{_SHOWN}"
    text = f"SELECT {place}{source.words_text(source.words[opens:])}"
    return ShowGiven(len(source.lexed.arguments), (), name, found.result, text)


def may_notify(text: str) -> bool:
    """Whether a statement's text has the function's name in it."""
    return _FUNCTION in text.lower()


def plan_notify(source: Source) -> Notify:
    """Return the plan of NOTIFY channel [, 'payload']."""
    cursor = Cursor(source, number=1)
    channel, payload = Literal(cursor.name("a channel is missing")), Literal("")
    if cursor.left:
        start, is_listed = cursor.start, cursor.accept(",")
        given = given_value(source, cursor.rest)
        if not is_listed or not (
            isinstance(given, Literal) and isinstance(given.value, str)
        ):
            raise source.syntax("a text in quotes is expected", start)
        payload = given
    return Notify(0, (), channel, payload, None)


def plan_notifying_query(source: Source) -> Notify | None:
    """Return the plan of a query that is nothing but a call; None if it is another one."""
    if source.words[0].keyword != "SELECT" or _FUNCTION not in source.rules.calls:
        return None
    found = call(Cursor(source, number=1), _FUNCTION)
    if found is None or len(found.arguments) != 2:
        return None
    channel, payload = found.arguments
    if channel is None or payload is None:
        return None
    return Notify(len(source.lexed.arguments), (), channel, payload, found.result)
