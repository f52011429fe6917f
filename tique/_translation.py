"""From the lower layers' exceptions to PEP 249's tree, in one place."""

from __future__ import annotations

from tique import errors
from tique_backends.errors import EngineError, ErrorKind
from tique_rewriter.errors import RewriteError, UnknownKey, UnsupportedSQL
from tique_udfs import BuildError, SequencerError

_BY_KIND: dict[ErrorKind, type[errors.Error]] = {
    ErrorKind.PROGRAMMING: errors.ProgrammingError,
    ErrorKind.UNSUPPORTED: errors.NotSupportedError,
    ErrorKind.DATA: errors.DataError,
    ErrorKind.UNIQUE: errors.UniqueViolation,
    ErrorKind.NOT_NULL: errors.NotNullViolation,
    ErrorKind.CHECK: errors.CheckViolation,
    ErrorKind.INTEGRITY: errors.IntegrityError,
    ErrorKind.LOCKED: errors.DatabaseLocked,
    ErrorKind.READ_ONLY: errors.OperationalError,
    ErrorKind.FULL: errors.OperationalError,
    ErrorKind.INTERRUPTED: errors.OperationalError,
    ErrorKind.OPERATIONAL: errors.OperationalError,
    ErrorKind.INTERNAL: errors.InternalError,
}

_SQLSTATES = {
    ErrorKind.READ_ONLY: "25006",
    ErrorKind.FULL: "53100",
    ErrorKind.INTERRUPTED: "57014",
}


def translated(error: EngineError | RewriteError) -> errors.Error:
    """The PEP 249 exception for what a lower layer raised."""
    if isinstance(error, EngineError):
        return _BY_KIND[error.kind](str(error), sqlstate=_SQLSTATES.get(error.kind))
    if isinstance(error, UnsupportedSQL):
        return errors.NotSupportedError(str(error))
    sqlstate = "42P10" if isinstance(error, UnknownKey) else None
    return errors.ProgrammingError(str(error), sqlstate=sqlstate)


class translating:
    """Raise PEP 249 exceptions in place of the lower layers' own, in a block."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: object
    ) -> None:
        """Translate what is to be."""
        if error is None:
            return
        if isinstance(error, EngineError | RewriteError):
            raise translated(error) from error
        if isinstance(error, SequencerError | BuildError):
            raise errors.OperationalError(str(error)) from error
