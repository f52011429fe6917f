r"""Rows that the driver knows, on their way into a table: one statement for all.

A few rows are ``INSERT … VALUES``; many are ``COPY … FROM STDIN`` with the data behind
the statement. Measured on 11.41 with seven columns (milliseconds):

=======  =======  =====
rows     VALUES   COPY
=======  =======  =====
1            1.2    2.3
10           5.1    4.6
100         13.5    5.0
1000          63     15
10,000       509     24
=======  =======  =====

In the data (P11) text is in double quotes, with a backslash before quotes and
backslashes and for line ends. NULL is ``\N`` without quotes, which no text can look
like, because MonetDB compares before it takes the backslashes away. The number of
records is stated: nothing in the data ends it early.
"""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tique_backends.monetdb.values.literals import assigned, is_lost_in_text, seconds
from tique_backends.monetdb.values.text_values import ROUNDED_UP

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_VALUES_ROWS = 10
"""Up to so many rows VALUES is the cheaper form."""

_LARGE = 1 << 63

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})


def insert(target: str, rows: Sequence[Sequence[Any]], types: Sequence[str]) -> str:
    """A statement that inserts rows, of which there is at least one.

    ``types`` are those of the target's columns.

    Raises
    ------
    EngineError
        DATA if MonetDB has no such value.
    """
    if len(rows) <= _VALUES_ROWS or _has_expressions(rows, types):
        values = ", ".join(f"({', '.join(map(assigned, row, types))})" for row in rows)
        return f"INSERT INTO {target} VALUES {values}"
    records = "\n".join(["|".join(map(_field, row)) for row in rows])
    return (
        f"COPY {len(rows)} RECORDS INTO {target} FROM STDIN "
        rf"USING DELIMITERS '|', E'\n', '\"' NULL AS R'\N';"
        f"\n{records}\n"
    )


def _has_expressions(rows: Sequence[Sequence[Any]], types: Sequence[str]) -> bool:
    """Whether COPY would make other values of some: it does not round times up, either."""
    odd = [
        (i, name)
        for i, name in enumerate(types)
        if name == "REAL" or name.startswith("TIME")
    ]
    return any(
        is_lost_in_text(row[i], name)
        or (isinstance(row[i], str) and row[i].endswith(ROUNDED_UP))
        for i, name in odd
        for row in rows
    )


def _field(value: Any) -> str:
    if value is None:
        return r"\N"
    write = _FIELDS.get(type(value))
    if write is None or not _is_plain(value):
        # It refuses values that MonetDB does not have, and knows subclasses.
        assigned(value)
        (write, *_) = (w for kind, w in _FIELDS.items() if isinstance(value, kind))
    return write(value)


def _is_plain(value: Any) -> bool:
    """Whether MonetDB certainly has the value."""
    if isinstance(value, str):
        return value.isascii() and "\0" not in value
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int):
        return -_LARGE < value < _LARGE
    return type(value) in (bytes, date)


def _decimal(value: Decimal) -> str:
    # COPY refuses more digits behind the point than the column has, zeros too.
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _text(value: str) -> str:
    return f'"{value.translate(_ESCAPES)}"'


_FIELDS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    int: lambda value: str(int(value)),
    str: _text,
    float: lambda value: repr(float(value)),
    Decimal: _decimal,
    bytes: bytes.hex,
    bytearray: bytearray.hex,
    datetime: lambda value: value.isoformat(" "),
    date: date.isoformat,
    time: time.isoformat,
    timedelta: seconds,
    UUID: str,
}
"""By type; a subclass stands before its base class."""
