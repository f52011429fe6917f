"""The results as tables for people and as JSON for machines."""

from __future__ import annotations

import dataclasses
import json
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console
from rich.table import Table

from benchmarks.measures import Spread
from benchmarks.targets.base import SERIALIZABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import ModuleType

    from benchmarks.ablation import Variant
    from benchmarks.ch.analytics import Analytics, QueryTimes
    from benchmarks.ch.hybrid import Hybrid
    from benchmarks.ch.past import PastTimes
    from benchmarks.ch.recent import RecentTimes
    from benchmarks.compare import Comparison, Ratio, Summary
    from benchmarks.contention import Contention
    from benchmarks.endurance import Endurance
    from benchmarks.growth import Growth, Sent
    from benchmarks.micro.driver_cost import DriverCost
    from benchmarks.micro.feed import FeedTimes
    from benchmarks.micro.folds import Folds
    from benchmarks.micro.scans import Scans
    from benchmarks.replica.measure import Figures
    from benchmarks.targets.base import Setup


WIDTH = 150
"""Columns of a report that goes to a file or a pipe."""


_Times = TypeVar("_Times", bound="QueryTimes")


def stdout() -> Console:
    """Return the console that results are printed on."""
    console = Console()
    return console if console.is_terminal else Console(width=WIDTH)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Give a function that shows the current step, on stderr if it is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _message: None
        return
    with console.status("starting") as status:
        yield status.update


def as_json(result: object) -> str:
    """Return a result, a dataclass or plain values, as JSON."""
    return json.dumps(result, indent=2, default=_plain)


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    raise TypeError(f"no JSON for {type(value).__name__}")


def environment_line(environment: Mapping[str, object]) -> str:
    """Return one line about the machine."""
    return (
        f"DuckDB {environment['duckdb']}, Python {environment['python']},"
        f" {environment['cores']} cores, fsync {environment['fsync_ms']} ms,"
        f" {environment['platform']}"
    )


def print_comparison(result: Comparison, console: Console) -> None:
    """Print a comparison as tables."""
    plan = result.plan
    console.print(
        f"{result.workload}: {plan.rounds} rounds of {plan.seconds:g} s after"
        f" {plan.warmup:g} s of warm-up, median (lowest–highest)"  # noqa: RUF001
    )
    if plan.distance:
        console.print(f"a round trip to the server takes {plan.distance:g} ms longer")
    console.print(environment_line(result.environment))
    for target, settings in result.settings.items():
        if settings:
            named = ", ".join(f"{name} {value}" for name, value in settings.items())
            console.print(f"{target}: {named}", markup=False)
    console.print(throughput_table(result.summaries, result.ratios))
    if result.costs:
        console.print(costs_table(result.costs))
    console.print(kinds_table(result.summaries))
    print_failures(result.failures, console)


def print_endurance(result: Endurance, console: Console) -> None:
    """Print a long run as a table, a row per slice."""
    count = len(result.ages)
    beside = f" beside {count} open snapshots" if count else ""
    table = Table(title=f"{result.target}{beside}")
    kinds = sorted(result.slices[0].sizes)
    for heading in ("until s", "tx/s", "CPU ms/tx", *(f"{kind} MB" for kind in kinds)):
        table.add_column(heading, justify="right")
    for each in result.slices:
        table.add_row(
            f"{each.end:,.0f}",
            f"{each.throughput:,.1f}",
            f"{each.cpu * 1000:,.2f}",
            *(f"{each.sizes[kind] / 1e6:,.1f}" for kind in kinds),
        )
    console.print(table)
    console.print(f"the last third is {result.lasting:.2f} times the first")
    for age in result.ages:
        scans = ", ".join(
            f"{first * 1000:,.0f} to {last * 1000:,.0f} ms ({ratio:.2f})"
            for first, last, ratio in zip(age.first, age.last, age.ratios, strict=True)
        )
        console.print(f"scans of seconds {age.opened:.0f} and {age.ended:.0f}: {scans}")
    print_failures(result.failures, console)


def print_failures(failures: list[str], console: Console) -> None:
    """Print the failures, or that all checks held."""
    if not failures:
        console.print("[green]all checks hold[/]")
    for failure in failures:
        console.print(f"FAILED {failure}", style="red", markup=False)


