"""The row locks of the sequencer in Python, as ``core/locks.c`` has them in C."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from threading import Condition, Lock
from typing import TYPE_CHECKING

from typing_extensions import override

from ._interface import (
    LOCK_CAPACITY,
    LOCKER_CAPACITY,
    LOCKERS_PER_CLIENT,
    LOCKS_PER_CLIENT,
    LOCKS_PER_LOCKER,
    Sequencer,
    bounded,
)

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

_BOTH = (False, True)


class _Locker:
    """An owner of row locks: its numbers, each with whether it shares it."""

    def __init__(self, client: int) -> None:
        self.client = client
        self.modes: set[tuple[int, bool]] = set()
        self.awaited: tuple[int, bool] | None = None
        self.turn = 0
        self.is_interrupted = False

    def has(self, number: int) -> bool:
        """Whether it has a number in any mode."""
        return any((number, shared) in self.modes for shared in _BOTH)


class LockingSequencer(Sequencer):
    """What a :class:`Sequencer` does with row locks, under the one lock of all it does.

    Each call settles first: a client whose lease is over has no locks.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._lock = Lock()
        # Of all that a call may wait for: sts, a lock, the end of a lease.
        self._advanced = Condition(self._lock)
        self._first_deadline = math.inf
        self._lockers: dict[int, _Locker] = {}
        self._opened = 0
        self._turns = 0
        # The owners of each number, with whether they share it.
        self._holders: dict[int, set[tuple[int, bool]]] = {}

    @abstractmethod
    def _settle(self, client: int | None = None) -> None:
        """Apply ends and leases that are due, then check that the client is there."""

    @override
    def open_locker(self, client: int) -> int:
        with self._lock:
            self._settle(client)
            own = [one for one in self._lockers.values() if one.client == client]
            if len(own) >= LOCKERS_PER_CLIENT:
                raise self._client_too_much()
            if len(self._lockers) >= LOCKER_CAPACITY:
                raise self._locks_full()
            self._opened += 1
            self._lockers[self._opened] = _Locker(client)
            return self._opened

    @override
    def close_locker(self, client: int, locker: int) -> None:
        with self._lock:
            self._settle(client)
            self._locker(client, locker)
            self._close_locker(locker)
            self._advanced.notify_all()

    @override
    def lock(
        self,
        client: int,
        locker: int,
        numbers: Sequence[int],
        *,
        shared: bool,
        timeout: float = 0.0,
    ) -> int:
        deadline = time.monotonic() + bounded(timeout)
        done = 0
        with self._lock:
            self._settle(client)
            own = self._locker(client, locker)
            if timeout > 0 and len(numbers) != 1:
                raise self._no_locker(locker)
            if timeout <= 0 or own.awaited != (numbers[0], shared):
                self._end_wait(own)
            while True:
                self._expect_room_for_locks(own, len(numbers) - done)
                while done < len(numbers) and self._is_free(
                    locker, numbers[done], shared=shared
                ):
                    own.modes.add((numbers[done], shared))
                    self._holders.setdefault(numbers[done], set()).add((locker, shared))
                    self._end_wait(own)
                    done += 1
                if done == len(numbers) or timeout <= 0:
                    return done
                if own.is_interrupted:
                    self._end_wait(own)
                    raise self._interrupted()
                if own.awaited is None:
                    self._turns += 1
                    own.awaited, own.turn = (numbers[done], shared), self._turns
                    if self._closes_circle(locker):
                        self._end_wait(own)
                        raise self._deadlock()
                left = deadline - time.monotonic()
                if left <= 0:
                    return done
                until = min(deadline, self._first_deadline)
                self._advanced.wait(until - time.monotonic())
                self._settle(client)
                own = self._locker(client, locker)
                if own.awaited is None:
                    # Another call for it came.
                    raise self._interrupted()

    @override
    def unlock(
        self, client: int, locker: int, numbers: Sequence[int], *, shared: bool
    ) -> None:
        with self._lock:
            self._settle(client)
            own = self._locker(client, locker)
            self._end_wait(own)
            if len(numbers) > LOCKS_PER_LOCKER:
                raise self._client_too_much()
            for number in numbers:
                self._drop_lock(locker, own, (number, shared))
            self._advanced.notify_all()

    @override
    def interrupt_locker(self, client: int, locker: int) -> None:
        with self._lock:
            self._settle(client)
            own = self._locker(client, locker)
            own.is_interrupted = own.awaited is not None
            self._advanced.notify_all()

    @override
    def locks(self) -> int:
        with self._lock:
            self._settle()
            return sum(map(len, self._holders.values()))

    def _locker(self, client: int, locker: int) -> _Locker:
        found = self._lockers.get(locker)
        if found is None or found.client != client:
            raise self._no_locker(locker)
        return found

    def _end_wait(self, own: _Locker) -> None:
        if own.awaited is not None:
            own.awaited, own.is_interrupted = None, False
            self._advanced.notify_all()

    def _drop_lock(self, locker: int, own: _Locker, mode: tuple[int, bool]) -> None:
        if mode in own.modes:
            own.modes.remove(mode)
            number, shared = mode
            holders = self._holders[number]
            holders.remove((locker, shared))
            if not holders:
                del self._holders[number]

    def _close_locker(self, locker: int) -> None:
        own = self._lockers.pop(locker)
        for mode in list(own.modes):
            self._drop_lock(locker, own, mode)

    def _close_lockers(self, clients: Container[int]) -> None:
        for locker in [n for n, one in self._lockers.items() if one.client in clients]:
            self._close_locker(locker)

    def _expect_room_for_locks(self, own: _Locker, more: int) -> None:
        of_client = sum(
            len(one.modes) for one in self._lockers.values() if one.client == own.client
        )
        if (
            len(own.modes) + more > LOCKS_PER_LOCKER
            or of_client + more > LOCKS_PER_CLIENT
        ):
            raise self._client_too_much()
        if sum(map(len, self._holders.values())) + more > LOCK_CAPACITY:
            raise self._locks_full()

    def _is_held(self, locker: int, number: int, *, shared: bool) -> bool:
        """Whether others have a number so that it cannot be had in a mode."""
        return bool(self._holders_against(locker, number, shared=shared))

    def _holders_against(self, locker: int, number: int, *, shared: bool) -> set[int]:
        return {
            other
            for other, shares in self._holders.get(number, ())
            if other != locker and not (shared and shares)
        }

    def _waiters_before(self, locker: int, number: int, *, shared: bool) -> set[int]:
        own = self._lockers[locker]
        # One that has it already comes before all that wait.
        if own.has(number):
            return set()
        last = math.inf if own.awaited is None else own.turn
        return {
            other
            for other, one in self._lockers.items()
            if one.awaited is not None
            and other != locker
            and one.awaited[0] == number
            and not (shared and one.awaited[1])
            and one.turn < last
        }

    def _is_free(self, locker: int, number: int, *, shared: bool) -> bool:
        return not self._is_held(
            locker, number, shared=shared
        ) and not self._waiters_before(locker, number, shared=shared)

    def _closes_circle(self, locker: int) -> bool:
        seen, ahead = {locker}, [locker]
        while ahead:
            one = ahead.pop()
            awaited = self._lockers[one].awaited
            if awaited is None:
                continue
            number, shared = awaited
            others = self._holders_against(one, number, shared=shared)
            others |= self._waiters_before(one, number, shared=shared)
            if locker in others:
                return True
            ahead += others - seen
            seen |= others
        return False
