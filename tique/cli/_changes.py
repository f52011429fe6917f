"""``tique changes``, ``tique diff`` and ``tique restore``."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tique import dict_row
from tique._connect import connect
from tique.cli._output import console, counted, json_option, print_json, printable
from tique.cli._target import managed, url_argument
from tique_rewriter.errors import NotAPoint
from tique_rewriter.plans.past import as_point

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from tique.connection.connection import Connection
    from tique.history.feed import Change, Difference


def _point(
    _context: click.Context, _parameter: click.Parameter, value: str | None
) -> int | datetime | None:
    """The version or the time that an option says."""
    if value is None:
        return None
    try:
        return as_point(int(value) if value.isdecimal() else value)
    except NotAPoint as error:
        raise click.BadParameter(str(error)) from error


_table_argument = click.argument("table")
_format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "csv"]),
    default="table",
    show_default=True,
    help="Lines for people, a JSON object a line, or CSV.",
)


def _point_option(name: str, *, required: bool, text: str) -> Callable[..., Any]:
    return click.option(
        f"--{name}",
        name.replace("-", "_") + "_point",
        callback=_point,
        required=required,
        metavar="VERSION|TIME",
        help=text,
    )


@click.command("changes")
@url_argument
@_table_argument
@_point_option("since", required=True, text="Give the changes after it.")
@_point_option("until", required=False, text="The last one; that of now by default.")
@click.option("--follow", is_flag=True, help="Wait for more, until Ctrl-C.")
@_format_option
def changes_command(
    url: str,
    table: str,
    since_point: int | datetime,
    until_point: int | datetime | None,
    follow: bool,
    form: str,
) -> None:
    """Show what commits have changed in a table that has a history.

    A TIME is in ISO 8601 with a time zone, and stands for the last commit at or before it.
    """
    with _connected(url, "Connection.changes()") as connection:
        schema, name = _place(table)
        feed = connection.changes(
            name, since=since_point, until=until_point, schema=schema, follow=follow
        )
        with suppress(KeyboardInterrupt), feed:
            _show(feed, form)


@click.command("diff")
@url_argument
@_table_argument
@_point_option("from", required=True, text="The one state.")
@_point_option("to", required=True, text="The other one.")
@_format_option
def diff_command(
    url: str,
    table: str,
    from_point: int | datetime,
    to_point: int | datetime,
    form: str,
) -> None:
    """Show the rows of a table that are not the same in two of its states."""
    with _connected(url, "Connection.differences()") as connection:
        schema, name = _place(table)
        with connection.differences(name, from_point, to_point, schema=schema) as feed:
            _show(feed, form)


@click.command("restore")
@url_argument
@_table_argument
@_point_option("as-of", required=True, text="The state to bring back.")
@click.option("--dry-run", is_flag=True, help="Undo it, and say what it would change.")
@json_option
def restore_command(
    url: str, table: str, as_of_point: int | datetime, dry_run: bool, as_json: bool
) -> None:
    """Bring a table's rows back to what they were, in one transaction."""
    with _connected(url, "Connection.restore()") as connection:
        schema, name = _place(table)
        with connection.transaction(force_rollback=dry_run):
            rows = connection.restore(name, as_of_point, schema=schema)
    if as_json:
        print_json({"restore": {"table": table, "rows": rows, "dry_run": dry_run}})
        return
    done = "Would change" if dry_run else "Changed"
    console().print(f"{done} {counted(rows, 'row')} of {printable(table)}")


@contextmanager
def _connected(url: str, instead: str) -> Iterator[Connection[dict[str, Any]]]:
    with (
        managed(url, instead=instead),
        connect(url, row_factory=dict_row) as connection,
    ):
        yield connection


def _place(table: str) -> tuple[str | None, str]:
    schema, _, name = table.rpartition(".")
    return schema or None, name


def _show(
    changes: Iterable[Change[dict[str, Any]] | Difference[dict[str, Any]]], form: str
) -> None:
    """Print changes, each as soon as it is there."""
    writer = None
    for change in changes:
        parts = change._asdict()
        old, new = parts.pop("old"), parts.pop("new")
        if form == "json":
            document = {**parts, "old": old, "new": new}
            click.echo(json.dumps(document, default=_encoded))
        elif form == "csv":
            names = list(old or new or ())
            if writer is None:
                writer = csv.writer(sys.stdout, lineterminator="\n")
                heads = [f"{side}_{name}" for side in ("old", "new") for name in names]
                writer.writerow([*parts, *heads])
            rows = [(row or {}).get(name) for row in (old, new) for name in names]
            writer.writerow(map(_plain, [*parts.values(), *rows]))
            sys.stdout.flush()
        else:
            heads = [f"{_plain(part)}" for part in parts.values()]
            console().print(printable("  ".join([*heads, _told(old, new)])))


def _told(old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> str:
    """A row for people: that which is there, and what was there before."""
    items = []
    for name, value in (new or old or {}).items():
        text = f"{name}={_plain(value)}"
        if old is not None and new is not None and old[name] != value:
            text = f"{name}={_plain(old[name])} → {_plain(value)}"
        items.append(text)
    return "  ".join(items)


def _plain(value: object) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    return _encoded(value) if isinstance(value, datetime | bytes) else str(value)


def _encoded(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else str(value)
