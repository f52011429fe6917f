"""Turns: a transaction that lost its keys to another one is served before newcomers (P6).

First committer wins (P3) says which of two transactions fails, not which of them succeeds
at last: a thread that has just committed has the newest snapshot, and without a rule wins
again. The paper (section 2.3.4) gives priority to a transaction that failed: the keys of
its next attempt are reserved, for a bounded time.

A :class:`Contender` is one connection. When its commit loses, it takes a place in the
queues of all keys that it wrote, and :meth:`Contender.wait` returns when it is the first
in each: its *turn*. Until its next transaction ends, or the turn's time is over, other
contenders that are about to commit one of these keys wait (:meth:`Contender.give_way`).

Argument
--------
*Safety.* Turns decide when a transaction is certified, never whether it may commit: that
is the certifier's alone. A turn that is lost, late or wrong costs time or an attempt.

*No deadlock.* A place is taken in all queues at once, under ``_lock``, so that places are
totally ordered: the oldest one is the first in each of its queues. Only the holder of a turn
makes others wait, and it waits for no turn: a contender ends its own before it takes
another place.

*Bounds.* A turn lasts for a few times as long as the attempt that failed, at most
``_LONGEST_TURN``; each look at a queue removes turns that are over. A waiting
contender looks again when the turn before it is over. No wait is longer than
``_PATIENCE``. So a contender that does not come back, or whose thread died, holds
others up for the rest of one turn.

*No reservation for a contender that does not try again.* One that did not begin a
transaction for as long as a turn lasts gets none until it does so after a failure.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

from tique.commit.certification import written_keys

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tique.store.rows import Key
    from tique.writes.tickets import Committing

_Claim: TypeAlias = "tuple[int, tuple[int, ...], Key]"

_SHORTEST_TURN = 0.05
"""In seconds: a thread may have to wait so long for the GIL, among others."""
_LONGEST_TURN = 1.0
_TIMES = 4.0
"""A turn lasts for so many times as long as the attempt that failed."""
_PATIENCE = 5.0
_MOST_CLAIMS = 64
"""Of a larger write set only so many keys are reserved."""


class _Place:
    """A contender's place in the queues of some keys."""

    __slots__ = ("claims", "gone", "lasting", "opened", "over")

    def __init__(self, claims: Collection[_Claim], lasting: float) -> None:
        self.claims = claims
        self.lasting = lasting
        self.over: float | None = None
        """When its turn is over, by the monotonic clock; None: it is not its turn yet."""
        self.opened = threading.Event()
        self.gone = threading.Event()


class Turns:
    """The queues of one database's contenders, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._queues: dict[_Claim, deque[_Place]] = {}

    @property
    def are_taken(self) -> bool:
        """Whether there is any place; without the lock a newcomer may be too early."""
        return bool(self._queues)

    def take(self, claims: Collection[_Claim], lasting: float) -> _Place:
        """Take a place behind all others, in the queues of all these keys."""
        place = _Place(claims, lasting)
        with self._lock:
            for claim in claims:
                self._queues.setdefault(claim, deque()).append(place)
            self._open(place)
        return place

    def leave(self, place: _Place) -> None:
        """Give a place up; idempotent."""
        with self._lock:
            self._remove(place)

    def first(self, claims: Collection[_Claim]) -> _Place | None:
        """The open turn with one of these keys that is over last."""
        with self._lock:
            found = self._open_in(claims, time.monotonic())
            return max(found, key=lambda place: place.over or 0.0, default=None)

    def patience(self, place: _Place) -> float:
        """Seconds after which to look again whether a turn ahead of a place is over."""
        now = time.monotonic()
        with self._lock:
            found = [ahead.over or now for ahead in self._open_in(place.claims, now)]
        return max(0.0, min(found, default=now + _SHORTEST_TURN) - now)

    def _open_in(self, claims: Collection[_Claim], now: float) -> Iterator[_Place]:
        """The open turns among the keys' first places; removes those that are over."""
        for claim in claims:
            while queue := self._queues.get(claim):
                first = queue[0]
                if first.over is None:
                    break
                if first.over > now:
                    yield first
                    break
                self._remove(first)

    def _remove(self, place: _Place) -> None:
        place.gone.set()
        behind = []
        for claim in place.claims:
            queue = self._queues.get(claim)
            if queue is None or place not in queue:
                continue
            queue.remove(place)
            if queue:
                behind.append(queue[0])
            else:
                del self._queues[claim]
        for each in behind:
            self._open(each)

    def _open(self, place: _Place) -> None:
        """Begin its turn if it is the first everywhere."""
        if place.over is None and all(
            self._queues[claim][0] is place for claim in place.claims
        ):
            place.over = time.monotonic() + place.lasting
            place.opened.set()


class Contender:
    """One connection among those that want the same keys; used by one thread at a time.

    Parameters
    ----------
    turns
        The database's.
    """

    def __init__(self, turns: Turns) -> None:
        self._turns = turns
        self._place: _Place | None = None
        self._began = 0.0
        self._expected: float | None = None
        """Until when a transaction is expected that tries again."""
        self._tries_again = True

    def begin(self) -> None:
        """Note that a transaction begins."""
        self._began = time.monotonic()
        if self._expected is not None:
            self._tries_again = self._began < self._expected
            self._expected = None

    def end(self) -> None:
        """Note that the transaction ended: the turn is over."""
        place, self._place = self._place, None
        if place is not None:
            self._turns.leave(place)

    def give_way(self, transaction: Committing) -> None:
        """Wait while a key of the write set is reserved for another contender."""
        if not self._turns.are_taken:
            return
        claims = _claims(transaction)
        if self._place is not None:
            claims.difference_update(self._place.claims)
        latest = time.monotonic() + _PATIENCE
        while (place := self._turns.first(claims)) and time.monotonic() < latest:
            place.gone.wait(self._turns.patience(place))

    def lose(self, transaction: Committing) -> None:
        """Take a place in the queues of the keys, for the next attempt."""
        self.end()
        now = time.monotonic()
        lasting = min(max(_SHORTEST_TURN, _TIMES * (now - self._began)), _LONGEST_TURN)
        self._expected = now + lasting
        claims = _claims(transaction)
        if claims and self._tries_again:
            self._place = self._turns.take(claims, lasting)

    def wait(self) -> None:
        """Wait for the turn that :meth:`lose` asked for; at most ``_PATIENCE`` seconds."""
        place = self._place
        if place is None:
            return
        latest = time.monotonic() + _PATIENCE
        try:
            while not place.opened.wait(self._turns.patience(place)):
                if time.monotonic() > latest:
                    self.end()
                    break
        except BaseException:
            self.end()
            raise
        self._expected = time.monotonic() + place.lasting


def _claims(transaction: Committing) -> set[_Claim]:
    claims: set[_Claim] = set()
    for writes in transaction.writes.values():
        if writes.is_staged:
            continue
        for positions, entries in written_keys(writes):
            for key, _ in entries:
                claims.add((writes.table.id, positions, key))
                if len(claims) >= _MOST_CLAIMS:
                    return claims
    return claims
