"""Medians, spreads and percentiles."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True, slots=True)
class Spread:
    """A median with the smallest and the largest of its values."""

    median: float
    low: float
    high: float

    def of_100(self) -> Spread:
        """Return shares as percentages."""
        return Spread(100 * self.median, 100 * self.low, 100 * self.high)

    def shown(self, digits: int = 1) -> str:
        """Return the median with its range."""
        return (
            f"{self.median:,.{digits}f}"
            f" ({self.low:,.{digits}f}–{self.high:,.{digits}f})"  # noqa: RUF001
        )


def spread(values: Iterable[float]) -> Spread:
    """Return the spread of at least one value."""
    found = sorted(values)
    return Spread(median(found), found[0], found[-1])


def percentile(ordered: Sequence[float], share: float) -> float:
    """Return the smallest value that `share` of a sorted sequence does not exceed.

    Zero for an empty sequence, so that a kind which never ran can be listed.
    """
    if not ordered:
        return 0.0
    return ordered[max(0, ceil(share * len(ordered)) - 1)]
