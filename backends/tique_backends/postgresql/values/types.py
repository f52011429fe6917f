"""PostgreSQL's types: their names, and their values' forms in Python and Arrow.

A type has the name that CREATE TABLE takes. Names that other engines have for another
type (``NUMERIC`` without digits, ``CHAR(n)``, whose values are equal whatever blanks
follow) are written with their schema, so that they are not mistaken for it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import ResultColumn, Row

INTEGERS = {"SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
"""Bits by type."""

_NAMES = {
    16: "BOOLEAN",
    17: "BYTEA",
    20: "BIGINT",
    21: "SMALLINT",
    23: "INTEGER",
    25: "TEXT",
    700: "REAL",
    701: "DOUBLE PRECISION",
    1082: "DATE",
    2950: "UUID",
}
_VARCHAR, _BPCHAR, _NUMERIC, _TIMESTAMP = 1043, 1042, 1700, 1114
_HEADER = 4
"""The bytes that a length modifier counts too."""

_ARROW: dict[str, pyarrow.DataType] = {
    "BOOLEAN": pyarrow.bool_(),
    "SMALLINT": pyarrow.int16(),
    "INTEGER": pyarrow.int32(),
    "BIGINT": pyarrow.int64(),
    "REAL": pyarrow.float32(),
    "DOUBLE PRECISION": pyarrow.float64(),
    "TEXT": pyarrow.string(),
    "VARCHAR": pyarrow.string(),
    "BYTEA": pyarrow.binary(),
    "DATE": pyarrow.date32(),
    "TIMESTAMP": pyarrow.timestamp("us"),
    "UUID": pyarrow.string(),
}
_ARROW_RESULTS = {"TIMESTAMPTZ": pyarrow.timestamp("us", "UTC")}
"""Types whose values do not stay the same on the way through Python."""

_NUMBER = re.compile(r"NUMERIC\((\d+),(\d+)\)")
_ANY_NUMBER = re.compile(r"(?:NUMERIC|pg_catalog\.numeric)(?:\(\d+,-?\d+\))?")
_TEXT = re.compile(r"VARCHAR\((\d+)\)")
_PADDED = re.compile(r"pg_catalog\.bpchar\(\d+\)")
_CUT = re.compile(r"(VARCHAR|pg_catalog\.bpchar|bit|bit varying)\((\d+)\)")
_CUT_ARRAY = re.compile(r"(character varying|character|bit|bit varying)\(\d+\)\[\]")
_CUTTING = {
    "VARCHAR": ("varchar", _HEADER),
    "pg_catalog.bpchar": ("bpchar", _HEADER),
    "bit": ("bit", 0),
    "bit varying": ("varbit", 0),
}
_UNCUT = {
    "character varying": "VARCHAR",
    "character": "pg_catalog.bpchar",
    "bit": 'pg_catalog."bit"',
    "bit varying": "pg_catalog.varbit",
}
_MOMENT = re.compile(r"TIMESTAMP\(\d\)")
_MODIFIER = re.compile(r"\(\d+\)")
_BEYOND = 1 << 62
"""Microseconds: no moment that Python can hold. It stands for those that it cannot."""


def type_name(oid: int, modifier: int, display: str) -> str:
    """The text of a type.

    Parameters
    ----------
    oid, modifier
        The column's entries in the catalog, or in a result's description.
    display
        PostgreSQL's own name, for all other types.
    """
    name = _NAMES.get(oid)
    if name is not None:
        return name
    if oid == _VARCHAR:
        return f"VARCHAR({modifier - _HEADER})" if modifier > 0 else "VARCHAR"
    if oid == _BPCHAR:
        length = f"({modifier - _HEADER})" if modifier > 0 else ""
        return f"pg_catalog.bpchar{length}"
    if oid == _TIMESTAMP:
        return f"TIMESTAMP({modifier})" if modifier >= 0 else "TIMESTAMP"
    if oid == _NUMERIC:
        return _numeric(modifier)
    return display


def shown_name(oid: int, modifier: int, display: str) -> str:
    """The text of a result's type, for people."""
    return type_name(oid, modifier, display).removeprefix("pg_catalog.").upper()


def _numeric(modifier: int) -> str:
    if modifier < 0:
        return "pg_catalog.numeric"
    digits, scale = (modifier - _HEADER) >> 16, (modifier - _HEADER) & 0x7FF
    if scale >= 1024:
        scale -= 2048
    if scale < 0 or scale > digits:
        return f"pg_catalog.numeric({digits},{scale})"
    return f"NUMERIC({digits},{scale})"


