"""COPY between the application and the engine: ``cursor.copy()``, as in psycopg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from tique import errors
from tique._translation import given

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from tique_backends.records import CopyPart

    Load = Callable[[list[CopyPart], Sequence[int | str]], None]
    Unload = Callable[[Sequence[int | str] | None], list[CopyPart]]


class Copy:
    """The rows of one COPY, in a ``with`` block.

    Into a table: the rows that are written are sent, and checked, when the block ends
    without an exception; until then they are in memory, and the connection is free. From
    a table: all of the data are in memory with the first that is read.

    Parameters
    ----------
    load, unload
        Carry out the COPY: into a table, or from one. The other is None.
    """

    def __init__(self, load: Load | None, unload: Unload | None) -> None:
        self._load = load
        self._unload = unload
        self._written: list[CopyPart] = []
        self._types: Sequence[int | str] = ()
        self._read: Iterator[CopyPart] | None = None
        self._reads_rows = False
        self._is_open = False

    def set_types(self, types: Sequence[int | str]) -> None:
        """Say the types of the values of a row, as psycopg has them.

        Without them values that are read are texts.
        """
        self._types = tuple(given(iter, types, "the types of a row"))

    # Into a table

    def write(self, data: bytes | bytearray | memoryview | str) -> None:
        """Write a piece of data in the format that the statement says."""
        self._check_writing()
        if not isinstance(data, bytes | str):
            # Of a number bytes() would be so many zeros.
            data = given(lambda it: bytes(memoryview(it)), data, "a piece of data")
        self._written.append(data)

    def write_row(self, row: Sequence[Any]) -> None:
        """Write a row of values, in the format ``text`` or ``binary``."""
        self._check_writing()
        self._written.append(tuple(given(iter, row, "a row")))

    def _check_writing(self) -> None:
        self._check_open()
        if self._load is None:
            raise errors.ProgrammingError("this COPY is read from, not written to")

    # From a table

    def read(self) -> bytes:
        """Return the next piece of data; nothing at the end."""
        piece = next(self._data(as_rows=False), b"")
        assert isinstance(piece, bytes)
        return piece

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the pieces of data."""
        while data := self.read():
            yield data

    def read_row(self) -> tuple[Any, ...] | None:
        """Return the next row's values, in the format ``text`` or ``binary``; or None."""
        row = next(self._data(as_rows=True), None)
        assert row is None or isinstance(row, tuple)
        return row

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Iterate over the rows."""
        while (row := self.read_row()) is not None:
            yield row

    def _data(self, *, as_rows: bool) -> Iterator[CopyPart]:
        self._check_open()
        if self._unload is None:
            raise errors.ProgrammingError("this COPY is written to, not read from")
        if self._read is None:
            self._reads_rows = as_rows
            self._read = iter(self._unload(self._types if as_rows else None))
        elif self._reads_rows != as_rows:
            raise errors.ProgrammingError("a COPY is read by rows, or by pieces")
        return self._read

    # The block

    def _check_open(self) -> None:
        if not self._is_open:
            raise errors.ProgrammingError(
                "cursor.copy() is used in a with block: with cursor.copy(…) as copy"
            )

    def __enter__(self) -> Self:
        """Begin the COPY."""
        self._is_open = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Write the rows, unless the block raised; then nothing is written."""
        self._is_open = False
        if kind is None:
            if self._load is not None:
                self._load(self._written, self._types)
            elif self._unload is not None and self._read is None:
                self._unload(None)
        self._written, self._read = [], None
