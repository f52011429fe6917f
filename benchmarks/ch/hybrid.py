"""TPC-C and CH-benCHmark's queries on one database: each alone, and both together."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from itertools import cycle, islice
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from typing_extensions import override

from benchmarks.ch.queries import QUERIES
from benchmarks.ch.workload import ChWorkload
from benchmarks.environment import (
    describe,
    durable_copy,
    loaded_database,
    prepare_work_directory,
    scratch_directory,
)
from benchmarks.measures import Spread, percentile, spread
from benchmarks.runner import measure
from benchmarks.targets import target_class
from benchmarks.workload import Client

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from benchmarks.runner import Round
    from benchmarks.targets.base import Connection, ParameterStyle, Target
    from benchmarks.tpcc.rules import Scale
    from benchmarks.workload import Transaction

_PROBE_PAUSE = 0.05
"""Seconds between two probes of freshness."""

_MARK = "UPDATE region SET r_comment = '{}' WHERE r_regionkey = 0"
_SEEN = (
    "SELECT COUNT(*) FROM nation, region "
    "WHERE n_regionkey = r_regionkey AND r_comment = '{}'"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a hybrid run.

    `rate` is the number of transactions per second that all clients together begin; 0: as
    many as they can.
    """

    targets: tuple[str, ...]
    oltp: int
    olap: int
    seconds: float
    warmup: float
    rounds: int
    rate: float
    queries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Phase:
    """A target with clients of one or of both kinds, over all rounds.

    `fresh_ms` are the median and the 99th percentile of the time from a commit to the end of
    the first query of another connection that sees it, in the phase that has both.
    """

    target: str
    oltp: int
    olap: int
    transactions: Spread
    queries: Spread
    fresh_ms: tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Hybrid:
    """All phases of all targets."""

    environment: dict[str, object]
    workload: str
    plan: Plan
    phases: list[Phase]
    failures: list[str]


class PacedWorkload(ChWorkload):
    """Clients that begin transactions at a given rate, as far as they can.

    Parameters
    ----------
    scale, seed
        Those of the database.
    interval : float
        Seconds from the beginning of a client's transaction to that of its next.
    """

    def __init__(self, scale: Scale, seed: int, interval: float) -> None:
        super().__init__(scale, seed)
        self._interval = interval

    @override
    def client(
        self, number: int, connection: Connection, style: ParameterStyle
    ) -> Client:
        """Return a client that waits for its next turn."""
        return _Paced(super().client(number, connection, style), self._interval)


class _Paced(Client):
    def __init__(self, client: Client, interval: float) -> None:
        self._client = client
        self._interval = interval
        self._due = perf_counter()

    @override
    def next_transaction(self) -> Transaction:
        pause = self._due - perf_counter()
        if pause > 0:
            sleep(pause)
        # One that is late does not hurry later.
        self._due = max(self._due, perf_counter() - self._interval) + self._interval
        return self._client.next_transaction()


def measure_hybrid(
    scale: Scale,
    seed: int,
    plan: Plan,
    directory: Path,
    progress: Callable[[str], None],
) -> Hybrid:
    """Run each target's three phases in each round, in turns.

    Parameters
    ----------
    scale, seed
        Those of the database.
    plan : Plan
        Targets, clients, lengths.
    directory : pathlib.Path
        Where databases are kept.
    progress : callable
        Called with each step.
    """
    interval = plan.oltp / plan.rate if plan.rate else 0.0
    workload = (
        PacedWorkload(scale, seed, interval) if interval else ChWorkload(scale, seed)
    )
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    found: dict[tuple[str, int, int], list[_Found]] = {}
    failures: list[str] = []
    for number in range(plan.rounds):
        order = plan.targets if number % 2 == 0 else plan.targets[::-1]
        for name in order:
            for oltp, olap in ((plan.oltp, 0), (0, plan.olap), (plan.oltp, plan.olap)):
                where = f"round {number + 1}, {name}, {oltp} clients, {olap} analysts"
                progress(where)
                phase = _phase(workload, database, name, oltp, olap, plan)
                found.setdefault((name, oltp, olap), []).append(phase)
                failures += [f"{where}: {failure}" for failure in phase.failures]
    return Hybrid(
        describe(directory),
        workload.label,
        plan,
        [
            _summary(name, oltp, olap, phases)
            for (name, oltp, olap), phases in found.items()
        ],
        failures,
    )


