"""``tique checkpoint`` and ``tique status``."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from tique.cli._output import (
    console,
    counted,
    grid,
    json_option,
    listing,
    print_json,
    printable,
    progress,
    ticks,
    transactions_table,
)
from tique.cli._target import opened, url_argument
from tique.database.status import CheckpointStatus, Status, status
from tique_backends.errors import EngineError

if TYPE_CHECKING:
    from rich.console import Console

    from tique.database.database import Database


@click.command("checkpoint")
@url_argument
@json_option
def checkpoint_command(url: str, as_json: bool) -> None:
    """Fold all recent versions into the tables."""
    with (
        opened(url, instead="Connection.checkpoint()") as database,
        progress("Checkpoint"),
    ):
        database.checkpointer.checkpoint_now()
        done = status(database)
    if as_json:
        print_json({"checkpoint": asdict(done.checkpoint)})
    else:
        folded = counted(done.checkpoint.folded_rows, "version")
        console().print(f"Folded {folded} into {counted(len(done.tables), 'table')}")


@click.command("status")
@url_argument
@json_option
@click.option(
    "--prometheus", is_flag=True, help="Print the text that Prometheus reads."
)
@click.option(
    "--watch",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Show it again so often, until Ctrl-C.",
)
@click.option(
    "--count",
    type=click.IntRange(min=1),
    help="With --watch: end after so many times.",
)
def status_command(
    url: str, as_json: bool, prometheus: bool, watch: float | None, count: int | None
) -> None:
    """Show timestamps, transactions, cached rows and caches of storage."""
    if as_json and prometheus:
        raise click.UsageError("--json and --prometheus exclude each other")
    if watch is not None:
        if as_json or prometheus:
            raise click.UsageError("--watch shows neither --json nor --prometheus")
        _watch(url, watch, count)
        return
    if count is not None:
        raise click.UsageError("--count is about --watch")
    with opened(url, instead="Connection.status()") as database:
        found = _examined(database)
    if prometheus:
        click.echo(found.prometheus(), nl=False)
    elif as_json:
        document = asdict(found)
        document["lambda"] = document.pop("stable")
        print_json(document)
    else:
        _show(found, console())


def _watch(url: str, seconds: float, count: int | None) -> None:
    """Show the state of a database that stays open meanwhile, again and again."""
    output = console()
    with (
        suppress(KeyboardInterrupt),
        opened(url, instead="Connection.status()") as database,
    ):
        for _ in ticks(seconds, count):
            if output.is_terminal:
                output.clear()
            _show(status(database), output)


def _examined(database: Database) -> Status:
    """The status, with the obstacles to folding tables of a shared database.

    They are known to the process that met them. This one folds when it closes the
    database, and so it may as well try before.
    """
    found = status(database)
    if not database.timeline.is_shared or not any(t.cached_rows for t in found.tables):
        return found
    with suppress(EngineError):
        database.checkpointer.checkpoint(thorough=True)
    obstacles = {table.name: table.obstacle for table in status(database).tables}
    tables = [replace(t, obstacle=obstacles.get(t.name)) for t in found.tables]
    return replace(found, tables=tuple(tables))


def _show(found: Status, output: Console) -> None:
    facts = grid()
    facts.add_column()
    facts.add_column()
    facts.add_row("Database", printable(found.database))
    facts.add_row("Format", f"{found.format_version:,}")
    facts.add_row("Sequencer", found.sequencer)
    facts.add_row("Processes", f"{found.processes}")
    facts.add_row("Certifier", found.certifier)
    facts.add_row("sts", f"{found.sts:,}")
    facts.add_row("cts", f"{found.cts:,}")
    facts.add_row("λ", f"{found.stable:,}")
    if found.replica is not None:
        facts.add_row("Replica of", printable(found.replica.source))
        facts.add_row("Durable up to", f"{found.replica.durable:,}")
    facts.add_row("Last checkpoint", _last(found.checkpoint))
    if found.checkpoint.last_error is not None:
        facts.add_row("Last error", printable(found.checkpoint.last_error))
    output.print(facts)
    for name, why in found.replica.stopped.items() if found.replica else ():
        output.print(f"{printable(name)} is not replicated: {printable(why)}")
    _show_tables(found, output)
    _show_transactions(found, output)
    _show_unmanaged(found, output)
    _show_set_aside(found, output)
    _show_caches(found, output)


def _last(checkpoint: CheckpointStatus) -> str:
    if checkpoint.last is None:
        return "none since the database was opened"
    return (
        f"{checkpoint.last:%Y-%m-%d %H:%M:%S} UTC, "
        f"{counted(checkpoint.rounds, 'round')}, "
        f"{counted(checkpoint.folded_rows, 'version')} folded"
    )


def _show_tables(found: Status, output: Console) -> None:
    output.print(f"\n{counted(len(found.tables), 'table')} under tique's management")
    if not found.tables:
        return
    tables = listing("table", ">cached rows", ">tombstones")
    for table in found.tables:
        tables.add_row(
            printable(table.name), f"{table.cached_rows:,}", f"{table.tombstones:,}"
        )
    output.print(tables)
    for table in found.tables:
        if table.obstacle is not None:
            name, why = printable(table.name), printable(table.obstacle)
            output.print(f"{name} cannot be folded: {why}")


def _show_transactions(found: Status, output: Console) -> None:
    output.print(f"\n{counted(len(found.transactions), 'active transaction')}")
    if found.transactions:
        output.print(transactions_table(found.transactions))


def _show_unmanaged(found: Status, output: Console) -> None:
    if not found.unmanaged:
        return
    output.print(f"\n{counted(len(found.unmanaged), 'table')} not under management")
    tables = grid()
    tables.add_column(overflow="fold")
    tables.add_column(overflow="fold")
    for table in found.unmanaged:
        remark = "can be adopted" if table.obstacle is None else table.obstacle
        tables.add_row(printable(table.name), printable(remark))
    output.print(tables)


def _show_set_aside(found: Status, output: Console) -> None:
    if not found.set_aside:
        return
    output.print(
        f"\n{counted(len(found.set_aside), 'part')} of commits set aside, which cannot "
        "be applied"
    )
    parts = listing(">cts", "table", "reason")
    for part in found.set_aside:
        table = "all of it" if part.table is None else part.table
        parts.add_row(f"{part.cts:,}", printable(table), printable(part.reason))
    output.print(parts)


def _show_caches(found: Status, output: Console) -> None:
    output.print(f"\n{counted(len(found.caches), 'cache')} of storage in this process")
    caches = listing(
        *("cache", ">entries", ">bytes", ">capacity", ">hits", ">misses", ">evictions")
    )
    for cache in found.caches:
        numbers = (cache.entries, cache.bytes, cache.capacity)
        uses = (cache.hits, cache.misses, cache.evictions)
        caches.add_row(cache.name, *[f"{number:,}" for number in (*numbers, *uses)])
    output.print(caches)
