"""Running a transaction of an asynchronous connection again after a conflict."""

from __future__ import annotations

import asyncio
import itertools
from typing import TYPE_CHECKING, TypeVar

from tique._retry import check, pause, told
from tique.errors import SerializationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from tique.aio.connection import AsyncConnection

_Result = TypeVar("_Result")


async def run_transaction_async(
    connection: AsyncConnection,
    work: Callable[[AsyncConnection], Awaitable[_Result]],
    *,
    attempts: int = 20,
    priority: bool = False,
) -> _Result:
    """Await ``work(connection)`` in a transaction, again if it meets a conflict.

    Parameters, result and errors are those of :func:`tique.run_transaction`.
    """
    check(attempts, in_transaction=connection.in_transaction)
    try:
        for attempt in itertools.count(1):
            try:
                async with connection.transaction(priority=priority):
                    with told() as left:
                        return await work(connection)
            except SerializationError:
                if attempt == attempts:
                    raise
            else:
                raise left[0]
            await asyncio.sleep(pause(attempt))
    finally:
        connection._connection._execution.leave_turn()
    raise AssertionError
