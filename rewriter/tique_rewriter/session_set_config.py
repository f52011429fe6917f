"""``SELECT set_config('name', value, is_local)``: SET as a query, with parameters.

It is understood where a query is nothing else: anywhere else the engine would change the
setting behind the driver's back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.scalars import split
from tique_rewriter.session import SessionPlan
from tique_rewriter.session_calls import call

if TYPE_CHECKING:
    from tique_rewriter.plan import Operand
    from tique_rewriter.source import Source, Word

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
    if words[0].keyword != "SELECT" or not source.rules.sets_by_query:
        return None
    settings = [_setting(source, piece) for piece in split(words[1:])]
    if not settings or None in settings:
        return None
    found = tuple([setting for setting in settings if setting is not None])
    return SetConfig(len(source.lexed.arguments), (), found)


def _setting(source: Source, words: list[Word]) -> GivenSetting | None:
    found = call(source, words, _NAME)
    if found is None or len(found.arguments) != 3 or None in found.arguments:
        return None
    name, value, is_local = [a for a in found.arguments if a is not None]
    return GivenSetting(name, value, is_local, found.result)
