"""``tique history``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tique._history import drop_history, histories, set_history
from tique.cli._output import (
    console,
    json_option,
    listing,
    print_json,
    printable,
    progress,
    report_tables,
)
from tique.cli._target import managed, tables_argument, url_argument

if TYPE_CHECKING:
    from collections.abc import Sequence


@click.group("history")
def history_group() -> None:
    """Keep the past of tables."""


@history_group.command("set")
@url_argument
@click.argument("retention")
@tables_argument
@json_option
def set_command(url: str, retention: str, tables: Sequence[str], as_json: bool) -> None:
    """Keep the past of tables as RETENTION says.

    "2 hours; hourly for 2 days; daily for 30 days" keeps every state of the last two
    hours, then those at full hours and days (UTC). Without a TABLE (name or
    schema.name) it holds for all tables.
    """
    with managed(url, instead="tique.set_history()"), progress("Setting"):
        names = set_history(url, retention, tables or None)
    report_tables("changed", names, "the history of ", as_json=as_json)


@history_group.command("show")
@url_argument
@json_option
def show_command(url: str, as_json: bool) -> None:
    """Show what is kept of the past of each table."""
    with managed(url, instead="tique.histories()"):
        found = histories(url)
    if as_json:
        print_json({"histories": [each._asdict() for each in found]})
        return
    table = listing(
        *("Table", "Retention", "Oldest version", "Oldest commit (UTC)"),
        *(">Images", ">Bytes"),
    )
    for each in found:
        time = "" if each.time is None else each.time.isoformat(" ", "seconds")[:19]
        table.add_row(
            printable(each.table),
            each.retention,
            f"{each.version:,}",
            time,
            f"{each.images:,}",
            f"{each.bytes:,}",
        )
    console().print(table if found else "No table has a history")


@history_group.command("drop")
@url_argument
@tables_argument
@json_option
def drop_command(url: str, tables: Sequence[str], as_json: bool) -> None:
    """Forget the past of tables, and keep none from now on.

    Without a TABLE it holds for all tables.
    """
    with managed(url, instead="tique.drop_history()"), progress("Dropping"):
        names = drop_history(url, tables or None)
    report_tables("dropped", names, "the history of ", as_json=as_json)
