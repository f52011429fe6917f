"""The interface of workloads: tables, operations, and the SQL that carries them out.

An operation is a name (``f``) and a value, as the checkers know them. All engines
understand the SQL, which is written as an application would write it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import tique

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from jepsen.plan import Plan
    from jepsen.recorder import Event


class Operation(NamedTuple):
    """A client's next operation."""

    f: str
    value: Any


class Refused(Exception):
    """The workload's own rules forbid an operation: it is rolled back."""


class Workload(ABC):
    """One client's part in a workload.

    Parameters
    ----------
    chance
        Where all its choices come from.
    client
        Which client it is; it has the same number after its process was killed.
    number
        A number that no other client of the run ever has, a restarted one neither.
    """

    name: ClassVar[str]
    options: ClassVar[dict[str, Any]] = {}
    """Options of ``tique.connect`` that it needs, in every client."""

    definitions: ClassVar[tuple[str, ...]] = (
        "CREATE TABLE passing (id INTEGER PRIMARY KEY)",
        "DROP TABLE passing",
    )
    """DDL that may come between any two steps; what it makes may be there already."""

    commits_each = False
    """Whether the operation is one statement in autocommit, which is its commit too."""

    def __init__(self, chance: random.Random, client: int, number: int) -> None:
        self.chance = chance
        self.client = client
        self.number = number
        self.elapsed = 0.0
        """Seconds since the run began, which all clients have in common at a moment."""
        self._made = 0

    @classmethod
    @contextmanager
    def surroundings(cls, plan: Plan, clients: Sequence[int]) -> Iterator[Plan]:
        """Have what a process with these clients needs, and the plan that they follow."""
        yield plan

    def connect(self, plan: Plan) -> tique.Connection:
        """Make the client's connection."""
        return tique.connect(plan.url, **plan.options)

    @classmethod
    @abstractmethod
    def create(cls, connection: tique.Connection) -> None:
        """Make the tables and the rows that are there from the start."""

    @abstractmethod
    def generate(self) -> Operation:
        """Choose the next operation."""

    @abstractmethod
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Run an operation up to, but not including, its commit (:attr:`commits_each`).

        Returns
        -------
        object
            The value that the operation has if it is committed.

        Raises
        ------
        Refused
            If it must not be committed.
        """

    @classmethod
    @abstractmethod
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """The operations at the end, whose reads must show all acknowledged writes."""

    @classmethod
    def seen(cls, reads: Iterable[Event]) -> Callable[[Any], bool | None]:
        """From the reads at the end: whether an operation's writes are there.

        None where that cannot be told.
        """
        return lambda value: None

    def fresh(self) -> int:
        """A number that no other client ever gets, in other runs either."""
        self._made += 1
        return self.number * 1_000_000 + self._made

    def epoch(self, seconds: float) -> int:
        """A number that changes every so many seconds, for all clients alike."""
        return int(self.elapsed / seconds)


def rows(
    connection: tique.Connection, sql: str, *parameters: Any
) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    found: list[tuple[Any, ...]] = connection.execute(sql, parameters).fetchall()
    return found


def change(connection: tique.Connection, sql: str, *parameters: Any) -> int:
    """How many rows a statement changed."""
    return connection.execute(sql, parameters).rowcount
