"""A process of clients: each is a thread with a connection of its own.

    python -m jepsen.client PLAN LIFE CLIENT…

The plan is a file (:class:`jepsen.plan.Plan`). It reads commands on its standard input,
one per line: a fault and where it is to happen (``cut commit 2 amid``), or ``end``. When
its standard input ends, its parent is dead, and it ends too.

*The outcomes* ``ok``, ``fail`` *and* ``info``. Before ``commit()`` is called nothing of
a transaction has left this client, so that every error up to there is ``fail``, a lost
connection too. ``commit()`` itself promises: it returns (``ok``), it says that the
outcome is unknown (OutcomeUnknown, ``info``), or it says with any other error of
tique's that nothing was committed (``fail``). If it ever says so wrongly, the elements
are there, and the checker finds an aborted read. An error that is not tique's promises
nothing: it is ``info``, and a problem of its own.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
import traceback
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tique
from jepsen.faultpoints import Fault, FaultPoints
from jepsen.mutations import MUTATIONS
from jepsen.plan import Plan
from jepsen.recorder import Recorder
from jepsen.replica_mutations import REPLICA
from jepsen.systems import kind_of
from jepsen.workloads import LEVELS
from jepsen.workloads.base import Refused
from tique._translation import translating

if TYPE_CHECKING:
    from collections.abc import Callable

    from jepsen.workloads.base import Operation

_PAUSE, _LONGEST_PAUSE = 0.05, 0.4
"""Seconds between two attempts to connect: a server that recovers forks for each."""
_ROLLBACKS = 0.03
"""The share of transactions that change their mind."""
_EXPECTED = (tique.SerializationError, tique.IntegrityError, tique.OperationalError)
_REFUSALS = (
    tique.SerializationError,
    tique.OperationalError,
    # What a definition makes is there already, or what it drops is not.
    tique.ProgrammingError,
)


class Client:
    """One client.

    Parameters
    ----------
    plan
        The run's plan.
    number
        The client's number.
    life
        How often its process was started before.
    points
        The process's fault points.
    note
        Where it notes events that are neither operations nor outcomes.
    """

    def __init__(
        self, plan: Plan, number: int, life: int, points: FaultPoints, note: Notes
    ) -> None:
        self._plan = plan
        self._name = number
        unique = number + life * (plan.clients + 1)
        self._chance = random.Random(f"{plan.seed} {number} {life}")  # noqa: S311
        self._workload = LEVELS[plan.level][plan.workload](self._chance, number, unique)
        self._recorder = Recorder(plan.folder, number, life)
        self._points = points
        self._note = note
        self._connection: tique.Connection | None = None

    def run(self, stop: threading.Event) -> None:
        """Work until told to stop."""
        try:
            self._work(stop)
        except BaseException:
            self._note("problem", client=self._name, text=traceback.format_exc())
            raise

    def _work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            if self.connect():
                self._workload.elapsed = self._plan.elapsed()
                self.perform(self._workload.generate())
            else:
                stop.wait(self._chance.uniform(_PAUSE, _LONGEST_PAUSE))
        self.close()

    def connect(self) -> bool:
        """Whether there is a connection, or one can be made now."""
        if self._connection is None:
            # The server is not there, or does not know of its own restart yet.
            with suppress(tique.OperationalError):
                self._connection = self._workload.connect(self._plan)
        return self._connection is not None

    def close(self) -> None:
        """Close the connection; its open transaction is rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(tique.Error):
                connection.close()

    def perform(self, operation: Operation) -> str:
        """Carry out an operation and record it; its outcome."""
        self._recorder.invoke(*operation)
        self._points.enter("commit" if self._workload.commits_each else "body")
        kind, value, error = self._attempt(operation)
        self._points.enter("")
        self._recorder.complete(kind, operation.f, value, error)
        return kind

    def _attempt(self, operation: Operation) -> tuple[str, Any, str | None]:
        connection = self._connection
        assert connection is not None
        try:
            commits_each = self._workload.commits_each
            try:
                connection.autocommit = commits_each
                value = self._workload.apply(connection, operation)
                if commits_each:
                    return "ok", value, None
                # A seed without bulk commits keeps its choices.
                if self._plan.bulk and self._chance.random() < self._plan.bulk:
                    _stage(connection)
                if self._chance.random() < _ROLLBACKS:
                    raise Refused("rolled back")
            except tique.OutcomeUnknown as error:
                self.close()
                return "info", operation.value, _text(error)
            except (Refused, tique.Error) as error:
                self._recover(error)
                return "fail", operation.value, _text(error)
            txid = connection.txid
            self._points.enter("commit")
            try:
                connection.commit()
            except tique.OutcomeUnknown as error:
                self.close()
                self._note("unknown", txid=txid, value=operation.value)
                return "info", operation.value, _text(error)
            except tique.Error as error:
                self._recover(error)
                return "fail", operation.value, _text(error)
            return "ok", value, None
        except Exception as error:
            self._note("problem", client=self._name, text=traceback.format_exc())
            self.close()
            return "info", operation.value, _text(error)

    def _recover(self, error: Exception) -> None:
        """Be ready for the next transaction."""
        if isinstance(error, tique.Error) and not isinstance(error, _EXPECTED):
            self._note("problem", client=self._name, text=traceback.format_exc())
        assert self._connection is not None
        if (
            isinstance(error, tique.OperationalError)
            and not isinstance(error, tique.SerializationError)
            and self._chance.random() < 0.5
        ):
            # tique makes a new session when one is lost; closing it has one made, too.
            self.close()
            return
        try:
            self._connection.rollback()
        except tique.Error:
            self.close()


