"""Which statements are staged: few rows do for tests what thousands do elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.query.write import changes

if TYPE_CHECKING:
    from collections.abc import Callable

BUFFERED_ROWS = changes.BUFFERED_ROWS
"""The number that users have."""


def stage_above(rows: int, patch: Callable[..., None] = setattr) -> None:
    """Leave what a statement writes in the engine if it is more than ``rows`` rows.

    ``patch`` sets an attribute: give a ``monkeypatch.setattr``, which sets it back.
    """
    patch(changes, "BUFFERED_ROWS", rows)
