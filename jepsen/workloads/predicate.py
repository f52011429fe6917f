"""Rows are asked for by a condition on their value, while rows come, change and go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Refused, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

IDS = 24
_VALUES = 1000
_STEP = 10**12
"""Larger than any number of a client's: values are unique, and spread evenly."""


class Predicate(Workload):
    """Inserts, updates and deletes of few rows, and reads ``WHERE value > x``."""

    name: ClassVar[str] = "predicate"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the table."""
        connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, v BIGINT)")
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose a read, or a row and an operation on it."""
        if self.chance.random() < 0.4:
            above = self.chance.randrange(_VALUES) * _STEP
            return Operation("read", {"above": above, "rows": None, "all": None})
        f = self.chance.choice(["insert", "insert", "update", "update", "delete"])
        value = None if f == "delete" else self._value()
        return Operation(f, {"id": self.chance.randrange(IDS), "value": value})

    def _value(self) -> int:
        return self.chance.randrange(_VALUES) * _STEP + self.fresh()

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Carry it out; an operation that changes nothing is refused."""
        value = operation.value
        if operation.f == "read":
            return self._read(connection, value["above"])
        if operation.f == "insert":
            sql = "INSERT INTO item (v, id) VALUES (%s, %s)"
        elif operation.f == "update":
            sql = "UPDATE item SET v = %s WHERE id = %s"
        else:
            sql = "DELETE FROM item WHERE id = %s"
        parameters = (
            [value["id"]] if operation.f == "delete" else [value["value"], value["id"]]
        )
        if not change(connection, sql, *parameters):
            raise Refused("there is no such row")
        return value

    def _read(self, connection: tique.Connection, above: int) -> dict[str, Any]:
        some = rows(
            connection, "SELECT id, v FROM item WHERE v > %s ORDER BY id", above
        )
        everything = rows(connection, "SELECT id, v FROM item ORDER BY id")
        return {
            "above": above,
            "rows": [list(row) for row in some],
            "all": [list(row) for row in everything],
        }

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read all rows, by a condition that holds for all of them too."""
        return [Operation("read", {"above": -1, "rows": None, "all": None})]
