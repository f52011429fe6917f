"""The feed of a table's changes, which is read beside a connection's statements.

A feed has a connection of its own to the same database, and reads in transactions that are
held (:mod:`tique.query.transaction.held`): neither what the application does meanwhile with
its connection, nor how slowly it takes the changes, is anything to the other.

*Each commit once.* A feed that follows reads one interval after another, each from where it
has come to up to the sts of a transaction that has just begun: no commit is in two of them, and all
that is between them. One that is begun anew with its ``version`` goes on there, in any
process: the intervals are versions.

*The end.* Whatever ends it closes its connection, and with it the engine transaction. If it
is dropped unread, its connection is, too (:meth:`Execution.abandon`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, Self, TypeAlias

from typing_extensions import TypeVar

from tique import errors
from tique.history import feed
from tique.history.moments import expect_kept, point_of
from tique.query.transaction.transaction import Transaction
from tique.query.write.restoring import RestoreStatement
from tique_backends.changes import difference
from tique_rewriter.plans.past import as_point
from tique_rewriter.schema import Table

if TYPE_CHECKING:
    from datetime import datetime
    from types import TracebackType

    import pyarrow

    from tique.connection.connection import Connection
    from tique.connection.execution import Execution
    from tique.history.feed import Change, Difference
    from tique.history.moments import Point
    from tique.query.transaction.ddl_transaction import DDLTransaction
    from tique.rows import RowFactory

_PAUSE = 0.05
"""Seconds between two looks for new commits."""

RowT = TypeVar("RowT", default=Any)
ItemT = TypeVar("ItemT", default=Any)

Read: TypeAlias = Callable[
    [Transaction, Table, int, int], Iterator[Iterable[tuple[int, ItemT]]]
]
"""Checks an interval of versions, and returns what it has, each item with its version."""


def reading_changes(factory: RowFactory[RowT]) -> Read[Change[RowT]]:
    """Return a function that reads changes, with rows of that kind."""

    def read(
        transaction: Transaction, table: Table, since: int, until: int
    ) -> Iterator[Iterable[tuple[int, Change[RowT]]]]:
        make = factory([column.name for column in table.columns])
        pieces = _pieces(transaction, table, since, until)
        return (feed.as_changes(piece, len(table.columns), make) for piece in pieces)

    return read


def read_batches(
    transaction: Transaction, table: Table, since: int, until: int
) -> Iterator[Iterable[tuple[int, pyarrow.RecordBatch]]]:
    """Read changes as Arrow's record batches."""
    names = [column.name for column in table.columns]
    engine, pieces = transaction.engine, _pieces(transaction, table, since, until)
    return ([feed.as_batch(piece, names, engine)] for piece in pieces)


def _pieces(
    transaction: Transaction, table: Table, since: int, until: int
) -> Iterator[feed.Piece]:
    session = transaction.session
    feed.expect_every_change(transaction.engine, session, table, since)
    return feed.pieces(transaction.engine, session, table, since, until)


def reading_differences(
    factory: RowFactory[RowT], since: int | datetime, until: int | datetime
) -> Read[Difference[RowT]]:
    """Return a function that reads what differs, with rows of that kind."""

    def read(
        transaction: Transaction, table: Table, _since: int, _until: int
    ) -> Iterator[Iterable[tuple[int, Difference[RowT]]]]:
        session = transaction.session
        points = [_point(transaction, asked) for asked in (since, until)]
        for point in points:
            expect_kept(session, table, point)
        make = factory([column.name for column in table.columns])
        query = difference(
            transaction.engine.forms, table, *(point.version for point in points)
        )
        rows = feed.fetched(session.execute(query, wide=True))
        return (feed.as_differences(each, len(table.columns), make) for each in rows)

    return read


def restore(
    execution: Execution, place: tuple[str | None, str], as_of: int | datetime
) -> int:
    """Bring a table's rows back to what they were; the number of those that were not the same."""
    with execution.guarded():
        transaction = execution.transaction or execution.begin()
        if transaction.has_run_ddl:
            raise errors.NotSupportedError(
                "a table is not restored in a transaction after its DDL: restore it before"
            )
        table = execution.bulk.find(*place)
        point = _point(transaction, as_of)
        statement = RestoreStatement(table, point)
        expect_kept(transaction.session, table, point)
        return execution.run_in_transaction(statement, (), statement.run).rowcount


