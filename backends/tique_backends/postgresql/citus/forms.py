"""Forms for tables of which Citus has the rows in shards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.forms import STAGED_STAMPS
from tique_backends.names import column_list, key_list, quote, storage_name
from tique_backends.postgresql.forms import PostgreSQLForms

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique_backends.postgresql.citus.placement import Placement
    from tique_rewriter.schema import Table


class CitusForms(PostgreSQLForms):
    """Forms of which each is one task a shard.

    That is what makes them right beside a fold (:mod:`tique_backends.postgresql.citus.moves`):
    storage and cache table are read by one task, with one snapshot. Citus sends a subquery of
    co-located tables whole to each shard, or runs it first, whole; so it must not see two in it.
    It would with a staging table between them, which is the coordinator's, or with parts that are
    joined apart; and in a UNION ALL that PostgreSQL has dissolved: then it also takes the columns
    of all of them in a statement for equal (citusdata/citus#4763), and joins too few rows. A column
    that has two types in the parts keeps PostgreSQL from that.

    A table is also joined with itself, but where it is alone in its statement: Citus asks for a
    join by which the parts of a UNION have one distribution column (OFFSET keeps PostgreSQL from
    seeing that it is the same row). With a UNION alone in FROM it does not look at the subqueries
    of WHERE at all, and answers wrongly.

    Parameters
    ----------
    placed
        The distributed tables, by number.
    alone
        Whether the statement reads one table, once.
    """

    def __init__(self, placed: Mapping[int, Placement], *, alone: bool = False) -> None:
        self._placed = placed
        self._alone = alone

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
        placed = self._placed.get(table.id)
        if staged is None or placed is None:
            found = super().scan(
                *(table, sts),
                staged=staged,
                appended=appended,
                flat=flat,
                past=past,
                folded=folded,
            )
            return found if placed is None else (self._whole(table, found, placed),)
        columns = column_list(table)
        stored = (
            f"SELECT {columns}, CAST(-1 AS INTEGER) AS _cts, FALSE AS _deleted "
            f"FROM {storage_name(table)} UNION ALL "
            f"SELECT * FROM {self._versions(table, sts, None, folded)} AS _v"
        )
        own = (
            f"SELECT {columns}, _sequence + {STAGED_STAMPS}, _deleted "
            f"FROM {self.stage(table)} WHERE _sequence <= {staged}"
        )
        key = key_list(table, table.primary_key)
        newest = f"row_number() OVER (PARTITION BY {key} ORDER BY _cts DESC)"
        return (
            f"(SELECT {columns} FROM (SELECT *, {newest} AS _newest FROM (SELECT * FROM "
            f"({stored}) AS _all UNION ALL {own}) AS _u) AS _n "
            "WHERE _newest = 1 AND NOT _deleted)",
        )

    def _whole(self, table: Table, parts: Sequence[str], placed: Placement) -> str:
        """One subquery of a table's parts."""
        columns = column_list(table)
        union = " UNION ALL ".join(
            f"SELECT {columns}, CAST(0 AS {kind}) AS _part FROM {part} AS _p"
            for part, kind in zip(parts, ("INTEGER", "BIGINT"), strict=True)
        )
        query = f"SELECT {column_list(table, '_u.')} FROM ({union}) AS _u"
        if placed.column is not None and not self._alone:
            key = f"_u.{quote(placed.column)}"
            query += (
                f" CROSS JOIN LATERAL (SELECT {key} AS _key OFFSET 0) AS _l "
                f"WHERE _l._key = {key}"
            )
        return f"({query})"
