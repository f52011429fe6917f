"""Relations of an engine's catalog, each read once for all tables.

A description of one table needs several of them, and a process describes all managed tables
when it connects and after each change of a definition: the number of statements must not grow
with the number of tables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tique_backends.errors import EngineError, ErrorKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_backends.records import Row
    from tique_backends.session import Session


_RESERVED = frozenset({"_cts", "_deleted", "_sequence"})


def expect_free(table: str, column: str) -> None:
    """Refuse a table that has a column with a name of tique's own.

    Raises
    ------
    EngineError
        UNSUPPORTED.
    """
    if column.lower() in _RESERVED:
        raise EngineError(
            ErrorKind.UNSUPPORTED,
            f"table {table}: the column name {column!r} is reserved",
        )


class Relations:
    """The rows of queries of the catalog, by the table that they belong to.

    Parameters
    ----------
    session
        The session to ask over.
    parameters
        Those of every query.
    width
        How many of a row's first values say which table it belongs to.
    """

    def __init__(
        self, session: Session, parameters: Sequence[Any] = (), width: int = 1
    ) -> None:
        self._session = session
        self._parameters = parameters
        self._width = width
        self._read: dict[str, dict[Row, list[Row]]] = {}

    def rows(self, sql: str, *table: Any) -> list[Row]:
        """A table's rows of a query, without the values that say which table it is."""
        if sql not in self._read:
            found = self._session.execute(sql, self._parameters).fetch_all()
            read = self._read[sql] = {}
            for row in found:
                which, rest = tuple(row[: self._width]), tuple(row[self._width :])
                read.setdefault(which, []).append(rest)
        return self._read[sql].get(table, [])
