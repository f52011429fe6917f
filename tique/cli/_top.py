"""``tique top``: a database at work, live."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from tique.cli._output import (
    console,
    counted,
    grid,
    listing,
    printable,
    ticks,
    transactions_table,
)
from tique.cli._target import opened, url_argument
from tique.database.status import status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import RenderableType
    from rich.table import Table

    from tique.database.status import Status
    from tique.timeline.replica import ReplicationStatus

_MOST = 10
"""Rows of a table that are shown."""


@click.command("top")
@url_argument
@click.option(
    "--interval",
    type=click.FloatRange(min=0, min_open=True),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="From one frame to the next.",
)
@click.option("--count", type=click.IntRange(min=1), help="End after so many frames.")
def top_command(url: str, interval: float, count: int | None) -> None:
    """Show a database at work, live: rates and backlogs; until Ctrl-C.

    Timestamps are those of all processes, transactions and checkpoints this one's.
    """
    output = console()
    with suppress(KeyboardInterrupt), opened(url, instead="Connection.status()") as at:
        if output.is_terminal:
            with Live(console=output, screen=True, auto_refresh=False) as live:
                for frame in _frames(lambda: status(at), interval, count):
                    live.update(frame, refresh=True)
        else:
            for frame in _frames(lambda: status(at), interval, count):
                output.print(frame)


def _frames(
    ask: Callable[[], Status], interval: float, count: int | None
) -> Iterator[RenderableType]:
    before: tuple[Status, float] | None = None
    for _ in ticks(interval, count):
        now = ask(), time.monotonic()
        if before is None:
            yield frame(now[0])
        else:
            yield frame(now[0], before[0], now[1] - before[1])
        before = now


def frame(now: Status, before: Status | None = None, seconds: float = 0) -> Group:
    """The facts that are shown of a state, and of the time since the one before.

    Parameters
    ----------
    now
        The state.
    before
        The state in the frame before, if there was one.
    seconds
        The time between them.
    """

    def rate(what: Callable[[Status], int]) -> str:
        if before is None or seconds <= 0:
            return "-"
        return f"{(what(now) - what(before)) / seconds:,.1f}/s"

    facts = grid()
    facts.add_column()
    facts.add_column(justify="right")
    facts.add_column(justify="right")
    facts.add_row("cts", f"{now.cts:,}", rate(lambda state: state.cts))
    facts.add_row("sts", f"{now.sts:,}", rate(lambda state: state.sts))
    facts.add_row("λ", f"{now.stable:,}", f"{now.cts - now.stable:,} behind")
    facts.add_row("storage", "", f"{now.checkpoint.lag:,} behind")
    folded = now.checkpoint.folded_rows
    facts.add_row(
        "folded", f"{folded:,}", rate(lambda state: state.checkpoint.folded_rows)
    )
    parts: list[RenderableType] = [
        Text(f"{printable(now.database)}: {_processes(now.processes)}", style="bold"),
        facts,
    ]
    if now.replica is not None:
        earlier = None if before is None else before.replica
        parts.append(Text(replica_line(now.replica, earlier, seconds)))
    if now.checkpoint.last_error is not None:
        error = printable(now.checkpoint.last_error)
        parts.append(Text(f"Last error: {error}", style="red"))
    return Group(*parts, Text(), _tables(now), Text(), _transactions(now))


def replica_line(
    now: ReplicationStatus,
    before: ReplicationStatus | None = None,
    seconds: float = 0,
) -> str:
    """How a replica follows, and what it did in the time since an earlier state."""
    parts = [f"replica {now.state}, at cts {now.applied:,}"]
    if now.lag is not None:
        parts[0] += f", {now.lag * 1000:,.0f} ms and {now.behind:,} commits behind"
    parts.append(f"durable up to {now.durable:,}")
    if before is not None and seconds > 0:
        epochs, rows = now.epochs - before.epochs, now.rows - before.rows
        commits = (now.commits - before.commits) / seconds
        parts.append(f"{commits:,.1f} commits/s in {epochs / seconds:,.1f} epochs/s")
        parts.append(f"{rows / max(epochs, 1):,.1f} rows per epoch")
        steps = [
            f"{step} {(spent - before.seconds[step]) / seconds:.1%}"
            for step, spent in now.seconds.items()
        ]
        parts.append(f"of the time: {', '.join(steps)}")
        parts += now.notes[len(before.notes) :]
    parts += [now.error] if now.error else []
    parts += [f"{name} is not replicated: {why}" for name, why in now.stopped.items()]
    return printable("; ".join(parts))


def _processes(number: int) -> str:
    return "1 process" if number == 1 else f"{number:,} processes"


def _tables(now: Status) -> Group:
    tables = listing("table", ">cached rows", ">tombstones", ">")
    largest = sorted(now.tables, key=lambda table: table.cached_rows, reverse=True)
    for table in largest[:_MOST]:
        tables.add_row(
            printable(table.name),
            f"{table.cached_rows:,}",
            f"{table.tombstones:,}",
            "" if table.obstacle is None else "not folded, see tique status",
        )
    return _limited(tables, len(now.tables), "table")


def _transactions(now: Status) -> Group:
    transactions = transactions_table(now.transactions[:_MOST])
    return _limited(transactions, len(now.transactions), "active transaction")


def _limited(rows: Table, number: int, noun: str) -> Group:
    hidden = number - rows.row_count
    remark = f", {hidden:,} of them not shown" if hidden else ""
    heading = Text(f"{counted(number, noun)}{remark}")
    return Group(heading, *([rows] if rows.row_count else []))
