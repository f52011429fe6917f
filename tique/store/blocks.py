"""Columnar blocks of stored rows, a tenth of the size of the rows as Python objects.

Numbers and texts are kept as bytes, as in Arrow: there are many blocks with many
columns, and Python's garbage collector does not follow bytes.

Invariant: a block never changes, but for its indexes. The rows that folds change
afterwards lie beside it (:mod:`tique.store.ranges`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from operator import gt
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow

    from tique.store.rows import Key
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_NUMBERS = {
    "int8": Struct("b"),
    "int16": Struct("h"),
    "int32": Struct("i"),
    "int64": Struct("q"),
    "double": Struct("d"),
}
"""The layout of numbers in Arrow's columns, by type."""

_TEXT = "string"
_DECIMAL = "decimal128"
_DECIMAL_BYTES = 16
_EXACT = Context(prec=MAX_PREC, Emin=MIN_EMIN, Emax=MAX_EMAX)
_BOUNDS = Struct("2i")
_BOUND = Struct("i")

_Column: TypeAlias = tuple[str, Any, Any]
"""A column: its type, its data, and what a reader needs besides.

For text that is the values' offsets, for decimals the number of digits behind the
point. Data of any other layout is Arrow's array.
"""

_INDEX_BYTES = 16
"""Bytes per row of an index."""

_OTHER = ""


def _column(column: pyarrow.Array) -> _Column:
    """A column in the form in which a block keeps it."""
    kind = str(column.type)
    *_, data = buffers = column.buffers()
    if column.null_count or column.offset or data is None:
        return _OTHER, column, b""
    if kind == _TEXT:
        return _TEXT, data.to_pybytes(), buffers[1].to_pybytes()
    if kind in _NUMBERS:
        return kind, data.to_pybytes(), b""
    if kind.startswith(_DECIMAL):
        return _DECIMAL, data.to_pybytes(), column.type.scale
    return _OTHER, column, b""


def _value(column: _Column, at: int) -> Any:
    """A value, without Arrow's scalars where that is possible."""
    kind, data, rest = column
    if kind == _TEXT:
        start, end = _BOUNDS.unpack_from(rest, at * _BOUND.size)
        return data[start:end].decode()
    if kind == _DECIMAL:
        start = at * _DECIMAL_BYTES
        digits = int.from_bytes(
            data[start : start + _DECIMAL_BYTES], "little", signed=True
        )
        return _EXACT.scaleb(Decimal(digits), -rest)
    if kind == _OTHER:
        return data[at].as_py()
    number = _NUMBERS[kind]
    return number.unpack_from(data, at * number.size)[0]


class Block:
    """Stored rows that differ in the key's last column, sorted by it.

    Parameters
    ----------
    table
        The table.
    prefix
        The rows' values in the other columns of the key.
    columns
        The columns' positions in the table; the key's last one is among them.
    rows
        These columns, in any order; at least one row.
    """

    def __init__(
        self, table: Table, prefix: Key, columns: Sequence[int], rows: pyarrow.Table
    ) -> None:
        self.size = rows.nbytes + _INDEX_BYTES * rows.num_rows
        *others, self._last = table.primary_key
        empty: list[Any] = [MISSING] * len(table.columns)
        for position, value in zip(others, prefix, strict=True):
            empty[position] = value
        self._empty = tuple(empty)
        last = columns.index(self._last)
        numbers = rows.column(last).to_pylist()
        if any(map(gt, numbers, numbers[1:])):
            rows = rows.sort_by(rows.column_names[last])
            numbers.sort()
        self._numbers = array("q", numbers)
        self._indexes: dict[int, tuple[array[int], array[int]]] = {}
        rows = rows.combine_chunks()
        self._columns = {
            position: _column(rows.column(i).chunk(0))
            for i, position in enumerate(columns)
        }

    def __len__(self) -> int:
        """The number of rows."""
        return len(self._numbers)

    def row(self, number: int, columns: Iterable[int]) -> Row | None:
        """These columns under a key; None: there is no row.

        Parameters
        ----------
        number
            The value of the key's last column.
        columns
            The columns' positions. All others but the key's are ``MISSING``.

        Raises
        ------
        KeyError
            If one of the columns is not known.
        ValueError, OverflowError
            If Python cannot hold a value: a date beyond its calendar.
        """
        at = bisect_left(self._numbers, number)
        if at == len(self._numbers) or self._numbers[at] != number:
            return None
        row = list(self._empty)
        row[self._last] = number
        for position in columns:
            if row[position] is MISSING:
                row[position] = _value(self._columns[position], at)
        return tuple(row)

    def check(self) -> None:
        """Raise if Python cannot hold some value: then :meth:`row` never does."""
        for kind, data, _ in self._columns.values():
            if kind == _OTHER:
                data.to_pylist()

    def numbers(self, position: int, value: Any) -> Sequence[int]:
        """The key's last column in all rows with the value, perhaps in others too."""
        index = self._indexes.get(position)
        if index is None:
            column = self._columns[position]
            hashes = [hash(_value(column, at)) for at in range(len(self))]
            order = sorted(range(len(hashes)), key=hashes.__getitem__)
            index = (
                array("q", [hashes[at] for at in order]),
                array("q", [self._numbers[at] for at in order]),
            )
            self._indexes[position] = index
        known, numbers = index
        wanted = hash(value)
        return numbers[bisect_left(known, wanted) : bisect_right(known, wanted)]
