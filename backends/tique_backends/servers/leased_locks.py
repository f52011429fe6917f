"""Row locks in the sequencer inside a server (:mod:`tique_backends.servers.row_locks`).

A transaction that locks rows has a *locker* of this process's client there (``sequencer.h``,
"Row locks"). It needs no session of its own: its locks go with the client's lease, whatever the
process does, and however it is stopped. A
wait is a call that takes up to a second, over and over, for which a session of the server is in
use: a server has room for so many of them. The place in the queue is kept
between two calls, and is given up as soon as the wait is over without the lock.

*A wait for this process's own*. A transaction may wait in memory for another one, which waits in
the server (:mod:`tique.commit.locks`). The server sees no circle through memory. So
each locker that waits has its own number locked first, and one that waits in memory waits in the server, too, for the
other's number, shared: all edges are in one graph.

*Numbers of two modes* are asked for in one request, each mode by a call, which locks the first ones that are free.

*If a reply is lost* the call is repeated: to lock, or to give back, a second time changes
nothing. A locker whose number got lost goes with the client.
"""

from __future__ import annotations

import time
from contextlib import suppress
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.servers.row_locks import RowLocks
from tique_backends.sharing import FencedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Request = tuple[str, Sequence[int | Sequence[int]]]
    Answers = tuple[list[int], int | None]
    """One for each request, and :attr:`RowLocks.begun` after them."""

_LONGEST_WAIT = 1.0

DEADLOCK, INTERRUPTED, GONE = -18, -19, -4
"""Answers of the sequencer to a lock's request."""

_LOST = {
    DEADLOCK: ("the wait for a row lock would close a circle", "40P01"),
    INTERRUPTED: ("the wait for a row lock was interrupted", "57014"),
    GONE: ("the row locks of this transaction are gone", None),
}


class LeasedLocks(RowLocks):
    """A transaction's locker.

    Parameters
    ----------
    call
        Calls functions of the sequencer for this process's client, one after the other; each
        is its name, numbers, and perhaps a list of them.
    """

    def __init__(self, call: Callable[[Sequence[Request]], Answers]) -> None:
        super().__init__()
        self._call = call
        ((self.locker,), _) = call([("open_locker", ())])
        self._is_awaitable = False

    @override
    def try_lock(self, numbers: Sequence[tuple[int, bool]]) -> list[tuple[int, bool]]:
        self._expect_room(len(numbers))
        parts = _parts(numbers)
        locked = [
            (number, shared)
            for (part, shared), count in zip(parts, self._ask(*parts), strict=True)
            for number in part[:count]
        ]
        self._count += len(locked)
        return locked

    @override
    def lock(self, number: int, *, shared: bool, patience: float | None) -> None:
        self._expect_room(1)
        self._let_wait()
        latest = None if patience is None else time.monotonic() + patience
        try:
            while True:
                left = _LONGEST_WAIT if latest is None else latest - time.monotonic()
                # Without any time it would not wait, and lose its place.
                wait = max(0.001, min(left, _LONGEST_WAIT))
                if self._ask(([number], shared), seconds=wait) == [1]:
                    self._count += 1
                    return
                if latest is not None and time.monotonic() >= latest:
                    raise EngineError(
                        ErrorKind.OPERATIONAL,
                        "a row is locked by another transaction",
                        "55P03",
                    )
        except BaseException:
            with suppress(EngineError):
                self.end_wait()
            raise

    def _let_wait(self) -> None:
        if not self._is_awaitable:
            self._ask(([self.locker], False))
            self._is_awaitable = True

    @override
    def wait_for(self, other: RowLocks) -> None:
        self._let_wait()
        if isinstance(other, LeasedLocks) and other._is_awaitable:
            self._ask(([other.locker], True), seconds=0.001)

    @override
    def end_wait(self) -> None:
        self._ask(((), False))

    def _ask(
        self, *parts: tuple[Sequence[int], bool], seconds: float = 0.0
    ) -> list[int]:
        milliseconds = int(seconds * 1000)
        answers, self.begun = self._call(
            [
                ("lock", (self.locker, shared, milliseconds, numbers))
                for numbers, shared in parts
            ]
        )
        for answer in _LOST.keys() & set(answers):
            message, sqlstate = _LOST[answer]
            raise EngineError(ErrorKind.OPERATIONAL, message, sqlstate)
        return answers

    @override
    def unlock(self, numbers: Sequence[tuple[int, bool]]) -> None:
        parts = _parts(sorted(numbers, key=itemgetter(1)))
        if parts:
            self._call(
                [("unlock", (self.locker, mode, given)) for given, mode in parts]
            )
        self._count -= len(numbers)

    @override
    def are_there(self) -> bool:
        try:
            answers, _ = self._call([("lock", (self.locker, False, 0, ()))])
        except (FencedError, ConnectionLostError):
            return False
        return answers == [0]

    @override
    def interrupt(self) -> None:
        self._call([("interrupt_locker", (self.locker,))])

    @override
    def close(self) -> None:
        with suppress(EngineError):
            self._call([("close_locker", (self.locker,))])


def _parts(numbers: Iterable[tuple[int, bool]]) -> list[tuple[list[int], bool]]:
    """Numbers that follow one another in one mode, and that mode."""
    parts = groupby(numbers, itemgetter(1))
    return [([number for number, _ in part], shared) for shared, part in parts]
