"""Forms for tables of which Citus has the rows in shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.forms import STAGED_STAMPS
from tique_backends.names import column_list, key_list, quote, storage_name
from tique_backends.postgresql.forms import PostgreSQLForms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tique_backends.postgresql.citus.placement import Placement
    from tique_rewriter.schema import Table


class CitusForms(PostgreSQLForms):
    """Forms of which each is one task a shard.

    That is what makes them right beside a fold (:mod:`tique_backends.postgresql.citus.moves`):
    storage and cache table stand in one subquery of co-located tables, which Citus sends whole to
    each shard. It would not do so with a staging table among them, which is the coordinator's;
    nor with parts of a table that are joined apart.

    Parameters
    ----------
    placed
        The distributed tables, by number.
    links
        Whether the statement joins the table with others, none of which is distributed.
    """

    def __init__(self, placed: Mapping[int, Placement], *, links: bool = False) -> None:
        self._placed = placed
        self._links = links

    @override
    def joins_in_parts(self, parts: int, others: int, *, wide: bool) -> bool:
        return False

    @override
    def scan(
        self,
        table: Table,
        sts: int,
        *,
        staged: int | None,
        appended: bool = False,
        flat: bool = False,
        past: bool = False,
        folded: int = 0,
    ) -> tuple[str, ...]:
        if staged is None or table.id not in self._placed:
            found = super().scan(
                *(table, sts),
                staged=staged,
                appended=appended,
                flat=flat,
                past=past,
                folded=folded,
            )
            if table.id not in self._placed:
                return found
            union = f"({' UNION ALL '.join(found)})"
            column = self._placed[table.id].column
            if column is None or not self._links:
                return (union,)
            return (self._linked(column, union),)
        columns = column_list(table)
        stored = (
            f"SELECT {columns}, CAST(-1 AS BIGINT) AS _cts, FALSE AS _deleted "
            f"FROM {storage_name(table)} UNION ALL "
            f"SELECT * FROM {self._versions(table, sts, None, folded)} AS _v"
        )
        own = (
            f"SELECT {columns}, _sequence + {STAGED_STAMPS}, _deleted "
            f"FROM {self.stage(table)} WHERE _sequence <= {staged}"
        )
        newest = f"row_number() OVER (PARTITION BY {key_list(table, table.primary_key)} ORDER BY _cts DESC)"
        return (
            f"(SELECT {columns} FROM (SELECT *, {newest} AS _newest FROM (SELECT * FROM ({stored}) "
            f"AS _all UNION ALL {own}) AS _u) AS _n WHERE _newest = 1 AND NOT _deleted)",
        )

    @staticmethod
    def _linked(column: str, union: str) -> str:
        """The same rows, where no other distributed table is joined.

        Citus then asks for a join by which the parts of a UNION have one distribution column,
        and takes one of the row with itself. (OFFSET keeps PostgreSQL from seeing that.)
        """
        key = quote(column)
        return (
            f"(SELECT _u.* FROM {union} AS _u CROSS JOIN LATERAL (SELECT _u.{key} AS _key "
            f"OFFSET 0) AS _l WHERE _l._key = _u.{key})"
        )
