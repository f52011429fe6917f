"""Cursors."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from functools import partial
from operator import index
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, cast

from typing_extensions import TypeVar

from tique import errors
from tique._translation import count, given, translating
from tique.connection.query_text import text_of
from tique.connection.transfer.append import arrow_of
from tique.connection.transfer.batches import record_batches
from tique.connection.transfer.copy import Copy
from tique.database import process
from tique.query.base import Outcome
from tique.rows import tuple_row
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import TracebackType

    import pandas
    import polars
    import pyarrow

    from tique.connection.connection import Connection
    from tique.connection.query_text import Query
    from tique.rows import RowFactory, TupleRow
    from tique_backends.records import CopyPart, Row

_CHUNK = 1024

RowT = TypeVar("RowT", default=Any)


class Column(NamedTuple):
    """A column of a result, as PEP 249 describes it; tique knows its name and type."""

    name: str
    type_code: str
    display_size: None = None
    internal_size: None = None
    precision: None = None
    scale: None = None
    null_ok: None = None


_NOTHING: Iterator[Outcome] = iter(())
"""An iterator at its end."""


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
        self._execution = connection._execution
        self._run = self._execution.run
        self._closed = False
        self._outcome: Outcome | None = None
        self._following: Iterator[Outcome] = _NOTHING
        self._position = 0
        self._rownumber = 0
        self._make: Callable[[TupleRow], RowT] | None = None
        # SQLAlchemy asks for it when it has closed the cursor.
        self._last_rowcount = -1
        self._query: tuple[str, bool] | None = None
        """The last statement that has run, and whether it was given parameters."""

    @property
    def connection(self) -> Connection[Any]:
        """The connection that the cursor belongs to."""
        return self._connection

    @property
    def description(self) -> list[Column] | None:
        """Name and type of each column of the result; None without a result."""
        outcome = self._outcome
        if outcome is None or outcome.columns is None:
            return None
        return [Column(column.name, column.type) for column in outcome.columns]

    @property
    def rowcount(self) -> int:
        """Rows that the last statement changed or found; -1 where not known.

        Those of a query that the engine sends in pieces are known when a fetch has met
        their end. A closed cursor still has it.
        """
        outcome = self._outcome
        return self._last_rowcount if outcome is None else outcome.rowcount

    @property
    def statusmessage(self) -> str | None:
        """The last statement's command tag, as psycopg has it: ``INSERT 0 1``.

        That of a query is without a number as long as :attr:`rowcount` is not known. None
        before the first, after one that failed, and for a text without a statement.
        """
        if self._query is None:
            return None
        rewriter = self._execution.planner.rewriter
        return rewriter.command_tag(*self._query, self.rowcount) or None

    @property
    def rownumber(self) -> int | None:
        """The index of the next row in the result; None without a result."""
        outcome = self._outcome
        return None if outcome is None or outcome.columns is None else self._rownumber

    def execute(
        self,
        query: Query,
        parameters: Any = None,
        *,
        prepare: bool | None = None,
        binary: bool | None = None,
    ) -> Self:
        """Execute one statement.

        Parameters
        ----------
        query
            SQL with ``%s`` or ``%(name)s`` placeholders (``?`` with qmark). Without
            parameters it is taken literally: no ``%`` needs doubling. It may be a
            composable of ``psycopg.sql``, too.
        parameters
            A sequence, or a mapping for named placeholders.
        prepare, binary
            psycopg's, which change no result: tique decides what is prepared.

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
        if type(query) is not str:
            query = text_of(query)
        self._reset()
        self._outcome = self._run(query, parameters)
        self._query = query, parameters is not None
        return self

    def executemany(
        self, query: Query, parameters: Iterable[Any], /, *, returning: bool = False
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
        query = text_of(query)
        self._reset()
        rows = given(iter, parameters, "the rows of parameters")
        self._outcome = self._execution.run_many(query, rows, returning=returning)
        self._following = iter(self._outcome.more)
        self._query = query, True
        return self

    def stream(
        self, query: Query, parameters: Any = None, *, size: int = 1
    ) -> Iterator[RowT]:
        """Execute a query and iterate over its rows, which are read as they are needed.

        Parameters
        ----------
        query, parameters
            As for :meth:`execute`.
        size
            psycopg's: rows that the engine gives at a time. tique chooses more.
        """
        outcome = self.execute(query, parameters)._require_result()
        try:
            # "yield from" would close the cursor with the iterator.
            for row in self:  # noqa: UP028
                yield row
        finally:
            if self._outcome is outcome:
                self._give_up()

    def copy(self, query: Query, /) -> Copy:
        """Return a COPY … FROM STDIN or TO STDOUT, to use in a ``with`` block.

        The rows are checked, and become a part of the transaction, as those of INSERT.
        ``rowcount`` is their number when the block is over.

        Raises
        ------
        NotSupportedError
            If the engine has no such COPY.
        """
        query = text_of(query)
        self._reset()
        if self._execution.bulk.copies_in(query):
            return Copy(partial(self._copy_in, query), None)
        return Copy(None, partial(self._copy_out, query))

    def _copy_in(
        self, query: str, parts: list[CopyPart], types: Sequence[int | str]
    ) -> None:
        self._reset()
        self._outcome = self._execution.bulk.copy(
            query, lambda statement, within: statement.load(within, parts, types)
        )
        self._query = query, False

    def _copy_out(
        self, query: str, types: Sequence[int | str] | None
    ) -> list[CopyPart]:
        found: list[CopyPart] = []

        def run(statement: Any, transaction: Any) -> Outcome:
            parts, count = statement.unload(transaction, types)
            found.extend(parts)
            return Outcome(count)

        self._reset()
        self._outcome = self._execution.bulk.copy(query, run)
        self._query = query, False
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
        self._outcome = self._execution.bulk.append(table, schema, arrow_of(data))
        return self

    def nextset(self) -> bool | None:
        """Go on to the next result of :meth:`executemany`, and drop the one before.

        Returns
        -------
        bool or None
            True if there is one, else None.
        """
        self._expect_open()
        outcome = next(self._following, None)
        if outcome is None:
            return None
        self._give_up()
        self._begin(outcome)
        return True

    def results(self) -> Iterator[Self]:
        """Iterate over the results of :meth:`executemany`: fetch from this cursor each time."""
        if self._outcome is not None:
            yield self
        while self.nextset():
            yield self

    def scroll(self, value: int, mode: str = "relative") -> None:
        """Go on to another row of the result, forward only.

        Parameters
        ----------
        value
            The number of rows to skip, or the index of the row to fetch next.
        mode
            ``"relative"`` or ``"absolute"``.

        Raises
        ------
        NotSupportedError
            If the row is before the next one: rows that were fetched are not kept.
        IndexError
            If there are not so many rows.
        """
        self._require_result()
        if mode not in ("relative", "absolute"):
            raise errors.ProgrammingError(f"mode {mode!r} is not relative or absolute")
        value = given(index, value, "the number of rows to skip")
        skipped = value if mode == "relative" else value - self._rownumber
        if skipped < 0:
            raise errors.NotSupportedError(
                "scroll() backward is not supported: rows that were fetched are not "
                "kept; keep them, or execute the query again"
            )
        while skipped > 0:
            rows = self._take(min(skipped, _CHUNK))
            if not rows:
                raise IndexError("the result has fewer rows")
            skipped -= len(rows)

    def _expect_open(self) -> None:
        if self._closed:
            raise errors.InterfaceError("the cursor is closed", sqlstate="08003")

    def _reset(self) -> None:
        if self._closed:
            self._expect_open()
        if self._outcome is not None:
            self._give_up()
        self._following = _NOTHING
        self._begin(None)
        self._query = None

    def _begin(self, outcome: Outcome | None) -> None:
        self._outcome = outcome
        self._position = 0
        self._rownumber = 0
        self._make = None

    def _give_up(self) -> None:
        """Drop the result, with the rows that were not fetched."""
        outcome, self._outcome = self._outcome, None
        if outcome is None or outcome.result is None or self._execution.is_inherited:
            return
        with self._execution.lock, suppress(EngineError):
            outcome.close()

    # Results

    def _require_result(self) -> Outcome:
        if self._closed:
            self._expect_open()
        self._execution.check_usable()
        outcome = self._outcome
        if outcome is None or outcome.columns is None:
            raise errors.ProgrammingError("there is no result to fetch from")
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def _take(self, size: int | None) -> list[Row]:
        """The next rows: ``size`` of them, or all."""
        outcome = self._require_result()
        if size is not None:
            size = given(count, size, "a number of rows")
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

    @property
    def _piece(self) -> int:
        """Rows that are read at a time, at least."""
        return _CHUNK

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
                    wanted = max(size - len(left), self._piece)
                    more = result.fetch(wanted)
                    is_over = len(more) < wanted
                    left += more
                outcome.rows = left
            if is_over:
                outcome.result = None
                outcome.rowcount = self._rownumber + len(left)
        outcome.rows = left

    @contextmanager
    def _fetching(self, outcome: Outcome) -> Iterator[None]:
        """Fetch from the engine; after a failure the result must not seem to end there.

        The number of rows that were taken from the engine is not known then.
        """
        try:
            with self._execution.lock, translating("FETCH"):
                self._execution.check_usable()
                yield
        except BaseException as error:
            process.park_if_exiting()
            lost = errors.OperationalError(
                "fetching was interrupted and rows of this result are lost; run the "
                "query again",
                sqlstate="57014",
            )
            outcome.error = error if isinstance(error, errors.Error) else lost
            with self._execution.lock, suppress(EngineError):
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
        rows, position = self._require_result().rows, self._position
        if rows is None or position >= len(rows):
            rows, position = self._take(1), 0
            if not rows:
                return None
        else:
            self._position = position + 1
            self._rownumber += 1
        row = rows[position]
        if self.row_factory is tuple_row:
            return cast("RowT", row)
        return self._factory()(row)

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
            outcome.rowcount = self._rownumber
            return table
        return self._take_arrow(None)

    def _take_arrow(self, size: int | None) -> pyarrow.Table:
        """The next rows, ``size`` of them or all, as an Arrow table."""
        columns = self._require_result().columns or ()
        rows = self._take(size)
        with translating():
            return self._execution.database.engine.arrow(rows, columns)

    def fetch_record_batch(
        self, rows_per_batch: int = 100_000
    ) -> pyarrow.RecordBatchReader:
        """Return a reader of all further rows as Arrow record batches.

        They are fetched as they are read, from this cursor: closing or executing it again
        ends them. As DuckDB's and ADBC's.

        Parameters
        ----------
        rows_per_batch
            The rows of a batch, at most.

        Raises
        ------
        DataError
            While it is read: if a column without a type of its own (a NUMERIC without digits)
            has values that do not fit the type of the rows before.
        """
        if given(count, rows_per_batch, "rows_per_batch") < 1:
            raise errors.ProgrammingError(f"rows_per_batch={rows_per_batch} is below 1")
        outcome = self._require_result()

        def take() -> pyarrow.Table:
            if self._outcome is not outcome and not self._closed:
                raise errors.ProgrammingError(
                    "the cursor has executed another statement: this result is gone"
                )
            return self._take_arrow(rows_per_batch)

        return record_batches(take)

    def fetch_df(self) -> pandas.DataFrame:
        """Return all further rows as a data frame of pandas."""
        return self.fetch_arrow_table().to_pandas()

    def fetch_polars(self) -> polars.DataFrame:
        """Return all further rows as a data frame of polars."""
        import polars

        return polars.from_arrow(self.fetch_arrow_table())  # type: ignore[return-value]

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
        self._last_rowcount = self.rowcount
        self._following = _NOTHING
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
