"""The MAL module without a compiler: MonetDB calls back into Python.

For a server that runs in a Python process. ``module.c`` has the same functions, and
says what they do; ``mal.h`` says how they are registered.
"""

from __future__ import annotations

import ctypes
import re
import time
from collections.abc import Callable
from typing import Any

from tique_udfs._interface import (
    KEY_BYTES,
    NUMBER_BYTES,
    DeadlockError,
    FencedError,
    InterruptedWaitError,
    KeyConflictError,
    KeysLockedError,
    NoLockerError,
    Sequencer,
    SequencerError,
    lock_number,
)

TEXTS = frozenset({"keys", "numbers"})
"""Parameters that are texts: keys and numbers in hexadecimal digits."""

_KEYS = re.compile(rb"(?:[0-9a-f]{32})*")
_NUMBERS = re.compile(rb"(?:[0-9a-f]{16})*")
_LONGEST_WAIT = 1.0
_NULL = -(2**63)
_COMMAND, _UNSAFE = ctypes.c_bool(True), ctypes.c_bool(True)
_ONE_RESULT = 1
_TEXTUAL = frozenset({"begin_transaction", "sts_for", "certify_as", "lock"})
_TAKE_TEXT = frozenset({"certify", "certify_as", "lock", "unlock"})

_Answer = Callable[..., int | str]

_Number = ctypes.POINTER(ctypes.c_int64)
_Text = ctypes.POINTER(ctypes.c_char_p)
_Pointer = ctypes.POINTER(ctypes.c_void_p)


def register(
    sequencer: Sequencer, interpreter: ctypes.CDLL, kernel: ctypes.CDLL
) -> object:
    """Give the MonetDB of this process a module over a sequencer.

    Parameters
    ----------
    sequencer
        The sequencer, which has no other user.
    interpreter, kernel
        ``libmonetdb5`` and ``libbat`` of MonetDB 11.41, before the server starts.

    Returns
    -------
    object
        References that must be kept for as long as the server runs.
    """
    duplicate = kernel.GDKstrdup
    duplicate.restype = ctypes.c_void_p
    duplicate.argtypes = [ctypes.c_char_p]
    registered = []
    for name, (count, call) in _functions(sequencer).items():
        parameters: list[Any] = [_Number] * count
        if name in _TAKE_TEXT:
            parameters[-1] = _Text
        result = _Pointer if name in _TEXTUAL else _Number
        prototype = ctypes.CFUNCTYPE(ctypes.c_void_p, result, *parameters)
        callback = prototype(_guarded(name, call, duplicate))
        types = [
            b"lng" if kind is _Number else b"str" for kind in (result, *parameters)
        ]
        registered.append((name.encode(), callback, types))

    def start() -> Any:
        for name, callback, types in registered:
            numbers = [ctypes.c_uint16(kernel.ATOMindex(kind)) for kind in types]
            what = (_COMMAND, b"tique", name, callback, name, _UNSAFE, b"")
            counts = (_ONE_RESULT, len(types))
            if interpreter.melFunction(*what, *counts, *numbers):
                return duplicate(b"MALException:tique:HY013!cannot be registered")
        return None

    starting = ctypes.CFUNCTYPE(ctypes.c_void_p)(start)
    interpreter.mal_module2(b"tique", None, None, starting, None)
    return [starting, *registered]


def _guarded(
    name: str, call: _Answer, duplicate: Callable[[bytes], int]
) -> Callable[..., int | None]:
    """A callback that puts the answer in its place and returns NULL, or an error."""

    def called(result: Any, *arguments: Any) -> int | None:
        try:
            values = [argument[0] for argument in arguments]
            found = call(*values)
            result[0] = duplicate(found.encode()) if isinstance(found, str) else found
        except FencedError:
            state, message = "08006", "fenced: the client's lease ran out"
        except _NotRecovered:
            state = "55000"
            message = "recovery has not run since the server started"
        except (SequencerError, ValueError) as error:
            state, message = "02000", str(error)
        except BaseException as error:
            # It must not get lost in C code, which goes on with any answer.
            state, message = "XX000", f"{type(error).__name__}: {error}"
        else:
            return None
        text = f"MALException:tique.{name}:{state}!tique.{name}: {message}"
        return duplicate(text.encode())

    return called


class _NotRecovered(Exception):
    """Service has not begun."""