def throughput_table(summaries: list[Summary], found: list[Ratio]) -> Table:
    """Return a row per setup and number of clients."""
    ratios = {(each.setup, each.clients): each for each in found}
    table = Table(title="committed transactions per second")
    _add_setup_columns(table, "clients")
    for heading in (
        "tx/s",
        "ratio",
        "abort rate",
        "p50 ms",
        "p95 ms",
        "p99 ms",
        "statements/tx",
    ):
        table.add_column(heading, justify="right")
    for each in summaries:
        ratio = ratios.get((each.setup, each.clients))
        table.add_row(
            str(each.clients),
            *_setup_cells(each.setup),
            each.throughput.shown(),
            ratio.ratio.shown(2) if ratio else "",
            f"{each.abort_rate.median:.1%}",
            *(f"{value:,.1f}" for value in each.latency_ms.values()),
            each.statements_per_transaction.shown(),
        )
    return table


def costs_table(costs: Sequence[Ratio]) -> Table:
    """Return what other levels cost, a row per setup and number of clients."""
    table = Table(title="against the same target at SNAPSHOT")
    _add_setup_columns(table, "clients")
    for heading in ("ratio", "attempts lost, more of 100"):
        table.add_column(heading, justify="right")
    for each in costs:
        table.add_row(
            str(each.clients),
            *_setup_cells(each.setup),
            each.ratio.shown(2),
            each.more_aborts.of_100().shown(),
        )
    return table


def _add_setup_columns(table: Table, number: str) -> None:
    """Add the columns that rows about setups begin with."""
    table.add_column(number, justify="right")
    table.add_column("target", no_wrap=True)
    table.add_column("level", min_width=len(SERIALIZABLE))


def _setup_cells(setup: Setup) -> tuple[str, str]:
    return setup.target, setup.isolation


def kinds_table(summaries: list[Summary]) -> Table:
    """Return a row per kind of transaction for each summary."""
    table = Table(title="by kind of transaction, all rounds")
    _add_setup_columns(table, "clients")
    table.add_column("kind")
    for heading in (
        "committed",
        "rolled back",
        "aborted attempts",
        "most attempts",
        "p50 ms",
        "p95 ms",
        "p99 ms",
    ):
        table.add_column(heading, justify="right")
    for each in summaries:
        for kind, found in each.kinds.items():
            table.add_row(
                str(each.clients),
                *_setup_cells(each.setup),
                kind,
                f"{found.committed:,}",
                f"{found.rolled_back:,}",
                f"{found.aborts:,}",
                f"{found.most_attempts:,}",
                *(f"{value:,.1f}" for value in found.latency_ms.values()),
            )
        table.add_section()
    return table


def print_driver_cost(result: DriverCost, console: Console) -> None:
    """Print the cost of a point SELECT, with and without tique."""
    console.print(environment_line(result.environment))
    table = Table(title=f"point SELECT, {result.statements:,} times, microseconds")
    table.add_column("")
    for heading in ("median", "p95", "p99"):
        table.add_column(heading, justify="right")
    for each in result.tique:
        rows = {
            "whole statement": each.whole_us,
            "of that in the engine": each.engine_us,
            "driver's own cost": each.driver_us,
        }
        for name, times in rows.items():
            label = f"tique, {each.situation}: {name}"
            table.add_row(label, *(f"{value:,.1f}" for value in times.values()))
        table.add_row(
            f"tique, {each.situation}: reached the engine", f"{each.engine_share:.0%}"
        )
        table.add_section()
    native = (f"{value:,.1f}" for value in result.native_us.values())
    table.add_row("DuckDB by itself", *native)
    console.print(table)


def print_feed(result: FeedTimes, console: Console) -> None:
    """Print how fast a table's changes are replayed, and followed."""
    console.print(environment_line(result.environment))
    table = Table(title=f"the changes of {result.commits:,} commits, per second")
    table.add_column("")
    table.add_column("commits/s", justify="right")
    table.add_row("written", f"{result.written_per_second:,.0f}")
    table.add_row("replayed", f"{result.replayed_per_second:,.0f}")
    table.add_row("written while followed", f"{result.beside_written_per_second:,.0f}")
    table.add_row("delivered meanwhile", f"{result.beside_delivered_per_second:,.0f}")
    console.print(table)
    lags = ", ".join(f"{name} {lag:,.0f} ms" for name, lag in result.lag_ms.items())
    console.print(f"from a commit to its delivery: {lags}")
    for failure in result.failures:
        console.print(failure)


def print_ablation(variants: Sequence[Variant], title: str, console: Console) -> None:
    """Print what is committed per second with and without each part of the store."""
    table = Table(title=title)
    table.add_column("store")
    queries = list(variants[0].queries)
    headings = ("clients", "transactions/s", "of everything")
    for heading in (*headings, *(f"{query} ms" for query in queries)):
        table.add_column(heading, justify="right")
    for each in variants:
        table.add_row(
            each.name,
            str(each.clients),
            each.throughput.shown(),
            f"{each.share:.2f}",
            *(each.queries[query].shown() for query in queries),
        )
    console.print(table)