def has_modifier(type_name: str) -> bool:
    """Whether a type has a length, a precision or the fields of an interval."""
    return "(" in type_name or type_name.startswith("interval ")


def text_length(type_name: str) -> int | None:
    """The length that a text type allows; None for others and without one."""
    found = _TEXT.fullmatch(type_name)
    return int(found[1]) if found else None


def assigned(text: str, type_name: str) -> str:
    """An expression converted as an assignment converts it.

    A CAST cuts values that are too long; an assignment calls a function of the type's
    name, which refuses them.
    """
    if found := _CUT.fullmatch(type_name):
        name, header = _CUTTING[found[1]]
        whole = f'CAST({text} AS pg_catalog."{name}")'
        return f'pg_catalog."{name}"({whole}, {int(found[2]) + header}, FALSE)'
    if found := _CUT_ARRAY.fullmatch(type_name):
        # The driver keeps no value of it: staging it checks the lengths.
        type_name = f"{_UNCUT[found[1]]}[]"
    return f"CAST({text} AS {type_name})"


def is_text(type_name: str) -> bool:
    """Whether values of the type are text, compared as such."""
    return type_name in ("TEXT", "VARCHAR") or text_length(type_name) is not None


def is_number(type_name: str) -> bool:
    """Whether values of the type are decimal numbers, of any number of digits."""
    return _ANY_NUMBER.fullmatch(type_name) is not None


_EXACT = frozenset(
    (
        *("BOOLEAN", "SMALLINT", "INTEGER", "BIGINT", "TEXT", "VARCHAR", "BYTEA"),
        *("UUID", "DATE", "time without time zone", "TIMESTAMP"),
        "timestamp with time zone",
    )
)
"""Types of which equal values are the same."""
_SIZED = re.compile(r"(?:NUMERIC|pg_catalog\.numeric|pg_catalog\.bpchar)\(.*\)")
"""Types of which they are because they have a length or a precision."""


@lru_cache(maxsize=512)
def is_exact(type_name: str) -> bool:
    """Whether values of the type that are equal are the same.

    ``1.5`` and ``1.50`` are equal, as are intervals of a month and of 30 days.
    """
    return bool(_MODIFIER.sub("", type_name) in _EXACT or _SIZED.fullmatch(type_name))


def comparable_type(type_name: str) -> str:
    """A type to compare with a column's: a shorter text type would cut."""
    return "TEXT" if is_text(type_name) else type_name


@lru_cache(maxsize=512)
def arrow_type(type_name: str) -> pyarrow.DataType | None:
    """The Arrow type of a type; None where rows must stay in the engine."""
    if found := _NUMBER.fullmatch(type_name):
        digits = int(found[1])
        return pyarrow.decimal128(digits, int(found[2])) if digits <= 38 else None
    if is_text(type_name) or _PADDED.fullmatch(type_name):
        return pyarrow.string()
    if _MOMENT.fullmatch(type_name):
        return pyarrow.timestamp("us")
    return _ARROW.get(type_name)


def survives_python(type_name: str) -> bool:
    """Whether a value that was fetched and is written again is the same."""
    return arrow_type(type_name) is not None


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
    return pyarrow.Table.from_arrays(
        [_array(values, c) for c, values in zip(columns, by_column, strict=True)],
        names=[column.name for column in columns],
    )


def _array(values: Sequence[Any], column: ResultColumn) -> pyarrow.Array:
    kind = arrow_type(column.type) or _ARROW_RESULTS.get(column.type)
    if kind is None and column.type.startswith("NUMERIC"):
        # Without digits of its own: as many as the values have.
        with suppress(pyarrow.ArrowException):
            return pyarrow.array(values)
    if kind is None or column.type == "UUID":
        kind = pyarrow.string()
        values = [None if value is None else str(value) for value in values]
    elif pyarrow.types.is_timestamp(kind) and any(type(v) is str for v in values):
        values = [_BEYOND if type(value) is str else value for value in values]
    try:
        return pyarrow.array(values, kind)
    except (pyarrow.ArrowException, OverflowError, TypeError) as error:
        raise EngineError(
            ErrorKind.DATA,
            f"a value does not fit column {column.name!r} of type {column.type}",
        ) from error
