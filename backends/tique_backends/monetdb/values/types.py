"""MonetDB's types: their names in SQL, and their forms in Python and Arrow.

Found on 11.41 by sending values there and back: those of types that are not
:func:`kept as text <is_kept_as_text>` come back as they went.
"""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import ResultColumn, Row

ZONE = " WITH TIME ZONE"

INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64, "HUGEINT": 128}
"""Bits by type."""

_NAMES = {
    "tinyint": "TINYINT",
    "smallint": "SMALLINT",
    "int": "INTEGER",
    "bigint": "BIGINT",
    "hugeint": "HUGEINT",
    "real": "REAL",
    "double": "DOUBLE",
    "boolean": "BOOLEAN",
    "date": "DATE",
    "uuid": "UUID",
    "json": "JSON",
    "inet": "INET",
}

_SIZED = {
    "char": "CHAR",
    "varchar": "VARCHAR",
    "clob": "VARCHAR",
    "blob": "BLOB",
    "url": "URL",
}

_UNSIZED = {"CHAR": "CLOB", "VARCHAR": "CLOB"}

_MOMENTS = {
    "time": ("TIME", 0, ""),
    "timestamp": ("TIMESTAMP", 6, ""),
    "timetz": ("TIME", 0, ZONE),
    "timestamptz": ("TIMESTAMP", 6, ZONE),
}

_INTERVALS = {
    ("month_interval", 1): "INTERVAL YEAR",
    ("month_interval", 2): "INTERVAL YEAR TO MONTH",
    ("month_interval", 3): "INTERVAL MONTH",
    ("day_interval", 4): "INTERVAL DAY",
    ("sec_interval", 5): "INTERVAL DAY TO HOUR",
    ("sec_interval", 6): "INTERVAL DAY TO MINUTE",
    ("sec_interval", 7): "INTERVAL DAY TO SECOND",
    ("sec_interval", 8): "INTERVAL HOUR",
    ("sec_interval", 9): "INTERVAL HOUR TO MINUTE",
    ("sec_interval", 10): "INTERVAL HOUR TO SECOND",
    ("sec_interval", 11): "INTERVAL MINUTE",
    ("sec_interval", 12): "INTERVAL MINUTE TO SECOND",
    ("sec_interval", 13): "INTERVAL SECOND",
}

MONTHS = frozenset(
    name for (kind, _), name in _INTERVALS.items() if kind == "month_interval"
)
"""The types of intervals that are a number of months."""

_ARROW: dict[str, pyarrow.DataType] = {
    "BOOLEAN": pyarrow.bool_(),
    "TINYINT": pyarrow.int8(),
    "SMALLINT": pyarrow.int16(),
    "INTEGER": pyarrow.int32(),
    "BIGINT": pyarrow.int64(),
    "REAL": pyarrow.float32(),
    "DOUBLE": pyarrow.float64(),
    "CLOB": pyarrow.string(),
    "BLOB": pyarrow.binary(),
    "DATE": pyarrow.date32(),
    "TIMESTAMP": pyarrow.timestamp("us"),
    "TIMESTAMP WITH TIME ZONE": pyarrow.timestamp("us", "UTC"),
}

_AS_TEXT = frozenset({"UUID", "HUGEINT"})
"""Types that come back as they went but have no Arrow form of their own."""

_DECIMAL = re.compile(r"DECIMAL\((\d+),(\d+)\)")
_TEXT = re.compile(r"(?:VAR)?CHAR\((\d+)\)")
_FAMILY = re.compile(r"(BLOB|TIMESTAMP)\(\d+\)(.*)")


