"""A job queue with row locks: jobs that are taken once, and slots that one client holds.

A slot is locked and not written, so that nothing but the lock keeps two clients from having
it at once. What is written is a row of the client's own: a client that was given up, or whose
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
        connection.execute("CREATE TABLE slot (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE worker (id INTEGER PRIMARY KEY, n BIGINT)")
        for number in range(SLOTS):
            change(connection, "INSERT INTO slot VALUES (%s)", number)
        for number in range(_WORKERS):
            change(connection, "INSERT INTO worker VALUES (%s, 0)", number)
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose between the queue and the slots."""
        way = self.chance.random()
        if way < 0.3:
            return Operation("submit", self.fresh())
        if way < 0.6:
            return Operation("take", None)
        return Operation("hold", None)

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Insert a job, take the first that is free, or hold a slot."""
        if operation.f == "submit":
            change(connection, "INSERT INTO job VALUES (%s)", operation.value)
            return operation.value
        if operation.f == "take":
            taken = rows(connection, _TAKE)
            return taken[0][0] if taken else None
        if operation.f == "hold":
            return self._hold(connection)
        found = rows(connection, "DELETE FROM job RETURNING id")
        return sorted(job for (job,) in found)

    def _hold(self, connection: tique.Connection) -> Any:
        skips = self.chance.random() < 0.6
        slot = self._lock(connection, skips=skips)
        since = time.monotonic_ns()
        if slot is not None:
            time.sleep(self.chance.uniform(0, _LONGEST))
        change(
            connection,
            "UPDATE worker SET n = n + 1 WHERE id = %s",
            self.client % _WORKERS,
        )
        until = time.monotonic_ns()
        return {"slot": slot, "skips": skips, "since": since, "until": until}

    def _lock(self, connection: tique.Connection, *, skips: bool) -> int | None:
        """Lock the first slot that is free, or one of the first; which it is."""
        if skips:
            found = rows(
                connection,
                "SELECT id FROM slot ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
            )
            return int(found[0][0]) if found else None
        wanted = self.chance.randrange(4)
        connection.lock_timeout = self.chance.choice([0, _PATIENCE])
        try:
            rows(connection, "SELECT id FROM slot WHERE id = %s FOR UPDATE", wanted)
        except tique.OperationalError as error:
            if error.sqlstate != "55P03":
                raise
            return None
        return wanted

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Take all jobs that are left."""
        return [Operation("collect", None)]
