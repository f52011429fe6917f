"""The dialects that the rewriter knows, by name: all that differs between them."""

from __future__ import annotations

from tique_rewriter.dialects.duckdb import DUCKDB
from tique_rewriter.dialects.monetdb import MONETDB
from tique_rewriter.dialects.postgresql import POSTGRESQL
from tique_rewriter.dialects.rules import Lexicon, Rules

__all__ = [
    "DIALECTS",
    "DUCKDB",
    "MONETDB",
    "POSTGRESQL",
    "Lexicon",
    "Rules",
    "rules_of",
]

DIALECTS = {rules.name: rules for rules in (DUCKDB, MONETDB, POSTGRESQL)}


def rules_of(dialect: str) -> Rules:
    """Return the rules of a dialect.

    Raises
    ------
    ValueError
        For a dialect that is not known.
    """
    try:
        return DIALECTS[dialect]
    except KeyError:
        known = ", ".join(DIALECTS)
        raise ValueError(f"dialect must be one of {known}") from None
