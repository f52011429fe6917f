"""Row locks, for SELECT … FOR UPDATE, among the connections of one process.

First committer wins (P3) finds a conflict when it is over. A lock keeps it from arising:
a row that a transaction has locked is locked, and written, by no other one until that
transaction ends. Locks decide who waits, never what may commit: that is the certifier's
alone, so that a lock that is lost or late costs an attempt and no update.

*Invariant.* A key has at most one owner, a txid. While a key is locked, no transaction
that writes it is between :meth:`Locks.enter` and the end of its commit, but the owner
and those that the owner has yet to wait for by :meth:`Locks.settle`, before it looks
whether the key was committed since its snapshot. So no commit of the key comes between
that look and the owner's end.

Argument
--------
*A commit without locks.* A transaction that commits notes itself in ``_committing``, and
then looks whether any lock is held. A locking transaction takes its locks, and then
looks into ``_committing``. Each is one operation on a dict, and these are in one order,
so at least one of the two sees the other: the committer steps back and waits, or the
locking one waits until the commit is over. A committer that waits for a lock is not in
``_committing``, so the two never wait for each other. Where no lock is held this costs
a commit an entry in a dict and a look at another.

*Mutex.* ``_mutex`` guards owners and waiters. It is held for steps in memory only: never
while waiting, nor while the engine is called.

*Order.* A lock that is released goes to the first of its waiters, under the mutex: none
comes between.

*Deadlocks.* A transaction waits for one key at a time, so "waits for the owner of" leads
from each to one other at most. A wait that would close a circle fails at its begin
(40P01). Handing a lock on closes none: its new owner does not wait. To wait for
a place behind others is to wait for the same owner. Turns (:mod:`tique.commit.turns`)
would be edges of their own: a transaction that holds locks gives way to none.

*A thread that dies, or is interrupted, at any line.* An owner's list of keys gets the key
before the lock gets its owner, and loses it after that: a lock has no owner that does not
know of it, and a key in the list that is not locked is passed over. A waiter leaves the
queue in ``finally``; if it was given the lock already, the lock is on its list and goes
with the statement or the transaction. Transactions release in ``Transaction.end``: at
commit, rollback and close. That of a connection that was garbage-collected is only put
into ``abandoned``, since a finalizer may run inside the mutex; each look at the locks
releases these first, and waiters look every ``_SLICE``. A connection that lives without
a thread keeps its locks, as it keeps its transaction; the others' waits have an end.

*Fork.* In the child no connection of the parent's can be used, and so no lock asked for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from tique import errors

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from tique.store.rows import Key
    from tique.writes.tickets import Committing

LockKey: TypeAlias = "tuple[int, Key]"
"""A table's id, and a primary key."""

LOCK_TIMEOUT = 30.0
"""Seconds that a wait for a lock may take, unless the application says otherwise."""

_SLICE = 0.05


class _Lock:
    """A locked key: its owner, and those that wait for it, each with a sequence number."""

    __slots__ = ("owner", "waiters")

    def __init__(self, owner: int) -> None:
        self.owner = owner
        self.waiters: deque[tuple[int, int]] = deque()


