"""Points of the past, as statements name them: ``AT (VERSION => …)``, ``AS OF …``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tique_rewriter.errors import NotAPoint
from tique_rewriter.plans.plan import Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.plans.plan import Operand

VERSION = "VERSION"
TIMESTAMP = "TIMESTAMP"

_WANTED = {
    VERSION: "a version is a whole number",
    TIMESTAMP: "a time is a datetime, or a text: '2026-11-29 10:00:00+00'",
    "": "a point of the past is a version, a whole number, or a time",
}


@dataclass(frozen=True)
class Past:
    """A point of the past; without a ``kind`` its value says which one it is."""

    operand: Operand
    kind: str = ""

    def point(self, parameters: Sequence[Any]) -> int | datetime:
        """Return the version or the time.

        Raises
        ------
        NotAPoint
            The value is none.
        """
        operand = self.operand
        if isinstance(operand, Literal):
            return as_point(operand.value, self.kind)
        return as_point(parameters[operand.number - 1], self.kind)


def as_point(value: object, kind: str = "") -> int | datetime:
    """Return a value as a version or a time, which has to say its time zone.

    Raises
    ------
    NotAPoint
        It is none, or not of this kind.
    """
    if isinstance(value, int) and not isinstance(value, bool) and kind != TIMESTAMP:
        return int(value)
    if isinstance(value, str) and kind != VERSION:
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise NotAPoint(
                "the text is no time: write '2026-11-29 10:00:00+00'"
            ) from None
    if isinstance(value, datetime) and kind != VERSION:
        if value.utcoffset() is None:
            raise NotAPoint(
                "the time says no time zone: write '2026-11-29 10:00:00+00', or give "
                "a datetime with tzinfo"
            )
        return value
    raise NotAPoint(_WANTED[kind])