def print_contention(result: Contention, title: str, console: Console) -> None:
    """Print throughput and abort rates by the number of warehouses."""
    table = Table(title=title)
    headings = ("transactions/s", "of the most warehouses", "abort rate")
    _add_setup_columns(table, "warehouses")
    for heading in headings:
        table.add_column(heading, justify="right")
    for each in result.rows:
        table.add_row(
            str(each.warehouses),
            *_setup_cells(each.setup),
            each.throughput.shown(),
            f"{each.share:.2f}",
            f"{each.abort_rate.median:.1%}",
        )
    console.print(table)
    print_failures(result.failures, console)


def print_growth(result: Growth, console: Console) -> None:
    """Print what workers are sent, a row for each thing that is done."""
    rows: dict[tuple[str, str], list[Sent]] = {}
    for each in result.found:
        rows.setdefault((each.target, each.what), []).append(each)
    workers = "/".join(dict.fromkeys(str(each.workers) for each in result.found))
    table = Table(
        title=f"{result.workload}, {result.transactions} transactions, {workers} workers"
    )
    for number, heading in enumerate(("target", "what", "statements", "rows", "ms")):
        table.add_column(heading, justify="right" if number > 1 else "left")
    table.add_column("plan")
    for names, found in rows.items():
        counts = zip(*(each.counts for each in found), strict=True)
        cells = [" / ".join(f"{count:,.1f}" for count in each) for each in counts]
        notes = dict.fromkeys(each.note for each in found)
        table.add_row(*names, *cells, "; ".join(notes))
    console.print(table)
    print_failures(result.failures, console)


def print_folds(result: Folds, console: Console) -> None:
    """Print the times of folds by how the keys were changed."""
    console.print(environment_line(result.environment))
    table = Table(
        title=f"a fold into {result.rows:,} rows of stock, median of {result.rounds}"
        " (lowest–highest)"  # noqa: RUF001
    )
    table.add_column("changed")
    for heading in ("keys", "ms", "CPU ms"):
        table.add_column(heading, justify="right")
    for each in result.times:
        times = (each.fold_ms.shown(), each.cpu_ms.shown())
        table.add_row(each.way, f"{each.keys:,}", *times)
    console.print(table)
    print_failures(result.failures, console)


def print_scans(result: Scans, console: Console) -> None:
    """Print analytical queries through tique against native ones."""
    console.print(environment_line(result.environment))
    table = Table(
        title=f"{result.engine}, {result.rows:,} stored rows,"
        f" median of {result.repetitions}"
        " (lowest–highest)"  # noqa: RUF001
    )
    table.add_column("query")
    for heading in ("cached rows", "tique ms", "native ms", "ratio"):
        table.add_column(heading, justify="right")
    for each in result.results:
        table.add_row(
            each.query,
            f"{each.cached_rows:,}",
            each.tique_ms.shown(),
            each.native_ms.shown(),
            f"{each.ratio:.2f}",
        )
    console.print(table)
    print_failures(result.failures, console)


def print_recent(result: Analytics[RecentTimes], console: Console) -> None:
    """Print CH-benCHmark's queries through tique against native ones."""
    _print_analytics(
        result,
        "recent versions",
        {
            "rows": lambda each: f"{each.rows:,}",
            "first ms": lambda each: f"{each.first_ms:.0f}",
            "tique ms": lambda each: each.tique_ms.shown(),
            "native ms": lambda each: each.native_ms.shown(),
        },
        console,
    )


def print_past(result: Analytics[PastTimes], console: Console) -> None:
    """Print CH-benCHmark's queries as of a past version against those of now."""
    _print_analytics(
        result,
        "versions folded since",
        {
            "past ms": lambda each: each.past_ms.shown(),
            "now ms": lambda each: each.now_ms.shown(),
        },
        console,
    )


def _print_analytics(
    result: Analytics[_Times],
    what: str,
    columns: Mapping[str, Callable[[_Times], str]],
    console: Console,
) -> None:
    console.print(environment_line(result.environment))
    for versions in result.versions:
        table = Table(
            title=f"{result.target}, {result.workload}, {versions:,} {what},"
            f" median of {result.repetitions} (lowest–highest)"  # noqa: RUF001
        )
        table.add_column("query")
        for heading in (*columns, "ratio"):
            table.add_column(heading, justify="right")
        for each in result.of(versions):
            cells = [shown(each) for shown in columns.values()]
            table.add_row(each.query, *cells, f"{each.ratio:.2f}")
        console.print(table)
        mean, worst, ratio = result.ratios(versions)
        console.print(
            f"geometric mean of the ratios {mean:.2f}, the worst {ratio:.2f} ({worst})"
        )
    print_failures(result.failures, console)


