"""What each part of the store is worth: with everything, and without it.

TPC-C's throughput, and the time that two of CH-benCHmark's queries take afterwards, beside
the versions that its transactions have left.

A part is switched off by the policy alone (:mod:`tique.store.policy`): its capacity is
nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.ch.queries import QUERIES, SCANS
from benchmarks.environment import loaded_database, prepare_work_directory
from benchmarks.measures import Spread, spread
from benchmarks.runner import run_round
from benchmarks.targets import target_class
from tique.database.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from benchmarks.targets.base import Connection
    from benchmarks.workload import Workload
    from tique.store.policy import CachePolicy

_OFF: Mapping[str, Mapping[str, Any]] = {
    "rows": {"rows": 0},
    "ranges": {"bytes": 0},
    "tails": {"tail_rows": 0},
}

_RUNS = 5

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "everything": {},
    **{f"without {part}": changes for part, changes in _OFF.items()},
    "without any of it": {
        k: v for changes in _OFF.values() for k, v in changes.items()
    },
}
"""A name, and what the policy has otherwise."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant with one number of clients.

    Attributes
    ----------
    throughput : Spread
        Committed transactions per second, over the rounds.
    share : float
        Its median by that of everything.
    queries : dict of str to Spread
        Milliseconds of each query of CH-benCHmark, over the rounds.
    """

    name: str
    clients: int
    throughput: Spread
    share: float
    queries: dict[str, Spread]


def _time_queries(times: dict[str, list[float]], connection: Connection) -> None:
    """Add the median of some runs of each query."""
    cursor = connection.cursor()
    for name in SCANS:
        sql, taken = QUERIES[name], []
        for _ in range(_RUNS):
            start = perf_counter()
            cursor.execute(sql)
            cursor.fetchall()
            taken.append(1000 * (perf_counter() - start))
        times.setdefault(name, []).append(median(taken))
    connection.rollback()


@contextmanager
def policy(changes: Mapping[str, Any]) -> Iterator[None]:
    """Have databases opened with another policy, in this process."""
    genuine = Settings.policy

    def changed(self: Settings) -> CachePolicy:
        return replace(genuine(self), **changes)

    Settings.policy = changed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Settings.policy = genuine  # type: ignore[method-assign]


def measure_ablation(
    workload: Workload,
    target: str,
    clients: tuple[int, ...],
    *,
    seconds: float,
    warmup: float,
    rounds: int,
    directory: Path,
    progress: Callable[[str], None],
) -> list[Variant]:
    """Run all variants in turns, each with its own copy of the database.

    Raises
    ------
    RuntimeError
        The database was not as it should be at the end of a round.
    """
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    found: dict[tuple[str, int], list[float]] = {}
    queries: dict[tuple[str, int], dict[str, list[float]]] = {}
    for number in range(rounds):
        order = list(VARIANTS) if number % 2 == 0 else list(VARIANTS)[::-1]
        for count in clients:
            for name in order:
                progress(f"round {number + 1}/{rounds}, {name}, {count} clients")
                with policy(VARIANTS[name]):
                    outcome = run_round(
                        target_class(target)(),
                        workload,
                        database,
                        clients=count,
                        seconds=seconds,
                        warmup=warmup,
                        afterwards=partial(
                            _time_queries, queries.setdefault((name, count), {})
                        ),
                    )
                if outcome.failures:
                    raise RuntimeError("; ".join(outcome.failures))
                found.setdefault((name, count), []).append(outcome.throughput)
    variants = []
    for (name, count), each in found.items():
        whole = spread(found["everything", count]).median
        measured = spread(each)
        times = {query: spread(each) for query, each in queries[name, count].items()}
        share = measured.median / whole
        variants.append(Variant(name, count, measured, share, times))
    return variants
