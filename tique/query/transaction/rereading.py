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

*Updates that merge* do not exclude one another, or what group commit gains were lost
(:meth:`Locks.lock_merged`). One with a condition on more than its key is locked as any other
change is, since another one may make the condition false. One that the transaction looks at afterwards is
locked then (:func:`look_again`), computed again if others have committed the row, and read
again.

*A row that is not inserted* (a duplicate, DO NOTHING) shows one that may be deleted or moved by an open
transaction. The statement waits for the lock of that row, or of the value, and runs again if anything of the
table was committed; the second time it has the lock, and what it finds stands. So with a row
that a view's CHECK OPTION refuses: it may be made of one that is changed meanwhile.

*References.* A row that references a key, and one that gives a key up, lock the key, shared and alone.

*What has no lock* may lose at the commit: too many staged rows, rows of tables without a primary
key, and staged values of unique indexes on expressions; anything against a transaction of SNAPSHOT, which takes no lock.

*Other processes.* While others use the database, the rows are locked in the server, too, and what merges is
shown there; the statement's snapshot says whether there are any (:mod:`tique.timeline.shared`). A statement in autocommit does without: it is run again
if it loses. So does one that would have the transaction lock more rows than the server
has room for.

*Costs.* Without contention: a lock in memory for each row, and a look at the table's newest commit. No
engine statement, and no round trip, but for values that the engine computes. Beside other processes, round trips for the locks, the commits that
have begun, and these.

*Waits* are those for row locks: bounded by ``lock_timeout``, cancelled by ``cancel()``, and one of a
circle of transactions is told (40P01).

*If the thread is interrupted*, or an error is raised, at any line, the statement is undone, with
its locks (:class:`~tique.query.transaction.transaction.Transaction`). Locks of rows that only an
overtaken run had written are given back when the statement ends.

