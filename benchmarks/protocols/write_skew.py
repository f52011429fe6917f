"""Write skew: of two on call one must stay, and each may go while the other is there.

A transaction reads both rows of a pair and changes one of them: if both are on call it
takes one off, if one is off it brings that one back. In whatever order transactions
follow each other, somebody of each pair is on call. Two that overlap, see both on call
and take off one each break that, under snapshot isolation, though they write different
rows. Who meets a pair without anybody on call brings one back and counts an anomaly.
"""

from __future__ import annotations

from copy import copy
from functools import partial
from random import Random
from typing import TYPE_CHECKING, ClassVar

import duckdb
from typing_extensions import override

from benchmarks.targets.base import READ_COMMITTED, in_style
from benchmarks.workload import Client, Transaction, Workload

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from benchmarks.targets.base import Connection, ParameterStyle


class PairClient(Client):
    """Changes one row of a pair at a time."""

    def __init__(
        self,
        pairs: int,
        random: Random,
        connection: Connection,
        style: ParameterStyle,
        *,
        locking: bool,
    ) -> None:
        self._pairs = pairs
        self._random = random
        self._connection = connection
        self._cursor = connection.cursor()
        self._read = in_style(
            "SELECT member, on_call FROM duty WHERE pair = %s"
            + (" FOR UPDATE" if locking else ""),
            style,
        )
        self._change = in_style(
            "UPDATE duty SET on_call = %s, changes = changes + 1,"
            " anomalies = anomalies + %s WHERE pair = %s AND member = %s",
            style,
        )

    @override
    def next_transaction(self) -> Transaction:
        """Return a change of any pair, and of either member if both are on call."""
        pair, member = self._random.randrange(self._pairs), self._random.randrange(2)
        return Transaction("change", partial(self._run, pair, member))

    def _run(self, pair: int, member: int) -> bool:
        self._cursor.execute(self._read, (pair,))
        on_call = dict(self._cursor.fetchall())
        off = [each for each, is_on in sorted(on_call.items()) if not is_on]
        if off:
            change = (1, int(len(off) == len(on_call)), pair, off[0])
        else:
            change = (0, 0, pair, member)
        self._cursor.execute(self._change, change)
        self._connection.commit()
        return True


class WriteSkewWorkload(Workload):
    """Pairs of rows, all of them on call at first.

    Parameters
    ----------
    rows : int
        Number of rows, two for each pair.
    seed : int
        Fixes each client's sequence of pairs.
    """

    name: ClassVar[str] = "write-skew"
    kinds: tuple[str, ...] = ("change",)

    locking = False
    """Whether pairs that are read are locked."""

    def __init__(self, rows: int, seed: int) -> None:
        self.pairs = rows // 2
        self.seed = seed

    @property
    @override
    def label(self) -> str:
        """The name of the loaded database."""
        return f"write-skew-{self.pairs}"

    @override
    def at(self, level: str) -> WriteSkewWorkload:
        """Lock pairs that are read, as READ COMMITTED needs it."""
        found = copy(self)
        found.locking = level == READ_COMMITTED
        return found

    @override
    def load(self, path: Path) -> None:
        """Create the pairs."""
        with duckdb.connect(str(path)) as connection:
            connection.execute(
                "CREATE TABLE duty (pair INTEGER, member INTEGER,"
                " on_call INTEGER NOT NULL, changes INTEGER NOT NULL,"
                " anomalies INTEGER NOT NULL, PRIMARY KEY (pair, member))"
            )
            connection.execute(
                "INSERT INTO duty SELECT range // 2, range % 2, 1, 0, 0 FROM range(?)",
                [2 * self.pairs],
            )
            connection.execute("CHECKPOINT")

    @override
    def client(
        self, number: int, connection: Connection, style: ParameterStyle
    ) -> Client:
        """Return client `number` with its sequence of pairs."""
        random = Random(f"{self.seed}/{number}")  # noqa: S311
        return PairClient(self.pairs, random, connection, style, locking=self.locking)

    @override
    def state(self, connection: Connection) -> int:
        """Return the number of changes."""
        return _number(connection, "SELECT sum(changes) FROM duty")

    @override
    def failures(
        self, connection: Connection, before: int, committed: Mapping[str, int]
    ) -> list[str]:
        """Check that every acknowledged change was counted."""
        after, commits = self.state(connection), committed.get("change", 0)
        if after == before + commits:
            return []
        return [f"changes went from {before} to {after} in {commits} commits"]

    @override
    def anomalies(self, connection: Connection) -> int:
        """Return how often nobody of a pair was on call, and how often nobody is."""
        met = _number(connection, "SELECT sum(anomalies) FROM duty")
        left = _number(
            connection,
            "SELECT count(*) FROM (SELECT pair FROM duty GROUP BY pair"
            " HAVING max(on_call) = 0) AS nobody",
        )
        return met + left


def _number(connection: Connection, query: str) -> int:
    cursor = connection.cursor()
    cursor.execute(query)
    row = cursor.fetchone()
    return int(row[0]) if row else 0
