"""Whether a transaction may lock rows, and commit what it decided under its locks.

Where the server keeps row locks (:mod:`tique.commit.server_locks`) other processes see
them; on other servers rows are locked only while no other process has the database open.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from tique import errors
from tique.writes.table import TableWrites, Write
from tique.writes.tickets import serialization_error
from tique_backends.records import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from tique.commit.locks import LockKey
    from tique.query.transaction import Transaction
    from tique.store.rows import Key
    from tique.writes.tickets import Conflict
    from tique_rewriter.schema import Table


def expect_lockable(transaction: Transaction) -> None:
    """Refuse row locks where connections of other processes do not see them.

    Raises
    ------
    OperationalError
        In a read-only transaction (SQLSTATE 25006).
    NotSupportedError
        Several processes have the database open.
    """
    if transaction.read_only:
        raise errors.OperationalError(
            "cannot lock rows in a read-only transaction", sqlstate="25006"
        )
    if not _excludes_others(transaction):
        raise errors.NotSupportedError(
            "FOR UPDATE is not supported while several processes have the database "
            "open: this server keeps no row locks that they would see; leave it out, a "
            "conflicting change is found when you commit"
        )


def expect_kept_locked(transaction: Transaction) -> None:
    """Refuse to commit what was decided under locks that others did not see.

    Raises
    ------
    SerializationError
        Another process opened the database meanwhile and is there or has changed a
        locked row, or the locks are lost.
    """
    if not _excludes_others(transaction):
        raise errors.SerializationError(
            "another process opened the database while this transaction held row "
            "locks, which it does not see"
        )
    server = transaction.locks.server
    if server is not None:
        server.expect_there(transaction.txid)
    elif transaction.timeline.is_shared:
        # A process that came and is gone again has not seen them. One that comes from now on
        # is looked for at the commit (:class:`SteppedCommitter`).
        transaction.timeline.await_begun()
        conflict = newer_commit(transaction, transaction.unguarded)
        if conflict is not None:
            raise serialization_error(conflict)


def newer_commit(
    transaction: Transaction, keys: Mapping[LockKey, int]
) -> Conflict | None:
    """A row that was committed since the snapshot in which it was seen, if there is one."""
    tables = transaction.catalog.by_id()
    for number, group in groupby(sorted(keys, key=itemgetter(0)), key=itemgetter(0)):
        if number not in tables:
            continue
        writes = _as_written(
            tables[number], [(key, keys[number, key]) for _, key in group]
        )
        conflict = transaction.certifier.conflict(writes, transaction.session)
        if conflict is not None:
            return conflict
    return None


def _as_written(table: Table, keys: Iterable[tuple[Key, int]]) -> TableWrites:
    """Tombstones under these keys: nothing but the keys of a write set."""
    writes = TableWrites(table)
    for key, sts in keys:
        row: list[Any] = [MISSING] * len(table.columns)
        for position, value in zip(table.primary_key, key, strict=True):
            row[position] = value
        writes.put(key, Write(tuple(row), deleted=True, sequence=0, sts=sts))
    return writes


def _excludes_others(transaction: Transaction) -> bool:
    timeline = transaction.timeline
    return (
        transaction.locks.server is not None
        or not timeline.is_shared
        or timeline.position().clients <= 1
    )
