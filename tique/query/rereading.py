"""READ COMMITTED: a statement that others overtook is run again, on what they committed.

Each statement of such a transaction has a snapshot of its own. A row that it changes may
have been committed since then, or be changed by a transaction that is still open. First
committer wins would let the transaction fail at its commit, when the application has
seen the results of its statements. So a statement that writes rows locks these, and their values of UNIQUE keys
(:mod:`tique.commit.locks`), waits for the transactions that have them, and is taken back
and run again, on a new snapshot, if one of the rows was committed since the one that it read. So a row that
its condition no longer finds is left alone, one that is gone stays so, and one under
another key is found there; and a key that an INSERT has written is a duplicate. PostgreSQL looks again at these rows alone; here the whole
statement has one snapshot, of which all of its subqueries are.

Argument
--------
*Nothing is lost (P3).* Locks decide who waits. The certifier looks at each row since the
snapshot of the first statement that wrote it, as ever.

*No loss at the commit.* A statement ends with each of its rows locked, no commit of one under
way that began without the lock (:meth:`Locks.settle`), and none published since its snapshot. From then on
other commits of these rows wait for the lock. That a commit is published before its
transaction gives its locks back is why the new snapshot has it.

*What has no lock* may lose at the commit: an update that merges (it loses only if what the
transaction has seen of the row, or its condition, has changed; a lock until the
commit would take away what group commit gains), rows that are staged, and rows of tables without a primary
key. A UNIQUE value may be lost to a transaction of SNAPSHOT, which has no lock of it, or to another
process.

*Other processes.* While others use the database, the rows are locked in the server, too; the
heartbeat says whether there are any. A statement in autocommit does without: it is run again
if it loses. So does one that would have the transaction lock more rows than the server
has room for.

*Costs.* Without contention: a lock in memory for each row, and a look at the table's newest commit. No
engine statement, and no round trip. Beside other processes, round trips for the locks, the commits that
have begun, and these.

*Waits* are those for row locks: bounded by ``lock_timeout``, cancelled by ``cancel()``, and one of a
circle of transactions is told (40P01).

*If the thread is interrupted*, or an error is raised, at any line, the statement is undone, with
its locks (:class:`~tique.query.transaction.Transaction`). Locks of rows that only an
overtaken run had written are given back when the statement ends.

*An end.* Each run has the locks of the one before: a row once locked overtakes it no more. So it
needs at most as many runs as there are rows that come to be found in one after the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.commit.locks import in_order, own_key, unique_key
from tique.query.lockable import staged_keys
from tique.store.rows import key_of
from tique.writes.table import TableWrites

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tique.commit.locks import LockKey
    from tique.query.statements.base import Outcome
    from tique.query.statements.writing import WritingStatement
    from tique.query.transaction import Transaction
    from tique.store.rows import Key
    from tique_rewriter.schema import Table


_MOST_EVERYWHERE = 100
"""Locks of one transaction that other processes see: the server has room for some thousands."""


def read_again(
    transaction: Transaction,
    changes: Iterable[WritingStatement],
    run: Callable[[], Outcome],
) -> Outcome:
    """Run a statement that has begun until no row that it changes was overtaken.

    Parameters
    ----------
    transaction
        One of READ COMMITTED.
    changes
        Its parts that change rows.
    run
        Runs it.
    """
    if transaction.migration is not None or all(
        each.table.is_temporary for each in changes
    ):
        return run()
    number, visible = transaction.sequence, transaction.visible_sequence
    has_lost = False
    while True:
        outcome = run()
        keys = _keys(transaction, number - 2)
        if not keys or _has_newest(transaction, keys):
            if has_lost:
                _give_back(transaction, number, keys)
            return outcome
        has_lost = True
        for each in (outcome, *outcome.more):
            each.close()
        transaction.take_back(number - 2)
        transaction.unchecked.clear()
        transaction.sequence, transaction.visible_sequence = number, visible
        transaction.refresh()


def _keys(transaction: Transaction, after: int) -> list[LockKey]:
    """The rows that a statement has written, and that do not merge, in order.

    With their values of UNIQUE keys.
    """
    found: set[LockKey] = set()
    for number, writes in transaction.writes.items():
        table = writes.table
        if table.is_temporary:
            continue
        if writes.is_staged:
            found.update(_staged(transaction, writes, after))
            continue
        for key in writes.written_after(after):
            write = writes.rows[key]
            if write.merge is not None and transaction.merges:
                continue
            found.add((number, key))
            if not write.deleted:
                for positions in table.unique:
                    values = key_of(positions, write.row)
                    if None not in values:
                        found.add(unique_key(number, positions, values))
    return in_order(found)


def _staged(
    transaction: Transaction, writes: TableWrites, after: int
) -> Iterator[LockKey]:
    """The same of staged rows; nothing if they are too many."""
    table = writes.table
    keys = staged_keys(transaction, writes, table.primary_key, after)
    if keys is None:
        return
    yield from ((table.id, key) for key in keys)
    for positions in table.unique:
        found = staged_keys(transaction, writes, positions, after, is_primary=False)
        for values in found or ():
            if None not in values:
                yield unique_key(table.id, positions, values)


def _has_newest(transaction: Transaction, keys: list[LockKey]) -> bool:
    """Lock rows; whether none was committed since the snapshot."""
    locks, txid = transaction.locks, transaction.txid
    patience = transaction.lock_timeout
    is_known = set(keys) <= set(locks.of(txid))
    everywhere = _must_lock_everywhere(transaction, keys)
    locks.lock_written(
        txid, keys, transaction.sequence, patience, everywhere=everywhere
    )
    locks.settle(txid, keys, patience)
    if everywhere and not is_known:
        transaction.timeline.await_begun()
    if transaction.timeline.has_ahead(set(keys)):
        return False
    tables = transaction.catalog.by_id()
    return not any(
        _is_overtaken(transaction, tables[number], [v for n, v in keys if n == number])
        for number in {number for number, _ in keys}
        if number in tables
        and transaction.catalog.versions(tables[number]).last_cts > transaction.sts
    )


def _must_lock_everywhere(transaction: Transaction, keys: list[LockKey]) -> bool:
    """Whether other processes must see the locks."""
    return (
        transaction.timeline.has_company
        and not transaction.is_single
        and len(keys) + len(transaction.locks.of(transaction.txid)) <= _MOST_EVERYWHERE
    )


def _is_overtaken(transaction: Transaction, table: Table, keys: Iterable[Key]) -> bool:
    """Whether a row, or a UNIQUE value, was committed since the snapshot."""
    writes = transaction.writes[table.id]
    written = writes.copy() if writes.is_staged else TableWrites(table)
    written.staged_sts = transaction.sts
    for key in () if writes.is_staged else keys:
        written.put(key, writes.rows[key]._replace(sts=transaction.sts))
    conflict = transaction.certifier.conflict(written, transaction.session)
    return conflict is not None


def _give_back(transaction: Transaction, number: int, kept: list[LockKey]) -> None:
    """Give back locks that the statement has taken and does not need."""
    locks, txid = transaction.locks, transaction.txid
    needed = {*kept, *map(own_key, kept)}
    taken = locks.taken_after(txid, number - 2)
    locks.release_keys(txid, [key for key in taken if key not in needed])
