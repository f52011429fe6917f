"""COPY for asyncio."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from types import TracebackType

    from tique._copy import Copy
    from tique.aio.worker import Worker


class AsyncCopy:
    """The rows of one COPY (:class:`tique._copy.Copy`), in an ``async with`` block."""

    def __init__(self, worker: Worker, copy: Copy) -> None:
        self._worker = worker
        self._copy = copy

    def set_types(self, types: Sequence[int | str]) -> None:
        """Say the types of the values of a row, as psycopg has them."""
        self._copy.set_types(types)

    async def write(self, data: bytes | bytearray | memoryview | str) -> None:
        """Write a piece of data in the format that the statement says."""
        self._copy.write(data)

    async def write_row(self, row: Sequence[Any]) -> None:
        """Write a row of values, in the format ``text`` or ``binary``."""
        self._copy.write_row(row)

    async def read(self) -> bytes:
        """Return the next piece of data; nothing at the end."""
        return await self._worker.run(self._copy.read)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Iterate over the pieces of data."""
        while data := await self.read():
            yield data

    async def read_row(self) -> tuple[Any, ...] | None:
        """Return the next row's values, in the format ``text`` or ``binary``; or None."""
        return await self._worker.run(self._copy.read_row)

    async def rows(self) -> AsyncIterator[tuple[Any, ...]]:
        """Iterate over the rows."""
        while (row := await self.read_row()) is not None:
            yield row

    async def __aenter__(self) -> Self:
        """Begin the COPY."""
        self._copy.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write the rows, unless the block raised; then nothing is written."""
        end = partial(self._copy.__exit__, kind, error, traceback)
        if kind is not None:
            end()
        else:
            await self._worker.run(end)
