"""The clients of a round: threads of this process, or of several."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import threading
import traceback
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from time import monotonic, perf_counter
from typing import TYPE_CHECKING

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence
    from multiprocessing.connection import Connection as Pipe

    from benchmarks.targets.base import Connection, Target
    from benchmarks.workload import Client, Workload

FIRST_BACKOFF = 0.001
"""Seconds within which the first retry starts; doubles with every further one."""

LONGEST_BACKOFF = 0.05

STUCK_AFTER = 60.0
"""Seconds after the end of a round after which a client counts as stuck."""


@dataclass(slots=True)
class Tally:
    """The counts and latencies of one client.

    Latencies are in seconds, from the first attempt of a transaction to its commit,
    with its retries, for commits within the measured window; so are the attempts of the
    transaction that needed most. `moments` are when the commits
    were acknowledged, by a clock that all processes share. `committed` counts every
    commit, those of the warm-up and of the last moments too.
    """

    latencies: dict[str, list[float]] = field(default_factory=dict)
    moments: list[float] = field(default_factory=list)
    rolled_back: Counter[str] = field(default_factory=Counter)
    aborts: Counter[str] = field(default_factory=Counter)
    most_attempts: dict[str, int] = field(default_factory=dict)
    committed: Counter[str] = field(default_factory=Counter)
    error: str | None = None


class Crew(ABC):
    """The clients of one round."""

    tallies: list[Tally]

    engine_statements: int = 0
    """The number of statements that the engine executed for them within the window."""

    @abstractmethod
    def start(self) -> None:
        """Let the clients run; nothing is measured yet."""

    @abstractmethod
    def open_window(self) -> None:
        """Measure from now on."""

    @abstractmethod
    def wait(self, seconds: float) -> None:
        """Close the window after so many seconds, or when a client has failed."""

    @abstractmethod
    def stop(self) -> None:
        """Let every client finish its transaction, and wait for it."""


class ClientCrew(Crew):
    """The client threads of a round.

    Parameters
    ----------
    target : Target
        Gives every client its connection.
    workload : Workload
        Makes their transactions.
    numbers : sequence of int
        The clients' numbers.
    """

    def __init__(
        self, target: Target, workload: Workload, numbers: Sequence[int]
    ) -> None:
        self._target = target
        self._workload = workload
        self._measuring = False
        self._stopping = threading.Event()
        self.tallies = [Tally() for _ in numbers]
        self._threads = [
            threading.Thread(
                target=self._run,
                args=(number, tally),
                name=f"client-{number}",
                daemon=True,
            )
            for number, tally in zip(numbers, self.tallies, strict=True)
        ]

    @property
    def has_failed(self) -> bool:
        """Whether a client has failed, so that the others stopped."""
        return self._stopping.is_set()

    @override
    def start(self) -> None:
        """Let the clients run; nothing is measured yet."""
        for thread in self._threads:
            thread.start()

    @override
    def open_window(self) -> None:
        """Measure from now on."""
        self._measuring = True
        self.engine_statements = -self._target.engine_statements()

    @override
    def wait(self, seconds: float) -> None:
        """Close the window after so many seconds, or when a client has failed."""
        self._stopping.wait(seconds)
        self.close_window()

    def close_window(self) -> None:
        """Measure no longer."""
        self.engine_statements += self._target.engine_statements()
        self._measuring = False

    @override
    def stop(self) -> None:
        """Let every client finish its transaction, and wait for it."""
        self._stopping.set()
        deadline = perf_counter() + STUCK_AFTER
        for thread, tally in zip(self._threads, self.tallies, strict=True):
            thread.join(max(0.0, deadline - perf_counter()))
            if thread.is_alive():
                tally.error = (
                    f"{thread.name} is stuck: it did not finish its transaction within"
                    f" {STUCK_AFTER:.0f} s of the end of the round"
                )

    def _run(self, number: int, tally: Tally) -> None:
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
            backoff, attempts = FIRST_BACKOFF, 1
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
                    attempts += 1
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
                most = tally.most_attempts
                most[kind] = max(most.get(kind, 1), attempts)
                tally.moments.append(monotonic())


class ProcessCrew(Crew):
    """Clients in processes of their own, as evenly as it goes.

    Parameters
    ----------
    target : Target
        Says where the prepared database is.
    workload : Workload
        Makes their transactions.
    clients, processes : int
        Their numbers.
    """

    def __init__(
        self, target: Target, workload: Workload, clients: int, processes: int
    ) -> None:
        self.tallies = []
        context = multiprocessing.get_context("spawn")
        address = target.address()
        self._members = []
        for first in range(min(clients, processes)):
            here, there = context.Pipe()
            numbers = range(first, clients, processes)
            process = context.Process(
                target=_serve,
                args=(
                    *(there, type(target), address, target.level, target.protocol),
                    *(workload, numbers),
                ),
                daemon=True,
            )
            self._members.append((process, here))

    @override
    def start(self) -> None:
        """Start the processes; they run when all of them are connected."""
        for process, _ in self._members:
            process.start()
        for _, pipe in self._members:
            pipe.recv()
        self._tell("start")

    @override
    def open_window(self) -> None:
        """Measure from now on."""
        self._tell("measure")

    @override
    def wait(self, seconds: float) -> None:
        """Close the window after so many seconds, or when a client has failed."""
        pipes = [pipe for _, pipe in self._members]
        multiprocessing.connection.wait(pipes, seconds)
        self._tell("close")

    @override
    def stop(self) -> None:
        """Stop the clients and collect their tallies."""
        self._tell("stop")
        for process, pipe in self._members:
            answer = None
            while answer is None and pipe.poll(2 * STUCK_AFTER):
                # A process whose client failed has said so before.
                answer = pipe.recv()
            tallies, statements = answer or ([Tally(error="a process is stuck")], 0)
            self.tallies += tallies
            self.engine_statements += statements
            process.join(STUCK_AFTER)

    def _tell(self, word: str) -> None:
        for _, pipe in self._members:
            pipe.send(word)


def _serve(
    pipe: Pipe,
    kind: type[Target],
    address: str,
    level: str,
    protocol: str | None,
    workload: Workload,
    numbers: Sequence[int],
) -> None:
    """Be a member of a crew of processes."""
    target = kind()
    target.level = level
    target.protocol = protocol
    target.attach(address)
    crew = ClientCrew(target, workload, numbers)
    pipe.send("ready")
    pipe.recv()
    crew.start()
    pipe.recv()
    crew.open_window()
    while not pipe.poll(0.05):
        if crew.has_failed:
            pipe.send(None)
            break
    pipe.recv()
    crew.close_window()
    pipe.recv()
    crew.stop()
    pipe.send((crew.tallies, crew.engine_statements))
    target.close()