def plot_recent(result: Analytics[RecentTimes], pyplot: ModuleType, path: Path) -> None:
    """Draw the queries' ratios to native ones, a bar for each number of versions."""
    figure, axes = pyplot.subplots(figsize=(11, 4.5))
    width = 0.8 / len(result.versions)
    for number, versions in enumerate(result.versions):
        found = result.of(versions)
        axes.bar(
            [place + number * width for place in range(len(found))],
            [each.ratio for each in found],
            width,
            label=f"{versions:,} versions",
        )
    axes.set_xticks(
        [place + 0.4 - width / 2 for place in range(len(found))],
        [each.query for each in found],
    )
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.set_ylabel("time of the engine by itself")
    axes.set_title(f"{result.target}, {result.workload}")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def print_replica(result: Figures, console: Console) -> None:
    """Print a table for each part."""
    console.print(environment_line(result.environment))
    for part in result.parts:
        table = Table(title=f"{result.workload}: {part.title}; median (lowest–highest)")  # noqa: RUF001
        for number, heading in enumerate(part.headings):
            table.add_column(heading, justify="right" if number else "left")
        for row in part.rows:
            table.add_row(*map(_shown, row))
        console.print(table)
    print_failures(result.failures, console)


def _shown(value: str | float | Spread) -> str:
    if isinstance(value, Spread):
        return value.shown(2 if value.median < 10 else 0)
    return value if isinstance(value, str) else f"{value:,.4g}"


def print_hybrid(result: Hybrid, console: Console) -> None:
    """Print both kinds of throughput, alone and together."""
    console.print(environment_line(result.environment))
    rate = (
        f", {result.plan.rate:g} transactions/s asked for" if result.plan.rate else ""
    )
    table = Table(title=f"{result.workload}{rate}")
    table.add_column("target")
    for heading in (
        *("clients", "analysts", "transactions/s", "queries/s"),
        *("seen after ms, p50", "p99"),
    ):
        table.add_column(heading, justify="right")
    for each in result.phases:
        fresh = ("", "") if each.fresh_ms is None else each.fresh_ms
        table.add_row(
            each.target,
            str(each.oltp),
            str(each.olap),
            each.transactions.shown() if each.oltp else "",
            each.queries.shown() if each.olap else "",
            *(f"{value:.1f}" if value != "" else "" for value in fresh),
        )
    console.print(table)
    print_failures(result.failures, console)


def plot_hybrid(result: Hybrid, pyplot: ModuleType, path: Path) -> None:
    """Draw transactions against queries per second, a line per target."""
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for target in result.plan.targets:
        alone, asked, both = (each for each in result.phases if each.target == target)
        phases = (alone, both, asked)
        axes.plot(
            [each.transactions.median for each in phases],
            [each.queries.median for each in phases],
            marker="o",
            label=target,
        )
    axes.set_xlabel("committed transactions per second")
    axes.set_ylabel("queries per second")
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.set_title(f"{result.workload}: alone (on the axes) and together")
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)


def load_plotting() -> ModuleType:
    """Return matplotlib's pyplot, which is asked for only with --plot.

    Raises
    ------
    RuntimeError
        If matplotlib is not installed.
    """
    try:
        import_module("matplotlib").use("Agg")
        return import_module("matplotlib.pyplot")
    except ImportError as error:
        raise RuntimeError(
            "--plot needs matplotlib: install it with 'pip install matplotlib'"
        ) from error


def plot_comparison(result: Comparison, pyplot: ModuleType, path: Path) -> None:
    """Draw throughput by number of clients, a line per setup, with its range."""
    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for setup in result.plan.setups:
        found = [each for each in result.summaries if each.setup == setup]
        middle = [each.throughput.median for each in found]
        axes.errorbar(
            [each.clients for each in found],
            middle,
            yerr=[
                [each.throughput.median - each.throughput.low for each in found],
                [each.throughput.high - each.throughput.median for each in found],
            ],
            marker="o",
            capsize=3,
            label=str(setup),
        )
    axes.set_xlabel("clients")
    axes.set_ylabel("committed transactions per second")
    axes.set_ylim(bottom=0)
    axes.set_title(result.workload)
    axes.legend()
    figure.tight_layout()
    figure.savefig(path)
    pyplot.close(figure)
