"""The cache of ranges of storage tables' keys, within a budget of bytes."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from tique.store.policy import CacheInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique.store.policy import CachePolicy
    from tique.store.ranges import KeyRange

_Key = TypeVar("_Key")

Place: TypeAlias = "tuple[Any, ...]"
"""The key of a cached range: the table's id, and the range's place in the table."""

_NEVER = -(1 << 60)
"""The misses of a range that is not worth keeping."""


def oldest(
    entries: Mapping[_Key, object], capacity: int, policy: CachePolicy
) -> list[_Key]:
    """The entries to evict from a dictionary that has more than ``capacity``.

    They are more than necessary: a dictionary keeps slots for removed entries, so that
    each search for its first entry passes all slots before that.
    """
    excess = len(entries) - capacity
    return (
        list(islice(entries, excess + capacity // policy.slack)) if excess > 0 else []
    )


class Cache:
    """Ranges by place, evicted by second chance, an approximation of LRU.

    The oldest ranges are evicted first, but for those that were found since they were
    last considered. A range stays in its place until it is evicted: folds look for it
    at any time.

    Parameters
    ----------
    policy
        Its capacity in bytes, and how often a range must be missed until reading it
        pays.

    Attributes
    ----------
    hits, misses : int
        How often a reader found a range that answered, or none.
    """

    def __init__(self, policy: CachePolicy) -> None:
        self.hits = self.misses = 0
        self._policy = policy
        self._evicted = self._size = 0
        self._lock = threading.Lock()
        self._ranges: dict[Place, KeyRange] = {}
        self._candidates: dict[Place, int] = {}
        self.get = self._ranges.get
        """The range at a place, if it is in memory."""

    def info(self) -> CacheInfo:
        """The cache's size, hits, misses and evictions."""
        return CacheInfo(
            "ranges",
            len(self._ranges),
            self._size,
            self._policy.bytes,
            self.hits,
            self.misses,
            self._evicted,
        )

    def wants(self, place: Place, misses: int = 1) -> bool:
        """Count a miss; whether there are so many that reading the range pays."""
        if not self._policy.bytes:
            return False
        with self._lock:
            count = self._candidates.pop(place, 0) + misses
            if count >= self._policy.misses or (place in self._ranges and count > 0):
                return True
            self._note(place, count)
            return False

    def reject(self, place: Place) -> None:
        """Note that a range is not worth keeping: it is not wanted again soon."""
        with self._lock:
            self._note(place, _NEVER)

    def _note(self, place: Place, misses: int) -> None:
        self._candidates[place] = misses
        for late in oldest(self._candidates, self._policy.candidates, self._policy):
            del self._candidates[late]

    def put(self, part: KeyRange) -> None:
        """Keep a range in place of an older one."""
        with self._lock:
            self._remove(part.place)
            self._ranges[part.place] = part
            self._size += part.size
            self._make_room()

    def grow(self, part: KeyRange, size: int) -> None:
        """Note that a range has grown by so many bytes."""
        with self._lock:
            if self._ranges.get(part.place) is part:
                part.size += size
                self._size += size
                self._make_room()

    def _make_room(self) -> None:
        capacity = self._policy.bytes
        if self._size <= capacity:
            return
        left = capacity - capacity // self._policy.slack
        for place in [*self._ranges, *self._ranges]:
            part = self._ranges.get(place)
            if part is not None and part.is_used:
                part.is_used = False
            else:
                self._evicted += part is not None
                self._remove(place)
            if self._size <= left:
                break

    def forget(self, part: KeyRange) -> None:
        """Drop a range."""
        with self._lock:
            self._remove(part.place)

    def clear(self, table: int) -> None:
        """Drop a table's ranges."""
        with self._lock:
            for place in [p for p in self._ranges if p[0] == table]:
                self._remove(place)

    def _remove(self, place: Place) -> None:
        part = self._ranges.pop(place, None)
        if part is not None:
            self._size -= part.size
