"""Counters that are added to: in the client, by an expression, or by ON CONFLICT."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

KEYS = 3


class Counter(Workload):
    """Additions to hot rows."""

    name: ClassVar[str] = "counter"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the counters."""
        connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, n BIGINT)")
        for key in range(KEYS):
            change(connection, "INSERT INTO counter VALUES (%s, 0)", key)
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose an addition or a read."""
        self.commits_each = False
        if self.chance.random() < 0.3:
            return Operation("read", None)
        # Additions by an expression are sometimes transactions of their own.
        self.commits_each = self.chance.random() < 0.3
        return Operation(
            "add",
            {"key": self.chance.randrange(KEYS), "amount": self.chance.randint(1, 9)},
        )

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Read all counters, or add to one."""
        if operation.f == "read":
            found = rows(connection, "SELECT id, n FROM counter")
            return {str(key): int(n) for key, n in found}
        key, amount = operation.value["key"], operation.value["amount"]
        way = self.chance.random()
        if self.commits_each or way < 0.3:
            change(
                connection,
                "UPDATE counter SET n = n + %s WHERE id = %s",
                amount,
                key,
            )
            return operation.value
        if way < 0.5:
            change(
                connection,
                "INSERT INTO counter VALUES (%s, %s) "
                "ON CONFLICT (id) DO UPDATE SET n = counter.n + excluded.n",
                key,
                amount,
            )
            return operation.value
        ((n,),) = rows(connection, "SELECT n FROM counter WHERE id = %s", key)
        change(connection, "UPDATE counter SET n = %s WHERE id = %s", n + amount, key)
        return operation.value

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read all counters."""
        return [Operation("read", None)]
