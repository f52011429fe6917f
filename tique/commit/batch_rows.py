"""The rows that tickets of a batch write, before they are published."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.writes.tickets import Ticket
    from tique_backends.records import Row
    from tique_rewriter.schema import Table


class BatchRows:
    """The newest state as the next ticket of a batch will find it.

    Parameters
    ----------
    catalog
        The managed tables, with the versions that are published.
    """

    def __init__(self, catalog: ManagedCatalog) -> None:
        self._catalog = catalog
        self._rows: dict[int, dict[Key, Row | None]] = {}
        """By table and key; None: deleted."""

    def note(self, ticket: Ticket) -> None:
        """Let later tickets of the batch find this one's rows."""
        for writes in ticket.writes:
            rows = self._rows.setdefault(writes.table.id, {})
            if writes.table.is_keyless:
                # Looked at as a whole; its rows may have no hash.
                rows[()] = None
            for key, write in writes.rows.items():
                rows[key] = None if write.deleted else write.row

    def __bool__(self) -> bool:
        """Whether there is a ticket before."""
        return bool(self._rows)

    def writes_to(self, table: Table) -> bool:
        """Whether a ticket before has written to a table."""
        return bool(self._rows.get(table.id))

    def has(self, table: Table, key: Key) -> bool:
        """Whether a ticket before has written a row."""
        return key in self._rows.get(table.id, ())

    def keys(self, table: Table) -> Collection[Key]:
        """The keys of a table's rows."""
        return self._rows.get(table.id, {}).keys()

    def newest(self, table: Table, key: Key) -> Row | None:
        """The newest version of a row that is known; None: it is not there."""
        rows = self._rows.get(table.id, {})
        if key in rows:
            return rows[key]
        newest = self._catalog.versions(table).newest(key)
        return None if newest is None else newest[1]
