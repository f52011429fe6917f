"""Hot keys: which keys transactions of this process conflict on, in bounded memory.

A space-saving counter (Metwally and others, 2005): a key that is not among those counted
takes the place of the one with the least weight, and inherits its weight. So a key with
more than one in ``_MOST`` of all events is always there. Its conflicts and merges are
counted from when it got its place: they are never too many.

Any thread may count, at any time: ``_lock`` is held for one event, and nothing is called
meanwhile. A log gets no key's value (P11): it names the table.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tique._log import fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique.store.rows import Key

logger = logging.getLogger("tique.commit")

_Place: TypeAlias = "tuple[str, str]"
"""A table, and the text of a key: values of some types have no hash."""

_MOST = 256
_PAUSE = 2.0
"""Seconds without a conflict after which the next one of a key begins a new series."""
_LONG = 10.0
_MANY = 20
"""A series that lasts so many seconds, with so many conflicts, is worth a warning."""
_SELDOM = 60.0
"""Seconds from one warning to the next."""


@dataclass(frozen=True)
class HotKey:
    """A key on which transactions met.

    Attributes
    ----------
    table : str
        ``schema.table``.
    key : tuple
        The primary key's values, or those of a UNIQUE key.
    conflicts : int
        Commits that failed because another transaction committed the key first.
    merges : int
        Commits whose update was computed again on the other transaction's row.
    """

    table: str
    key: Key
    conflicts: int
    merges: int


class _Count:
    __slots__ = ("conflicts", "in_series", "key", "last", "merges", "since", "weight")

    def __init__(self, key: Key, weight: int) -> None:
        self.key = key
        self.weight = weight
        self.conflicts = 0
        self.merges = 0
        self.since = self.last = 0.0
        self.in_series = 0


class HotKeys:
    """Counts conflicts and merges of one database's keys, in this process.

    Parameters
    ----------
    clock
        The monotonic clock.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._counts: dict[_Place, _Count] = {}
        self._warned: float | None = None

    def note_conflict(self, table: str, key: Key) -> None:
        """Count a commit that failed; warn if the key has had such for long."""
        now = self._clock()
        with self._lock:
            count = self._counted(table, key)
            count.conflicts += 1
            if not count.in_series or now - count.last > _PAUSE:
                count.since, count.in_series = now, 0
            count.in_series += 1
            count.last = now
            lasting, lost = now - count.since, count.in_series
            if lasting < _LONG or lost < _MANY:
                return
            if self._warned is not None and now - self._warned < _SELDOM:
                return
            self._warned = now
        logger.warning(
            "transactions have conflicted on one key of %s for %.0f s, and %s commits "
            "failed; Connection.status() has the key",
            table,
            lasting,
            f"{lost:,}",
            extra=fields("hot_key", table=table, seconds=lasting, conflicts=lost),
        )

    def note_merge(self, table: str, key: Key) -> None:
        """Count an update that was computed again on another transaction's row."""
        with self._lock:
            self._counted(table, key).merges += 1

    def hottest(self, most: int = 10) -> tuple[HotKey, ...]:
        """The keys with the most conflicts and merges, the hottest first."""
        with self._lock:
            found = [
                (count.weight, HotKey(table, count.key, count.conflicts, count.merges))
                for (table, _), count in self._counts.items()
            ]
        found.sort(key=lambda entry: entry[0], reverse=True)
        return tuple(key for _, key in found[:most])

    def _counted(self, table: str, key: Key) -> _Count:
        """The key's count, with its weight raised by one event."""
        place: _Place = table, repr(key)
        count = self._counts.get(place)
        if count is None:
            least = 0
            if len(self._counts) >= _MOST:
                coldest = min(self._counts, key=lambda each: self._counts[each].weight)
                least = self._counts.pop(coldest).weight
            count = self._counts[place] = _Count(key, least)
        count.weight += 1
        return count
