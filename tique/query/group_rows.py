"""The rows of groups as a transaction sees them: storage's, versions', and its own.

Invariants
----------
* *Versions first* (:mod:`tique.store.groups`): versions that replace storage rows are
  read before the group's rows are.
* *Views* are for groups with many recent versions, as there are while an old snapshot is
  kept. A view is a group as materialized for some snapshot s. A later snapshot t sees
  the same rows but for the keys that have a version in (s, t], which are the last in
  the order of changes: the cost does not grow with the age of the oldest snapshot. A
  fold drops versions up to some λ ≤ t. If s < λ, the reader may have missed some of
  them. So it compares s with ``folded_until`` after it read them, which a fold sets
  before it drops them (:meth:`tique.store.versions.TableVersions.folded`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique.store.chains import newest_until
from tique.store.rows import lacks, merged
from tique.store.views import View
from tique_backends.base import MISSING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from tique.query.transaction import Transaction
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique_backends.base import Row
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
        replaced: Mapping[Key, Row | None] | None
        if bound:
            versions = transaction.versions(self._table)
            keys = versions.matching(tuple(bound), tuple(bound.values()))
            if len(keys) > transaction.catalog.policy.view_keys:
                return self._viewed(transaction, bound, keys, free)
            replaced = self._visible(transaction, versions, bound, keys)
        else:
            replaced = self.replaced(
                transaction, bound, transaction.catalog.policy.answered_rows
            )
            if replaced is None:
                return None
        return self.merged(transaction, bound, replaced, free, beside)

    def replaced(
        self,
        transaction: Transaction,
        bound: Mapping[int, Any],
        limit: int,
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
        group = transaction.group(
            self._table, prefix, columns, as_rows=True, beside=beside
        )
        if group is None:
            return None
        stored = group.rows()
        for key in replaced:
            stored.pop(key[-1], None)
        if len(stored) > transaction.catalog.policy.answered_rows:
            return None
        rows = list(stored.values())
        for key, row in replaced.items():
            if row is not None and lacks(row, columns):
                base = group.get(key[-1])
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
        looked at: the cost does not grow with the number of versions. The keys, their
        versions and their storage rows are read in this order, of a group that is kept
        all the while: a row that a fold moves is found in one or the other.
        """
        versions = transaction.versions(self._table)
        needed = {*columns, *filters}
        prefix = tuple(bound.values())
        group = transaction.group(
            self._table, prefix, needed, as_rows=False, beside=beside
        )
        if group is None:
            return None
        (first, value), *_ = filters.items()
        recent = versions.matching((*bound, first), (*prefix, value))
        numbers = group.numbers(first, value)
        if len(recent) + len(numbers) > transaction.catalog.policy.answered_rows:
            return None
        keys = {*recent, *[(*prefix, number) for number in numbers]}
        replaced = self._visible(transaction, versions, bound, keys)
        rows = []
        for key in keys.union(replaced):
            base = group.get(key[-1])
            row = replaced.get(key, base)
            if row is None:
                continue
            if lacks(row, needed):
                if base is None:
                    return None
                row = merged(row, base)
            if all(row[i] == value for i, value in filters.items()):
                rows.append(row)
        # Folds reach a group only while it is kept.
        return rows if versions.group(prefix) is group else None

    def _viewed(
        self,
        transaction: Transaction,
        bound: Mapping[int, Any],
        keys: Sequence[Key],
        columns: frozenset[int],
    ) -> list[Row] | None:
        """As :meth:`merged`, by a view; ``keys`` in the order of their last change."""
        prefix, sts = tuple(bound.values()), transaction.sts
        versions = transaction.versions(self._table)
        view = versions.view(prefix)
        if view is None or view.sts > sts or not view.columns.issuperset(columns):
            rows = None
        else:
            rows = self._advanced(versions, view, keys, sts)
        if view is None or rows is None:
            replaced = {
                key: version[1]
                for key in keys
                if (version := versions.newest_visible(key, sts)) is not None
            }
            found = self.merged(transaction, bound, replaced, columns)
            if found is None:
                return None
            last = self._table.primary_key[-1]
            rows = {row[last]: row for row in found}
        if view is None or rows is not view.rows:
            versions.remember_view(prefix, View(sts, columns, rows))
        writes = transaction.writes.get(self._table.id)
        if writes is not None:
            rows = rows.copy()
            for key, write in writes.rows.items():
                if may_match(write.row, bound):
                    row = None if write.deleted else write.row
                    if not _replace(rows, key[-1], row, columns):
                        return None
        return list(rows.values())

    def _advanced(
        self, versions: TableVersions, view: View, keys: Sequence[Key], sts: int
    ) -> dict[int, Row] | None:
        """A view's rows in a later snapshot; None if they cannot be derived."""
        rows = view.rows
        for key in reversed(keys):
            newest = versions.newest(key)
            if newest is None or newest[0] <= view.sts:
                break
            version = newest_until(newest, sts)
            if version is not None and version[0] > view.sts:
                if rows is view.rows:
                    rows = rows.copy()
                if not _replace(rows, key[-1], version[1], view.columns):
                    return None
        return None if versions.folded_until > view.sts else rows


def may_match(row: Row, values: Mapping[int, Any]) -> bool:
    """Whether a row can have these values, as far as it is known."""
    return all(row[i] is MISSING or row[i] == value for i, value in values.items())


def _replace(
    rows: dict[int, Row], number: int, row: Row | None, columns: Collection[int]
) -> bool:
    """Put a newer row (None: none) in another one's place; False if it has gaps then."""
    if row is None:
        rows.pop(number, None)
        return True
    if lacks(row, columns):
        base = rows.get(number)
        if base is None:
            return False
        row = merged(row, base)
    rows[number] = row
    return True
