"""CH-benCHmark's queries while recent versions wait, through tique and natively."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

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
from benchmarks.targets import TIQUE_SUFFIX, baseline_of, target_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.ch.workload import ChWorkload
    from benchmarks.measures import Spread


@dataclass(frozen=True, slots=True)
class RecentTimes(QueryTimes):
    """One query with some recent versions, through tique and natively.

    `first_ms` is the time of the first run through tique, which brings the versions to
    where the query reads them; it is not in `tique_ms`.
    """

    rows: int
    first_ms: float
    tique_ms: Spread
    native_ms: Spread


def measure_recent(
    workload: ChWorkload,
    directory: Path,
    *,
    target: str,
    versions: Sequence[int],
    repetitions: int,
    queries: Sequence[str],
    progress: Callable[[str], None],
) -> Analytics[RecentTimes]:
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
    check_ascending(versions)
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    environment = describe(directory)
    results: list[RecentTimes] = []
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


def _time(
    query: str, versions: int, repetitions: int, ours: Side, theirs: Side
) -> tuple[RecentTimes, list[str]]:
    sql = QUERIES[query]
    start = perf_counter()
    our_answer = ours.answer(sql)
    first = 1000 * (perf_counter() - start)
    their_answer = theirs.answer(sql)
    mine, native = in_turns(
        lambda: ours.answer(sql), lambda: theirs.answer(sql), repetitions
    )
    ratio = mine.median / native.median
    result = RecentTimes(
        *(query, versions, ratio), len(our_answer), first, mine, native
    )
    if comparable(our_answer) == comparable(their_answer):
        return result, []
    return result, [
        f"{query} with {versions} versions: {len(our_answer)} rows through tique, "
        f"{len(their_answer)} natively, or other values"
    ]
