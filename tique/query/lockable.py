"""Whether a transaction may lock rows, and commit what it decided under its locks.

Where the server keeps row locks (:mod:`tique.commit.server_locks`) other processes see
them; on other servers rows are locked only while no other process has the database open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique import errors

if TYPE_CHECKING:
    from tique.query.transaction import Transaction


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
        Another process opened the database meanwhile, or the locks are lost.
    """
    if not _excludes_others(transaction):
        raise errors.SerializationError(
            "another process opened the database while this transaction held row "
            "locks, which it does not see"
        )
    server = transaction.locks.server
    if server is not None:
        server.expect_there(transaction.txid)


def _excludes_others(transaction: Transaction) -> bool:
    timeline = transaction.timeline
    return (
        transaction.locks.server is not None
        or not timeline.is_shared
        or timeline.position().clients <= 1
    )
