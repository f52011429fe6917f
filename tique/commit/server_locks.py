"""Row locks in the server, beside those in memory (:mod:`tique_backends.row_locks`).

Only a transaction that locks rows, or meets a lock at its commit, has a session for them, or what
stands for one (a *session* here). A
transaction asks the server first, and notes the lock in memory then; it takes its note
away first, and gives the lock back then. So within a process, too, the server alone decides
who has a lock, and finds every deadlock, and memory never says that a lock is free
that the server has not got back.

*If a thread is interrupted* while it waits for the server, the session is closed, and all locks
of the transaction go with it. That shows before the next lock and before the commit
(:meth:`ServerLocks.expect_there`): what was decided under a lock is not committed without it.

*If a wait is cancelled* before its statement has come to the server, the server has nothing to
cancel and forgets it. So the request is made again until the wait is over (:meth:`_Held.cancel`).
It is made under a guard that the waiting thread takes before it goes on: none reaches the
statement after it.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from tique import errors
from tique._translation import translated
from tique.commit.certification import key_hash
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

    from tique.commit.locks import LockKey
    from tique_backends.row_locks import RowLocks

_CANCEL_AGAIN = 0.02
"""Seconds until a wait that is cancelled and goes on is cancelled again."""


def table_number(table_id: int) -> int:
    """The number that says that rows of a table are locked, or written in bulk."""
    return lock_number(key_hash(table_id, (), ()))


LOCK_NOT_AVAILABLE = "55P03"
"""The SQLSTATE when a row is locked by another transaction."""

_Mode: TypeAlias = "tuple[int, bool]"
"""A number, and whether it is shared."""


def _unheard(_: Hashable) -> None:
    """Do nothing."""


class _Held:
    """The locks of one transaction: for each number and mode, for whom it is."""

    def __init__(self, session: RowLocks) -> None:
        self.session = session
        self.modes: defaultdict[_Mode, set[Hashable]] = defaultdict(set)
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

    def drop(self, uses: Iterable[tuple[_Mode, Hashable]]) -> None:
        """Give back the numbers that are of no more use."""
        given = []
        for mode, user in uses:
            users = self.modes.get(mode)
            if users is not None:
                users.discard(user)
                if not users:
                    del self.modes[mode]
                    given.append(mode)
        self.session.unlock(given)

    def uses(self, users: Collection[Hashable]) -> list[tuple[_Mode, Hashable]]:
        """The uses of some users."""
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
    """

    def __init__(
        self,
        begin: Callable[[], RowLocks],
        positions: Callable[[int], tuple[int, ...]],
    ) -> None:
        self._begin = begin
        self._positions = positions
        self._held: dict[int, _Held] = {}

    def number(self, key: LockKey) -> int:
        """The number of a row's lock."""
        table, values = key
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
        tables = dict.fromkeys(table for table, _ in keys)
        there = [(table_number(table), ("table", table)) for table in tables]
        rows = [(self.number(key), key) for key in keys]
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

    def _lock(
        self,
        owner: int,
        parts: Sequence[tuple[Sequence[tuple[int, Hashable]], bool]],
        patience: float | None,
        waits: Callable[[Hashable], None] = _unheard,
    ) -> None:
        try:
            held = self._held.get(owner)
            if held is None:
                held = self._held[owner] = _Held(self._begin())
            new: list[tuple[_Mode, Hashable]] = []
            try:
                for wanted, shared in parts:
                    missing = _note_what_is_there(held, wanted, new, shared=shared)
                    _lock_missing(held, missing, patience, new, waits, shared=shared)
            except BaseException:
                held.drop(new)
                raise
        except EngineError as error:
            raise _failure(error) from error

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
            The session that had them has ended.
        """
        held = self._held.get(owner)
        if held is not None and not held.session.are_there():
            raise errors.SerializationError(
                "this transaction's row locks are lost: the session of the server that "
                "had them has ended; roll back and run it again"
            )

    def release(self, owner: int, keys: Collection[LockKey] | None = None) -> None:
        """Give back a transaction's locks, or those of some rows; idempotent."""
        if keys is None:
            held = self._held.pop(owner, None)
            if held is None:
                return
            held.session.close()
            return
        held = self._held.get(owner)
        if held is not None:
            # If the session is lost, so are its locks: that shows at the commit.
            with suppress(EngineError):
                held.drop(held.uses(keys))

    def close(self) -> None:
        """Give all locks back."""
        for owner in list(self._held):
            self.release(owner)


def _note_what_is_there(
    held: _Held,
    wanted: Iterable[tuple[int, Hashable]],
    new: list[tuple[_Mode, Hashable]],
    *,
    shared: bool,
) -> dict[int, list[Hashable]]:
    """Note uses of numbers that it has; the others, each with its users."""
    missing: dict[int, list[Hashable]] = {}
    for number, user in wanted:
        mode = held.has(number, shared=shared)
        if mode is None:
            missing.setdefault(number, []).append(user)
        elif user not in held.modes[mode]:
            held.modes[mode].add(user)
            new.append((mode, user))
    return missing


def _lock_missing(
    held: _Held,
    missing: dict[int, list[Hashable]],
    patience: float | None,
    new: list[tuple[_Mode, Hashable]],
    waits: Callable[[Hashable], None],
    *,
    shared: bool,
) -> None:
    """Lock numbers in their order: as many as are free at once, and wait for the next."""
    rest = list(missing)

    def note(count: int) -> None:
        for number in rest[:count]:
            held.modes[number, shared].update(missing[number])
            new.extend(((number, shared), user) for user in missing[number])
        del rest[:count]

    while rest:
        note(held.session.try_lock(rest, shared=shared))
        if not rest:
            break
        if patience == 0:
            raise lock_not_available()
        with held.waiting():
            waits(missing[rest[0]][0])
            try:
                held.session.lock(rest[0], shared=shared, patience=patience)
            finally:
                waits(None)
        note(1)


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
        "the wait for a row lock was cancelled", sqlstate="57014"
    )


def lock_not_available(why: str = "") -> errors.OperationalError:
    """The error when a row is locked by another transaction (SQLSTATE 55P03)."""
    return errors.OperationalError(
        f"{why}a row is locked by another transaction", sqlstate=LOCK_NOT_AVAILABLE
    )


def _failure(error: EngineError) -> errors.Error:
    if error.sqlstate == "40P01":
        return deadlock()
    if error.sqlstate == LOCK_NOT_AVAILABLE:
        return lock_not_available("lock_timeout is over: ")
    if error.sqlstate == "57014":
        return cancelled()
    return translated(error)
