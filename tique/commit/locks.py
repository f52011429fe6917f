"""Row locks, for SELECT … FOR UPDATE and FOR SHARE.

First committer wins (P3) finds a conflict when it is over. A lock keeps it from arising:
a row that a transaction has locked is locked, and written, by no other one until that
transaction ends. Locks decide who waits, never what may commit: that is the certifier's
alone, so that a lock that is lost or late costs an attempt and no update.

*Invariant.* A key has at most one owner, a txid, or several that share it. While a key is
locked, no transaction that writes it is between :meth:`Locks.enter` and the end of its
commit, but an only owner and those that the owners have yet to wait for by
:meth:`Locks.settle`, before they look whether the key was committed since their snapshots. So
no commit of the key comes between that look and the owner's end.

Argument
--------
*A commit without locks.* A transaction that commits notes itself in ``_committing``, and
then looks whether any lock is held. A locking transaction takes its locks, and then
looks into ``_committing``. Each is one operation on a dict, and these are in one order,
so at least one of the two sees the other: the committer steps back and waits, or the
locking one waits until the commit is over. A committer that waits for a lock is not in
``_committing``, so the two never wait for each other. Where no lock is held this costs
a commit an entry in a dict and a look at another.

*Several processes.* Where a server keeps row locks, each is taken there, too, and first
(:mod:`tique.commit.server_locks`); what follows is then the server's to decide. But those
that a statement takes of the rows that it writes (:mod:`tique.query.rereading`) are, without other processes, this one's
alone, under keys of their own, so that they cost no round trip. A transaction
that locks such a row in the server waits first until no other one writes it, and is waited for by
later writers. If a writer comes between, it waits at its commit, as one of another process
does: the one that has the server's lock never waits for that writer any more.

*Updates that merge* (:mod:`tique.commit.mergeable`) do not exclude one another. Such a transaction of
READ COMMITTED waits until its row is free, and then has the row's *merging* key, shared; who locks the row
waits for all of these (:meth:`Locks.settle`), and a later one waits for the row. So while others have the
merging key, a row has no owner that goes on. One that has it and wants the row for itself, to look at it
or to write it otherwise, locks a third key, *seen*: others' commits of the row wait for that. It never waits for
the row, since the row's owner waits for it. All three are in this process alone.

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

*A commit whose outcome is not known* is over for the locks when its call is: the certifier
lets no other commit pass before that outcome is looked up.

*Fork.* In the child no connection of the parent's can be used, and so no lock asked for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tique import errors
from tique.commit.server_locks import (
    CANCELLED,
    LOCK_NOT_AVAILABLE,
    cancelled,
    deadlock,
    lock_not_available,
)
from tique_backends.queues import taken

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterable, Sequence

    from tique.commit.server_locks import ServerLocks
    from tique.commit.turns import Claim
    from tique.store.rows import Key
    from tique.writes.tickets import Committing

LockKey: TypeAlias = "tuple[int, Key]"
"""A table's id, and a primary key.

