"""A columnar replica of PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchmarks import report
from benchmarks.cli.options import (
    CommaList,
    directory_option,
    end,
    json_option,
    scale_options,
    seed_option,
    show,
)
from benchmarks.tpcc.rules import Scale

if TYPE_CHECKING:
    from pathlib import Path

_PARTS = ("queries", "beside", "rate", "writers")


@click.command("replica")
@click.option(
    "--parts",
    type=CommaList(click.Choice(_PARTS)),
    default=",".join(_PARTS),
    show_default=True,
    help="CH's queries, while nothing writes and beside writers; commits that are applied"
    " per second; the writers' loss and the replica's lag, and a hot standby's.",
)
@click.option("--warehouses", type=click.IntRange(min=1), default=4, show_default=True)
@click.option(
    "--epochs",
    type=CommaList(click.FloatRange(min=0.001)),
    default="0.005,0.015,0.05,0.2",
    show_default=True,
    help="Seconds.",
)
@click.option(
    "--split/--shared",
    "is_split",
    default=True,
    help="Whether the part 'writers' has one core for the server and its writers, and"
    " one for what copies and asks, or all for all.",
)
@click.option("--repetitions", type=click.IntRange(min=1), default=7, show_default=True)
@click.option("--seconds", type=float, default=15.0, show_default=True)
@click.option("--warmup", type=float, default=5.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@seed_option
@directory_option
@json_option
@scale_options
def replica_command(
    parts: tuple[str, ...],
    warehouses: int,
    epochs: tuple[float, ...],
    is_split: bool,
    repetitions: int,
    seconds: float,
    warmup: float,
    rounds: int,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Measure a columnar replica beside its server, DuckDB and a hot standby."""
    from benchmarks.replica.measure import Measurement, Plan

    scale = Scale(warehouses, districts, customers, items)
    plan = Plan(parts, epochs, seconds, warmup, rounds, repetitions, is_split)
    with report.progress() as tell:
        result = Measurement(scale, seed, plan, directory, tell).run()
    show(result, report.print_replica, as_json)
    end(result.failures)


COMMANDS: tuple[click.Command, ...] = (replica_command,)
