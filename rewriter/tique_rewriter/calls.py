"""What a query calls: whether its result depends on more than rows and parameters."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.plan import CONVERSION, MOMENT
from tique_rewriter.relations import common_table
from tique_rewriter.text import Outer

if TYPE_CHECKING:
    from tique_rewriter.references import Reads
    from tique_rewriter.source import Source

_WITHOUT_BRACKETS = frozenset(
    {
        *("CURRENT_CATALOG", "CURRENT_DATE", "CURRENT_ROLE", "CURRENT_SCHEMA"),
        *("CURRENT_TIME", "CURRENT_TIMESTAMP", "CURRENT_USER", "LOCALTIME"),
        *("LOCALTIMESTAMP", "SESSION_USER", "USER"),
        *("PIVOT", "UNPIVOT", "SAMPLE", "TABLESAMPLE", "COLUMNS", "INTO"),
    }
)
"""Words that need no brackets, or take a text for something else than it seems."""

_MOMENT = re.compile(
    r"\b(?:now|today|tomorrow|yesterday)\b|\b(?:e|u&)'[^']*\\|'\s*\n\s*'", re.IGNORECASE
)
"""What such a string looks like, or one that may be it: with escapes, or in two pieces."""

_NO_MOMENTS = frozenset(
    {
        *exp.DataType.NUMERIC_TYPES,
        *exp.DataType.TEXT_TYPES,
        *(exp.DataType.Type.BOOLEAN, exp.DataType.Type.INTERVAL),
        *(exp.DataType.Type.UUID, exp.DataType.Type.VARBINARY),
    }
)


def calls_of(source: Source, tree: exp.Expr, reads: Reads) -> frozenset[str] | None:
    """Return the plan's ``calls``: see :class:`~tique_rewriter.plan.Select`.

    Every word before a bracket is one, keywords and names of types among them.
    """
    if reads.listed or any(isinstance(mark.piece, Outer) for mark in reads.others):
        return None
    for node in tree.find_all(exp.Table):
        if reads.of(node) is None and not _is_common_table(source, node):
            return None
    calls: set[str] = set()
    for read in reads.reads:
        if read.view is not None:
            if read.view.select.calls is None:
                return None
            calls |= read.view.select.calls
    for word, following in pairwise(source.words):
        raw = source.raw(word)
        if following.keyword == "(" and (raw[0] in '_"' or raw[0].isalpha()):
            calls.add(raw.lower())
    if _MOMENT.search(source.text):
        calls.add(MOMENT)
    for cast in tree.find_all(exp.Cast):
        if cast.to.this not in _NO_MOMENTS and not isinstance(cast.this, exp.Literal):
            calls.add(CONVERSION)
    calls |= {w.keyword.lower() for w in source.words if w.keyword in _WITHOUT_BRACKETS}
    return frozenset(calls)


def _is_common_table(source: Source, node: exp.Table) -> bool:
    return (
        isinstance(node.this, exp.Identifier)
        and not node.db
        and common_table(source, node, node.name.lower()) is not None
    )
