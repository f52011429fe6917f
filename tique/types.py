"""PEP 249's type objects and constructors.

The second field of ``cursor.description`` is the engine's own name for the column's
type, such as ``"DECIMAL(12,2)"``. A type object equals every such name of its kind:
``description[0][1] == NUMBER``. Names of no kind (``BOOLEAN``, ``UUID``, lists and
other nested types) equal none of them.
"""

from __future__ import annotations

import datetime
import time

from typing_extensions import override

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "Date",
    "DateFromTicks",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "TypeObject",
]


class TypeObject:
    """A kind of column type: equal to the name of each type of that kind.

    Parameters
    ----------
    name
        The name PEP 249 gives the kind.
    *type_names
        The SQL names of its types, in capitals and without length or precision.
    """

    __slots__ = ("_name", "_type_names")

    def __init__(self, name: str, *type_names: str) -> None:
        self._name = name
        self._type_names = frozenset(type_names)

    @override
    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return _base_name(other) in self._type_names
        return self is other

    # Equal to names that differ among themselves, so no hash could agree with it.
    __hash__ = None  # type: ignore[assignment]

    @override
    def __repr__(self) -> str:
        return f"tique.{self._name}"


def _base_name(type_name: str) -> str:
    """Drop length and precision: ``DECIMAL(12,2)`` is ``DECIMAL``.

    The brackets of a list stay, so that ``VARCHAR[]`` is not taken for a string.
    """
    head, _, tail = type_name.upper().partition("(")
    suffix = tail.rpartition(")")[2]
    return " ".join(f"{head} {suffix}".split())


STRING = TypeObject(
    "STRING",
    *("VARCHAR", "CHARACTER VARYING", "CHAR", "CHARACTER", "BPCHAR", "TEXT", "STRING"),
    *("CLOB", "CHARACTER LARGE OBJECT", "ENUM", "JSON"),
)
BINARY = TypeObject(
    "BINARY",
    *("BLOB", "BINARY LARGE OBJECT", "BINARY", "VARBINARY", "BYTEA"),
)
NUMBER = TypeObject(
    "NUMBER",
    *("TINYINT", "SMALLINT", "INTEGER", "INT", "BIGINT", "HUGEINT", "BIGNUM"),
    *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"),
    *("DECIMAL", "NUMERIC", "REAL", "FLOAT", "DOUBLE", "DOUBLE PRECISION"),
)
DATETIME = TypeObject(
    "DATETIME",
    *("DATE", "INTERVAL"),
    *("TIME", "TIME_NS", "TIME WITH TIME ZONE", "TIME WITHOUT TIME ZONE"),
    *("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    *("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITHOUT TIME ZONE"),
    *("TIMETZ", "TIMESTAMPTZ"),
)
ROWID = TypeObject("ROWID", "ROWID", "OID")

Date = datetime.date
Time = datetime.time
Timestamp = datetime.datetime


def DateFromTicks(ticks: float) -> datetime.date:
    """Return the local date at ``ticks`` seconds since the epoch."""
    return Date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """Return the local time of day at ``ticks`` seconds since the epoch."""
    return Time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """Return the local date and time at ``ticks`` seconds since the epoch."""
    return Timestamp(*time.localtime(ticks)[:6])


def Binary(data: bytes | bytearray | memoryview) -> bytes:
    """Return ``data`` as a value for a binary column.

    Raises
    ------
    TypeError
        If ``data`` is not a bytes-like object; text has to be encoded first.
    """
    return bytes(memoryview(data))
