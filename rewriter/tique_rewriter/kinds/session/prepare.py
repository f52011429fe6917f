"""Plans of PREPARE, EXECUTE and DEALLOCATE.

A prepared statement is planned as the statement itself, whenever it is executed, with
its placeholders in the engine's own style. EXECUTE's arguments are values: literals and
placeholders as they stand; of other expressions, which read no table, the engine is
asked for the values, in one query.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.errors import SyntaxProblem, UnsupportedSQL
from tique_rewriter.kinds.session.session import SessionPlan, after_verb, finish, unread
from tique_rewriter.plans.plan import Literal, Parameter
from tique_rewriter.safety.hidden_calls import check_hidden
from tique_rewriter.scope.references import find_reads
from tique_rewriter.text.placeholders import OWN_STYLE, number_placeholders
from tique_rewriter.text.source import Source
from tique_rewriter.tree.operands import operand
from tique_rewriter.tree.scalars import split

if TYPE_CHECKING:
    from tique_rewriter.plans.plan import Operand
    from tique_rewriter.scope.catalog import Catalog
    from tique_rewriter.text.source import Word

PREPARES = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*PREPARE\b", re.IGNORECASE | re.DOTALL
)
"""Matches a text that may be PREPARE, in which placeholders are the engine's own."""

_BODIES = frozenset({"INSERT", "UPDATE", "DELETE", "WITH", "MERGE"})


@dataclass(frozen=True)
class PrepareStatement(SessionPlan):
    """PREPARE: a name, the types that it declares, and the statement's text."""

    name: str
    types: tuple[str, ...]
    body: str


@dataclass(frozen=True)
class ExecuteStatement(SessionPlan):
    """EXECUTE: of each argument its text, and the operand that it is, if it is one."""

    name: str
    arguments: tuple[tuple[str, Operand | None], ...]


@dataclass(frozen=True)
class Deallocate(SessionPlan):
    """DEALLOCATE of one statement; of all if it has no name."""

    name: str | None


def plan_prepare(source: Source) -> PrepareStatement:
    """Return the plan of PREPARE name [(types)] AS statement.

    Raises
    ------
    UnsupportedSQL
        For a body that is neither a query nor a change of rows.
    """
    cursor = after_verb(source)
    if cursor.follows("TRANSACTION") and not cursor.follows("TRANSACTION AS"):
        raise source.unsupported("PREPARE TRANSACTION", source.start)
    name = source.rules.same(cursor.name())
    listed = cursor.brackets() or []
    types = tuple(source.words_text(part) for part in split(listed))
    if not cursor.follows("AS") or cursor.left == 1:
        raise unread(
            source, source.syntax("AS and a statement are missing", cursor.start)
        )
    cursor.take()
    first = cursor.word
    if first.keyword not in _BODIES and first.keyword not in source.rules.queries:
        raise source.unsupported(
            f"PREPARE of {first.keyword or 'this statement'}",
            first.start,
            "it takes SELECT, INSERT, UPDATE and DELETE",
        )
    original, place = source.lexed.original, source.lexed.original_position(first.start)
    # Blanks keep the places of what is refused in it.
    body = re.sub(r"[^\n]", " ", original[:place]) + original[place:]
    return PrepareStatement(0, (), name, types, body)


def plan_execute(source: Source, catalog: Catalog) -> ExecuteStatement:
    """Return the plan of EXECUTE name [(values)].

    Raises
    ------
    UnsupportedSQL
        For a value that depends on a table.
    """
    cursor = after_verb(source)
    check_hidden(source, catalog)
    name = source.rules.same(cursor.name())
    listed = cursor.brackets() or []
    arguments = tuple([_argument(source, part, catalog) for part in split(listed)])
    finish(cursor)
    return ExecuteStatement(len(source.lexed.arguments), (), name, arguments)


def plan_deallocate(source: Source) -> Deallocate:
    """Return the plan of DEALLOCATE [PREPARE] name or ALL."""
    cursor = after_verb(source)
    if cursor.left > 1:
        cursor.accept("PREPARE")
    word = cursor.take()
    finish(cursor)
    if word.keyword == "ALL":
        return Deallocate(0, (), None)
    return Deallocate(0, (), source.rules.same(source.identifier(word)))


def _argument(
    source: Source, words: list[Word], catalog: Catalog
) -> tuple[str, Operand | None]:
    if not words:
        raise source.syntax("a value is missing", source.words[-1].start)
    text = source.text[words[0].start : words[-1].end]
    try:
        return text, _value(source, text, catalog)
    except (UnsupportedSQL, SyntaxProblem) as error:
        # Its place is one in the value's own text.
        what, _, _ = error.message.partition(" at line ")
        raise source.error(type(error), what, words[0].start) from None


def _value(source: Source, text: str, catalog: Catalog) -> Operand | None:
    lexed = number_placeholders(
        f"SELECT {text}", OWN_STYLE, lexicon=source.rules.lexicon
    )
    query = Source(lexed, source.rules)
    tree = query.parse()
    if not isinstance(tree, exp.Select) or len(tree.expressions) != 1:
        raise query.unsupported("this value", 0)
    (item,) = tree.expressions
    found = operand(query, item)
    if isinstance(found, Parameter):
        position = lexed.arguments[found.number - 1]
        assert isinstance(position, int)
        return Parameter(position + 1)
    if found is not None:
        return found
    if isinstance(item, exp.Null):
        return Literal(None)
    if lexed.starts:
        raise query.unsupported("a placeholder inside an expression here", 0)
    if [node for node in tree.find_all(exp.Query, exp.Table) if node is not tree]:
        raise query.unsupported("a subquery in EXECUTE", 0)
    find_reads(query, [tree], catalog)
    return None
