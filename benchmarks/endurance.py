"""A long run: whether throughput lasts, and tables stay small, beside old snapshots too."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from time import monotonic, process_time, sleep
from typing import TYPE_CHECKING, Any

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

    from benchmarks.crews import Crew
    from benchmarks.targets.base import Connection, Target
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
    cpu : float
        Seconds of this process's CPU per commit: with an embedded engine its own and the
        clients', with a server the clients', and none of clients in other processes.
    sizes : mapping of str to int
        Bytes when it ended: of this process's memory, in which the clients' threads are,
        and of the database's tables by their purpose, where the target tells.
    """

    end: float
    throughput: float
    cpu: float
    sizes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Age:
    """What a transaction that stayed open took for each of the workload's scans.

    Attributes
    ----------
    opened, ended : float
        Seconds since the window opened.
    first, last : tuple of float
        Seconds of each scan when the transaction had begun, and before it ended.
    """

    opened: float
    ended: float
    first: tuple[float, ...]
    last: tuple[float, ...]

    @property
    def ratios(self) -> tuple[float, ...]:
        """How many times longer each scan took at the end."""
        return tuple([b / a for a, b in zip(self.first, self.last, strict=True)])


@dataclass(frozen=True, slots=True)
class Endurance:
    """A target's slices, its open snapshots, and the failures found when they were over."""

    target: str
    slices: Sequence[Slice]
    ages: Sequence[Age]
    failures: list[str]

    @property
    def lasting(self) -> float:
        """The last third's throughput as a share of the first third's."""
        third = max(1, len(self.slices) // 3)
        first, last = self.slices[:third], self.slices[-third:]
        return sum(s.throughput for s in last) / sum(s.throughput for s in first)


@dataclass
class OpenSnapshot:
    """A transaction that scans tables when it begins and again before it ends.

    Parameters
    ----------
    connection : Connection
        Its own, without an open transaction.
    scans : sequence of str
        Queries with one row each.
    opened : float
        When the window opened, by the monotonic clock.
    """

    connection: Connection
    scans: Sequence[str]
    opened: float
    _began: float = field(init=False)
    _seen: list[Any] = field(init=False)
    _first: list[float] = field(init=False)

    def __post_init__(self) -> None:
        self._began = monotonic() - self.opened
        self._seen, self._first = self._scan()

    def _scan(self) -> tuple[list[Any], list[float]]:
        rows, seconds = [], []
        cursor = self.connection.cursor()
        for sql in self.scans:
            start = monotonic()
            cursor.execute(sql)
            rows.append(cursor.fetchall())
            seconds.append(monotonic() - start)
        return rows, seconds

    def end(self, write: str | None = None) -> tuple[Age, list[str]]:
        """Scan again, execute the statement ``write``, commit; what failed."""
        ended = monotonic() - self.opened
        seen, last = self._scan()
        failures = [
            f"a snapshot of second {self._began:.0f} had {before} and has {now}: {sql}"
            for sql, before, now in zip(self.scans, self._seen, seen, strict=True)
            if before != now
        ]
        if write is not None:
            self.connection.cursor().execute(write)
        self.connection.commit()
        return Age(self._began, ended, tuple(self._first), tuple(last)), failures


def memory() -> int:
    """Return the bytes of this process that are in memory (Linux; else 0)."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0
    (line,) = (
        each for each in status.read_text().splitlines() if each.startswith("VmRSS:")
    )
    return int(line.split()[1]) << 10


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
    snapshots: int,
    writes: bool,
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
    snapshots : int
        So many transactions that have read are open until the end: the first from the
        first slice on, each other one from two slices after the one before.
    writes : bool
        Whether each of them writes a row before it commits.
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
                snapshots=snapshots,
                writes=writes,
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
    snapshots: int,
    writes: bool,
    progress: Callable[[str], None],
) -> Endurance:
    observer = target.connect()
    before = workload.state(observer)
    observer.rollback()
    readers = [target.connect() for _ in range(snapshots)]
    if not readers:
        observer.close()
        target.leave()
    with ExitStack() as stack:
        for reader in readers:
            stack.callback(reader.close)
        crew.start()
        sleep(warmup)
        crew.open_window()
        opened = monotonic()
        ends: list[float] = []
        used = [process_time()]
        sizes: list[Mapping[str, int]] = []
        held: list[OpenSnapshot] = []
        for number in range(slices):
            progress(f"{target.name}, slice {number + 1} of {slices}")
            if number % 2 == 0 and len(held) < len(readers):
                reader = readers[len(held)]
                held.append(OpenSnapshot(reader, workload.scans, opened))
            sleep(max(0.0, opened + (number + 1) * length - monotonic()))
            ends.append(monotonic() - opened)
            used.append(process_time())
            sizes.append({"memory": memory(), **target.sizes()})
        crew.wait(0)
        ages, failures = [], []
        for number, each in enumerate(held, 1):
            write = (workload.late_write or "").format(number=number)
            age, failed = each.end(write if writes else None)
            ages.append(age)
            failures += failed
        crew.stop()
    if not readers:
        observer = target.connect()

    committed: Counter[str] = Counter()
    for tally in crew.tallies:
        committed += tally.committed
    failures += [tally.error for tally in crew.tallies if tally.error]
    failures += workload.failures(observer, before, committed)
    observer.close()
    moments = [each - opened for tally in crew.tallies for each in tally.moments]
    found = []
    for number, (start, end) in enumerate(pairwise([0.0, *ends])):
        commits = sum(start <= each < end for each in moments)
        cpu = (used[number + 1] - used[number]) / max(1, commits)
        found.append(Slice(end, commits / (end - start), cpu, sizes[number]))
    return Endurance(target.name, found, ages, failures)
