"""Row locks in the server, beside those in memory (:mod:`tique_backends.servers.row_locks`).

Only a transaction that locks rows, or meets a lock at its commit, has what stands for it in the
server (a *session* here). A
transaction asks the server first, and notes the lock in memory then; it takes its note
away first, and gives the lock back then. So within a process, too, the server alone decides
who has a lock, and finds every deadlock, and memory never says that a lock is free
that the server has not got back.

*If the process is given up* all of its locks are gone, and so is its right to commit. That shows
before the next lock and before the commit
(:meth:`ServerLocks.expect_there`): what was decided under a lock is not committed without it.

*Updates that merge* share the merging key of their row, in the server too while there are other processes. A transaction that locks
the row alone has the merging key first, alone, and keeps both. So it waits for those that merge before it has
anything that one of them, or its commit, could want: one that has the merging key may still
lock the row, to look at it, and gets no merging key with it. One that shares the row waits for the merging key and lets it go: one that comes to merge
after that waits at its commit, which looks for locks of its rows. A commit that deletes a row looks for locks of its merging key, too
(:func:`tique.commit.certification.key_hashes`): so what merges finds its row at its commit.

*Reservations* (:mod:`tique.query.transaction.contested`) are locks that end after a time, too: the heartbeat gives them
back. So a transaction's locks have a mutex, under which they are noted and given back. Once its commit
has begun its reservations stay (:meth:`ServerLocks.keep_reserved`): no commit counts a lock as its own that the server has
given to another transaction.

*A wait in memory* for another transaction of the process is shown to the server, when it
takes longer than a moment (:meth:`ServerLocks.show_wait`): others may wait behind it there.

*If a wait is cancelled* before its statement has come to the server, the server has nothing to
cancel and forgets it. So the request is made again until the wait is over (:meth:`_Held.cancel`).
It is made under a guard that the waiting thread takes before it goes on: none reaches the
statement after it.
"""

from __future__ import annotations

import math
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from tique import errors
from tique._translation import translated
from tique.commit.certification import key_hash
from tique.commit.lock_keys import merging_key
from tique_backends.errors import EngineError
from tique_udfs import lock_number

if TYPE_CHECKING:
    from collections.abc import (
        Callable,
        Collection,
        Hashable,
        Iterable,
        Iterator,
        Sequence,
    )

    from tique.commit.lock_keys import LockKey
    from tique.commit.turns import Claim
    from tique_backends.servers.row_locks import RowLocks

_MOST_UNMERGED = 100
"""Rows that are locked at a time with their merging keys: there is room for so many locks."""

_CANCEL_AGAIN = 0.02
"""Seconds until a wait that is cancelled and goes on is cancelled again."""


def table_number(table_id: int) -> int:
    """The number that says that rows of a table are locked, or written in bulk."""
    return lock_number(key_hash(table_id, (), ()))


LOCK_NOT_AVAILABLE = "55P03"
"""The SQLSTATE when a row is locked by another transaction."""

CANCELLED = "57014"
"""The SQLSTATE when a wait was cancelled."""

_Mode: TypeAlias = "tuple[int, bool]"
"""A number, and whether it is shared."""


def _unheard(_: Hashable) -> None:
    """Do nothing."""


