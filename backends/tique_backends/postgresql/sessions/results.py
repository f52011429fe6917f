"""The rows of a query: all at once, or in pieces.

*Rows of a range in PostgreSQL's own text form.*
To load a value takes psycopg about as long as to find it, so that all but those that are
looked at stay the texts that the server sent. A range with a decimal number that is none (NaN) is
not kept: Python cannot sort it.
"""

from __future__ import annotations

import weakref
from array import array
from collections import deque
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.pq import TransactionStatus
from typing_extensions import override

from tique_backends.errors import ConnectionLostError, EngineError, cut_short
from tique_backends.postgresql.sessions.connection import rows_of
from tique_backends.postgresql.values.types import rows_to_arrow, shown_name
from tique_backends.records import ResultColumn, Row
from tique_backends.rows.ranges import PackedRows, RangeRows
from tique_backends.session import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import pyarrow
    from psycopg.abc import AdaptContext
    from psycopg.pq.abc import PGresult


PIECE = 1000
"""Rows that come together of a result that may be large."""


class PostgreSQLResult(Result):
    """A result whose rows the client has; a change's is its number of rows."""

    def __init__(self, cursor: psycopg.RawCursor[Row]) -> None:
        self._rows: list[Row] = []
        self._next = 0
        if cursor.description is None:
            self.columns = [ResultColumn("Count", "BIGINT")]
            self._rows = [(max(cursor.rowcount, 0),)]
        else:
            self.columns = _columns(cursor)
            self._rows = rows_of(cursor)
        self.row_count = len(self._rows)

    @override
    def fetch(self, size: int) -> list[Row]:
        rows = self._rows[self._next : self._next + size]
        self._next += len(rows)
        return rows

    @override
    def fetch_all(self) -> list[Row]:
        return self.fetch(len(self._rows))

    @override
    def arrow(self) -> pyarrow.Table:
        return rows_to_arrow(self.fetch_all(), self.columns)

    @override
    def hold(self, most: int) -> bool:
        return len(self._rows) <= most

    @override
    def close(self) -> None:
        self._rows = []


class Stream:
    """The rows of a connection's last query that are not read yet.

    The server computes them as they are read. Nothing else can run on the connection
    before all are read or :meth:`close` has cancelled the query.

    Parameters
    ----------
    wire
        The connection.
    rows
        psycopg's stream. It talks to the server when it is garbage-collected, so the
        session must hold it for as long as it is open.
    running
        A context in which it is asked for rows.
    may_cancel
        Whether the query may be cancelled by now: that aborts an engine transaction.

    Attributes
    ----------
    reader : callable
        Returns the result that reads it, None if it is gone or never came to be.
    """

    def __init__(
        self,
        wire: psycopg.pq.abc.PGconn,
        rows: Iterator[Row],
        running: Callable[[], AbstractContextManager[None]],
        may_cancel: Callable[[], bool],
    ) -> None:
        self._wire = wire
        self._rows = rows
        self._running = running
        self._may_cancel = may_cancel
        self.reader: Callable[[], StreamedResult | None] = lambda: None

    def take(self, size: int | None = None) -> list[Row]:
        """Read ``size`` further rows, or all."""
        with self._running():
            return list(islice(self._rows, size))

    def close(self) -> None:
        """Cancel the query if the server still works on it, or read it to its end; idempotent."""
        with self._running():
            if self._wire.transaction_status == TransactionStatus.ACTIVE:
                self._wire.consume_input()
                if not self._may_cancel():
                    deque(self._rows, maxlen=0)
                elif not self._wire.is_busy():
                    # It may be the end: to read that is faster than to cancel.
                    self.take(PIECE)
            self._rows.close()  # type: ignore[attr-defined]


