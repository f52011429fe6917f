"""Multi-version two-phase locking: transactions wait for one another, and then go on.

A row that is written is locked at the statement, as in READ COMMITTED
(:mod:`tique.query.transaction.rereading`), and one that is read by its key is locked shared, each until the
transaction ends. A transaction that gets a lock after another one's commit sees what that has left: the
snapshot moves forward to it, and a statement that had written is taken back and run again.

Argument
--------
*Strict serializability* is validation's, which every transaction passes: locks decide
who waits. So a lock that is not there (rows that were read by a predicate, too many rows, another
process that has just come) costs an attempt, and nothing else. A transaction that
has its locks, and has read by keys alone, passes.

*The snapshot moves forward* only if everything that was seen is the same in the newest state
(else the transaction would fail at its commit: it fails at once), and no commit to the tables that
were seen is later than the new snapshot: so the two states are one, for these. What the
transaction has written is certified since the snapshot that it was computed on
(:class:`~tique.writes.table.Write`), which stays registered. A statement that was taken back has
shown the application nothing: what it saw does not count.

*Updates do not merge*: they are locked as any other change.

*Waits* are bounded by ``lock_timeout``; a circle is told (40P01). Two that have read a row and then
write it are one: each waits for the other's shared lock.

*Without locks*: what is declared READ ONLY, and reads in autocommit, see a state that the
order has. A transaction of which the engine keeps the snapshot, or that has run DDL, locks nothing that it reads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from tique import errors
from tique.commit.batch_rows import BatchRows
from tique.commit.lock_keys import own_key
from tique.commit.locks import MOST_EVERYWHERE
from tique.commit.protocols.optimistic import Optimistic
from tique.commit.validation import Validation, validation_error

if TYPE_CHECKING:
    from tique.commit.lock_keys import LockKey
    from tique.commit.protocols.optimistic import Serializable, Surroundings
    from tique.store.rows import Key
    from tique_rewriter.schema import Table

_LOOKS = 10
"""So often the newest state is compared while others go on committing."""


class Locking(Optimistic):
    """Locks rows, and validates."""

    locks: ClassVar[bool] = True

    def __init__(self, database: Surroundings) -> None:
        super().__init__(database)
        self._validation = Validation(
            database.catalog,
            database.forms,
            database.sequencer,
            BatchRows(database.catalog),
            in_memory=database.in_memory,
        )

    @override
    def read(self, transaction: Serializable, table: Table, key: Key) -> None:
        if transaction.read_only or transaction.is_single or table.is_temporary:
            return
        if transaction.session.is_held:
            # With a snapshot, or definitions, that are its own.
            return
        locks, timeline = self._database.locks, self._database.timeline
        txid, row = transaction.txid, (table.id, key)
        held = locks.of(txid)
        if row in held or own_key(row) in held:
            return
        everywhere = timeline.has_company and len(held) < MOST_EVERYWHERE
        locks.has_waited(txid)
        locks.lock_read(
            txid,
            row,
            transaction.sequence,
            transaction.lock_timeout,
            everywhere=everywhere,
        )
        if everywhere:
            timeline.await_begun(locks.begun(txid))
        if (
            (everywhere and locks.has_waited(txid))
            or timeline.has_ahead([row])
            or self._last_commit(table, row) > transaction.sts
        ):
            self.advance(transaction)

    def _last_commit(self, table: Table, row: LockKey) -> int:
        versions = self._database.catalog.versions(table)
        return (
            versions.last_commit(row[1]) if versions.is_complete else versions.last_cts
        )

    @override
    def advance(self, transaction: Serializable) -> None:
        timeline, find = self._database.timeline, self._database.catalog.find_versions
        for _ in range(0 if transaction.is_held else _LOOKS):
            sts = timeline.refresh(transaction.txid, keeps=True)
            change = self._validation.change(transaction, transaction.session.aside)
            if change is not None:
                raise validation_error(change)
            # Last: what was published meanwhile was perhaps looked at.
            seen = map(find, transaction.seen.definitions)
            if all(versions and versions.last_cts <= sts for versions in seen):
                transaction.see_as_of(sts)
                return
        raise errors.SerializationError(
            "another transaction has committed a row that this one is about to read or "
            "write, and its snapshot cannot be moved behind that; run the transaction again"
        )