class _Held:
    """The locks of one transaction: for each number and mode, for whom it is.

    Its thread uses it, and the heartbeat, which gives reservations back: ``mutex`` is held to note
    locks, and to give any back, but not by a thread that waits for one.
    """

    def __init__(self, session: RowLocks) -> None:
        self.session = session
        self.modes: defaultdict[_Mode, set[Hashable]] = defaultdict(set)
        self.mutex = threading.Lock()
        self.reserved: set[Hashable] = set()
        """The users that are reservations."""
        self.reserved_until = math.inf
        """When these lapse, by the monotonic clock; infinite once the commit has begun."""
        self._guard = threading.Lock()
        self._is_waiting = False

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Wait for a lock, which may be cancelled."""
        self._is_waiting = True
        try:
            yield
        finally:
            with self._guard:
                self._is_waiting = False

    def cancel(self) -> None:
        """End a wait; from any thread."""
        while True:
            with self._guard:
                if not self._is_waiting:
                    return
                self.session.interrupt()
            time.sleep(_CANCEL_AGAIN)

    def has(self, number: int, *, shared: bool) -> _Mode | None:
        """The mode in which it has a number that is wanted, or a stronger one."""
        for mode in ((number, False), (number, True))[: 1 + shared]:
            if mode in self.modes:
                return mode
        return None

    def note(
        self, mode: _Mode, users: Iterable[Hashable]
    ) -> list[tuple[_Mode, Hashable]]:
        """Note that it has a number, and for whom; what is new of that."""
        with self.mutex:
            return self._note(mode, users)

    def note_if_there(
        self, number: int, user: Hashable, *, shared: bool
    ) -> list[tuple[_Mode, Hashable]] | None:
        """Note a use of a number if it has it; None if not."""
        with self.mutex:
            mode = self.has(number, shared=shared)
            return None if mode is None else self._note(mode, [user])

    def _note(
        self, mode: _Mode, users: Iterable[Hashable]
    ) -> list[tuple[_Mode, Hashable]]:
        known = self.modes[mode]
        new = [(mode, user) for user in users if user not in known]
        known.update(users)
        return new

    def drop(self, users: Collection[Hashable]) -> None:
        """Give back the numbers that are of no use but for these users."""
        with self.mutex:
            self._drop(self._uses(users))

    def drop_uses(self, uses: Iterable[tuple[_Mode, Hashable]]) -> None:
        """Give back the numbers that are of no more use."""
        with self.mutex:
            self._drop(uses)

    def drop_reserved(self) -> None:
        """Give reservations back."""
        if self.reserved:
            self.drop(self.reserved)
            self.reserved = set()

    def lapse(self) -> None:
        """Give reservations back whose time is over, unless the owner's thread is at it."""
        if self.reserved_until > time.monotonic() or not self.mutex.acquire(
            blocking=False
        ):
            return
        try:
            if self.reserved_until <= time.monotonic():
                self.reserved_until = math.inf
                self._drop(self._uses(self.reserved))
        finally:
            self.mutex.release()

    def keep_reserved(self) -> None:
        """Keep reservations, if they are still there, until the end."""
        with self.mutex:
            self.reserved_until = math.inf

    def close(self) -> None:
        """Give all back."""
        self.keep_reserved()
        self.session.close()

    def _drop(self, uses: Iterable[tuple[_Mode, Hashable]]) -> None:
        given = []
        for mode, user in uses:
            users = self.modes.get(mode)
            if users is not None:
                users.discard(user)
                if not users:
                    del self.modes[mode]
                    given.append(mode)
        self.session.unlock(given)

    def _uses(self, users: Collection[Hashable]) -> list[tuple[_Mode, Hashable]]:
        return [
            (mode, user)
            for mode, own in self.modes.items()
            for user in own & set(users)
        ]


