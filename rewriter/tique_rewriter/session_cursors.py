"""DECLARE, FETCH, MOVE and CLOSE: cursors in SQL text, which the driver keeps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tique_rewriter.plan import Plan, Select
from tique_rewriter.session import SessionPlan, finish, rest_of, unread

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.placeholders import Lexed
    from tique_rewriter.source import Source

CURSOR_VERBS = frozenset({"DECLARE", "FETCH", "MOVE", "CLOSE"})
"""The first words of the statements that :func:`plan_cursor` reads."""


class Towards(Enum):
    """Where FETCH goes: so many rows on, or to a row by its number."""

    FORWARD = "FORWARD"
    BACKWARD = "BACKWARD"
    ABSOLUTE = "ABSOLUTE"
    RELATIVE = "RELATIVE"


@dataclass(frozen=True)
class DeclareCursor(SessionPlan):
    """DECLARE of a cursor for a query; ``scrolls`` is None if it is not said."""

    name: str
    select: Select
    scrolls: bool | None
    holds: bool


@dataclass(frozen=True)
class FetchCursor(SessionPlan):
    """FETCH, and MOVE, which shows no rows; without ``count`` all rows that way."""

    name: str
    towards: Towards
    count: int | None
    moves: bool


@dataclass(frozen=True)
class CloseCursor(SessionPlan):
    """CLOSE of one cursor; of all if it has no name."""

    name: str | None


_STEPS = {
    "NEXT": (Towards.FORWARD, 1),
    "PRIOR": (Towards.BACKWARD, 1),
    "FIRST": (Towards.ABSOLUTE, 1),
    "LAST": (Towards.ABSOLUTE, -1),
    "ALL": (Towards.FORWARD, None),
}


def plan_cursor(source: Source, plan: Callable[[Lexed], Plan]) -> SessionPlan:
    """Return the plan of a statement about a cursor.

    Parameters
    ----------
    source
        The statement.
    plan
        Returns the plan of a text, the cursor's query.

    Raises
    ------
    UnsupportedSQL
        For a cursor of anything but a query, and BINARY.
    """
    verb = source.words[0].keyword
    rest = rest_of(source)
    if verb == "DECLARE":
        return _declare(rest, plan)
    if verb == "CLOSE":
        finish(rest, 1)
        is_all = rest.words[0].keyword == "ALL"
        return CloseCursor(0, (), None if is_all else _name(rest, 0))
    towards, count, number = _direction(rest)
    if rest.keywords(number)[:1] in (["FROM"], ["IN"]):
        number += 1
    if number >= len(rest.words):
        raise rest.syntax("a cursor's name is missing", rest.words[-1].start)
    finish(rest, number + 1)
    return FetchCursor(0, (), _name(rest, number), towards, count, verb == "MOVE")


def _declare(source: Source, plan: Callable[[Lexed], Plan]) -> DeclareCursor:
    name = _name(source, 0)
    keywords = source.keywords()
    number, scrolls, holds = 1, None, False
    while number < len(keywords) and keywords[number] != "CURSOR":
        if keywords[number : number + 2] == ["NO", "SCROLL"]:
            scrolls, number = False, number + 2
        elif keywords[number] in ("INSENSITIVE", "ASENSITIVE", "SCROLL"):
            scrolls = True if keywords[number] == "SCROLL" else scrolls
            number += 1
        else:
            finish(source, number)
    number += 1
    if keywords[number : number + 2] in (["WITH", "HOLD"], ["WITHOUT", "HOLD"]):
        holds, number = keywords[number] == "WITH", number + 2
    if keywords[number : number + 1] != ["FOR"] or number + 1 == len(keywords):
        place = source.words[min(number, len(keywords) - 1)].start
        raise unread(source, source.syntax("FOR and a query are missing", place))
    inner = plan(source.lexed.after(source.words[number].end))
    if not isinstance(inner, Select):
        raise source.unsupported(
            "a cursor of anything but a query", source.words[number + 1].start
        )
    return DeclareCursor(
        inner.parameters, inner.references, name, inner, scrolls, holds
    )


def _direction(source: Source) -> tuple[Towards, int | None, int]:
    """Direction, count and the number of the word behind them."""
    keywords = source.keywords()
    first = keywords[0]
    is_name = len(keywords) == 1
    if first in _STEPS and not is_name:
        return (*_STEPS[first], 1)
    if first in Towards.__members__ and not is_name:
        towards = Towards[first]
        count, number = _count(source, 1)
        if count is None and towards in (Towards.FORWARD, Towards.BACKWARD):
            if keywords[1] == "ALL" and len(keywords) > 2:
                return towards, None, 2
            return towards, 1, 1
        if count is None:
            raise source.syntax("a number is missing", source.words[-1].start)
        return towards, count, number
    count, number = _count(source, 0)
    return Towards.FORWARD, 1 if count is None else count, number


def _count(source: Source, number: int) -> tuple[int | None, int]:
    """The number that is written from this word on, and the number of the word behind."""
    keywords = source.keywords(number)
    sign = 1
    if keywords[:1] in (["-"], ["+"]):
        sign = -1 if keywords[0] == "-" else 1
        keywords, number = keywords[1:], number + 1
    if keywords and keywords[0].isdigit():
        return sign * int(keywords[0]), number + 1
    return None, number


def _name(source: Source, number: int) -> str:
    return source.rules.same(source.identifier(source.words[number]))
