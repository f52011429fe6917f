"""CH-benCHmark's queries as of a version since which much was changed, and now."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import geometric_mean
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.ch.measure import Side, comparable
from benchmarks.ch.queries import QUERIES
from benchmarks.environment import (
    describe,
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.measures import Spread, spread
from benchmarks.targets import target_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.ch.workload import ChWorkload

_RETENTION = "1 hour"
_FOLD = 20_000
"""Recent versions at which they are folded."""


@dataclass(frozen=True, slots=True)
class PastResult:
    """One query; `ratio` is of the medians."""

    query: str
    changes: int
    past_ms: Spread
    now_ms: Spread
    ratio: float


@dataclass(frozen=True, slots=True)
class Past:
    """All queries, and every answer of the past that differed."""

    environment: dict[str, object]
    target: str
    workload: str
    repetitions: int
    results: list[PastResult]
    failures: list[str]

    def of(self, changes: int) -> list[PastResult]:
        """Return the results after so many changes."""
        return [each for each in self.results if each.changes == changes]

    def ratios(self, changes: int) -> tuple[float, str, float]:
        """Return the geometric mean, and the worst query and its ratio."""
        found = self.of(changes)
        worst = max(found, key=lambda each: each.ratio)
        return (
            geometric_mean([each.ratio for each in found]),
            worst.query,
            worst.ratio,
        )


def measure_past(
    workload: ChWorkload,
    directory: Path,
    *,
    target: str,
    changes: Sequence[int],
    repetitions: int,
    queries: Sequence[str],
    progress: Callable[[str], None],
) -> Past:
    """Time the queries of a version and of now in turns, with everything folded.

    Parameters
    ----------
    workload : ChWorkload
        The database.
    directory : pathlib.Path
        Where databases are kept.
    target : str
        The target, with tique.
    changes : sequence of int
        Numbers of versions since the one that is asked for, in ascending order.
    repetitions : int
        How often each query runs.
    queries : sequence of str
        Names of queries.
    progress : callable
        Called with each step.
    """
    if list(changes) != sorted(set(changes)):
        raise ValueError("the numbers of changes must ascend")
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    results: list[PastResult] = []
    failures: list[str] = []
    with scratch_directory(directory) as scratch:
        options: dict[str, Any] = {"checkpoint": "manual"}
        opened = target_class(target)(**options)
        opened.history = _RETENTION
        side = Side(opened, workload)
        side.open(durable_copy(database, scratch))
        connection: Any = side.connection
        version = connection.version
        answers = {query: side.answer(QUERIES[query]) for query in queries}
        made = 0
        for number in changes:
            progress(f"making {number:,} versions")
            while made < number:
                made += side.make(min(_FOLD, number - made))
                connection.checkpoint()
            for query in queries:
                progress(f"{query}, {number:,} versions ago")
                result, is_same = _time(
                    side, query, number, version, repetitions, answers[query]
                )
                results.append(result)
                if not is_same:
                    failures.append(f"{query}, {number:,} versions ago, is another one")
        side.close()
    return Past(
        describe(directory), target, workload.label, repetitions, results, failures
    )


def _time(
    side: Side,
    query: str,
    changes: int,
    version: int,
    repetitions: int,
    expected: list[tuple[Any, ...]],
) -> tuple[PastResult, bool]:
    sql = QUERIES[query]
    connection: Any = side.connection
    past: list[float] = []
    now: list[float] = []
    is_same = True
    for repetition in range(repetitions + 1):
        start = perf_counter()
        with connection.transaction(as_of=version):
            side.cursor.execute(sql)
            rows = side.cursor.fetchall()
        taken = perf_counter() - start
        is_same &= comparable(rows) == comparable(expected)
        start = perf_counter()
        side.answer(sql)
        if repetition:
            past.append(1000 * taken)
            now.append(1000 * (perf_counter() - start))
    before, after = spread(past), spread(now)
    ratio = before.median / after.median
    return PastResult(query, changes, before, after, ratio), is_same
