"""The errors of an engine, engine-neutrally.

Backends translate their engine's exceptions to :class:`EngineError`; the driver
maps the kind to a PEP 249 class. Nothing above ``backends`` looks at an
engine's own exception types or messages.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING

from typing_extensions import override

from tique_backends.names import quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tique_rewriter.schema import Table


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
    names : Mapping of str to str or None
        The names of what a violation is of, as far as they are known: ``schema_name``,
        ``table_name``, ``column_name``, ``constraint_name``, ``datatype_name``.
    """

    def __init__(
        self,
        kind: ErrorKind,
        message: str,
        sqlstate: str | None = None,
        names: Mapping[str, str | None] | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.sqlstate = sqlstate
        self.names = names or {}

    @override
    def __reduce__(self) -> tuple[type[EngineError], tuple[object, ...]]:
        """Pickle with the kind, the SQLSTATE and the names."""
        return type(self), (self.kind, str(self), self.sqlstate, self.names)


class ConflictError(EngineError):
    """The engine aborted a transaction because of a concurrent one.

    Nothing of it was committed: a caller that knows all its statements may repeat it.
    """


_VIOLATIONS = frozenset(
    {ErrorKind.UNIQUE, ErrorKind.NOT_NULL, ErrorKind.CHECK, ErrorKind.INTEGRITY}
)


@contextmanager
def speaking_of(
    table: Table, place: str = "", constraint: str | None = None
) -> Iterator[None]:
    """Let a violation that the engine finds speak of an application's table.

    ``place`` is the table of tique's that it may be found in, as SQL with its schema, and
    ``constraint`` the key that a statement adds.
    """
    try:
        yield
    except EngineError as error:
        # A domain's constraint is of the domain.
        if error.kind not in _VIOLATIONS or "datatype_name" in error.names:
            raise
        message, (_, _, quoted) = str(error), place.partition(".")
        if quoted:
            message = message.replace(quoted, quote(table.name))
            plain = quoted.removeprefix('"').removesuffix('"').replace('""', '"')
            message = message.replace(plain, table.name)
        names: dict[str, str | None] = {"constraint_name": constraint}
        if error.kind is ErrorKind.NOT_NULL:
            end = message.rstrip("'").replace('"', "")
            columns = [column.name for column in table.columns]
            said = [n for n in columns if end.endswith("." + n.replace('"', ""))]
            names = {"column_name": max(said, key=len, default=None)}
        elif error.kind is ErrorKind.CHECK:
            checks = {c.expression: c.name for c in table.checks}
            said = [text for text in checks if text in message]
            names = {"constraint_name": checks.get(max(said, key=len, default=""))}
        names |= {**error.names, "schema_name": table.schema, "table_name": table.name}
        raise EngineError(error.kind, message, error.sqlstate, names) from error


class ConnectionLostError(EngineError):
    """The connection broke: the outcome of the last statement is not known."""


class NodeLostError(EngineError):
    """The server has lost another one, which had a part in the last statement.

    The connection goes on, but the outcome is not known, either.
    """


def may_have_run(error: EngineError) -> bool:
    """Whether a call that raised it may have had its effect, as its reply was cut off."""
    is_stopped = error.kind is ErrorKind.INTERRUPTED
    return is_stopped or isinstance(error, (ConnectionLostError, NodeLostError))


def cut_short() -> EngineError:
    """Rows of a result are gone because reading them was interrupted."""
    return EngineError(
        ErrorKind.INTERRUPTED,
        "reading this result was interrupted, and rows of it are lost: run the query "
        "again",
    )
