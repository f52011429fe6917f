"""Places in a client where something can go wrong: before, amid and after engine calls.

They are made by changing the engine's driver in a client's process. tique itself has no
switch for them, and a process that asks for none does not have them.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOMENTS = ("before", "amid", "after")
PHASES = ("body", "commit")


@dataclass
class Fault:
    """A fault, and where it is to happen.

    Attributes
    ----------
    kind
        ``cut`` or ``checkpoint``.
    phase
        Whether the calls of a transaction's body or of its commit are counted.
    left
        It happens at the call at which this gets to 0.
    moment
        One of :data:`MOMENTS`.
    """

    kind: str
    phase: str
    left: int
    moment: str


class FaultPoints:
    """The faults of one process; those of one operation happen in its thread.

    Parameters
    ----------
    checkpoint
        Runs a checkpoint; it is called in a thread of its own.
    """

    def __init__(self, checkpoint: Callable[[], None]) -> None:
        self._checkpoint = checkpoint
        self._waiting: SimpleQueue[Fault] = SimpleQueue()
        self._checkpoints: list[threading.Thread] = []
        self._here = threading.local()
        self.happened: Callable[[Fault], None] = lambda fault: None

    def plan(self, fault: Fault) -> None:
        """Have a fault happen in the next operation that gets to its place."""
        self._waiting.put(fault)

    def enter(self, phase: str) -> None:
        """Say that the thread's operation is in another phase; "" for in none."""
        here = self._here
        if getattr(here, "fault", None) is None and phase:
            here.fault = None
            with suppress(Empty):
                here.fault = self._waiting.get_nowait()
        here.phase = phase

    def wait(self) -> None:
        """Wait for all checkpoints that have begun."""
        for thread in self._checkpoints:
            thread.join()

    @contextmanager
    def passing(self, cut: Callable[[str], None]) -> Iterator[None]:
        """A call to the engine, whose connection ``cut`` cuts."""
        fault: Fault | None = getattr(self._here, "fault", None)
        if fault is None or fault.phase != self._here.phase:
            yield
            return
        fault.left -= 1
        if fault.left > 0:
            yield
            return
        self._here.fault = None
        self.happened(fault)
        if fault.kind == "checkpoint":
            self._during_checkpoint(fault.moment)
            yield
            return
        if fault.moment != "after":
            cut(fault.moment)
        yield
        if fault.moment == "after":
            cut(fault.moment)

    def _during_checkpoint(self, moment: str) -> None:
        """Begin a checkpoint; before the call, it is given time to end."""
        thread = threading.Thread(target=self._checkpoint)
        self._checkpoints.append(thread)
        thread.start()
        # Not without end: it may wait for the lock that this thread has.
        thread.join({"before": 0.2, "amid": 0.002, "after": 0.0}[moment])
