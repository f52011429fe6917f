"""TPC-C as a workload of the harness."""

from __future__ import annotations

from copy import copy
from functools import partial
from random import Random
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from benchmarks.targets.base import READ_COMMITTED
from benchmarks.tpcc.consistency import count_orders, failed_conditions
from benchmarks.tpcc.inputs import MIX, Terminal
from benchmarks.tpcc.load import VERSION, load
from benchmarks.tpcc.schema import FOREIGN_KEYS
from benchmarks.tpcc.transactions import Application
from benchmarks.workload import Client, Transaction, Workload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from benchmarks.targets.base import Connection, ParameterStyle
    from benchmarks.tpcc.rules import Scale


class TpccClient(Client):
    """A terminal and the application that it is connected to."""

    def __init__(self, terminal: Terminal, application: Application) -> None:
        self._terminal = terminal
        self._application = application

    @override
    def next_transaction(self) -> Transaction:
        """Return the next card of the terminal's deck, with its input."""
        terminal, application = self._terminal, self._application
        kind = terminal.deal()
        run: Callable[[], object | None]
        match kind:
            case "new_order":
                run = partial(application.new_order, terminal.new_order())
            case "payment":
                run = partial(application.payment, terminal.payment())
            case "order_status":
                run = partial(application.order_status, terminal.order_status())
            case "delivery":
                run = partial(application.delivery, terminal.delivery())
            case _:
                run = partial(application.stock_level, terminal.stock_level())
        return Transaction(kind, run)


class TpccWorkload(Workload):
    """The five transactions in the specification's mix, without keying and think time.

    Parameters
    ----------
    scale : Scale
        Size of the database.
    seed : int
        Fixes the database, and each client's sequence of transactions.
    roam : bool
        Let clients choose their warehouse for every transaction.
    """

    name: ClassVar[str] = "tpcc"
    kinds: tuple[str, ...] = tuple(kind for kind, _ in MIX)
    scans = (
        "SELECT count(*), sum(s_quantity), sum(s_ytd) FROM stock",
        "SELECT count(*), sum(ol_amount), sum(ol_quantity) FROM order_line",
    )
    late_write = "UPDATE item SET i_im_id = i_im_id + 1 WHERE i_id = {number}"

    locking = False
    """Whether rows that are read and then written are locked."""

    def __init__(self, scale: Scale, seed: int, *, roam: bool = False) -> None:
        self.scale = scale
        self.seed = seed
        self.roam = roam

    @property
    @override
    def label(self) -> str:
        """The name of the loaded database."""
        return f"tpcc-v{VERSION}-{self.scale.label}-seed{self.seed}"

    @override
    def load(self, path: Path) -> None:
        """Generate and load the database."""
        load(path, self.scale, self.seed)

    @override
    def at(self, level: str) -> TpccWorkload:
        """Lock rows that are read and then written, as READ COMMITTED needs it."""
        found = copy(self)
        found.locking = level == READ_COMMITTED
        return found

    @override
    def client(
        self, number: int, connection: Connection, style: ParameterStyle
    ) -> Client:
        """Return a terminal with its application."""
        random = Random(f"{self.seed}/{number}")  # noqa: S311
        terminal = Terminal(self.scale, number, random, roam=self.roam)
        application = Application(connection, style, locking=self.locking)
        return TpccClient(terminal, application)

    @override
    def state(self, connection: Connection) -> int:
        """Return the number of orders."""
        return count_orders(connection)

    @override
    def failures(
        self, connection: Connection, before: int, committed: Mapping[str, int]
    ) -> list[str]:
        """Check conditions 1 to 4, and that every acknowledged order is there."""
        failures = failed_conditions(connection)
        orders, entered = count_orders(connection), committed.get("new_order", 0)
        if orders != before + entered:
            failures.append(
                f"orders grew from {before} to {orders}"
                f" but {entered} New-Orders were committed"
            )
        return failures


class ReferentialTpccWorkload(TpccWorkload):
    """The same with the foreign keys of the specification (clause 1.3).

    They are declared by ALTER TABLE, which DuckDB by itself does not have.
    """

    name: ClassVar[str] = "tpcc-foreign-keys"

    @override
    def declare(self, connection: Connection) -> None:
        """Declare the foreign keys."""
        cursor = connection.cursor()
        for number, (table, columns, referenced) in enumerate(FOREIGN_KEYS, 1):
            cursor.execute(
                f"ALTER TABLE {table} ADD CONSTRAINT reference_{number} "
                f"FOREIGN KEY ({columns}) REFERENCES {referenced}"
            )
            connection.commit()
