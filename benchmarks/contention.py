"""Contention: the same clients on fewer and fewer warehouses.

A warehouse of TPC-C is one row that every payment adds to, and ten that every new order
takes a number from. So eight clients on one warehouse want the same rows all the time; on
eight warehouses they hardly meet.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from benchmarks.compare import compare
from benchmarks.tpcc.workload import TpccWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.compare import Comparison, Plan
    from benchmarks.measures import Spread
    from benchmarks.targets.base import Setup
    from benchmarks.tpcc.rules import Scale


@dataclass(frozen=True, slots=True)
class Contended:
    """A setup on a number of warehouses.

    `share` is its throughput over that on the most warehouses.
    """

    setup: Setup
    warehouses: int
    throughput: Spread
    abort_rate: Spread
    share: float


@dataclass(frozen=True, slots=True)
class Contention:
    """All that was measured; `comparisons` has a run per number of warehouses."""

    plan: Plan
    rows: list[Contended]
    comparisons: list[Comparison]
    failures: list[str]


def measure_contention(
    scale: Scale,
    seed: int,
    warehouses: Sequence[int],
    plan: Plan,
    directory: Path,
    progress: Callable[[str], None],
    *,
    roam: bool,
) -> Contention:
    """Run all targets on each number of warehouses.

    Parameters
    ----------
    scale : Scale
        The size of a warehouse.
    seed : int
        Fixes the databases.
    warehouses : sequence of int
        Numbers of warehouses.
    plan : Plan
        Targets, levels, one number of clients, lengths.
    directory : pathlib.Path
        Where databases are kept; the file system that is measured.
    progress : callable
        Called with each step.
    roam : bool
        Whether each client works on all warehouses, and not on one of its own.
    """
    comparisons = {}
    for number in sorted(warehouses, reverse=True):
        workload = TpccWorkload(replace(scale, warehouses=number), seed, roam=roam)
        comparisons[number] = compare(workload, plan, directory, progress)
    most = max(comparisons)
    widest = {each.setup: each.throughput for each in comparisons[most].summaries}
    rows = [
        Contended(
            summary.setup,
            number,
            summary.throughput,
            summary.abort_rate,
            summary.throughput.median / widest[summary.setup].median,
        )
        for number in sorted(comparisons)
        for summary in comparisons[number].summaries
    ]
    return Contention(
        plan,
        rows,
        list(comparisons.values()),
        [failure for each in comparisons.values() for failure in each.failures],
    )
