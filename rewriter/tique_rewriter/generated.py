"""Generated columns: ``GENERATED ALWAYS AS (…)``, whose values are computed from their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.errors import AlwaysGenerated
from tique_rewriter.words import check_calls

if TYPE_CHECKING:
    from tique_rewriter.schema import Table
    from tique_rewriter.source import Source, Word

_HEADS = (("GENERATED", "ALWAYS", "AS", "("), ("AS", "("))
_KINDS = ("STORED", "VIRTUAL")


def after_generated(source: Source, words: list[Word]) -> list[Word] | None:
    """Return the words after the clause that makes a generated column.

    None if the first of them is another clause.

    Raises
    ------
    UnsupportedSQL
        The engine has no such columns, or the expression has a query or calls what it may not.
    """
    keywords = tuple([word.keyword for word in words[:4]])
    head = next((h for h in _HEADS if keywords[: len(h)] == h), None)
    if head is None:
        return None
    if not source.rules.generated:
        raise source.unsupported(
            "a generated column", words[0].start, f"{source.rules.engine} has none"
        )
    rest = words[len(head) - 1 :]
    end = source.closing(rest)
    inside = rest[1:end]
    query = next((w for w in inside if w.keyword == "SELECT"), None)
    if query is not None:
        raise source.unsupported("a query in a generated column", query.start)
    check_calls(source, inside)
    rest = rest[end + 1 :]
    return rest[1:] if rest and rest[0].keyword in _KINDS else rest


def makes_generated(source: Source, words: list[Word]) -> bool:
    """Whether one of a column's constraints, which these words are, makes it generated."""
    return any(
        after_generated(source, words[i:]) is not None
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
