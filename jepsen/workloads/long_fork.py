"""Keys are written once each, and read in groups.

Two reads of a group that saw its writes in different orders cannot both be of snapshots
of one sequence of commits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Workload, change, rows

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

GROUP = 8
"""Keys of a group: one per client."""
_EPOCH = 0.01
_GROUPS = 4
"""New groups of an epoch: enough for 32 clients."""


class LongFork(Workload):
    """Single writes, and reads of a group of keys."""

    name: ClassVar[str] = "long-fork"

    def __init__(self, chance: random.Random, client: int, number: int) -> None:
        super().__init__(chance, client, number)
        # A process that takes its place begins long after this epoch.
        self._written = -1

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the table."""
        connection.execute("CREATE TABLE fork (id INTEGER PRIMARY KEY, v INTEGER)")
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose to write the client's key of now, once, or to read its group."""
        group = self.epoch(_EPOCH) * _GROUPS + self.client // GROUP
        if group > self._written and self.chance.random() < 0.5:
            self._written = group
            return Operation("write", group * GROUP + self.client % GROUP)
        return Operation("read", _group(group))

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Write one key, or read a group in one statement or in several."""
        if operation.f == "write":
            change(connection, "INSERT INTO fork VALUES (%s, 1)", operation.value)
            return operation.value
        keys = [int(key) for key in operation.value]
        if self.chance.random() < 0.5:
            found = rows(
                connection,
                "SELECT id FROM fork WHERE id BETWEEN %s AND %s",
                min(keys),
                max(keys),
            )
        else:
            self.chance.shuffle(keys)
            found = [
                row
                for key in keys
                for row in rows(connection, "SELECT id FROM fork WHERE id = %s", key)
            ]
        seen = {key for (key,) in found}
        return {str(key): int(key in seen) for key in sorted(keys)}

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Read every group that was written to."""
        groups = {event.value // GROUP for event in events if event.f == "write"}
        return [Operation("read", _group(group)) for group in sorted(groups)]


def _group(group: int) -> dict[str, None]:
    """The value of a read of a group."""
    return dict.fromkeys(map(str, range(group * GROUP, (group + 1) * GROUP)))
