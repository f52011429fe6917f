"""Contested rows: a transaction comes to one in its turn, and sees it as it is then.

A transaction that reads a row by its key and writes it back (``SELECT n``, ``UPDATE … SET
n = %s``) fails if another one commits the row in between. Where that has just happened to
a key, it waits before it reads the row until the transactions that came before it have
ended (:mod:`tique.commit.turns`), and takes a newer snapshot, which has what they committed.
So does one that chooses a row of a group (``SELECT min(id)``, ``ORDER BY id LIMIT 1``) of which
another one has just taken the row that it had chosen, too.

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
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.writes.seen import is_same_row

if TYPE_CHECKING:
    from tique.commit.turns import Habit
    from tique.query.transaction import Transaction
    from tique.store.rows import Key
    from tique_rewriter.schema import Table


def come_to(
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
    if transaction.read_only or table.is_temporary or any(transaction.writes.values()):
        return
    if transaction.locks.of(transaction.txid):
        # Others wait for its row locks: it waits for no turn.
        return
    claim = table.id, *place
    if contender.come_to(claim, columns, habit):
        _move_forward(transaction)


def _move_forward(transaction: Transaction) -> None:
    """Take a newer snapshot if it has all that was seen."""
    if not transaction.has_one_snapshot:
        transaction.renew()
        return
    sts = transaction.timeline.refresh(transaction.txid, keeps=True)
    if sts > transaction.sts and has_seen_the_same(transaction, sts):
        transaction.see_as_of(sts)


def has_seen_the_same(transaction: Transaction, sts: int) -> bool:
    """Whether a newer snapshot has everything that the application saw."""
    seen, catalog = transaction.seen, transaction.catalog
    whole = {*seen.tables, *(group.table_id for group in seen.groups)}
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
