"""Queues that several threads empty without a lock.

A deque's operations are atomic, and two of them are not: an item that a thread has seen
may be another's before it takes it. So an item is taken without a look before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Iterator

_Item = TypeVar("_Item")


def taken(queue: deque[_Item]) -> Iterator[_Item]:
    """Take items, oldest first, until none is left; each goes to one thread only."""
    while True:
        try:
            item = queue.popleft()
        except IndexError:
            return
        yield item
