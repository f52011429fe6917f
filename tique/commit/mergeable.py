"""Mergeable updates: one that lost is computed again on the newest version of its row.

An UPDATE of one row by its key, to values that are functions of that row alone
(``n = n + 1``), shows the application nothing of its snapshot but that the row is there and
that its condition (``AND n >= 5``) is true; ON CONFLICT DO UPDATE shows that the row is
there. If another transaction committed the row first, the update can still be committed, as
one of a transaction that began after the other one, if everything else that this one has
seen (:mod:`tique.writes.seen`) is still so.

Argument
--------
*Snapshot isolation (P1, P3).* A transaction is computed again as a whole or not at all. It
is then committed with a later snapshot than the one that it began with: the state that all
commits before it leave, those that stand before it in the batch among them. Each row that
it saw, by its key or by a predicate, is the same in that state, in the columns that it looked at;
every computed row has its newest version there for a base, of which its condition is true
as well; and its other writes are certified since its first snapshot. So every statement
would have answered as it did, and of two transactions whose lifetimes overlap one committed
a row, or rather: these columns of it. A later snapshot is allowed to every transaction,
strongly: that of an earlier one would not be.

A row that the transaction itself had changed when it looked at it shows what it was computed
from: then nothing of the row may have changed. In a READ COMMITTED transaction each
statement has a snapshot of its own, and only such rows matter.

*Gaps.* A column that is a gap in the newest version has not been changed since the row that
the statement saw (:mod:`tique.store.rows`): it is taken from there.

*Constraints (P9).* Columns of keys, UNIQUE keys, FOREIGN KEYs and bounds do not change, and
tables with a CHECK are left out; NOT NULL is checked again, and every value must fit its
column. The row must still be there. Otherwise the conflict stands.

*All or nothing (P5).* Versions of the batch on which others are computed are appended in the
same step as these, or none is. A ticket that is certified again begins with its own rows
(:meth:`~tique.commit.batch.BatchCertifier.undo`): what it was computed on may never have been committed.

*Folded versions* are not looked at: a transaction whose snapshot the engine keeps, and that λ has
passed, is computed again only while nothing of its tables was folded since.

*Once (P4).* The log has the computed row, not the function: no replay computes it again, and
a commit whose reply is lost is looked for in the log.

*Among several processes* the shared sequencer certifies keys, since the commits that this
process had followed when it began with the batch (F). A row that was computed on a commit
after F is refused there, and computed again when that commit is followed; so the later
snapshot is F, with the tickets before in the batch. The sequencer appends some tickets of a batch
and refuses others. So one that leans on those before it (:meth:`Merger.depends_on_batch`) is appended
in a request that appends all of its tickets or none (:mod:`tique.commit.shared`), or waits for the
next batch where there is no such request.

Only the leader of a group commit calls this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.commit.certification import differing
from tique_rewriter.local.kernel import NotLocal

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from tique.commit.batch_rows import BatchRows
    from tique.commit.validation import Validation
    from tique.store.catalog import ManagedCatalog
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique.writes.table import TableWrites, Write
    from tique.writes.tickets import Ticket
    from tique_backends.session import Session
    from tique_rewriter.schema import Table
    from tique_udfs import Sequencer


class Merger:
    """Computes the updates of one batch again where their rows were changed meanwhile.

    Parameters
    ----------
    catalog
        The managed tables.
    sequencer
        This process's own.
    batch
        The rows of the tickets before in the batch.
    validation
        Says whether what a transaction saw is still so.
    """

    def __init__(
        self,
        catalog: ManagedCatalog,
        sequencer: Sequencer,
        batch: BatchRows,
        validation: Validation,
    ) -> None:
        self._catalog = catalog
        self._sequencer = sequencer
        self._batch = batch
        self._validation = validation

    def overtaken(
        self, ticket: Ticket, session: Session
    ) -> list[tuple[TableWrites, Key, Write]]:
        """The mergeable writes whose rows others have changed since; none if it must lose."""
        transaction = ticket.transaction
        if ticket.is_bulk or not transaction.merges or ticket.place is not None:
            return []
        found = [
            (writes, key, write)
            for writes, key, write in _mergeable(ticket)
            if self._batch.has(writes.table, key)
            or self._versions(writes.table).last_commit(key) > write.sts
        ]
        is_same = bool(found) and self._sees_the_same(ticket, found, session)
        return found if is_same and self._is_in_reach(ticket, found) else []

    def _sees_the_same(
        self,
        ticket: Ticket,
        found: Iterable[tuple[TableWrites, Key, Write]],
        session: Session,
    ) -> bool:
        """Whether everything that the transaction saw is so in the newest state."""
        transaction = ticket.transaction
        seen = transaction.seen
        for writes, key, _ in found:
            # A bulk commit may have changed the row after the version known here.
            is_known = self._versions(writes.table).is_complete
            if not is_known or (writes.table.id, key) in seen.own:
                return False
        return not transaction.has_one_snapshot or (
            # It was asked for one that is validated.
            transaction.is_validated
            or self._validation.change(transaction, session) is None
        )

    def _is_in_reach(
        self, ticket: Ticket, found: Iterable[tuple[TableWrites, Key, Write]]
    ) -> bool:
        """Whether memory had all versions later than the snapshot; asked after the look."""
        oldest = min(ticket.transaction.sts, *(write.sts for _, _, write in found))
        tables = {writes.table.id: writes.table for writes, _, _ in found}
        tables |= ticket.transaction.seen.definitions
        return all(self._versions(t).folded_until <= oldest for t in tables.values())

    def depends_on_batch(
        self, ticket: Ticket, overtaken: Collection[tuple[TableWrites, Key, Write]]
    ) -> bool:
        """Whether what it is computed on, or has seen, is in tables of the batch.

        Then it must not be committed without the tickets before it.
        """
        transaction = ticket.transaction
        batch = self._batch
        return any(batch.has(writes.table, key) for writes, key, _ in overtaken) or (
            bool(overtaken)
            and transaction.has_one_snapshot
            and any(map(batch.writes_to, transaction.seen.definitions.values()))
        )

    def merge(
        self, ticket: Ticket, overtaken: Iterable[tuple[TableWrites, Key, Write]]
    ) -> set[tuple[int, Key]]:
        """Bring a ticket's rows up to date; those that are rows of the batch."""
        within = set()
        for writes, key, write in overtaken:
            base = self._batch.newest(writes.table, key)
            assert write.merge is not None
            try:
                row = None if base is None else write.merge.compute(base)
            except NotLocal:
                row = None
            if row is None:
                continue
            ticket.merged.append((writes, key, write))
            writes.rows[key] = write._replace(row=row, sts=self._sequencer.sts())
            if self._batch.has(writes.table, key):
                within.add((writes.table.id, key))
        return within

    def changed_columns(self, table: Table, key: Key) -> tuple[str, ...]:
        """The names of the columns of a row that tickets before in the batch changed."""
        versions = self._versions(table)
        newest = versions.newest(key)
        old = versions.storage_row(key)[1] if newest is None else newest[1]
        return differing(table, self._batch.newest(table, key), old)

    def _versions(self, table: Table) -> TableVersions:
        return self._catalog.versions(table)


def _mergeable(ticket: Ticket) -> Iterator[tuple[TableWrites, Key, Write]]:
    for writes in ticket.writes:
        for key, write in writes.rows.items():
            if write.merge is not None:
                yield writes, key, write
