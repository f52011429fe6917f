"""The output of commands: for machines, for people, and while they work."""

from __future__ import annotations

import itertools
import json
import sys
import time
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tique.database.status import TransactionStatus

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object."
)

_PIPE_WIDTH = 1000
"""Columns of an output that is not a terminal: nothing is wrapped or cut there."""


def print_json(document: Mapping[str, object]) -> None:
    """Print one JSON object on one line; times are ISO 8601 in UTC."""
    click.echo(json.dumps(document, default=_encoded))


def _encoded(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    raise TypeError(f"no JSON for {type(value).__name__}")


def console() -> Console:
    """Return standard output for people; it takes no text for markup."""
    return Console(
        width=None if sys.stdout.isatty() else _PIPE_WIDTH,
        markup=False,
        emoji=False,
        highlight=False,
    )


@contextmanager
def progress(doing: str) -> Iterator[None]:
    """Show a command's progress, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(doing):
        yield


def printable(text: str) -> str:
    """Escape control characters: names come from the database."""
    return "".join(
        character
        if character.isprintable()
        else character.encode("unicode_escape").decode()
        for character in text
    )


def one_line(text: str) -> str:
    """Return the first paragraph of a message, on one line."""
    paragraph = text.strip().partition("\n\n")[0]
    return printable(" ".join(paragraph.split()))


def counted(number: int, noun: str) -> str:
    """Return a number and a noun: ``1 row``, ``1,200 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def report_tables(
    done: str, names: Sequence[str], what: str = "", *, as_json: bool
) -> None:
    """Print which tables something was done to."""
    if as_json:
        print_json({done: names})
        return
    output = console()
    output.print(f"{done.capitalize()} {what}{counted(len(names), 'table')}")
    for name in names:
        output.print(f"  {printable(name)}")


def grid() -> Table:
    """A table without lines and headings."""
    return Table(
        box=None,
        show_header=False,
        padding=(0, 2, 0, 0),
        pad_edge=False,
        header_style="bold",
    )


def listing(*headings: str) -> Table:
    """A table without lines; what is under a heading with ``>`` before it is at the right."""
    table = grid()
    table.show_header = True
    for heading in headings:
        is_right = heading.startswith(">")
        table.add_column(
            heading.removeprefix(">"),
            justify="right" if is_right else "left",
            overflow="ellipsis" if is_right else "fold",
        )
    return table


def transactions_table(entries: Iterable[TransactionStatus]) -> Table:
    """Open transactions, with who keeps the snapshot of each."""
    table = listing(">txid", ">sts", ">age", ">kept by", ">connection", "thread")
    for entry in entries:
        table.add_row(
            str(entry.txid),
            f"{entry.sts:,}",
            f"{entry.age:,.1f} s",
            "engine" if entry.is_held else printable(entry.obstacle or ""),
            "" if entry.connection is None else f"{entry.connection}",
            printable(entry.thread or ""),
        )
    return table


def ticks(seconds: float, count: int | None) -> Iterator[int]:
    """Numbers from 1 on, one each so many seconds; ``count`` of them, or without end."""
    for number in itertools.count(1):
        yield number
        if number == count:
            return
        time.sleep(seconds)
