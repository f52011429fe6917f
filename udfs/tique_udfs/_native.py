"""The sequencer in C, called through ctypes."""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import TYPE_CHECKING

from ._interface import (
    ActiveSnapshot,
    Sequencer,
    SequencerError,
    bounded,
    check_start,
)
from .build import BuildError, build

if TYPE_CHECKING:
    from pathlib import Path

# enum tique_status
_CLOSED = -1
_NO_MEMORY = -2
_RING_FULL = -3
_UNKNOWN = -4
_IN_USE = -5
_BACKWARDS = -6

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
    more than they do; ``wait`` releases it. Both are the same shared object.

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

    def recover(self, *, sts: int, txid: int) -> None:
        check_start(sts=sts, txid=txid)
        status = self.library.recover(self.handle, sts, txid)
        if status == _BACKWARDS:
            raise self._backwards(sts, txid)
        self._check(status)

    def begin(self) -> tuple[int, int]:
        begun = self._begin(self.handle)
        txid = begun.txid
        if txid < 0:
            raise self._error(txid)
        return txid, begun.sts

    def refresh(self, txid: int) -> int:
        sts: int = self.library.refresh(self.handle, txid)
        if sts == _UNKNOWN:
            raise self._not_active(txid)
        return self._check(sts)

    def end(self, txid: int) -> None:
        if self._end(self.handle, txid) == _UNKNOWN:
            raise self._never_handed_out("txid", txid)

    def next_cts(self) -> int:
        return self._check(self._next_cts(self.handle))

    def finish(self, cts: int) -> None:
        status = self._finish(self.handle, cts)
        if status == _UNKNOWN:
            raise self._never_handed_out("cts", cts)
        self._check(status)

    def sts(self) -> int:
        return self._check(self._sts(self.handle))

    def cts(self) -> int:
        return self._check(self.library.cts(self.handle))

    def stable(self) -> int:
        return self._check(self.library.stable(self.handle))

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
            if left <= _SLICE_SECONDS:
                return False

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
        if status == _NO_MEMORY:
            return SequencerError(
                f"no memory left for the sequencer of {self.name!r}; "
                "end transactions or close databases"
            )
        raise AssertionError(f"the C sequencer answered with status {status}")