That of a row whose lock is this process's alone, though there is a server, has ``~id``. So
has that of a value of a UNIQUE key (:func:`unique_key`), which is nowhere else.
"""

LOCK_TIMEOUT = 30.0
"""Seconds that a wait for a lock may take, unless the application says otherwise."""

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


class Locks:
    """The row locks of one database.

    Parameters
    ----------
    server
        Those in the server; None: there are no other processes.
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

    def taken_after(self, owner: int, sequence: int) -> list[LockKey]:
        """The keys that a transaction's statements after a number have locked."""
        return [key for key, n in self._of.get(owner, {}).items() if n > sequence]

    # Locking

    def take(
        self,
        owner: int,
        keys: Sequence[LockKey],
        sequence: int,
        *,
        shared: bool = False,
    ) -> bool:
        """Lock keys if no other transaction has; all of them or, if False, none."""
        try:
            self.lock(owner, keys, sequence, 0, shared=shared)
        except errors.OperationalError as error:
            if error.sqlstate != LOCK_NOT_AVAILABLE:
                raise
            return False
        return True

    def lock(
        self,
        owner: int,
        keys: Sequence[LockKey],
        sequence: int,
        patience: float | None,
        *,
        shared: bool = False,
        everywhere: bool = False,
    ) -> None:
        """Lock keys in this order, each after those that came before.

        In the server, where there is one: rows, and ``everywhere`` values of UNIQUE keys
        and references, too.

        Raises
        ------
        SerializationError
            The wait would never end: a deadlock (SQLSTATE 40P01).
        OperationalError
            It has taken ``patience`` seconds (SQLSTATE 55P03), or was cancelled (57014).
        """
        self.release_abandoned()
        written = self._written(owner, keys)
        new = [k for k in (*written, *keys) if k not in self._of.get(owner, {})]
        try:
            for key in written:
                self._lock(owner, key, sequence, patience, shared=shared)
            self._await_merged(owner, written, patience)
            asked = [
                key for key in keys if key[0] >= 0 or (everywhere and _is_value(key))
            ]
            if self.server is not None and asked:
                self.server.lock(
                    owner,
                    asked,
                    patience,
                    shared=shared,
                    waits=lambda user: self._note_wait(owner, user),
                )
            for key in keys:
                self._lock(owner, key, sequence, patience, shared=shared)
        except BaseException:
            self.release_keys(owner, new)
            raise
        finally:
            self._waits.pop(owner, None)
            self._cancelled.discard(owner)

    def reserve(
        self, owner: int, claims: Sequence[Claim], patience: float, lasting: float
    ) -> bool | None:
        """Lock keys in the server before they are read, for some time (see contested).

        Returns
        -------
        bool or None
            Whether other transactions had any; None: they are not locked.

        Raises
        ------
        OperationalError
            The wait was cancelled (SQLSTATE 57014).
        """
        assert self.server is not None
        has_waited = False

        def note(user: Hashable) -> None:
            nonlocal has_waited
            has_waited = True
            self._note_wait(owner, user)

        try:
            self.server.reserve(owner, claims, patience, lasting, note)
        except errors.Error as error:
            if error.sqlstate == CANCELLED:
                raise
            return None
        finally:
            self._waits.pop(owner, None)
            self._cancelled.discard(owner)
        return has_waited

    def lock_written(
        self,
        owner: int,
        keys: Sequence[LockKey],
        sequence: int,
        patience: float | None,
        *,
        everywhere: bool = False,
        merges: bool = False,
    ) -> None:
        """Lock rows that a statement writes, behind updates that merge unless it does.

        Without asking the server if none has them here, unless ``everywhere``.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        if self.server is None:
            self.lock(owner, keys, sequence, patience)
            return
        own = set(self.of(owner))
        # Others that write a row alone wait for its lock in the server.
        alone = [own_key(key) for key in keys if key not in own]
        self.lock(owner, in_order(alone), sequence, patience)
        if not merges:
            self._await_merged(owner, alone, patience)
        met = [
            key
            for key in keys
            if (key[0] >= 0 and (everywhere or key in own or self._others(owner, key)))
            or (everywhere and _is_value(key))
        ]
        if met:
            self.lock(owner, met, sequence, patience, everywhere=everywhere)

    def lock_merged(
        self,
        owner: int,
        keys: Iterable[LockKey],
        sequence: int,
        patience: float | None,
    ) -> None:
        """Lock rows that updates change that merge: from all but others of their kind.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        own = set(self.of(owner))
        new = [key for key in keys if own.isdisjoint((key, own_key(key)))]
        new = [key for key in new if merging_key(key) not in own]
        if not new:
            return
        self.lock_written(owner, new, sequence, patience, merges=True)
        merging = [merging_key(key) for key in new]
        self.lock(owner, merging, sequence, patience, shared=True)
        rows = {*new, *map(own_key, new)}
        self.release_keys(owner, [k for k in list(self.of(owner)) if k in rows])

    def _await_merged(
        self, owner: int, keys: Iterable[LockKey], patience: float | None
    ) -> None:
        """Wait for updates that merge of rows of which the transaction lets none begin."""
        for key in map(merging_key, keys):
            if key not in self.of(owner) and self._others(owner, key):
                self.lock(owner, [key], 0, patience)
                self.release_keys(owner, [key])

    def to_lock(
        self, owner: int, keys: Iterable[LockKey], *, everywhere: bool = False
    ) -> list[LockKey]:
        """What a transaction locks of rows: that it has seen those that it has merged.

        These themselves, too, for other processes, unless one waits here.
        """
        own = self.of(owner)
        found = []
        for key in keys:
            is_merged = merging_key(key) in own
            if is_merged:
                found.append(seen_key(key))
            if not is_merged or (everywhere and not self.is_taken(owner, key)):
                found.append(key)
        return found

    def has_waited(self, owner: int) -> bool:
        """Whether a transaction has waited for a lock since it asked that last."""
        has_waited = owner in self._waited
        self._waited.discard(owner)
        return has_waited

    def is_taken(self, owner: int, key: LockKey) -> bool:
        """Whether another transaction of this process has locked a row."""
        return bool(self._others(owner, key) or self._others(owner, own_key(key)))

    def _written(self, owner: int, keys: Sequence[LockKey]) -> list[LockKey]:
        """The locks of others that rows have by :meth:`lock_written` alone."""
        if self.server is None or not self._held:
            return []
        return [
            (~table, values)
            for table, values in keys
            if table >= 0
            and (
                self._others(owner, (~table, values))
                or self._others(owner, merging_key((table, values)))
            )
            and (table, values) not in self._held
        ]

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
                self._give(waiter, key)
                return
            if patience == 0:
                raise lock_not_available()
            self._check_circle(owner, key)
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
        lock = self._held.get(key)
        if lock is None:
            lock = _Lock()
            lock.admit(waiter.owner, shared=waiter.shared)
            self._held[key] = lock
        else:
            lock.admit(waiter.owner, shared=waiter.shared)

    def cancel(self, owner: int) -> None:
        """Let a transaction's wait for a lock fail, if it waits; from any thread."""
        with self._changed:
            if owner not in self._waits:
                return
            self._cancelled.add(owner)
            self._changed.notify_all()
        if self.server is not None:
            self.server.cancel(owner)

    def settle(
        self, owner: int, keys: Collection[LockKey], patience: float | None
    ) -> bool:
        """Wait until no commit of these keys is under way that began without the locks.

        And no transaction has changed them by an update that merges, unless this one has,
        too. With no patience at all it only looks. Whether there is none.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        latest = None if patience is None else time.monotonic() + patience
        if self.server is None:
            try:
                self._await_merged(owner, keys, patience)
            except errors.OperationalError:
                if patience == 0:
                    return False
                raise
        while self._is_committing(owner, keys):
            if patience == 0:
                return False
            with self._changed:
                self._pause(latest)
            self.release_abandoned()
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

    # Committing

    def enter(
        self, transaction: Committing, patience: float | None, *, whole: bool = False
    ) -> None:
        """Begin a commit: wait for the owners of the keys that it writes.

        The owners of other processes are waited for when it meets them, but for those of
        rows that are staged, and of tables of which it has staged rows without known keys;
        or, if it is ``whole``, of all its tables.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`lock`.
        """
        owner = transaction.txid
        if self.server is not None:
            self.server.keep_reserved(owner)
            staged = [
                number
                for number, writes in transaction.writes.items()
                if whole or (writes.is_staged and writes.staged_keys is None)
            ]
            rows = [
                (number, key)
                for number, writes in transaction.writes.items()
                if writes.is_staged and not whole
                for key in writes.staged_keys or ()
            ]
            if rows:
                self.lock(owner, in_order(rows), 0, patience)
            if staged:
                try:
                    self.server.lock_tables(
                        owner,
                        staged,
                        patience,
                        lambda user: self._note_wait(owner, user),
                    )
                finally:
                    self._waits.pop(owner, None)
                    self._cancelled.discard(owner)
        while True:
            self._committing[owner] = transaction
            if not self._held:
                return
            self.release_abandoned()
            with self._mutex:
                written = self._written_by(transaction)
                own = {
                    key
                    for key in written
                    if self._is_alone(owner, key)
                    # Its owner waits for this transaction.
                    or merging_key(key) in self._of.get(owner, ())
                }
                locked = [
                    (table, values)
                    for table, values in written
                    if (table, values) not in own
                    # Others that write a row alone wait for its lock in the server.
                    and (table >= 0 or (~table, values) not in own)
                ]
            if not locked:
                return
            self.leave(owner)
            first = [key for key in locked if key[0] >= 0]
            self.lock(owner, in_order(first or locked), 0, patience)

    def _is_alone(self, owner: int, key: LockKey) -> bool:
        lock = self._held[key]
        return not lock.shared and owner in lock.owners

    def _written_by(self, transaction: Committing) -> list[LockKey]:
        """The locked keys that a transaction writes."""
        found = transaction.writes.values()
        count = sum(len(writes.rows) for writes in found)
        if count > len(self._held) or any(writes.is_staged for writes in found):
            return [key for key in self._held if _writes(transaction, key)]
        return [
            key
            for number, writes in transaction.writes.items()
            for values in writes.rows
            for row in [(number, values)]
            for key in (row, own_key(row), seen_key(row))
            if key in self._held
        ]

    def lock_met(
        self, owner: int, numbers: Iterable[int], patience: float | None
    ) -> None:
        """Wait for locks of other processes that a commit has met, and have them."""
        assert self.server is not None
        try:
            self.server.lock_numbers(
                owner, numbers, patience, lambda user: self._note_wait(owner, user)
            )
        finally:
            self._waits.pop(owner, None)
            self._cancelled.discard(owner)

    def leave(self, owner: int) -> None:
        """End a commit; idempotent."""
        if self._committing.pop(owner, None) is not None and self._held:
            with self._changed:
                self._changed.notify_all()

    # Releasing

    def release(self, owner: int, *, after: int | None = None) -> None:
        """Release a transaction's locks, or those of statements after a number."""
        keys = self._of.get(owner)
        self._waited.discard(owner)
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
            self._changed.notify_all()

    def _hand_on(self, key: LockKey, lock: _Lock) -> None:
        while lock.waiters and lock.admits(
            lock.waiters[0].owner, shared=lock.waiters[0].shared
        ):
            self._give(lock.waiters[0], key)
            self._waits.pop(lock.waiters.popleft().owner, None)
        if not lock.owners:
            del self._held[key]


