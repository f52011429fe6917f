"""Forms beside a window over all rows, which DuckDB has faults with (README.md).

A UNION ALL is several pipelines, and a window without PARTITION BY and ORDER BY is not
ready for that: ``dense_rank()`` crashes when the first of them has no rows, and up to
1.5.5 ``lead()`` gives rows twice. A query below LIMIT 100% is gathered first, by one
thread, in its order, and then read as one. (A materialized CTE loses the order.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique_backends.duckdb.forms import DuckDBForms
from tique_backends.forms import together

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table


class GatheredForms(DuckDBForms):
    """The forms for statements with a window over all rows."""

    @override
    def scan(
        self,
        table: Table,
        sts: int,
        *,
        staged: int | None,
        appended: bool = False,
        flat: bool = False,
    ) -> tuple[str, ...]:
        parts = super().scan(table, sts, staged=staged, appended=appended, flat=flat)
        return (_gathered(together(parts)),)

    @override
    def overlay(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        keys: Sequence[Row],
        rows: Sequence[Row],
    ) -> tuple[str, ...]:
        parts = super().overlay(table, columns, bound, keys, rows)
        return (_gathered(together(parts)),) if rows else parts


def _gathered(query: str) -> str:
    return f"(SELECT * FROM {query} AS _u LIMIT 100%)"