*An end.* Each run has the locks of the one before: a row once locked overtakes it no more. So it
needs at most as many runs as there are rows that come to be found in one after the other.
"""

from __future__ import annotations

from itertools import starmap
from typing import TYPE_CHECKING

from tique import errors
from tique.commit.certification import ComputedKeys
from tique.commit.lock_keys import (
    in_order,
    merging_key,
    own_key,
    reference_key,
    seen_key,
    unique_key,
)
from tique.commit.locks import MOST_EVERYWHERE
from tique.commit.referential import ReferentialCertifier
from tique.query.transaction.lock_checks import staged_keys
from tique.store.rows import key_of
from tique.writes.references import References
from tique.writes.table import TableWrites
from tique_backends.records import MISSING
from tique_rewriter.local.kernel import NotLocal

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from typing import Any

    from tique.commit.lock_keys import LockKey
    from tique.query.base import Outcome
    from tique.query.transaction.transaction import Transaction
    from tique.query.write.writing import WritingStatement
    from tique.store.rows import Key
    from tique.store.versions import TableVersions
    from tique_backends.records import Row
    from tique_rewriter.schema import Table


def read_again(
    transaction: Transaction,
    changes: Iterable[WritingStatement],
    run: Callable[[], Outcome],
) -> Outcome:
    """Run a statement that has begun until no row that it changes was overtaken.

    Parameters
    ----------
    transaction
        One that locks what it writes, in READ COMMITTED or by its protocol
        (:mod:`tique.commit.protocols.locking`): in any other it is run once.
    changes
        Its parts that change rows.
    run
        Runs it.
    """
    if (
        not transaction.locks_rows
        or transaction.has_run_ddl
        or all(each.table.is_temporary for each in changes)
    ):
        return run()
    base, txid = transaction.sequence - 2, transaction.txid
    noted = transaction.seen_before()
    has_lost = False
    while True:
        number, visible = transaction.sequence, transaction.visible_sequence
        transaction.met.clear()
        transaction.looked_at.clear()
        outcome = violation = None
        try:
            outcome = run()
        except (errors.UniqueViolation, errors.WithCheckOptionViolation) as error:
            violation = error
        wanted = _wanted(transaction, number - 2, is_refused=violation is not None)
        before = set(transaction.locks.of(transaction.txid))
        is_newest = not wanted or _has_newest(transaction, wanted)
        if is_newest and (
            before.issuperset(transaction.locks.to_lock(txid, wanted.met))
            or not _has_moved(transaction, wanted.met)
        ):
            if outcome is None:
                assert violation is not None
                raise violation
            if has_lost or wanted.met:
                _give_back(transaction, base, wanted)
            return outcome
        has_lost = True
        for each in () if outcome is None else (outcome, *outcome.more):
            each.close()
        transaction.take_back(number - 2)
        transaction.unchecked.clear()
        transaction.sequence, transaction.visible_sequence = number, visible
        transaction.advance(noted)
        if wanted.looked_at:
            _compute_again(transaction, wanted.looked_at)
            transaction.sequence += 2


def look_again(
    run: Callable[[Transaction, Sequence[Any]], Outcome],
    transaction: Transaction,
    parameters: Sequence[Any],
) -> Outcome:
    """Run a query that may look at own rows that merge; again if they were overtaken."""
    while True:
        transaction.looked_at.clear()
        outcome = run(transaction, parameters)
        if transaction.is_single or not transaction.looked_at:
            return outcome
        # Its locks, and what it computes, go with ROLLBACK TO a savepoint before it.
        transaction.sequence += 2
        transaction.visible_sequence = transaction.sequence
        wanted = _Wanted(transaction.looked_at)
        if _has_newest(transaction, wanted):
            return outcome
        outcome.close()
        transaction.refresh()
        _compute_again(transaction, wanted.looked_at)


class _Wanted:
    """What a statement has to lock before its result counts."""

    def __init__(self, looked_at: Iterable[LockKey] = ()) -> None:
        self.keys: set[LockKey] = set()
        """Rows that it has written, and that do not merge; values of UNIQUE keys."""
        self.merged: set[LockKey] = set()
        """Rows that merge, whatever others that merge do."""
        self.met: set[LockKey] = set()
        """Rows and values that keep rows from being inserted."""
        self.looked_at = set(looked_at)
        """Own rows that merge, and that it has looked at."""
        self.references = References()

    def __bool__(self) -> bool:
        return bool(
            self.keys or self.merged or self.met or self.looked_at or self.references
        )

    def locks(self) -> set[LockKey]:
        """Whatever it may lock."""
        rows = self.keys | self.merged | self.looked_at
        return {
            *rows,
            *map(own_key, rows),
            *map(merging_key, self.merged),
            *map(seen_key, rows),
            *starmap(reference_key, self.references.shared),
            *starmap(reference_key, self.references.exclusive),
        }


def _wanted(transaction: Transaction, after: int, *, is_refused: bool) -> _Wanted:
    """What the statement behind a number wants, in order; one that is refused has met all."""
    wanted = _Wanted()
    merges = transaction.merges
    for number, writes in transaction.writes.items():
        table = writes.table
        if table.is_temporary:
            continue
        if writes.is_staged:
            wanted.keys.update(_staged(transaction, writes, after))
            continue
        for key in writes.written_after(after):
            write = writes.rows[key]
            place = number, key
            if write.merge is not None and merges:
                if transaction.is_single:
                    continue
                if not write.merge.has_condition and place not in transaction.looked_at:
                    wanted.merged.add(place)
                    continue
            wanted.keys.add(place)
            for positions in table.unique:
                # A value that is given up is locked, too: others wait to take it.
                for row in (write.row, _before(transaction, table, key)):
                    values = None if row is None else key_of(positions, row)
                    if values is not None and not {None, MISSING}.intersection(values):
                        wanted.keys.add(unique_key(number, positions, values))
        wanted.keys.update(_computed(transaction, writes, after))
    if is_refused:
        wanted.met = wanted.keys | transaction.met
        wanted.keys = wanted.met
    else:
        wanted.met = {k for k in transaction.met if _may_be_locked(transaction, k)}
    if not transaction.is_single:
        if not transaction.has_one_snapshot:
            wanted.looked_at = transaction.looked_at - wanted.keys
        wanted.references = transaction.references.after(after)
    return wanted


def _computed(
    transaction: Transaction, writes: TableWrites, after: int
) -> Iterator[LockKey]:
    """The values in unique indexes on expressions that rows take, and that they give up."""
    table, session = writes.table, transaction.session
    computed = ComputedKeys(transaction.catalog, transaction.engine.forms)
    for key in table.computed_keys:
        moved = TableWrites(table)
        for place in writes.written_after(after):
            write, before = writes.rows[place], _before(transaction, table, place)
            new = None if write.deleted else key_of(key.columns, write.row)
            if before is None or new != key_of(key.columns, before):
                for row in filter(None, (write.row, before)):
                    if MISSING not in key_of(key.columns, row):
                        moved.put((len(moved.rows),), transaction.version_of(row))
        for _, value, _ in computed.values(moved, key, session):
            yield unique_key(table.id, (), (key.texts, value))


def _before(transaction: Transaction, table: Table, key: Key) -> Row | None:
    """The row before the statement, if memory has it."""
    versions = transaction.catalog.versions(table)
    version = versions.newest_visible(key, transaction.sts)
    return versions.storage_row(key)[1] if version is None else version[1]


def _may_be_locked(transaction: Transaction, key: LockKey) -> bool:
    """Whether another transaction may have locked a row, that is not written here."""
    if transaction.timeline.has_company and not transaction.is_single:
        return True
    return transaction.locks.is_taken(transaction.txid, key)


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


def _has_newest(transaction: Transaction, wanted: _Wanted) -> bool:
    """Lock rows; whether none was committed since the snapshot."""
    locks, txid, sequence = transaction.locks, transaction.txid, transaction.sequence
    patience = transaction.lock_timeout
    rows = wanted.keys | wanted.looked_at | wanted.met
    everywhere = _must_lock_everywhere(transaction, rows | wanted.merged)
    is_known = rows <= set(locks.of(txid)) and not wanted.references
    keys = in_order(locks.to_lock(txid, rows, everywhere=everywhere))
    locks.has_waited(txid)
    locks.lock_written(txid, keys, sequence, patience, everywhere=everywhere)
    if everywhere:
        locks.lock_beyond(txid, rows, patience)
    locks.settle(txid, keys, patience)
    locks.lock_merged(
        txid, in_order(wanted.merged), sequence, patience, everywhere=everywhere
    )
    for held, shared in (
        (wanted.references.shared, True),
        (wanted.references.exclusive, False),
    ):
        claims = in_order(starmap(reference_key, held))
        locks.lock(
            txid, claims, sequence, patience, shared=shared, everywhere=everywhere
        )
    if everywhere and not is_known:
        transaction.timeline.await_begun(locks.begun(txid))
    if locks.has_waited(txid) or transaction.timeline.has_ahead(rows | wanted.merged):
        return False
    tables = transaction.catalog.by_id()
    for number in {number for number, _ in rows | wanted.merged} & tables.keys():
        versions = transaction.catalog.versions(tables[number])
        of_table = [k for n, k in wanted.keys - wanted.met if n == number]
        if (
            versions.last_cts > transaction.sts
            and (
                _is_overtaken(transaction, tables[number], of_table)
                or any(
                    n == number and _is_gone(versions, key, transaction.sts)
                    for n, key in wanted.merged
                )
            )
        ) or _is_overtaken(
            transaction,
            tables[number],
            [key for n, key in wanted.looked_at if n == number],
            is_earlier=True,
        ):
            return False
    if not wanted.references:
        return True
    referential = ReferentialCertifier(
        transaction.catalog,
        transaction.engine.forms,
        in_memory=transaction.certifier.name == "memory",
    )
    return referential.conflict(wanted.references, transaction.session) is None


def _is_gone(versions: TableVersions, key: Key, sts: int) -> bool:
    """Whether a row was deleted since a snapshot, as far as memory says."""
    newest = versions.newest(key)
    return newest is not None and newest[0] > sts and newest[1] is None


def _has_moved(transaction: Transaction, keys: Iterable[LockKey]) -> bool:
    """Whether anything was committed since the snapshot to the tables of keys."""
    tables = transaction.catalog.by_id()
    return any(
        transaction.catalog.versions(tables[number]).last_cts > transaction.sts
        for number in {number if number >= 0 else ~number for number, _ in keys}
        if number in tables
    )


def _must_lock_everywhere(transaction: Transaction, keys: Collection[LockKey]) -> bool:
    """Whether other processes must see the locks."""
    return (
        transaction.timeline.has_company
        and not transaction.is_single
        and len(keys) + len(transaction.locks.of(transaction.txid)) <= MOST_EVERYWHERE
    )


def _is_overtaken(
    transaction: Transaction,
    table: Table,
    keys: Collection[Key],
    *,
    is_earlier: bool = False,
) -> bool:
    """Whether a row, or a UNIQUE value, was committed since the snapshot.

    Or, of one that was written earlier, since the snapshot that it was made of.
    """
    if not keys:
        return False
    writes = transaction.writes[table.id]
    written = writes.copy() if writes.is_staged else TableWrites(table)
    written.staged_sts = transaction.sts
    for key in () if writes.is_staged else keys:
        write = writes.rows[key]
        written.put(key, write if is_earlier else write._replace(sts=transaction.sts))
    conflict = transaction.certifier.conflict(written, transaction.session)
    return conflict is not None


def _give_back(transaction: Transaction, base: int, wanted: _Wanted) -> None:
    """Give back locks that the statement has taken and does not need."""
    locks, txid = transaction.locks, transaction.txid
    needed = wanted.locks()
    taken = locks.taken_after(txid, base)
    locks.release_keys(txid, [key for key in taken if key not in needed])


def _compute_again(transaction: Transaction, keys: Iterable[LockKey]) -> None:
    """Make own rows that merge of the newest ones: new versions, by a statement's number."""
    for number, key in keys:
        writes = transaction.writes[number]
        own = writes.rows[key]
        assert own.merge is not None
        del writes.rows[key]
        try:
            base = transaction.row(writes.table, key)
            row = None if base is None else own.merge.compute(base)
        except NotLocal:
            row = None
        finally:
            writes.rows[key] = own
        if row is not None:
            new = transaction.version_of(row)._replace(merge=own.merge)
            writes.put(key, new)
            # It is certified since this snapshot; an undo brings the earlier one back.
            writes.rows[key] = new
    transaction.visible_sequence = transaction.sequence
