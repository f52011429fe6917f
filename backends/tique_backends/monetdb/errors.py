"""MonetDB's errors, brought to :class:`EngineError` at the boundary.

MonetDB says ``SQLSTATE!message``. Its states are coarse (42000 is a syntax error, an
unknown name, a missing privilege and, in some releases, a conflict), so that some
kinds are told by the message.
"""

from __future__ import annotations

import re

import pymonetdb

from tique_backends.errors import (
    ConflictError,
    ConnectionLostError,
    EngineError,
    ErrorKind,
)
from tique_backends.sharing import FencedError

_STATE = re.compile(r"([0-9A-Z]{5})!")

_EXCERPT = re.compile(r"\s+in: \".*|(?<= expected) in '.*", re.DOTALL)
"""The part of an error that quotes the rewritten statement or COPY's data (P11)."""

_CONFLICT = re.compile(r"conflict|^(?:Update|Delete|Append|Insert) failed")
"""40000, 42000, or no more than that a change failed: it differs between releases."""

_FENCED = frozenset({"08006", "55000"})
"""The sequencer's SQLSTATEs for a lease that ran out, or a restarted server."""

_UNREADABLE = re.compile(
    r"unable to find \S+\.\S+\(.+\)|.*update BATs not the same size"
    r"|Column type mismatch |EXEC: PREPARED Statement missing"
)
"""11.41's errors while another session's commit puts a column's changes in place, or
for a statement that was prepared before another one failed."""

_FULL = ("No space left", "Disk quota exceeded", "File too large")

_KINDS = (
    ("HYT00", ErrorKind.INTERRUPTED),
    ("0A", ErrorKind.UNSUPPORTED),
    ("22", ErrorKind.DATA),
    ("21", ErrorKind.PROGRAMMING),
    ("3", ErrorKind.PROGRAMMING),
    ("42", ErrorKind.PROGRAMMING),
    ("M0M", ErrorKind.INTERNAL),
)


class UnreadableError(ConflictError):
    """The engine could not read at this moment, and did nothing: a retry will do."""


def _integrity_kind(message: str) -> ErrorKind:
    if "PRIMARY KEY constraint" in message or "UNIQUE constraint" in message:
        return ErrorKind.UNIQUE
    if "NOT NULL constraint" in message:
        return ErrorKind.NOT_NULL
    return ErrorKind.INTEGRITY


def _kind(state: str, message: str) -> ErrorKind:
    if any(sign in message for sign in _FULL):
        return ErrorKind.FULL
    if state == "40002":
        return _integrity_kind(message)
    if message.startswith(("Math exception", "Failed to import")):
        return ErrorKind.DATA
    for start, kind in _KINDS:
        if state.startswith(start):
            return kind
    return ErrorKind.OPERATIONAL


def complaint(text: str) -> EngineError:
    """Return the engine-neutral form of the server's error."""
    found = _STATE.match(text)
    state = found[1] if found else ""
    message = _EXCERPT.sub("", text.removeprefix(state + "!")).strip()
    if state in _FENCED and message.startswith("tique."):
        return FencedError(ErrorKind.OPERATIONAL, message)
    if _UNREADABLE.match(message):
        return UnreadableError(ErrorKind.OPERATIONAL, message)
    if _CONFLICT.search(message):
        return ConflictError(ErrorKind.OPERATIONAL, message)
    return EngineError(_kind(state, message), message)


def translated(error: Exception) -> EngineError:
    """Return the engine-neutral form of an exception of pymonetdb or the network."""
    if isinstance(error, OSError | EOFError):
        return ConnectionLostError(
            ErrorKind.OPERATIONAL, f"the connection to MonetDB is lost: {error}"
        )
    if isinstance(error, pymonetdb.Error):
        return complaint(str(error))
    if isinstance(error, UnicodeError):
        return EngineError(ErrorKind.DATA, f"not valid Unicode: {error.reason}")  # type: ignore[attr-defined]
    raise error
