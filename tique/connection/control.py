"""Transaction control in SQL text: BEGIN, COMMIT, savepoints, SET TRANSACTION."""

from __future__ import annotations

import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tique import errors
from tique.query.transaction.isolation import IsolationLevel
from tique_rewriter.plans.past import as_point
from tique_rewriter.plans.plan import (
    DEFAULT_ISOLATION,
    DEFAULT_READ_ONLY,
    Control,
    TransactionControl,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime
    from typing import Any

    from tique.connection.execution import Execution
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique.query.transaction.held import Stored


class Controls:
    """The transaction control of a connection by SQL statements."""

    def __init__(self, execution: Execution, isolation: IsolationLevel | None) -> None:
        self.begun: float | None = None
        """When BEGIN (or ``transaction()``) opened it: autocommit is suspended."""
        self.isolation: IsolationLevel | None = None
        self.read_only: bool | None = None
        self.as_of: int | datetime | None = None
        """The point of the past that the transaction to come reads."""
        # The same, of every transaction to come that does not say so itself.
        self.always_isolation = isolation or IsolationLevel.SNAPSHOT
        self.is_always_read_only = False
        self.always_as_of: int | datetime | None = None
        self.stored: Stored | None = None
        """Returns the version in storage, if transactions to come read that (``HeldStorage``)."""
        self._execution = execution
        self._numbers = itertools.count(1)
        self._handlers: dict[Control, Callable[[TransactionControl], None]] = {
            Control.COMMIT: lambda c: self._finish(c, self._execution.commit),
            Control.ROLLBACK: lambda c: self._finish(c, self._execution.rollback),
            Control.SAVEPOINT: lambda c: self._open().savepoint(_name(c)),
            Control.ROLLBACK_TO: lambda c: self._rollback_to(_name(c)),
            Control.RELEASE: lambda c: self._open().release(_name(c)),
        }

    @property
    def level(self) -> IsolationLevel:
        """The isolation level of the transaction to come."""
        if self.as_of is not None:
            # All of its statements read the same.
            return IsolationLevel.SNAPSHOT
        return self.isolation or self.always_isolation

    @property
    def is_explicit(self) -> bool:
        """Whether BEGIN (or ``transaction()``) opened it."""
        return self.begun is not None

    def open(self, as_of: int | datetime | None = None) -> None:
        """Note that one begins here, whose snapshot is that of its first statement.

        One as of the past begins at once.
        """
        self.begun = time.monotonic()
        if as_of is not None:
            self.as_of = as_of
        if self.as_of is not None:
            self._execution.begin()

    def run(self, control: TransactionControl, bound: Sequence[Any]) -> None:
        """Carry out the statement."""
        if control.control is Control.BEGIN:
            self._begin(control, bound)
        elif control.control is Control.SET_TRANSACTION:
            self._set(control, bound)
        else:
            self._handlers[control.control](control)

    def reset(self) -> None:
        """Note that the transaction ended."""
        self.begun = None
        self.isolation = None
        self.read_only = None
        self.as_of = self.always_as_of

    @property
    def is_read_only(self) -> bool:
        """Whether the transaction to come is read-only."""
        if self.as_of is not None:
            return True
        if self.read_only is None:
            return self.is_always_read_only
        return self.read_only

    def always_isolate(self, value: str | IsolationLevel) -> None:
        """Change the level of the transactions to come, outside of transactions."""
        with self._execution.outside_transaction("the isolation level"):
            self.always_isolation = level = IsolationLevel.parse(value)
            self._note(DEFAULT_ISOLATION, level.value)

    def always_read_only(self, value: bool) -> None:
        """Change whether transactions to come are read-only, outside of transactions."""
        with self._execution.outside_transaction("read_only"):
            self.is_always_read_only = value
            self._note(DEFAULT_READ_ONLY, "on" if value else "off")

    def always_read(self, as_of: int | datetime | None) -> None:
        """Change what transactions to come read, outside of transactions."""
        with self._execution.outside_transaction("as_of"):
            point = None if as_of is None else as_point(as_of)
            self.always_as_of = self.as_of = point

    def _note(self, name: str, value: str) -> None:
        self._execution.sessions.settings.note(name, value)

    def _begin(self, control: TransactionControl, bound: Sequence[Any]) -> None:
        if self._execution.in_transaction:
            raise errors.ProgrammingError(
                "BEGIN inside a transaction; use SAVEPOINT to nest", sqlstate="25001"
            )
        self._set(control, bound)
        self.open()

    def _set(self, control: TransactionControl, bound: Sequence[Any]) -> None:
        if self._execution.txid is not None:
            raise errors.ProgrammingError(
                "SET TRANSACTION must come before the transaction's first statement",
                sqlstate="25001",
            )
        if control.as_of is not None:
            self.as_of = control.as_of.point(bound)
        if self.as_of is not None and control.read_only is False:
            raise errors.ProgrammingError(
                "a transaction AS OF the past is READ ONLY", sqlstate="25001"
            )
        if control.isolation is not None:
            self.isolation = IsolationLevel.parse(control.isolation)
        if control.read_only is not None:
            self.read_only = control.read_only

    def _finish(self, control: TransactionControl, end: Callable[[], None]) -> None:
        """End the transaction, and begin one like it if the statement says so."""
        if not control.chains:
            end()
            return
        self._expect_open("AND CHAIN needs")
        transaction = self._execution.transaction
        isolation, read_only, as_of = self.isolation, self.read_only, self.as_of
        if transaction is not None:
            isolation, read_only = transaction.isolation, transaction.read_only
        end()
        self.open(as_of)
        self.isolation, self.read_only = isolation, read_only

    def _open(self) -> DDLTransaction:
        self._expect_open("savepoints need")
        return self._execution.transaction or self._execution.begin()

    def _expect_open(self, what: str) -> None:
        if self._execution.commits_each:
            raise errors.ProgrammingError(
                f"{what} a transaction: BEGIN first, or turn autocommit off",
                sqlstate="25P01",
            )

    def _rollback_to(self, name: str) -> None:
        transaction = self._open()
        sequence = transaction.rollback_to(name)
        if transaction.migration is None:
            self._execution.leave_migration()
        self._execution.sessions.settings.rollback_to(sequence)
        self._execution.portals.rollback_to(sequence)

    @contextmanager
    def savepoint(
        self, name: str | None = None, *, rolls_back: bool = False
    ) -> Iterator[None]:
        """A block whose statements are undone if it raises, or if it ``rolls_back``."""
        name = name or f"tique block {next(self._numbers)}"
        guarded = self._execution.guarded
        with guarded("SAVEPOINT"):
            transaction = self._open()
            transaction.savepoint(name)
        try:
            yield
        except BaseException:
            rolls_back = True
            raise
        finally:
            with guarded("RELEASE"):
                if rolls_back:
                    self._rollback_to(name)
                transaction.release(name)


def _name(control: TransactionControl) -> str:
    assert control.savepoint is not None
    return control.savepoint
