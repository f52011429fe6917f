"""Several clients insert the same key at once; one of them may have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

_EPOCH = 0.25
_KEYS = 8
"""New keys of an epoch."""


class Unique(Workload):
    """Inserts into a table whose UNIQUE column is not its primary key."""

    name: ClassVar[str] = "unique"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the table."""
        connection.execute(
            "CREATE TABLE claim (owner BIGINT PRIMARY KEY, id INTEGER NOT NULL UNIQUE)"
        )
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose a key of now, or a read."""
        if self.chance.random() < 0.05:
            return Operation("read", None)
        key = self.epoch(_EPOCH) * _KEYS + self.chance.randrange(_KEYS)
        return Operation("insert", [key, self.fresh()])

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Insert, or read all."""
        if operation.f == "read":
            found = rows(connection, "SELECT id, owner FROM claim ORDER BY id")
            return [list(row) for row in found]
        key, owner = operation.value
        change(connection, "INSERT INTO claim (id, owner) VALUES (%s, %s)", key, owner)
        return operation.value

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read all."""
        return [Operation("read", None)]
