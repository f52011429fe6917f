"""Rows of a range of keys, as an engine gave them: a value is made when it is looked at.

Few values of a range are ever looked at, so that to make Python objects of all would be the
largest part of reading it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_backends.records import Row


class PackedRows(ABC):
    """The rows in few objects, a tenth of the size of the rows as Python objects.

    Python's garbage collector does not follow bytes, of which they mostly consist.

    Attributes
    ----------
    size : int
        Bytes.
    """

    size: int

    @abstractmethod
    def value(self, column: int, at: int) -> Any:
        """Return the value of a column in the row number ``at``.

        Raises
        ------
        ValueError, OverflowError
            If Python cannot hold it: a date beyond its calendar.
        """

    @abstractmethod
    def check(self) -> None:
        """Raise if Python cannot hold some value: then :meth:`value` never does."""


class RangeRows(ABC):
    """The rows as they were read; columns are numbered as they were asked for."""

    @abstractmethod
    def __len__(self) -> int:
        """The number of rows."""

    @abstractmethod
    def rows(self) -> Iterable[Row]:
        """Return all rows.

        Raises
        ------
        ValueError, OverflowError
            If Python cannot hold a value.
        """

    @abstractmethod
    def column(self, column: int) -> Sequence[Any]:
        """Return the values of a column, which Python can hold."""

    @abstractmethod
    def packed(self) -> PackedRows:
        """Return the rows in the form in which they are kept."""
