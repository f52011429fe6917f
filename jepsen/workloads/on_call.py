"""Doctors who are on call, in shifts: of each shift one at least, and not all of them.

A doctor who is there leaves if another stays, and one who is away comes if another is away. Each
looks at the shift and writes a row of its own, so that snapshot isolation lets two of them go together, or come: write
skew by a row that leaves what a condition selects, and by one that gets there.

Some go back to a savepoint from before they looked: what they have seen stays seen.

The rows are there from the start and are as many at the end: 1,000 doctors. Half of the
operations are on a few shifts at a time, so that clients meet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from jepsen.workloads.base import Operation, Refused, Workload, change, rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tique
    from jepsen.recorder import Event

SHIFTS = 250
DOCTORS = 4
"""Of a shift; two of them are on call at the beginning."""
_EPOCH = 0.05
_CURRENT = 4
"""So many shifts at a time have half of the operations."""
_READ = 50
"""Shifts that a read at the end looks at."""


class OnCall(Workload):
    """Doctors that come or leave, and looks at shifts."""

    name: ClassVar[str] = "on-call"

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make the table, and all doctors."""
        connection.execute(
            "CREATE TABLE doctor (id INTEGER PRIMARY KEY, shift INTEGER, on_call INTEGER)"
        )
        connection.cursor().executemany(
            "INSERT INTO doctor VALUES (%s, %s, %s)",
            [
                (number, number // DOCTORS, int(number % DOCTORS < 2))
                for number in range(SHIFTS * DOCTORS)
            ],
        )
        connection.commit()

    @override
    def generate(self) -> Operation:
        """Choose a shift, and who of it is to come or to leave."""
        if self.chance.random() < 0.5:
            first = self.epoch(_EPOCH) * _CURRENT
            shift = (first + self.chance.randrange(_CURRENT)) % SHIFTS
        else:
            shift = self.chance.randrange(SHIFTS)
        if self.chance.random() < 0.1:
            return Operation("look", {str(shift): None})
        doctor = shift * DOCTORS + self.chance.randrange(DOCTORS)
        return Operation("turn", {"shift": shift, "doctor": doctor, "on_call": None})

    @override
    def apply(self, connection: tique.Connection, operation: Operation) -> Any:
        """Look at the shift, and let the doctor come or leave if that may be."""
        value = operation.value
        if operation.f == "look":
            return {shift: _on_call(connection, int(shift)) for shift in value}
        found = self._look(connection, value["shift"])
        is_leaving = value["doctor"] in found
        # A shift that broke the rule is mended by the next.
        if len(found) == (1 if is_leaving else DOCTORS - 1):
            raise Refused("one has to be on call, and one to be away")
        change(
            connection,
            "UPDATE doctor SET on_call = %s WHERE id = %s",
            int(not is_leaving),
            value["doctor"],
        )
        return value | {"on_call": found}

    def _look(self, connection: tique.Connection, shift: int) -> list[int]:
        if self.chance.random() < 0.5:
            return _on_call(connection, shift)
        connection.execute("SAVEPOINT before")
        found = _on_call(connection, shift)
        connection.execute("ROLLBACK TO SAVEPOINT before")
        return found

    @classmethod
    @override
    def final(cls, events: Sequence[Event]) -> list[Operation]:
        """Look at all shifts."""
        return [
            Operation("look", dict.fromkeys(map(str, range(first, first + _READ))))
            for first in range(0, SHIFTS, _READ)
        ]


def _on_call(connection: tique.Connection, shift: int) -> list[int]:
    sql = "SELECT id FROM doctor WHERE shift = %s AND on_call = 1 ORDER BY id"
    return [doctor for (doctor,) in rows(connection, sql, shift)]
