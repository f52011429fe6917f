"""CH-benCHmark's queries while recent versions wait, through tique and natively."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from random import Random
from statistics import geometric_mean
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.ch.queries import QUERIES
from benchmarks.environment import (
    describe,
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.measures import Spread, spread
from benchmarks.targets import TIQUE_SUFFIX, baseline_of, target_class
from benchmarks.tpcc.inputs import Terminal
from benchmarks.tpcc.rules import LOADED_AT
from benchmarks.tpcc.transactions import Application
from benchmarks.tpcc.workload import TpccClient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.ch.workload import ChWorkload
    from benchmarks.targets.base import Connection, Cursor, Target

_DIGITS = 9
"""Digits of a floating-point result that both sides must agree in."""

_BATCH = 20
"""Transactions between two looks at how many versions there are."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """One query with some recent versions.

    `first_ms` is the time of the first run through tique, which brings the versions to
    where the query reads them; it is not in `tique_ms`. `ratio` is of the medians.
    """

    query: str
    versions: int
    rows: int
    first_ms: float
    tique_ms: Spread
    native_ms: Spread
    ratio: float


@dataclass(frozen=True, slots=True)
class Analytics:
    """All queries, and every answer that differed."""

    environment: dict[str, object]
    target: str
    workload: str
    repetitions: int
    results: list[QueryResult]
    failures: list[str]

    @property
    def versions(self) -> list[int]:
        """The numbers of recent versions."""
        return list(dict.fromkeys(each.versions for each in self.results))

    def of(self, versions: int) -> list[QueryResult]:
        """The results with so many recent versions."""
        return [each for each in self.results if each.versions == versions]

    def ratios(self, versions: int) -> tuple[float, str, float]:
        """The geometric mean for a number of versions, and the worst query and ratio."""
        found = self.of(versions)
        worst = max(found, key=lambda each: each.ratio)
        mean = geometric_mean([each.ratio for each in found])
        return mean, worst.query, worst.ratio


def measure_queries(
    workload: ChWorkload,
    directory: Path,
    *,
    target: str,
    versions: Sequence[int],
    repetitions: int,
    queries: Sequence[str],
    progress: Callable[[str], None],
) -> Analytics:
    """Time the queries with each number of recent versions, in turns.

    Both sides run the same transactions of one client, with dates of a clock of their own, so
    that the answers must be the same. The native side has checkpointed them.

    Parameters
    ----------
    workload : ChWorkload
        The database.
    directory : pathlib.Path
        Where databases are kept.
    target : str
        The target with tique; its baseline is measured beside it.
    versions : sequence of int
        Numbers of recent versions, in ascending order; at least so many are made.
    repetitions : int
        How often each query runs on each side.
    queries : sequence of str
        Names of queries.
    progress : callable
        Called with each step.

    Raises
    ------
    ValueError
        The target is not one with tique, or the numbers do not ascend.
    """
    baseline = baseline_of(target)
    if baseline is None or TIQUE_SUFFIX not in target:
        raise ValueError(f"{target} is no target with tique")
    if list(versions) != sorted(set(versions)):
        raise ValueError("the numbers of versions must ascend")
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    environment = describe(directory)
    results: list[QueryResult] = []
    failures: list[str] = []
    with scratch_directory(directory) as scratch:
        sides = []
        for name, options in ((target, {"checkpoint": "manual"}), (baseline, {})):
            folder = scratch / name
            folder.mkdir()
            sides.append(Side(target_class(name)(**options), workload))
            sides[-1].open(durable_copy(database, folder))
        ours, theirs = sides
        for number in versions:
            progress(f"making {number:,} versions")
            transactions = ours.run_until(number)
            theirs.run(transactions - theirs.transactions)
            theirs.target.compact(theirs.connection)
            for query in queries:
                progress(f"{query}, {number:,} versions")
                found, failure = _time(query, number, repetitions, ours, theirs)
                results.append(found)
                failures += failure
        for side in sides:
            side.close()
    return Analytics(
        environment, target, workload.label, repetitions, results, failures
    )


class Side:
    """A target with its database, one client of TPC-C, and an analyst."""

    def __init__(self, target: Target, workload: ChWorkload) -> None:
        self.target = target
        self.transactions = 0
        self._workload = workload

    def open(self, database: Path) -> None:
        """Open the database, which belongs to this side."""
        self.target.prepare(database)
        self.connection: Connection = self.target.connect()
        self.cursor: Cursor = self.connection.cursor()
        seconds = count(1)
        workload = self._workload

        def clock() -> datetime:
            return LOADED_AT + timedelta(days=1, seconds=next(seconds))

        random = Random(f"{workload.seed}/analytics")  # noqa: S311
        terminal = Terminal(workload.scale, 0, random, roam=True, clock=clock)
        application = Application(self.connection, self.target.parameter_style)
        self._client = TpccClient(terminal, application)

    def run(self, transactions: int) -> None:
        """Run so many further transactions."""
        for _ in range(transactions):
            self._client.next_transaction().run()
        self.transactions += transactions

    def run_until(self, versions: int) -> int:
        """Run until there are so many recent versions; return all transactions so far."""
        while self._versions() < versions:
            self.run(_BATCH)
        return self.transactions

    def make(self, versions: int) -> int:
        """The same; return how many recent versions there are."""
        self.run_until(versions)
        return self._versions()

    def answer(self, sql: str) -> list[tuple[Any, ...]]:
        """Ask a query in a transaction of its own; return its rows."""
        self.cursor.execute(sql)
        rows = self.cursor.fetchall()
        self.connection.commit()
        return rows

    def _versions(self) -> int:
        status = self.connection.status()  # type: ignore[attr-defined]
        return sum(table.cached_rows for table in status.tables)

    def close(self) -> None:
        """Close the database."""
        self.connection.close()
        self.target.close()


def _time(
    query: str, versions: int, repetitions: int, ours: Side, theirs: Side
) -> tuple[QueryResult, list[str]]:
    sql = QUERIES[query]
    start = perf_counter()
    our_answer = ours.answer(sql)
    first = 1000 * (perf_counter() - start)
    their_answer = theirs.answer(sql)
    times: tuple[list[float], list[float]] = ([], [])
    sides = ((ours, times[0]), (theirs, times[1]))
    for repetition in range(repetitions):
        for side, taken in sides if repetition % 2 else sides[::-1]:
            start = perf_counter()
            side.answer(sql)
            taken.append(1000 * (perf_counter() - start))
    mine, native = spread(times[0]), spread(times[1])
    ratio = mine.median / native.median
    result = QueryResult(query, versions, len(our_answer), first, mine, native, ratio)
    if comparable(our_answer) == comparable(their_answer):
        return result, []
    return result, [
        f"{query} with {versions} versions: {len(our_answer)} rows through tique, "
        f"{len(their_answer)} natively, or other values"
    ]


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Return rows as text in one order: that of equal ones is the engine's to choose."""
    return sorted(tuple(map(_shown, row)) for row in rows)


def _shown(value: object) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.{_DIGITS}g}"
    return str(value)
