"""Types whose values tique gives as the engine does, whatever SQLAlchemy asks for."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import sqlalchemy.types as sqltypes
from sqlalchemy.dialects import postgresql

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy.engine import Dialect


class _Number:
    """A number: of the type of its column in the engine, as a value of SQLAlchemy's."""

    asdecimal: bool
    _effective_decimal_return_scale: int

    def bind_processor(self, dialect: Dialect) -> None:
        """Values go to the driver as they are."""

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], Any]:
        """A Decimal or a float, as the type says."""
        if not self.asdecimal:
            return lambda value: float(value) if isinstance(value, Decimal) else value
        form = f"%.{self._effective_decimal_return_scale}f"

        def decimal(value: Any) -> Any:
            if isinstance(value, float):
                return Decimal(form % value)
            return Decimal(value) if isinstance(value, int) else value

        return decimal


class Numeric(_Number, sqltypes.Numeric[Any]):
    """NUMERIC."""


class Float(_Number, sqltypes.Float[Any]):
    """REAL and DOUBLE PRECISION."""


class ParsedJSON(postgresql.JSON):
    """JSON that the driver gives as Python's objects."""

    render_bind_cast = True

    def result_processor(
        self, dialect: Any, coltype: object
    ) -> Callable[[Any], Any] | None:
        """The object, or what the application's own deserializer makes of its text."""
        deserialize = dialect._json_deserializer
        if deserialize is None:
            return None
        return lambda value: None if value is None else deserialize(json.dumps(value))


class ParsedJSONB(ParsedJSON, postgresql.JSONB):
    """JSONB that the driver gives as Python's objects."""


def cast_when_bound(*kinds: type[Any]) -> dict[Any, Any]:
    """Types like these whose parameters are cast to them in the statement's text."""
    return {
        kind: type(f"Bound{kind.__name__}", (kind,), {"render_bind_cast": True})
        for kind in kinds
    }
