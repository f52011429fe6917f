"""Nemeses inject faults: each kind on a schedule of its own, from the run's seed.

A nemesis notes its faults in a file beside the history and not in it: the history's
processes are clients, checkers would have to skip the others, and Elle does. The notes
have the history's clock, which is all that the timeline needs.
"""

from __future__ import annotations

import random
import threading
import time
from abc import ABC, abstractmethod
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from jepsen.crew import Crew
    from jepsen.preload import Preload
    from jepsen.systems import System

_LONG = (2.0, 8.0)
"""The interval of faults that kill all clients, whose restart takes over a second."""
_LONGER = (5.0, 25.0)
"""The same after :data:`_OFTEN` of them: they are to get on with a long run."""
_OFTEN = 10
_PITY = 0.8
"""How often it waits for that; otherwise it kills a recovery."""
_GLANCE = 0.1


@dataclass
class Scene:
    """The parts that faults can hit.

    Attributes
    ----------
    system
        The database.
    crew
        The client processes.
    disk
        Slows the server's disk down, or the process's that has the engine in it.
    clocks
        One per client process.
    """

    system: System
    crew: Crew
    disk: Preload | None = None
    clocks: list[Preload] = field(default_factory=list)
    faults: list[FaultNote] = field(default_factory=list)

    @contextmanager
    def fault(self, nemesis: str, detail: str) -> Iterator[FaultNote]:
        """Note a fault that happens within."""
        note = FaultNote(nemesis, detail, time.monotonic_ns(), 0)
        try:
            yield note
        finally:
            note.end = time.monotonic_ns()
            self.faults.append(note)


@dataclass
class FaultNote:
    """One fault: kind, target, begin and end (nanoseconds of CLOCK_MONOTONIC)."""

    nemesis: str
    detail: str
    start: int
    end: int


class Nemesis(ABC):
    """One kind of fault.

    Parameters
    ----------
    scene
        The parts that faults can hit.
    seed
        The seed of its choices.
    """

    name: ClassVar[str]
    interval: ClassVar[tuple[float, float]]
    """Seconds between two faults, at least and at most."""
    kills: ClassVar[bool] = False
    """Whether it kills the process of an embedded engine, and all clients with it."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.chance = random.Random(f"{seed} {self.name}")  # noqa: S311
        self.failure: BaseException | None = None
        self._strikes = 0
        self._thread = threading.Thread(target=self._run, name=self.name)
        self._stop = threading.Event()

    @classmethod
    def obstacle(cls, system: System) -> str | None:
        """Why it cannot be used on a system, if so."""
        return None

    @abstractmethod
    def strike(self) -> None:
        """Make one thing go wrong, and right again if that does not come by itself."""

    def fault(self, detail: str) -> AbstractContextManager[FaultNote]:
        """Note a fault that happens within."""
        return self.scene.fault(self.name, detail)

    def pause(self, shortest: float, longest: float) -> bool:
        """Wait for a time in between; whether to go on afterwards."""
        return not self._stop.wait(self.chance.uniform(shortest, longest))

    @property
    def _kills_all(self) -> bool:
        return self.kills and self.scene.system.is_embedded

    @property
    def _pauses(self) -> tuple[float, float]:
        if not self._kills_all:
            return self.interval
        return _LONG if self._strikes < _OFTEN else _LONGER

    def _await_work(self) -> bool:
        """Wait, mostly, until the clients that it kills work; whether to go on."""
        if self._kills_all and self.chance.random() < _PITY:
            while not all(member.is_at_work for member in self.scene.crew.members):
                if not self.pause(_GLANCE, _GLANCE):
                    return False
        return not self._stop.is_set()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End, with everything right again."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while self._await_work() and self.pause(*self._pauses):
                self.strike()
                self._strikes += 1
        except BaseException as error:
            self.failure = error
