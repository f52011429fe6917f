"""Appends that are one statement each, as READ COMMITTED keeps them.

A transaction of READ COMMITTED that reads a list and then writes it loses what others append
between the two, as it may. A statement that finds its row changed is made of the new row. So no append is lost,
whether its update merges or not:

* text, to which ON CONFLICT appends: an update that merges;
* text, by an expression that does not merge;
* text, by its second UNIQUE column, with a new primary key for each append;
* a row per element, at the place behind the last: of two at one place the later is a duplicate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from jepsen.workloads.base import change
from jepsen.workloads.list_append import Form, ListAppend, read_rows, read_text

if TYPE_CHECKING:
    import tique

_ELEMENTS = 10_000_000_000
"""More than there are in a list."""


def _merge(connection: tique.Connection, key: int, element: int) -> None:
    change(
        connection,
        "INSERT INTO merged_text VALUES (%s, %s) ON CONFLICT (id) "
        "DO UPDATE SET elements = merged_text.elements || excluded.elements",
        key,
        f" {element}",
    )


def _change(connection: tique.Connection, key: int, element: int) -> None:
    change(
        connection,
        "INSERT INTO changed_text VALUES (%s, %s) ON CONFLICT (id) "
        "DO UPDATE SET elements = trim(changed_text.elements) || excluded.elements",
        key,
        f" {element}",
    )


def _name(connection: tique.Connection, key: int, element: int) -> None:
    change(
        connection,
        "INSERT INTO named_text VALUES (%s, %s, %s) ON CONFLICT (name) "
        "DO UPDATE SET elements = named_text.elements || excluded.elements",
        key * _ELEMENTS + element,
        key,
        f" {element}",
    )


def _place(connection: tique.Connection, key: int, element: int) -> None:
    change(
        connection,
        "INSERT INTO placed_row SELECT CAST(%s AS BIGINT), coalesce(max(place), 0) + 1, "
        "CAST(%s AS BIGINT) FROM placed_row WHERE list = %s",
        key,
        element,
        key,
    )


class StatementAppend(ListAppend):
    """Appends and reads of one statement each, several in a transaction."""

    forms = (
        Form(read_text("merged_text"), _merge),
        Form(read_rows("placed_row"), _place),
        Form(read_text("changed_text"), _change),
        Form(read_text("named_text", "name"), _name),
    )

    @classmethod
    @override
    def create(cls, connection: tique.Connection) -> None:
        """Make a table for each form."""
        for table in ("merged_text", "changed_text"):
            connection.execute(
                f"CREATE TABLE {table} (id BIGINT PRIMARY KEY, elements VARCHAR(100000))"
            )
        connection.execute(
            "CREATE TABLE named_text (id BIGINT PRIMARY KEY, name BIGINT UNIQUE, "
            "elements VARCHAR(100000))"
        )
        connection.execute(
            "CREATE TABLE placed_row (list BIGINT, place INTEGER, element BIGINT, "
            "PRIMARY KEY (list, place))"
        )
        connection.commit()
