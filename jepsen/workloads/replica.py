"""Transfers and appends on the source, and reads of the replica alone.

The clients of the run's first process are on the replica's side, where the process
replicates: every other one of them reads the replica, accounts and lists at one version.
The others have routed connections, on PostgreSQL: they append on the source, and what
they read next on the replica has to have it.

A list is kept twice, as text and as rows of a table without a key, which one transaction
writes: a torn commit, and one that is applied twice, show in a single read. At the end
the source's feed says how accounts and lists were at each version.
"""

from __future__ import annotations

import os
import threading
import time
import traceback
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

import tique
from jepsen.systems.base import Unusable
from jepsen.workloads.bank import ACCOUNTS, START, Bank
from jepsen.workloads.base import Operation, change, rows
from tique.timeline.replica import ReplicaTimeline

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from jepsen.plan import Plan
    from jepsen.recorder import Event

_EPOCH = 0.005
_LISTS = 6
"""Lists that are in use at one time."""
_AGE = 10.0
"""Seconds until others take their places."""
_SCHEMAS = {"public": "main", "sys": "main"}
"""The replica's schema has to be the one in which it looks names up."""
_PAUSE = 0.2
_APPEND = (
    "INSERT INTO appended (list, elements) VALUES (%s, %s) "
    "ON CONFLICT (list) DO UPDATE SET elements = appended.elements || excluded.elements"
)
_INSERT = "INSERT INTO element (list, element) VALUES (%s, %s)"
_ELEMENTS = "SELECT elements FROM appended WHERE list = %s"
_ROWS = "SELECT element FROM element WHERE list = %s"


_is_there = threading.Event()
"""Whether this process has begun to replicate: nothing else may open the file first."""


