"""Whether a transaction may lock rows, and commit what it decided under its locks."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from tique import errors
from tique.writes.table import TableWrites, Write
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
    """Refuse row locks in a read-only transaction.

    Raises
    ------
    OperationalError
        It is one (SQLSTATE 25006).
    """
    if transaction.read_only:
        raise errors.OperationalError(
            "cannot lock rows in a read-only transaction", sqlstate="25006"
        )


def expect_kept_locked(transaction: Transaction) -> None:
    """Refuse to commit what was decided under locks that are lost.

    Raises
    ------
    SerializationError
        They are.
    """
    server = transaction.locks.server
    if server is not None:
        server.expect_there(transaction.txid)


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
