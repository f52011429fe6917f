r"""Values that the driver knows, written into SQL text (P11).

MonetDB's ordinary strings have backslash escapes, unless the server was started
otherwise; ``R'…'`` has none, whatever the server's setting, so that text only needs its
quotes doubled. A NUL character has no form at all.

The smallest value of each integer type means NULL in storage and has no literal of
that type: MonetDB refuses it as an overflow. The UUID of zeros means NULL too, and
MonetDB does not refuse it: that is done here. There are no infinities.

*Statements with* ``$n`` *in them:* where the parameters go (P11). MonetDB gets literals. A ``$n`` counts only outside strings, quoted names and
comments; its literal stands between spaces, so that it cannot merge with the text
around it. The lexical rules are those that 11.41 shows: ``'…'`` and ``E'…'``
with backslash escapes, ``R'…'``, ``X'…'`` and ``U&'…'`` without (of quotes), ``"…"``
with doubled quotes only, ``--`` and ``#`` to the end of the line, ``/* … */`` nested.
The first of them is a setting of the server; the engine refuses the other one.
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.values.types import INTEGERS, MONTHS, is_text, text_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_LARGEST = (1 << 127) - 1
_DECIMAL_DIGITS = 38


def quoted(text: str) -> str:
    """A string literal.

    Raises
    ------
    EngineError
        DATA if MonetDB has no form for the text.
    """
    if "\0" in text:
        raise EngineError(ErrorKind.DATA, "MonetDB's text has no NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise EngineError(
            ErrorKind.DATA, f"not valid Unicode: {error.reason}"
        ) from error
    return "R'" + text.replace("'", "''") + "'"


def literal(value: Any) -> str:
    """The literal of a value, with the type that goes with its Python type.

    Raises
    ------
    EngineError
        DATA if it is of another type or MonetDB has no such value.
    """
    write = _WRITERS.get(type(value))
    if write is None:
        for kind, candidate in _WRITERS.items():
            if isinstance(value, kind):
                write = candidate
                break
        else:
            raise EngineError(
                ErrorKind.DATA,
                f"MonetDB cannot take a value of type {type(value).__name__}",
            )
    return write(value)


def typed(value: Any, type_name: str) -> str:
    """The literal of a value that is of a column's type, or text for it.

    Text that is too long for its column gets no CAST, which would cut it. The other has
    one, lest it be of type CHAR and of its own length; MonetDB takes no notice of one
    around a column of VALUES.
    """
    if value is None:
        return f"CAST(NULL AS {type_name})"
    if type_name in INTEGERS and isinstance(value, int):
        value = int(value)
    if is_text(type_name):
        text = quoted(str(value))
        length = text_length(type_name)
        is_cut = length is not None and len(str(value)) > length
        return text if is_cut else f"CAST({text} AS {type_name})"
    if isinstance(value, float) and math.isfinite(value):
        value = repr(float(value))
    text = quoted(value) if isinstance(value, str) else literal(value)
    if type_name == "INTERVAL DAY" and isinstance(value, str):
        # CAST takes a text for a number of days.
        return f"(INTERVAL '0' DAY + CAST({text} AS INTERVAL SECOND))"
    if is_lost_in_text(value, type_name):
        # A number that REAL does not have.
        text = "CAST(R'-1e-60' AS DOUBLE)"
    return f"CAST({text} AS {read_as(type_name)})"


def read_as(type_name: str) -> str:
    """The type that takes the text of an interval for the number that it is."""
    if not type_name.startswith("INTERVAL"):
        return type_name
    return "INTERVAL MONTH" if type_name in MONTHS else "INTERVAL SECOND"


def is_lost_in_text(value: Any, type_name: str) -> bool:
    """Whether MonetDB reads another value in this text: 0 in -0, of a REAL."""
    return type_name == "REAL" and value == "-0"


def assigned(value: Any, type_name: str = "") -> str:
    """The literal of a value to assign: the engine converts it to the column's type."""
    if value is None:
        return "NULL"
    if not isinstance(value, str):
        return literal(value)
    if type_name.startswith("INTERVAL") or is_lost_in_text(value, type_name):
        return typed(value, type_name)
    return quoted(value)


def _integer(value: int) -> str:
    number = int(value)
    if abs(number) > _LARGEST:
        raise EngineError(ErrorKind.DATA, "an integer has too many digits for MonetDB")
    # In brackets, lest a minus before it make a comment of both.
    return str(number) if number >= 0 else f"({number})"


def _double(value: float) -> str:
    if not math.isfinite(value):
        raise EngineError(ErrorKind.DATA, f"MonetDB has no {float(value)!r}")
    return f"CAST(R'{float(value)!r}' AS DOUBLE)"


