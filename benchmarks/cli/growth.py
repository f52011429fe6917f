"""Citus with more and more workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchmarks import report, targets
from benchmarks.ch.queries import QUERIES
from benchmarks.ch.workload import ChWorkload
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


@click.command("growth")
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice([n for n in targets.NAMES if n.startswith("citus")])),
    default="citus+tique,citus",
    show_default=True,
)
@click.option(
    "--workers",
    type=CommaList(click.IntRange(min=1)),
    default="1,2,4",
    show_default=True,
)
@click.option("--warehouses", type=click.IntRange(min=1), default=4, show_default=True)
@click.option(
    "--transactions", type=click.IntRange(min=1), default=400, show_default=True
)
@click.option(
    "--queries", type=CommaList(click.Choice(list(QUERIES))), default=",".join(QUERIES)
)
@click.option(
    "--patience",
    type=click.FloatRange(min=0.1),
    default=60.0,
    show_default=True,
    help="Seconds after which a query is given up.",
)
@seed_option
@directory_option
@json_option
@scale_options
def growth_command(
    names: tuple[str, ...],
    workers: tuple[int, ...],
    warehouses: int,
    transactions: int,
    queries: tuple[str, ...],
    patience: float,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Count what Citus' workers are sent for TPC-C's transactions and CH's queries."""
    from benchmarks.growth import measure_growth

    with report.progress() as tell:
        result = measure_growth(
            ChWorkload(Scale(warehouses, districts, customers, items), seed),
            directory,
            names=names,
            workers=workers,
            transactions=transactions,
            queries=queries,
            patience=patience,
            progress=tell,
        )
    show(result, report.print_growth, as_json)
    end(result.failures)


COMMANDS: tuple[click.Command, ...] = (growth_command,)
