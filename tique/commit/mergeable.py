"""Mergeable updates: one that lost is computed again on the newest version of its row.

A statement in autocommit that changes one row by its key, to values that are functions of
that row alone (``n = n + 1``), shows the application nothing of its snapshot but that the
row is there. Such a transaction is *blind*.

Argument
--------
*Snapshot isolation (P1, P3).* A blind transaction that another one overtook is committed as
if it had begun after that one: its snapshot is the state that all commits before it leave,
those that stand before it in the batch among them. It has read nothing else, and what it
writes is computed on that state. A later snapshot than the one that it began with is allowed
to every transaction; that of an earlier one would not be. The row must still be there, with
the columns that are looked at in memory, and every value must fit its column: otherwise the
conflict stands, and the statement is run again.

*Constraints (P9).* Columns of keys, UNIQUE keys and FOREIGN KEYs do not change, and tables
with a CHECK are left out; NOT NULL is checked again.

*All or nothing (P5).* Versions of the batch on which others are computed are appended in the
same step as these, or none is. A ticket that is certified again begins with its own rows
(:meth:`Merger.undo`): what it was computed on may never have been committed.

*Once (P4).* The log has the computed row, not the function: no replay computes it again.

Only the leader of a group commit calls this, for one process's commits: among several the
sequencer certifies keys, and knows no rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.kernel import NotLocal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.writes.table import TableWrites, Write
    from tique.writes.tickets import Ticket
    from tique_backends.records import Row
    from tique_udfs import Sequencer


class Merger:
    """Computes the updates of one batch again where their rows were changed meanwhile.

    Parameters
    ----------
    catalog
        The managed tables.
    sequencer
        This process's own.
    """

    def __init__(self, catalog: ManagedCatalog, sequencer: Sequencer) -> None:
        self._catalog = catalog
        self._sequencer = sequencer
        self._written: dict[tuple[int, Key], Row | None] = {}
        """The rows of the tickets before in the batch; None: deleted."""

    def merge(self, ticket: Ticket) -> set[tuple[int, Key]]:
        """Bring a blind ticket's rows up to date; those that are rows of the batch."""
        within = set()
        if ticket.transaction.is_blind:
            for writes, key, write in _mergeable(ticket):
                place = (writes.table.id, key)
                if place in self._written:
                    base = self._written[place]
                else:
                    newest = self._catalog.versions(writes.table).newest(key)
                    if newest is None or newest[0] <= write.sts:
                        continue
                    base = newest[1]
                assert write.merge is not None
                try:
                    row = None if base is None else write.merge(base)
                except NotLocal:
                    row = None
                if row is None:
                    continue
                ticket.merged.append((writes, key, write))
                writes.rows[key] = write._replace(row=row, sts=self._sequencer.sts())
                if place in self._written:
                    within.add(place)
        return within

    def undo(self, ticket: Ticket) -> None:
        """Give a ticket its own rows back."""
        for writes, key, write in ticket.merged:
            writes.rows[key] = write
        ticket.merged.clear()

    def note(self, ticket: Ticket) -> None:
        """Let later tickets of the batch be computed on this one's rows."""
        for writes in ticket.writes:
            for key, write in writes.rows.items():
                row = None if write.deleted else write.row
                self._written[writes.table.id, key] = row


def _mergeable(ticket: Ticket) -> Iterator[tuple[TableWrites, Key, Write]]:
    for writes in ticket.writes:
        for key, write in list(writes.rows.items()):
            if write.merge is not None and not writes.is_staged:
                yield writes, key, write
