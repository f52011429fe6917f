"""The types of which PostgreSQL takes parameters to be, as psycopg sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg.adapt import PyFormat, Transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.abc import AdaptContext


class ParameterTypes:
    """Says of what type each of some values would be."""

    def __init__(self, context: AdaptContext) -> None:
        self._dumper = Transformer(context).get_dumper

    def of(self, values: Sequence[Any]) -> list[int]:
        """The OIDs; 0 for what is of any type, as a literal in quotes and NULL are."""
        return [
            0 if value is None else self._dumper(value, PyFormat.AUTO).oid
            for value in values
        ]
