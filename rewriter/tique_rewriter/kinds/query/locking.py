"""Plans of SELECT … FOR UPDATE.

The clause is taken off the text before the parser sees it, by words, and only where
every one of them is understood. What stays is a query that names, for each of its
results, the rows to lock: so it is one SELECT from tables, inner joins at the most,
without anything that makes one result of several rows.

*Plans of statements with FOR UPDATE in a subquery or in a member of WITH.*
The idiom of a job queue is ``UPDATE job … WHERE id = (SELECT id FROM job … LIMIT 1 FOR
UPDATE SKIP LOCKED)``. The locking query runs first, whole, and once; its results are a
relation of constants for the rest, as those of RETURNING in WITH are
(:mod:`tique_rewriter.kinds.change.with_changes`). So it stands alone: one that looks at a row of the query
around it names a column that it does not have. Its results are columns of its one table,
whose types are known.

A subquery is taken out of the text, and a query of that relation put in its place: that is
never longer, so all places stay.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.kinds.change.with_changes import CHANGING, check_member, plan_part
from tique_rewriter.kinds.query.groups import group_read
from tique_rewriter.kinds.query.query import point_read, references_of
from tique_rewriter.plans.change_plans import ChangingWith
from tique_rewriter.plans.plan import (
    Literal,
    LockingSelect,
    Operand,
    Parameter,
    Select,
    Wait,
)
from tique_rewriter.scope.bindings import Scope
from tique_rewriter.scope.outputs import plain_columns
from tique_rewriter.scope.past import refuse_past
from tique_rewriter.scope.references import find_reads
from tique_rewriter.scope.relations import TABLE, relations_of
from tique_rewriter.text.cursor import Cursor
from tique_rewriter.text.names import quote
from tique_rewriter.text.source import Mark, Source
from tique_rewriter.tree.shape import RESHAPING, clause_words, has_only, starts_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tique_rewriter.errors import UnsupportedSQL
    from tique_rewriter.plans.change_plans import Member
    from tique_rewriter.plans.plan import Plan
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.scope.reads import Read, Reads
    from tique_rewriter.text.placeholders import Lexed
    from tique_rewriter.text.source import Word


_PARTS = frozenset(
    ["expressions", "from_", "joins", "where", "order", "limit", "offset"]
)
_SHARED = ("SHARE", "KEY SHARE")
_KINDS = ("UPDATE", "NO KEY UPDATE", *_SHARED)
_WAITS = {"": Wait.WAIT, "NOWAIT": Wait.NOWAIT, "SKIP LOCKED": Wait.SKIP_LOCKED}
_KEY = "_locked_"
"""How the names begin of the results that are keys."""


@dataclass(frozen=True)
class _Clause:
    """A lock clause: where it starts and ends, the tables after OF, and what it does."""

    start: int
    end: int
    names: tuple[tuple[str, int], ...]
    wait: Wait
    shared: bool


def has_lock_clause(source: Source) -> bool:
    """Whether a query ends in FOR UPDATE or one of its kind, outside all brackets."""
    return source.words[0].keyword in ("SELECT", "WITH") and bool(_starts(source))


def without_rows(source: Source) -> Source | None:
    """Return a query that reads no rows without its lock clause, which locks none."""
    clause = _clause(source)
    if clause.names or any(word.keyword == "FROM" for word in source.words):
        return None
    rest = _without_clause(source, clause)
    return rest if rest.words[0].keyword == "SELECT" else None


def lock_clauses(source: Source) -> list[int]:
    """Return the numbers of the words that begin a lock clause, in brackets or not."""
    return [
        number
        for number, word in enumerate(source.words)
        if word.keyword == "FOR" and Cursor(source, number=number + 1).follows(*_KINDS)
    ]


def plan_locking(source: Source, catalog: Catalog) -> LockingSelect:
    """Return the plan of a query with a lock clause.

    Raises
    ------
    UnsupportedSQL
        For queries whose results are not rows of tables.
    """
    clause = _clause(source)
    first = source.words[0]
    if first.keyword != "SELECT":
        raise _refused(source, f"{first.keyword} with FOR UPDATE", first.start)
    rest = _without_clause(source, clause)
    tree = rest.parse()
    if not isinstance(tree, exp.Select) or not tree.expressions:
        raise _refused(source, "this query with FOR UPDATE", first.start)
    reads = find_reads(rest, [tree], catalog)
    _check_shape(rest, tree, reads)
    locked = _locked(rest, tree, reads, clause)
    limit, end = None, rest.end
    if clause.wait is Wait.SKIP_LOCKED:
        limit, end = _limit(rest, tree)
    keys = [
        (f"{_KEY}{number}_{position}", read, read.table.columns[position].name)
        for number, read in enumerate(locked)
        for position in read.table.primary_key
    ]
    listed = "".join(
        f", {read.qualifier}.{quote(column)} AS {quote(name)}"
        for name, read, column in keys
    )
    before = _from_word(rest, tree, reads)
    marks = reads.marks_with([Mark(before.start, before.start, f"{listed} ")])
    text = rest.cut(first.start, end, marks)
    references = references_of(rest, tree, reads, [tree], locked)
    count = len(rest.lexed.arguments) - isinstance(limit, Parameter)
    tables = tuple(read.table for read in locked)
    outputs = _outputs(tree, reads)
    if clause.wait is Wait.SKIP_LOCKED:
        tree.set("limit", None)
    for _, read, column in keys:
        tree.append("expressions", exp.column(column, read.name))
    query = Select(
        count,
        references,
        text,
        point_read(rest, tree, reads),
        group_read(rest, tree, reads),
    )
    return LockingSelect(
        count, references, query, tables, clause.wait, limit, clause.shared, outputs
    )


def _outputs(tree: exp.Select, reads: Reads) -> tuple[tuple[int, str], ...] | None:
    """Position and name of each result, where all are columns of the one table."""
    (first, *others) = [reads.of(relation) for relation in relations_of(tree)]
    if first is None or others:
        return None
    found = plain_columns(tree.expressions, Scope.of(first), first)
    return None if found is None else tuple(found)


def _starts(source: Source) -> list[int]:
    """Return the numbers of those outside all brackets."""
    return [n for n in lock_clauses(source) if source.words[n].depth == 0]


def _clause(source: Source) -> _Clause:
    """Read the clause, which only LIMIT and its kind may follow."""
    number, *more = _starts(source)
    start, cursor = source.words[number].start, Cursor(source, number=number + 1)
    if more:
        raise _refused(source, "more than one lock clause", source.words[more[0]].start)
    kind = cursor.accept(*_KINDS)

    def table() -> tuple[str, int]:
        name = cursor.name("a table is missing after OF").lower()
        return name, cursor.before.start

    names = cursor.list_of(table) if cursor.accept("OF") else []
    wait = _WAITS[cursor.accept("NOWAIT", "SKIP LOCKED")]
    if not cursor.is_done and not cursor.follows("LIMIT", "OFFSET", "FETCH"):
        raise source.unsupported(
            "text after FOR UPDATE", cursor.start, "put FOR UPDATE at the end"
        )
    return _Clause(start, cursor.before.end, tuple(names), wait, kind in _SHARED)


def _without_clause(source: Source, clause: _Clause) -> Source:
    """Return the query without the clause, in which all places stay."""
    lexed = source.lexed.blanked([(clause.start, clause.end)])
    return Source(lexed, source.rules, source.outer)


def _check_shape(source: Source, tree: exp.Select, reads: Reads) -> None:
    """Refuse whatever makes one result of several rows, or none of one."""
    for part, value in tree.args.items():
        if not value or part in _PARTS:
            continue
        shown = part.strip("_").upper()
        raise _refused(source, f"{shown} with FOR UPDATE", source.words[0].start)
    for each in reads.reads:
        refuse_past(source, each.node, "with FOR UPDATE")
    if tree.find(*RESHAPING):
        raise _refused(source, "a sample with FOR UPDATE", source.words[0].start)
    for node in tree.find_all(exp.AggFunc, exp.Window):
        if node.find_ancestor(exp.Select) is tree:
            what = "an aggregate or window with FOR UPDATE"
            raise _refused(source, what, starts_at(node, source.words[0].start))
    for join in tree.args.get("joins") or ():
        words = (join.method.upper(), join.kind.upper(), join.side.upper())
        if words[0] or words[2] or words[1] not in ("", "INNER", "CROSS"):
            raise _refused(
                source,
                f"{' '.join(filter(None, words))} JOIN with FOR UPDATE",
                source.find("JOIN"),
            )
    for relation in relations_of(tree):
        read = reads.of(relation)
        if read is None or not has_only(relation, TABLE):
            raise _refused(
                source,
                "FOR UPDATE of anything but tables",
                starts_at(relation, source.words[0].start),
            )
        if read.view is not None:
            raise _refused(source, "FOR UPDATE of a view", read.span.start)


def _locked(
    source: Source, tree: exp.Select, reads: Reads, clause: _Clause
) -> list[Read]:
    """Return the reads whose rows are locked."""
    found = [read for each in relations_of(tree) if (read := reads.of(each))]
    if clause.names:
        by_name = {read.name: read for read in found}
        named = []
        for name, start in clause.names:
            read = by_name.get(name)
            if read is None:
                raise source.syntax("OF names no table of the query", start)
            named.append(read)
        found = list({id(read): read for read in named}.values())
    for read in found:
        if read.table.is_temporary:
            raise source.unsupported(
                f'FOR UPDATE of "{read.table.name}", a temporary table',
                read.span.start,
                "no other connection sees its rows: leave it out",
            )
        if read.table.is_keyless:
            raise source.unsupported(
                f'FOR UPDATE of "{read.table.name}", which has no primary key',
                read.span.start,
                "a row without a key cannot be told from another",
            )
    return found


def _limit(source: Source, tree: exp.Select) -> tuple[Operand | None, int]:
    """Return LIMIT's operand, and where the text before LIMIT ends."""
    words = source.words
    if tree.args.get("offset"):
        raise _refused(source, "OFFSET with SKIP LOCKED", source.find("OFFSET"))
    limit = tree.args.get("limit")
    if limit is None:
        return None, source.end
    found = clause_words(source, tree, "LIMIT", "FETCH")
    if len(found) == 1:
        ((number, _),) = found
        before, cursor = words[number - 1].end, Cursor(source, number=number)
        is_fetch = cursor.accept("LIMIT", "FETCH FIRST", "FETCH NEXT") != "LIMIT"
        begin = cursor.number
        cursor.take_until(("ROW", "ROWS") if is_fetch else ())
        value = cursor.text_from(begin)
        if is_fetch and not cursor.accept_last("ROW ONLY", "ROWS ONLY"):
            value = ""
        if value.isascii() and value.isdigit():
            return Literal(int(value)), before
        count = len(source.lexed.arguments)
        placed = [n for _, n in source.placeholders(0, len(source.text))]
        if value == f"${count}" and placed.count(count) == 1:
            return Parameter(count), before
    raise source.unsupported(
        "this LIMIT with SKIP LOCKED",
        source.find("LIMIT", "FETCH"),
        "write LIMIT and a number or a parameter of its own at the end",
    )


