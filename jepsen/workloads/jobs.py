"""A job queue with row locks: jobs that are taken once, and slots that one client holds.

A slot is locked and not written, so that nothing but the lock keeps two clients from having
it at once. Others write it without a lock (``touch``), which its owner must not see: it looks twice, at times each time
on a new snapshot. The row that it writes is its own: a client that was given up, or whose
locks are lost, cannot commit it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

import tique
from jepsen.workloads.base import Operation, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.recorder import Event

SLOTS = 16
"""More than there are clients, so that one is free at any moment."""

_WORKERS = 64
_WANTED = 4
"""So many slots are wanted by number."""
_PATIENCE = 0.5
_LONGEST = 0.004
"""Seconds for which a slot is held at the most."""

_TAKE = (
    "DELETE FROM job WHERE id = (SELECT id FROM job ORDER BY id LIMIT 1 "
    "FOR UPDATE SKIP LOCKED) RETURNING id"
)


class Jobs(Workload):
    """Jobs come and are taken; slots are held."""

    name: ClassVar[str] = "jobs"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the tables, the slots, and a row for each client."""
        connection.execute("CREATE TABLE job (id BIGINT PRIMARY KEY)")
        connection.execute("CREATE TABLE slot (id INTEGER PRIMARY KEY, n BIGINT)")
        connection.execute("CREATE TABLE worker (id INTEGER PRIMARY KEY, n BIGINT)")
        for number in range(SLOTS):
            change(connection, "INSERT INTO slot VALUES (%s, 0)", number)
        for number in range(_WORKERS):
            change(connection, "INSERT INTO worker VALUES (%s, 0)", number)
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose between the queue and the slots."""
        way = self.chance.random()
        if way < 0.25:
            return Operation("submit", self.fresh())
        if way < 0.5:
            return Operation("take", None)
        if way < 0.6:
            return Operation("touch", self.chance.randrange(_WANTED))
        return Operation("hold", None)

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Insert a job, take the first that is free, touch a slot, or hold one."""
        if operation.f == "submit":
            change(connection, "INSERT INTO job VALUES (%s)", operation.value)
            return operation.value
        if operation.f == "take":
            taken = rows(connection, _TAKE)
            return taken[0][0] if taken else None
        if operation.f == "touch":
            connection.lock_timeout = _PATIENCE
            slot = operation.value
            change(connection, "UPDATE slot SET n = n + 1 WHERE id = %s", slot)
            return slot
        if operation.f == "hold":
            return self._hold(connection)
        found = rows(connection, "DELETE FROM job RETURNING id")
        return sorted(job for (job,) in found)

    def _hold(self, connection: tique.Connection) -> Any:
        skips = self.chance.random() < 0.6
        if self.chance.random() < 0.5:
            connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
        slot, *seen = self._lock(connection, skips=skips) or [None]
        since = time.monotonic_ns()
        if slot is not None:
            time.sleep(self.chance.uniform(0, _LONGEST))
            ((n,),) = rows(connection, "SELECT n FROM slot WHERE id = %s", slot)
            seen.append(n)
        change(
            connection,
            "UPDATE worker SET n = n + 1 WHERE id = %s",
            self.client % _WORKERS,
        )
        until = time.monotonic_ns()
        value = {"slot": slot, "skips": skips, "since": since, "until": until}
        return {**value, "seen": seen}

    def _lock(self, connection: tique.Connection, *, skips: bool) -> Any:
        """Lock the first slot that is free, or one of the first; its row."""
        if skips:
            found = rows(
                connection,
                "SELECT id, n FROM slot ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
            )
            return found[0] if found else None
        wanted = self.chance.randrange(_WANTED)
        connection.lock_timeout = self.chance.choice([0, _PATIENCE])
        try:
            wish = "SELECT id, n FROM slot WHERE id = %s FOR UPDATE"
            return rows(connection, wish, wanted)[0]
        except tique.OperationalError as error:
            if error.sqlstate != "55P03":
                raise
            return None

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Take all jobs that are left."""
        return [Operation("collect", None)]
