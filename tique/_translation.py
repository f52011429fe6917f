"""From the lower layers' exceptions to PEP 249's tree, in one place.

Invariant: whatever the text, nothing leaves the driver (statements, COMMIT, fetches and
iteration, COPY, ``connect``) but :class:`tique.Error`, what the application's own code
raised (a parameter's methods, a row factory, say), MemoryError, and what is no
``Exception``. Any other exception is a fault of tique's: :func:`unexpected` makes an
InternalError of it, and the fuzzers (``tests/fuzz``) take each for a finding.

A wrong argument of tique's own functions is an InterfaceError or a ProgrammingError
(:func:`given`). What Python itself refuses, such as an argument that no function has, is its
TypeError; PEP 249 wants IndexError of ``scroll``, and a package that is not installed is an
ImportError.

Invariant: a violation of a constraint names the constraint, the table and the column as the
application knows them, in its message and in ``diag``, whichever part finds it. tique's own
checks say :func:`concerning` what. The engine's are in tables of tique's: what puts rows
there, and DDL, do so :func:`~tique_backends.errors.speaking_of` the application's table.
No message of another error has the name of a table of tique's: :func:`translated` takes
it out.
"""

from __future__ import annotations

import re
import sys
from operator import index
from typing import TYPE_CHECKING, Any, TypeVar

from tique import errors
from tique_backends.errors import ConnectionLostError, EngineError, ErrorKind
from tique_backends.sharing import FencedError
from tique_rewriter.errors import (
    AlwaysGenerated,
    DuplicateAlias,
    DuplicateColumn,
    NotAPoint,
    RewriteError,
    SyntaxProblem,
    UnknownColumn,
    UnknownConstraint,
    UnknownKey,
    UnknownTable,
    UnsupportedSQL,
    WrongDefinition,
)
from tique_udfs import BuildError, SequencerError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tique_backends.session import Session
    from tique_rewriter.schema import Table

_Value = TypeVar("_Value")

_OURS = sys.stdlib_module_names | {
    "duckdb", "psycopg", "psycopg_binary", "pyarrow", "pymonetdb", "sqlglot",
    "tique", "tique_backends", "tique_rewriter", "tique_udfs",
}  # fmt: skip
"""What runs in a statement; all other modules are the application's."""

_INTERNAL = re.compile(
    r'(?:(?:tique|pg_temp|temp|tmp)\.)?"?\btique_(?:stage|cache|incoming)[\w.]*"?'
)
"""A table of tique's, as engines write its name."""

_BY_KIND: dict[ErrorKind, type[errors.Error]] = {
    ErrorKind.PROGRAMMING: errors.ProgrammingError,
    ErrorKind.UNSUPPORTED: errors.NotSupportedError,
    ErrorKind.DATA: errors.DataError,
    ErrorKind.UNIQUE: errors.UniqueViolation,
    ErrorKind.NOT_NULL: errors.NotNullViolation,
    ErrorKind.CHECK: errors.CheckViolation,
    ErrorKind.INTEGRITY: errors.IntegrityError,
    ErrorKind.LOCKED: errors.DatabaseLocked,
    ErrorKind.IN_USE: errors.OperationalError,
    ErrorKind.READ_ONLY: errors.OperationalError,
    ErrorKind.FULL: errors.OperationalError,
    ErrorKind.INTERRUPTED: errors.OperationalError,
    ErrorKind.OPERATIONAL: errors.OperationalError,
    ErrorKind.INTERNAL: errors.InternalError,
}

_SQLSTATES = {
    ErrorKind.IN_USE: "55006",
    ErrorKind.READ_ONLY: "25006",
    ErrorKind.FULL: "53100",
    ErrorKind.INTERRUPTED: "57014",
}

_REWRITING_SQLSTATES: dict[type[RewriteError], str] = {
    SyntaxProblem: "42601",
    DuplicateColumn: "42701",
    DuplicateAlias: "42712",
    WrongDefinition: "42P16",
    UnknownTable: "42P01",
    UnknownColumn: "42703",
    UnknownConstraint: "42704",
    AlwaysGenerated: "428C9",
    UnknownKey: "42P10",
    NotAPoint: "22023",
}