def _functions(sequencer: Sequencer) -> dict[str, tuple[int, _Answer]]:
    """Each function's number of arguments and its body."""
    incarnation = time.time_ns()
    is_recovered = False

    def recover(sts: int, txid: int) -> int:
        nonlocal is_recovered
        sequencer.recover(sts=sts, txid=txid)
        is_recovered = True
        return sts

    def serving(call: Callable[..., object]) -> _Answer:
        """Refuse before recovery; a call without an answer of its own gives 0."""

        def served(*values: int | bytes) -> int | str:
            if not is_recovered:
                raise _NotRecovered
            if _NULL in values:
                raise ValueError("NULL is no argument")
            found = call(*values)
            return found if isinstance(found, str) else int(found or 0)  # type: ignore[call-overload]

        return served

    def begin(client: int) -> str:
        txid, sts = sequencer.begin_for(client)
        return " ".join(map(str, [txid, sts, *fences(sts)]))

    def sts_for(client: int) -> str:
        sts = sequencer.sts_for(client)
        return " ".join(map(str, [sts, *fences(sts)]))

    def fences(sts: int) -> list[int]:
        return [fence for fence in sequencer.fences() if fence <= sts]

    def certify_as(client: int, locker: int, sts: int, text: bytes) -> str:
        keys = _units(text, _KEYS, KEY_BYTES)
        try:
            return str(sequencer.certify_for(client, sts, keys, locker))
        except KeyConflictError as error:
            return str(-error.winner)
        except KeysLockedError as error:
            return " ".join(["locked", *map(str, error.numbers)])

    def certify(client: int, sts: int, text: bytes) -> int:
        found = certify_as(client, 0, sts, text)
        # An earlier release calls it, for which it was committed just now.
        return -sequencer.sts() if found.startswith("locked") else int(found)

    def lock(
        client: int, locker: int, shared: int, milliseconds: int, text: bytes
    ) -> str:
        timeout = min(_seconds(milliseconds), _LONGEST_WAIT)
        numbers = _numbers(text)
        try:
            return str(
                sequencer.lock(
                    client, locker, numbers, shared=_mode(shared), timeout=timeout
                )
            )
        except DeadlockError:
            return "deadlock"
        except InterruptedWaitError:
            return "interrupted"
        except NoLockerError:
            return "gone"

    def unlock(client: int, locker: int, shared: int, text: bytes) -> None:
        sequencer.unlock(client, locker, _numbers(text), shared=_mode(shared))

    def advance(client: int, txid: int, sts: int) -> int:
        sequencer.advance_for(client, txid, sts)
        return sts

    def finish(client: int, cts: int) -> int:
        sequencer.finish_for(client, cts)
        return sequencer.sts()

    def wait(cts: int, milliseconds: int) -> bool:
        return sequencer.wait(cts, min(_seconds(milliseconds), _LONGEST_WAIT))

    return {
        "incarnation": (0, lambda: incarnation),
        "recover": (2, recover),
        "join_client": (1, serving(lambda lease: sequencer.join(_seconds(lease)))),
        "renew_client": (
            2,
            serving(lambda client, lease: sequencer.renew(client, _seconds(lease))),
        ),
        "leave_client": (1, serving(sequencer.leave)),
        "begin_transaction": (1, serving(begin)),
        "advance_transaction": (3, serving(advance)),
        "end_transaction": (2, serving(sequencer.end_for)),
        "certify": (3, serving(certify)),
        "certify_as": (4, serving(certify_as)),
        "next_cts": (1, serving(sequencer.next_cts_for)),
        "finish": (2, serving(finish)),
        "sts_for": (1, serving(sts_for)),
        "abort": (2, serving(sequencer.abort_for)),
        "wait": (2, serving(wait)),
        "sts": (0, serving(sequencer.sts)),
        "cts": (0, serving(sequencer.cts)),
        "lambda": (0, serving(sequencer.stable)),
        "active": (0, serving(lambda: len(sequencer.active()))),
        "clients": (0, serving(sequencer.clients)),
        "keys": (0, serving(sequencer.keys)),
        "doubtful": (0, serving(sequencer.doubtful)),
        "fence": (1, serving(sequencer.fence)),
        "open_locker": (1, serving(sequencer.open_locker)),
        "close_locker": (2, serving(sequencer.close_locker)),
        "interrupt_locker": (2, serving(sequencer.interrupt_locker)),
        "lock": (5, serving(lock)),
        "unlock": (4, serving(unlock)),
        "locks": (0, serving(sequencer.locks)),
    }


def _seconds(milliseconds: int) -> float:
    if milliseconds < 0:
        raise ValueError(f"{milliseconds} milliseconds are no time")
    return milliseconds / 1000


def _units(text: bytes, pattern: re.Pattern[bytes], size: int) -> list[bytes]:
    """The keys or numbers of a text."""
    if not pattern.fullmatch(text):
        raise ValueError(
            f"{2 * size} hexadecimal digits each are expected, in lower case"
        )
    joined = bytes.fromhex(text.decode())
    return [joined[i : i + size] for i in range(0, len(joined), size)]


def _numbers(text: bytes) -> list[int]:
    return list(map(lock_number, _units(text, _NUMBERS, NUMBER_BYTES)))


def _mode(shared: int) -> bool:
    if shared not in {0, 1}:
        raise ValueError(f"{shared} is no mode: 1 shares, 0 does not")
    return shared == 1
