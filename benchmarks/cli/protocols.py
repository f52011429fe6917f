"""Isolation levels, and the protocols for SERIALIZABLE."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks import report, targets
from benchmarks.cli.options import (
    CommaList,
    check_levels,
    check_protocols,
    directory_option,
    end,
    json_option,
    levels_option,
    plotting,
    scale_options,
    seed_option,
    show,
)
from benchmarks.compare import Plan
from benchmarks.protocols import measure
from benchmarks.protocols.report import plot_protocols, print_protocols
from benchmarks.targets.base import PROTOCOLS
from benchmarks.tpcc.rules import Scale

_THETA = click.FloatRange(0, 1, max_open=True)


@click.command("protocols")
@click.option(
    "--workloads",
    "names",
    type=CommaList(click.Choice(measure.NAMES)),
    default=",".join(measure.NAMES),
    show_default=True,
)
@click.option(
    "--targets",
    "target_names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,postgresql+tique,postgresql",
    show_default=True,
)
@levels_option("READ COMMITTED,SNAPSHOT,SERIALIZABLE")
@click.option(
    "--protocols",
    type=CommaList(click.Choice(PROTOCOLS)),
    default=",".join(PROTOCOLS),
    show_default=True,
    help="Protocols for SERIALIZABLE, of targets with tique.",
)
@click.option(
    "--threads",
    type=CommaList(click.IntRange(min=1)),
    default="1,2,4,8,16",
    show_default=True,
    help="Numbers of threads, with skew --theta.",
)
@click.option("--theta", type=_THETA, default=0.8, show_default=True)
@click.option(
    "--thetas",
    type=CommaList(_THETA),
    default="0.2,0.4,0.6,0.8,0.9",
    show_default=True,
    help="Skews of YCSB's keys, with --clients threads.",
)
@click.option("--clients", type=click.IntRange(min=1), default=8, show_default=True)
@click.option(
    "--records",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    help="Rows of YCSB's table, of 1 KB each.",
)
@click.option(
    "--ordered",
    is_flag=True,
    help="Let YCSB's transactions go through their keys in order: no deadlocks.",
)
@click.option(
    "--rows",
    type=click.IntRange(min=2),
    default=1000,
    show_default=True,
    help="Rows of the workload write-skew, two for each pair.",
)
@click.option("--warehouses", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--seconds", type=float, default=10.0, show_default=True)
@click.option("--warmup", type=float, default=3.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw throughput by threads and abort rates by skew to this file"
    " (needs matplotlib).",
)
@seed_option
@directory_option
@json_option
@scale_options
def protocols_command(
    names: tuple[str, ...],
    target_names: tuple[str, ...],
    levels: tuple[str, ...],
    protocols: tuple[str, ...],
    threads: tuple[int, ...],
    theta: float,
    thetas: tuple[float, ...],
    clients: int,
    records: int,
    ordered: bool,
    rows: int,
    warehouses: int,
    seconds: float,
    warmup: float,
    rounds: int,
    plot: Path | None,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Run YCSB's transactions, TPC-C and write skew by isolation level and protocol."""
    check_levels(target_names, levels)
    check_protocols(target_names, protocols)
    pyplot = plotting() if plot else None
    scale = Scale(warehouses, districts, customers, items)
    with report.progress() as tell:
        result = measure.measure_protocols(
            names,
            measure.Sizes(records, rows, scale, seed, ordered=ordered),
            measure.Variations(threads, theta, thetas, clients),
            Plan(
                *(target_names, threads, seconds, warmup, rounds),
                levels=levels,
                protocols=protocols,
            ),
            directory,
            tell,
        )
    show(result, print_protocols, as_json)
    if plot and pyplot:
        plot_protocols(result, pyplot, plot)
    end(result.failures)


COMMANDS: tuple[click.Command, ...] = (protocols_command,)
