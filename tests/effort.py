"""How long a test hammers: for a moment, or for as long as it takes to find rare things.

``make test-long`` sets ``TIQUE_TEST_LONG``. The assertions are the same.
"""

from __future__ import annotations

import os
from typing import TypeVar

_T = TypeVar("_T")

LONG = os.environ.get("TIQUE_TEST_LONG", "") not in ("", "0")


def effort(short: _T, long: _T) -> _T:
    """The second one in a long run."""
    return long if LONG else short