def _from_word(source: Source, tree: exp.Select, reads: Reads) -> Word:
    """Return the word FROM that follows the select list."""
    read = reads.of(tree.args["from_"].this) if tree.args.get("from_") else None
    number = 0 if read is None else source.number(read.span.start)
    if number < 2 or source.words[number - 1].keyword != "FROM":
        raise _refused(source, "this FROM with FOR UPDATE", source.words[0].start)
    if source.words[number - 2].keyword == ",":
        raise source.syntax("a comma before FROM", source.words[number - 2].start)
    return source.words[number - 1]


def _refused(source: Source, what: str, start: int) -> UnsupportedSQL:
    return source.unsupported(
        what,
        start,
        "lock rows of tables by their keys, in a SELECT of its own",
    )


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

    def rest(source: Source, start: int, end: int) -> Lexed:
        return without(source, holes)

    whole = plan_part(source, "", "", source.words, members, rest, plan, holes)
    if not isinstance(whole.plan, (Select, *CHANGING)):
        raise source.unsupported(
            "FOR UPDATE in a part of this statement", source.words[0].start
        )
    return ChangingWith(len(source.lexed.arguments), (), (*members, whole))


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
    if first > 0 and words[first - 1].keyword == "LATERAL":
        raise source.unsupported(
            "FOR UPDATE in a LATERAL subquery",
            words[number].start,
            "rows are locked once, before the query around it is read: "
            "lock them in a SELECT of its own",
        )
    if (
        depth == 0
        or last == len(words)
        or not body
        or body[0].keyword != "SELECT"
        or any(first < other < number for other in lock_clauses(source))
    ):
        raise source.unsupported(
            "FOR UPDATE at this place",
            words[number].start,
            "lock rows in a SELECT, or in a subquery that is one",
        )
    return body
