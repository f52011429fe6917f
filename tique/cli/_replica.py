"""``tique replicate`` and ``tique promote``."""

from __future__ import annotations

import re
import signal
import sys
import time
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tique import errors
from tique.cli._output import console, json_option, print_json, printable, ticks
from tique.cli._target import URL, managed, opened
from tique.cli._top import replica_line
from tique.replica.promoting import promote
from tique.replica.replication import replicate
from tique_backends.catalog import slots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tique.timeline.replica import ReplicationStatus

_SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_SECONDS)})")
_INTERVAL = 10.0
"""Seconds from one line of figures to the next."""


def _seconds(_context: click.Context, _parameter: click.Parameter, text: str) -> float:
    found = _DURATION.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"give a number and one of {', '.join(_SECONDS)}")
    return float(found[1]) * _SECONDS[found[2]]


def _renamed(
    _context: click.Context, _parameter: click.Parameter, values: Sequence[str]
) -> dict[str, str]:
    pairs = [value.split("=") for value in values]
    if any(len(pair) != 2 or not all(pair) for pair in pairs):
        raise click.BadParameter("give OLD=NEW")
    return dict(pairs)


_time = partial(click.option, callback=_seconds, show_default=True, metavar="TIME")
_many = partial(click.option, multiple=True)


@click.command("replicate")
@click.argument("source", type=URL())
@click.argument("target", type=URL())
@_time("--epoch", default="15ms", help="From one question for commits to the next.")
@_time("--keep", default="1d", help="How long SOURCE keeps its log for it.")
@_many("--table", "tables", metavar="NAME", help="Copy these only.")
@_many("--schema", "schemas", metavar="OLD=NEW", callback=_renamed, help="Rename it.")
@click.option("--history", metavar="RETENTION", help="Keep the past of its tables.")
@click.option("--status", "asks", is_flag=True, help="Say how far TARGET is, only.")
@json_option
def replicate_command(
    source: str, target: str, asks: bool, as_json: bool, **options: Any
) -> None:
    """Keep a columnar copy of a database, some milliseconds behind; until Ctrl-C.

    The tables of SOURCE (postgresql://... or monetdb://...) are copied to TARGET
    (duckdb:///file) while others write, then its commits follow. Ctrl-C or SIGTERM
    stops it, and the next start goes on from there. A TIME is in ms, s, min, h or d.
    """
    if asks:
        _report(source, target, as_json=as_json)
        return
    options["tables"] = options["tables"] or None
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with suppress(KeyboardInterrupt):
            with _bars() as bar:
                replication = replicate(source, target, progress=bar, **options)
            with replication:
                _follow(replication.status, as_json=as_json)
    finally:
        signal.signal(signal.SIGTERM, before)


def _follow(ask: Callable[[], ReplicationStatus], *, as_json: bool) -> None:
    """Show figures now and then, as long as it follows."""
    before, then = ask()._replace(notes=()), time.monotonic()
    for _ in ticks(_INTERVAL, None):
        now, moment = ask(), time.monotonic()
        if as_json:
            print_json(now._asdict())
        else:
            console().print(replica_line(now, before, moment - then))
        if now.state == "failed":
            raise errors.OperationalError(f"it has stopped following: {now.error}")
        before, then = now, moment


@contextmanager
def _bars() -> Iterator[Callable[[str, int, int], None] | None]:
    """Show how far the copy of each table is, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    columns = TextColumn("{task.description}", markup=False), BarColumn()
    error = Console(stderr=True)
    with Progress(*columns, MofNCompleteColumn(), console=error) as shown:
        bars: dict[str, Any] = {}

        def bar(table: str, rows: int, total: int) -> None:
            if table not in bars:
                bars[table] = shown.add_task(printable(table))
            shown.update(bars[table], completed=rows, total=max(rows, total))

        yield bar


def _report(source: str, target: str, *, as_json: bool) -> None:
    """Say what the source knows of its replicas, and the file if no process has it."""
    file, line = None, f"{printable(target)} is in use"
    with suppress(errors.DatabaseLocked), opened(target, instead="") as database:
        if database.replica is None:
            raise errors.OperationalError(f"{target} is no replica")
        file = database.replica.status()
        line = replica_line(file)
    with (
        opened(source, instead="") as database,
        closing(database.engine.session()) as s,
    ):
        newest, found = database.timeline.position().sts, slots.listed(s)
    if as_json:
        print_json({"newest": newest, "slots": found, "file": file and file._asdict()})
        return
    told = [f"{n} at {cts:,}, {newest - cts:,} behind" for n, cts in found.items()]
    console().print("\n".join([line, *map(printable, told)]))


@click.command("promote")
@click.argument("target", type=URL())
@click.option("--source", type=URL(), help="The source, if that needs a password.")
@json_option
def promote_command(target: str, source: str | None, as_json: bool) -> None:
    """Make a replica an ordinary database, at the last commit that it has durably."""
    with managed(target, instead="Replication.stop()"):
        done = promote(target, source=source)
    if as_json:
        print_json({"promote": done._asdict()})
        return
    later = "an unknown number of" if done.lost is None else f"{done.lost:,}"
    text = f"Promoted at cts {done.cts:,}; the source has {later} commits after it"
    console().print(text)
