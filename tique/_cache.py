"""Memory for parts of storage tables, within a budget."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

_CANDIDATES = 4096
"""Addresses whose misses are counted."""


class Place(Protocol):
    """Where a part lies; hashable."""

    @property
    def table(self) -> int:
        """The table's id."""
        ...


class Part(Protocol):
    """Something that is kept, a page or a group, and its bytes."""

    size: int


_Address = TypeVar("_Address", bound=Place)
_Part = TypeVar("_Part", bound=Part)


class Cache(Generic[_Address, _Part]):
    """Parts by address, the oldest of which make room for new ones.

    Parameters
    ----------
    capacity
        Bytes.
    misses
        How often an address must be missed until the part is worth reading.
    """

    def __init__(self, capacity: int, misses: int) -> None:
        self._capacity = capacity
        self._misses = misses
        self._size = 0
        self._lock = threading.Lock()
        self._parts: dict[_Address, _Part] = {}
        self._candidates: dict[_Address, int] = {}

    def find(self, address: _Address) -> _Part | None:
        """The part there, if it is in memory."""
        return self._parts.get(address)

    def wants(self, address: _Address) -> bool:
        """Note a miss; whether it was one too many, so that reading pays."""
        if not self._capacity:
            return False
        with self._lock:
            count = self._candidates.pop(address, 0) + 1
            if address in self._parts or count >= self._misses:
                return True
            self._candidates[address] = count
            if len(self._candidates) > _CANDIDATES:
                del self._candidates[next(iter(self._candidates))]
            return False

    def put(self, address: _Address, part: _Part) -> None:
        """Keep a part in place of an older one."""
        with self._lock:
            self._remove(address)
            self._parts[address] = part
            self._size += part.size
            while self._size > self._capacity and self._parts:
                self._remove(next(iter(self._parts)))

    def forget(self, address: _Address) -> None:
        """Forget a part."""
        with self._lock:
            self._remove(address)

    def clear(self, table: int) -> None:
        """Forget a table's parts."""
        with self._lock:
            for address in [a for a in self._parts if a.table == table]:
                self._remove(address)

    def _remove(self, address: _Address) -> None:
        part = self._parts.pop(address, None)
        if part is not None:
            self._size -= part.size
