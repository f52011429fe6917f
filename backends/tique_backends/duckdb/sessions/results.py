"""Results of DuckDB's statements, which are read from the connection as they are fetched.

*Names for results without an alias:* the expression's text, in DuckDB's own form. DuckDB
parses the expression and prints it again: ``max( a )+1`` is called
``(max(a) + 1)``. Its JSON form of a statement makes the same round trip, with no table
looked at.
"""

from __future__ import annotations

import warnings
import weakref
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from typing_extensions import override

from tique_backends.duckdb.errors import translated, translating
from tique_backends.duckdb.values.arrow import is_shown_alike, rows_to_arrow
from tique_backends.errors import EngineError, ErrorKind, cut_short
from tique_backends.records import ResultColumn, Row
from tique_backends.session import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb
    import pyarrow


_Fetched = TypeVar("_Fetched")


class DuckDBResult(Result):
    """A result that is still in its connection, or was drained from it."""

    def __init__(self, stream: Stream) -> None:
        description = stream.connection.description or []
        self.columns = [ResultColumn(c[0], str(c[1])) for c in description]
        self._stream: Stream | None = stream
        stream.reader = weakref.ref(self)
        self._drained: list[Row] = []
        self._error: EngineError | None = None

    def drain(self) -> None:
        """Read all rows into memory, as the connection is needed.

        An error of the engine is this result's own: a later fetch raises it.
        """
        with suppress(EngineError):
            self._drained = self.fetch_all()

    def read_ahead(self, most: int) -> bool:
        """Have up to so many rows in memory; whether these are all."""
        self._drained = self.fetch(most + 1)
        return self._stream is None

    @override
    def fetch(self, size: int) -> list[Row]:
        rows, self._drained = self._drained[:size], self._drained[size:]
        if self._stream is not None and len(rows) < size:
            wanted = size - len(rows)
            more = self._take(lambda c: c.fetchmany(wanted))
            if len(more) < wanted:
                self._end()
            return rows + more if rows else more
        self._check()
        return rows

    @override
    def fetch_all(self) -> list[Row]:
        rows, self._drained = self._drained, []
        if self._stream is not None:
            rest = self._take(lambda c: c.fetchall())
            self._end()
            return rows + rest if rows else rest
        self._check()
        return rows

    @override
    def arrow(self) -> pyarrow.Table:
        if self._stream is None or self._drained:
            return rows_to_arrow(self.fetch_all(), self.columns)
        table = self._take(to_arrow)
        self._end()
        return table

    @override
    def hold(self, most: int) -> bool:
        if not all(is_shown_alike(column.type) for column in self.columns):
            # The application may want Arrow's form.
            self.close()
            return False
        rows = self.fetch(most + 1)
        if len(rows) > most:
            self.close()
            return False
        self._drained = rows
        return True

    @override
    def close(self) -> None:
        stream, self._stream = self._stream, None
        self._drained = []
        if stream is not None:
            stream.close()

    def _take(self, fetch: Callable[[duckdb.DuckDBPyConnection], _Fetched]) -> _Fetched:
        assert self._stream is not None
        try:
            return fetch(self._stream.connection)
        except BaseException as error:
            # There is nothing more to come, and nothing to drain.
            self._end()
            self._error = cut_short()
            if not isinstance(error, Exception):
                raise
            self._error = translated(error)
            raise self._error from error

    def _end(self) -> None:
        """Note that the connection has nothing more of it."""
        if self._stream is not None:
            self._stream.is_open = False
            self._stream = None

    def _check(self) -> None:
        if self._error is not None:
            raise self._error


class Stream:
    """The rows of a connection's last query that are not read yet.

    DuckDB computes them as they are fetched, in an engine transaction of their own.
    The connection's next statement ends both.

    Attributes
    ----------
    is_open : bool
        Whether there may be more rows.
    reader : callable
        Returns the result that fetches them, None if it is gone or never came to be.
    """

    __slots__ = ("connection", "is_open", "reader")

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self.connection = connection
        self.is_open = True
        self.reader: Callable[[], DuckDBResult | None] = lambda: None

    def close(self) -> None:
        """Give up the rows that were not fetched."""
        if self.is_open:
            self.is_open = False
            with translating():
                self.connection.execute("SELECT NULL").fetchall()


def to_arrow(connection: duckdb.DuckDBPyConnection) -> pyarrow.Table:
    """All rows of the connection's last query."""
    with warnings.catch_warnings():
        # DuckDB 2.0 warns of the copy that a DB-API result costs. Threads may leave
        # this filter behind: so it is for this message only.
        warnings.filterwarnings("ignore", "Arrow output on a DB-API result")
        return connection.to_arrow_table()


_SELECT = "SELECT "


def naming(expressions: Sequence[str]) -> str:
    """Return a query for :func:`name_in`, with a row for each expression, in order."""
    texts = ", ".join(
        f"({number}, '{_quoted(_SELECT + expression)}')"
        for number, expression in enumerate(expressions)
    )
    return (
        "SELECT CASE WHEN json_extract_string(tree, '$.error') = 'true' THEN NULL "
        "ELSE json_deserialize_sql(tree) END, json_extract_string(tree, '$.error_type') "
        "FROM (SELECT number, json_serialize_sql(text) AS tree "
        f"FROM (VALUES {texts}) AS _t(number, text)) AS _n ORDER BY number"
    )


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def name_in(expression: str, statement: str | None, error: str | None) -> str:
    """Return the name, given DuckDB's form of a SELECT of the expression, or its error.

    An expression that DuckDB does not understand it will refuse, whatever its name.

    Raises
    ------
    EngineError
        UNSUPPORTED for expressions that have no JSON form.
    """
    if statement is not None and statement.startswith(_SELECT):
        return statement.removeprefix(_SELECT)
    if error == "parser":
        return expression
    raise EngineError(
        ErrorKind.UNSUPPORTED,
        "DuckDB does not tell the name of a result with a subquery: give it an alias",
    )
