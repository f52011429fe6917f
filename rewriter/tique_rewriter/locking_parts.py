"""Plans of statements with FOR UPDATE in a subquery or in a member of WITH.

The idiom of a job queue is ``UPDATE job … WHERE id = (SELECT id FROM job … LIMIT 1 FOR
UPDATE SKIP LOCKED)``. The locking query runs first, whole, and once; its results are a
relation of constants for the rest, as those of RETURNING in WITH are
(:mod:`tique_rewriter.with_changes`). So it stands alone: one that looks at a row of the query
around it names a column that it does not have. Its results are columns of its one table,
whose types are known.

A subquery is taken out of the text, and a query of that relation put in its place: that is
never longer, so all places stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.change_plans import ChangingWith, Member
from tique_rewriter.locking import lock_clauses
from tique_rewriter.plan import LockingSelect, Select
from tique_rewriter.source import Source
from tique_rewriter.with_changes import CHANGING, check_member, plan_part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tique_rewriter.placeholders import Lexed
    from tique_rewriter.plan import Plan
    from tique_rewriter.source import Word

_NAME = "_locked_"
_VERBS = ("SELECT", "INSERT", "UPDATE", "DELETE")


def has_locking_member(source: Source) -> bool:
    """Whether a member of the statement's own WITH list may have a lock clause."""
    return source.words[0].keyword == "WITH" and any(
        source.words[number].depth == 1 for number in lock_clauses(source)
    )


def has_locking_subquery(source: Source) -> bool:
    """Whether a statement has a lock clause in brackets."""
    return source.words[0].keyword in _VERBS and any(
        source.words[number].depth > 0 for number in lock_clauses(source)
    )


def plan_locking_subqueries(
    source: Source,
    part: Callable[[Source, int, int], Lexed],
    without: Callable[[Source, Mapping[tuple[int, int], str]], Lexed],
    plan: Callable[[Source], Plan],
) -> ChangingWith:
    """Return the plan of a statement with locking subqueries.

    Parameters
    ----------
    source
        The statement.
    part
        Returns a stretch of it as a text of its own.
    without
        Returns it with other texts in the places of stretches, which are longer.
    plan
        Returns the plan of such a text.
    """
    if any(_NAME in word.keyword.lower() for word in source.words):
        raise source.unsupported(f"a name with {_NAME} in it", source.words[0].start)
    members: list[Member] = []
    holes: dict[tuple[int, int], str] = {}
    for number in lock_clauses(source):
        body = _subquery(source, number)
        name = f"{_NAME}{len(members)}"
        member = plan_part(source, name, "", body, [], part, plan)
        if not isinstance(member.plan, LockingSelect):
            raise source.unsupported("this subquery with FOR UPDATE", body[0].start)
        check_member(source, member, body)
        members.append(member)
        holes[body[0].start, body[-1].end] = f"SELECT * FROM {name}"  # noqa: S608
    outer = Source(
        without(source, holes),
        source.rules,
        {member.name: True for member in members},
    )
    made = plan(outer)
    if not isinstance(made, (Select, *CHANGING)):
        raise source.unsupported(
            "FOR UPDATE in a part of this statement", source.words[0].start
        )
    outside = [
        number
        for at, number in source.placeholders(0, len(source.text))
        if not any(start <= at < end for start, end in holes)
    ]
    inside = [number for _, number in outer.placeholders(0, len(outer.text))]
    numbers = dict(zip(inside, outside, strict=True))
    members.append(Member("", "", made, tuple(numbers[n] for n in sorted(numbers))))
    return ChangingWith(len(source.lexed.arguments), (), tuple(members))


def _subquery(source: Source, number: int) -> list[Word]:
    """Return the words in the brackets around the lock clause at a word."""
    words = source.words
    depth = words[number].depth
    first = last = number
    while first > 0 and not (
        words[first].keyword == "(" and words[first].depth == depth
    ):
        first -= 1
    while last < len(words) and not (
        words[last].keyword == ")" and words[last].depth == depth
    ):
        last += 1
    body = words[first + 1 : last]
    if (
        depth == 0
        or last == len(words)
        or not body
        or body[0].keyword != "SELECT"
        or any(
            w.keyword == "FOR" for w in body[: number - first - 1] if _locks(source, w)
        )
    ):
        raise source.unsupported(
            "FOR UPDATE at this place",
            words[number].start,
            "lock rows in a SELECT, or in a subquery that is one",
        )
    return body


def _locks(source: Source, word: Word) -> bool:
    return any(source.words[number] is word for number in lock_clauses(source))
