"""The errors of an engine, engine-neutrally.

Backends translate their engine's exceptions to :class:`EngineError`; the driver
maps the kind to a PEP 249 class. Nothing above ``backends`` looks at an
engine's own exception types or messages.
"""

from __future__ import annotations

from enum import Enum

from typing_extensions import override


class ErrorKind(Enum):
    """The families of errors that the driver treats differently."""

    PROGRAMMING = "programming"
    """The statement is wrong: syntax, unknown names, wrong parameters."""
    UNSUPPORTED = "unsupported"
    DATA = "data"
    """A value does not fit: conversion, overflow, division by zero."""
    UNIQUE = "unique"
    NOT_NULL = "not null"
    CHECK = "check"
    INTEGRITY = "integrity"
    """A constraint of another kind."""
    LOCKED = "locked"
    """Another process has the database open."""
    IN_USE = "in use"
    """Other processes use the database, and the call needs it alone."""
    READ_ONLY = "read only"
    FULL = "full"
    """No space is left on the device."""
    INTERRUPTED = "interrupted"
    OPERATIONAL = "operational"
    INTERNAL = "internal"


class EngineError(Exception):
    """An engine refused or failed to do something.

    Attributes
    ----------
    kind : ErrorKind
        The family of the error.
    sqlstate : str or None
        The engine's own code, where it has the standard's.
    """

    def __init__(
        self, kind: ErrorKind, message: str, sqlstate: str | None = None
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.sqlstate = sqlstate

    @override
    def __reduce__(self) -> tuple[type[EngineError], tuple[ErrorKind, str, str | None]]:
        """Pickle with the kind and the SQLSTATE."""
        return type(self), (self.kind, str(self), self.sqlstate)


class ConflictError(EngineError):
    """The engine aborted a transaction because of a concurrent one.

    Nothing of it was committed: a caller that knows all its statements may repeat it.
    """


class ConnectionLostError(EngineError):
    """The connection broke: the outcome of the last statement is not known."""


def may_have_run(error: EngineError) -> bool:
    """Whether a call that raised it may have had its effect, as its reply was cut off."""
    is_stopped = error.kind is ErrorKind.INTERRUPTED
    return is_stopped or isinstance(error, ConnectionLostError)


def cut_short() -> EngineError:
    """Rows of a result are gone because reading them was interrupted."""
    return EngineError(
        ErrorKind.INTERRUPTED,
        "reading this result was interrupted, and rows of it are lost: run the query "
        "again",
    )
