"""Row factories: the shape of a cursor's rows.

A factory is called once per result with the columns' names and returns the function
that makes each row from the tuple of its values. Any such callable will do.
"""

from __future__ import annotations

import keyword
from collections import namedtuple
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from typing_extensions import TypeVar

from tique.errors import ProgrammingError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "RowFactory",
    "TupleRow",
    "args_row",
    "class_row",
    "dict_row",
    "kwargs_row",
    "namedtuple_row",
    "scalar_row",
    "tuple_row",
]


TupleRow: TypeAlias = "tuple[Any, ...]"
"""A cursor's row by default."""

_Made = TypeVar("_Made")
Row_co = TypeVar("Row_co", covariant=True, default=Any)


class RowFactory(Protocol[Row_co]):
    """Makes the function that makes rows."""

    def __call__(self, names: Sequence[str], /) -> Callable[[TupleRow], Row_co]:
        """Return a function from a tuple of values to a row.

        Parameters
        ----------
        names
            The result's column names, in order; a name may occur twice.
        """
        ...


def tuple_row(names: Sequence[str], /) -> Callable[[TupleRow], TupleRow]:
    """Rows as plain tuples, the default."""
    return _unchanged


def dict_row(names: Sequence[str], /) -> Callable[[TupleRow], dict[str, Any]]:
    """Rows as dictionaries by column name.

    Of columns with the same name the last one counts, as in psycopg: name them
    apart with AS.
    """

    def make(values: tuple[Any, ...]) -> dict[str, Any]:
        return dict(zip(names, values, strict=True))

    return make


def namedtuple_row(names: Sequence[str], /) -> Callable[[TupleRow], TupleRow]:
    """Rows as named tuples.

    Characters that a Python name cannot have become ``_`` (``count(*)`` is
    ``count___``), a name that begins with a digit or ``_`` is prefixed with ``f``, and
    a keyword is followed by ``_``. Results with the same names share one class.

    Raises
    ------
    ProgrammingError
        If two columns get the same name.
    """
    return _row_class(tuple(names))._make  # type: ignore[no-any-return]


def scalar_row(names: Sequence[str], /) -> Callable[[TupleRow], Any]:
    """Rows as their first value alone."""
    return itemgetter(0)


def class_row(cls: type[_Made]) -> RowFactory[_Made]:
    """Rows as objects of a class, made with the columns' names as keywords."""
    return kwargs_row(cls)


def kwargs_row(make: Callable[..., _Made]) -> RowFactory[_Made]:
    """Rows as a function makes them, of keywords that are the columns' names."""

    def factory(names: Sequence[str], /) -> Callable[[TupleRow], _Made]:
        return lambda values: make(**dict(zip(names, values, strict=True)))

    return factory


def args_row(make: Callable[..., _Made]) -> RowFactory[_Made]:
    """Rows as a function makes them, of the values in their order."""

    def factory(names: Sequence[str], /) -> Callable[[TupleRow], _Made]:
        return lambda values: make(*values)

    return factory


def _unchanged(values: TupleRow) -> TupleRow:
    return values


@lru_cache(maxsize=512)
def _row_class(names: tuple[str, ...]) -> Any:
    fields: dict[str, str] = {}
    for name in names:
        field = _field_name(name)
        if field in fields:
            raise ProgrammingError(
                f"namedtuple_row: columns {fields[field]!r} and {name!r} would both be "
                f"called {field!r}; name them apart with AS, or use tuple_row"
            )
        fields[field] = name
    return namedtuple("Row", fields)


def _field_name(column: str) -> str:
    field = "".join(c if f"a{c}".isidentifier() else "_" for c in column)
    if not field or field[0] == "_" or not field.isidentifier():
        return f"f{field}"
    return f"{field}_" if keyword.iskeyword(field) else field
