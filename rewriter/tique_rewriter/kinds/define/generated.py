"""Generated columns: ``GENERATED ALWAYS AS (…)``, whose values are computed from their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.errors import AlwaysGenerated
from tique_rewriter.safety.token_checks import check_calls
from tique_rewriter.text.cursor import Cursor

if TYPE_CHECKING:
    from tique_rewriter.schema import Table
    from tique_rewriter.text.source import Source, Word


def accept_generated(cursor: Cursor) -> bool:
    """Step over the clause that makes a generated column, if it comes next.

    Raises
    ------
    UnsupportedSQL
        The engine has no such columns, or the expression has a query or calls what it may not.
    """
    source = cursor.source
    head = cursor.follows("GENERATED ALWAYS AS (", "AS (")
    if not head:
        return False
    if not source.rules.generated:
        raise source.unsupported(
            "a generated column", cursor.start, f"{source.rules.engine} has none"
        )
    cursor.accept(head.removesuffix(" ("))
    inside = cursor.brackets() or []
    query = next((w for w in inside if w.keyword == "SELECT"), None)
    if query is not None:
        raise source.unsupported("a query in a generated column", query.start)
    check_calls(source, inside)
    cursor.accept("STORED", "VIRTUAL")
    return True


def makes_generated(source: Source, words: list[Word]) -> bool:
    """Whether one of a column's constraints, which these words are, makes it generated."""
    return any(
        accept_generated(Cursor(source, words, i))
        for i, word in enumerate(words)
        if word.depth == words[0].depth and word.keyword in ("GENERATED", "AS")
    )


def check_not_generated(source: Source, table: Table, name: str, start: int) -> None:
    """Complain of a value for a generated column.

    Raises
    ------
    AlwaysGenerated
        It is one.
    """
    if table.computed(name) is not None:
        raise source.error(
            AlwaysGenerated,
            f'a value for the column "{name}", which is generated',
            start,
            "leave it out",
        )
