"""Caches of parts of storage tables, within a budget."""

from __future__ import annotations

import threading
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from tique.store.policy import CacheInfo

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique.store.policy import CachePolicy

_Key = TypeVar("_Key")


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


Place: TypeAlias = "tuple[Any, ...]"
"""The key of a cached part: the table's id, and the part's place in the table."""


class Part(Protocol):
    """A cached part: a page, a group or a view.

    Attributes
    ----------
    size
        Its bytes.
    is_used
        Whether a reader has found it since it was last considered for eviction.
    """

    size: int
    is_used: bool


_Part = TypeVar("_Part", bound=Part)


class Cache(Generic[_Part]):
    """Parts by place, evicted by second chance, an approximation of LRU.

    The oldest parts are evicted first, but for those that were found since they were
    last considered. A part stays in its place until it is evicted: folds look for it at
    any time.

    Parameters
    ----------
    name
        The parts' name in :class:`~tique.store.policy.CacheInfo`.
    capacity
        Bytes.
    misses
        How often a place must be missed until the part is worth reading.
    policy
        The rest of the thresholds.
    """

    def __init__(
        self, name: str, capacity: int, misses: int, policy: CachePolicy
    ) -> None:
        self._name = name
        self._capacity = capacity
        self._misses = misses
        self._policy = policy
        self._hits = self._missed = self._evicted = 0
        self._size = 0
        self._lock = threading.Lock()
        self._parts: dict[Place, _Part] = {}
        self._candidates: dict[Place, int] = {}

    def find(self, place: Place) -> _Part | None:
        """The part there, if it is in memory."""
        part = self._parts.get(place)
        if part is not None:
            part.is_used = True
            self._hits += 1
        else:
            self._missed += 1
        return part

    def peek(self, place: Place) -> _Part | None:
        """The same, but not counted as a use: for callers that only update the part."""
        return self._parts.get(place)

    def info(self) -> CacheInfo:
        """The cache's size, hits, misses and evictions."""
        return CacheInfo(
            self._name,
            len(self._parts),
            self._size,
            self._capacity,
            self._hits,
            self._missed,
            self._evicted,
        )

    def wants(self, place: Place, misses: int = 1) -> bool:
        """Count a miss; whether there are so many that reading the part pays."""
        if not self._capacity:
            return False
        with self._lock:
            count = self._candidates.pop(place, 0) + misses
            if place in self._parts or count >= self._misses:
                return True
            self._candidates[place] = count
            for late in oldest(self._candidates, self._policy.candidates, self._policy):
                del self._candidates[late]
            return False

    def put(self, place: Place, part: _Part) -> None:
        """Keep a part in place of an older one."""
        with self._lock:
            self._remove(place)
            self._parts[place] = part
            self._size += part.size
            if self._size > self._capacity:
                self._make_room(self._capacity - self._capacity // self._policy.slack)

    def _make_room(self, left: int) -> None:
        for place in [*self._parts, *self._parts]:
            part = self._parts.get(place)
            if part is not None and part.is_used:
                part.is_used = False
            else:
                self._evicted += part is not None
                self._remove(place)
            if self._size <= left:
                break

    def forget(self, place: Place) -> None:
        """Drop a part."""
        with self._lock:
            self._remove(place)

    def clear(self, table: int) -> None:
        """Drop a table's parts."""
        with self._lock:
            for place in [p for p in self._parts if p[0] == table]:
                self._remove(place)

    def _remove(self, place: Place) -> None:
        part = self._parts.pop(place, None)
        if part is not None:
            self._size -= part.size
