"""A queue: rows are inserted at one end and deleted at the other.

Places are used again when the queue was empty, so that rows come where tombstones are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event


class Queue(Workload):
    """Enqueues and dequeues."""

    name: ClassVar[str] = "queue"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the queue's table."""
        connection.execute(
            "CREATE TABLE waiting (place BIGINT PRIMARY KEY, element BIGINT)"
        )
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose an end."""
        if self.chance.random() < 0.5:
            return Operation("enqueue", self.fresh())
        return Operation("dequeue", None)

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Insert behind the last row, delete the first one, or all."""
        if operation.f == "enqueue":
            ((last,),) = rows(connection, "SELECT coalesce(max(place), 0) FROM waiting")
            change(
                connection,
                "INSERT INTO waiting VALUES (%s, %s)",
                int(last) + 1,
                operation.value,
            )
            return operation.value
        if operation.f == "dequeue":
            ((first,),) = rows(connection, "SELECT min(place) FROM waiting")
            if first is None:
                return None
            ((element,),) = rows(
                connection, "SELECT element FROM waiting WHERE place = %s", first
            )
            change(connection, "DELETE FROM waiting WHERE place = %s", first)
            return element
        found = rows(connection, "SELECT element FROM waiting ORDER BY place")
        change(connection, "DELETE FROM waiting")
        return [element for (element,) in found]

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Dequeue all that is left."""
        return [Operation("drain", None)]
