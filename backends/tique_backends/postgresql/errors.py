"""psycopg's errors, brought to :class:`EngineError` at the boundary by their SQLSTATE."""

from __future__ import annotations

import psycopg

from tique_backends.errors import (
    ConflictError,
    ConnectionLostError,
    EngineError,
    ErrorKind,
    NodeLostError,
)
from tique_backends.postgresql.sessions.limits import OVERDUE, TOO_SLOW
from tique_backends.sharing import FencedError, OverdueError

_KINDS = {
    "23505": ErrorKind.UNIQUE,
    "23502": ErrorKind.NOT_NULL,
    "23514": ErrorKind.CHECK,
    "25006": ErrorKind.READ_ONLY,
    "53100": ErrorKind.FULL,
    "57014": ErrorKind.INTERRUPTED,
}

_CLASSES = {
    "0A": ErrorKind.UNSUPPORTED,
    "10": ErrorKind.PROGRAMMING,
    "20": ErrorKind.PROGRAMMING,
    "21": ErrorKind.PROGRAMMING,
    "22": ErrorKind.DATA,
    "23": ErrorKind.INTEGRITY,
    "24": ErrorKind.INTERNAL,
    "26": ErrorKind.PROGRAMMING,
    "2B": ErrorKind.INTERNAL,
    "2D": ErrorKind.INTERNAL,
    "34": ErrorKind.PROGRAMMING,
    "3D": ErrorKind.PROGRAMMING,
    "3F": ErrorKind.PROGRAMMING,
    "42": ErrorKind.PROGRAMMING,
    "44": ErrorKind.PROGRAMMING,
    "P0": ErrorKind.PROGRAMMING,
    "XX": ErrorKind.INTERNAL,
}

_NAMES = [f"{n}_name" for n in ("schema", "table", "column", "constraint", "datatype")]

_UNSUPPORTED = "0A000"

_CONFLICTS = frozenset({"40001", "40P01"})

FENCED = frozenset({"TQ001", "TQ002"})
"""The sequencer's SQLSTATEs for a client that is gone, and after a restart."""

_LOST = frozenset({"25P03", "57P01", "57P02", "57P03", "57P05"})
"""The server ended the session."""

_INTERNAL = "XX000"
_OF_A_NODE = (
    "failure on connection marked as essential",
    "connection to the remote node ",
)
_REMOTE = "while executing command on "
"""What Citus says, in no other language, when its connection to a node broke, or could not be
made. What libpq says of that has no SQLSTATE, which Citus makes XX000: a node's own internal
errors look the same."""


def translated(error: Exception) -> EngineError:
    """Return the engine-neutral form of psycopg's exception."""
    if isinstance(error, UnicodeError):
        return EngineError(ErrorKind.DATA, f"not valid Unicode: {error.reason}")  # type: ignore[attr-defined]
    if not isinstance(error, psycopg.Error):
        raise error
    state = error.sqlstate
    # The rest of psycopg's text is an excerpt of the rewritten statement (P11).
    message = error.diag.message_primary or str(error).partition("\nLINE ")[0]
    if error.diag.message_hint:
        message += f" ({error.diag.message_hint})"
    if state in FENCED:
        return FencedError(ErrorKind.OPERATIONAL, message, state)
    if state == OVERDUE:
        return OverdueError(ErrorKind.OPERATIONAL, TOO_SLOW, "54000")
    if state in _CONFLICTS:
        return ConflictError(ErrorKind.OPERATIONAL, message, state)
    is_lost = state in _LOST or (state or "").startswith("08")
    if (is_lost or state == _INTERNAL) and _is_of_a_node(error, message):
        found = f"a node is lost: {message}"
        return NodeLostError(ErrorKind.OPERATIONAL, found, "08006")
    if is_lost:
        return ConnectionLostError(ErrorKind.OPERATIONAL, message, "08006")
    if state is not None:
        kind = _KINDS.get(state) or _CLASSES.get(state[:2], ErrorKind.OPERATIONAL)
        names = {name: found for name in _NAMES if (found := getattr(error.diag, name))}
        return EngineError(kind, message, state, names)
    if isinstance(error, psycopg.DataError):
        return EngineError(ErrorKind.DATA, message)
    if isinstance(error, psycopg.ProgrammingError):
        return EngineError(ErrorKind.PROGRAMMING, message)
    if isinstance(error, psycopg.NotSupportedError):
        return EngineError(ErrorKind.UNSUPPORTED, message)
    return ConnectionLostError(
        ErrorKind.OPERATIONAL, f"the connection to PostgreSQL is lost: {message}"
    )


def _is_of_a_node(error: psycopg.Error, message: str) -> bool:
    """Whether Citus' coordinator has lost a node; the session with itself goes on."""
    return error.diag.severity_nonlocalized == "ERROR" and (
        message.startswith(_OF_A_NODE) or _REMOTE in (error.diag.context or "")
    )


def is_outdated(error: EngineError, prepare: bool | None) -> bool:
    """Whether a statement may have failed because it was prepared before an ALTER TABLE.

    Those that are prepared in any case (``prepare``) are tique's own reads, for which
    that is the only reason; the server's message may be in any language.
    """
    return error.sqlstate == _UNSUPPORTED and (
        prepare is True or (prepare is None and "cached plan" in str(error))
    )