def _stage(connection: tique.Connection) -> None:
    """Have the open transaction commit in bulk, as if it had written too many rows."""
    transaction = connection._execution.transaction
    if transaction is not None:
        with translating():
            for writes in transaction.writes.values():
                writes.switch_to_stage(transaction.session)


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200].replace("\n", " ")


class Notes:
    """The process's lines beside the histories: one per fault or problem."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)

    def __call__(self, kind: str, **values: Any) -> None:
        """Write one."""
        line = json.dumps({"time": time.monotonic_ns(), "kind": kind, **values})
        os.write(self._file, line.encode() + b"\n")


def serve(plan: Plan, life: int, clients: list[int]) -> None:
    """Be a process of clients until told to end."""
    note = Notes(plan.folder / "notes.jsonl")

    chance = random.Random(f"{plan.seed} {clients} {life}")  # noqa: S311
    workload = LEVELS[plan.level][plan.workload]

    def beside(work: Callable[[tique.Connection], object]) -> None:
        try:
            with tique.connect(plan.url, **plan.options) as connection:
                work(connection)
        except _REFUSALS as error:
            note("refused", text=_text(error))
        except Exception:
            note("problem", text=traceback.format_exc())

    def define(connection: tique.Connection) -> None:
        connection.autocommit = True
        connection.execute(chance.choice(workload.definitions))

    points = FaultPoints(
        {
            "checkpoint": partial(beside, tique.Connection.checkpoint),
            "ddl": partial(beside, define),
        }
    )
    points.happened = lambda fault: note(
        fault.kind, phase=fault.phase, moment=fault.moment
    )
    kind_of(plan.url).instrument(points)
    # A replica's are of the process that has it.
    if plan.mutation is not None and (0 in clients or plan.mutation not in REPLICA):
        MUTATIONS[plan.mutation]()
    stop = threading.Event()
    with workload.surroundings(plan, clients) as plan:
        threads = [
            threading.Thread(
                target=Client(plan, number, life, points, note).run, args=(stop,)
            )
            for number in clients
        ]
        for thread in threads:
            thread.start()
        for line in sys.stdin:
            word, *place = line.split()
            if word == "end":
                stop.set()
                for thread in threads:
                    thread.join()
                points.wait()
                return
            phase, left, moment = place
            points.plan(Fault(word, phase, int(left), moment))
        # The parent is gone: nothing would record this process's work any more.
        os._exit(1)


if __name__ == "__main__":
    serve(Plan.read(Path(sys.argv[1])), int(sys.argv[2]), list(map(int, sys.argv[3:])))
