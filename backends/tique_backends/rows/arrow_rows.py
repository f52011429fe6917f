"""Rows of a range that came as columns in Arrow's form."""

from __future__ import annotations

from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeAlias

from typing_extensions import override

from tique_backends.rows.ranges import PackedRows, RangeRows

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow

    from tique_backends.records import Row

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

_OTHER = ""


class ArrowRows(RangeRows):
    """An Arrow table."""

    def __init__(self, table: pyarrow.Table) -> None:
        self._table = table

    @override
    def __len__(self) -> int:
        return int(self._table.num_rows)

    @override
    def rows(self) -> Iterable[Row]:
        return zip(*[each.to_pylist() for each in self._table.columns], strict=True)

    @override
    def column(self, column: int) -> Sequence[Any]:
        values: list[Any] = self._table.column(column).to_pylist()
        return values

    @override
    def packed(self) -> PackedRows:
        return _PackedColumns(self._table.combine_chunks())


class _PackedColumns(PackedRows):
    """Numbers and texts as bytes, as in Arrow; other columns as Arrow's arrays."""

    def __init__(self, table: pyarrow.Table) -> None:
        self.size = table.nbytes
        self._columns = [_column(each.chunk(0)) for each in table.columns]

    @override
    def value(self, column: int, at: int) -> Any:
        kind, data, rest = self._columns[column]
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

    @override
    def check(self) -> None:
        for kind, data, _ in self._columns:
            if kind == _OTHER:
                data.to_pylist()


def _column(column: pyarrow.Array) -> _Column:
    """A column in the form in which it is kept."""
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
