"""Values that the driver keeps in MonetDB's own text form.

Python has no value that is the same as an interval of days, which may have hours, as
24:00:00, to which MonetDB rounds a time of day up, as a moment in the year 20000, or as a
number of type REAL, the greatest of which overflows. So the driver keeps the text of such
values, from the query that gives it to storage, and makes Python's value of it where an
application looks at it.

Equal values have one text, but for the zeros of REAL: what has a time zone is kept in UTC,
and a number of seconds has no zeros at its end. MonetDB reads such a text as the value
again, but for intervals, whose text is a number of seconds or months whatever their type
is, and the -0 of REAL (:mod:`tique_backends.monetdb.values.literals`), and for 24:00:00, in whose
place a time is kept that MonetDB rounds up to it.

A TIME WITH TIME ZONE that MonetDB has rounded up to 24:00:00 has the text of 00:00:00, and
is kept as that.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.values.types import (
    MONTHS,
    ZONE,
    is_kept_as_text,
    to_date,
    to_days,
    to_seconds,
    to_time,
    to_timestamp,
    year_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from tique_backends.records import Row

ROUNDED_UP = "23:59:59.9999999"
"""A time that MonetDB rounds up to 24:00:00, which it cannot read."""

_MIDNIGHT = "24:"
_UNREADABLE = "24:00:00.000000"
_ANY_DAY = date(2000, 1, 1)


def keeper(type_name: str) -> Callable[[str], Any] | None:
    """Return a function from the text of a reply to that which is kept.

    None if that is Python's value. The function raises EngineError for a value that
    MonetDB could not be given again.
    """
    if type_name == "DATE":
        return _date
    if type_name == "TIMESTAMP":
        return _timestamp
    if not is_kept_as_text(type_name):
        return None
    if type_name.startswith("INTERVAL"):
        return _number
    if type_name == "REAL":
        return str
    if type_name.endswith(ZONE):
        return _utc_moment if type_name.startswith("TIMESTAMP") else _utc_time
    return _readable


def _date(item: str) -> date | str:
    try:
        return to_date(item)
    except ValueError:
        return item


def _timestamp(item: str) -> datetime | str:
    try:
        return to_timestamp(item)
    except ValueError:
        return item


def _number(item: str) -> str:
    return item.rstrip("0").rstrip(".") if "." in item else item


def _readable(item: str) -> str:
    day, blank, clock = item.rpartition(" ")
    if not clock.startswith(_MIDNIGHT):
        return item
    if clock == _UNREADABLE:
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            "MonetDB has rounded a time up to 24:00:00.000000, which it cannot read",
        )
    return f"{day}{blank}{ROUNDED_UP}"


def _utc_time(item: str) -> str:
    return _in_zone(to_time(item), UTC).isoformat()


def _utc_moment(item: str) -> str:
    year, rest = year_of(item)
    # Of years that Python does not have, another that has the same days.
    near = 2000 + year % 400
    moment = datetime.fromisoformat(f"{near}-{rest}").astimezone(UTC)
    return f"{year + moment.year - near}{moment.isoformat(' ')[4:]}"


def _in_zone(value: time, zone: tzinfo) -> time:
    return datetime.combine(_ANY_DAY, value).astimezone(zone).timetz()


@lru_cache(maxsize=4096)
def are_shown_otherwise(type_names: tuple[str, ...]) -> bool:
    """Whether values of some of the types may be shown in another form than is kept."""
    return any(keeper(type_name) is not None for type_name in type_names)


def shown_rows(
    type_names: Sequence[str], rows: Sequence[Row], zone: Callable[[], tzinfo]
) -> list[Row]:
    """Return rows that were kept, whose columns are of these types, as results have them.

    ``zone`` returns the session's time zone.

    Raises
    ------
    EngineError
        DATA if Python has no such value.
    """
    readers = [
        (i, _reader(name, zone))
        for i, name in enumerate(type_names)
        if keeper(name) is not None
    ]
    try:
        return [_shown(row, readers) for row in rows]
    except (ValueError, OverflowError) as error:
        raise EngineError(
            ErrorKind.DATA, f"Python has no such value: {error}"
        ) from None


def _shown(row: Row, readers: Sequence[tuple[int, Callable[[str], Any]]]) -> Row:
    values = list(row)
    for position, read in readers:
        if type(values[position]) is str:
            values[position] = read(values[position])
    return tuple(values)


def _reader(type_name: str, zone: Callable[[], tzinfo]) -> Callable[[str], Any]:
    if type_name.startswith("INTERVAL"):
        if type_name == "INTERVAL DAY":
            return to_days
        return int if type_name in MONTHS else to_seconds
    if type_name in ("DATE", "REAL"):
        return to_date if type_name == "DATE" else float
    if type_name.startswith("TIMESTAMP"):
        if type_name.endswith(ZONE):
            return lambda text: to_timestamp(text).astimezone(zone())
        return lambda text: to_timestamp(_exactly(text))
    if type_name.endswith(ZONE):
        return lambda text: _in_zone(to_time(text), zone())
    return lambda text: to_time(_exactly(text))


def _exactly(text: str) -> str:
    """Return the text, unless it stands for another."""
    if text.endswith(ROUNDED_UP):
        raise ValueError(_UNREADABLE)
    return text