def _decimal(value: Decimal) -> str:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise EngineError(ErrorKind.DATA, f"MonetDB has no {value}")
    scale = max(0, -exponent)
    # A column of 38 digits behind the point has none before it.
    width = max(len(digits) + max(0, exponent), min(scale + 1, _DECIMAL_DIGITS))
    if width > _DECIMAL_DIGITS and not value:
        width, scale = 1, 0
        value = Decimal(0)
    if width > _DECIMAL_DIGITS:
        raise EngineError(
            ErrorKind.DATA, f"MonetDB's decimals have {_DECIMAL_DIGITS} digits at most"
        )
    return f"CAST(R'{value:f}' AS DECIMAL({width},{scale}))"


def _time(value: time) -> str:
    zone = "" if value.tzinfo is None else " WITH TIME ZONE"
    _expect_minutes(value)
    return f"CAST(R'{value.isoformat()}' AS TIME(6){zone})"


def _timestamp(value: datetime) -> str:
    zone = "" if value.tzinfo is None else " WITH TIME ZONE"
    _expect_minutes(value)
    return f"CAST(R'{value.isoformat(' ')}' AS TIMESTAMP{zone})"


def _expect_minutes(value: datetime | time) -> None:
    offset = value.utcoffset()
    if value.tzinfo is not None and offset is None:
        raise EngineError(
            ErrorKind.DATA, "a time zone that depends on the date needs one in MonetDB"
        )
    if offset is not None and offset % timedelta(minutes=1):
        raise EngineError(
            ErrorKind.DATA, "MonetDB's time zones are whole minutes away from UTC"
        )


def seconds(value: timedelta) -> str:
    """The seconds of an interval, in MonetDB's form: without a fraction of zeros.

    Raises
    ------
    EngineError
        DATA if it has fractions of a millisecond.
    """
    number, rest = divmod(value, timedelta(milliseconds=1))
    if rest:
        raise EngineError(
            ErrorKind.DATA, "MonetDB's intervals have no fractions of a millisecond"
        )
    return f"{Decimal(number) / 1000:f}"


def _uuid(value: UUID) -> str:
    if not value.int:
        raise EngineError(
            ErrorKind.DATA, "MonetDB has no UUID of zeros: it takes it for NULL"
        )
    return f"CAST(R'{value}' AS UUID)"


_WRITERS: dict[type, Callable[[Any], str]] = {
    type(None): lambda _: "NULL",
    bool: lambda value: "TRUE" if value else "FALSE",
    int: _integer,
    str: quoted,
    float: _double,
    Decimal: _decimal,
    bytes: lambda value: f"BLOB '{value.hex()}'",
    bytearray: lambda value: f"BLOB '{value.hex()}'",
    datetime: _timestamp,
    date: lambda value: f"CAST(R'{value.isoformat()}' AS DATE)",
    time: _time,
    timedelta: lambda value: f"CAST(R'{seconds(value)}' AS INTERVAL SECOND)",
    UUID: _uuid,
}
"""By type; a subclass stands before its base class."""


_PIECES = re.compile(
    r"""
    (?P<raw> (?<!\w) (?:[RrXx]|[Uu]&) '(?:[^']|'')*' )
  | (?P<string> '(?:[^'\\]|\\.|'')*' )
  | (?P<name> "(?:[^"]|"")*" )
  | (?P<line> (?:--|\#)[^\n]* )
  | (?P<block> /\* )
  | (?P<open> ['"] )
  | \$ (?P<number> [1-9][0-9]* )
    """,
    re.VERBOSE | re.DOTALL,
)

_BLOCK = re.compile(r"/\*|\*/")


def substituted(sql: str, parameters: Sequence[Any]) -> str:
    """The statement with a literal in place of every parameter.

    Raises
    ------
    EngineError
        PROGRAMMING if a parameter is missing, DATA if a value has no literal.
    """
    texts, numbers = cut(sql)
    if not numbers:
        return sql
    if max(numbers) > len(parameters):
        raise EngineError(
            ErrorKind.PROGRAMMING,
            f"the statement has a parameter ${max(numbers)}, {len(parameters)} given",
        )
    pieces = [texts[0]]
    for number, text in zip(numbers, texts[1:], strict=True):
        pieces += (" ", literal(parameters[number - 1]), " ", text)
    return "".join(pieces)


@lru_cache(maxsize=1024)
def cut(sql: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The text around the parameters, one piece more than there are, and their numbers.

    Raises
    ------
    EngineError
        PROGRAMMING if a string, a quoted name or a comment does not end.
    """
    texts: list[str] = []
    numbers: list[int] = []
    start = position = 0
    while found := _PIECES.search(sql, position):
        position = found.end()
        if found["open"]:
            raise EngineError(
                ErrorKind.PROGRAMMING, "a string or a quoted name does not end"
            )
        if found["block"]:
            position = _block_end(sql, position)
        elif found["number"]:
            texts.append(sql[start : found.start()])
            numbers.append(int(found["number"]))
            start = position
    return (*texts, sql[start:]), tuple(numbers)


def _block_end(sql: str, position: int) -> int:
    depth = 1
    while depth:
        found = _BLOCK.search(sql, position)
        if found is None:
            raise EngineError(ErrorKind.PROGRAMMING, "a comment does not end")
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return position
