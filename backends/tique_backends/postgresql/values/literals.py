r"""Values that the driver knows, written into SQL text (P11).

With ``standard_conforming_strings``, which every connection has on, a string only needs
its quotes doubled. A NUL character has no form at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.postgresql.values.text_values import is_kept, is_own
from tique_backends.postgresql.values.types import INTEGERS, has_modifier

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Column, Table


def quoted(text: str) -> str:
    """A string literal.

    Raises
    ------
    EngineError
        DATA if PostgreSQL has no form for the text.
    """
    if "\0" in text:
        raise EngineError(ErrorKind.DATA, "PostgreSQL's text has no NUL characters")
    return "'" + text.replace("'", "''") + "'"


def typed(value: Any, type_name: str) -> str:
    """The literal of a value that is of a column's type."""
    if value is None:
        return f"CAST(NULL AS {type_name})"
    if type_name in INTEGERS:
        # A cast, lest the type be that of the number; quotes, lest a minus before it
        # make a comment of both.
        return f"CAST('{int(value)}' AS {type_name})"
    text = "\\x" + value.hex() if isinstance(value, bytes) else str(value)
    return f"CAST({quoted(text)} AS {type_name})"


def arrays(table: Table, positions: Sequence[int]) -> str:
    """A source of rows, of one parameter per column: see :func:`array_parameters`.

    It stands in FROM, with a name for it and perhaps for its columns after it.
    """
    columns = [table.columns[i] for i in positions]
    unnested = rows_of(
        f"CAST(${number} AS {carrier(column)}[])"
        for number, column in enumerate(columns, 1)
    )
    if not any(map(_comes_as_text, columns)):
        return unnested
    names = ", ".join(f"_{n}" for n in range(len(columns)))
    values = ", ".join(carried(f"_{n}", each) for n, each in enumerate(columns))
    return f"(SELECT {values} FROM {unnested} AS _v({names}))"


def rows_of(arrays: Iterable[str]) -> str:
    """A source of rows, of an array per column, by no function of the search path."""
    return f"ROWS FROM ({', '.join(f'pg_catalog.unnest({each})' for each in arrays)})"


def array_parameters(
    table: Table, positions: Sequence[int], rows: Sequence[Row]
) -> list[str]:
    """The parameters of :func:`arrays` for rows of these columns, of which there are some.

    They are texts: psycopg would look at each value of a list by itself.
    """
    return [
        array_parameter(values, table.columns[i].type)
        for i, values in zip(positions, zip(*rows, strict=True), strict=True)
    ]


def _comes_as_text(column: Column) -> bool:
    """Whether a column's values come in an array as texts.

    An array of arrays would be one of more dimensions, and one of composites be unnested
    into their attributes.
    """
    return is_kept(column.type) or _is_own(column)


def _is_own(column: Column) -> bool:
    return is_own(column.type) and not column.is_named


def carrier(column: Column) -> str:
    """The type in which a column's values come in an array."""
    return "TEXT" if _comes_as_text(column) else column.type


def carried(name: str, column: Column) -> str:
    """The value of the column's type that came as ``name``.

    An element of an array has no length, precision or fields of its type.
    """
    type_name = column.type
    if _is_own(column):
        # By the type's input function: a CAST may be a role's own code (P11).
        pair = f"pg_catalog.json_build_object('_m', {name})"
        record = f"pg_catalog.json_to_record({pair}) AS _r(_m {type_name})"
        return f"(SELECT _m FROM {record})"
    is_whole = not is_kept(type_name) and not has_modifier(type_name)
    return name if is_whole else f"CAST({name} AS {type_name})"


def listed(values: Sequence[Any], column: Column) -> str:
    """The literal of an array of values that are of a column's type, as carried."""
    text = quoted(array_parameter(values, column.type))
    return f"CAST({text} AS {carrier(column)}[])"


def array_parameter(values: Sequence[Any], type_name: str) -> str:
    """The text of an array of values that are of a column's type, as carried."""
    if type_name in INTEGERS:
        items = ["NULL" if value is None else str(int(value)) for value in values]
    else:
        items = [_element(value) for value in values]
    return "{" + ",".join(items) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    text = "\\x" + value.hex() if isinstance(value, bytes) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
