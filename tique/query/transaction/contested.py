"""Contested rows: a transaction comes to one in its turn, and sees it as it is then.

A transaction that reads a row by its key and writes it back (``SELECT n``, ``UPDATE … SET
n = %s``) fails if another one commits the row in between. Where that has just happened to
a key, it waits before it reads the row until the transactions that came before it have
ended (:mod:`tique.commit.turns`), and takes a newer snapshot, which has what they committed.
So does one that chooses a row of a group (``SELECT min(id)``, ``ORDER BY id LIMIT 1``) of which
another one has just taken the row that it had chosen, too.

Other processes have turns of their own. Where commits have been lost to them (:meth:`Contender.reserve`),
a transaction that has its turn at a row *reserves* it: it takes the row's lock in the server, as
SELECT … FOR UPDATE does, behind the processes that came before, and then its snapshot. Others' commits were there before that, or wait.

Argument
--------
*Snapshot isolation (P1, P3).* The snapshot is moved forward only if everything that the
transaction has seen is the same in the newer one, in the columns that it looked at, and
before it has written anything. So it is a transaction that began later, and every earlier
statement would have answered as it did. That an earlier commit is in the newer snapshot
follows from P2: it was published before the snapshot could cover it. The earlier snapshot
stays registered, so that no fold has taken away a version that the comparison needs. In
READ COMMITTED the statement has a new snapshot in any case.

*Liveness (P6).* A turn is a hint: it is waited for during a bounded time, and certification
decides as ever. A transaction that has a turn or a row lock, or has written, waits for none.

*A bounded number of attempts, beside other processes.* A transaction that loses in its turn
reserves the keys at its next attempt, before its snapshot. From then on no other process's commit
of them gets a timestamp (:mod:`tique_backends.servers.row_locks`). So it loses to a commit that had its
timestamp already, and then no more: the loss is told when that commit is over. The server grants
locks in the order in which they were asked for, and of each process those transactions ask that have
their turn: processes win one after the other, and the clients of each in their order.

*A bounded hold.* A reservation ends with its transaction; or when its time, that of the turn, is over: a
heartbeat of its process gives it back (:meth:`ServerLocks.lapse`), unless its commit is under
way. The transaction goes on without. If the process dies, at any line, the server ends the
lock with the session or the lease, as it does every row lock. A process that is stopped
holds commits of the key up for as long as its lease.

*A commit that meets a reservation* waits as it does for a row lock (:mod:`tique.commit.commit_with_lock_waits`), in
the same queue, and not longer than ``lock_timeout``. What it read of the row is older then, so it may lose, and its
next attempt has a reservation. FOR UPDATE waits too, NOWAIT and SKIP LOCKED find the row locked.

*No deadlock by reservations alone.* A transaction reserves what it wants at once, in the order of
the locks' numbers, when it has no row lock. While it has one reserved it waits for no
turn, and before it waits for a row lock it gives all of them back. A transaction that has row locks may
close a circle with one that waits for its second reservation: that ends with the victim that the server
chooses, or when the first one lapses. A reservation that is refused, for whatever reason, is done without.

*READ COMMITTED* locks the rows that its statements write, and reserves none. Its readers wait for no transaction, and
one that loses all the same is not waited for: only a statement in autocommit, which locks none in the server, takes turns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.commit.turns import PATIENCE
from tique.writes.seen import is_same_row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique.commit.turns import Claim, Habit
    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique_rewriter.schema import Table


def wait_for_turn(
    transaction: Transaction,
    table: Table,
    place: tuple[tuple[int, ...], Key],
    columns: frozenset[int] | None,
    habit: Habit,
) -> None:
    """Wait for the turn at a row, or a group, if it is contested.

    ``place`` has positions of key columns, and values in them. ``columns`` are those that
    the statement looks at; None: all.
    """
    contender = transaction.contender
    if contender is None or not contender.turns.are_contested:
        return
    if (
        not transaction.takes_turns
        or transaction.read_only
        or table.is_temporary
        or any(transaction.writes.values())
    ):
        return
    if transaction.locks.of(transaction.txid):
        # Others wait for its row locks: it waits for no turn.
        return
    claim = table.id, *place
    if contender.wait_for_turn(claim, columns, habit):
        _reserve(transaction)
        _move_forward(transaction)


def reacquire_turn(transaction: Transaction) -> None:
    """Reserve the rows that its connection's last attempt lost; see them as of then."""
    if _reserve(transaction):
        transaction.renew()


def _reserve(transaction: Transaction) -> bool:
    contender, locks = transaction.contender, transaction.locks
    if (
        contender is None
        or not contender.has_place
        or locks.server is None
        or transaction.read_only
        or not transaction.has_one_snapshot
    ):
        return False

    def lock(claims: Sequence[Claim], lasting: float) -> bool | None:
        return locks.reserve(transaction.txid, claims, PATIENCE, lasting)

    return contender.reserve(lock)


def _move_forward(transaction: Transaction) -> None:
    """Take a newer snapshot if it has all that was seen."""
    if not transaction.has_one_snapshot:
        transaction.renew()
        return
    if transaction.is_held:
        return
    sts = transaction.timeline.refresh(transaction.txid, keeps=True)
    if sts > transaction.sts and has_seen_the_same(transaction, sts):
        transaction.see_as_of(sts)


def has_seen_the_same(transaction: Transaction, sts: int) -> bool:
    """Whether a newer snapshot has everything that the application saw."""
    seen, catalog = transaction.seen, transaction.catalog
    whole = {predicate.table.id for predicate in seen.predicates}
    for table in seen.definitions.values():
        versions = catalog.find_versions(table.id)
        if versions is None or not catalog.is_current(table):
            return False
        is_known = versions.is_complete and not table.is_keyless
        if versions.last_cts > transaction.sts and (table.id in whole or not is_known):
            return False
    for (table_id, key), (row, columns) in seen.rows.items():
        versions = catalog.find_versions(table_id)
        if versions is None:
            return False
        if versions.last_commit(key) > transaction.sts:
            newer = versions.newest_visible(key, sts)
            if newer is None or not is_same_row(newer[1], row, columns):
                return False
    return True