class StreamedResult(Result):
    """A result that comes in pieces, as long as its connection is not needed.

    Parameters
    ----------
    cursor
        Where it runs.
    first
        The first row, if there is one.
    stream
        The others.
    """

    def __init__(
        self, cursor: psycopg.RawCursor[Row], first: Sequence[Row], stream: Stream
    ) -> None:
        self.columns = _columns(cursor)
        self._kept = deque(first)
        self._stream: Stream | None = stream
        self._error: EngineError | None = None
        stream.reader = weakref.ref(self)

    @override
    def fetch(self, size: int) -> list[Row]:
        kept = [self._kept.popleft() for _ in range(min(size, len(self._kept)))]
        if len(kept) < size:
            kept += self._take(size - len(kept))
        return kept

    @override
    def fetch_all(self) -> list[Row]:
        rest = self._take(None)
        kept = [*self._kept, *rest] if self._kept else rest
        self._kept.clear()
        return kept

    @override
    def arrow(self) -> pyarrow.Table:
        return rows_to_arrow(self.fetch_all(), self.columns)

    @override
    def hold(self, most: int) -> bool:
        self._kept.extend(self._take(most + 1 - len(self._kept)))
        is_held = len(self._kept) <= most
        stream, self._stream = self._stream, None
        if stream is not None:
            # The connection is another thread's from now on.
            stream.close()
        return is_held

    def read_ahead(self, most: int) -> bool:
        """Have up to so many rows in memory; whether these are all."""
        self._kept.extend(self._take(max(0, most + 1 - len(self._kept))))
        return len(self._kept) <= most

    def drain(self) -> None:
        """Read all rows into memory, as the connection is needed.

        An error of the query is this result's own: a later fetch raises it.
        """
        try:
            self._kept.extend(self._take(None))
            self._stream = None
        except ConnectionLostError:
            raise
        except EngineError:
            return

    @override
    def close(self) -> None:
        self._kept.clear()
        stream, self._stream = self._stream, None
        if stream is not None:
            stream.close()

    def _take(self, size: int | None) -> list[Row]:
        if self._error is not None:
            raise self._error
        if self._stream is None:
            return []
        try:
            return self._stream.take(size)
        except BaseException as error:
            self._stream = None
            self._error = error if isinstance(error, EngineError) else cut_short()
            raise


def _columns(cursor: psycopg.RawCursor[Row]) -> list[ResultColumn]:
    result = cursor.pgresult
    assert result is not None
    return [
        ResultColumn(
            column.name,
            shown_name(column.type_code, result.fmod(i), column.type_display),
        )
        for i, column in enumerate(cursor.description or ())
    ]


_OFFSET_BYTES = 4
_NO_NULLS: frozenset[int] = frozenset()
_NUMERIC = psycopg.adapters.types["numeric"].oid
_NO_NUMBERS = frozenset({b"NaN", b"Infinity", b"-Infinity"})


class TextRows(RangeRows):
    """A result whose values are loaded as those of any other row of ``context``."""

    def __init__(self, result: PGresult, context: AdaptContext) -> None:
        self._result = result
        self._loading = Transformer(context)

    @override
    def __len__(self) -> int:
        return self._result.ntuples

    @override
    def rows(self) -> Iterable[Row]:
        self._check()
        self._loading.set_pgresult(self._result)
        try:
            return self._loading.load_rows(0, len(self), tuple)
        except psycopg.DataError as error:
            raise ValueError(str(error)) from error

    @override
    def column(self, column: int) -> Sequence[Any]:
        load, get = self._loader(column), self._result.get_value
        values = [get(at, column) for at in range(len(self))]
        return [None if value is None else load(value) for value in values]

    @override
    def packed(self) -> PackedRows:
        self._check()
        columns = range(self._result.nfields)
        return _PackedTexts(self._result, [self._loader(i) for i in columns])

    def _check(self) -> None:
        result = self._result
        for column in range(result.nfields):
            if result.ftype(column) == _NUMERIC:
                values = [result.get_value(at, column) for at in range(len(self))]
                if not _NO_NUMBERS.isdisjoint(values):
                    raise ValueError("a number that is none")

    def _loader(self, column: int) -> Callable[[Any], Any]:
        result = self._result
        kind = psycopg.pq.Format(result.fformat(column))
        return self._loading.get_loader(result.ftype(column), kind).load


class _PackedTexts(PackedRows):
    """All values one after the other, row by row, and where each of them ends."""

    __slots__ = ("_data", "_ends", "_loaders", "_nulls", "size")

    def __init__(
        self, result: PGresult, loaders: Sequence[Callable[[Any], Any]]
    ) -> None:
        get, width = result.get_value, len(loaders)
        values = [get(at, i) for at in range(result.ntuples) for i in range(width)]
        self._nulls = _NO_NULLS
        if None in values:
            self._nulls = frozenset(n for n, v in enumerate(values) if v is None)
        texts = [value or b"" for value in values]
        self._ends = array("I", accumulate(map(len, texts), initial=0))
        self._data = b"".join(texts)
        self._loaders = loaders
        self.size = len(self._data) + _OFFSET_BYTES * len(self._ends)

    @override
    def value(self, column: int, at: int) -> Any:
        number = at * len(self._loaders) + column
        if number in self._nulls:
            return None
        text = self._data[self._ends[number] : self._ends[number + 1]]
        try:
            return self._loaders[column](text)
        except psycopg.DataError as error:
            raise ValueError(str(error)) from error

    @override
    def check(self) -> None:
        width = len(self._loaders)
        for number in range(len(self._ends) - 1):
            self.value(number % width, number // width)
