"""Parts of a shared log that cannot be applied (P11).

Another client wrote a log entry, perhaps by hand or with an older version of tique.
Parts of it that cannot be applied are *set aside*: they count for nothing in any
process, and stop neither the processes that catch up nor a fold nor the next opening.
Reasons name no values.
"""

from __future__ import annotations

import logging
import threading
from typing import NamedTuple

logger = logging.getLogger("tique.recovery")

NO_ROW = "it leaves columns to a stored row, and there is none"
"""The reason for setting aside a version with gaps."""

_MOST = 1000
"""The number of parts that are remembered, the first ones."""


class SetAside(NamedTuple):
    """A part of a commit that is not applied.

    Attributes
    ----------
    cts : int
        The commit's timestamp.
    table_id : int or None
        The table whose versions they are; None: all of the commit.
    reason : str
        The fault.
    """

    cts: int
    table_id: int | None
    reason: str


class Aside:
    """The parts that this process has set aside; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[int, int | None], SetAside] = {}
        self._fresh: list[SetAside] = []

    def note(self, cts: int, table_id: int | None, reason: str) -> None:
        """Remember that a part of a commit was not applied."""
        with self._lock:
            if (cts, table_id) in self._found or len(self._found) >= _MOST:
                return
            self._found[cts, table_id] = part = SetAside(cts, table_id, reason)
            self._fresh.append(part)
        logger.warning(
            "the versions of commit %d for %s were set aside: %s",
            cts,
            "any table" if table_id is None else f"table number {table_id}",
            reason,
            extra={
                "tique_event": "set_aside",
                "tique_cts": cts,
                "tique_table_number": table_id,
            },
        )

    def fresh(self) -> list[SetAside]:
        """Return the parts that were noted since the last call."""
        with self._lock:
            fresh, self._fresh = self._fresh, []
        return fresh

    def all(self) -> list[SetAside]:
        """Return the parts that were noted so far, by timestamp."""
        with self._lock:
            found = list(self._found.values())
        return sorted(found, key=lambda part: (part.cts, part.table_id or 0))
