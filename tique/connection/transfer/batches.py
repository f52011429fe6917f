"""Results in Arrow's form, piece by piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow


def record_batches(
    take: Callable[[], pyarrow.Table],
) -> pyarrow.RecordBatchReader:
    """A reader of the pieces that a function takes from a result; the last is empty.

    All have the types of the first one.
    """
    import pyarrow

    first = take()

    def batches() -> Iterator[pyarrow.RecordBatch]:
        piece = first
        while piece.num_rows:
            yield from _fitted(piece, first.schema).to_batches()
            piece = take()

    return pyarrow.RecordBatchReader.from_batches(first.schema, batches())


def _fitted(piece: pyarrow.Table, schema: pyarrow.Schema) -> pyarrow.Table:
    """The piece with these types: digits of a number without a scale may differ."""
    import pyarrow

    if piece.schema.equals(schema):
        return piece
    columns = []
    for column, field in zip(piece.columns, schema, strict=True):
        try:
            columns.append(column.cast(field.type))
        except pyarrow.ArrowException as error:
            raise errors.DataError(
                f"a value of column {field.name!r} does not fit {field.type}, the type of "
                "the rows before it: CAST it in the query",
                sqlstate="22000",
            ) from error
    return pyarrow.Table.from_arrays(columns, schema=schema)
