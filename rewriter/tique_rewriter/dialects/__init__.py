"""The dialects that the rewriter knows, by name: all that differs between them.

A dialect is imported when it is first asked for: a process mostly has one engine.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import cast

from tique_rewriter.dialects.rules import Lexicon, Rules

__all__ = ["DIALECTS", "Lexicon", "Rules", "rules_of"]

DIALECTS = ("duckdb", "monetdb", "postgresql")


@cache
def rules_of(dialect: str) -> Rules:
    """Return the rules of a dialect.

    Raises
    ------
    ValueError
        For a dialect that is not known.
    """
    if dialect not in DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(DIALECTS)}")
    module = import_module(f"tique_rewriter.dialects.{dialect}")
    return cast("Rules", module.RULES)
