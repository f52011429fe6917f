"""Transactions that append to lists and read them.

A list is kept in one of four forms, by its key, so that one transaction writes several
tables:

* text, to which an UPDATE appends;
* text whose row is deleted and inserted again with each append;
* a row per element, at the next place;
* rows that are all deleted and inserted again with each append: tombstones over
  versions over tombstones.
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

_LONGEST = 32


class ListAppend(Keyed):
    """Appends and reads, several in a transaction."""

    name: ClassVar[str] = "list-append"
    write = "append"
    forms: ClassVar[Sequence[Form]]
    """A list has one of these, by its key."""

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make a table for each form."""
        for table in ("appended_text", "rewritten_text"):
            connection.execute(
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, elements VARCHAR(100000))"
            )
        for table in ("appended_row", "rewritten_row"):
            connection.execute(
                f"CREATE TABLE {table} (list BIGINT, place INTEGER, element BIGINT, "
                "PRIMARY KEY (list, place))"
            )
        connection.commit()

    @override
    def store(self, connection: tique.Connection, key: int, value: int) -> None:
        """Append an element."""
        self.forms[key % len(self.forms)].append(connection, key, value)

    @override
    def load(self, connection: tique.Connection, key: int) -> tuple[list[int], bool]:
        """Read a list, and whether it is long."""
        found = self.forms[key % len(self.forms)].read(connection, key)
        return found, len(found) >= _LONGEST

    @classmethod
    @override
    def seen(cls, reads: Iterable[Event]) -> Callable[[Any], bool | None]:
        """Whether the transaction's elements are in its lists, any of them."""
        lists = {key: found for event in reads for _, key, found in event.value}

        def is_there(value: Any) -> bool | None:
            written = [
                element in lists[key]
                for kind, key, element in value
                if kind == "append" and key in lists
            ]
            return any(written) if written else None

        return is_there


class Form(NamedTuple):
    """How lists are read and appended to."""

    read: Callable[[tique.Connection, int], list[int]]
    append: Callable[[tique.Connection, int, int], None]


def _split(found: list[tuple[Any, ...]]) -> list[int]:
    return [int(element) for element in found[0][0].split()] if found else []


def read_text(
    table: str, name: str = "id"
) -> Callable[[tique.Connection, int], list[int]]:
    """Read a list that is text, by a column."""
    return lambda connection, key: _split(
        rows(connection, f"SELECT elements FROM {table} WHERE {name} = %s", key)
    )


def _append_text(connection: tique.Connection, key: int, element: int) -> None:
    if not change(
        connection,
        "UPDATE appended_text SET elements = elements || %s WHERE id = %s",
        f" {element}",
        key,
    ):
        change(
            connection, "INSERT INTO appended_text VALUES (%s, %s)", key, str(element)
        )


def _rewrite_text(connection: tique.Connection, key: int, element: int) -> None:
    found = read_text("rewritten_text")(connection, key)
    change(connection, "DELETE FROM rewritten_text WHERE id = %s", key)
    change(
        connection,
        "INSERT INTO rewritten_text VALUES (%s, %s)",
        key,
        " ".join(map(str, [*found, element])),
    )


def read_rows(table: str) -> Callable[[tique.Connection, int], list[int]]:
    """Read a list that is rows."""
    return lambda connection, key: [
        element
        for (element,) in rows(
            connection,
            f"SELECT element FROM {table} WHERE list = %s ORDER BY place",
            key,
        )
    ]


def _append_row(connection: tique.Connection, key: int, element: int) -> None:
    ((last,),) = rows(
        connection,
        "SELECT coalesce(max(place), 0) FROM appended_row WHERE list = %s",
        key,
    )
    change(
        connection,
        "INSERT INTO appended_row VALUES (%s, %s, %s)",
        key,
        last + 1,
        element,
    )


def _rewrite_rows(connection: tique.Connection, key: int, element: int) -> None:
    found = read_rows("rewritten_row")(connection, key)
    change(connection, "DELETE FROM rewritten_row WHERE list = %s", key)
    connection.cursor().executemany(
        "INSERT INTO rewritten_row VALUES (%s, %s, %s)",
        [(key, place, each) for place, each in enumerate([*found, element], 1)],
    )


ListAppend.forms = (
    Form(read_text("appended_text"), _append_text),
    Form(read_rows("appended_row"), _append_row),
    Form(read_text("rewritten_text"), _rewrite_text),
    Form(read_rows("rewritten_row"), _rewrite_rows),
)
