"""``TABLE t``, which is ``SELECT * FROM t``: the parser takes it for a name of nothing."""

from __future__ import annotations

from tique_rewriter.text.source import Source

_AFTER_NAME = frozenset(
    ["ORDER", "LIMIT", "OFFSET", "FETCH", "UNION", "INTERSECT", "EXCEPT"]
)


def is_table_query(source: Source) -> bool:
    """Whether the statement is TABLE and a name, with what may follow a query."""
    words = source.words
    if words[0].keyword != "TABLE":
        return False
    after = 2
    while after < len(words) and source.text[words[after].start] == ".":
        after += 2
    if after >= len(words):
        return len(words) == after
    return words[after].keyword in _AFTER_NAME


def written_as_select(source: Source) -> Source:
    """Return the statement as SELECT; all places are those of the application's text."""
    word = source.words[0]
    text = source.lexed.replaced(word.start, word.end, "SELECT * FROM")
    return Source(text, source.rules, source.outer)