class ServerLocks:
    """The row locks of this process's transactions in the server.

    Parameters
    ----------
    begin
        Begins a session for a transaction's locks.
    positions
        The positions of a table's primary key, by the table's id.
    has_company
        Whether other processes use the database.
    others
        Names the processes that may have what a wait did not get.
    """

    def __init__(
        self,
        begin: Callable[[], RowLocks],
        positions: Callable[[int], tuple[int, ...]],
        has_company: Callable[[], bool],
        others: Callable[[], str],
    ) -> None:
        self._begin = begin
        self._positions = positions
        self._has_company = has_company
        self._others = others
        self._held: dict[int, _Held] = {}

    def number(self, key: LockKey) -> int:
        """The number of a row's lock."""
        table, values = key
        if table < 0:
            # A value of a UNIQUE key, or of references to it.
            return lock_number(key_hash(~table, values[0], values[1:]))
        return lock_number(key_hash(table, self._positions(table), values))

    def own(self, owner: int) -> Collection[int]:
        """The numbers that a transaction has alone."""
        held = self._held.get(owner)
        if held is None:
            return ()
        return {number for number, shared in list(held.modes) if not shared}

    def locker(self, owner: int) -> int:
        """The owner of a transaction's locks as the server knows it; 0: it has none."""
        held = self._held.get(owner)
        return 0 if held is None else held.session.locker

    def begun(self, owner: int) -> int | None:
        """As :attr:`RowLocks.begun`, of a transaction's locks."""
        held = self._held.get(owner)
        return None if held is None else held.session.begun

    def lock(
        self,
        owner: int,
        keys: Sequence[LockKey],
        patience: float | None,
        *,
        shared: bool,
        waits: Callable[[Hashable], None] = _unheard,
    ) -> None:
        """Lock rows in this order; all of them or, if it raises, none.

        Parameters
        ----------
        owner, keys, patience, shared
            As :meth:`tique.commit.locks.Locks.lock` takes them.
        waits
            Called with the key that is waited for, and with None afterwards.

        Raises
        ------
        SerializationError, OperationalError
            As :meth:`tique.commit.locks.Locks.lock`.
        """
        tables = dict.fromkeys(max(table, ~table) for table, _ in keys)
        there = [(table_number(table), ("table", table)) for table in tables]
        rows: list[tuple[int, Hashable]] = []
        merging: list[tuple[int, Hashable]] = []
        own = self._held[owner].modes if owner in self._held else ()
        apart = self._has_company() and len(keys) <= _MOST_UNMERGED
        for key in keys:
            number = self.number(merging_key(key)) if apart and key[0] >= 0 else None
            if number is not None and (number, True) not in own:
                if shared:
                    merging.append((number, ("unmerged", number)))
                else:
                    rows.append((number, key))
            rows.append((self.number(key), key))
        if merging:
            self._lock(owner, [(there, True), (merging, False)], patience, waits)
            self.release(owner, [user for _, user in merging])
        self._lock(owner, [(there, True), (rows, shared)], patience, waits)

    def lock_tables(
        self,
        owner: int,
        tables: Iterable[int],
        patience: float | None,
        waits: Callable[[Hashable], None] = _unheard,
    ) -> None:
        """Let no other transaction lock rows of tables, or have any locked."""
        wanted = [(table_number(table), ("bulk", table)) for table in sorted(tables)]
        self._lock(owner, [(wanted, False)], patience, waits)

    def reserve(
        self,
        owner: int,
        claims: Iterable[Claim],
        patience: float,
        lasting: float,
        waits: Callable[[Hashable], None] = _unheard,
    ) -> None:
        """Lock keys for so many seconds, or until the transaction ends."""
        numbers = sorted({lock_number(key_hash(*claim)) for claim in claims})
        wanted = [(number, ("reserved", number)) for number in numbers]
        try:
            self._lock(owner, [(wanted, False)], patience, waits, lasting=lasting)
        except BaseException:
            # No other transaction shall look for what it has.
            self.release(owner)
            raise

    def keep_reserved(self, owner: int) -> None:
        """Note that a transaction's commit begins: its reservations lapse no more."""
        held = self._held.get(owner)
        if held is not None:
            held.keep_reserved()

    def lapse(self) -> None:
        """Give reservations back whose time is over; called at every heartbeat."""
        for held in list(self._held.values()):
            # If the session is lost, so are its locks.
            with suppress(EngineError):
                held.lapse()

    def lock_numbers(
        self,
        owner: int,
        numbers: Iterable[int],
        patience: float | None,
        waits: Callable[[Hashable], None] = _unheard,
    ) -> None:
        """Lock numbers that a commit met."""
        wanted = [(number, ("met", number)) for number in sorted(numbers)]
        self._lock(owner, [(wanted, False)], patience, waits)

    def show_wait(self, owner: int, other: int) -> None:
        """Show that a transaction waits in memory for another one.

        Raises
        ------
        SerializationError
            It would never end: a deadlock (SQLSTATE 40P01).
        """
        awaited = self._held.get(other)
        if awaited is None:
            # It waits for none that the server knows: it would have a session.
            return
        try:
            self._of(owner).session.wait_for(awaited.session)
        except EngineError as error:
            raise _failure(error) from error

    def end_wait(self, owner: int) -> None:
        """Take back what :meth:`show_wait` has shown."""
        held = self._held.get(owner)
        if held is not None:
            with suppress(EngineError):
                held.session.end_wait()

    def _of(self, owner: int) -> _Held:
        held = self._held.get(owner)
        if held is None:
            held = self._held[owner] = _Held(self._begin())
        return held

    def _lock(
        self,
        owner: int,
        parts: Sequence[tuple[Sequence[tuple[int, Hashable]], bool]],
        patience: float | None,
        waits: Callable[[Hashable], None] = _unheard,
        *,
        lasting: float | None = None,
    ) -> None:
        """Lock numbers; to reserve them if it is said for how long."""
        try:
            held = self._of(owner)
            new: list[tuple[_Mode, Hashable]] = []
            try:
                missing: dict[_Mode, list[Hashable]] = {}
                for wanted, shared in parts:
                    for number, user in wanted:
                        noted = held.note_if_there(number, user, shared=shared)
                        if noted is None:
                            missing.setdefault((number, shared), []).append(user)
                        new.extend(noted or ())
                    if lasting is not None:
                        held.reserved.update(user for _, user in wanted)
                _lock_missing(held, missing, patience, new, waits, lasting=lasting)
            except BaseException:
                held.drop_uses(new)
                raise
        except EngineError as error:
            by = self._others() if error.sqlstate == LOCK_NOT_AVAILABLE else ""
            raise _failure(error, by) from error

    def cancel(self, owner: int) -> None:
        """Let a transaction's wait for a lock fail; from any thread."""
        held = self._held.get(owner)
        if held is not None:
            held.cancel()

    def expect_there(self, owner: int) -> None:
        """Refuse to commit what was decided under locks that are lost.

        Raises
        ------
        SerializationError
            The server has given them up.
        """
        held = self._held.get(owner)
        if held is not None and not held.session.are_there():
            raise errors.SerializationError(
                "this transaction's row locks are lost: the server has given them up, "
                "with the lease of their process; roll back and run it again"
            )

    def release(self, owner: int, keys: Collection[Hashable] | None = None) -> None:
        """Give back a transaction's locks, or those of some rows; idempotent."""
        if keys is None:
            held = self._held.get(owner)
            if held is not None:
                # Forgotten last: if this is interrupted, it is done again.
                held.close()
                self._held.pop(owner, None)
            return
        held = self._held.get(owner)
        if held is not None:
            # If the session is lost, so are its locks: that shows at the commit.
            with suppress(EngineError):
                held.drop(keys)

    def close(self) -> None:
        """Give all locks back."""
        for owner in list(self._held):
            self.release(owner)