class Locks:
    """The row locks of one database."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._held: dict[LockKey, _Lock] = {}
        self._of: dict[int, dict[LockKey, int]] = {}
        """Each owner's keys, with the number of the statement that locked them."""
        self._waits: dict[int, LockKey] = {}
        self._cancelled: set[int] = set()
        """Waiters that were told to give up."""
        self._committing: dict[int, Committing] = {}
        self._abandoned: deque[int] = deque()

    @property
    def are_held(self) -> bool:
        """Whether there is any lock."""
        return bool(self._held)

    @property
    def count(self) -> int:
        """How many keys are locked."""
        return len(self._held)

    def of(self, owner: int) -> Collection[LockKey]:
        """The keys that a transaction has locked."""
        return self._of.get(owner, {})

    # Locking

    def take(self, owner: int, key: LockKey, sequence: int) -> bool:
        """Lock a key if no other transaction has; whether the owner has it now."""
        with self._mutex:
            self._release_abandoned()
            return self._take(owner, key, sequence)

    def wait(
        self, owner: int, key: LockKey, sequence: int, patience: float | None
    ) -> None:
        """Lock a key, after those that came before.

        Raises
        ------
        SerializationError
            The wait would never end: a deadlock (SQLSTATE 40P01).
        OperationalError
            It has taken ``patience`` seconds (SQLSTATE 55P03), or was cancelled (57014).
        """
        latest = None if patience is None else time.monotonic() + patience
        with self._changed:
            self._release_abandoned()
            if self._take(owner, key, sequence):
                return
            self._check_circle(owner, key)
            try:
                self._held[key].waiters.append((owner, sequence))
                self._waits[owner] = key
                while self._held[key].owner != owner:
                    if owner in self._cancelled:
                        raise errors.OperationalError(
                            "the wait for a row lock was cancelled", sqlstate="57014"
                        )
                    self._pause(latest)
                    self._release_abandoned()
            finally:
                self._waits.pop(owner, None)
                self._cancelled.discard(owner)
                lock = self._held.get(key)
                if lock is not None and (owner, sequence) in lock.waiters:
                    lock.waiters.remove((owner, sequence))

    def cancel(self, owner: int) -> None:
        """Let a transaction's wait for a lock fail, if it waits; from any thread."""
        with self._changed:
            if owner in self._waits:
                self._cancelled.add(owner)
                self._changed.notify_all()

    def settle(
        self, owner: int, keys: Collection[LockKey], patience: float | None
    ) -> bool:
        """Wait until no commit of these keys is under way that began without the locks.

        With no patience at all it only looks. Whether there is none.

        Raises
        ------
        OperationalError
            It has taken ``patience`` seconds (SQLSTATE 55P03).
        """
        latest = None if patience is None else time.monotonic() + patience
        while self._is_committing(owner, keys):
            if patience == 0:
                return False
            with self._changed:
                self._pause(latest)
        return True

    def _is_committing(self, owner: int, keys: Iterable[LockKey]) -> bool:
        # A copy made in one step: other threads add to it.
        others = [
            each for txid, each in list(self._committing.items()) if txid != owner
        ]
        return any(_writes(other, key) for other in others for key in keys)

    def _pause(self, latest: float | None) -> None:
        """Wait for a change, under the mutex, for a moment at the most."""
        pause = _SLICE
        if latest is not None:
            pause = min(pause, latest - time.monotonic())
            if pause <= 0:
                raise lock_not_available("lock_timeout is over: ")
        self._changed.wait(pause)

    def _take(self, owner: int, key: LockKey, sequence: int) -> bool:
        lock = self._held.get(key)
        if lock is not None:
            return lock.owner == owner
        self._of.setdefault(owner, {})[key] = sequence
        self._held[key] = _Lock(owner)
        return True

    def _check_circle(self, owner: int, key: LockKey) -> None:
        other = self._held[key].owner
        while (awaited := self._waits.get(other)) is not None:
            other = self._held[awaited].owner
            if other == owner:
                raise errors.SerializationError(
                    "deadlock: this transaction and others wait for each other's row "
                    "locks; roll back and run it again",
                    sqlstate="40P01",
                )

    # Committing

    def enter(self, transaction: Committing, patience: float | None) -> None:
        """Begin a commit: wait for the owners of the keys that it writes.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`wait`.
        """
        owner = transaction.txid
        while True:
            self._committing[owner] = transaction
            if not self._held:
                return
            with self._mutex:
                self._release_abandoned()
                locked = [
                    key
                    for key, lock in self._held.items()
                    if lock.owner != owner and _writes(transaction, key)
                ]
            if not locked:
                return
            self.leave(owner)
            for key in sorted(locked):
                self.wait(owner, key, 0, patience)

    def leave(self, owner: int) -> None:
        """End a commit; idempotent."""
        if self._committing.pop(owner, None) is not None and self._held:
            with self._changed:
                self._changed.notify_all()

    # Releasing

    def release(self, owner: int, *, after: int | None = None) -> None:
        """Release a transaction's locks, or those of statements after a number."""
        keys = self._of.get(owner)
        if keys is None:
            return
        with self._changed:
            if after is None:
                self._release(owner, list(keys))
            else:
                self._release(
                    owner, [key for key, taken in keys.items() if taken > after]
                )

    def release_keys(self, owner: int, keys: Iterable[LockKey]) -> None:
        """Release some of a transaction's locks."""
        with self._changed:
            self._release(owner, keys)

    def abandon(self, owner: int) -> None:
        """Have a transaction's locks released; take no lock: called by a finalizer."""
        self._abandoned.append(owner)

    def _release_abandoned(self) -> None:
        while self._abandoned:
            owner = self._abandoned.popleft()
            self._release(owner, list(self._of.get(owner, ())))

    def _release(self, owner: int, keys: Iterable[LockKey]) -> None:
        own = self._of.get(owner, {})
        for key in keys:
            lock = self._held.get(key)
            if lock is not None and lock.owner == owner:
                self._hand_on(key, lock)
            own.pop(key, None)
        if not own:
            self._of.pop(owner, None)
        self._changed.notify_all()

    def _hand_on(self, key: LockKey, lock: _Lock) -> None:
        if not lock.waiters:
            del self._held[key]
            return
        owner, sequence = lock.waiters[0]
        self._of.setdefault(owner, {})[key] = sequence
        self._waits.pop(owner, None)
        lock.owner = owner
        lock.waiters.popleft()


def lock_not_available(why: str = "") -> errors.OperationalError:
    """The error when a row is locked by another transaction (SQLSTATE 55P03)."""
    return errors.OperationalError(
        f"{why}a row is locked by another transaction", sqlstate="55P03"
    )


def _writes(transaction: Committing, key: LockKey) -> bool:
    """Whether a transaction writes a key; of staged rows the keys are not known here."""
    table, values = key
    writes = transaction.writes.get(table)
    return writes is not None and (writes.is_staged or values in writes.rows)
