"""Tickets: a committing transaction's place in the queue, and its outcome."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from tique import errors
from tique._translation import concerning, translated
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from tique.store.rows import Key
    from tique.writes.references import References
    from tique.writes.seen import Seen
    from tique.writes.table import TableWrites, Write
    from tique_backends.session import Session
    from tique_rewriter.schema import Table


class Committing(Protocol):
    """A transaction as a committer sees it."""

    @property
    def txid(self) -> int:
        """Its id."""

    @property
    def session(self) -> Session:
        """The engine session that has its staging tables."""

    @property
    def writes(self) -> Mapping[int, TableWrites]:
        """Its write set, by table id."""

    @property
    def references(self) -> References:
        """The keys that its FOREIGN KEY constraints rest on."""

    @property
    def sts(self) -> int:
        """Its snapshot."""

    @property
    def has_one_snapshot(self) -> bool:
        """Whether all of its statements had that snapshot."""

    @property
    def is_validated(self) -> bool:
        """Whether what it has seen must be so still."""

    @property
    def merges(self) -> bool:
        """Whether its updates that lost may be computed again."""

    @property
    def planned_at(self) -> int | None:
        """The version of the definitions by which it was planned, if it began blindly."""

    @property
    def server_locks(self) -> Collection[int]:
        """The numbers of the row locks that it has alone in the server."""

    @property
    def locker(self) -> int:
        """The owner of its row locks in the server; 0: it has none."""

    @property
    def seen(self) -> Seen:
        """What the application has seen of the snapshot."""


class Conflict(NamedTuple):
    """A key that another transaction committed first, and that commit's timestamp.

    ``columns`` are those that were changed since the snapshot, where that is known.
    """

    table: Table
    key: Key
    winner: int
    columns: tuple[str, ...] = ()


class OvertakenError(Exception):
    """Other processes' commits came between again and again: it needs a barrier.

    Nothing was committed.
    """


class Ticket:
    """One transaction's place in the queue and, later, its outcome."""

    __slots__ = (
        "computed_hashes",
        "cts",
        "depends_on_batch",
        "done",
        "error",
        "gate",
        "is_bulk",
        "is_validated",
        "merged",
        "needs_barrier",
        "place",
        "references",
        "refusals",
        "stands_alone",
        "transaction",
        "writes",
    )

    def __init__(self, transaction: Committing, *, needs_barrier: bool = False) -> None:
        self.transaction = transaction
        self.writes = [writes for writes in transaction.writes.values() if writes]
        self.references = transaction.references
        self.is_bulk = any(writes.is_staged for writes in self.writes)
        """Whether some of its writes are in staging tables."""
        self.needs_barrier = self.is_bulk or needs_barrier
        """Whether other processes must not commit between its timestamp and its end."""
        # Whether the ticket cannot share a batch.
        self.stands_alone = self.needs_barrier or any(
            writes.copies and any(write.deleted for write in writes.copies)
            for writes in self.writes
        )
        self.is_validated = transaction.is_validated and bool(transaction.seen)
        """Whether what it has seen must be so still."""
        self.cts = 0
        self.place: int | None = None
        """Its place in the serial order, if it is not its cts (:mod:`tique.commit.protocols`)."""
        self.merged: list[tuple[TableWrites, Key, Write]] = []
        """Writes in place of which others, computed on newer versions, are committed."""
        self.depends_on_batch = False
        """Whether these hold only if the tickets before it in its batch are committed."""
        self.computed_hashes: list[bytes] = []
        """Those of the values of its rows in unique indexes on expressions."""
        self.refusals = 0
        """How often another process's commit was in the way."""
        self.error: BaseException | None = None
        self.done = False
        self.gate = threading.Lock()
        self.gate.acquire()

    def settle(self, error: BaseException | None = None) -> None:
        """Give the transaction its outcome and wake the thread that waits for it."""
        self.error = error
        self.done = True
        self.wake()

    def wake(self) -> None:
        """Let the waiting thread look at its ticket, or lead."""
        # Already open: the waiting thread is on its way and looks at ``done`` itself.
        with suppress(RuntimeError):
            self.gate.release()


def serialization_error(conflict: Conflict) -> errors.SerializationError:
    """The error when another transaction committed first (P3)."""
    table, columns = conflict.table.qualified_name, conflict.columns
    shown = f" ({', '.join(columns)})" if columns else ""
    return errors.SerializationError(
        f"another transaction committed first: a row of {table} was changed{shown} since "
        f"this transaction's snapshot, at cts {conflict.winner}; run the "
        "transaction again",
        table=table,
        key=conflict.key,
        columns=columns,
        winner=conflict.winner,
        diag=concerning(conflict.table),
    )


def failure(error: BaseException) -> errors.Error:
    """The error when nothing was committed, because of ``error``."""
    if isinstance(error, EngineError):
        return translated(error)
    if isinstance(error, errors.Error):
        return error
    return errors.OperationalError(f"the commit failed: {error!r}")


def outcome_unknown(ticket: Ticket, cause: BaseException) -> errors.OutcomeUnknown:
    """The error when it cannot be known whether the ticket is committed (P4)."""
    txid = ticket.transaction.txid
    return errors.OutcomeUnknown(
        "the engine failed inside COMMIT and cannot be asked for the outcome of "
        f"transaction {txid}; open the database again and call outcome({txid}) "
        f"({cause})",
        txid=txid,
    )
