"""Bringing a table's rows back to what they were.

What differs is one query, which the engine computes from the history table, the cache table and
the storage of the keys concerned (:mod:`tique_backends.changes`). Its rows are written as those of MERGE are:
they are checked, and certified against other transactions.

Argument
--------
*The snapshot's rows become the version's.* The query is one statement of the engine, and the
transaction's snapshot is registered or held: whatever is folded before it or beside it, it finds
every version up to the snapshot, once. What others commit after the snapshot to the
rows that differ is a conflict, and all else stays.

*Nothing is pruned before it is read.* Pruning goes by the same clock: what it has taken from
before the query is refused by a look at the clock after it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from typing_extensions import override

from tique import errors
from tique.history.moments import expect_kept, now_of
from tique.query.write.changes import (
    Staging,
    Written,
    few_rows,
    stage_computed,
    write_changes,
)
from tique.query.write.writing import WritingStatement
from tique_backends.changes import difference
from tique_rewriter.kinds.change.truncate import deletion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.history.moments import Point
    from tique.query.transaction.transaction import Transaction
    from tique.query.write.changes import Change
    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_UPDATE, _DELETE, _INSERT = 1, 2, 3


class RestoreStatement(WritingStatement):
    """Bringing a table's rows back to what they were at a version."""

    privileges = ("INSERT", "UPDATE", "DELETE")

    def __init__(self, table: Table, point: Point) -> None:
        super().__init__(deletion(table), None)
        self._point = point

    @override
    def _write(self, transaction: Transaction, parameters: Sequence[Any]) -> Written:
        written = self._write_differences(transaction)
        session = transaction.session
        now = now_of(transaction.engine, session)
        expect_kept(session, self._table, replace(self._point, now=now))
        return written

    def _write_differences(self, transaction: Transaction) -> Written:
        table, sts = self._table, transaction.sts
        if transaction.writes.get(table.id):
            raise errors.ProgrammingError(
                f"{table.qualified_name} cannot be restored in a transaction that has "
                "changed it: commit or roll back first",
                sqlstate="25001",
            )
        writes = transaction.writes_to(table)
        transaction.see_table(table)
        transaction.versions(table).drain(transaction.session, sts)
        differing = difference(
            transaction.engine.forms, table, self._point.version, sts
        )
        width = len(table.columns)
        # What is there now is the old row.
        items = [f"_{side}_{i}" for side in ("new", "old") for i in range(width)]
        query = (
            f"SELECT CASE WHEN NOT _is THEN {_INSERT} WHEN _was THEN {_UPDATE} "
            f"ELSE {_DELETE} END AS _a, {', '.join(items)} FROM ({differing}) AS _d"
        )
        if transaction.catalog.buffers(table):
            rows = few_rows(transaction, table, query, (), wide=True)
            changes = [_change(row, width) for row in rows or ()]
            if rows is not None and all(map(self._are_exact, changes)):
                return write_changes(transaction, table, changes, range(width))
        writes.switch_to_stage(transaction.session)
        staging = Staging(query, [_UPDATE], [_DELETE], [_INSERT])
        updated = frozenset(range(width)).difference(table.primary_key)
        return stage_computed(transaction, table, staging, (), range(width), updated)


def _change(row: Row, width: int) -> Change:
    action, old, new = row[0], row[1 : width + 1], row[width + 1 :]
    return None if action == _INSERT else old, None if action == _DELETE else new
