"""ANALYZE, VACUUM, REINDEX and CLUSTER: the engine keeps its storage tables tidy.

None of them changes what any query answers, so the engine runs them as they stand. Names
and options are words and numbers; no name is one of tique's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.ddl_plans import Tidy
from tique_rewriter.names import PRIVATE_SCHEMA
from tique_rewriter.session import rest_of, unread

if TYPE_CHECKING:
    from tique_rewriter.source import Source

_INSIDE_TRANSACTIONS = frozenset({"ANALYZE", "ANALYSE"})


def plan_tidying(source: Source) -> Tidy:
    """Return the plan of a statement that keeps storage tidy.

    Raises
    ------
    UnsupportedSQL
        For anything but words, numbers and lists of them, or for a name of tique's.
    """
    first = source.words[0]
    rest = source if len(source.words) == 1 else rest_of(source)
    for word in rest.words:
        raw = rest.text[word.start : word.end]
        if raw.strip('"').lower() == PRIVATE_SCHEMA:
            raise rest.unsupported(
                f'the schema "{PRIVATE_SCHEMA}"', word.start, "it is reserved"
            )
        is_word = raw.startswith('"') or (word.keyword and raw.isidentifier())
        if not (is_word or raw in ("(", ")", ",", ".") or raw.isdigit()):
            shown = f'"{raw}" in {first.keyword}'
            raise unread(source, rest.unsupported(shown, word.start))
    text = first.keyword
    if rest is not source:
        text += " " + rest.words_text(rest.words)
    return Tidy(0, (), text, is_alone=text.split()[0] not in _INSIDE_TRANSACTIONS)
