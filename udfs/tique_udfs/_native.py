"""The sequencer in C, called through ctypes."""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import TYPE_CHECKING

from typing_extensions import override

from ._interface import (
    ActiveSnapshot,
    KeyConflictError,
    KeysLockedError,
    Sequencer,
    SequencerError,
    bounded,
    check_start,
    joined,
)
from .build import BuildError, build

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

# enum tique_status
_CLOSED = -1
_NO_MEMORY = -2
_RING_FULL = -3
_UNKNOWN = -4
_IN_USE = -5
_BACKWARDS = -6
_FENCED = -7
_CONFLICT = -8
_SNAPSHOTS_FULL = -9
_CLIENTS_FULL = -10
_FENCES_FULL = -11
_KEYS_TOO_MANY = -12
_CLIENT_TOO_MUCH = -13
_LOCKS_FULL = -16
_LOCKED = -17
_DEADLOCK = -18
_INTERRUPTED = -19

_LOCKS_TOLD = 100
"""Locks in the way of a commit that are told at a time."""

# C code cannot be interrupted: a wait returns this often to let signals through.
_SLICE_SECONDS = 0.1


class _Transaction(ctypes.Structure):
    _fields_ = (("txid", ctypes.c_int64), ("sts", ctypes.c_int64))


class _Snapshot(ctypes.Structure):
    _fields_ = (
        ("txid", ctypes.c_int64),
        ("sts", ctypes.c_int64),
        ("age_nanoseconds", ctypes.c_int64),
    )


class Library:
    """The compiled sequencer, opened once per path.

    Calls that never block keep the GIL, since releasing and taking it again costs
    more than they do; the others release it. Both are the same shared object.

    Attributes
    ----------
    path
        The shared object, which is a DuckDB extension as well.
    """

    def __init__(self, path: Path) -> None:
        number = ctypes.c_int64
        status = ctypes.c_int
        self.path = path
        try:
            short = ctypes.PyDLL(str(path))
            long = ctypes.CDLL(str(path))
        except OSError as error:
            raise BuildError(
                f"cannot open the sequencer's library {path}: {error}"
            ) from error

        def declare(
            name: str, result: type, *arguments: type
        ) -> ctypes._NamedFuncPointer:
            function = short[name]
            function.restype = result
            function.argtypes = arguments
            return function

        self.open = declare("tique_open", number)
        self.close = declare("tique_close", status, number)
        self.recover = declare("tique_recover", status, number, number, number)
        self.skip_txids = declare("tique_skip_txids", status, number, number)
        self.begin = declare("tique_begin", _Transaction, number)
        self.refresh = declare("tique_refresh", number, number, number)
        self.end = declare("tique_end", status, number, number)
        self.next_cts = declare("tique_next_cts", number, number)
        self.finish = declare("tique_finish", status, number, number)
        self.sts = declare("tique_sts", number, number)
        self.cts = declare("tique_cts", number, number)
        self.stable = declare("tique_lambda", number, number)
        self.active = declare(
            "tique_active", number, number, ctypes.POINTER(_Snapshot), number
        )
        self.announce = declare("tique_duckdb_announce", number, number)
        self.rebind = declare("tique_duckdb_rebind", status, number, number)
        # These wait for the disk, and may close a database.
        self.run = long["tique_duckdb_run"]
        self.run.restype = status
        self.run.argtypes = (
            *(number, ctypes.c_char_p, number, number, ctypes.c_char_p),
            *(ctypes.c_uint64, ctypes.c_char_p, ctypes.c_uint64),
        )
        self.disconnect = long["tique_duckdb_disconnect"]
        self.disconnect.restype = None
        self.disconnect.argtypes = (number,)
        self.join = declare("tique_join", number, number, number)
        self.renew = declare("tique_renew", status, number, number, number)
        self.leave = declare("tique_leave", status, number, number)
        self.begin_for = declare("tique_begin_for", _Transaction, number, number)
        self.sts_for = declare("tique_sts_for", number, number, number)
        self.advance_for = declare(
            "tique_advance_for", number, number, number, number, number
        )
        self.end_for = declare("tique_end_for", status, number, number, number)
        self.next_cts_for = declare("tique_next_cts_for", number, number, number)
        self.finish_for = declare("tique_finish_for", status, number, number, number)
        self.certify_for = declare(
            "tique_certify_for",
            number,
            *(number, number, number, number, ctypes.c_char_p, number),
            *(ctypes.POINTER(number), ctypes.POINTER(number), number),
        )
        self.open_locker = declare("tique_open_locker", number, number, number)
        self.close_locker = declare(
            "tique_close_locker", status, number, number, number
        )
        self.interrupt_locker = declare(
            "tique_interrupt_locker", status, number, number, number
        )
        several = (ctypes.POINTER(number), number, status)
        self.unlock = declare("tique_unlock", status, number, number, number, *several)
        self.locks = declare("tique_lock_count", number, number)
        self.lock = long["tique_lock"]
        self.lock.restype = number
        self.lock.argtypes = (number, number, number, *several, number)
        self.abort_for = declare("tique_abort_for", status, number, number, number)
        self.keys = declare("tique_key_count", number, number)
        self.clients = declare("tique_client_count", number, number)
        self.doubtful = declare("tique_doubtful", number, number)
        self.doubts = declare(
            "tique_doubts", number, number, ctypes.POINTER(number), number
        )
        self.fence = declare("tique_fence", status, number, number)
        self.fences = declare(
            "tique_fences", number, number, ctypes.POINTER(number), number
        )
        self.forget_fences = declare("tique_forget_fences", number, number, number)
        self.wait = long["tique_wait"]
        self.wait.restype = status
        self.wait.argtypes = (number, number, number)


