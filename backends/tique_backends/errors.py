"""What an engine can complain about, engine-neutrally.

Backends translate their engine's exceptions to :class:`EngineError`; the driver
maps the kind to a PEP 249 class. Nothing above ``backends`` looks at an
engine's own exception types or messages.
"""

from __future__ import annotations

from enum import Enum


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
    """Other processes use the database, which this must not meet."""
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
    """

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[type[EngineError], tuple[ErrorKind, str]]:
        """Pickle with the kind."""
        return type(self), (self.kind, str(self))
