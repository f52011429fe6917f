"""Python values as the engine stores them, where that is certain.

A *coercer* returns a value exactly as the engine would give it back from a column,
or raises :class:`NotLocal`: then the engine must be asked, which converts the value
or raises the right error.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID

from tique_rewriter.plans.plan import SizedInteger

Coercer = Callable[[Any], Any]

EXACT = Context(prec=80)
"""Decimal arithmetic that never rounds, independent of the application's context."""


class NotLocal(Exception):
    """The value must be computed or converted by the engine."""


@dataclass(frozen=True, slots=True)
class Kind:
    """The meaning of a type's text: a family and its range.

    ``high`` of a text is the number of characters that it may have, 0 for any; a
    padded text has so many.
    """

    family: str
    low: int = 0
    high: int = 0
    precision: int = 0
    scale: int = 0

    @property
    def least(self) -> int:
        """The least integer that is a value in every engine.

        MonetDB keeps the least of each signed type for NULL.
        """
        return self.low + 1 if self.low < 0 else self.low


_INTEGER_BITS = {
    8: "TINYINT INT1",
    16: "SMALLINT INT2 INT16 SHORT",
    32: "INTEGER INT INT4 INT32 SIGNED",
    64: "BIGINT INT8 INT64 LONG",
    128: "HUGEINT INT128",
}
_UNSIGNED_BITS = {
    8: "UTINYINT UINT8",
    16: "USMALLINT UINT16",
    32: "UINTEGER UINT32",
    64: "UBIGINT UINT64",
}
_FAMILIES = {
    "text": "VARCHAR TEXT STRING BPCHAR NVARCHAR CLOB",
    "boolean": "BOOLEAN BOOL LOGICAL",
    "date": "DATE",
    "timestamp": "TIMESTAMP DATETIME",
    "double": "DOUBLE FLOAT8",
    "blob": "BLOB BYTEA BINARY VARBINARY",
    "uuid": "UUID GUID",
}
_DECIMAL = re.compile(r"(?:DECIMAL|NUMERIC|DEC)(?:\((\d+)(?:,(\d+))?\))?")
_SIZED_TEXT = re.compile(
    r"(?:VARCHAR|CHAR|TEXT|STRING|BPCHAR|NVARCHAR|CLOB|CHARACTER(?: VARYING| LARGE OBJECT)?)"
    r"\((\d+)\)"
)
_PADDED_TEXT = re.compile(r"PG_CATALOG\.BPCHAR\((\d+)\)")
_OTHER_NAMES = {
    "DOUBLE PRECISION": "DOUBLE",
    "TIMESTAMP WITHOUT TIME ZONE": "TIMESTAMP",
    "CHARACTER VARYING": "VARCHAR",
    "CHARACTER LARGE OBJECT": "CLOB",
    "BINARY LARGE OBJECT": "BLOB",
    "CHAR": "CHAR(1)",
    "CHARACTER": "CHAR(1)",
}
_BLANKS = re.compile(r" ?([(,]) ?| (?=\))")
_WIDEST_DECIMAL = 38


def _kinds() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for bits, names in _INTEGER_BITS.items():
        half = 2 ** (bits - 1)
        kinds |= dict.fromkeys(names.split(), Kind("integer", -half, half - 1))
    for bits, names in _UNSIGNED_BITS.items():
        kinds |= dict.fromkeys(names.split(), Kind("integer", 0, 2**bits - 1))
    for family, names in _FAMILIES.items():
        kinds |= dict.fromkeys(names.split(), Kind(family))
    return kinds


_KINDS = _kinds()


def normal_type(type_: str) -> str:
    """Return the text of a type in capitals, with no blank that could be left out."""
    return _BLANKS.sub(r"\1", " ".join(type_.upper().split()))


@lru_cache(maxsize=1024)
def kind_of(type_: str) -> Kind | None:
    """Return the meaning of a type's text, or None for a type not dealt with here."""
    text = normal_type(type_)
    text = _OTHER_NAMES.get(text, text)
    if text in _KINDS:
        return _KINDS[text]
    if match := _SIZED_TEXT.fullmatch(text):
        return Kind("text", high=int(match.group(1)))
    if match := _PADDED_TEXT.fullmatch(text):
        return Kind("padded", high=int(match.group(1)))
    if match := _DECIMAL.fullmatch(text):
        precision, scale = match.groups()
        if precision is None:
            return _decimal(18, 3)
        return _decimal(int(precision), int(scale or 0))
    return None


