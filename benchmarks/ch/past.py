"""CH-benCHmark's queries as of a version since which much was changed, and now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from benchmarks.ch.analytics import (
    Analytics,
    QueryTimes,
    Side,
    check_ascending,
    comparable,
    in_turns,
)
from benchmarks.ch.queries import QUERIES
from benchmarks.environment import (
    describe,
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.targets import target_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.ch.workload import ChWorkload
    from benchmarks.measures import Spread

_RETENTION = "1 hour"
_FOLD = 20_000
"""Recent versions at which they are folded."""


@dataclass(frozen=True, slots=True)
class PastTimes(QueryTimes):
    """One query as of a version since which so many were folded, and now."""

    past_ms: Spread
    now_ms: Spread


def measure_past(
    workload: ChWorkload,
    directory: Path,
    *,
    target: str,
    changes: Sequence[int],
    repetitions: int,
    queries: Sequence[str],
    progress: Callable[[str], None],
) -> Analytics[PastTimes]:
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
    check_ascending(changes)
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    results: list[PastTimes] = []
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
    return Analytics(
        describe(directory), target, workload.label, repetitions, results, failures
    )


def _time(
    side: Side,
    query: str,
    changes: int,
    version: int,
    repetitions: int,
    expected: list[tuple[Any, ...]],
) -> tuple[PastTimes, bool]:
    sql = QUERIES[query]
    connection: Any = side.connection
    answers: list[list[tuple[Any, ...]]] = []

    def look_back() -> None:
        with connection.transaction(as_of=version):
            side.cursor.execute(sql)
            answers.append(side.cursor.fetchall())

    look_back()
    side.answer(sql)
    past, now = in_turns(look_back, lambda: side.answer(sql), repetitions)
    is_same = all(comparable(rows) == comparable(expected) for rows in answers)
    return PastTimes(query, changes, past.median / now.median, past, now), is_same
