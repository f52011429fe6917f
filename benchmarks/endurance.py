"""A long run: whether throughput lasts, and tables stay small."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import monotonic, sleep
from typing import TYPE_CHECKING

from benchmarks.crews import ClientCrew, ProcessCrew
from benchmarks.environment import (
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.targets import target_class

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from benchmarks.crews import Crew
    from benchmarks.targets.base import Target
    from benchmarks.workload import Workload


@dataclass(frozen=True, slots=True)
class Slice:
    """A part of a run.

    Attributes
    ----------
    end : float
        Seconds since the window opened.
    throughput : float
        Commits per second.
    sizes : mapping of str to int
        Bytes of the database's tables when it ended, by their purpose; empty where the
        target does not tell.
    """

    end: float
    throughput: float
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Endurance:
    """A target's slices, and the failures found when they were over."""

    target: str
    has_snapshot: bool
    slices: Sequence[Slice]
    failures: list[str]

    @property
    def lasting(self) -> float:
        """The last slice's throughput as a share of the first one's."""
        return self.slices[-1].throughput / self.slices[0].throughput


def measure_endurance(
    workload: Workload,
    name: str,
    directory: Path,
    *,
    clients: int,
    processes: int,
    warmup: float,
    length: float,
    slices: int,
    has_snapshot: bool,
    progress: Callable[[str], None],
) -> Endurance:
    """Run a workload on one target for a long time.

    Parameters
    ----------
    workload : Workload
        Makes the clients' transactions.
    name : str
        The target's.
    directory : pathlib.Path
        Where databases are kept; the file system that is measured.
    clients, processes : int
        As in `benchmarks.runner.run_round`.
    warmup : float
        Seconds before the first slice.
    length : float
        Seconds of each slice.
    slices : int
        Their number.
    has_snapshot : bool
        Whether a transaction that has read is open from the first slice to the end.
    progress : callable
        Called with each step.
    """
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    target = target_class(name)()
    with scratch_directory(database.parent) as scratch:
        try:
            target.prepare(durable_copy(database, scratch))
            return _endure(
                target,
                workload,
                _crew(target, workload, clients, processes),
                warmup=warmup,
                length=length,
                slices=slices,
                has_snapshot=has_snapshot,
                progress=progress,
            )
        finally:
            target.close()


def _crew(target: Target, workload: Workload, clients: int, processes: int) -> Crew:
    if processes:
        return ProcessCrew(target, workload, clients, processes)
    return ClientCrew(target, workload, range(clients))


def _endure(
    target: Target,
    workload: Workload,
    crew: Crew,
    *,
    warmup: float,
    length: float,
    slices: int,
    has_snapshot: bool,
    progress: Callable[[str], None],
) -> Endurance:
    observer = target.connect()
    before = workload.state(observer)
    observer.rollback()
    if not has_snapshot:
        observer.close()
        target.leave()
    crew.start()
    sleep(warmup)
    crew.open_window()
    opened = monotonic()
    if has_snapshot:
        seen = workload.state(observer)
    ends: list[float] = []
    sizes: list[Mapping[str, int]] = []
    for number in range(1, slices + 1):
        progress(f"{target.name}, slice {number} of {slices}")
        sleep(max(0.0, opened + number * length - monotonic()))
        ends.append(monotonic() - opened)
        sizes.append(target.sizes())
    crew.wait(0)
    failures = []
    if not has_snapshot:
        observer = target.connect()
    elif (now := workload.state(observer)) != seen:
        failures.append(f"the open snapshot has {now} orders, and had {seen}")
    observer.rollback()
    crew.stop()

    committed: Counter[str] = Counter()
    for tally in crew.tallies:
        committed += tally.committed
    failures += [tally.error for tally in crew.tallies if tally.error]
    failures += workload.failures(observer, before, committed)
    observer.close()
    moments = [each - opened for tally in crew.tallies for each in tally.moments]
    return Endurance(
        target.name,
        has_snapshot,
        [
            Slice(
                end, sum(start <= each < end for each in moments) / (end - start), size
            )
            for start, end, size in zip([0.0, *ends], ends, sizes, strict=False)
        ],
        failures,
    )
