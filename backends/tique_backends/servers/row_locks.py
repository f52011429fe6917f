"""Row locks that a server keeps, so that several processes see them.

A lock has a number of 64 bits, made of a table's id and a key by a hash. If two keys have
one number, their rows wait for each other, which costs time and breaks nothing.

Argument
--------
*An owner in the server.* A transaction that locks rows has a locker in the sequencer
inside the server (:mod:`tique_backends.servers.leased_locks`). So the server knows each owner: it finds
deadlocks, also between transactions of several processes, and ends a wait after a time. A locker
lives no longer than the lease of its process, which cannot commit after that (P6): in whatever
state that is, whatever it locked before, and whether its sessions are there.

*All waits stand in one graph.* A wait that others can be waiting behind is in the server, where
all processes' are: one for another transaction of the process too (:meth:`RowLocks.wait_for`).

*A lock that is granted* means that no other process commits the row from now on until it is
released, and that each commit of it that began before is followed, when the locking one
has waited for what :attr:`RowLocks.begun` or :meth:`SharedSequencer.position` says. A commit takes its timestamp, and
then looks for locks on its keys, in one statement: if there is one, the statement fails, and
the timestamp with it. (In MonetDB both are done under one mutex.) A locking transaction has its lock, and then asks which timestamps
are taken. Both are in one order at the server, so one at least sees the other: the commit
steps back and waits for the lock (:class:`RowsLockedError`), or the locking one waits
until that timestamp is finished, which is published before it is finished (P2). Its
snapshot, or the look for a conflict, comes after that.

*A commit in bulk* has no list of keys that a commit could look for. If they are few it asks for
them and has the lock of each row before its barrier: it waits for locks of rows that it writes, and
of no others. If they are many it takes the number of each table, alone, before its
barrier, and keeps it until it is over. A transaction that locks rows of a table takes that number too, shared.

*Who may lock (P11).* Clients of the sequencer alone: processes whose roles may use the schema. A
client has room for so many locks and no more, learns no key from a number, and gets no row by it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

MOST_LOCKS = 1000
"""Rows that one transaction locks at a time: the server has room for some thousands."""


class RowsLockedError(EngineError):
    """Rows of a commit are locked by transactions of other processes.

    Attributes
    ----------
    numbers : collection of int
        The numbers of their locks.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        super().__init__(
            ErrorKind.OPERATIONAL, "a row is locked by another transaction", "55P03"
        )
        self.numbers = numbers


class RowLocks(ABC):
    """The locks of one transaction, for the thread that has it.

    The methods raise EngineError: with SQLSTATE 40P01 for the victim of a deadlock, 55P03
    when ``patience`` is over, 57014 after :meth:`interrupt`.
    """

    locker = 0
    """The owner by which :meth:`SteppedSequencer.certify` knows them."""

    begun: int | None = None
    """The last timestamp that was taken when the last lock was there, if the server has said it."""

    def __init__(self) -> None:
        self._count = 0
        """So many are held."""

    def _expect_room(self, more: int) -> None:
        if self._count + more > MOST_LOCKS:
            raise EngineError(
                ErrorKind.UNSUPPORTED,
                f"a transaction locks at most {MOST_LOCKS} rows on a server, which keeps "
                "locks for all processes in a table of a fixed size: lock fewer (LIMIT)",
                "54000",
            )

    @abstractmethod
    def try_lock(self, numbers: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
        """Lock numbers that are free, each shared or not; return which are locked."""

    @abstractmethod
    def lock(self, number: int, *, shared: bool, patience: float | None) -> None:
        """Lock a number, after those that came before; None: without a bound in time."""

    @abstractmethod
    def unlock(self, numbers: Sequence[tuple[int, bool]]) -> None:
        """Give numbers back, each with whether it was shared."""

    @abstractmethod
    def are_there(self) -> bool:
        """Ask the server whether the locker, and so all locks, are still there."""

    @abstractmethod
    def wait_for(self, other: RowLocks) -> None:
        """Show to the server that this one waits for another one of this process."""

    @abstractmethod
    def end_wait(self) -> None:
        """Wait for nothing any more: give up the place in a queue."""

    @abstractmethod
    def interrupt(self) -> None:
        """Make a wait for a lock fail; from any thread."""

    @abstractmethod
    def close(self) -> None:
        """Give all locks back; idempotent."""
