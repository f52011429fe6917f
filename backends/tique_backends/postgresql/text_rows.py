"""Rows of a range in PostgreSQL's own text form.

To load a value takes psycopg about as long as to find it, so that all but those that are
looked at stay the texts that the server sent. A range with a decimal number that is none (NaN) is
not kept: Python cannot sort it.
"""

from __future__ import annotations

from array import array
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.adapt import Transformer
from typing_extensions import override

from tique_backends.ranges import PackedRows, RangeRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from psycopg.abc import AdaptContext
    from psycopg.pq.abc import PGresult

    from tique_backends.records import Row

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
