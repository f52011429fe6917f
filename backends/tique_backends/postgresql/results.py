"""The rows of a query: all at once, or in pieces."""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING

from tique_backends.base import Result, ResultColumn, Row
from tique_backends.postgresql.connection import rows_of
from tique_backends.postgresql.types import rows_to_arrow, shown_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    import psycopg
    import pyarrow


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

    def fetch(self, size: int) -> list[Row]:  # noqa: D102
        rows = self._rows[self._next : self._next + size]
        self._next += len(rows)
        return rows

    def fetch_all(self) -> list[Row]:  # noqa: D102
        return self.fetch(len(self._rows))

    def arrow(self) -> pyarrow.Table:  # noqa: D102
        return rows_to_arrow(self.fetch_all(), self.columns)

    def close(self) -> None:  # noqa: D102
        self._rows = []


class StreamedResult(Result):
    """A result that comes in pieces, as long as nobody needs the connection.

    Parameters
    ----------
    cursor
        Where it runs.
    first, rest
        The first row, if there is one, and the cursor's stream of the others.
    running
        A context in which the stream is asked for rows.
    """

    def __init__(
        self,
        cursor: psycopg.RawCursor[Row],
        first: Sequence[Row],
        rest: Iterator[Row],
        running: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self.columns = _columns(cursor)
        self._kept = deque(first)
        self._rest = rest
        self._running = running

    def fetch(self, size: int) -> list[Row]:  # noqa: D102
        kept = [self._kept.popleft() for _ in range(min(size, len(self._kept)))]
        if len(kept) < size:
            with self._running():
                kept += islice(self._rest, size - len(kept))
        return kept

    def fetch_all(self) -> list[Row]:  # noqa: D102
        self.drain()
        return self.fetch(len(self._kept))

    def arrow(self) -> pyarrow.Table:  # noqa: D102
        return rows_to_arrow(self.fetch_all(), self.columns)

    def drain(self) -> None:
        """Take all rows out of the connection, which is needed."""
        with self._running():
            self._kept.extend(self._rest)

    def close(self) -> None:  # noqa: D102
        self._kept.clear()
        # It cancels what the server still works on.
        with self._running():
            self._rest.close()  # type: ignore[attr-defined]


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
