"""Commits per second of single-row updates on distinct keys, from many threads."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, ClassVar

import duckdb
from typing_extensions import override

from benchmarks.targets.base import in_style
from benchmarks.workload import Client, Transaction, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.targets.base import Connection, ParameterStyle

ACCOUNTS = 100_000
KEYS_PER_CLIENT = 1000


class UpdateClient(Client):
    """Adds 1 to one account after the other of a range that no other client touches."""

    def __init__(
        self,
        number: int,
        connection: Connection,
        style: ParameterStyle,
        *,
        autocommit: bool,
    ) -> None:
        self._autocommit = autocommit
        self._connection = connection
        self._cursor = connection.cursor()
        self._sql = in_style(
            "UPDATE account SET balance = balance + 1 WHERE id = %s", style
        )
        self._first_key = number * KEYS_PER_CLIENT
        self._step = count()

    @override
    def next_transaction(self) -> Transaction:
        """Return the update of the next account."""
        key = self._first_key + next(self._step) % KEYS_PER_CLIENT
        return Transaction("update", lambda: self._update(key))

    def _update(self, key: int) -> bool:
        self._cursor.execute(self._sql, (key,))
        if not self._autocommit:
            self._connection.commit()
        return True


class GroupCommitWorkload(Workload):
    """A table of accounts whose balances sum to the number of commits.

    Parameters
    ----------
    autocommit : bool
        Let each UPDATE be a transaction by itself. It is the default because DuckDB is
        fastest so, without BEGIN and COMMIT as statements.
    """

    name: ClassVar[str] = "group-commit"
    kinds: tuple[str, ...] = ("update",)

    def __init__(self, *, autocommit: bool = True) -> None:
        self.autocommit = autocommit

    @property
    @override
    def label(self) -> str:
        """The name of the loaded database."""
        return f"group-commit-{ACCOUNTS}"

    @override
    def load(self, path: Path) -> None:
        """Create the accounts, all with balance 0."""
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL)"
            )
            connection.execute(
                "INSERT INTO account SELECT range, 0 FROM range(?)", [ACCOUNTS]
            )
            connection.execute("CHECKPOINT")

    @override
    def client(
        self, number: int, connection: Connection, style: ParameterStyle
    ) -> Client:
        """Return client `number` with its range of keys."""
        if (number + 1) * KEYS_PER_CLIENT > ACCOUNTS:
            raise ValueError(
                f"at most {ACCOUNTS // KEYS_PER_CLIENT} threads have keys of their own"
            )
        return UpdateClient(number, connection, style, autocommit=self.autocommit)

    @override
    def state(self, connection: Connection) -> int:
        """Return the sum of all balances."""
        cursor = connection.cursor()
        cursor.execute("SELECT SUM(balance) FROM account")
        row = cursor.fetchone()
        return int(row[0]) if row else 0

    @override
    def failures(
        self, connection: Connection, before: int, committed: Mapping[str, int]
    ) -> list[str]:
        """Check that the sum grew by one for every acknowledged commit."""
        after, commits = self.state(connection), committed.get("update", 0)
        if after == before + commits:
            return []
        return [f"sum went from {before} to {after} in {commits} commits"]
