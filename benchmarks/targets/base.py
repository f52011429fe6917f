"""The harness's interface of an engine under measurement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ParameterStyle = Literal["pyformat", "qmark"]

READ_COMMITTED, SNAPSHOT, SERIALIZABLE = "READ COMMITTED", "SNAPSHOT", "SERIALIZABLE"
"""Isolation levels; on PostgreSQL by itself SNAPSHOT is REPEATABLE READ."""

OPTIMISTIC, LOCKING, SSN = PROTOCOLS = ("optimistic", "locking", "ssn")
"""tique's protocols for SERIALIZABLE; it takes the first by default."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What is measured: a target at an isolation level.

    Attributes
    ----------
    target : str
        Its name.
    level : str
        The isolation level of its clients.
    protocol : str, optional
        What makes them serializable, where that is a choice.
    """

    target: str
    level: str = SNAPSHOT
    protocol: str | None = None

    @property
    def isolation(self) -> str:
        """The level and the protocol, for people to read."""
        return f"{self.level} {self.protocol}" if self.protocol else self.level

    @override
    def __str__(self) -> str:
        """Name it in a line of a report."""
        return f"{self.target}, {self.isolation}"


class Cursor(Protocol):
    """The part of a DB-API cursor that the workloads use."""

    def execute(self, sql: str, parameters: Sequence[object] = ..., /) -> object:
        """Run one statement."""

    def executemany(self, sql: str, rows: Sequence[Sequence[object]], /) -> object:
        """Run one statement for every row of parameters; there is at least one."""

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the next row of the last result, or None."""

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return the remaining rows of the last result."""


class Connection(Protocol):
    """The part of a DB-API connection that the workloads use."""

    def cursor(self) -> Cursor:
        """Return a cursor; a workload keeps one per connection."""

    def commit(self) -> None:
        """Make the transaction durable."""

    def rollback(self) -> None:
        """Give the transaction up; without one, do nothing."""

    def close(self) -> None:
        """Release the connection."""


class Target(ABC):
    """One engine, reached in one way, over one database.

    A round makes a target, prepares it on a fresh copy of the loaded database, hands a
    connection to every client, and closes it.
    """

    name: ClassVar[str]
    """The name on the command line; "x+tique" and "x+tique-form" are set against "x"."""

    parameter_style: ClassVar[ParameterStyle]

    is_server: ClassVar[bool] = False
    """Whether other processes may use the database: `address` and `attach` work."""

    has_distance: ClassVar[bool] = False
    """Whether its server can be made to seem further away."""

    distance: float = 0.0
    """Milliseconds that a round trip to the server takes longer; set before `prepare`."""

    levels: ClassVar[tuple[str, ...]] = (SNAPSHOT,)
    """The isolation levels that its connections can have."""

    level: str = SNAPSHOT
    """The isolation level of its connections; set before `connect`."""

    protocols: ClassVar[tuple[str, ...]] = ()
    """The protocols for SERIALIZABLE among which it has a choice."""

    protocol: str | None = None
    """Which of them it takes; set before `prepare`."""

    history: str | None = None
    """The retention of all tables' histories, with tique; set before `prepare`."""

    conflicts: tuple[type[Exception], ...]
    """Exceptions that mean: lost to a concurrent transaction, try again."""

    @abstractmethod
    def prepare(self, path: Path) -> None:
        """Open the database for use.

        Parameters
        ----------
        path : pathlib.Path
            A DuckDB file that holds the workload's tables and belongs to this target
            from now on. An engine with a store of its own copies the tables out of it.
        """

    @abstractmethod
    def connect(self, *, autocommit: bool = False) -> Connection:
        """Return a new connection for one client thread.

        With `autocommit` every statement is a transaction of its own.
        """

    def address(self) -> str:
        """Return where other processes find the prepared database.

        Raises
        ------
        ValueError
            If it belongs to this process.
        """
        raise ValueError(f"the database of target {self.name} belongs to one process")

    def attach(self, address: str) -> None:
        """Use a database that another process has prepared, in place of `prepare`."""
        raise ValueError(f"the database of target {self.name} belongs to one process")

    def leave(self) -> None:  # noqa: B027
        """Give up this process's part in a server's database, until it connects again.

        A process that only watches would be one more to the server.
        """

    @abstractmethod
    def engine_statements(self) -> int:
        """Return how many statements the engine has executed since `prepare`.

        A row of `executemany` counts as a statement where the engine runs it as one,
        and so do BEGIN, COMMIT and ROLLBACK.
        """

    def settings(self) -> dict[str, str]:
        """Return the engine's version and settings that a report should name."""
        return {}

    def sizes(self) -> dict[str, int]:
        """Return the bytes of the database's tables, by their purpose, if known."""
        return {}

    def compact(self, connection: Connection) -> None:  # noqa: B027
        """Have the engine bring its log to its tables, if that can be asked for."""

    @abstractmethod
    def close(self) -> None:
        """Close the database; its connections are closed before."""


def in_style(sql: str, style: ParameterStyle) -> str:
    """Return a statement written with %s in a target's parameter style."""
    return sql if style == "pyformat" else sql.replace("%s", "?")