def _lock_missing(
    held: _Held,
    missing: dict[_Mode, list[Hashable]],
    patience: float | None,
    new: list[tuple[_Mode, Hashable]],
    waits: Callable[[Hashable], None],
    *,
    lasting: float | None,
) -> None:
    """Lock numbers in their order: as many as are free at once, and wait for the next."""

    def note(modes: Iterable[_Mode]) -> None:
        if lasting is not None:
            held.reserved_until = time.monotonic() + lasting
        for mode in modes:
            new.extend(held.note(mode, missing.pop(mode)))

    while missing:
        note(held.session.try_lock(list(missing)))
        if not missing:
            break
        if patience == 0:
            raise lock_not_available()
        if lasting is None:
            held.drop_reserved()
        mode, *_ = missing
        number, shared = mode
        with held.waiting():
            waits(missing[mode][0])
            try:
                held.session.lock(number, shared=shared, patience=patience)
            finally:
                waits(None)
        note([mode])


def deadlock() -> errors.SerializationError:
    """The error of the victim of a deadlock (SQLSTATE 40P01)."""
    return errors.SerializationError(
        "deadlock: this transaction and others wait for each other's row locks; roll back "
        "and run it again",
        sqlstate="40P01",
    )


def cancelled() -> errors.OperationalError:
    """The error when a wait was cancelled (SQLSTATE 57014)."""
    return errors.OperationalError(
        "the wait for a row lock was cancelled", sqlstate=CANCELLED
    )


def lock_not_available(why: str = "", by: str = "") -> errors.OperationalError:
    """The error when a row is locked by another transaction (SQLSTATE 55P03)."""
    return errors.OperationalError(
        f"{why}a row is locked by {by or 'another transaction'}",
        sqlstate=LOCK_NOT_AVAILABLE,
    )


def _failure(error: EngineError, by: str = "") -> errors.Error:
    if error.sqlstate == "40P01":
        return deadlock()
    if error.sqlstate == LOCK_NOT_AVAILABLE:
        return lock_not_available("lock_timeout is over: ", by)
    if error.sqlstate == CANCELLED:
        return cancelled()
    return translated(error)
