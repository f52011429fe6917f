"""The exceptions, in PEP 249's tree.

Every error carries a five-character ``sqlstate``: its class's own unless the code
that raises it gives a more exact one. Errors and all their attributes survive pickling,
so that a pool of processes can hand them on.
"""

from __future__ import annotations

from typing import NamedTuple


class Diagnostic(NamedTuple):
    """An error's parts: of a violation, what it is of by the application's own names.

    Those that are not known, or that an error of its kind does not have, are None.
    """

    sqlstate: str | None = None
    message_primary: str | None = None
    schema_name: str | None = None
    table_name: str | None = None
    column_name: str | None = None
    datatype_name: str | None = None
    constraint_name: str | None = None


_NOTHING_KNOWN = Diagnostic()


class Warning(Exception):
    """An important notice, such as data truncated while inserting."""


class Rollback(Exception):
    """Raised in a block of :meth:`tique.Connection.transaction`: undo it, and leave it.

    The program goes on behind the innermost block around. It is no error.
    """


class Error(Exception):
    """The base of every error that tique raises.

    Parameters
    ----------
    *args
        The message, as for any exception.
    sqlstate
        A more exact SQLSTATE than the class's own.
    diag
        What it is about; the SQLSTATE and the message are put in.

    Attributes
    ----------
    sqlstate : str or None
        The SQLSTATE; None where the error did not come from a database.
    diag : Diagnostic
        Its parts.
    """

    sqlstate: str | None = None

    def __init__(
        self,
        *args: object,
        sqlstate: str | None = None,
        diag: Diagnostic = _NOTHING_KNOWN,
    ) -> None:
        super().__init__(*args)
        if sqlstate is not None:
            self.sqlstate = sqlstate
        self.diag = diag._replace(sqlstate=self.sqlstate, message_primary=str(self))


class InterfaceError(Error):
    """The driver was used wrongly: a malformed URL, a closed cursor."""


class DatabaseError(Error):
    """An error that concerns the database."""

    sqlstate = "HY000"


class DataError(DatabaseError):
    """A value that cannot be processed: division by zero, out of range."""

    sqlstate = "22000"


class OperationalError(DatabaseError):
    """Something outside the program's control: disk full, connection lost."""

    sqlstate = "58000"


class IntegrityError(DatabaseError):
    """A violation of a constraint."""

    sqlstate = "23000"


class InternalError(DatabaseError):
    """An invariant of tique or of the engine is broken."""

    sqlstate = "XX000"


class ProgrammingError(DatabaseError):
    """The statement is wrong: its syntax, a name, its number of parameters."""

    sqlstate = "42000"


class CardinalityViolation(ProgrammingError):
    """A statement that would change the same row twice."""

    sqlstate = "21000"


class WithCheckOptionViolation(ProgrammingError):
    """A row, written through a view, that the view would not have."""

    sqlstate = "44000"


class NotSupportedError(DatabaseError):
    """A construct that tique, or this engine, refuses rather than misreads."""

    sqlstate = "0A000"


class NotNullViolation(IntegrityError):
    """NULL in a column that is NOT NULL."""

    sqlstate = "23502"


class UniqueViolation(IntegrityError):
    """A second row with the same PRIMARY KEY or UNIQUE key."""

    sqlstate = "23505"


class CheckViolation(IntegrityError):
    """A row for which a CHECK constraint is false."""

    sqlstate = "23514"


class ForeignKeyViolation(IntegrityError):
    """A row whose FOREIGN KEY references a row that is not there.

    Parameters
    ----------
    *args
        The message.
    constraint
        The constraint's name.
    table
        The table that has the constraint.
    key
        The values of the reference.
    sqlstate
        A more exact SQLSTATE than 23503.
    diag
        What it is about.
    """

    sqlstate = "23503"

    def __init__(
        self,
        *args: object,
        constraint: str | None = None,
        table: str | None = None,
        key: tuple[object, ...] | None = None,
        sqlstate: str | None = None,
        diag: Diagnostic = _NOTHING_KNOWN,
    ) -> None:
        super().__init__(*args, sqlstate=sqlstate, diag=diag)
        self.constraint = constraint
        self.table = table
        self.key = key


class RestrictViolation(ForeignKeyViolation):
    """A row that is deleted or changed while a RESTRICT constraint references it."""

    sqlstate = "23001"


class SerializationError(OperationalError):
    """Another transaction committed first; running this one again may succeed.

    Parameters
    ----------
    *args
        The message.
    table
        The table to which both transactions wrote.
    key
        The key that both wrote.
    columns
        The names of the columns that the other transaction changed; empty where that is
        not known, and where it deleted or inserted the row.
    winner
        The commit timestamp of the transaction that committed first.
    sqlstate
        A more exact SQLSTATE than 40001.
    """

    sqlstate = "40001"

    def __init__(
        self,
        *args: object,
        table: str | None = None,
        key: tuple[object, ...] | None = None,
        columns: tuple[str, ...] = (),
        winner: int | None = None,
        sqlstate: str | None = None,
        diag: Diagnostic = _NOTHING_KNOWN,
    ) -> None:
        super().__init__(*args, sqlstate=sqlstate, diag=diag)
        self.table = table
        self.key = key
        self.columns = columns
        self.winner = winner


class OutcomeUnknown(OperationalError):
    """The connection was lost inside ``commit()``, which may have succeeded or not.

    Parameters
    ----------
    *args
        The message.
    txid
        The transaction's id, by which a new connection can ask for the outcome.
    sqlstate
        A more exact SQLSTATE than 08007.
    """

    sqlstate = "08007"

    def __init__(
        self,
        *args: object,
        txid: int | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(*args, sqlstate=sqlstate)
        self.txid = txid


class DatabaseLocked(OperationalError):
    """Another process owns the database's file."""

    sqlstate = "55006"
