"""Feeds of changes for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Required, TypedDict, TypeVar

from tique.aio.worker import Worker

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from datetime import datetime

    from tique.connection.feed import Feed

ItemT = TypeVar("ItemT")


class FeedOptions(TypedDict, total=False):
    """The parameters of :meth:`tique.Connection.changes`."""

    since: Required[int | datetime]
    until: int | datetime | None
    schema: str | None
    follow: bool
    timeout: float | None


async def iterate(make: Callable[[], Feed[ItemT]]) -> AsyncGenerator[ItemT]:
    """Iterate over a feed, which is made in a thread of its own, and closed there."""
    worker = Worker()

    def open_feed() -> Feed[ItemT]:
        feed = make()
        worker.connection = feed._reader
        return feed

    try:
        feed = await worker.run(open_feed, ends=True)
        pause: float | None = 0.0
        while pause is not None:
            while (item := feed._at_hand()) is not None:
                yield item
            # Not in the thread: a task that waits is cancelled at once.
            await asyncio.sleep(pause)
            pause = await worker.run(feed._fetch)
    finally:
        await worker.close()
