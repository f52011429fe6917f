"""One round: one target, one number of clients, one fresh copy of the database."""

from __future__ import annotations

import threading
import traceback
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from time import perf_counter, sleep
from typing import TYPE_CHECKING

from benchmarks.environment import durable_copy, scratch_directory

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.targets.base import Connection, Target
    from benchmarks.workload import Client, Workload

FIRST_BACKOFF = 0.001
"""Seconds within which the first retry starts; doubles with every further one."""

LONGEST_BACKOFF = 0.05

STUCK_AFTER = 60.0
"""Seconds after the end of a round after which a client counts as stuck."""


@dataclass(slots=True)
class Tally:
    """What one client did.

    Latencies are in seconds, from the first attempt of a transaction to its commit,
    with its retries, for commits within the measured window. `committed` counts every
    commit, those of the warm-up and of the last moments too.
    """

    latencies: dict[str, list[float]] = field(default_factory=dict)
    rolled_back: Counter[str] = field(default_factory=Counter)
    aborts: Counter[str] = field(default_factory=Counter)
    committed: Counter[str] = field(default_factory=Counter)
    error: str | None = None


@dataclass(slots=True)
class Round:
    """What all clients of one round did within its measured window.

    Attributes
    ----------
    seconds : float
        Length of the window.
    latencies : dict of str to list of float
        Seconds of every committed transaction, by kind.
    rolled_back, aborts : Counter
        Transactions that rolled back by their own rules, and attempts lost to
        conflicts, by kind.
    engine_statements : int
        Statements that the engine executed.
    failures : list of str
        Errors other than conflicts, and consistency conditions that do not hold.
    """

    target: str
    clients: int
    seconds: float
    latencies: dict[str, list[float]]
    rolled_back: Counter[str]
    aborts: Counter[str]
    engine_statements: int
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
) -> Round:
    """Run one round on a copy of a loaded database and check what it left.

    Parameters
    ----------
    target : Target
        A new instance; it is closed afterwards.
    workload : Workload
        What the clients run.
    database : pathlib.Path
        The loaded database; the round works on a copy beside it.
    clients : int
        Number of threads, each with a connection.
    seconds, warmup : float
        Length of the measured window and of the run before it.
    """
    with scratch_directory(database.parent) as directory:
        target.prepare(durable_copy(database, directory))
        try:
            return measure(
                target, workload, clients=clients, seconds=seconds, warmup=warmup
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
) -> Round:
    """Run a workload's clients on a prepared target and check what they left.

    Parameters are those of `run_round`.
    """
    observer = target.connect()
    before = workload.state(observer)
    crew = ClientCrew(target, workload, clients)
    crew.start()
    sleep(warmup)
    crew.open_window()
    first_statement, start = target.engine_statements(), perf_counter()
    crew.wait(seconds)
    statements = target.engine_statements() - first_statement
    elapsed = perf_counter() - start
    crew.stop()

    failures = [tally.error for tally in crew.tallies if tally.error]
    committed: Counter[str] = Counter()
    latencies: dict[str, list[float]] = {kind: [] for kind in workload.kinds}
    rolled_back: Counter[str] = Counter()
    aborts: Counter[str] = Counter()
    for tally in crew.tallies:
        committed += tally.committed
        rolled_back += tally.rolled_back
        aborts += tally.aborts
        for kind, times in tally.latencies.items():
            latencies[kind] += times
    failures += workload.failures(observer, before, committed)
    observer.close()
    return Round(
        target=target.name,
        clients=clients,
        seconds=elapsed,
        latencies=latencies,
        rolled_back=rolled_back,
        aborts=aborts,
        engine_statements=statements,
        failures=failures,
    )


class ClientCrew:
    """The client threads of a round.

    Parameters
    ----------
    target : Target
        Gives every client its connection.
    workload : Workload
        What they run.
    clients : int
        Their number.
    """

    def __init__(self, target: Target, workload: Workload, clients: int) -> None:
        self._target = target
        self._workload = workload
        self._measuring = False
        self._stopping = threading.Event()
        self.tallies = [Tally() for _ in range(clients)]
        self._threads = [
            threading.Thread(
                target=self._run, args=(number,), name=f"client-{number}", daemon=True
            )
            for number in range(clients)
        ]

    def start(self) -> None:
        """Let the clients run; nothing is measured yet."""
        for thread in self._threads:
            thread.start()

    def open_window(self) -> None:
        """Measure from now on."""
        self._measuring = True

    def wait(self, seconds: float) -> None:
        """Close the window after so many seconds, or when a client has failed."""
        self._stopping.wait(seconds)
        self._measuring = False

    def stop(self) -> None:
        """Let every client finish what it is doing, and wait for it."""
        self._stopping.set()
        deadline = perf_counter() + STUCK_AFTER
        for thread, tally in zip(self._threads, self.tallies, strict=True):
            thread.join(max(0.0, deadline - perf_counter()))
            if thread.is_alive():
                tally.error = (
                    f"{thread.name} is stuck: it did not finish its transaction within"
                    f" {STUCK_AFTER:.0f} s of the end of the round"
                )

    def _run(self, number: int) -> None:
        tally = self.tallies[number]
        try:
            connection = self._target.connect(autocommit=self._workload.autocommit)
            try:
                client = self._workload.client(
                    number, connection, self._target.parameter_style
                )
                self._work(client, connection, tally, Random(number))  # noqa: S311
            finally:
                connection.close()
        except Exception:
            tally.error = f"client-{number} failed: {traceback.format_exc()}"
            self._stopping.set()

    def _work(
        self, client: Client, connection: Connection, tally: Tally, random: Random
    ) -> None:
        conflicts, stopping = self._target.conflicts, self._stopping
        while not stopping.is_set():
            kind, run = client.next_transaction()
            start = perf_counter()
            backoff = FIRST_BACKOFF
            while True:
                try:
                    result = run()
                except conflicts:
                    connection.rollback()
                    if self._measuring:
                        tally.aborts[kind] += 1
                    if stopping.wait(random.uniform(0, backoff)):
                        return
                    backoff = min(2 * backoff, LONGEST_BACKOFF)
                else:
                    break
            elapsed = perf_counter() - start
            if result is None:
                if self._measuring:
                    tally.rolled_back[kind] += 1
                continue
            tally.committed[kind] += 1
            if self._measuring:
                tally.latencies.setdefault(kind, []).append(elapsed)