@dataclass(slots=True)
class _Found:
    transactions: float
    queries: float
    fresh: list[float]
    failures: list[str]


def _summary(name: str, oltp: int, olap: int, phases: Sequence[_Found]) -> Phase:
    fresh = sorted(1000 * each for phase in phases for each in phase.fresh)
    return Phase(
        name,
        oltp,
        olap,
        spread([phase.transactions for phase in phases]),
        spread([phase.queries for phase in phases]),
        (percentile(fresh, 0.5), percentile(fresh, 0.99)) if fresh else None,
    )


def _phase(
    workload: ChWorkload, database: Path, name: str, oltp: int, olap: int, plan: Plan
) -> _Found:
    target = target_class(name)()
    with scratch_directory(database.parent) as directory:
        try:
            target.prepare(durable_copy(database, directory))
            analysts = [
                _Analyst(target, plan.queries, number) for number in range(olap)
            ]
            probe = _Probe(target) if oltp and olap else None
            threads = [*analysts, *([probe] if probe else [])]
            for thread in threads:
                thread.start()
            round_ = _transactions(target, workload, oltp, plan)
            for thread in threads:
                thread.stop()
        finally:
            target.close()
    failures = [thread.error for thread in threads if thread.error]
    if round_ is not None:
        failures += round_.failures
    return _Found(
        round_.throughput if round_ is not None else 0.0,
        sum(analyst.rate(plan.warmup) for analyst in analysts),
        probe.times if probe else [],
        failures,
    )


def _transactions(
    target: Target, workload: ChWorkload, oltp: int, plan: Plan
) -> Round | None:
    if not oltp:
        sleep(plan.warmup + plan.seconds)
        return None
    return measure(
        target, workload, clients=oltp, seconds=plan.seconds, warmup=plan.warmup
    )


class _Beside(threading.Thread):
    """A thread that works with connections of its own until it is stopped."""

    def __init__(self, target: Target, connections: int) -> None:
        super().__init__(daemon=True)
        self.connections = [target.connect() for _ in range(connections)]
        self.error: str | None = None
        self.is_stopping = threading.Event()

    @override
    def run(self) -> None:
        try:
            self.work()
        except Exception:
            self.error = f"{type(self).__name__} failed: {traceback.format_exc()}"

    def work(self) -> None:
        """Work until ``is_stopping``."""
        raise NotImplementedError

    def stop(self) -> None:
        """Let it end, and close its connections."""
        self.is_stopping.set()
        self.join()
        for connection in self.connections:
            connection.close()


class _Analyst(_Beside):
    """Asks all queries in turns; each analyst begins with another one."""

    def __init__(self, target: Target, queries: Sequence[str], number: int) -> None:
        super().__init__(target, 1)
        first = number * 7 % len(queries)
        self._queries: Iterator[str] = islice(cycle(queries), first, None)
        self._began = 0.0
        self._ends: list[float] = []

    @override
    def work(self) -> None:
        (connection,) = self.connections
        cursor = connection.cursor()
        self._began = perf_counter()
        for name in self._queries:
            if self.is_stopping.is_set():
                break
            cursor.execute(QUERIES[name])
            cursor.fetchall()
            connection.commit()
            self._ends.append(perf_counter())

    def rate(self, warmup: float) -> float:
        """Queries per second after the warm-up."""
        first = self._began + warmup
        ends = [end for end in self._ends if end >= first]
        return len(ends) / (ends[-1] - first) if ends else 0.0


class _Probe(_Beside):
    """Commits a mark, and asks for it on another connection until it is seen."""

    def __init__(self, target: Target) -> None:
        super().__init__(target, 2)
        self.times: list[float] = []

    @override
    def work(self) -> None:
        writer, reader = self.connections
        writing, reading = writer.cursor(), reader.cursor()
        number = 0
        while not self.is_stopping.wait(_PROBE_PAUSE):
            number += 1
            writing.execute(_MARK.format(number))
            writer.commit()
            start = perf_counter()
            seen = 0
            while not seen and not self.is_stopping.is_set():
                reading.execute(_SEEN.format(number))
                ((seen,),) = reading.fetchall()
                reader.commit()
            if seen:
                self.times.append(perf_counter() - start)
