"""PostgreSQL's ranges: the driver gives psycopg's, an application has SQLAlchemy's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy.dialects.postgresql import ranges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from sqlalchemy.engine import Dialect


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
