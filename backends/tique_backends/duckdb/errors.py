"""DuckDB's exceptions, brought to :class:`EngineError` at the boundary."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

import duckdb

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Iterator

_BY_CLASS: tuple[tuple[type[Exception], ErrorKind], ...] = (
    (duckdb.InterruptException, ErrorKind.INTERRUPTED),
    (duckdb.NotImplementedException, ErrorKind.UNSUPPORTED),
    (duckdb.DataError, ErrorKind.DATA),
    (duckdb.ProgrammingError, ErrorKind.PROGRAMMING),
    (duckdb.InternalError, ErrorKind.INTERNAL),
    (duckdb.Error, ErrorKind.OPERATIONAL),
)


_FULL = (
    "No space left",
    "Disk quota exceeded",
    "File too large",
    "failed to offload data block",
)
_DUPLICATE = ("Duplicate key", "PRIMARY KEY or UNIQUE", "contains duplicates")
_READ_ONLY = ("read-only mode", "Read-only file system", "Permission denied")
_LOCK_ADVICE = (
    "the database is open in another process, and an embedded database belongs to one "
    "process at a time: connect from threads of that process, or end it first. "
)


def _is_lock(message: str) -> bool:
    return "Could not set lock" in message or "Conflicting lock" in message


def _constraint_kind(message: str) -> ErrorKind:
    if any(sign in message for sign in _DUPLICATE):
        return ErrorKind.UNIQUE
    if "NOT NULL constraint" in message:
        return ErrorKind.NOT_NULL
    if "CHECK constraint" in message:
        return ErrorKind.CHECK
    return ErrorKind.INTEGRITY


def _kind(error: duckdb.Error) -> ErrorKind:
    message = str(error)
    if isinstance(error, duckdb.IntegrityError):
        return _constraint_kind(message)
    if any(sign in message for sign in _FULL):
        return ErrorKind.FULL
    if any(sign in message for sign in _READ_ONLY):
        return ErrorKind.READ_ONLY
    if _is_lock(message):
        return ErrorKind.LOCKED
    kinds = (kind for cls, kind in _BY_CLASS if isinstance(error, cls))
    return next(kinds, ErrorKind.INTERNAL)


_STOPPED = "Query interrupted"
"""The text of the RuntimeError by which duckdb says that a signal handler raised."""

_STOPPED_INSIDE = "KeyboardInterrupt: "
"""The start of DuckDB's own error, if the signal came in Python code that it called."""


def _is_stopped(error: BaseException | None) -> TypeGuard[RuntimeError]:
    return type(error) is RuntimeError and str(error) == _STOPPED


def translated(error: Exception) -> EngineError:
    """Return the engine-neutral form of an exception of the duckdb module.

    Raises
    ------
    BaseException
        A signal handler's exception while DuckDB worked, KeyboardInterrupt as a rule.
        DuckDB 1.5 keeps it as the cause of its own error, perhaps through several of
        these; 2.0 drops it, and then it is taken to be KeyboardInterrupt. Only the main
        thread runs signal handlers.
    """
    if _is_stopped(error):
        cause: BaseException | None = error
        while _is_stopped(cause):
            cause = cause.__cause__
        raise cause or KeyboardInterrupt
    if type(error) is duckdb.Error and str(error).startswith(_STOPPED_INSIDE):
        raise KeyboardInterrupt from error
    if isinstance(error, duckdb.Error):
        kind = _kind(error)
        advice = _LOCK_ADVICE if kind is ErrorKind.LOCKED else ""
        # The rest is an excerpt of the rewritten text, with values in it (P11).
        message = str(error).split("\n\nLINE ")[0].replace("_deleted OR ", "")
        return EngineError(kind, advice + message)
    if isinstance(error, UnicodeEncodeError | UnicodeDecodeError):
        return EngineError(ErrorKind.DATA, f"not valid Unicode: {error.reason}")
    if isinstance(error, RuntimeError | TypeError | ValueError | OverflowError):
        return EngineError(ErrorKind.DATA, f"DuckDB cannot take this value: {error}")
    raise error


@contextmanager
def translating() -> Iterator[None]:
    """Raise :class:`EngineError` in place of the duckdb module's exceptions."""
    try:
        yield
    except (duckdb.Error, RuntimeError, TypeError, ValueError, OverflowError) as error:
        raise translated(error) from error
