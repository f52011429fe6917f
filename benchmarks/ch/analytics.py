"""What it takes to time CH-benCHmark's queries, and what is told of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from random import Random
from statistics import geometric_mean
from time import perf_counter
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from benchmarks.measures import Spread, spread
from benchmarks.tpcc.inputs import Terminal
from benchmarks.tpcc.rules import LOADED_AT
from benchmarks.tpcc.transactions import Application
from benchmarks.tpcc.workload import TpccClient

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.ch.workload import ChWorkload
    from benchmarks.targets.base import Connection, Cursor, Target
    from benchmarks.workload import Transaction

_DIGITS = 9
"""Digits of a floating-point result that all answers must agree in."""

_BATCH = 20
"""Transactions between two looks at how many versions there are."""


@dataclass(frozen=True, slots=True)
class QueryTimes:
    """One query with some versions; `ratio` is of two medians."""

    query: str
    versions: int
    ratio: float


_Times = TypeVar("_Times", bound=QueryTimes)


@dataclass(frozen=True, slots=True)
class Analytics(Generic[_Times]):
    """All queries, and every answer that differed."""

    environment: dict[str, object]
    target: str
    workload: str
    repetitions: int
    results: list[_Times]
    failures: list[str]

    @property
    def versions(self) -> list[int]:
        """The numbers of versions."""
        return list(dict.fromkeys(each.versions for each in self.results))

    def of(self, versions: int) -> list[_Times]:
        """The results with so many versions."""
        return [each for each in self.results if each.versions == versions]

    def ratios(self, versions: int) -> tuple[float, str, float]:
        """The geometric mean for a number of versions, and the worst query and ratio."""
        found = self.of(versions)
        worst = max(found, key=lambda each: each.ratio)
        mean = geometric_mean([each.ratio for each in found])
        return mean, worst.query, worst.ratio


def check_ascending(versions: Sequence[int]) -> None:
    """Raise ValueError unless each number is greater than the one before it."""
    if list(versions) != sorted(set(versions)):
        raise ValueError("the numbers of versions must ascend")


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

    def next_transaction(self) -> Transaction:
        """Return the client's next one, not run yet."""
        self.transactions += 1
        return self._client.next_transaction()

    def run(self, transactions: int) -> None:
        """Run so many further transactions."""
        for _ in range(transactions):
            self.next_transaction().run()

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


def in_turns(
    first: Callable[[], object], second: Callable[[], object], repetitions: int
) -> tuple[Spread, Spread]:
    """Run two things so many times in turns; return the milliseconds of each."""
    times: tuple[list[float], list[float]] = ([], [])
    sides = ((first, times[0]), (second, times[1]))
    for repetition in range(repetitions):
        for run, taken in sides if repetition % 2 else sides[::-1]:
            start = perf_counter()
            run()
            taken.append(1000 * (perf_counter() - start))
    return spread(times[0]), spread(times[1])


def comparable(rows: list[tuple[Any, ...]]) -> list[tuple[str, ...]]:
    """Return rows as text in one order: that of equal ones is the engine's to choose."""
    return sorted(tuple(map(_shown, row)) for row in rows)


def _shown(value: object) -> str:
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.{_DIGITS}g}"
    return str(value)
