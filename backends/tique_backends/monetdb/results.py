"""The rows of a query: all of a small one, the others in pieces."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.monetdb.connection import unfinished
from tique_backends.monetdb.reply import read_reply, read_rows
from tique_backends.monetdb.types import rows_to_arrow
from tique_backends.records import ResultColumn, Row
from tique_backends.session import Result

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable

    import pyarrow

    from tique_backends.monetdb.connection import Rest


class MonetDBResult(Result):
    """A result, the first rows of which came with the reply.

    The server keeps the others until it is told to forget them. A change's result is
    its number of rows.

    Parameters
    ----------
    text
        The reply.
    more
        Asks the server for the lines of further rows.
    unread
        Where the result's number is put when the server can forget it.
    keeping
        Whether the rows are to be kept, rather than shown.
    """

    def __init__(
        self,
        text: str,
        more: Callable[[Rest], str],
        unread: deque[int],
        *,
        keeping: bool = False,
    ) -> None:
        self._reply = reply = read_reply(text, keeping=keeping)
        self.columns = reply.columns
        self._rows = reply.rows
        self._next = 0
        self._more = more
        self._rest = unfinished(text)
        if self._rest is not None:
            # A garbage-collected result must not talk to the server itself.
            self._end = weakref.finalize(self, unread.append, self._rest.number)
            self._end.atexit = False
        if reply.has_count:
            self.columns = [ResultColumn("Count", "BIGINT")]
            self._rows = [(reply.count,)]

    @override
    def fetch(self, size: int) -> list[Row]:
        rows = self._rows[self._next : self._next + size]
        self._next += len(rows)
        while len(rows) < size and self._rest is not None:
            self._rows = self._read_piece(self._rest)
            self._next = size - len(rows)
            rows += self._rows[: self._next]
        return rows

    @override
    def fetch_all(self) -> list[Row]:
        rows = self._rows[self._next :]
        self._rows, self._next = [], 0
        while self._rest is not None:
            rows += self._read_piece(self._rest)
        return rows

    @override
    def arrow(self) -> pyarrow.Table:
        return rows_to_arrow(self.fetch_all(), self.columns)

    @override
    def hold(self, most: int) -> bool:
        if self._rest is None:
            return len(self._rows) <= most
        self.close()
        return False

    @override
    def close(self) -> None:
        self._rows = []
        if self._rest is not None:
            self._rest = None
            self._end()

    def _read_piece(self, rest: Rest) -> list[Row]:
        begin = rest.offset
        try:
            rows = read_rows(self._more(rest), self._reply)
        except BaseException:
            # The caller may go on, and must not miss rows.
            rest.offset = begin
            raise
        if rest.offset == rest.total:
            self._rest = None
            self._end()
        return rows
