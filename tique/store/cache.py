"""Memory for parts of storage tables, within a budget."""

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
    """What makes room in a dictionary that has more than ``capacity`` entries.

    That is more than it has to be: a dictionary keeps places for what was taken out of
    it, so that each look at its first entry goes past all that were there before.
    """
    excess = len(entries) - capacity
    return (
        list(islice(entries, excess + capacity // policy.slack)) if excess > 0 else []
    )


Place: TypeAlias = "tuple[Any, ...]"
"""Where a part lies: the table's id, and what tells its parts apart."""


class Part(Protocol):
    """Something that is kept, a page or a group.

    Attributes
    ----------
    size
        Its bytes.
    is_used
        Whether somebody has found it since it was last about to make room.
    """

    size: int
    is_used: bool


_Part = TypeVar("_Part", bound=Part)


class Cache(Generic[_Part]):
    """Parts by place. The oldest that nobody has used lately make room for new ones.

    A part stays in its place until it goes: folds look for it at any time.

    Parameters
    ----------
    name
        What the parts are.
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
        """The same, without a trace: what only keeps it up to date does not use it."""
        return self._parts.get(place)

    def info(self) -> CacheInfo:
        """What it holds, and what it was good for."""
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
        """Note that it was missed; whether that was too often, so that reading pays."""
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
        """Forget a part."""
        with self._lock:
            self._remove(place)

    def clear(self, table: int) -> None:
        """Forget a table's parts."""
        with self._lock:
            for place in [p for p in self._parts if p[0] == table]:
                self._remove(place)

    def _remove(self, place: Place) -> None:
        part = self._parts.pop(place, None)
        if part is not None:
            self._size -= part.size
