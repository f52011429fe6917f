"""Python rows to Arrow tables in a table's column types.

pyarrow, which brings numpy, is imported by what first makes a table: to open a database and
to read rows takes none.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tique_backends.duckdb.values.literals import is_collated
from tique_backends.duckdb.values.text_values import is_kept_as_text
from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow

    from tique_backends.records import ResultColumn, Row
    from tique_rewriter.schema import Column, Table

_DECIMAL = re.compile(r"DECIMAL\((\d+),\s*(\d+)\)")

_TYPES = {
    "BOOLEAN": ("bool_",),
    "TINYINT": ("int8",),
    "SMALLINT": ("int16",),
    "INTEGER": ("int32",),
    "BIGINT": ("int64",),
    "UTINYINT": ("uint8",),
    "USMALLINT": ("uint16",),
    "UINTEGER": ("uint32",),
    "UBIGINT": ("uint64",),
    "FLOAT": ("float32",),
    "DOUBLE": ("float64",),
    "VARCHAR": ("string",),
    "BLOB": ("binary",),
    "DATE": ("date32",),
    "TIME": ("time64", "us"),
    "TIMESTAMP": ("timestamp", "us"),
    "UUID": ("string",),
    "HUGEINT": ("string",),
}
"""pyarrow's functions that make the types, and their arguments."""

_AS_TEXT = frozenset({"UUID", "HUGEINT", "UHUGEINT"})
"""Types without an Arrow form that travel as text and are cast by the engine."""


def has_arrow_type(type_name: str) -> bool:
    """Whether :func:`arrow_type` knows a type."""
    return type_name in _TYPES or _DECIMAL.fullmatch(type_name) is not None


@lru_cache(maxsize=512)
def arrow_type(type_name: str) -> pyarrow.DataType | None:
    """The Arrow type of a DuckDB type; None where rows must stay in the engine."""
    if match := _DECIMAL.fullmatch(type_name):
        return _made("decimal128", int(match[1]), int(match[2]))
    return _made(*_TYPES[type_name]) if type_name in _TYPES else None


def _made(function: str, *arguments: Any) -> pyarrow.DataType:
    import pyarrow

    return getattr(pyarrow, function)(*arguments)


_KEPT = {"FLOAT", "JSON", "BIT", "UHUGEINT"}


def is_kept(type_name: str) -> bool:
    """Whether a fetched value is written again as the same, by its text or as it is.

    Two that are equal may not be so in Python, and the types of these values there
    are those of others.
    """
    is_enumeration = type_name.startswith("ENUM(") and type_name.endswith(")")
    return type_name in _KEPT or is_enumeration or is_collated(type_name)


_READ_ALIKE = frozenset(_TYPES) - {"TIME", "UUID", "HUGEINT"}


def reads_alike(type_name: str) -> bool:
    """Whether Arrow and a fetched row give the same Python value.

    TIME does not: DuckDB has 24:00:00.
    """
    return type_name in _READ_ALIKE or _DECIMAL.fullmatch(type_name) is not None


_IN_RESULTS: dict[str, tuple[Any, ...]] = {
    "HUGEINT": ("decimal128", 38, 0),
    "UHUGEINT": ("decimal128", 38, 0),
    "TIMESTAMP_S": ("timestamp", "s"),
    "TIMESTAMP_MS": ("timestamp", "ms"),
}
"""Types that DuckDB's own results have in another form than written rows."""


def is_shown_alike(type_name: str) -> bool:
    """Whether fetched rows make the Arrow column that DuckDB's own result would have."""
    return type_name in _IN_RESULTS or type_name == "UUID" or reads_alike(type_name)


def arrow_table(
    table: Table, rows: Sequence[Sequence[Any]], positions: Sequence[int] | None = None
) -> pyarrow.Table:
    """Rows of the columns at ``positions`` (all by default) as an Arrow table.

    Raises
    ------
    EngineError
        DATA if a value does not fit its column's type.
    """
    import pyarrow

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
    import pyarrow

    if column.type in _AS_TEXT and (kind is None or pyarrow.types.is_string(kind)):
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
    import pyarrow

    by_column = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    arrays = []
    for column, values in zip(columns, by_column, strict=True):
        shown = _IN_RESULTS.get(column.type)
        kind = arrow_type(column.type) if shown is None else _made(*shown)
        if kind is None and is_kept(column.type):
            kind = pyarrow.string()
        arrays.append(_array(column, values, kind))
    return pyarrow.Table.from_arrays(arrays, names=[column.name for column in columns])
