"""Transactions that write registers and read them, most without having read them before.

A register is kept in one of three forms, by its key:

* a row that ON CONFLICT replaces, which merges: nothing is read;
* a row that is deleted and inserted again;
* a row that is updated, and inserted if there is none.

At SERIALIZABLE there is a fourth: a row with a key of its own for each value, which is found by the
register's name. Who writes deletes what is there, and two that find nothing both insert: the
later of them has not seen the other's row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from typing_extensions import override

from jepsen.workloads.base import change, rows
from jepsen.workloads.keyed import Keyed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import tique
    from jepsen.recorder import Event

_MOST = 16
"""A client goes on with another register when it has written one so often."""
_VALUES = 10_000_000_000
"""More than there are of a register."""


class Register(NamedTuple):
    """How registers are read and written."""

    read: Callable[[tique.Connection, int], int | None]
    write: Callable[[tique.Connection, int, int], None]


class RwRegister(Keyed):
    """Reads and writes, several in a transaction."""

    name: ClassVar[str] = "rw-register"
    write = "w"
    forms: ClassVar[Sequence[Register]]
    """A register has one of these, by its key."""

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make a table for each form."""
        for table in ("replaced_value", "rewritten_value", "updated_value"):
            connection.execute(
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, value BIGINT)"
            )
        connection.commit()

    @override
    def store(self, connection: tique.Connection, key: int, value: int) -> None:
        """Write a register."""
        self.forms[key % len(self.forms)].write(connection, key, value)

    @override
    def load(self, connection: tique.Connection, key: int) -> tuple[int | None, bool]:
        """Read a register."""
        found = self.forms[key % len(self.forms)].read(connection, key)
        return found, self.written(key) >= _MOST

    @classmethod
    @override
    def seen(cls, reads: Iterable[Event]) -> Callable[[Any], bool | None]:
        """Whether one of the transaction's values is still there.

        If none is, others may have been written over them.
        """
        found = {(key, value) for event in reads for _, key, value in event.value}
        return lambda value: (
            any((key, each) in found for kind, key, each in value if kind == cls.write)
            or None
        )


def _read(
    table: str, name: str = "id"
) -> Callable[[tique.Connection, int], int | None]:
    sql = f"SELECT max(value) FROM {table} WHERE {name} = %s"
    return lambda connection, key: rows(connection, sql, key)[0][0]


def _replace(connection: tique.Connection, key: int, value: int) -> None:
    change(
        connection,
        "INSERT INTO replaced_value VALUES (%s, %s) ON CONFLICT (id) "
        "DO UPDATE SET value = excluded.value",
        key,
        value,
    )


def _rewrite(connection: tique.Connection, key: int, value: int) -> None:
    change(connection, "DELETE FROM rewritten_value WHERE id = %s", key)
    change(connection, "INSERT INTO rewritten_value VALUES (%s, %s)", key, value)


def _update(connection: tique.Connection, key: int, value: int) -> None:
    sql = "UPDATE updated_value SET value = %s WHERE id = %s"
    if not change(connection, sql, value, key):
        change(connection, "INSERT INTO updated_value VALUES (%s, %s)", key, value)


def _move(connection: tique.Connection, key: int, value: int) -> None:
    change(connection, "DELETE FROM named_value WHERE register = %s", key)
    number = key * _VALUES + value
    change(
        connection, "INSERT INTO named_value VALUES (%s, %s, %s)", number, key, value
    )


RwRegister.forms = (
    Register(_read("replaced_value"), _replace),
    Register(_read("rewritten_value"), _rewrite),
    Register(_read("updated_value"), _update),
)


class PredicateRegister(RwRegister):
    """The same, with registers that are found by a condition."""

    forms = (*RwRegister.forms, Register(_read("named_value", "register"), _move))

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make a table for each form."""
        super().create(connection)
        connection.execute(
            "CREATE TABLE named_value (id BIGINT PRIMARY KEY, register BIGINT, "
            "value BIGINT)"
        )
        connection.commit()