def type_name(kind: str, digits: int, scale: int) -> str | None:
    """The text of a type as CREATE TABLE takes it.

    Parameters
    ----------
    kind, digits, scale
        The column's entries in the catalog, or in a result's header.

    Returns
    -------
    str or None
        None for a type that tique does not know.
    """
    if kind in _NAMES:
        return _NAMES[kind]
    if kind == "decimal":
        return f"DECIMAL({digits},{scale})"
    if kind in _SIZED:
        name = _SIZED[kind]
        return f"{name}({digits})" if digits else _UNSIZED.get(name, name)
    if kind in _MOMENTS:
        # The catalog counts the decimal point.
        name, usual, zone = _MOMENTS[kind]
        precision = "" if digits - 1 == usual else f"({digits - 1})"
        return f"{name}{precision}{zone}"
    return _INTERVALS.get((kind, digits))


def text_length(type_name: str) -> int | None:
    """The length that a text type allows; None for others and for CLOB."""
    found = _TEXT.fullmatch(type_name)
    return int(found[1]) if found else None


def is_text(type_name: str) -> bool:
    """Whether values of the type are text, compared as such."""
    return type_name == "CLOB" or _TEXT.fullmatch(type_name) is not None


@lru_cache(maxsize=512)
def arrow_type(type_name: str) -> pyarrow.DataType | None:
    """The Arrow type of a type; None where rows must stay in the engine."""
    if found := _DECIMAL.fullmatch(type_name):
        return pyarrow.decimal128(int(found[1]), int(found[2]))
    if is_text(type_name) or type_name in _AS_TEXT:
        return pyarrow.string()
    if found := _FAMILY.fullmatch(type_name):
        type_name = found[1] + found[2]
    return _ARROW.get(type_name)


@lru_cache(maxsize=512)
def is_kept_as_text(type_name: str) -> bool:
    """Whether the driver keeps a type's values as text that they are not themselves.

    See :mod:`tique_backends.monetdb.values.text_values`.
    """
    return (
        type_name.startswith(("TIME(", "TIMESTAMP(", "INTERVAL "))
        or type_name.endswith(ZONE)
        or type_name in ("REAL", "TIME")
    )


def reads_alike(type_name: str) -> bool:
    """Whether Arrow and a row that is kept give the same Python value."""
    return (
        arrow_type(type_name) is not None
        and not is_kept_as_text(type_name)
        and type_name not in _AS_TEXT
    )


def to_time(text: str) -> time:
    """Read a time of day in MonetDB's form."""
    return time.fromisoformat(text)


def year_of(text: str) -> tuple[int, str]:
    """The year of a date or a moment, and what follows it.

    MonetDB writes the year 999 with three digits, and those before 0 with a sign.
    """
    year, _, rest = text[1:].partition("-")
    return int(text[0] + year), rest


def _padded(text: str) -> str:
    year, rest = year_of(text)
    return f"{year:04}-{rest}"


def to_date(text: str) -> date:
    """Read a date in MonetDB's form."""
    return date.fromisoformat(_padded(text))


def to_timestamp(text: str) -> datetime:
    """Read a moment in MonetDB's form."""
    return datetime.fromisoformat(_padded(text))


def to_seconds(text: str) -> timedelta:
    """Read an interval, of a number of seconds."""
    return timedelta(milliseconds=int(Decimal(text) * 1000))


def to_days(text: str) -> int:
    """Read an interval of days, the whole ones."""
    return int(Decimal(text)) // 86400


def rows_to_arrow(
    rows: Sequence[Row], columns: Sequence[ResultColumn]
) -> pyarrow.Table:
    """Rows as an Arrow table; types without an Arrow form of their own are text.

    Raises
    ------
    EngineError
        DATA if a value does not fit its column's type.
    """
    by_column: Sequence[Sequence[Any]] = (
        list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    )
    arrays = []
    for column, values in zip(columns, by_column, strict=True):
        kind = arrow_type(column.type)
        if kind is None or column.type in _AS_TEXT:
            kind = pyarrow.string()
            values = [None if value is None else str(value) for value in values]
        try:
            arrays.append(pyarrow.array(values, kind))
        except (pyarrow.ArrowException, OverflowError, TypeError) as error:
            raise EngineError(
                ErrorKind.DATA,
                f"a value does not fit column {column.name!r} of type {column.type}",
            ) from error
    return pyarrow.Table.from_arrays(arrays, names=[column.name for column in columns])