def _point(transaction: Transaction, asked: int | datetime) -> Point:
    """The version that is asked for."""
    return point_of(
        transaction.engine, transaction.session, as_point(asked), transaction.sts
    )


class Feed(Generic[ItemT]):
    """An iterator over what a table's history has between two versions.

    Attributes
    ----------
    version : int
        The version up to which all changes were given. Another feed goes on with
        ``since=feed.version``; it begins with the commit whose changes this one was giving.
    """

    def __init__(
        self,
        reader: Connection[Any],
        place: tuple[str | None, str],
        since: int | datetime,
        until: int | datetime | None,
        read: Read[ItemT],
        *,
        follows: bool,
        timeout: float | None,
    ) -> None:
        self._reader = reader
        self._execution = reader._execution
        self._place = place
        self._read = read
        self._follows = follows
        self._timeout = timeout
        self._items: Iterator[tuple[int, ItemT]] = iter(())
        self._pieces: Iterator[Iterable[tuple[int, ItemT]]] = iter(())
        self._last: int | None = None
        self.version = 0
        try:
            with self._execution.guarded():
                transaction = self._begin()
                transaction.hold()
                with suppress(errors.OperationalError):
                    # Before all that is known: what is read says where that begins.
                    self.version = _point(transaction, since).version
                if follows and isinstance(until, int):
                    # It may be still to come.
                    self._last = until
                elif until is not None:
                    self._last = _point(transaction, until).version
                self._prepare(transaction)
        except BaseException:
            reader.close()
            raise

    def _begin(self) -> DDLTransaction:
        """Begin a transaction, whose snapshot is the state of now."""
        transaction = self._execution.begin()
        self._table = self._execution.bulk.find(*self._place)
        return transaction

    def _prepare(self, transaction: DDLTransaction) -> None:
        """Prepare to read what the transaction sees beyond what was given."""
        table, until = self._table, transaction.sts
        if self._last is not None:
            until = min(until, self._last)
        transaction.versions(table)
        transaction.hold()
        self._pieces = self._read(transaction, table, self.version, until)
        self._until = until

    def __iter__(self) -> Self:
        """Iterate over the changes."""
        return self

    def __next__(self) -> ItemT:
        """Return the next one."""
        try:
            while True:
                found = next(self._items, None)
                if found is not None:
                    # The rest of the commit may be still to come.
                    self.version = max(self.version, found[0] - 1)
                    return found[1]
                if not (self._take() or self._look_again()):
                    raise StopIteration
        except BaseException as error:
            was_closed = self._reader.closed
            self.close()
            if was_closed and isinstance(error, errors.Error):
                # Another thread has closed it meanwhile.
                raise StopIteration from None
            raise

    def _take(self) -> bool:
        """Take more from the engine; False if there is no more."""
        if self._reader.closed:
            return False
        with self._execution.guarded():
            piece = next(self._pieces, None)
            if piece is None:
                self.version = max(self.version, self._until)
                self._execution.rollback()
                return False
            self._items = iter(piece)
            return True

    def _look_again(self) -> bool:
        """Wait for new commits to the table; False if this is the end."""
        waits_until = self._timeout and time.monotonic() + self._timeout
        while self._follows and not self._reader.closed and self.version != self._last:
            with self._execution.guarded():
                transaction = self._begin()
                if transaction.versions(self._table).last_cts > self.version:
                    self._prepare(transaction)
                    return True
                self._execution.rollback()
                self.version = min(transaction.sts, self._last or transaction.sts)
            if waits_until is not None and time.monotonic() >= waits_until:
                break
            time.sleep(_PAUSE)
        return False

    def close(self) -> None:
        """End it; idempotent. Another thread may do so."""
        self._reader.close()

    def __enter__(self) -> Self:
        """Enter a block at whose end it is closed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()
