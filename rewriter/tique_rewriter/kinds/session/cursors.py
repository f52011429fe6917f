"""DECLARE, FETCH, MOVE and CLOSE: cursors in SQL text, which the driver keeps."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from tique_rewriter.kinds.session.session import SessionPlan, after_verb, finish, unread
from tique_rewriter.plans.plan import Plan, Select

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.text.cursor import Cursor
    from tique_rewriter.text.placeholders import Lexed
    from tique_rewriter.text.source import Source


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
    verb, cursor = source.words[0].keyword, after_verb(source)
    if verb == "DECLARE":
        return _declare(cursor, plan)
    if verb == "CLOSE":
        if cursor.accept("ALL"):
            finish(cursor)
            return CloseCursor(0, (), None)
        return CloseCursor(0, (), _last_name(cursor))
    towards, count = _direction(cursor)
    cursor.accept("FROM", "IN")
    return FetchCursor(0, (), _last_name(cursor), towards, count, verb == "MOVE")


def _declare(cursor: Cursor, plan: Callable[[Lexed], Plan]) -> DeclareCursor:
    source, name = cursor.source, cursor.source.rules.same(cursor.name())
    scrolls = None
    while cursor.left and not cursor.follows("CURSOR"):
        if cursor.accept("NO SCROLL"):
            scrolls = False
        elif cursor.accept("SCROLL"):
            scrolls = True
        elif not cursor.accept("INSENSITIVE", "ASENSITIVE"):
            finish(cursor)
    cursor.accept("CURSOR")
    holds = cursor.accept("WITH HOLD", "WITHOUT HOLD") == "WITH HOLD"
    if not cursor.follows("FOR") or cursor.left == 1:
        raise unread(source, source.syntax("FOR and a query are missing", cursor.start))
    inner = plan(source.lexed.after(cursor.take().end))
    if not isinstance(inner, Select):
        raise source.unsupported("a cursor of anything but a query", cursor.start)
    return DeclareCursor(
        inner.parameters, inner.references, name, inner, scrolls, holds
    )


def _direction(cursor: Cursor) -> tuple[Towards, int | None]:
    """Read direction and count; a word that stands alone is a cursor's name."""
    if cursor.left > 1 and (step := cursor.accept(*_STEPS)):
        return _STEPS[step]
    if cursor.left > 1 and (way := cursor.accept(*Towards.__members__)):
        towards, begin = Towards[way], cursor.number
        count = _count(cursor)
        if count is None and towards in (Towards.FORWARD, Towards.BACKWARD):
            cursor.number = begin
            is_all = cursor.left > 1 and cursor.accept("ALL")
            return towards, None if is_all else 1
        if count is None:
            raise cursor.source.syntax(
                "a number is missing", cursor.source.words[-1].start
            )
        return towards, count
    count = _count(cursor)
    return Towards.FORWARD, 1 if count is None else count


def _count(cursor: Cursor) -> int | None:
    sign = cursor.accept("-", "+")
    return int(sign + cursor.take().keyword) if cursor.keyword.isdigit() else None


def _last_name(cursor: Cursor) -> str:
    """Read a cursor's name, the last word."""
    word = cursor.take("a cursor's name is missing")
    finish(cursor)
    return cursor.source.rules.same(cursor.source.identifier(word))
