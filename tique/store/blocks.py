"""Blocks of stored rows, packed as the engine's backend packs them.

Invariant: a block never changes, but for its indexes. The rows that folds change
afterwards lie beside it (:mod:`tique.store.ranges`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from operator import gt
from typing import TYPE_CHECKING, Any

from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique.store.rows import Key
    from tique_backends.ranges import RangeRows
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_INDEX_BYTES = 16
"""Bytes per row of an index."""


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
        self, table: Table, prefix: Key, columns: Sequence[int], rows: RangeRows
    ) -> None:
        *others, self._last = table.primary_key
        empty: list[Any] = [MISSING] * len(table.columns)
        for position, value in zip(others, prefix, strict=True):
            empty[position] = value
        self._empty = tuple(empty)
        self._columns = {position: i for i, position in enumerate(columns)}
        numbers = rows.column(self._columns[self._last])
        self._places: Sequence[int] = range(len(numbers))
        if any(map(gt, numbers, numbers[1:])):
            self._places = sorted(self._places, key=numbers.__getitem__)
            numbers = [numbers[place] for place in self._places]
        self._numbers = array("q", numbers)
        self._indexes: dict[int, tuple[array[int], array[int]]] = {}
        self._packed = rows.packed()
        self.size = self._packed.size + _INDEX_BYTES * len(numbers)

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
        at, value = self._places[at], self._packed.value
        for position in columns:
            if row[position] is MISSING:
                row[position] = value(self._columns[position], at)
        return tuple(row)

    def check(self) -> None:
        """Raise if Python cannot hold some value: then :meth:`row` never does."""
        self._packed.check()

    def numbers(self, position: int, value: Any) -> Sequence[int]:
        """The key's last column in all rows with the value, perhaps in others too."""
        index = self._indexes.get(position)
        if index is None:
            column, of = self._columns[position], self._packed.value
            hashes = [hash(of(column, place)) for place in self._places]
            order = sorted(range(len(hashes)), key=hashes.__getitem__)
            index = (
                array("q", [hashes[at] for at in order]),
                array("q", [self._numbers[at] for at in order]),
            )
            self._indexes[position] = index
        known, numbers = index
        wanted = hash(value)
        return numbers[bisect_left(known, wanted) : bisect_right(known, wanted)]