class Replica(Bank):
    """Each client's part follows from its process and its number."""

    name: ClassVar[str] = "replica"
    # A change of columns would end the histories that the feed needs.
    definitions: ClassVar[tuple[str, ...]] = (
        *(each for each in Bank.definitions if "ALTER" not in each),
        "ALTER TABLE element ADD COLUMN note VARCHAR(10)",
        "ALTER TABLE element DROP COLUMN note",
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._part = "write"
        self._own: int | None = None

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the tables, with their histories, and then the accounts."""
        if connection._database.engine.shared is None:
            raise Unusable("workload replica: the source is a server's database")
        for table in (
            "account (id INTEGER PRIMARY KEY, balance BIGINT)",
            "appended (list BIGINT PRIMARY KEY, elements VARCHAR(100000))",
            "element (list BIGINT, element BIGINT)",
            "began (version BIGINT PRIMARY KEY)",
        ):
            connection.execute(f"CREATE TABLE {table}")
        connection.commit()
        url = connection._database.url
        tique.set_history(url, "10 days", ["account", "appended"])
        change(connection, "INSERT INTO began VALUES (%s)", connection.version)
        connection.commit()
        for account in range(ACCOUNTS):
            change(connection, "INSERT INTO account VALUES (%s, %s)", account, START)
        connection.commit()

    @classmethod
    @contextmanager
    @override
    def surroundings(cls, plan: Plan, clients: Sequence[int]) -> Iterator[Plan]:
        """Replicate meanwhile, in the first process, which has the settings of no option."""
        if 0 not in clients:
            yield plan
            return
        stop = threading.Event()
        thread = threading.Thread(target=_replicate, args=(plan, stop))
        thread.start()
        try:
            yield replace(plan, options={})
        finally:
            stop.set()
            thread.join()

    @override
    def connect(self, plan: Plan) -> tique.Connection:
        """Connect to the source, to the replica, or to both."""
        self._own = None
        readers = plan.share(0)
        if not (_is_there.is_set() if self.client in readers else _mark(plan).exists()):
            raise tique.OperationalError("the replica is not there yet")
        if self.client not in readers:
            return super().connect(plan)
        if readers.index(self.client) % 2 == 0 or "postgresql:" not in plan.url:
            self._part = "look"
            return tique.connect(_target(plan))
        self._part = "route"
        return tique.connect(
            plan.url, replica=_target(plan), freshness="own", on_stale="wait"
        )

    @override
    def generate(self) -> Operation:
        """Choose what the client's part has."""
        if self._part == "look":
            # What a restart did wrong is in earlier lists.
            ages = self.chance.choices([0, 0, 1, 2, 3], k=3)
            return Operation("look", sorted({self._list(age) for age in ages}))
        if self._part == "route" and self._own is not None:
            found, self._own = self._own, None
            return Operation("look-own", found)
        if self._part == "route" or self.chance.random() < 0.5:
            return Operation("append", [self._list(), self.fresh()])
        operation = super().generate()
        return operation if operation.f == "transfer" else self.generate()

    def _list(self, age: int = 0) -> int:
        number = self.epoch(_AGE) * _LISTS + self.chance.randrange(_LISTS)
        return max(number - age * _LISTS, 0)

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Write on the source, or read on the replica, or the source's log."""
        match operation.f:
            case "append":
                number, element = operation.value
                change(connection, _APPEND, number, f" {element}")
                change(connection, _INSERT, number, element)
                self._own = number
                return operation.value
            case "look":
                return self._look(connection, operation.value)
            case "look-own":
                with connection.transaction(read_only=True):
                    found = _split(rows(connection, _ELEMENTS, operation.value))
                return {"list": operation.value, "elements": found}
            case "log":
                return _log(connection)
        return super().apply(connection, operation)

    def _look(self, connection: tique.Connection, lists: Sequence[int]) -> Any:
        # Half of them as it was folded last, as routed queries may have it.
        timeline, controls = (
            connection._database.timeline,
            connection._execution.controls,
        )
        assert isinstance(timeline, ReplicaTimeline)
        controls.stored = timeline.stored if self.chance.random() < 0.5 else None
        accounts = super().apply(connection, Operation("read", None))
        texts = {str(n): _split(rows(connection, _ELEMENTS, n)) for n in lists}
        # Amid these reads epochs are published.
        time.sleep(self.chance.choice([0, 0.01]))
        elements = {
            str(n): sorted(int(each) for (each,) in rows(connection, _ROWS, n))
            for n in lists
        }
        return {
            "version": connection.version,
            "life": os.getpid(),
            "stored": connection._execution.controls.stored is not None,
            "accounts": accounts,
            "lists": texts,
            "rows": elements,
        }

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read what was written at each version."""
        return [Operation("log", None)]


def _target(plan: Plan) -> str:
    return f"duckdb:///{plan.folder}/replica.duckdb"


def _mark(plan: Plan) -> Path:
    """The file that is there when all has been copied once."""
    return plan.folder / "copied"


def _replicate(plan: Plan, stop: threading.Event) -> None:
    """Replicate until told to stop, again and again while the source is away."""
    while not stop.is_set():
        try:
            with tique.replicate(
                plan.url, _target(plan), epoch=_EPOCH, schemas=_SCHEMAS
            ) as replication:
                _mark(plan).touch()
                _is_there.set()
                while replication.status().state != "failed":
                    if stop.wait(_PAUSE):
                        return
        except tique.OperationalError:
            traceback.print_exc()
            stop.wait(_PAUSE)
        except BaseException:
            traceback.print_exc()
            # The crew tells of it.
            os._exit(3)


def _split(found: list[tuple[Any, ...]]) -> list[int]:
    return [int(element) for element in found[0][0].split()] if found else []


def _log(connection: tique.Connection) -> dict[str, list[list[int]]]:
    """The balances and the appends, each with its version, by the source's feed."""
    ((began,),) = rows(connection, "SELECT version FROM began")
    balances: list[list[int]] = []
    appends: list[list[int]] = []
    each: Any
    for each in connection.changes("account", since=began):
        account, balance = each.new or (each.old[0], 0)
        balances.append([each.version, int(account), int(balance)])
    for each in connection.changes("appended", since=began):
        before = _split([each.old[1:]]) if each.old else []
        after = _split([each.new[1:]]) if each.new else []
        if after[: len(before)] != before:
            raise AssertionError(f"the source's list changed: {each}")
        appends += [[each.version, int(each.new[0]), n] for n in after[len(before) :]]
    return {"balances": balances, "appends": appends}
