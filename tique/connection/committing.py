"""How a connection's transaction that has written is committed, or loses.

*Its locks decide who waits.* A transaction that has locked rows is ahead of those that have
not: it gives way to no turn, and the others wait for it
(:mod:`tique.commit.commit_with_lock_waits`). Committed or not, the caller ends the
transaction, which gives locks and turns back.

*Replicas* are waited for after all that, at their slots (:mod:`tique_backends.catalog.slots`): the commit is done.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from tique import errors
from tique._log import fields
from tique._translation import translating
from tique.commit.commit_with_lock_waits import commit_behind_locks
from tique.query.transaction.lock_checks import expect_kept_locked, note_staged_keys
from tique.query.write.foreign_keys import check_deferred
from tique_backends.concurrency.undisturbed import undisturbed

if TYPE_CHECKING:
    from tique.commit.turns import Contender
    from tique.database.database import Database
    from tique.query.transaction.ddl_transaction import DDLTransaction

logger = logging.getLogger("tique.commit")

_PAUSE = 0.005
"""Seconds between two looks at what the replicas have."""


def commit_writes(
    database: Database,
    contender: Contender,
    transaction: DDLTransaction,
    lock_timeout: float | None,
) -> int:
    """Commit what a transaction wrote and defined, behind the locks of others: its cts."""
    locks, migration = database.locks, transaction.migration
    if transaction.deferred:
        with translating():
            check_deferred(transaction)
    if locks.are_held and locks.of(transaction.txid):
        if transaction.has_locked:
            with translating():
                expect_kept_locked(transaction)
    elif not transaction.server_locks:
        contender.give_way(transaction)
    if migration is None:
        with translating():
            note_staged_keys(transaction)
        return commit_behind_locks(database.committer, locks, transaction, lock_timeout)
    locks.enter(transaction, lock_timeout, whole=True)
    with translating():
        return undisturbed(migration.commit)


def note_loss(
    database: Database,
    contender: Contender,
    transaction: DDLTransaction,
    error: errors.SerializationError,
    connection: int,
) -> None:
    """Note that the commit met a conflict: where, and whose turn is next."""
    database.commits.note_conflict()
    # No key: its values are the application's (P11).
    logger.debug(
        "a commit met a conflict on %s",
        error.table,
        extra=fields(
            "conflict",
            table=error.table,
            txid=transaction.txid,
            winner=error.winner,
            connection=connection,
        ),
    )
    if transaction.takes_turns:
        contender.lose(transaction, error)
    if error.table is not None and error.key:
        database.hot_keys.note_conflict(error.table, error.key)


def replicated(database: Database, state: str) -> int:
    """Up to which cts all replicas have the commits durably; an error if there is none."""
    shared = database.engine.shared
    reached = None if shared is None else shared.replicated()[0]
    if reached is None:
        raise errors.OperationalError(
            f"there is no replica to wait for, {state}: start one by tique replicate",
            sqlstate="55000",
        )
    return reached


def await_replica(database: Database, cts: int, timeout: float) -> None:
    """Wait until all replicas have a commit durably."""
    state, deadline = f"it is committed, as {cts}", time.monotonic() + timeout
    while (reached := replicated(database, state)) < cts:
        if time.monotonic() > deadline:
            raise errors.OperationalError(
                f"not all replicas have the transaction after {timeout:g} s, they have "
                f"{reached}; {state}: look at tique replicate --status",
                sqlstate="57014",
            )
        time.sleep(_PAUSE)
