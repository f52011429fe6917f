"""CH-benCHmark's queries."""

from __future__ import annotations

from pathlib import Path

import click

from benchmarks import report, targets
from benchmarks.ch.queries import QUERIES
from benchmarks.ch.recent import measure_recent
from benchmarks.ch.workload import ChWorkload
from benchmarks.cli.options import (
    CommaList,
    directory_option,
    end,
    json_option,
    plotting,
    scale_options,
    seed_option,
    show,
    targets_option,
)
from benchmarks.tpcc.rules import Scale

ANALYTICAL = ChWorkload.name
"""The workload whose queries are timed, not transactions."""


def show_recent(
    names: tuple[str, ...],
    scale: Scale,
    seed: int,
    directory: Path,
    versions: tuple[int, ...],
    repetitions: int,
    queries: tuple[str, ...],
    *,
    as_json: bool,
    plot: Path | None,
) -> list[str]:
    """Time the queries on each target with tique, beside its baseline."""
    pyplot = plotting() if plot else None
    failures = []
    for name in names:
        if targets.baseline_of(name) is None:
            # It is measured beside the target that is set against it.
            continue
        with report.progress() as tell:
            found = measure_recent(
                ChWorkload(scale, seed),
                directory,
                target=name,
                versions=versions,
                repetitions=repetitions,
                queries=queries,
                progress=tell,
            )
        show(found, report.print_recent, as_json)
        if plot and pyplot:
            report.plot_recent(found, pyplot, plot.with_stem(f"{plot.stem}-{name}"))
        failures += found.failures
    return failures


@click.command("past")
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice([n for n in targets.NAMES if targets.baseline_of(n)])),
    default="duckdb+tique",
    show_default=True,
)
@click.option("--warehouses", type=click.IntRange(min=1), default=4, show_default=True)
@click.option(
    "--changes",
    type=CommaList(click.IntRange(min=1)),
    default="10000,100000",
    show_default=True,
    help="How many versions were folded since the version that is asked for.",
)
@click.option("--repetitions", type=click.IntRange(min=1), default=7, show_default=True)
@click.option(
    "--queries", type=CommaList(click.Choice(list(QUERIES))), default=",".join(QUERIES)
)
@seed_option
@directory_option
@json_option
@scale_options
def past_command(
    names: tuple[str, ...],
    warehouses: int,
    changes: tuple[int, ...],
    repetitions: int,
    queries: tuple[str, ...],
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Time CH-benCHmark's queries as of a past version, and now."""
    from benchmarks.ch.past import measure_past

    failures = []
    for name in names:
        with report.progress() as tell:
            found = measure_past(
                ChWorkload(Scale(warehouses, districts, customers, items), seed),
                directory,
                target=name,
                changes=changes,
                repetitions=repetitions,
                queries=queries,
                progress=tell,
            )
        show(found, report.print_past, as_json)
        failures += found.failures
    end(failures)


@click.command("hybrid")
@targets_option
@click.option("--oltp", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--olap", type=click.IntRange(min=1), default=1, show_default=True)
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Transactions per second of all clients together; 0: as many as they can.",
)
@click.option(
    "--queries",
    type=CommaList(click.Choice(list(QUERIES))),
    default=",".join(QUERIES),
    help="Names of queries; all of them by default.",
)
@click.option("--warehouses", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--seconds", type=float, default=15.0, show_default=True)
@click.option("--warmup", type=float, default=5.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw both kinds of throughput to this file (needs matplotlib).",
)
@seed_option
@directory_option
@json_option
@scale_options
def hybrid_command(
    names: tuple[str, ...],
    oltp: int,
    olap: int,
    rate: float,
    queries: tuple[str, ...],
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
    """Run TPC-C and CH-benCHmark's queries, each alone and both together."""
    from benchmarks.ch import hybrid

    pyplot = plotting() if plot else None
    with report.progress() as tell:
        result = hybrid.measure_hybrid(
            Scale(warehouses, districts, customers, items),
            seed,
            hybrid.Plan(names, oltp, olap, seconds, warmup, rounds, rate, queries),
            directory,
            tell,
        )
    show(result, report.print_hybrid, as_json)
    if plot and pyplot:
        report.plot_hybrid(result, pyplot, plot)
    end(result.failures)


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
@seed_option
@directory_option
@json_option
@scale_options
def growth_command(
    names: tuple[str, ...],
    workers: tuple[int, ...],
    warehouses: int,
    transactions: int,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Count what Citus' workers are sent for transactions and for queries."""
    from benchmarks.growth import measure_growth

    with report.progress() as tell:
        result = measure_growth(
            ChWorkload(Scale(warehouses, districts, customers, items), seed),
            directory,
            names=names,
            workers=workers,
            transactions=transactions,
            progress=tell,
        )
    show(result, report.print_growth, as_json)
    end(result.failures)


COMMANDS: tuple[click.Command, ...] = (
    past_command,
    hybrid_command,
    growth_command,
)
