"""The sequencer in Python, for machines without a C compiler."""

from __future__ import annotations

import bisect
import math
import secrets
import time
from collections import Counter, OrderedDict, deque
from typing import TYPE_CHECKING

from typing_extensions import override

from ._interface import (
    BARRIERS_PER_CLIENT,
    CLIENT_CAPACITY,
    EXCLUSIVE_PREFIX,
    FENCE_CAPACITY,
    KEY_CAPACITY,
    KEYS_PER_CALL,
    RING_CAPACITY,
    SHARED_PREFIX,
    SNAPSHOT_CAPACITY,
    SNAPSHOTS_PER_CLIENT,
    ActiveSnapshot,
    KeyConflictError,
    KeysLockedError,
    bounded,
    check_start,
    joined,
    lock_number,
    rivals,
)
from ._python_locks import LockingSequencer

if TYPE_CHECKING:
    from collections.abc import Collection, Container, Sequence

_NOBODY = 0
_DOUBTFUL = -1
_MODED = (SHARED_PREFIX, EXCLUSIVE_PREFIX)


class PythonSequencer(LockingSequencer):
    """A :class:`Sequencer` under one lock.

    A finaliser can run while its own thread holds the lock, so :meth:`end` takes
    none: it notes the txid, and the next call that looks at the active snapshots
    removes it first.

    Keys need no secret here: Python hashes bytes under one of the process's own.
    """

    kind = "python"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._is_closed = False
        self._txid = 0
        self._cts = 0
        self._sts = 0
        self._finished: set[int] = set()
        # Ordered by sts, because sts never decreases: the first one is λ.
        self._active: OrderedDict[int, tuple[int, float, int]] = OrderedDict()
        self._ended: deque[int] = deque()
        self._clients: dict[int, float] = {}
        # By client: its snapshots, and the timestamps that it has to finish.
        self._snapshots: Counter[int] = Counter()
        self._open: Counter[int] = Counter()
        # The owners of the timestamps that sts does not cover.
        self._owners: dict[int, int] = {}
        self._fences: list[int] = []
        # The keys that were written, in the order of timestamps; and each key's
        # timestamps, without those that were taken back.
        self._log: deque[tuple[int, bytes]] = deque()
        self._stamps: dict[bytes, list[int]] = {}
        # The write sets of the timestamps that are not finished.
        self._written: dict[int, Sequence[bytes]] = {}
        # The log has all later commits' keys.
        self._barrier = 0

    @override
    def recover(self, *, sts: int, txid: int) -> None:
        check_start(sts=sts, txid=txid)
        with self._lock:
            self._settle()
            if self._active or self._sts != self._cts:
                raise self._in_use()
            if sts < self._sts or txid < self._txid:
                raise self._backwards(sts, txid)
            self._sts = self._cts = self._barrier = sts
            self._txid = txid
            self._advanced.notify_all()

    @override
    def skip_txids(self, txid: int) -> None:
        check_start(sts=0, txid=txid)
        with self._lock:
            self._settle()
            self._txid = max(self._txid, txid)

    @override
    def begin(self) -> tuple[int, int]:
        with self._lock:
            self._settle()
            return self._start(_NOBODY)

    @override
    def refresh(self, txid: int) -> int:
        with self._lock:
            self._settle()
            return self._restart(_NOBODY, txid)

    @override
    def end(self, txid: int) -> None:
        if not self._is_closed and not 0 < txid <= self._txid:
            raise self._never_handed_out("txid", txid)
        self._ended.append(txid)

    @override
    def next_cts(self) -> int:
        with self._lock:
            self._settle()
            return self._take(_NOBODY)

    @override
    def finish(self, cts: int) -> None:
        with self._lock:
            self._settle()
            self._finish(_NOBODY, cts)

    @override
    def sts(self) -> int:
        with self._lock:
            self._settle()
            return self._sts

    @override
    def cts(self) -> int:
        with self._lock:
            self._settle()
            return self._cts

    @override
    def stable(self) -> int:
        with self._lock:
            self._settle()
            return self._stable()

    @override
    def wait(self, cts: int, timeout: float) -> bool:
        deadline = time.monotonic() + bounded(timeout)
        with self._lock:
            self._settle()
            while self._sts < cts and not 0 < self._doubtful() <= cts:
                left = min(deadline, self._first_deadline) - time.monotonic()
                if left <= 0:
                    break
                self._advanced.wait(left)
                self._settle()
            return self._sts >= cts

    @override
    def join(self, lease: float) -> int:
        with self._lock:
            self._settle()
            if len(self._clients) >= CLIENT_CAPACITY:
                raise self._clients_full()
            client = 0
            while client in (0, *self._clients):
                client = secrets.randbits(63)
            self._lease(client, lease)
            return client

    @override
    def renew(self, client: int, lease: float) -> None:
        with self._lock:
            self._settle(client)
            self._lease(client, lease)

    @override
    def leave(self, client: int) -> None:
        with self._lock:
            self._settle(client)
            self._bury({client})

    @override
    def sts_for(self, client: int) -> int:
        with self._lock:
            self._settle(client)
            return self._sts

    @override
    def begin_for(self, client: int) -> tuple[int, int]:
        with self._lock:
            self._settle(client)
            return self._start(client)

    @override
    def advance_for(self, client: int, txid: int, sts: int) -> None:
        with self._lock:
            self._settle(client)
            snapshot, _, owner = self._active.get(txid, (0, 0.0, _DOUBTFUL))
            if owner != client or not snapshot <= sts <= self._sts:
                raise self._not_active(txid)
            self._active[txid] = (sts, time.monotonic(), client)
            self._active.move_to_end(txid)
            in_order = sorted(self._active.items(), key=lambda entry: entry[1][0])
            self._active = OrderedDict(in_order)

    @override
    def end_for(self, client: int, txid: int) -> None:
        with self._lock:
            self._settle(client)
            if txid not in self._active:
                if not 0 < txid <= self._txid:
                    raise self._never_handed_out("txid", txid)
            elif self._active[txid][2] != client:
                raise self._never_handed_out("txid", txid)
            else:
                self._drop(txid)

    @override
    def next_cts_for(self, client: int) -> int:
        with self._lock:
            self._settle(client)
            if self._open[client] >= BARRIERS_PER_CLIENT:
                raise self._client_too_much()
            self._barrier = self._take(client)
            return self._barrier

    @override
    def finish_for(self, client: int, cts: int) -> None:
        with self._lock:
            self._settle(client)
            self._finish(client, cts)

    @override
    def certify_for(
        self, client: int, sts: int, keys: Sequence[bytes], locker: int = 0
    ) -> int:
        joined(keys)
        with self._lock:
            self._settle(client)
            if locker:
                self._locker(client, locker)
            locked = {
                number
                for number in map(lock_number, filter(_may_be_locked, keys))
                if self._is_held(locker, number, shared=False)
            }
            if locked and len(keys) <= KEYS_PER_CALL:
                raise KeysLockedError(frozenset(locked))
            if not 0 <= sts <= self._sts:
                raise self._not_finished(sts)
            if len(keys) > KEYS_PER_CALL:
                raise self._too_many_keys()
            if self._barrier > sts:
                raise KeyConflictError(self._barrier)
            for key in keys:
                for rival in rivals(key):
                    winner = self._stamps.get(rival, [0])[-1]
                    if winner > sts:
                        raise KeyConflictError(winner)
            cts = self._take(client)
            if not self._make_room(len(keys)):
                self._barrier = cts
                return cts
            for key in keys:
                self._log.append((cts, key))
                self._stamps.setdefault(key, []).append(cts)
            self._written[cts] = keys
            return cts

    @override
    def abort_for(self, client: int, cts: int) -> None:
        with self._lock:
            self._settle(client)
            if self._is_under_way(client, cts):
                self._revert(cts)
            self._finish(client, cts)

    @override
    def keys(self) -> int:
        with self._lock:
            self._settle()
            return len(self._log)

    @override
    def clients(self) -> int:
        with self._lock:
            self._settle()
            return len(self._clients)

    @override
    def doubtful(self) -> int:
        with self._lock:
            self._settle()
            return self._doubtful()

    @override
    def doubts(self, most: int) -> list[int]:
        with self._lock:
            self._settle()
            return self._unfinished({_DOUBTFUL})[:most]

    @override
    def fence(self, cts: int) -> None:
        with self._lock:
            self._settle()
            if cts in self._fences:
                return
            if not self._is_under_way(_DOUBTFUL, cts):
                raise self._not_doubtful(cts)
            if len(self._fences) >= FENCE_CAPACITY:
                raise self._fences_full()
            bisect.insort(self._fences, cts)
            self._revert(cts)
            self._finish(_DOUBTFUL, cts)

    @override
    def fences(self) -> list[int]:
        with self._lock:
            self._settle()
            return list(self._fences)

    @override
    def forget_fences(self, until: int) -> int:
        with self._lock:
            self._settle()
            count = bisect.bisect_right(self._fences, until)
            del self._fences[:count]
            return count

    @override
    def active(self) -> list[ActiveSnapshot]:
        with self._lock:
            self._settle()
            now = time.monotonic()
            return [
                ActiveSnapshot(txid, sts, now - taken)
                for txid, (sts, taken, _) in self._active.items()
            ]

    @override
    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._active.clear()
            self._ended.clear()
            self._advanced.notify_all()

    def _lease(self, client: int, lease: float) -> None:
        self._clients[client] = time.monotonic() + bounded(lease)
        self._note_deadlines()

    def _note_deadlines(self) -> None:
        self._first_deadline = min(self._clients.values(), default=math.inf)
        self._advanced.notify_all()

    def _start(self, client: int) -> tuple[int, int]:
        if len(self._active) >= SNAPSHOT_CAPACITY:
            raise self._snapshots_full()
        if client != _NOBODY:
            if self._snapshots[client] >= SNAPSHOTS_PER_CLIENT:
                raise self._client_too_much()
            self._snapshots[client] += 1
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
        if client != _NOBODY:
            self._open[client] += 1
        return self._cts

    def _finish(self, client: int, cts: int) -> None:
        if not 0 < cts <= self._cts:
            raise self._never_handed_out("cts", cts)
        if cts <= self._sts:
            return
        if self._owners[cts] != client:
            raise self._never_handed_out("cts", cts)
        if client in self._open and cts not in self._finished:
            self._open[client] -= 1
        self._finished.add(cts)
        self._written.pop(cts, None)
        before = self._sts
        while self._sts + 1 in self._finished:
            self._sts += 1
            self._finished.remove(self._sts)
            del self._owners[self._sts]
        if self._sts > before:
            self._advanced.notify_all()

    def _make_room(self, count: int) -> bool:
        """Forget the oldest writes, if sts covers as many as must go."""
        excess = len(self._log) + count - KEY_CAPACITY
        if excess <= 0:
            return True
        if count > KEY_CAPACITY or self._log[excess - 1][0] > self._sts:
            return False
        self._barrier = max(self._barrier, self._log[excess - 1][0])
        for _ in range(excess):
            cts, key = self._log.popleft()
            stamps = self._stamps.get(key, [])
            # Unless it was taken back, it is the key's first.
            if cts in stamps[:1]:
                del stamps[0]
            if not stamps:
                self._stamps.pop(key, None)
        return True

    def _revert(self, cts: int) -> None:
        """Take back the writes of a timestamp under way: its keys' last ones."""
        for key in self._written.get(cts, ()):
            self._stamps[key].remove(cts)
            if not self._stamps[key]:
                del self._stamps[key]

    def _stable(self) -> int:
        return next((sts for sts, _, _ in self._active.values()), self._sts)

    def _doubtful(self) -> int:
        return next(iter(self._unfinished({_DOUBTFUL})), 0)

    def _is_under_way(self, owner: int, cts: int) -> bool:
        return self._owners.get(cts) == owner and cts not in self._finished

    def _unfinished(self, owners: Container[int]) -> list[int]:
        """The timestamps that these owners have to finish, in ascending order."""
        return [
            cts
            for cts, found in self._owners.items()
            if found in owners and cts not in self._finished
        ]

    def _drop(self, txid: int) -> None:
        """Forget a client's snapshot."""
        self._snapshots[self._active.pop(txid)[2]] -= 1

    def _bury(self, clients: Collection[int]) -> None:
        """Drop clients, their snapshots, and their hold on their timestamps.

        All at once: each call is a pass over all snapshots and timestamps.
        """
        for txid in [t for t, entry in self._active.items() if entry[2] in clients]:
            self._drop(txid)
        for cts in self._unfinished(clients):
            self._owners[cts] = _DOUBTFUL
        self._close_lockers(clients)
        for client in clients:
            del self._clients[client]
            self._snapshots.pop(client, None)
            self._open.pop(client, None)
        self._note_deadlines()

    @override
    def _settle(self, client: int | None = None) -> None:
        if self._is_closed:
            raise self._closed()
        while self._ended:
            txid = self._ended.popleft()
            if txid in self._active and self._active[txid][2] == _NOBODY:
                del self._active[txid]
        if self._first_deadline <= (now := time.monotonic()):
            self._bury({c for c, deadline in self._clients.items() if deadline <= now})
        if client is not None and client not in self._clients:
            raise self._fenced()


def _may_be_locked(key: bytes) -> bool:
    """Whether a row has such a key: one with a mode stands for a reference."""
    return not key.startswith(_MODED)
