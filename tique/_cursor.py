"""Cursors."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Self, cast

from typing_extensions import TypeVar

from tique import errors
from tique._append import arrow_of
from tique._copy import Copy
from tique._translation import translating
from tique.database import process
from tique.query.statements import Outcome
from tique.rows import tuple_row
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    import pyarrow

    from tique._connection import Connection
    from tique.rows import RowFactory, TupleRow
    from tique_backends.records import CopyPart, Row

_CHUNK = 1024

RowT = TypeVar("RowT", default=Any)

DescriptionItem = tuple[str, str, None, None, None, None, None]


class Cursor(Generic[RowT]):
    """Executes statements and holds one result at a time (PEP 249).

    Cursors of one connection are read independently, but an engine has one result per
    connection at a time. When the connection needs it for another statement, the rows
    of a large result that this cursor can still fetch are first read into memory
    (MonetDB keeps them in the server). So :meth:`close` the cursor, execute with it
    again, or drop it: then the rows that were not fetched are dropped unread.

    Attributes
    ----------
    arraysize : int
        How many rows :meth:`fetchmany` fetches by default.
    row_factory : RowFactory
        Makes the rows: see :mod:`tique.rows`.
    """

    def __init__(
        self, connection: Connection[Any], row_factory: RowFactory[RowT]
    ) -> None:
        self.arraysize = 1
        self.row_factory = row_factory
        self._connection = connection
        self._closed = False
        self._outcome: Outcome | None = None
        self._following: Iterator[Outcome] = iter(())
        self._position = 0
        self._rownumber = 0
        self._make: Callable[[TupleRow], RowT] | None = None

    @property
    def connection(self) -> Connection[Any]:
        """The connection that the cursor belongs to."""
        return self._connection

    @property
    def description(self) -> list[DescriptionItem] | None:
        """Name and type of each column of the result; None without a result."""
        outcome = self._outcome
        if outcome is None or outcome.columns is None:
            return None
        return [
            (column.name, column.type, None, None, None, None, None)
            for column in outcome.columns
        ]

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed or found; -1 where not known."""
        return -1 if self._outcome is None else self._outcome.rowcount

    @property
    def rownumber(self) -> int | None:
        """The index of the next row in the result; None without a result."""
        outcome = self._outcome
        return None if outcome is None or outcome.columns is None else self._rownumber

    def execute(self, query: str, parameters: Any = None, /) -> Self:
        """Execute one statement.

        Parameters
        ----------
        query
            SQL with ``%s`` or ``%(name)s`` placeholders (``?`` with qmark). Without
            parameters it is taken literally: no ``%`` needs doubling.
        parameters
            A sequence, or a mapping for named placeholders.

        Returns
        -------
        Cursor
            This cursor.

        Raises
        ------
        ProgrammingError
            For wrong SQL, unknown names, and a wrong number of parameters.
        NotSupportedError
            For SQL that tique refuses rather than misreads; it names the construct
            and its place.
        """
        self._reset()
        self._outcome = self._connection._run(query, parameters)
        return self

    def executemany(
        self, query: str, parameters: Iterable[Any], /, *, returning: bool = False
    ) -> Self:
        """Execute INSERT, UPDATE or DELETE for many rows of parameters, as one.

        All rows take effect or, if one fails, none.

        Parameters
        ----------
        query, parameters
            As for :meth:`execute`, with an iterable of parameters.
        returning
            Whether the rows of RETURNING are kept: one result for each row of
            parameters, the first of which is fetched from, and :meth:`nextset` goes on
            to the next. Else ``rowcount`` is the number of all rows that were changed.
        """
        self._reset()
        self._outcome = self._connection._run_many(
            query, parameters, returning=returning
        )
        self._following = iter(self._outcome.more)
        return self

    def copy(self, query: str, /) -> Copy:
        """Return a COPY … FROM STDIN or TO STDOUT, to use in a ``with`` block.

        The rows are checked, and become a part of the transaction, as those of INSERT.
        ``rowcount`` is their number when the block is over.

        Raises
        ------
        NotSupportedError
            If the engine has no such COPY.
        """
        self._reset()
        if self._connection._bulk.copies_in(query):
            return Copy(partial(self._copy_in, query), None)
        return Copy(None, partial(self._copy_out, query))

    def _copy_in(
        self, query: str, parts: list[CopyPart], types: Sequence[int | str]
    ) -> None:
        self._reset()
        self._outcome = self._connection._bulk.copy(
            query, lambda statement, within: statement.load(within, parts, types)
        )

    def _copy_out(
        self, query: str, types: Sequence[int | str] | None
    ) -> list[CopyPart]:
        found: list[CopyPart] = []

        def run(statement: Any, transaction: Any) -> Outcome:
            parts, count = statement.unload(transaction, types)
            found.extend(parts)
            return Outcome(count)

        self._reset()
        self._outcome = self._connection._bulk.copy(query, run)
        return found

    def append(self, table: str, data: Any, /, *, schema: str | None = None) -> Self:
        """Insert rows that come in columns, as one statement.

        All rows take effect or, if one fails, none. They are checked and converted as
        those of INSERT; columns that the data lack get their defaults.

        Parameters
        ----------
        table
            The table's name alone, without quotes.
        data
            A pyarrow Table, RecordBatch or RecordBatchReader, a data frame of pandas or
            polars, or anything else that exports an Arrow stream. Its columns are found
            by name, whatever the case.
        schema
            The table's schema; by default it is looked for as in SQL.
        """
        self._reset()
        self._outcome = self._connection._bulk.append(table, schema, arrow_of(data))
        return self

    def nextset(self) -> bool | None:
        """Go on to the next result of :meth:`executemany`, and drop the one before.

        Returns
        -------
        bool or None
            True if there is one, else None.
        """
        if self._closed:
            raise errors.InterfaceError("the cursor is closed", sqlstate="08003")
        outcome = next(self._following, None)
        if outcome is None:
            return None
        self._give_up()
        self._begin(outcome)
        return True

    def _reset(self) -> None:
        if self._closed:
            raise errors.InterfaceError("the cursor is closed", sqlstate="08003")
        self._give_up()
        self._following = iter(())
        self._begin(None)

    def _begin(self, outcome: Outcome | None) -> None:
        self._outcome = outcome
        self._position = 0
        self._rownumber = 0
        self._make = None

    def _give_up(self) -> None:
        """Drop the result, with the rows that were not fetched."""
        outcome, self._outcome = self._outcome, None
        if outcome is not None and outcome.result is not None:
            with self._connection._lock, suppress(EngineError):
                outcome.close()

    # Results

    def _require_result(self) -> Outcome:
        if self._closed:
            raise errors.InterfaceError("the cursor is closed", sqlstate="08003")
        self._connection._check_usable()
        outcome = self._outcome
        if outcome is None or outcome.columns is None:
            raise errors.ProgrammingError("there is no result to fetch from")
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def _take(self, size: int | None) -> list[Row]:
        """The next rows: ``size`` of them, or all."""
        outcome = self._require_result()
        if outcome.rows is None or (
            outcome.result is not None
            and (size is None or self._position + size > len(outcome.rows))
        ):
            self._fill(outcome, size)
        assert outcome.rows is not None
        end = len(outcome.rows) if size is None else self._position + size
        rows = outcome.rows[self._position : end]
        self._position += len(rows)
        self._rownumber += len(rows)
        return rows

    def _has_at_hand(self, size: int | None) -> bool:
        """Whether fetching ``size`` rows, or all, asks nothing of the engine."""
        outcome = self._outcome
        if outcome is None or outcome.result is None:
            return True
        return (
            size is not None
            and outcome.rows is not None
            and self._position + size <= len(outcome.rows)
        )

    def _fill(self, outcome: Outcome, size: int | None) -> None:
        """Fetch from the engine until ``size`` rows are at hand."""
        left = [] if outcome.rows is None else outcome.rows[self._position :]
        self._position = 0
        result = outcome.result
        if result is not None:
            with self._fetching(outcome):
                if size is None:
                    rest = result.fetch_all()
                    left = left + rest if left else rest
                    is_over = True
                else:
                    wanted = max(size - len(left), _CHUNK)
                    more = result.fetch(wanted)
                    is_over = len(more) < wanted
                    left += more
                outcome.rows = left
            if is_over:
                outcome.result = None
        outcome.rows = left

    @contextmanager
    def _fetching(self, outcome: Outcome) -> Iterator[None]:
        """Fetch from the engine; after a failure the result must not seem to end there.

        The number of rows that were taken from the engine is not known then.
        """
        try:
            with self._connection._lock, translating():
                yield
        except BaseException as error:
            process.park_if_exiting()
            lost = errors.OperationalError(
                "fetching was interrupted and rows of this result are lost; run the "
                "query again",
                sqlstate="57014",
            )
            outcome.error = error if isinstance(error, errors.Error) else lost
            with self._connection._lock, suppress(EngineError):
                outcome.close()
            raise

    def _factory(self) -> Callable[[TupleRow], RowT]:
        """Makes the rows of the result, of which there is one."""
        if self._make is None:
            outcome = self._outcome
            columns = (outcome and outcome.columns) or ()
            self._make = self.row_factory([column.name for column in columns])
        return self._make

    def fetchone(self) -> RowT | None:
        """Return the next row, or None at the end."""
        rows = self._take(1)
        return self._factory()(rows[0]) if rows else None

    def fetchmany(self, size: int | None = None) -> list[RowT]:
        """Return up to ``size`` (by default ``arraysize``) further rows."""
        rows = self._take(self.arraysize if size is None else size)
        return list(map(self._factory(), rows))

    def fetchall(self) -> list[RowT]:
        """Return all further rows."""
        rows = self._take(None)
        if self.row_factory is tuple_row:
            return cast("list[RowT]", rows)
        return list(map(self._factory(), rows))

    def fetch_arrow_table(self) -> pyarrow.Table:
        """Return all further rows as an Arrow table."""
        outcome = self._require_result()
        if outcome.result is not None and not outcome.rows:
            with self._fetching(outcome):
                table = outcome.result.arrow()
            outcome.rows, outcome.result = [], None
            self._rownumber += table.num_rows
            return table
        rows = self._take(None)
        with translating():
            return self._connection._arrow(rows, outcome.columns or ())

    def __iter__(self) -> Iterator[RowT]:
        """Iterate over the further rows."""
        return self

    def __next__(self) -> RowT:
        """Return the next row."""
        rows = self._take(1)
        if not rows:
            raise StopIteration
        return self._factory()(rows[0])

    def setinputsizes(self, sizes: Sequence[Any], /) -> None:
        """Do nothing (PEP 249 allows it)."""

    def setoutputsize(self, size: int, column: int | None = None, /) -> None:
        """Do nothing (PEP 249 allows it)."""

    def close(self) -> None:
        """Drop the result; further use is an error. Idempotent."""
        self._closed = True
        self._following = iter(())
        self._give_up()

    @property
    def closed(self) -> bool:
        """Whether the cursor was closed."""
        return self._closed

    def __enter__(self) -> Self:
        """Enter a block at whose end the cursor is closed."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the cursor."""
        self.close()
