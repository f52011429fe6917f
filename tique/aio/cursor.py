"""Cursors, and COPY, for asyncio."""

from __future__ import annotations

from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self
from typing import TypeVar as _TypeVar

from typing_extensions import TypeVar

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from types import TracebackType

    import pandas
    import polars
    import pyarrow

    from tique.aio.connection import AsyncConnection
    from tique.aio.worker import Worker
    from tique.connection.cursor import Column, Cursor
    from tique.connection.query_text import Query
    from tique.connection.transfer.copy import Copy
    from tique.rows import RowFactory

RowT = TypeVar("RowT", default=Any)
_Result = _TypeVar("_Result")

_END: Any = object()


class AsyncCopy:
    """The rows of one COPY (:class:`tique.connection.transfer.copy.Copy`), in an ``async with`` block."""

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


class AsyncCursor(Generic[RowT]):
    """A cursor for asyncio: :class:`tique.Cursor` by coroutines.

    :meth:`AsyncConnection.cursor` makes one. Rows that are in memory are fetched at once.
    """

    def __init__(
        self, connection: AsyncConnection[Any], worker: Worker, cursor: Cursor[RowT]
    ) -> None:
        self._connection = connection
        self._worker = worker
        self._cursor = cursor

    @property
    def connection(self) -> AsyncConnection[Any]:
        """The connection that the cursor belongs to."""
        return self._connection

    @property
    def description(self) -> list[Column] | None:
        """Name and type of each column of the result; None without a result."""
        return self._cursor.description

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed or found; -1 where not known."""
        return self._cursor.rowcount

    @property
    def statusmessage(self) -> str | None:
        """The last statement's command tag (:attr:`tique.Cursor.statusmessage`)."""
        return self._cursor.statusmessage

    @property
    def rownumber(self) -> int | None:
        """The index of the next row in the result; None without a result."""
        return self._cursor.rownumber

    @property
    def arraysize(self) -> int:
        """How many rows :meth:`fetchmany` fetches by default."""
        return self._cursor.arraysize

    @arraysize.setter
    def arraysize(self, value: int) -> None:
        self._cursor.arraysize = value

    @property
    def itersize(self) -> int:
        """Rows of a piece, of a named cursor."""
        return self._cursor._piece

    @itersize.setter
    def itersize(self, value: int) -> None:
        self._cursor.itersize = value  # type: ignore[attr-defined]

    @property
    def row_factory(self) -> RowFactory[RowT]:
        """What makes the rows."""
        return self._cursor.row_factory

    @row_factory.setter
    def row_factory(self, value: RowFactory[RowT]) -> None:
        self._cursor.row_factory = value

    @property
    def closed(self) -> bool:
        """Whether the cursor was closed."""
        return self._cursor.closed

    async def execute(
        self,
        query: Query,
        parameters: Any = None,
        *,
        prepare: bool | None = None,
        binary: bool | None = None,
    ) -> Self:
        """Execute one statement (:meth:`tique.Cursor.execute`)."""
        await self._worker.run(partial(self._cursor.execute, query, parameters))
        return self

    async def executemany(
        self, query: Query, parameters: Iterable[Any], /, *, returning: bool = False
    ) -> Self:
        """Execute INSERT, UPDATE or DELETE for many rows of parameters, as one."""
        await self._worker.run(
            partial(
                self._cursor.executemany, query, list(parameters), returning=returning
            )
        )
        return self

    async def stream(
        self, query: Query, parameters: Any = None, *, size: int = 1
    ) -> AsyncIterator[RowT]:
        """Execute a query and iterate over its rows (:meth:`tique.Cursor.stream`)."""
        await self.execute(query, parameters)
        async for row in self:
            yield row

    @asynccontextmanager
    async def copy(self, query: Query, /) -> AsyncIterator[AsyncCopy]:
        """A block for a COPY … FROM STDIN or TO STDOUT (:meth:`tique.Cursor.copy`)."""
        copy = await self._worker.run(partial(self._cursor.copy, query))
        async with AsyncCopy(self._worker, copy) as opened:
            yield opened

    async def append(
        self, table: str, data: Any, /, *, schema: str | None = None
    ) -> Self:
        """Insert rows that come in columns (:meth:`tique.Cursor.append`)."""
        await self._worker.run(partial(self._cursor.append, table, data, schema=schema))
        return self

    async def nextset(self) -> bool | None:
        """Go on to the next result of :meth:`executemany`, and drop the one before."""
        return await self._worker.run(self._cursor.nextset)

    async def results(self) -> AsyncIterator[Self]:
        """Iterate over the results of :meth:`executemany`: fetch from this cursor each time."""
        if self._cursor._outcome is not None:
            yield self
        while await self.nextset():
            yield self

    async def scroll(self, value: int, mode: str = "relative") -> None:
        """Go on to another row of the result (:meth:`tique.Cursor.scroll`)."""
        await self._worker.run(partial(self._cursor.scroll, value, mode))

    # Results

    async def _fetch(self, size: int | None, fetch: Callable[[], _Result]) -> _Result:
        if self._cursor._has_at_hand(size):
            return fetch()
        return await self._worker.run(fetch)

    async def fetchone(self) -> RowT | None:
        """Return the next row, or None at the end."""
        return await self._fetch(1, self._cursor.fetchone)

    async def fetchmany(self, size: int | None = None) -> list[RowT]:
        """Return up to ``size`` (by default ``arraysize``) further rows."""
        number = self._cursor.arraysize if size is None else size
        return await self._fetch(number, partial(self._cursor.fetchmany, number))

    async def fetchall(self) -> list[RowT]:
        """Return all further rows."""
        return await self._fetch(None, self._cursor.fetchall)

    async def fetch_arrow_table(self) -> pyarrow.Table:
        """Return all further rows as an Arrow table."""
        return await self._worker.run(self._cursor.fetch_arrow_table)

    async def fetch_df(self) -> pandas.DataFrame:
        """Return all further rows as a data frame of pandas."""
        return await self._worker.run(self._cursor.fetch_df)

    async def fetch_polars(self) -> polars.DataFrame:
        """Return all further rows as a data frame of polars."""
        return await self._worker.run(self._cursor.fetch_polars)

    def __aiter__(self) -> Self:
        """Iterate over the further rows."""
        return self

    async def __anext__(self) -> RowT:
        """Return the next row."""
        row: RowT = await self._fetch(1, partial(next, self._cursor, _END))
        if row is _END:
            raise StopAsyncIteration
        return row

    def setinputsizes(self, sizes: Sequence[Any], /) -> None:
        """Do nothing (PEP 249 allows it)."""

    def setoutputsize(self, size: int, column: int | None = None, /) -> None:
        """Do nothing (PEP 249 allows it)."""

    # The end

    async def close(self) -> None:
        """Drop the result; further use is an error. Idempotent."""
        if self._cursor._has_at_hand(None) or self._connection.closed:
            self._cursor.close()
        else:
            await self._worker.run(self._cursor.close, ends=True)

    async def __aenter__(self) -> Self:
        """Enter a block at whose end the cursor is closed."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the cursor."""
        await self.close()
