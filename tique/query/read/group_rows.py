"""The rows of groups as a transaction sees them: storage's, versions', and its own.

Versions that replace storage rows are read first, then the range that has the group
(:mod:`tique.store.versions` says why).
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from tique.store.rows import lacks, merged
from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique_backends.records import Row
    from tique_rewriter.schema import Table


class GroupRows:
    """Finds the rows of one table's groups.

    In its methods ``bound`` has the values of key columns by position, in key order:
    for one group those of all key columns but the last.
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def rows(
        self,
        transaction: Transaction,
        bound: Mapping[int, Any],
        others: Mapping[int, Any],
        columns: Iterable[int],
        beside: int,
    ) -> list[Row] | None:
        """The rows of a group, one of ``beside`` groups that are wanted."""
        free = frozenset(columns).difference(bound)
        if others:
            return self.matching(transaction, bound, others, free, beside)
        limit = inf if bound else transaction.catalog.policy.answered_rows
        replaced = self.replaced(transaction, bound, limit)
        if replaced is None:
            return None
        return self.merged(transaction, bound, replaced, free, beside)

    def replaced(
        self,
        transaction: Transaction,
        bound: Mapping[int, Any],
        limit: float,
    ) -> dict[Key, Row | None] | None:
        """The rows in place of storage rows (None: a tombstone), by key.

        None if there are more than ``limit``: these are left to the engine.
        """
        versions = transaction.versions(self._table)
        keys: Collection[Key]
        if len(bound) == len(self._table.primary_key):
            keys = [tuple(bound.values())]
        elif not bound and versions.keys > limit:
            return None
        else:
            keys = versions.matching(tuple(bound), tuple(bound.values()))
            if len(keys) > limit:
                return None
        replaced = self._visible(transaction, versions, bound, keys)
        return replaced if len(replaced) <= limit else None

    def _visible(
        self,
        transaction: Transaction,
        versions: TableVersions,
        bound: Mapping[int, Any],
        keys: Iterable[Key],
    ) -> dict[Key, Row | None]:
        """The visible versions of these keys, and all of the transaction's own."""
        replaced: dict[Key, Row | None] = {}
        for key in keys:
            version = versions.newest_visible(key, transaction.sts)
            if version is not None:
                replaced[key] = version[1]
        writes = transaction.writes.get(self._table.id)
        if writes is not None:
            for key, write in writes.rows.items():
                if may_match(write.row, bound):
                    replaced[key] = None if write.deleted else write.row
        return replaced

    def merged(
        self,
        transaction: Transaction,
        bound: Mapping[int, Any],
        replaced: Mapping[Key, Row | None],
        columns: Collection[int],
        beside: int = 1,
    ) -> list[Row] | None:
        """The visible rows of a group; None if its storage rows are not in memory.

        ``replaced`` was read before.
        """
        prefix = tuple(bound.values())
        part = transaction.group_range(
            self._table, prefix, columns, as_rows=True, beside=beside
        )
        if part is None:
            return None
        stored = part.rows(prefix)
        for key in replaced:
            stored.pop(key, None)
        if len(stored) > transaction.catalog.policy.answered_rows:
            return None
        rows = list(stored.values())
        for key, row in replaced.items():
            if row is not None and lacks(row, columns):
                _, base = part.find(key, columns)
                if base is None:
                    return None
                row = merged(row, base)
            if row is not None:
                rows.append(row)
        return rows

    def matching(
        self,
        transaction: Transaction,
        bound: Mapping[int, Any],
        filters: Mapping[int, Any],
        columns: Collection[int],
        beside: int = 1,
    ) -> list[Row] | None:
        """As :meth:`merged`, of the rows with some values.

        Only keys under which a version or storage has the first of the values are
        looked at: the cost does not grow with the number of versions.
        """
        versions = transaction.versions(self._table)
        needed = {*columns, *filters}
        prefix = tuple(bound.values())
        part = transaction.group_range(
            self._table, prefix, needed, as_rows=False, beside=beside
        )
        if part is None:
            return None
        (first, value), *_ = filters.items()
        recent = versions.matching((*bound, first), (*prefix, value))
        stored = part.keys(prefix, first, value)
        if len(recent) + len(stored) > transaction.catalog.policy.answered_rows:
            return None
        keys = {*recent, *stored}
        replaced = self._visible(transaction, versions, bound, keys)
        rows = []
        for key in keys.union(replaced):
            known, base = part.find(key, needed)
            row = replaced.get(key, base)
            if not known:
                return None
            if row is not None and lacks(row, needed):
                if base is None:
                    return None
                row = merged(row, base)
            if row is not None and all(row[i] == v for i, v in filters.items()):
                rows.append(row)
        # Folds reach a range only while it is kept.
        return rows if versions.keeps(part) else None


def may_match(row: Row, values: Mapping[int, Any]) -> bool:
    """Whether a row can have these values, as far as it is known."""
    return all(row[i] is MISSING or row[i] == value for i, value in values.items())
