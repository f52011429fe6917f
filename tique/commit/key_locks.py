"""Locks of keys in this process' memory: owners, queues, deadlocks.

The ground of a database's row locks (:mod:`tique.commit.locks`, which says what a lock means).

*Mutex.* ``_mutex`` guards owners and waiters. It is held for steps in memory only: never
while waiting, nor while the engine is called.

*Order.* A lock that is released goes to the first of its waiters, and the sharing ones
behind that if it shares, under the mutex: none comes between. One that shares a key and wants
it alone comes before all waiters, which wait for it.

*Deadlocks.* A transaction waits for the owners of one key at a time. A wait that would
close a circle fails at its begin (40P01). Handing a lock on closes none: its new owner
does not wait. To wait for a place behind others is to wait for the same owners. A circle
through other processes is found in the server alone, so all of its waits have to stand there:
one in memory is shown to it after ``_SHOWN_AFTER`` seconds, anew when the owner is another one, and
again and again, since the owner may come to wait in the server later. Each transaction on a circle waits, so
each comes to have a session; the last wait that is shown fails. Turns
(:mod:`tique.commit.turns`) would be edges of their own: a transaction that holds locks
gives way to none.

*A thread that dies, or is interrupted, at any line.* An owner's list of keys gets the key
before the lock gets its owner, and loses it after that: a lock has no owner that does not
know of it, and a key in the list that is not locked is passed over. A waiter leaves the
queue in ``finally``; if it was given the lock already, the lock is on its list and goes
with the statement or the transaction. Transactions release in ``Transaction.end``: at
commit, rollback and close. That of a connection that was garbage-collected is only put
into ``abandoned``, since a finalizer may run inside the mutex; each look at the locks
releases these first, waiters look every ``_SLICE``, and so does the heartbeat of a process
that shares the database. A connection that lives without a thread keeps its locks, as it
keeps its transaction; the others' waits have an end.

*Fork.* In the child no connection of the parent's can be used, and so no lock asked for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from tique.commit.server_locks import cancelled, deadlock, lock_not_available
from tique_backends.concurrency.queues import taken

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable

    from tique.commit.lock_keys import LockKey
    from tique.commit.server_locks import ServerLocks

_SLICE = 0.05

_SHOWN_AFTER = 0.1
"""Seconds until a wait for another transaction of this process is shown to the server."""

_SHOWN_EVERY = 1.0
"""Seconds until it is shown again, at the most."""


class _Waiter(NamedTuple):
    """A transaction that waits for a key, and the number of its statement."""

    owner: int
    sequence: int
    shared: bool


class _Lock:
    """A locked key: its owners, and those that wait for it."""

    __slots__ = ("owners", "shared", "waiters")

    def __init__(self) -> None:
        self.owners: set[int] = set()
        self.shared = False
        self.waiters: deque[_Waiter] = deque()

    def admits(self, owner: int, *, shared: bool) -> bool:
        """Whether a transaction may have it now, beside its owners."""
        if self.owners <= {owner}:
            return True
        return shared and (self.shared or owner in self.owners)

    def admit(self, owner: int, *, shared: bool) -> None:
        # What one owner has alone it keeps alone.
        self.shared = shared and (self.shared or not self.owners)
        self.owners.add(owner)


class _Shown:
    """What the server knows of a transaction's wait in memory: one owner of the key."""

    def __init__(self, server: ServerLocks, owner: int) -> None:
        self._server = server
        self._owner = owner
        self._others: list[int] = []
        self._due = time.monotonic() + _SHOWN_AFTER
        self._pause = _SHOWN_AFTER
        self._count = 0

    def show(self, others: list[int]) -> None:
        """Show it, if it is time to: the owners take turns."""
        now = time.monotonic()
        if self._count > 0 and others != self._others:
            self._pause, self._due = _SHOWN_AFTER, now
        if others and now >= self._due:
            self._others = others
            self._count += 1
            self._due = now + self._pause
            self._pause = min(2 * self._pause, _SHOWN_EVERY)
            self._server.show_wait(self._owner, others[self._count % len(others)])

    def end(self) -> None:
        if self._count > 0:
            self._server.end_wait(self._owner)