def translated(error: EngineError | RewriteError) -> errors.Error:
    """The PEP 249 exception for an exception of a lower layer."""
    if isinstance(error, FencedError):
        return given_up(error)
    if isinstance(error, ConnectionLostError):
        return errors.OperationalError(str(error), sqlstate="08006")
    if isinstance(error, EngineError):
        state = error.sqlstate or _SQLSTATES.get(error.kind)
        message = _INTERNAL.sub("a table of tique's", str(error))
        diag = errors.Diagnostic(**error.names)
        return _BY_KIND[error.kind](message, sqlstate=state, diag=diag)
    if isinstance(error, UnsupportedSQL):
        return errors.NotSupportedError(str(error))
    state = _REWRITING_SQLSTATES.get(type(error))
    return errors.ProgrammingError(str(error), sqlstate=state)


def concerning(table: Table, **names: str | None) -> errors.Diagnostic:
    """The parts of a violation of a table's constraint that tique itself finds."""
    place = {"schema_name": table.schema, "table_name": table.name}
    return errors.Diagnostic(**place, **names)


def translated_by(session: Session, error: EngineError | RewriteError) -> errors.Error:
    """The same; the engine says whether a construct that is not understood is SQL."""
    if isinstance(error, RewriteError) and error.text is not None:
        try:
            is_sql = session.understands(error.text)
        except EngineError as problem:
            return translated(problem)
        if is_sql is not None:
            error = _judged(error, is_sql=is_sql)
    return translated(error)


def _judged(error: RewriteError, *, is_sql: bool) -> RewriteError:
    place = (
        "" if error.line is None else f" at line {error.line}, column {error.column}"
    )
    what, _, _ = error.message.partition(" at line ")
    if is_sql and isinstance(error, SyntaxProblem):
        what = f"the SQL{what.removeprefix('syntax error')}{place}"
        return UnsupportedSQL(f"{what if place else 'the statement'} is not supported")
    if not is_sql and not isinstance(error, SyntaxProblem):
        return SyntaxProblem(f'syntax error near "{what}"{place}')
    return error


def unexpected(error: Exception, query: str) -> errors.InternalError | None:
    """The error in place of one that is not PEP 249's; None: it stays as it is."""
    if isinstance(error, errors.Error | errors.Warning | ImportError | MemoryError):
        return None
    at: TracebackType | None = error.__traceback__
    while at is not None:
        if at.tb_frame.f_globals.get("__name__", "").partition(".")[0] not in _OURS:
            return None
        at = at.tb_next
    kind = " ".join(word for word in query.split()[:2] if word.isalpha()).upper()
    return errors.InternalError(
        f"tique failed in {kind or 'a statement'} ({type(error).__name__}); this is a "
        "fault of tique's: please report it with the statement and this traceback"
    )


def given_up(cause: object) -> errors.OperationalError:
    """The error when a process's client of a shared database is gone."""
    return errors.OperationalError(
        "this process was given up by the others that share the database, because it "
        "did not run for too long, or the server was restarted: uncommitted "
        f"transactions are aborted; close the connections and connect again ({cause})",
        sqlstate="08006",
    )


def given(convert: Callable[[Any], _Value], value: Any, what: str) -> _Value:
    """Return an argument of the application's, converted.

    Raises
    ------
    InterfaceError
        If it is not what it is to be.
    """
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        kind = type(value).__name__
        raise errors.InterfaceError(f"{what} cannot be this {kind}: {error}") from error


def count(value: Any) -> int:
    """A number of rows; ValueError if it is below zero."""
    if (number := index(value)) < 0:
        raise ValueError("it is below zero")
    return number


class translating:
    """Raise PEP 249 exceptions in place of all others, in a block; ``what`` is done there."""

    __slots__ = ("_what",)

    def __init__(self, what: str = "") -> None:
        self._what = what

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(
        self, kind: object, error: BaseException | None, traceback: object
    ) -> None:
        """Translate an exception of a lower layer, or an unforeseen one."""
        if not isinstance(error, Exception):
            return
        if isinstance(error, EngineError | RewriteError):
            raise translated(error) from error
        if isinstance(error, SequencerError | BuildError):
            raise errors.OperationalError(str(error)) from error
        fault = unexpected(error, self._what)
        if fault is not None:
            raise fault from error
