"""Values with a time zone that were read by one session and are shown by another.

An engine gives a moment in its session's time zone. Sessions have the same one until
an application changes that of its own; from then on, rows that are in memory are
brought into the zone of the session that shows them.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import date, datetime, time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import tzinfo

    from tique_backends.records import Row

_ANY_DAY = date(2000, 1, 1)


class Zones:
    """The time zones of an engine's sessions.

    Attributes
    ----------
    differ : bool
        Whether they may differ. Set before the first of them changes, never unset.
    """

    def __init__(self) -> None:
        self.differ = False

    def shown(
        self,
        type_names: Sequence[str],
        rows: list[Row],
        marker: str,
        zone: Callable[[], tzinfo],
    ) -> list[Row]:
        """Return the rows with the values of types with this marker in a zone."""
        if not self.differ:
            return rows
        zoned = [i for i, name in enumerate(type_names) if marker in name]
        if not zoned or not rows:
            return rows
        return [_in_zone(row, zoned, zone()) for row in rows]


def _in_zone(row: Row, positions: Sequence[int], zone: tzinfo) -> Row:
    values = list(row)
    for position in positions:
        values[position] = _value(values[position], zone)
    return tuple(values)


def _value(value: Any, zone: tzinfo) -> Any:
    if isinstance(value, list | tuple):
        return type(value)([_value(item, zone) for item in value])
    if isinstance(value, dict):
        return {_value(k, zone): _value(v, zone) for k, v in value.items()}
    if isinstance(value, datetime) and value.tzinfo is not None:
        # Python has no moments before the year 1 in another zone.
        with suppress(OverflowError):
            return value.astimezone(zone)
    if isinstance(value, time) and value.tzinfo is not None:
        return datetime.combine(_ANY_DAY, value).astimezone(zone).timetz()
    return value
