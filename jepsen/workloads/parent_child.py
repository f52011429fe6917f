"""Children are inserted while their parents are deleted; none may be an orphan.

Foreign keys are refused by tique. So the application keeps the rule itself, as it would
have to under any snapshot isolation: a transaction that inserts a child writes its
parent's row too, which conflicts with the parent's deletion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Refused, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

_EPOCH = 0.25
_PARENTS = 4
"""New parents of an epoch."""


class ParentChild(Workload):
    """Parents come and go, children come."""

    name: ClassVar[str] = "parent-child"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make both tables."""
        connection.execute(
            "CREATE TABLE parent (id INTEGER PRIMARY KEY, children INTEGER)"
        )
        connection.execute("CREATE TABLE child (id BIGINT PRIMARY KEY, parent INTEGER)")
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose a parent of now, or a read."""
        parent = self.epoch(_EPOCH) * _PARENTS + self.chance.randrange(_PARENTS)
        dice = self.chance.random()
        if dice < 0.05:
            return Operation("read", None)
        if dice < 0.45:
            return Operation("insert-parent", parent)
        if dice < 0.75:
            return Operation("delete-parent", parent)
        return Operation("insert-child", [self.fresh(), parent])

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Insert, delete or read."""
        return getattr(self, f"_{operation.f.replace('-', '_')}")(
            connection, operation.value
        )

    def _insert_parent(self, connection: tique.Connection, parent: int) -> int:
        change(connection, "INSERT INTO parent VALUES (%s, 0)", parent)
        return parent

    def _delete_parent(self, connection: tique.Connection, parent: int) -> int:
        if rows(connection, "SELECT id FROM child WHERE parent = %s", parent):
            raise Refused("the parent has children")
        if not change(connection, "DELETE FROM parent WHERE id = %s", parent):
            raise Refused("there is no such parent")
        return parent

    def _insert_child(
        self, connection: tique.Connection, value: list[int]
    ) -> list[int]:
        child, parent = value
        if not change(
            connection,
            "UPDATE parent SET children = children + 1 WHERE id = %s",
            parent,
        ):
            raise Refused("there is no such parent")
        change(connection, "INSERT INTO child VALUES (%s, %s)", child, parent)
        return value

    def _read(self, connection: tique.Connection, _: None) -> dict[str, list[Any]]:
        parents = rows(connection, "SELECT id FROM parent ORDER BY id")
        children = rows(connection, "SELECT id, parent FROM child ORDER BY id")
        return {
            "parents": [parent for (parent,) in parents],
            "children": [list(row) for row in children],
        }

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read both tables."""
        return [Operation("read", None)]
