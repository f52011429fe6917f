"""The types of which PostgreSQL takes parameters to be, as psycopg sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psycopg.adapt import PyFormat, Transformer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg.abc import AdaptContext


class ParameterTypes:
    """Tells the type that psycopg would send for each of some values."""

    def __init__(self, context: AdaptContext) -> None:
        self._dumper = Transformer(context).get_dumper

    def of(self, values: Sequence[Any]) -> list[int]:
        """Return the OIDs; 0 for values of any type, like quoted literals and NULL."""
        return [
            0 if value is None else self._dumper(value, PyFormat.AUTO).oid
            for value in values
        ]
