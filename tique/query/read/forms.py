"""The names of the forms in which queries read tables, for EXPLAIN."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tique_rewriter.schema import Table


class Form(Enum):
    """A form of one table (see :mod:`tique.query.read.sources`)."""

    STORAGE = "storage only"
    ROW = "constant row"
    ROWS = "constant rows"
    OVERLAY = "overlay"
    ANTI_JOIN = "anti-join"
    UNION = "union"
    """Of a table without a key, or one only appended to: inserted rows beside storage."""
    UNCOMMITTED_FOLD = "uncommitted fold"
    HISTORY = "history"
    """As of the past: storage and cache, and the before-images in place of what is newer."""


class Choice(NamedTuple):
    """The form that a table got, and the reason."""

    table: Table
    form: Form
    why: str

    def shown(self) -> tuple[str, str]:
        """A row of EXPLAIN."""
        return (
            f"form of {self.table.qualified_name}",
            f"{self.form.value}: {self.why}",
        )
