"""Runs each workload at every isolation level and by every protocol, in turns.

Two things are varied, one at a time, as Wu et al. do: the number of threads, and the skew
of YCSB's keys.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.compare import compare
from benchmarks.protocols.write_skew import WriteSkewWorkload
from benchmarks.protocols.ycsb import MIXES, YcsbWorkload
from benchmarks.tpcc.workload import TpccWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from benchmarks.compare import Comparison, Plan
    from benchmarks.tpcc.rules import Scale
    from benchmarks.workload import Workload

NAMES = (*MIXES, TpccWorkload.name, WriteSkewWorkload.name)
"""The workloads: mixes of YCSB's, and others."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The workloads' tables: YCSB's rows, write skew's, TPC-C's scale.

    `ordered` is about YCSB's operations, see `YcsbWorkload`.
    """

    records: int
    rows: int
    scale: Scale
    seed: int
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class Variations:
    """What is varied.

    Attributes
    ----------
    threads : tuple of int
        Numbers of threads, at skew `theta`.
    theta : float
        That skew.
    thetas : tuple of float
        Skews of YCSB's keys, with `clients` threads.
    clients : int
        That number of threads.
    """

    threads: tuple[int, ...]
    theta: float
    thetas: tuple[float, ...]
    clients: int


class Case(NamedTuple):
    """One workload, with one skew if it has skews, and the numbers of threads."""

    name: str
    theta: float | None
    workload: Workload
    threads: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a comparison of all setups on one workload found."""

    workload: str
    theta: float | None
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class Protocols:
    """All that was measured."""

    plan: Plan
    variations: Variations
    found: list[Found]
    failures: list[str]


def cases(name: str, sizes: Sizes, variations: Variations) -> Iterator[Case]:
    """Yield what is measured of a workload."""
    threads = variations.threads
    if name == TpccWorkload.name:
        yield Case(name, None, TpccWorkload(sizes.scale, sizes.seed), threads)
    elif name == WriteSkewWorkload.name:
        skew = WriteSkewWorkload(sizes.rows, sizes.seed)
        yield Case(name, None, skew, threads)
    else:
        clients = variations.clients
        for theta in sorted({*variations.thetas, variations.theta}):
            numbers = {clients} if theta in variations.thetas else set()
            if theta == variations.theta:
                numbers.update(threads)
            workload = YcsbWorkload(
                *(name, sizes.records, theta, sizes.seed), ordered=sizes.ordered
            )
            yield Case(name, theta, workload, tuple(sorted(numbers)))


def _within(where: str, progress: Callable[[str], None]) -> Callable[[str], None]:
    return lambda step: progress(f"{where}: {step}")


def measure_protocols(
    names: tuple[str, ...],
    sizes: Sizes,
    variations: Variations,
    plan: Plan,
    directory: Path,
    progress: Callable[[str], None],
) -> Protocols:
    """Run every setup of a plan on each workload.

    Parameters
    ----------
    names : tuple of str
        Some of `NAMES`.
    sizes : Sizes
        Of their tables.
    variations : Variations
        Numbers of threads, and skews.
    plan : Plan
        Targets, levels, protocols, lengths; the numbers of clients are of no account.
    directory : pathlib.Path
        Where databases are kept; the file system that is measured.
    progress : callable
        Called with each step.
    """
    found = []
    for name in names:
        for case in cases(name, sizes, variations):
            where = name if case.theta is None else f"{name}, theta {case.theta:g}"
            comparison = compare(
                case.workload,
                replace(plan, clients=case.threads),
                directory,
                _within(where, progress),
            )
            found.append(Found(name, case.theta, comparison))
    failures = [line for each in found for line in each.comparison.failures]
    return Protocols(plan, variations, found, failures)
