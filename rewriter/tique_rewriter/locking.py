"""Plans of SELECT … FOR UPDATE.

The clause is taken off the text before the parser sees it, by words, and only where
every one of them is understood. What stays is a query that names, for each of its
results, the rows to lock: so it is one SELECT from tables, inner joins at the most,
without anything that makes one result of several rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.bindings import Scope, select_bindings
from tique_rewriter.cursor import Cursor
from tique_rewriter.names import quote
from tique_rewriter.outputs import plain_columns
from tique_rewriter.plan import Literal, LockingSelect, Operand, Parameter, Wait
from tique_rewriter.query import references_of
from tique_rewriter.references import find_reads
from tique_rewriter.relations import TABLE, relations_of
from tique_rewriter.shape import RESHAPING, clause_words, has_only, starts_at
from tique_rewriter.source import Mark, Source

if TYPE_CHECKING:
    from tique_rewriter.errors import UnsupportedSQL
    from tique_rewriter.references import Read, Reads
    from tique_rewriter.schema import Catalog
    from tique_rewriter.source import Word

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
    """A lock clause: where it starts, the tables after OF, and what it does."""

    start: int
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
    rest = Source(source.lexed.part(0, clause.start), source.rules, source.outer)
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
    # All that comes after it is the clause: the text before it keeps its places.
    rest = Source(source.lexed.part(0, clause.start), source.rules)
    tree = rest.parse()
    if not isinstance(tree, exp.Select) or not tree.expressions:
        raise _refused(source, "this query with FOR UPDATE", first.start)
    reads = find_reads(rest, [tree], catalog)
    _check_shape(rest, tree, reads)
    locked = _locked(rest, tree, reads, clause)
    limit, end = None, rest.end
    if clause.wait is Wait.SKIP_LOCKED:
        limit, end = _limit(rest, tree)
    keys = "".join(
        f", {read.qualifier}.{quote(read.table.columns[position].name)} AS {quote(f'{_KEY}{number}_{position}')}"
        for number, read in enumerate(locked)
        for position in read.table.primary_key
    )
    before = _from_word(rest, tree, reads)
    marks = sorted(
        [*reads.marks, Mark(before.start, before.start, f"{keys} ")],
        key=lambda mark: (mark.start, mark.end),
    )
    text = rest.cut(first.start, end, marks)
    bindings = select_bindings(rest, tree, reads)
    references = references_of(reads, bindings, [tree], locked)
    count = len(rest.lexed.arguments) - isinstance(limit, Parameter)
    tables = tuple(read.table for read in locked)
    return LockingSelect(
        count,
        references,
        text,
        tables,
        clause.wait,
        limit,
        clause.shared,
        _outputs(tree, reads),
    )


def _outputs(tree: exp.Select, reads: Reads) -> tuple[tuple[int, str], ...] | None:
    """Position and name of each result, where all are columns of the one table."""
    (first, *others) = [reads.of(relation) for relation in relations_of(tree)]
    if first is None or others:
        return None
    scope = Scope({first.name: first}, closed=True)
    found = plain_columns(tree.expressions, scope, first)
    return None if found is None else tuple(found)


def _starts(source: Source) -> list[int]:
    """Return the numbers of those outside all brackets."""
    return [n for n in lock_clauses(source) if source.words[n].depth == 0]


def _clause(source: Source) -> _Clause:
    """Read the clause to its last word, which must be the statement's."""
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
    if cursor.left:
        raise source.unsupported(
            "text after FOR UPDATE", cursor.start, "put FOR UPDATE at the end"
        )
    return _Clause(start, tuple(names), wait, kind in _SHARED)


def _check_shape(source: Source, tree: exp.Select, reads: Reads) -> None:
    """Refuse whatever makes one result of several rows, or none of one."""
    for part, value in tree.args.items():
        if not value or part in _PARTS:
            continue
        shown = part.strip("_").upper()
        raise _refused(source, f"{shown} with FOR UPDATE", source.words[0].start)
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
    found = clause_words(source, tree, "LIMIT")
    if len(found) == 1 and isinstance(limit, exp.Limit):
        ((number, word),) = found
        value = source.text[word.end : source.end].strip()
        before = words[number - 1].end
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
