"""How long a test hammers, and how long it waits.

A short run hammers for a moment, ``make test-long`` for as long as it takes to find rare
things: it sets ``TIQUE_TEST_LONG``. The assertions are the same.

How fast the product is, benchmarks tell. A test only tells a call that holds others up
from one that does not, also on a machine where several processes want each core.
"""

from __future__ import annotations

import os
from typing import TypeVar

_T = TypeVar("_T")

LONG = os.environ.get("TIQUE_TEST_LONG", "") not in ("", "0")


def effort(short: _T, long: _T) -> _T:
    """The second one in a long run."""
    return long if LONG else short


def patience(seconds: float) -> float:
    """The time for something that may last so long where each process has a core."""
    return seconds * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))
