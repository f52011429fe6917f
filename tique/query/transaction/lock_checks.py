"""Whether a transaction may lock rows, and commit what it decided under its locks."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from tique import errors
from tique.writes.table import TableWrites, Write
from tique_backends.names import key_list
from tique_backends.records import MISSING
from tique_backends.servers.row_locks import MOST_LOCKS
from tique_rewriter.local.kernel import NotLocal, coercer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from tique.commit.lock_keys import LockKey
    from tique.query.transaction.transaction import Transaction
    from tique.store.rows import Key
    from tique.writes.tickets import Conflict
    from tique_rewriter.schema import Table


_MOST_STAGED = MOST_LOCKS // 2


def staged_keys(
    transaction: Transaction,
    writes: TableWrites,
    positions: Sequence[int],
    after: int = 0,
    *,
    is_primary: bool = True,
) -> frozenset[Key] | None:
    """The values of a key in rows that statements after a number have staged.

    None: they are too many to be locked one by one, or of a type of which no row is
    locked. Of a UNIQUE key it is those of new rows.
    """
    table = writes.table
    room = MOST_LOCKS - len(transaction.locks.of(transaction.txid))
    if table.is_keyless or table.is_temporary or room < _MOST_STAGED:
        return None
    coercers = [coercer(table.columns[i].type) for i in positions]
    found = transaction.session.rows_to_keep(
        f"SELECT DISTINCT {key_list(table, positions)} "
        f"FROM {transaction.engine.forms.stage(table)} WHERE _sequence > {after} "
        f"{'' if is_primary else 'AND NOT _deleted '}LIMIT {_MOST_STAGED + 1}"
    )
    if len(found) > _MOST_STAGED:
        return None
    try:
        return frozenset(
            tuple([coerce(v) for coerce, v in zip(coercers, key, strict=True)])
            for key in found
        )
    except NotLocal:
        return None


def note_staged_keys(transaction: Transaction) -> None:
    """Have a commit wait for the locks of rows that it has staged, and of no others."""
    for writes in transaction.writes.values():
        if writes.is_staged:
            key = writes.table.primary_key
            writes.staged_keys = staged_keys(transaction, writes, key)


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
        conflict = transaction.certifier.conflict(writes, transaction.session.aside)
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
