"""The replicator in a process of its own, and what is asked of a copy beside writers."""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import traceback
from contextlib import closing
from itertools import cycle
from time import perf_counter, sleep
from typing import TYPE_CHECKING, Any, Self

from typing_extensions import override

import tique
from benchmarks.ch.queries import QUERIES

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection as Pipe
    from types import TracebackType

PATIENCE = 900.0
"""Seconds in which a replica has to catch up."""
MANAGED, NATIVE = "heartbeat", "native_heartbeat"
"""Tables of one row, on the source: one of tique's, and one that it does not know."""
SCHEMAS = {"public": "main"}
_WRITE = "UPDATE {} SET beat = %s WHERE id = 1"
_READ = "SELECT beat FROM {} WHERE id = 1"
_LONGEST_BEAT = 0.08
_POLL = 0.001


class Work(threading.Thread):
    """Takes a step again and again, and keeps when each began, and what it returned."""

    def __init__(self, step: Callable[[], float]) -> None:
        super().__init__(daemon=True)
        self._step = step
        self._stopping = False
        self.found: list[tuple[float, float]] = []
        self.failure = ""

    @override
    def run(self) -> None:
        try:
            while not self._stopping:
                self.found.append((perf_counter(), self._step()))
        except Exception:
            self.failure = traceback.format_exc()

    def stop(self) -> list[tuple[float, float]]:
        """Let the last step end; all steps, by a clock that all processes share."""
        self._stopping = True
        self.join()
        return self.found


def heart(writer: Any, reader: Any, table: str) -> Work:
    """Seconds from a commit on the source until a read of the copy shows it."""
    write, read = _WRITE.format(table), _READ.format(table)

    def beat() -> float:
        # Beats keep time with no epoch.
        sleep(random.uniform(0.0, _LONGEST_BEAT))  # noqa: S311
        ((last,),) = writer.execute(read).fetchall()
        writer.execute(write, (last + 1,))
        start = perf_counter()
        while reader.execute(read).fetchall() != [(last + 1,)]:
            if perf_counter() - start > PATIENCE:
                raise TimeoutError(f"the copy stays behind {last + 1}")
            sleep(_POLL)
        return perf_counter() - start

    return Work(beat)


def _analyst(connection: tique.Connection) -> Work:
    """Seconds of each query, in turns."""
    queries = cycle(QUERIES.values())

    def ask() -> float:
        start = perf_counter()
        connection.execute(next(queries)).fetchall()
        return perf_counter() - start

    return Work(ask)


class Replicator:
    """A process that replicates; a context manager that begins when it has caught up.

    Attributes
    ----------
    seconds, applied
        From its beginning until it had the version that was the newest then.
    lags, asked, failures
        When it has ended: seconds of each beat, and of each query of its analyst.
    """

    def __init__(
        self, source: str, target: str, epoch: float, core: int | None, asks: bool
    ) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, self._there = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(self._there, source, target, epoch, core, asks)
        )

    def __enter__(self) -> Self:
        self._process.start()
        # If the process dies, it is not waited for.
        self._there.close()
        self.seconds, self.applied = self._pipe.recv()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pipe.send("end")
        self.lags, self.asked, self.failures = self._pipe.recv()
        self._process.join()


def _serve(
    pipe: Pipe, source: str, target: str, epoch: float, core: int | None, asks: bool
) -> None:
    if core is not None:
        os.sched_setaffinity(0, {core})
    with closing(tique.connect(source, autocommit=True)) as writer:
        newest, start = writer.version, perf_counter()
        with tique.replicate(
            source, target, epoch=epoch, schemas=SCHEMAS
        ) as replication:
            if not replication.wait(newest, PATIENCE):
                raise TimeoutError(f"it does not catch up: {replication.status()}")
            pipe.send((perf_counter() - start, newest))
            readers = [tique.connect(target, autocommit=True) for _ in range(2)]
            works = [heart(writer, readers[0], MANAGED), _analyst(readers[1])]
            for work in works[: 1 + asks]:
                work.start()
            pipe.recv()
            found = [work.stop() for work in works[: 1 + asks]]
            stopped = [f"{t}: {why}" for t, why in replication.status().stopped.items()]
            for reader in readers:
                reader.close()
    failures = stopped + [work.failure for work in works if work.failure]
    pipe.send((found[0], found[1] if asks else [], failures))
