"""Types whose values tique gives as the engine does, whatever SQLAlchemy asks for."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import sqlalchemy.types as sqltypes
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql import ranges
from sqlalchemy.dialects.postgresql.base import PGTypeCompiler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.engine import Dialect


_SINGLE = 24
"""Bits of a REAL."""


class EngineTypeCompiler(PGTypeCompiler):
    """The names of types that DuckDB and MonetDB have in common."""

    single: str
    """The engine's name of a REAL."""

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        """The standard's FLOAT has 53 bits, if none are given."""
        precision = type_.precision
        is_single = precision is not None and precision <= _SINGLE
        return self.single if is_single else "DOUBLE"

    def visit_DOUBLE_PRECISION(self, type_: Any, **kw: Any) -> str:
        """The engines' name."""
        return "DOUBLE"

    def visit_BYTEA(self, type_: Any, **kw: Any) -> str:
        """The engines' name."""
        return "BLOB"

    def visit_JSONB(self, type_: Any, **kw: Any) -> str:
        """There is one JSON."""
        return "JSON"

    def visit_TIMESTAMP(self, type_: Any, **kw: Any) -> str:
        """Of microseconds, always."""
        return "TIMESTAMP WITH TIME ZONE" if type_.timezone else "TIMESTAMP"


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


# PostgreSQL's ranges: the driver gives psycopg's, an application has SQLAlchemy's.


def _quoted(bound: str) -> str:
    """A bound in quotes; a backslash goes before each sign that would end them."""
    return '"' + bound.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _written(value: ranges.Range[Any]) -> str:
    """The range as PostgreSQL reads it.

    Bounds are in quotes: a moment's text has a blank, that of another type may be anything.
    """
    if value.empty:
        return "empty"
    lower, upper = (
        "" if bound is None else _quoted(str(bound))
        for bound in (value.lower, value.upper)
    )
    opening, closing = value.bounds
    return f"{opening}{lower},{upper}{closing}"


def _bound_range(value: Any) -> Any:
    return _written(value) if isinstance(value, ranges.Range) else value


def _bound_multirange(value: Iterable[Any] | str | None) -> Any:
    if value is None or isinstance(value, str):
        return value
    elements = list(value)
    if not all(isinstance(element, ranges.Range) for element in elements):
        return value
    return f"{{{','.join(map(_written, elements))}}}"


def _read(value: Any) -> Any:
    """A range of psycopg's as SQLAlchemy's."""
    if value is None:
        return None
    if value.isempty:
        return ranges.Range(empty=True)
    return ranges.Range(value.lower, value.upper, bounds=value.bounds)


class BoundRange(ranges.AbstractSingleRangeImpl[Any]):
    """INT4RANGE and the others."""

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """The text of a range."""
        return _bound_range

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], Any]:
        """A range of SQLAlchemy's."""
        return _read


class BoundMultirange(ranges.AbstractMultiRangeImpl[Any]):
    """INT4MULTIRANGE and the others."""

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any]:
        """The text of the ranges."""
        return _bound_multirange

    def result_processor(
        self, dialect: Dialect, coltype: object
    ) -> Callable[[Any], Any]:
        """Ranges of SQLAlchemy's."""

        def read(value: Any) -> Any:
            return None if value is None else ranges.MultiRange(map(_read, value))

        return read
