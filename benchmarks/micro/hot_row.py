"""Commits per second of clients that all change one row, and who gets them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import duckdb
from typing_extensions import override

from benchmarks.targets.base import in_style
from benchmarks.workload import Client, Transaction, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.targets.base import Connection, ParameterStyle

MODES = ("autocommit", "transaction", "read-write")
"""An increment by itself, in BEGIN and COMMIT, or computed by the client."""


class CounterClient(Client):
    """Increments the counter; its transactions are of a kind of their own."""

    def __init__(
        self, number: int, connection: Connection, style: ParameterStyle, mode: str
    ) -> None:
        self._kind = f"client {number}"
        self._mode = mode
        self._connection = connection
        self._cursor = connection.cursor()
        self._add = in_style("UPDATE counter SET n = n + 1 WHERE id = 1", style)
        self._read = in_style("SELECT n FROM counter WHERE id = 1", style)
        self._set = in_style("UPDATE counter SET n = %s WHERE id = 1", style)

    @override
    def next_transaction(self) -> Transaction:
        """Return the next increment."""
        return Transaction(self._kind, self._increment)

    def _increment(self) -> bool:
        if self._mode == "read-write":
            self._cursor.execute(self._read)
            row = self._cursor.fetchone()
            assert row is not None
            self._cursor.execute(self._set, (row[0] + 1,))
        else:
            self._cursor.execute(self._add)
        if self._mode != "autocommit":
            self._connection.commit()
        return True


class HotRowWorkload(Workload):
    """One counter, which is the number of commits.

    Parameters
    ----------
    mode : str
        One of `MODES`.
    clients : int
        The largest number of clients: each has its own kind of transaction, so that
        reports show the commits of each.
    """

    name: ClassVar[str] = "hot-row"

    def __init__(self, mode: str, clients: int) -> None:
        self.mode = mode
        self.autocommit = mode == "autocommit"
        self.kinds = tuple(f"client {number}" for number in range(clients))

    @property
    @override
    def label(self) -> str:
        """The name of the loaded database."""
        return "hot-row"

    @override
    def load(self, path: Path) -> None:
        """Create the counter, at 0."""
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"
            )
            connection.execute("INSERT INTO counter VALUES (1, 0)")
            connection.execute("CHECKPOINT")

    @override
    def client(
        self, number: int, connection: Connection, style: ParameterStyle
    ) -> Client:
        """Return client `number`."""
        return CounterClient(number, connection, style, self.mode)

    @override
    def state(self, connection: Connection) -> int:
        """Return the counter."""
        cursor = connection.cursor()
        cursor.execute("SELECT n FROM counter")
        row = cursor.fetchone()
        return int(row[0]) if row else 0

    @override
    def failures(
        self, connection: Connection, before: int, committed: Mapping[str, int]
    ) -> list[str]:
        """Check that the counter grew by one for every acknowledged commit."""
        after, commits = self.state(connection), sum(committed.values())
        if after == before + commits:
            return []
        return [f"the counter went from {before} to {after} in {commits} commits"]