def own_key(key: LockKey) -> LockKey:
    """The key of a lock that is this process's alone."""
    table, values = key
    return (~table if table >= 0 else table), values


def unique_key(
    table_id: int, positions: tuple[int, ...], values: tuple[object, ...]
) -> LockKey:
    """The key of a value of a UNIQUE key in these columns."""
    return ~table_id, (positions, *values)


def merging_key(key: LockKey) -> LockKey:
    """The key that transactions share which have changed a row by updates that merge."""
    table, values = key
    return (~table if table >= 0 else table), ((-1,), *values)


def seen_key(key: LockKey) -> LockKey:
    """The key of the one among these that has looked at the row since."""
    table, values = key
    return (~table if table >= 0 else table), ((-2,), *values)


def reference_key(
    table_id: int, positions: tuple[int, ...], values: tuple[object, ...]
) -> LockKey:
    """The key that references to a row's key share, and a transaction has that gives it up."""
    return ~table_id, ((-3, *positions), *values)


def _is_value(key: LockKey) -> bool:
    """Whether it is one of a UNIQUE key's values, or of references to it: not of a row."""
    table, values = key
    return table < 0 and isinstance(values[0], tuple) and values[0][0] not in (-1, -2)


def in_order(keys: Iterable[LockKey]) -> list[LockKey]:
    """Keys in an order that all transactions lock them in, so that few meet a deadlock."""
    try:
        return sorted(keys)
    except TypeError:
        # Values of one column need have no order: addresses of two kinds.
        return sorted(keys, key=repr)


def _writes(transaction: Committing, key: LockKey) -> bool:
    """Whether a transaction writes a key, or may."""
    table, values = key
    if table < 0 and isinstance(values[0], tuple):
        if values[0] != (-2,):
            return False
        values = values[1:]
    writes = transaction.writes.get(table if table >= 0 else ~table)
    return writes is not None and writes.may_write(values)