@cache
def open_library(path: Path) -> Library:
    """Open the library of that path, once per process."""
    return Library(path)


class NativeSequencer(Sequencer):
    """A :class:`Sequencer` that lives in the C core.

    Raises
    ------
    BuildError
        The library can be neither found in the cache nor compiled, or not loaded.
    """

    kind = "c"

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.library = open_library(build())
        number = self.library.open()
        if number < 0:
            raise self._error(number)
        # Converted once: it saves a third of a call.
        self.handle = ctypes.c_int64(number)
        self._begin = self.library.begin
        self._end = self.library.end
        self._next_cts = self.library.next_cts
        self._finish = self.library.finish
        self._sts = self.library.sts

    @override
    def recover(self, *, sts: int, txid: int) -> None:
        check_start(sts=sts, txid=txid)
        status = self.library.recover(self.handle, sts, txid)
        if status == _BACKWARDS:
            raise self._backwards(sts, txid)
        self._check(status)

    @override
    def skip_txids(self, txid: int) -> None:
        check_start(sts=0, txid=txid)
        self._check(self.library.skip_txids(self.handle, txid))

    @override
    def begin(self) -> tuple[int, int]:
        begun = self._begin(self.handle)
        txid = begun.txid
        if txid < 0:
            raise self._error(txid)
        return txid, begun.sts

    @override
    def refresh(self, txid: int) -> int:
        sts: int = self.library.refresh(self.handle, txid)
        if sts == _UNKNOWN:
            raise self._not_active(txid)
        return self._check(sts)

    @override
    def end(self, txid: int) -> None:
        if self._end(self.handle, txid) == _UNKNOWN:
            raise self._never_handed_out("txid", txid)

    @override
    def next_cts(self) -> int:
        return self._check(self._next_cts(self.handle))

    @override
    def finish(self, cts: int) -> None:
        status = self._finish(self.handle, cts)
        if status == _UNKNOWN:
            raise self._never_handed_out("cts", cts)
        self._check(status)

    @override
    def sts(self) -> int:
        return self._check(self._sts(self.handle))

    @override
    def cts(self) -> int:
        return self._check(self.library.cts(self.handle))

    @override
    def stable(self) -> int:
        return self._check(self.library.stable(self.handle))

    @override
    def wait(self, cts: int, timeout: float) -> bool:
        deadline = time.monotonic() + bounded(timeout)
        # Most often nothing is left to wait for, and the GIL is better kept.
        if self.sts() >= cts:
            return True
        while True:
            left = deadline - time.monotonic()
            nanoseconds = int(min(left, _SLICE_SECONDS) * 1e9)
            if self._check(self.library.wait(self.handle, cts, nanoseconds)):
                return True
            if left <= _SLICE_SECONDS or 0 < self.doubtful() <= cts:
                return False

    @override
    def active(self) -> list[ActiveSnapshot]:
        snapshots = (_Snapshot * 0)()
        count = self._check(self.library.active(self.handle, snapshots, 0))
        while count > len(snapshots):
            snapshots = (_Snapshot * (count + 16))()
            count = self._check(
                self.library.active(self.handle, snapshots, len(snapshots))
            )
        return [
            ActiveSnapshot(found.txid, found.sts, found.age_nanoseconds / 1e9)
            for found in snapshots[:count]
        ]

    @override
    def join(self, lease: float) -> int:
        return self._check(self.library.join(self.handle, _nanoseconds(lease)))

    @override
    def renew(self, client: int, lease: float) -> None:
        self._check(self.library.renew(self.handle, client, _nanoseconds(lease)))

    @override
    def leave(self, client: int) -> None:
        self._check(self.library.leave(self.handle, client))

    @override
    def sts_for(self, client: int) -> int:
        return self._check(self.library.sts_for(self.handle, client))

    @override
    def begin_for(self, client: int) -> tuple[int, int]:
        begun = self.library.begin_for(self.handle, client)
        return self._check(begun.txid), begun.sts

    @override
    def advance_for(self, client: int, txid: int, sts: int) -> None:
        found = self.library.advance_for(self.handle, client, txid, sts)
        if found == _UNKNOWN:
            raise self._not_active(txid)
        self._check(found)

    @override
    def end_for(self, client: int, txid: int) -> None:
        status = self.library.end_for(self.handle, client, txid)
        if status == _UNKNOWN:
            raise self._never_handed_out("txid", txid)
        self._check(status)

    @override
    def next_cts_for(self, client: int) -> int:
        return self._check(self.library.next_cts_for(self.handle, client))

    @override
    def finish_for(self, client: int, cts: int) -> None:
        status = self.library.finish_for(self.handle, client, cts)
        if status == _UNKNOWN:
            raise self._never_handed_out("cts", cts)
        self._check(status)

    @override
    def certify_for(
        self, client: int, sts: int, keys: Sequence[bytes], locker: int = 0
    ) -> int:
        winner = ctypes.c_int64()
        locked = (ctypes.c_int64 * _LOCKS_TOLD)()
        cts: int = self.library.certify_for(
            *(self.handle, client, locker, sts, joined(keys), len(keys)),
            *(winner, locked, _LOCKS_TOLD),
        )
        if cts == _CONFLICT:
            raise KeyConflictError(winner.value)
        if cts == _LOCKED:
            raise KeysLockedError(frozenset(locked[: winner.value]))
        if cts == _UNKNOWN:
            raise self._no_locker(locker) if locker else self._not_finished(sts)
        return self._check(cts)

    @override
    def open_locker(self, client: int) -> int:
        return self._check(self.library.open_locker(self.handle, client))

    @override
    def close_locker(self, client: int, locker: int) -> None:
        self._check_locker(
            locker, self.library.close_locker(self.handle, client, locker)
        )

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
        packed = (ctypes.c_int64 * len(numbers))(*numbers)
        while True:
            left = deadline - time.monotonic() if timeout > 0 else 0.0
            found = self.library.lock(
                *(self.handle, client, locker, packed, len(numbers), shared),
                # Without any it would be no wait, and lose its place.
                max(_nanoseconds(min(left, _SLICE_SECONDS)), timeout > 0),
            )
            if found == _DEADLOCK:
                raise self._deadlock()
            if found == _INTERRUPTED:
                raise self._interrupted()
            count = self._check_locker(locker, found)
            if count == len(numbers) or left <= _SLICE_SECONDS:
                return count

    @override
    def unlock(
        self, client: int, locker: int, numbers: Sequence[int], *, shared: bool
    ) -> None:
        packed = (ctypes.c_int64 * len(numbers))(*numbers)
        status = self.library.unlock(
            self.handle, client, locker, packed, len(numbers), shared
        )
        self._check_locker(locker, status)

    @override
    def interrupt_locker(self, client: int, locker: int) -> None:
        self._check_locker(
            locker, self.library.interrupt_locker(self.handle, client, locker)
        )

    @override
    def locks(self) -> int:
        return self._check(self.library.locks(self.handle))

    def _check_locker(self, locker: int, result: int) -> int:
        if result == _UNKNOWN:
            raise self._no_locker(locker)
        return self._check(result)

    @override
    def abort_for(self, client: int, cts: int) -> None:
        status = self.library.abort_for(self.handle, client, cts)
        if status == _UNKNOWN:
            raise self._never_handed_out("cts", cts)
        self._check(status)

    @override
    def keys(self) -> int:
        return self._check(self.library.keys(self.handle))

    @override
    def clients(self) -> int:
        return self._check(self.library.clients(self.handle))

    @override
    def doubtful(self) -> int:
        return self._check(self.library.doubtful(self.handle))

    @override
    def doubts(self, most: int) -> list[int]:
        found = (ctypes.c_int64 * most)()
        count = self._check(self.library.doubts(self.handle, found, most))
        return found[:count]

    @override
    def fence(self, cts: int) -> None:
        status = self.library.fence(self.handle, cts)
        if status in (_UNKNOWN, _IN_USE):
            raise self._not_doubtful(cts)
        self._check(status)

    @override
    def fences(self) -> list[int]:
        found = (ctypes.c_int64 * 0)()
        count = self._check(self.library.fences(self.handle, found, 0))
        while count > len(found):
            found = (ctypes.c_int64 * (count + 16))()
            count = self._check(self.library.fences(self.handle, found, len(found)))
        return found[:count]

    @override
    def forget_fences(self, until: int) -> int:
        return self._check(self.library.forget_fences(self.handle, until))

    @override
    def close(self) -> None:
        self.library.close(self.handle)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.close()

    def _check(self, result: int) -> int:
        if result < 0:
            raise self._error(result)
        return result

    def _error(self, status: int) -> SequencerError:
        if status == _CLOSED:
            return self._closed()
        if status == _RING_FULL:
            return self._ring_full()
        if status == _IN_USE:
            return self._in_use()
        if status == _FENCED:
            return self._fenced()
        if status == _SNAPSHOTS_FULL:
            return self._snapshots_full()
        if status == _CLIENTS_FULL:
            return self._clients_full()
        if status == _FENCES_FULL:
            return self._fences_full()
        if status == _KEYS_TOO_MANY:
            return self._too_many_keys()
        if status == _CLIENT_TOO_MUCH:
            return self._client_too_much()
        if status == _LOCKS_FULL:
            return self._locks_full()
        if status == _NO_MEMORY:
            return SequencerError(
                f"no memory left for the sequencer of {self.name!r}; close databases"
            )
        raise AssertionError(f"the C sequencer answered with status {status}")


def _nanoseconds(seconds: float) -> int:
    return int(bounded(seconds) * 1e9)