class KeyLocks:
    """The locked keys of one database, in memory.

    Parameters
    ----------
    server
        The locks in the server, which are shown the waits; None: there are no other processes.
    """

    def __init__(self, server: ServerLocks | None = None) -> None:
        self.server = server
        self._mutex = threading.Lock()
        self._changed = threading.Condition(self._mutex)
        self._held: dict[LockKey, _Lock] = {}
        self._of: dict[int, dict[LockKey, int]] = {}
        """Each owner's keys, with the number of the statement that locked them."""
        self._waits: dict[int, Hashable] = {}
        self._waited: set[int] = set()
        """Those that have waited, until they ask (:meth:`has_waited`)."""
        self._threads: dict[int, int] = {}
        """The thread that took each owner's last lock, for errors to name."""
        self._cancelled: set[int] = set()
        """Waiters that were told to give up."""
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

    def taken_after(self, owner: int, sequence: int) -> list[LockKey]:
        """The keys that a transaction's statements after a number have locked."""
        return [key for key, n in self._of.get(owner, {}).items() if n > sequence]

    def has_waited(self, owner: int) -> bool:
        """Whether a transaction has waited for a lock since it asked that last."""
        has_waited = owner in self._waited
        self._waited.discard(owner)
        return has_waited

    # Locking

    def _note_wait(self, owner: int, user: Hashable) -> None:
        """Note what a transaction waits for in the server; None: nothing any more."""
        with self._mutex:
            self._waits.pop(owner, None)
            if user is not None:
                self._check_circle(owner, user)
                self._waits[owner] = user
                self._waited.add(owner)

    def _lock(
        self,
        owner: int,
        key: LockKey,
        sequence: int,
        patience: float | None,
        *,
        shared: bool,
    ) -> None:
        latest = None if patience is None else time.monotonic() + patience
        waiter = _Waiter(owner, sequence, shared)
        with self._changed:
            lock = self._held.get(key)
            if lock is None or (
                lock.admits(owner, shared=shared)
                and (not lock.waiters or owner in lock.owners)
            ):
                self._threads[owner] = threading.get_ident()
                self._give(waiter, key)
                return
            if patience == 0:
                raise lock_not_available()
            self._check_circle(owner, key)
            self._threads[owner] = threading.get_ident()
            self._waits[owner] = key
            self._waited.add(owner)
            if owner in lock.owners:
                lock.waiters.appendleft(waiter)
            else:
                lock.waiters.append(waiter)
        shown = None if self.server is None else _Shown(self.server, owner)
        try:
            while True:
                with self._changed:
                    if owner not in self._waits:
                        return
                    if owner in self._cancelled:
                        raise cancelled()
                    self._pause(latest)
                    others = sorted(self._others(owner, key))
                self.release_abandoned()
                if shown is not None:
                    shown.show(others)
        finally:
            with self._mutex:
                if waiter in lock.waiters:
                    lock.waiters.remove(waiter)
                    # Those behind it may share the lock with its owners.
                    self._hand_on(key, lock)
            if shown is not None:
                shown.end()

    def _give(self, waiter: _Waiter, key: LockKey) -> None:
        self._of.setdefault(waiter.owner, {}).setdefault(key, waiter.sequence)
        lock = self._held.get(key) or _Lock()
        lock.admit(waiter.owner, shared=waiter.shared)
        self._held[key] = lock

    def cancel(self, owner: int) -> None:
        """Let a transaction's wait for a lock fail, if it waits; from any thread."""
        with self._changed:
            if owner not in self._waits:
                return
            self._cancelled.add(owner)
            self._changed.notify_all()
        if self.server is not None:
            self.server.cancel(owner)

    def _pause(self, latest: float | None) -> None:
        """Wait for a change, under the mutex, for a moment at the most."""
        pause = _SLICE
        if latest is not None:
            pause = min(pause, latest - time.monotonic())
            if pause <= 0:
                raise lock_not_available("lock_timeout is over: ")
        self._changed.wait(pause)

    def named(self, owners: Iterable[int]) -> str:
        """Transactions, each with its thread: what an administrator can look for."""
        names = {each.ident: each.name for each in threading.enumerate()}
        found = [
            f"transaction {owner} of this process (thread "
            f"{names.get(self._threads.get(owner), 'that has ended')!r})"
            for owner in sorted(owners)
        ]
        return " and ".join(found)

    def _check_circle(self, owner: int, awaited: Hashable) -> None:
        seen = {owner}
        others = self._others(owner, awaited)
        while others:
            other = others.pop()
            if other in seen or other not in self._waits:
                continue
            seen.add(other)
            more = self._others(other, self._waits[other])
            if owner in more:
                raise deadlock()
            others |= more

    def _others(self, owner: int, awaited: Hashable) -> set[int]:
        lock = self._held.get(awaited)  # type: ignore[call-overload]
        return set() if lock is None else lock.owners - {owner}

    # Releasing

    def release(self, owner: int, *, after: int | None = None) -> None:
        """Release a transaction's locks, or those of statements after a number."""
        keys = self._of.get(owner)
        self._waited.discard(owner)
        if after is None:
            self._threads.pop(owner, None)
        if keys is not None:
            gone = list(keys) if after is None else self.taken_after(owner, after)
            self._let_go(owner, gone)
            if after is not None and self.server is not None:
                self.server.release(owner, gone)
        if after is None and self.server is not None:
            self.server.release(owner)

    def release_keys(self, owner: int, keys: Collection[LockKey]) -> None:
        """Release some of a transaction's locks."""
        self._let_go(owner, keys)
        if self.server is not None and keys:
            self.server.release(owner, keys)

    def abandon(self, owner: int) -> None:
        """Have a transaction's locks released; take no lock: called by a finalizer."""
        self._abandoned.append(owner)

    def release_abandoned(self) -> None:
        """Release the locks of connections that were garbage-collected."""
        for owner in taken(self._abandoned):
            self.release(owner)

    def _let_go(self, owner: int, keys: Collection[LockKey]) -> None:
        if not keys:
            return
        with self._changed:
            own = self._of.get(owner, {})
            for key in keys:
                lock = self._held.get(key)
                if lock is not None and owner in lock.owners:
                    lock.owners.remove(owner)
                    self._hand_on(key, lock)
                own.pop(key, None)
            if not own:
                self._of.pop(owner, None)

    def _hand_on(self, key: LockKey, lock: _Lock) -> None:
        while lock.waiters and lock.admits(
            lock.waiters[0].owner, shared=lock.waiters[0].shared
        ):
            self._give(lock.waiters[0], key)
            self._waits.pop(lock.waiters.popleft().owner, None)
            self._changed.notify_all()
        if not lock.owners:
            del self._held[key]
