"""The sequencer in Python, for machines without a C compiler."""

from __future__ import annotations

import bisect
import secrets
import time
from collections import OrderedDict, deque
from threading import Condition, Lock
from typing import TYPE_CHECKING

from ._interface import (
    RING_CAPACITY,
    ActiveSnapshot,
    KeyConflictError,
    Sequencer,
    bounded,
    check_start,
    joined,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

_NOBODY = 0
_DOUBTFUL = -1
_FIRST_SWEEP = 1024


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
        self._active: OrderedDict[int, tuple[int, float, int]] = OrderedDict()
        self._ended: deque[int] = deque()
        self._clients: dict[int, float] = {}
        # Of the timestamps that sts does not cover.
        self._owners: dict[int, int] = {}
        self._fences: list[int] = []
        # The last commit of a key and the one before; a key's last commit is what
        # a timestamp under way entered.
        self._writes: dict[bytes, tuple[int, int]] = {}
        self._write_sets: dict[int, list[bytes]] = {}
        self._sweep_at = _FIRST_SWEEP
        self._barrier = 0

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
            return self._start(_NOBODY)

    def refresh(self, txid: int) -> int:
        with self._lock:
            self._settle()
            return self._restart(_NOBODY, txid)

    def end(self, txid: int) -> None:
        if not self._is_closed and not 0 < txid <= self._txid:
            raise self._never_handed_out("txid", txid)
        self._ended.append(txid)

    def next_cts(self) -> int:
        with self._lock:
            self._settle()
            return self._take(_NOBODY)

    def finish(self, cts: int) -> None:
        with self._lock:
            self._settle()
            self._finish(_NOBODY, cts)

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
            return self._stable()

    def wait(self, cts: int, timeout: float) -> bool:
        deadline = time.monotonic() + bounded(timeout)
        with self._lock:
            self._settle()
            while self._sts < cts and not 0 < self._doubtful() <= cts:
                due = min([deadline, *self._clients.values()])
                left = due - time.monotonic()
                if left <= 0:
                    break
                self._advanced.wait(left)
                self._settle()
            return self._sts >= cts

    def join(self, lease: float) -> int:
        with self._lock:
            self._settle()
            client = 0
            while client in (0, *self._clients):
                client = secrets.randbits(63)
            self._clients[client] = time.monotonic() + bounded(lease)
            self._advanced.notify_all()
            return client

    def renew(self, client: int, lease: float) -> None:
        with self._lock:
            self._settle(client)
            self._clients[client] = time.monotonic() + bounded(lease)
            self._advanced.notify_all()

    def leave(self, client: int) -> None:
        with self._lock:
            self._settle(client)
            self._bury(client)

    def sts_for(self, client: int) -> int:
        with self._lock:
            self._settle(client)
            return self._sts

    def begin_for(self, client: int) -> tuple[int, int]:
        with self._lock:
            self._settle(client)
            return self._start(client)

    def advance_for(self, client: int, txid: int, sts: int) -> None:
        with self._lock:
            self._settle(client)
            snapshot, _, owner = self._active.get(txid, (0, 0.0, _DOUBTFUL))
            if owner != client or not snapshot <= sts <= self._sts:
                raise self._not_active(txid)
            self._active[txid] = (sts, time.monotonic(), client)
            in_order = sorted(self._active.items(), key=lambda entry: entry[1][0])
            self._active = OrderedDict(in_order)

    def end_for(self, client: int, txid: int) -> None:
        with self._lock:
            self._settle(client)
            if txid not in self._active:
                if not 0 < txid <= self._txid:
                    raise self._never_handed_out("txid", txid)
            elif self._active[txid][2] != client:
                raise self._never_handed_out("txid", txid)
            else:
                del self._active[txid]

    def next_cts_for(self, client: int) -> int:
        with self._lock:
            self._settle(client)
            self._barrier = self._take(client)
            return self._barrier

    def finish_for(self, client: int, cts: int) -> None:
        with self._lock:
            self._settle(client)
            self._finish(client, cts)

    def certify_for(
        self, client: int, txid: int, sts: int, keys: Sequence[bytes]
    ) -> int:
        joined(keys)
        with self._lock:
            self._settle(client)
            snapshot, _, owner = self._active.get(txid, (0, 0.0, _DOUBTFUL))
            if owner != client or not snapshot <= sts <= self._sts:
                raise self._not_active(txid)
            if self._barrier > sts:
                raise KeyConflictError(self._barrier)
            self._sweep()
            for key in keys:
                winner = self._writes.get(key, (0, 0))[0]
                if winner > sts:
                    raise KeyConflictError(winner)
            cts = self._take(client)
            self._write_sets[cts] = written = list(dict.fromkeys(keys))
            for key in written:
                self._writes[key] = (cts, self._writes.get(key, (0, 0))[0])
            return cts

    def abort_for(self, client: int, cts: int) -> None:
        with self._lock:
            self._settle(client)
            if self._owners.get(cts) == client:
                self._revert(cts)
            self._finish(client, cts)

    def keys(self) -> int:
        with self._lock:
            self._settle()
            return len(self._writes)

    def clients(self) -> int:
        with self._lock:
            self._settle()
            return len(self._clients)

    def doubtful(self) -> int:
        with self._lock:
            self._settle()
            return self._doubtful()

    def fence(self, cts: int) -> None:
        with self._lock:
            self._settle()
            if cts in self._fences:
                return
            if cts not in self._unfinished(_DOUBTFUL):
                raise self._not_doubtful(cts)
            bisect.insort(self._fences, cts)
            self._revert(cts)
            self._finish(_DOUBTFUL, cts)

    def fences(self) -> list[int]:
        with self._lock:
            self._settle()
            return list(self._fences)

    def forget_fence(self, cts: int) -> None:
        with self._lock:
            self._settle()
            if cts not in self._fences:
                raise self._no_fence(cts)
            self._fences.remove(cts)

    def active(self) -> list[ActiveSnapshot]:
        with self._lock:
            self._settle()
            now = time.monotonic()
            return [
                ActiveSnapshot(txid, sts, now - taken)
                for txid, (sts, taken, _) in self._active.items()
            ]

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._active.clear()
            self._ended.clear()
            self._advanced.notify_all()

    def _start(self, client: int) -> tuple[int, int]:
        self._txid += 1
        self._active[self._txid] = (self._sts, time.monotonic(), client)
        return self._txid, self._sts

    def _restart(self, client: int, txid: int) -> int:
        if txid not in self._active or self._active[txid][2] != client:
            raise self._not_active(txid)
        self._active[txid] = (self._sts, time.monotonic(), client)
        self._active.move_to_end(txid)
        return self._sts

    def _take(self, client: int) -> int:
        if self._cts - self._sts >= RING_CAPACITY:
            raise self._ring_full()
        self._cts += 1
        self._owners[self._cts] = client
        return self._cts

    def _finish(self, client: int, cts: int) -> None:
        if not 0 < cts <= self._cts:
            raise self._never_handed_out("cts", cts)
        if cts <= self._sts:
            return
        if self._owners[cts] != client:
            raise self._never_handed_out("cts", cts)
        self._write_sets.pop(cts, None)
        self._finished.add(cts)
        before = self._sts
        while self._sts + 1 in self._finished:
            self._sts += 1
            self._finished.remove(self._sts)
            del self._owners[self._sts]
        if self._sts > before:
            self._advanced.notify_all()

    def _revert(self, cts: int) -> None:
        for key in self._write_sets.pop(cts, ()):
            previous = self._writes[key][1]
            self._writes[key] = (previous, previous)

    def _sweep(self) -> None:
        """Forget keys that can refuse nobody any more, now and then."""
        if len(self._writes) < self._sweep_at:
            return
        stable = self._stable()
        self._writes = {
            key: entry for key, entry in self._writes.items() if entry[0] > stable
        }
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._writes))

    def _stable(self) -> int:
        return next((sts for sts, _, _ in self._active.values()), self._sts)

    def _doubtful(self) -> int:
        return next(iter(self._unfinished(_DOUBTFUL)), 0)

    def _unfinished(self, owner: int) -> list[int]:
        """The timestamps that this owner has to finish, in ascending order."""
        return [
            cts
            for cts, found in self._owners.items()
            if found == owner and cts not in self._finished
        ]

    def _bury(self, client: int) -> None:
        """Drop a client, its snapshots, and its hold on its timestamps."""
        del self._clients[client]
        for txid in [t for t, entry in self._active.items() if entry[2] == client]:
            del self._active[txid]
        for cts in self._unfinished(client):
            self._owners[cts] = _DOUBTFUL
        self._advanced.notify_all()

    def _settle(self, client: int | None = None) -> None:
        """Do what is due, then make sure that the client is still there."""
        if self._is_closed:
            raise self._closed()
        while self._ended:
            self._active.pop(self._ended.popleft(), None)
        if self._clients:
            now = time.monotonic()
            for late in [c for c, deadline in self._clients.items() if deadline <= now]:
                self._bury(late)
        if client is not None and client not in self._clients:
            raise self._fenced()
