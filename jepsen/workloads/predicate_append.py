"""Appends whose lists are found by a condition, as SERIALIZABLE keeps them in order.

The elements are rows whose key does not tell their list. Two clients that append to it
write different rows, behind what they saw as the last: snapshot isolation lets both have the same
place. The second one to commit has seen a list that is not so any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from jepsen.workloads.base import change, rows
from jepsen.workloads.list_append import Form, ListAppend

if TYPE_CHECKING:
    import tique

_ELEMENTS = 10_000_000_000
"""More than there are in a list."""


def _read(connection: tique.Connection, key: int) -> list[int]:
    sql = "SELECT element FROM listed_row WHERE list = %s ORDER BY place, element"
    return [element for (element,) in rows(connection, sql, key)]


def _append(connection: tique.Connection, key: int, element: int) -> None:
    sql = "SELECT coalesce(max(place), 0) FROM listed_row WHERE list = %s"
    ((last,),) = rows(connection, sql, key)
    change(
        connection,
        "INSERT INTO listed_row VALUES (%s, %s, %s, %s)",
        key * _ELEMENTS + element,
        key,
        last + 1,
        element,
    )


class PredicateAppend(ListAppend):
    """Those of list-append, and lists that are found by a condition."""

    forms = (*ListAppend.forms, Form(_read, _append))

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make a table for each form."""
        super().create(connection)
        connection.execute(
            "CREATE TABLE listed_row (id BIGINT PRIMARY KEY, list BIGINT, place INTEGER, "
            "element BIGINT)"
        )
        connection.commit()
