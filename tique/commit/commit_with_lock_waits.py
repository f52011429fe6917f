"""A commit waits for the transactions that have locked its rows.

Those of this process are known before the commit begins (:meth:`Locks.enter`). A lock of another
process shows when the commit is at the server (:mod:`tique_backends.servers.row_locks`): nothing of
it is there then. The transaction waits for the lock, has it, and commits again: each time it
has at least one lock more, so there is an end, and each wait has one.

One that is validated, and that commits of other processes have overtaken a few times, is committed
behind a barrier. The server does not look for locks of its rows then, so it locks them before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique._translation import translating
from tique.commit.lock_keys import in_order
from tique.writes.tickets import OvertakenError
from tique_backends.servers.row_locks import RowsLockedError

if TYPE_CHECKING:
    from tique.commit.committer import Committer
    from tique.commit.locks import Locks
    from tique.writes.tickets import Committing


def commit_behind_locks(
    committer: Committer,
    locks: Locks,
    transaction: Committing,
    patience: float | None,
) -> int:
    """Commit, and return the cts; the caller calls :meth:`Locks.leave`, whatever happens.

    Raises
    ------
    SerializationError, OperationalError
        As :meth:`Committer.commit` and :meth:`Locks.lock`.
    """
    with translating():
        committer.prepare(transaction)
    needs_barrier = False
    while True:
        locks.enter(transaction, patience)
        try:
            return committer.commit(transaction, needs_barrier=needs_barrier)
        except OvertakenError:
            locks.leave(transaction.txid)
            rows = [
                (number, key)
                for number, writes in transaction.writes.items()
                for key in writes.rows
            ]
            locks.lock(transaction.txid, in_order(rows), 0, patience)
            needs_barrier = True
        except RowsLockedError as error:
            locks.leave(transaction.txid)
            locks.lock_met(transaction.txid, error.numbers, patience)
