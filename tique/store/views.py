"""Views: groups materialized for one snapshot, from which later ones are derived."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from tique_backends.base import Row

_ROW_BYTES = 200
"""Bytes of a row that is not the same in storage, about."""


class View:
    """The rows of a group that one snapshot sees, materialized. It never changes.

    Parameters
    ----------
    sts
        The snapshot.
    columns
        The columns that all rows have.
    rows
        The rows, by the key's last column.
    """

    def __init__(
        self, sts: int, columns: Collection[int], rows: dict[int, Row]
    ) -> None:
        self.sts = sts
        self.columns = frozenset(columns)
        self.rows = rows
        self.is_used = False
        self.size = 1000 + len(rows) * _ROW_BYTES
