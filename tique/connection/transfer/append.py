"""Data in columns, as ``cursor.append()`` takes it, made an Arrow table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow

    from tique_rewriter.schema import Table


_OF_NANOSECONDS = frozenset({"TIMESTAMP_NS", "TIME_NS"})


def arrow_of(data: Any) -> pyarrow.Table:
    """Return the data as an Arrow table.

    Parameters
    ----------
    data
        A pyarrow table, record batch or reader of them, a pandas or polars data frame, or
        anything else that exports an Arrow stream (``__arrow_c_stream__``).

    Raises
    ------
    InterfaceError
        If it is none of these.
    DataError
        If they are not what they claim to be.
    """
    import pyarrow

    try:
        if isinstance(data, pyarrow.RecordBatchReader):
            found = data.read_all()
        elif isinstance(data, pyarrow.RecordBatch):
            found = pyarrow.Table.from_batches([data])
        elif isinstance(data, pyarrow.Table):
            found = data
        elif hasattr(data, "iloc"):
            # Of pandas: its stream would have the index too.
            found = pyarrow.Table.from_pandas(data, preserve_index=False)
        elif hasattr(data, "__arrow_c_stream__"):
            found = pyarrow.RecordBatchReader.from_stream(data).read_all()
        else:
            raise errors.InterfaceError(
                "append() takes a pyarrow table, record batch or reader, or a data frame "
                f"of pandas or polars, not {type(data).__name__}"
            )
        return found
    except pyarrow.ArrowException as error:
        raise errors.DataError(f"append(): {error}") from error


def fitted(data: pyarrow.Table, types: Sequence[str]) -> pyarrow.Table:
    """Return the data with moments as columns of these ``types`` have them.

    Raises
    ------
    DataError
        If a value has nanoseconds, and its column does not keep them.
    """
    import pyarrow

    fields = [
        _kept(pyarrow, field, is_fine=type_name in _OF_NANOSECONDS)
        for field, type_name in zip(data.schema, types, strict=True)
    ]
    try:
        return data.cast(pyarrow.schema(fields))
    except pyarrow.ArrowException as error:
        raise errors.DataError(f"append(): {error}") from error


def _kept(arrow: Any, field: pyarrow.Field, *, is_fine: bool) -> pyarrow.Field:
    """The field with a type whose values Python and the engines have."""
    kind = field.type
    if arrow.types.is_dictionary(kind):
        kind = kind.value_type
    if is_fine:
        return field.with_type(kind)
    if arrow.types.is_timestamp(kind) and kind.unit == "ns":
        kind = arrow.timestamp("us", kind.tz)
    elif arrow.types.is_time64(kind) and kind.unit == "ns":
        kind = arrow.time64("us")
    elif arrow.types.is_duration(kind) and kind.unit == "ns":
        kind = arrow.duration("us")
    return field.with_type(kind)


def columns_by_name(table: Table, names: Sequence[str]) -> list[int]:
    """Return the positions of a table's columns with these names, whatever their case.

    Raises
    ------
    ProgrammingError
        If there is no such column (42703), or one is named twice (42701).
    """
    columns: list[int] = []
    for name in names:
        position = table.positions.get(name.lower())
        if position is None:
            raise errors.ProgrammingError(
                f'append(): table {table.qualified_name} has no column "{name}"',
                sqlstate="42703",
            )
        if position in columns:
            raise errors.ProgrammingError(
                f'append(): the column "{name}" is given twice', sqlstate="42701"
            )
        columns.append(position)
    if not columns:
        raise errors.ProgrammingError("append(): the data have no columns")
    return columns
