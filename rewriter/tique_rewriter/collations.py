"""COLLATE behind a column's type.

Where a collation only sorts, values of a column are equal here if they are the same text.
So only collations that are deterministic will do; which of them are, the engine says when
it has made the column. Where it compares, it is a part of the type.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tique_rewriter.schema import Column
    from tique_rewriter.source import Source, Word

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")


def read_collation(source: Source, words: list[Word]) -> tuple[str, list[Word]] | None:
    """Return the collation that a clause names, as the catalog has it, and what follows.

    None if the words begin with another clause, or the engine's collations are refused.
    """
    is_clause = words and words[0].keyword == "COLLATE" and source.rules.collates
    if not is_clause:
        return None
    if len(words) < 2:
        raise source.syntax("a collation is expected", words[0].start)
    name, rest = source.identifier(words[1]), words[2:]
    if source.rules.collation_compares:
        while len(rest) > 1 and rest[0].keyword == ".":
            name, rest = f"{name}.{source.identifier(rest[1])}", rest[2:]
        return name.lower(), rest
    # The engine looks for names there first.
    schema = source.rules.function_schema or ""
    if len(rest) > 1 and rest[0].keyword == ".":
        schema, name, rest = name, source.identifier(rest[1]), rest[2:]
    return f"{_quoted(schema)}.{_quoted(name)}", rest


def collated(source: Source, column: Column, collation: str) -> Column:
    """Return a column with that collation."""
    if source.rules.collation_compares:
        return replace(column, type=f"{column.type} COLLATE {collation}")
    return replace(column, collation=collation)


def _quoted(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else '"' + name.replace('"', '""') + '"'
