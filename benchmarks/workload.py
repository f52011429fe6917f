"""The harness's interface of a workload."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.targets.base import Connection, ParameterStyle


class Transaction(NamedTuple):
    """One transaction with its input; running it again is a retry of the same.

    Attributes
    ----------
    kind : str
        The key of the counts.
    run : callable
        Runs it to its end. None means that it rolled back by its own rules.
    """

    kind: str
    run: Callable[[], object | None]


class Client(ABC):
    """One client of a workload, over one connection, used by one thread."""

    @abstractmethod
    def next_transaction(self) -> Transaction:
        """Return the next transaction of this client's sequence."""


class Workload(ABC):
    """Tables and transactions to measure targets with."""

    name: ClassVar[str]

    kinds: tuple[str, ...]
    """Kinds of transaction, in the order in which reports list them."""

    autocommit: bool = False
    """Whether each statement of a client is a transaction of its own."""

    scans: tuple[str, ...] = ()
    """Queries over whole tables, with one row each, for transactions that stay open."""

    late_write: str | None = None
    """A statement for the end of such a transaction ``{number}``, from 1 on.

    It meets no rows of a client's, or of another such transaction's.
    """

    @property
    @abstractmethod
    def label(self) -> str:
        """A name for the loaded database: workload, version, size and seed."""

    @abstractmethod
    def load(self, path: Path) -> None:
        """Create a DuckDB file with the tables and rows, without tique."""

    def declare(self, connection: Connection) -> None:  # noqa: B027
        """Add to the loaded tables what a DuckDB file cannot bring along."""

    def at(self, level: str) -> Workload:
        """Return it as an application writes it for an isolation level."""
        return self

    @abstractmethod
    def client(
        self, number: int, connection: Connection, style: ParameterStyle
    ) -> Client:
        """Return client `number`, counted from 0."""

    @abstractmethod
    def state(self, connection: Connection) -> int:
        """Return the number that `failures` compares with: rows that commits will add to.

        The transaction that reads it stays open.
        """

    @abstractmethod
    def failures(
        self, connection: Connection, before: int, committed: Mapping[str, int]
    ) -> list[str]:
        """Return a line for every failed check after the clients ran.

        Parameters
        ----------
        connection : Connection
            A connection of the target, without an open transaction.
        before : int
            The return value of `state`.
        committed : Mapping of str to int
            Every commit that was acknowledged since, by kind.
        """

    def anomalies(self, connection: Connection) -> int:
        """Return how often clients met what no serial order of them leads to."""
        return 0
