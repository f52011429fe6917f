"""For how long a table's past is kept, and in which detail."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Self

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86400, "week": 604800}
_POINTS = {"hourly": 3600, "daily": 86400}
_TERM = re.compile(r"(\d{1,9}) *(second|minute|hour|day|week)s?")
_TIER = re.compile(rf"(hourly|daily) +for +{_TERM.pattern}")


@dataclass(frozen=True)
class Retention:
    """A retention: every state at first, then that at full hours or days (UTC).

    Attributes
    ----------
    text : str
        The retention, as :meth:`parse` takes it.
    first : int
        Seconds for which every state can be asked for.
    tiers : tuple of (int, int)
        Seconds between points, and for how many seconds these can be asked for.
    """

    text: str
    first: int
    tiers: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a retention such as ``2 hours; hourly for 2 days; daily for 30 days``.

        Raises
        ------
        InterfaceError
            It is none (SQLSTATE 22023).
        """
        first, *rest = [" ".join(part.lower().split()) for part in text.split(";")]
        found = _TERM.fullmatch(first)
        tiers = [_TIER.fullmatch(part) for part in rest]
        if found is None or not all(tiers) or int(found[1]) == 0:
            raise errors.InterfaceError(
                f"{text!r} is no retention; write, for instance, '2 hours', or '2 hours; "
                "hourly for 2 days; daily for 30 days'",
                sqlstate="22023",
            )
        return cls(
            "; ".join([first, *rest]),
            int(found[1]) * _SECONDS[found[2]],
            tuple(
                (_POINTS[tier[1]], int(tier[2]) * _SECONDS[tier[3]])
                for tier in tiers
                if tier
            ),
        )

    @property
    def longest(self) -> int:
        """Seconds after which no state can be asked for."""
        return max([self.first, *(term for _, term in self.tiers)])

    def points(self, moments: Sequence[tuple[int, int]], now: int) -> list[int]:
        """The versions that can be asked for of those before the first term, ascending.

        Parameters
        ----------
        moments
            The version and time of the last commit of each full hour.
        now
            The time, in microseconds, as all times.
        """
        found = set()
        latest = None
        ahead = sorted(moments, key=itemgetter(1), reverse=True)
        for place in sorted(set(self.places(now))):
            while ahead and ahead[-1][1] <= place:
                cts, _ = ahead.pop()
                latest = cts if latest is None else max(latest, cts)
            if latest is not None:
                found.add(latest)
        return sorted(found)

    def places(self, now: int) -> Iterator[int]:
        """Yield the full hours and days that can be asked for, before the first term."""
        for step, term in self.tiers:
            oldest, newest = (now // 10**6 - length for length in (term, self.first))
            for place in range(oldest // step + 1, newest // step + 1):
                yield place * step * 10**6

    def covers(self, other: Retention) -> int | None:
        """For how many seconds all is there that another retention asks for.

        None: for all that it asks for.
        """
        if other.first > self.first:
            return self.first
        kept = dict(self.tiers)
        short = [kept.get(s, self.first) for s, t in other.tiers if kept.get(s, 0) < t]
        return min(short, default=None)
