"""Python rows to Arrow tables in a table's column types."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow

from tique_backends.duckdb.keeping import is_kept_as_text
from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import ResultColumn, Row
    from tique_rewriter.schema import Column, Table

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")

_TYPES: dict[str, pyarrow.DataType] = {
    "BOOLEAN": pyarrow.bool_(),
    "TINYINT": pyarrow.int8(),
    "SMALLINT": pyarrow.int16(),
    "INTEGER": pyarrow.int32(),
    "BIGINT": pyarrow.int64(),
    "UTINYINT": pyarrow.uint8(),
    "USMALLINT": pyarrow.uint16(),
    "UINTEGER": pyarrow.uint32(),
    "UBIGINT": pyarrow.uint64(),
    "FLOAT": pyarrow.float32(),
    "DOUBLE": pyarrow.float64(),
    "VARCHAR": pyarrow.string(),
    "BLOB": pyarrow.binary(),
    "DATE": pyarrow.date32(),
    "TIME": pyarrow.time64("us"),
    "TIMESTAMP": pyarrow.timestamp("us"),
}

_AS_TEXT = frozenset({"UUID", "HUGEINT", "UHUGEINT"})
"""Types without an Arrow form that travel as text and are cast by the engine."""


@lru_cache(maxsize=512)
def arrow_type(type_name: str) -> pyarrow.DataType | None:
    """The Arrow type of a DuckDB type; None where rows must stay in the engine."""
    if match := _DECIMAL.fullmatch(type_name):
        return pyarrow.decimal128(int(match[1]), int(match[2]))
    if type_name in ("UUID", "HUGEINT"):
        return pyarrow.string()
    return _TYPES.get(type_name)


_KEPT = {"FLOAT", "JSON", "BIT", "UHUGEINT"}


def is_kept(type_name: str) -> bool:
    """Whether a fetched value is written again as the same, by its text or as it is.

    Two that are equal may not be so in Python, and the types of these values there
    are those of others.
    """
    is_enumeration = type_name.startswith("ENUM(") and type_name.endswith(")")
    return type_name in _KEPT or is_enumeration


_READ_ALIKE = frozenset(_TYPES) - {"TIME"}


def reads_alike(type_name: str) -> bool:
    """Whether Arrow and a fetched row give the same Python value.

    TIME does not: DuckDB has 24:00:00.
    """
    return type_name in _READ_ALIKE or _DECIMAL.fullmatch(type_name) is not None


def arrow_table(
    table: Table, rows: Sequence[Sequence[Any]], positions: Sequence[int] | None = None
) -> pyarrow.Table:
    """Rows of the columns at ``positions`` (all by default) as an Arrow table.

    Raises
    ------
    EngineError
        DATA if a value does not fit its column's type.
    """
    columns = (
        table.columns
        if positions is None
        else [table.columns[position] for position in positions]
    )
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = []
    for column, values in zip(columns, by_column, strict=True):
        kind = arrow_type(column.type)
        if is_kept_as_text(column.type) or (kind is None and is_kept(column.type)):
            kind = pyarrow.string()
        arrays.append(_array(column, values, kind))
    return pyarrow.Table.from_arrays(arrays, names=[column.name for column in columns])


def _array(
    column: Column | ResultColumn,
    values: Sequence[Any],
    kind: pyarrow.DataType | None,
) -> pyarrow.Array:
    if column.type in _AS_TEXT:
        values = tuple([None if value is None else str(value) for value in values])
    try:
        return pyarrow.array(values, kind)
    except (pyarrow.ArrowException, OverflowError, TypeError) as error:
        raise EngineError(
            ErrorKind.DATA,
            f"a value does not fit column {column.name!r} of type {column.type}",
        ) from error


def rows_to_arrow(
    rows: Sequence[Row], columns: Sequence[ResultColumn]
) -> pyarrow.Table:
    """A result's rows as an Arrow table."""
    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = []
    for column, values in zip(columns, by_column, strict=True):
        kind = arrow_type(column.type)
        if kind is None and is_kept(column.type):
            kind = pyarrow.string()
        arrays.append(_array(column, values, kind))
    return pyarrow.Table.from_arrays(arrays, names=[column.name for column in columns])
