"""One thing at a time: single-row updates, one hot row, scans, folds, the feed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from benchmarks import report, targets
from benchmarks.cli.options import (
    CommaList,
    directory_option,
    end,
    json_option,
    scale_options,
    seed_option,
    show,
    show_comparison,
    targets_option,
)
from benchmarks.compare import Plan
from benchmarks.micro.group_commit import GroupCommitWorkload
from benchmarks.micro.hot_row import MODES, HotRowWorkload
from benchmarks.tpcc.rules import Scale

if TYPE_CHECKING:
    from pathlib import Path


@click.command("group-commit")
@click.option("--threads", type=click.IntRange(1, 100), default=16, show_default=True)
@click.option("--seconds", type=float, default=10.0, show_default=True)
@click.option("--warmup", type=float, default=1.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@targets_option
@click.option(
    "--explicit", is_flag=True, help="BEGIN, UPDATE, COMMIT instead of autocommit."
)
@directory_option
@json_option
def group_commit_command(
    threads: int,
    seconds: float,
    warmup: float,
    rounds: int,
    names: tuple[str, ...],
    explicit: bool,
    directory: Path,
    as_json: bool,
) -> None:
    """Count commits per second of single-row updates on distinct keys."""
    plan = Plan(names, (threads,), seconds, warmup, rounds)
    workload = GroupCommitWorkload(autocommit=not explicit)
    end(show_comparison(workload, plan, directory, as_json).failures)


@click.command("hot-row")
@click.option("--mode", type=click.Choice(MODES), default=MODES[0], show_default=True)
@click.option("--threads", type=click.IntRange(1, 100), default=8, show_default=True)
@click.option("--processes", type=click.IntRange(min=0), default=0)
@click.option("--seconds", type=float, default=6.0, show_default=True)
@click.option("--warmup", type=float, default=1.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@targets_option
@directory_option
@json_option
def hot_row_command(
    mode: str,
    threads: int,
    processes: int,
    seconds: float,
    warmup: float,
    rounds: int,
    names: tuple[str, ...],
    directory: Path,
    as_json: bool,
) -> None:
    """Count commits per second of clients that all increment one row."""
    plan = Plan(names, (threads,), seconds, warmup, rounds, processes)
    workload = HotRowWorkload(mode, threads)
    end(show_comparison(workload, plan, directory, as_json).failures)


@click.command("driver-cost")
@click.option(
    "--statements", type=click.IntRange(1, 50_000), default=5000, show_default=True
)
@directory_option
@json_option
def driver_cost_command(statements: int, directory: Path, as_json: bool) -> None:
    """Measure the driver's own cost of a point SELECT, without the engine's time."""
    from benchmarks.micro.driver_cost import measure_driver_cost

    with report.progress() as tell:
        result = measure_driver_cost(directory, statements, tell)
    show(result, report.print_driver_cost, as_json)


@click.command("feed")
@click.option(
    "--commits", type=click.IntRange(min=100), default=100_000, show_default=True
)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=10.0)
@directory_option
@json_option
def feed_command(commits: int, seconds: float, directory: Path, as_json: bool) -> None:
    """Replay the changes of a table, and follow them beside four writers."""
    from benchmarks.micro.feed import measure_feed

    with report.progress() as tell:
        result = measure_feed(directory, commits, seconds, tell)
    show(result, report.print_feed, as_json)
    end(result.failures)


@click.command("scans")
@click.option(
    "--engine",
    type=click.Choice([n for n in targets.NAMES if targets.baseline_of(n) is None]),
    default="duckdb",
    show_default=True,
)
@click.option("--rows", type=click.IntRange(min=1), default=1_000_000)
@click.option("--cached", type=click.IntRange(min=1), default=10_000)
@click.option("--repetitions", type=click.IntRange(min=1), default=21)
@directory_option
@json_option
def scans_command(
    engine: str,
    rows: int,
    cached: int,
    repetitions: int,
    directory: Path,
    as_json: bool,
) -> None:
    """Time analytical queries with an empty cache and a filled one."""
    from benchmarks.micro.scans import measure_scans

    with report.progress() as tell:
        result = measure_scans(
            directory,
            engine=engine,
            rows=rows,
            cached=cached,
            repetitions=repetitions,
            progress=tell,
        )
    show(result, report.print_scans, as_json)
    end(result.failures)


@click.command("folds")
@click.option("--warehouses", type=click.IntRange(min=1), default=4, show_default=True)
@click.option(
    "--keys",
    type=CommaList(click.IntRange(min=1)),
    default="1000,10000",
    show_default=True,
)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--history", help="The retention of the table's history.")
@seed_option
@directory_option
@json_option
@scale_options
def folds_command(
    warehouses: int,
    keys: tuple[int, ...],
    rounds: int,
    history: str | None,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Time folds of changed rows of TPC-C's stock on DuckDB."""
    from benchmarks.micro.folds import measure_folds
    from benchmarks.tpcc.workload import TpccWorkload

    scale = Scale(warehouses, districts, customers, items)
    with report.progress() as tell:
        result = measure_folds(
            TpccWorkload(scale, seed),
            directory,
            keys=keys,
            rounds=rounds,
            history=history,
            progress=tell,
        )
    show(result, report.print_folds, as_json)
    end(result.failures)


COMMANDS: tuple[click.Command, ...] = (
    group_commit_command,
    hot_row_command,
    driver_cost_command,
    feed_command,
    scans_command,
    folds_command,
)