def _decimal(precision: int, scale: int) -> Kind | None:
    if not 1 <= precision <= _WIDEST_DECIMAL or scale > precision:
        return None
    return Kind("decimal", precision=precision, scale=scale)


def _exactly(type_: type) -> Coercer:
    def coerce(value: object) -> object:
        if type(value) is type_ or value is None:
            return value
        raise NotLocal

    return coerce


def _integer(kind: Kind) -> Coercer:
    low, high = kind.least, kind.high

    def coerce(value: object) -> object:
        if type(value) is int and low <= value <= high:
            return value
        if value is None:
            return None
        if isinstance(value, SizedInteger) and low <= value <= high:
            return int(value)
        raise NotLocal

    return coerce


def _decimal_coercer(kind: Kind) -> Coercer:
    scale = kind.scale
    step = Decimal(1).scaleb(-scale)
    limit = 10 ** (kind.precision - scale)

    def coerce(value: object) -> object:
        if type(value) is int:
            if -limit < value < limit:
                return Decimal(value).quantize(step, context=EXACT)
        elif type(value) is Decimal:
            exponent = value.as_tuple().exponent
            if isinstance(exponent, int) and -scale <= exponent <= 0:
                if not value:
                    return abs(value).quantize(step, context=EXACT)
                if -limit < value < limit:
                    return value.quantize(step, context=EXACT)
        elif value is None:
            return None
        raise NotLocal

    return coerce


def _text(value: object) -> object:
    if type(value) is str:
        if "\0" in value:
            raise NotLocal
        if value.isascii():
            return value
        try:
            value.encode()
        except UnicodeEncodeError:
            raise NotLocal from None
        return value
    if value is None:
        return None
    raise NotLocal


def _text_coercer(kind: Kind) -> Coercer:
    longest = kind.high
    if not longest:
        return _text

    def coerce(value: object) -> object:
        # An engine that holds a column to its size counts blanks at the end too.
        if type(value) is str and len(value) > longest:
            raise NotLocal
        return _text(value)

    return coerce


def _padded_coercer(kind: Kind) -> Coercer:
    """Leave all to the engine that it would fill up with blanks, or cut off."""
    size = kind.high

    def coerce(value: object) -> object:
        if type(value) is str and len(value) != size:
            raise NotLocal
        return _text(value)

    return coerce


def _double(value: object) -> object:
    if (type(value) is float and math.isfinite(value)) or value is None:
        return value
    raise NotLocal


def _uuid(value: object) -> object:
    """Leave the UUID of all zeros to the engine: it is MonetDB's NULL."""
    if (type(value) is UUID and value.int) or value is None:
        return value
    raise NotLocal


def _date(value: object) -> object:
    if (type(value) is date and value != date.max) or value is None:
        return value
    raise NotLocal


def _timestamp(value: object) -> object:
    if type(value) is datetime and value.tzinfo is None and value.year < date.max.year:
        return value.replace(fold=0) if value.fold else value
    if value is None:
        return None
    raise NotLocal


def _never(value: object) -> object:
    raise NotLocal


_COERCERS: dict[str, Callable[[Kind], Coercer]] = {
    "integer": _integer,
    "decimal": _decimal_coercer,
    "text": _text_coercer,
    "padded": _padded_coercer,
    "boolean": lambda _: _exactly(bool),
    "date": lambda _: _date,
    "timestamp": lambda _: _timestamp,
    "double": lambda _: _double,
    "blob": lambda _: _exactly(bytes),
    "uuid": lambda _: _uuid,
}


@lru_cache(maxsize=1024)
def coercer(type_: str) -> Coercer:
    """Return a function that returns a value as a column of this type gives it back.

    The function raises :class:`NotLocal` for a value that is not certain to be
    stored exactly, and for every value of a type that is not dealt with here.
    ``None`` is NULL in every type that is.
    """
    kind = kind_of(type_)
    return _never if kind is None else _COERCERS[kind.family](kind)


@lru_cache(maxsize=1024)
def has_zeros(type_: str) -> bool:
    """Whether two values of a type, 0.0 and -0.0, are equal and not the same."""
    kind = kind_of(type_)
    return kind is not None and kind.family == "double"


@lru_cache(maxsize=1024)
def key_coercer(type_: str) -> Coercer:
    """As :func:`coercer`, for values that are compared: others are equal to 0.0."""
    coerce = coercer(type_)
    if not has_zeros(type_):
        return coerce

    def coerce_unique(value: object) -> object:
        found = coerce(value)
        if found == 0:
            raise NotLocal
        return found

    return coerce_unique
