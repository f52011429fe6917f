"""SET CONSTRAINTS: when the deferrable constraints of a transaction are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.cursor import Cursor
from tique_rewriter.session import SessionPlan, finish, rest_of

if TYPE_CHECKING:
    from tique_rewriter.source import Source


@dataclass(frozen=True)
class SetConstraints(SessionPlan):
    """SET CONSTRAINTS; without ``names`` all of them.

    A name has its schema, which is empty if it was not given.
    """

    names: tuple[tuple[str, str], ...] | None
    is_deferred: bool


def plan_set_constraints(source: Source) -> SetConstraints:
    """Return the plan of SET CONSTRAINTS … DEFERRED or IMMEDIATE."""
    cursor = Cursor(rest_of(source))
    cursor.accept("CONSTRAINTS")
    names = [] if cursor.accept("ALL") else cursor.names()
    mode = cursor.accept("DEFERRED", "IMMEDIATE")
    if not mode:
        rest = cursor.source
        raise rest.syntax("DEFERRED or IMMEDIATE is missing", rest.words[-1].start)
    finish(cursor)
    return SetConstraints(0, (), tuple(names) or None, mode == "DEFERRED")
