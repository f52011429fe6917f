"""Words of SQL that stand before a bracket and call nothing."""

from __future__ import annotations

_WORDS = """
all and any array as between bit blob by case cast collate cross cube decimal distinct
else end enum except exclude exists extract filter from full group having in inner
intersect interval is join left like ilike limit materialized not numeric offset on or
order outer over partition qualify replace right rollup rows select semi anti set sets
similar some then trim try_cast union unnest using values varchar char when where window
with within
"""

SYNTAX = frozenset(_WORDS.split())
"""Keywords, and names of types."""
