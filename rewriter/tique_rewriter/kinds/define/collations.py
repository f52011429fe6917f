"""COLLATE behind a column's type.

Where a collation only sorts, values of a column are equal here if they are the same text.
So only collations that are deterministic will do; which of them are, the engine says when
it has made the column. Where it compares, it is a part of the type.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from tique_rewriter.text.names import quote

if TYPE_CHECKING:
    from tique_rewriter.schema import Column
    from tique_rewriter.text.cursor import Cursor
    from tique_rewriter.text.source import Source

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def read_collation(cursor: Cursor) -> str | None:
    """Read the collation that a clause names, and return it as the catalog has it.

    None if another clause comes next, or the engine's collations are refused.
    """
    source, start = cursor.source, cursor.start
    if not source.rules.collations or not cursor.accept("COLLATE"):
        return None
    if cursor.is_done:
        raise source.syntax("a collation is expected", start)
    name = cursor.name()
    if source.rules.collations == "compare":
        while cursor.left > 1 and cursor.accept("."):
            name = f"{name}.{cursor.name()}"
        return name.lower()
    # The engine looks for names there first.
    schema = source.rules.function_schema or ""
    if cursor.left > 1 and cursor.accept("."):
        schema, name = name, cursor.name()
    return f"{_quoted(schema)}.{_quoted(name)}"


def collated(source: Source, column: Column, collation: str) -> Column:
    """Return a column with that collation."""
    if source.rules.collations == "compare":
        return replace(column, type=f"{column.type} COLLATE {collation}")
    return replace(column, collation=collation)


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else quote(name)
