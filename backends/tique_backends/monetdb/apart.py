"""Forms that MonetDB does not mix with a statement's own subqueries.

Beside IN, ANY, ALL and LATERAL, 11.41 takes a NOT EXISTS that it finds in a table of
FROM for EXISTS, and a correlated NOT IN loses rows of any UNION ALL that it reads. LEFT
JOINs come out right, and nothing is moved across a LIMIT. Beside EXISTS and scalar
subqueries no fault was found. A window that is ordered by an expression has no result
over a UNION ALL (README.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique_backends.forms import together
from tique_backends.monetdb.forms import MonetDBForms, known_rows, listed_equality
from tique_backends.names import column_list, key_equality, storage_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_ALL = 1 << 62


class ApartForms(MonetDBForms):
    """The forms for statements with IN, ANY or ALL of a subquery, LATERAL, or such windows."""

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
        return (_unmoved(together(parts)),)

    @override
    def overlay(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        keys: Sequence[Row],
        rows: Sequence[Row],
    ) -> tuple[str, ...]:
        return (_unmoved(together(super().overlay(table, columns, bound, keys, rows))),)

    @override
    def constants(
        self,
        table: Table,
        columns: Sequence[int],
        bound: Mapping[int, Any],
        values: Sequence[Sequence[Any]],
    ) -> str:
        return _unmoved(super().constants(table, columns, bound, values))

    @override
    def _current(self, table: Table, versions: str, *, flat: bool) -> str:
        if flat:
            return super()._current(table, versions, flat=flat)
        same = key_equality(table, table.primary_key, "_c.", "_l.")
        return (
            f"(SELECT {column_list(table, '_c.')} FROM {versions} AS _c "
            f"LEFT JOIN {versions} AS _l ON {same} AND _l._cts > _c._cts "
            "WHERE NOT _c._deleted AND _l._cts IS NULL)"
        )

    @override
    def _kept(self, table: Table, versions: str) -> str:
        same = key_equality(table, table.primary_key, "_s.", "_v.")
        return (
            f"(SELECT {column_list(table, '_s.')} FROM {storage_name(table)} AS _s "
            f"LEFT JOIN {versions} AS _v ON {same} WHERE _v._cts IS NULL)"
        )

    @override
    def _unlike(
        self, table: Table, positions: Sequence[int], rows: Sequence[Sequence[Any]]
    ) -> tuple[str, str]:
        excluded = known_rows(table, positions, rows, "_x")
        same = listed_equality(table, positions)
        return f" LEFT JOIN {excluded} ON {same}", f"_x._{positions[0]} IS NULL"


def _unmoved(query: str) -> str:
    return f"(SELECT * FROM {query} AS _u LIMIT {_ALL})"
