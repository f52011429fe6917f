"""Children are inserted while their parents are deleted; none may be an orphan.

A FOREIGN KEY forbids it: the child's insert and its parent's deletion, at the same time,
exclude each other, though neither writes the other's row. A parent with an even number
is not deleted while it has children; one with an odd number takes them along (CASCADE).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

import tique
from jepsen.workloads.base import Operation, Refused, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jepsen.recorder import Event

_EPOCH = 0.25
_PARENTS = 4
"""New parents of an epoch."""

_TABLE = ("child", "heir")
_DELETION = ("delete-parent", "delete-family")
"""By whether the parent's number is odd."""


class ParentChild(Workload):
    """Parents come and go, children come."""

    name: ClassVar[str] = "parent-child"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the tables of parents and of both kinds of children."""
        connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
        for table, action in (("child", ""), ("heir", "ON DELETE CASCADE")):
            connection.execute(
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, parent INTEGER "
                f"REFERENCES parent {action})"
            )
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
            return Operation(_DELETION[parent % 2], parent)
        return Operation("insert-child", [self.fresh(), parent])

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Insert, delete or read."""
        return getattr(self, f"_{operation.f.replace('-', '_')}")(
            connection, operation.value
        )

    def _insert_parent(self, connection: tique.Connection, parent: int) -> int:
        change(connection, "INSERT INTO parent VALUES (%s)", parent)
        return parent

    def _delete_parent(self, connection: tique.Connection, parent: int) -> int:
        try:
            deleted = change(connection, "DELETE FROM parent WHERE id = %s", parent)
        except tique.errors.ForeignKeyViolation as error:
            raise Refused("the parent has children") from error
        if not deleted:
            raise Refused("there is no such parent")
        return parent

    def _delete_family(self, connection: tique.Connection, parent: int) -> int:
        if not change(connection, "DELETE FROM parent WHERE id = %s", parent):
            raise Refused("there is no such parent")
        return parent

    def _insert_child(
        self, connection: tique.Connection, value: list[int]
    ) -> list[int]:
        child, parent = value
        insert = f"INSERT INTO {_TABLE[parent % 2]} VALUES (%s, %s)"
        try:
            change(connection, insert, child, parent)
        except tique.errors.ForeignKeyViolation as error:
            raise Refused("there is no such parent") from error
        return value

    def _read(self, connection: tique.Connection, _: None) -> dict[str, list[Any]]:
        parents = rows(connection, "SELECT id FROM parent ORDER BY id")
        children = rows(
            connection,
            "SELECT id, parent FROM child UNION ALL SELECT id, parent FROM heir",
        )
        return {
            "parents": [parent for (parent,) in parents],
            "children": sorted(map(list, children)),
        }

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read all tables."""
        return [Operation("read", None)]
