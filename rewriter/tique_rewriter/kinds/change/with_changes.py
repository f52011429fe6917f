"""Plans of statements with INSERT, UPDATE or DELETE in their WITH list, or behind it.

Such a statement is planned in parts, each of which is a statement of its own: the members of
the list in their order, and what follows it. A part sees the members before it by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.plans.change_plans import (
    ChangingWith,
    Delete,
    InsertQuery,
    InsertRows,
    Member,
    Update,
)
from tique_rewriter.plans.plan import LockingSelect, Select
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.text.placeholders import Lexed
    from tique_rewriter.text.source import Word

_CHANGES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE"})
_QUERIES = frozenset({"SELECT", "FROM", "VALUES", "TABLE"})
CHANGING = (InsertRows, InsertQuery, Update, Delete)


def has_changes(source: Source) -> bool:
    """Whether a member of the statement's own WITH list is a change."""
    return any(
        after.keyword in _CHANGES and after.depth == 1 and before.keyword == "("
        for before, after in zip(source.words, source.words[1:], strict=False)
    )


def verb_after_with(source: Source) -> str:
    """Return the first word outside all brackets that begins a statement."""
    for word in source.words[1:]:
        if word.depth == 0 and word.keyword in _CHANGES:
            return word.keyword
        if word.depth == 0 and word.keyword in _QUERIES:
            break
    return "SELECT"


def plan_changing_with(
    source: Source,
    part: Callable[[Source, int, int], Lexed],
    plan: Callable[[Source], Plan],
) -> ChangingWith:
    """Return the plan of a statement with changes in its WITH list.

    Parameters
    ----------
    source
        The statement.
    part
        Returns a stretch of it as a text of its own.
    plan
        Returns the plan of such a text.
    """
    words = source.words
    if not source.rules.with_changes and has_changes(source):
        change, *_ = [
            word for word in words if word.keyword in _CHANGES and word.depth == 1
        ]
        raise source.unsupported(
            f"{change.keyword} in WITH",
            change.start,
            "execute the statements one by one",
        )
    if source.keywords(1)[:1] == ["RECURSIVE"]:
        raise source.unsupported(
            "WITH RECURSIVE with a change", words[1].start, "execute it by itself"
        )
    members: list[Member] = []
    end = 0
    for name, columns, body, after in _members(source):
        end = after
        if name.lower() in {member.name for member in members}:
            raise source.syntax(f'the name "{name}" twice in WITH', body[0].start)
        made = plan_part(source, name.lower(), columns, body, members, part, plan)
        members.append(made)
        check_member(source, made, body)
    rest = words[end:]
    if not rest:
        raise source.syntax("WITH without a statement", words[-1].start)
    members.append(plan_part(source, "", "", rest, members, part, plan))
    if not isinstance(members[-1].plan, (Select, *CHANGING)):
        raise source.unsupported("this statement after WITH", rest[0].start)
    if source.rules.changes_in_turn and has_changes(source):
        _check_queries(source, members)
    return ChangingWith(len(source.lexed.arguments), (), tuple(members))


def _check_queries(source: Source, members: list[Member]) -> None:
    """Refuse a query of which the engine does not say which changes it sees."""
    changed = {
        member.plan.table for member in members if isinstance(member.plan, CHANGING)
    }
    for member in members:
        if member.name and isinstance(member.plan, Select):
            read = {reference.table for reference in member.plan.references}
            if not changed.isdisjoint(read):
                raise source.unsupported(
                    f'the query "{member.name}" in WITH of a table that a change beside '
                    "it changes",
                    source.words[0].start,
                    "write it where it is read",
                )


def _members(source: Source) -> Iterator[tuple[str, str, list[Word], int]]:
    """Yield name, list of columns and body of each member, and where the next word is."""
    cursor = Cursor(source, number=1)
    while True:
        if cursor.left < 3:
            raise source.syntax("WITH ends too early", source.words[-1].start)
        name = cursor.name()
        begin = cursor.number
        cursor.brackets()
        columns = cursor.text_from(begin)
        if not cursor.accept("AS"):
            raise source.syntax("a member of WITH without AS", cursor.before.start)
        cursor.accept("NOT")
        cursor.accept("MATERIALIZED")
        start, body = cursor.start, cursor.brackets()
        if body is None:
            raise source.unsupported("this form of WITH", cursor.before.start)
        if not body:
            raise source.syntax("an empty member of WITH", start)
        yield name, columns, body, cursor.number
        if not cursor.accept(","):
            return


def plan_part(
    source: Source,
    name: str,
    columns: str,
    body: list[Word],
    before: list[Member],
    part: Callable[[Source, int, int], Lexed],
    plan: Callable[[Source], Plan],
    holes: Collection[tuple[int, int]] = (),
) -> Member:
    """Return the plan of one part, whose text has none of the placeholders in ``holes``."""
    start, end = body[0].start, body[-1].end
    inner = Source(
        part(source, start, end),
        source.rules,
        {member.name: _has_rows(member.plan) for member in before},
    )
    outside = [
        number
        for at, number in source.placeholders(start, end)
        if not any(first <= at < last for first, last in holes)
    ]
    inside = [number for _, number in inner.placeholders(0, len(inner.text))]
    # Each placeholder stands for the statement's one at the same place.
    numbers = dict(zip(inside, outside, strict=True))
    made = plan(inner)
    return Member(name, columns, made, tuple(numbers[n] for n in sorted(numbers)))


def _has_rows(plan: Plan) -> bool:
    return isinstance(plan, Select | LockingSelect) or (
        isinstance(plan, CHANGING) and plan.returning is not None
    )


def check_member(source: Source, member: Member, body: list[Word]) -> None:
    """Refuse a member that cannot become a relation of its own."""
    made, start = member.plan, body[0].start
    if isinstance(made, LockingSelect):
        if made.outputs is None:
            raise source.unsupported(
                "a result that is no column of its one table, in a part with FOR UPDATE",
                start,
                "select columns of the table that is locked",
            )
        return
    if isinstance(made, Select):
        if member.parameters:
            raise source.unsupported(
                "a parameter in a query in WITH beside a change",
                start,
                "write the value as a literal, or the query where it is read",
            )
        return
    if not isinstance(made, CHANGING):
        raise source.unsupported("this statement in WITH", start)
    if isinstance(made, Update | Delete) and made.joined_returning is not None:
        raise source.unsupported(
            "RETURNING of joined columns in WITH",
            start,
            "return columns of the changed table",
        )
    if made.returning is not None and made.returning.parameters:
        raise source.unsupported(
            "a parameter in RETURNING in WITH", start, "write the value as a literal"
        )
