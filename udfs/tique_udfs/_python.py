"""The sequencer in Python, for machines without a C compiler."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from threading import Condition, Lock

from ._interface import (
    RING_CAPACITY,
    ActiveSnapshot,
    Sequencer,
    bounded,
    check_start,
)


class PythonSequencer(Sequencer):
    """A :class:`Sequencer` under one lock.

    A finaliser can run while its own thread holds the lock, so :meth:`end` takes
    none: it notes the txid, and whoever next looks at the active snapshots
    removes them first.
    """

    kind = "python"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._lock = Lock()
        self._advanced = Condition(self._lock)
        self._is_closed = False
        self._txid = 0
        self._cts = 0
        self._sts = 0
        self._finished: set[int] = set()
        # Ordered by sts, because sts never decreases: the first one is λ.
        self._active: OrderedDict[int, tuple[int, float]] = OrderedDict()
        self._ended: deque[int] = deque()

    def recover(self, *, sts: int, txid: int) -> None:
        check_start(sts=sts, txid=txid)
        with self._lock:
            self._settle()
            if self._active or self._sts != self._cts:
                raise self._in_use()
            if sts < self._sts or txid < self._txid:
                raise self._backwards(sts, txid)
            self._sts = self._cts = sts
            self._txid = txid
            self._advanced.notify_all()

    def begin(self) -> tuple[int, int]:
        with self._lock:
            self._settle()
            self._txid += 1
            self._active[self._txid] = (self._sts, time.monotonic())
            return self._txid, self._sts

    def refresh(self, txid: int) -> int:
        with self._lock:
            self._settle()
            if txid not in self._active:
                raise self._not_active(txid)
            self._active[txid] = (self._sts, time.monotonic())
            self._active.move_to_end(txid)
            return self._sts

    def end(self, txid: int) -> None:
        if not self._is_closed and not 0 < txid <= self._txid:
            raise self._never_handed_out("txid", txid)
        self._ended.append(txid)

    def next_cts(self) -> int:
        with self._lock:
            self._settle()
            if self._cts - self._sts >= RING_CAPACITY:
                raise self._ring_full()
            self._cts += 1
            return self._cts

    def finish(self, cts: int) -> None:
        with self._lock:
            self._settle()
            if not 0 < cts <= self._cts:
                raise self._never_handed_out("cts", cts)
            if cts <= self._sts:
                return
            self._finished.add(cts)
            before = self._sts
            while self._sts + 1 in self._finished:
                self._sts += 1
                self._finished.remove(self._sts)
            if self._sts > before:
                self._advanced.notify_all()

    def sts(self) -> int:
        with self._lock:
            self._settle()
            return self._sts

    def cts(self) -> int:
        with self._lock:
            self._settle()
            return self._cts

    def stable(self) -> int:
        with self._lock:
            self._settle()
            for sts, _ in self._active.values():
                return sts
            return self._sts

    def wait(self, cts: int, timeout: float) -> bool:
        def over() -> bool:
            return self._is_closed or self._sts >= cts

        seconds = bounded(timeout)
        with self._lock:
            self._advanced.wait_for(over, seconds)
            self._settle()
            return self._sts >= cts

    def active(self) -> list[ActiveSnapshot]:
        with self._lock:
            self._settle()
            now = time.monotonic()
            return [
                ActiveSnapshot(txid, sts, now - taken)
                for txid, (sts, taken) in self._active.items()
            ]

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._active.clear()
            self._ended.clear()
            self._advanced.notify_all()

    def _settle(self) -> None:
        if self._is_closed:
            raise self._closed()
        while self._ended:
            self._active.pop(self._ended.popleft(), None)
