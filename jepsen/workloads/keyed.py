"""Transactions of reads and writes of keys, several in each.

Keys are chosen in two ways that take turns. With a few hot keys, chosen exponentially,
transactions meet all the time and torn commits show; with many keys, chosen uniformly,
and more of them in a transaction, long chains of dependencies come about.

A key is retired when a client finds that it has been used enough: it goes on with the next key
in its place. Now and then all clients go on with other keys, so that a client that was
started again does not begin with those that were long ago.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from jepsen.workloads.base import Operation, Workload

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

_SLICE = 2.5
"""Seconds until the settings change."""
_AGE = 10.0
"""Seconds until all go on with other keys."""
_RETIRED = 50
"""Keys of one place that may be retired in that time."""
_CLIENTS = 100_000
"""More than there ever are, those that were started again counted."""
_PLACES = 1000
"""Keys that are in use at one time are numbers below this, modulo this."""


class Setting(NamedTuple):
    """How transactions are made for a while."""

    keys: int
    is_hot: bool
    shortest: int
    longest: int


SETTINGS = (
    Setting(keys=12, is_hot=True, shortest=1, longest=5),
    Setting(keys=30, is_hot=False, shortest=2, longest=8),
    Setting(keys=6, is_hot=True, shortest=1, longest=5),
    Setting(keys=100, is_hot=False, shortest=2, longest=8),
)


class Keyed(Workload):
    """Reads, ``["r", key, …]``, and writes of values that no other write to the key has."""

    write: ClassVar[str]
    """How a write is called."""

    def __init__(self, chance: random.Random, client: int, number: int) -> None:
        super().__init__(chance, client, number)
        self._generations: dict[int, int] = {}
        self._written: dict[int, int] = {}

    @override
    def generate(self) -> Operation:
        """Choose keys and the operations on them."""
        setting = SETTINGS[self.epoch(_SLICE) % len(SETTINGS)]
        steps: list[list[Any]] = []
        for _ in range(self.chance.randint(setting.shortest, setting.longest)):
            key = self._key(setting)
            if self.chance.random() < 0.5:
                steps.append(["r", key, None])
            else:
                steps.append([self.write, key, self._value(key)])
        return Operation("txn", steps)

    def _key(self, setting: Setting) -> int:
        if setting.is_hot:
            place = min(int(self.chance.expovariate(0.5)), setting.keys - 1)
        else:
            place = self.chance.randrange(setting.keys)
        # No setting's keys are another's.
        place += SETTINGS.index(setting) * _PLACES // len(SETTINGS)
        return self._generation(place) * _PLACES + place

    def _generation(self, place: int) -> int:
        return max(self._generations.get(place, 0), self.epoch(_AGE) * _RETIRED)

    def _value(self, key: int) -> int:
        """A number that no other client writes to this key, mostly a short one.

        Most of a history is values, again and again: histories are kept.
        """
        before = self._written.get(key, 0)
        self._written[key] = before + 1
        return before * _CLIENTS + self.number

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Read and write, in order."""
        done = []
        for kind, key, value in operation.value:
            if kind == self.write:
                self.store(connection, key, value)
                done.append([kind, key, value])
            else:
                found, is_enough = self.load(connection, key)
                if is_enough:
                    generation, place = divmod(key, _PLACES)
                    self._generations[place] = max(
                        self._generation(place), generation + 1
                    )
                done.append([kind, key, found])
        return done

    @abstractmethod
    def store(self, connection: tique.Connection, key: int, value: int) -> None:
        """Write a value to a key."""

    @abstractmethod
    def load(self, connection: tique.Connection, key: int) -> tuple[Any, bool]:
        """Read a key; what it shows, and whether it has been used enough."""

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read every key."""
        keys = sorted({step[1] for event in events for step in event.value})
        return [
            Operation("txn", [["r", key, None] for key in keys[first : first + 20]])
            for first in range(0, len(keys), 20)
        ]

    def written(self, key: int) -> int:
        """How often this client has written to a key."""
        return self._written.get(key, 0)
