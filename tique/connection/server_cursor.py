"""Named cursors, whose rows wait in the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from typing_extensions import override

from tique import errors
from tique.connection.cursor import Cursor, RowT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tique.connection.connection import Connection
    from tique.connection.query_text import Query
    from tique.connection.transfer.copy import Copy
    from tique.rows import RowFactory


class ServerCursor(Cursor[RowT]):
    """A cursor for a large result: ``connection.cursor("name")``, as in psycopg.

    Its rows are read in pieces, whatever else the connection runs meanwhile, and stay those of
    the snapshot in which the query ran, also after the transaction's end. The query has
    an engine session of its own, until the last row is fetched or the cursor is closed;
    except for results of a few rows from an uncommitted fold, which are in memory at once, and for queries that read what only the connection's session has: rows that the
    transaction has written itself, temporary tables, changed settings. The rest of such a
    result is read into memory when the connection runs another statement.

    Attributes
    ----------
    name : str
        The cursor's name, which means nothing to the engine.
    itersize : int
        Rows of a piece.
    """

    def __init__(
        self, connection: Connection[Any], row_factory: RowFactory[RowT], name: str
    ) -> None:
        super().__init__(connection, row_factory)
        self.name = name
        self.itersize = 100
        self._run = self._execution.run_apart

    @property
    @override
    def _piece(self) -> int:
        return self.itersize

    @override
    def executemany(
        self, query: Query, parameters: Iterable[Any], /, *, returning: bool = False
    ) -> Self:
        """Raise NotSupportedError: a named cursor is for one query."""
        raise _for_queries("executemany()")

    @override
    def copy(self, query: Query, /) -> Copy:
        """Raise NotSupportedError: a named cursor is for one query."""
        raise _for_queries("copy()")

    @override
    def append(self, table: str, data: Any, /, *, schema: str | None = None) -> Self:
        """Raise NotSupportedError: a named cursor is for one query."""
        raise _for_queries("append()")


def _for_queries(what: str) -> errors.NotSupportedError:
    return errors.NotSupportedError(
        f"{what} is not supported by a named cursor, which is for queries; use "
        "connection.cursor()"
    )
