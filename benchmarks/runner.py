"""One round: one target, one number of clients, one fresh copy of the database."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from benchmarks.crews import ClientCrew, ProcessCrew
from benchmarks.environment import durable_copy, scratch_directory
from benchmarks.targets.base import SERIALIZABLE, SNAPSHOT, Setup

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from benchmarks.crews import Crew
    from benchmarks.targets.base import Connection, Target
    from benchmarks.workload import Workload


@dataclass(slots=True)
class Round:
    """The counts and latencies of all clients of one round within its measured window.

    Attributes
    ----------
    setup : Setup
        The target, and the isolation level of its clients.
    seconds : float
        Length of the window.
    latencies : dict of str to list of float
        Seconds of every committed transaction, by kind.
    rolled_back, aborts : Counter
        Transactions that rolled back by their own rules, and attempts lost to
        conflicts, by kind.
    most_attempts : dict of str to int
        Those of the committed transaction that needed most, by kind.
    engine_statements : int
        Statements that the engine executed.
    anomalies : int
        How often clients met what no serial order leads to, in the whole round.
    settings : dict of str to str
        The engine's version and settings, as far as the target names them.
    failures : list of str
        Errors other than conflicts, consistency conditions that do not hold, and
        anomalies at SERIALIZABLE.
    """

    setup: Setup
    clients: int
    seconds: float
    latencies: dict[str, list[float]]
    rolled_back: Counter[str]
    aborts: Counter[str]
    most_attempts: dict[str, int]
    engine_statements: int
    anomalies: int
    settings: dict[str, str]
    failures: list[str]

    @property
    def committed(self) -> int:
        """Transactions that committed."""
        return sum(map(len, self.latencies.values()))

    @property
    def throughput(self) -> float:
        """Committed transactions per second."""
        return self.committed / self.seconds

    @property
    def abort_rate(self) -> float:
        """Share of all attempts that were lost to conflicts."""
        aborts = self.aborts.total()
        attempts = self.committed + self.rolled_back.total() + aborts
        return aborts / attempts if attempts else 0.0

    @property
    def statements_per_transaction(self) -> float:
        """Engine statements per committed transaction, retries and all."""
        return self.engine_statements / self.committed if self.committed else 0.0


def run_round(
    target: Target,
    workload: Workload,
    database: Path,
    *,
    clients: int,
    seconds: float,
    warmup: float,
    processes: int = 0,
    distance: float = 0.0,
    level: str = SNAPSHOT,
    protocol: str | None = None,
    history: str | None = None,
    afterwards: Callable[[Connection], None] | None = None,
) -> Round:
    """Run one round on a copy of a loaded database and check the database afterwards.

    Parameters
    ----------
    target : Target
        A new instance; it is closed afterwards.
    workload : Workload
        Makes the clients' transactions.
    database : pathlib.Path
        The loaded database; the round works on a copy beside it.
    clients : int
        Number of threads, each with a connection.
    seconds, warmup : float
        Length of the measured window and of the run before it.
    processes : int
        Among how many processes the clients are divided; 0: they are in this one.
    distance : float
        The target's, see there.
    level : str
        The isolation level of the clients.
    protocol : str, optional
        What makes them serializable, where the target has a choice.
    history : str, optional
        The retention of all tables' histories, where the target is one with tique.
    afterwards : callable, optional
        Takes a connection when the clients have ended.
    """
    target.distance = distance
    target.level = level
    target.protocol = protocol
    target.history = history
    with scratch_directory(database.parent) as directory:
        try:
            target.prepare(durable_copy(database, directory))
            return measure(
                target,
                workload.at(level),
                clients=clients,
                seconds=seconds,
                warmup=warmup,
                processes=processes,
                afterwards=afterwards,
            )
        finally:
            target.close()


def measure(
    target: Target,
    workload: Workload,
    *,
    clients: int,
    seconds: float,
    warmup: float,
    processes: int = 0,
    afterwards: Callable[[Connection], None] | None = None,
) -> Round:
    """Run a workload's clients on a prepared target and check the database afterwards.

    Parameters are those of `run_round`.
    """
    observer = target.connect()
    workload.declare(observer)
    before = workload.state(observer)
    observer.rollback()
    crew: Crew
    if processes:
        observer.close()
        target.leave()
        crew = ProcessCrew(target, workload, clients, processes)
    else:
        crew = ClientCrew(target, workload, range(clients))
    crew.start()
    sleep(warmup)
    crew.open_window()
    start = perf_counter()
    crew.wait(seconds)
    elapsed = perf_counter() - start
    crew.stop()

    failures = [tally.error for tally in crew.tallies if tally.error]
    committed: Counter[str] = Counter()
    latencies: dict[str, list[float]] = {kind: [] for kind in workload.kinds}
    rolled_back: Counter[str] = Counter()
    aborts: Counter[str] = Counter()
    most_attempts: dict[str, int] = dict.fromkeys(workload.kinds, 0)
    for tally in crew.tallies:
        committed += tally.committed
        rolled_back += tally.rolled_back
        aborts += tally.aborts
        for kind, attempts in tally.most_attempts.items():
            most_attempts[kind] = max(most_attempts[kind], attempts)
        for kind, times in tally.latencies.items():
            latencies[kind] += times
    if processes:
        observer = target.connect()
    if afterwards is not None:
        afterwards(observer)
    failures += workload.failures(observer, before, committed)
    anomalies = workload.anomalies(observer)
    if anomalies and target.level == SERIALIZABLE:
        failures.append(f"{anomalies} anomalies in serializable transactions")
    observer.close()
    return Round(
        setup=Setup(target.name, target.level, target.protocol),
        clients=clients,
        seconds=elapsed,
        latencies=latencies,
        rolled_back=rolled_back,
        aborts=aborts,
        most_attempts=most_attempts,
        engine_statements=crew.engine_statements,
        anomalies=anomalies,
        settings=target.settings(),
        failures=failures,
    )
