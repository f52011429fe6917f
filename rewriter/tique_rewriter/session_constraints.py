"""SET CONSTRAINTS: when the deferrable constraints of a transaction are checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tique_rewriter.definition import qualified_name
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
    rest = rest_of(source)
    number, names = 1, list[tuple[str, str]]()
    if rest.keywords(1)[:1] == ["ALL"]:
        number = 2
    else:
        while True:
            schema, name, number = qualified_name(rest, number, "")
            names.append((schema, name))
            if rest.keywords(number)[:1] != [","]:
                break
            number += 1
    mode = rest.keywords(number)[:1]
    if mode not in (["DEFERRED"], ["IMMEDIATE"]):
        raise rest.syntax("DEFERRED or IMMEDIATE is missing", rest.words[-1].start)
    finish(rest, number + 1)
    return SetConstraints(0, (), tuple(names) or None, mode == ["DEFERRED"])
