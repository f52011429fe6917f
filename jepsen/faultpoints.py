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
    from collections.abc import Callable, Iterator, Mapping

MOMENTS = ("before", "amid", "after")
PHASES = ("body", "commit")


@dataclass
class Fault:
    """A fault, and where it is to happen.

    Attributes
    ----------
    kind
        ``cut``, or what is done beside the call.
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
    beside
        What can be done beside a call, by name: ``checkpoint``, ``ddl``; each in a thread of
        its own.
    """

    def __init__(self, beside: Mapping[str, Callable[[], None]]) -> None:
        self._beside = beside
        self._waiting: SimpleQueue[Fault] = SimpleQueue()
        self._threads: list[threading.Thread] = []
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
        """Wait for all that was begun beside calls."""
        for thread in self._threads:
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
        if fault.kind in self._beside:
            self._begin(fault)
            yield
            return
        if fault.moment != "after":
            cut(fault.moment)
        yield
        if fault.moment == "after":
            cut(fault.moment)

    def _begin(self, fault: Fault) -> None:
        """Begin what is done beside a call; before it, it is given time to end."""
        thread = threading.Thread(target=self._beside[fault.kind])
        self._threads.append(thread)
        thread.start()
        # Not without end: it may wait for the lock that this thread has.
        thread.join({"before": 0.2, "amid": 0.002, "after": 0.0}[fault.moment])
