"""TPC-C: beside another target, with fewer warehouses, in parts, for long."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from benchmarks import report, targets, workloads
from benchmarks.ch.queries import QUERIES
from benchmarks.cli.ch import ANALYTICAL, show_recent
from benchmarks.cli.options import (
    CommaList,
    check_levels,
    directory_option,
    end,
    json_option,
    levels_option,
    plotting,
    scale_options,
    seed_option,
    show,
    show_comparison,
    targets_option,
)
from benchmarks.compare import Plan
from benchmarks.endurance import measure_endurance
from benchmarks.targets.base import SNAPSHOT
from benchmarks.tpcc.rules import Scale


@click.command("compare")
@click.option(
    "--workload", type=click.Choice([*workloads.NAMES, ANALYTICAL]), default="tpcc"
)
@targets_option
@click.option(
    "--clients",
    type=CommaList(click.IntRange(min=1)),
    default="1,8",
    show_default=True,
)
@click.option("--warehouses", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--seconds", type=float, default=20.0, show_default=True)
@click.option("--warmup", type=float, default=10.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option(
    "--processes",
    type=click.IntRange(min=0),
    default=0,
    help="Divide the clients among so many processes of their own (servers only).",
)
@click.option(
    "--distance",
    type=click.FloatRange(min=0),
    default=0.0,
    help="Milliseconds that a round trip to the server takes longer (PostgreSQL only).",
)
@levels_option(SNAPSHOT)
@click.option(
    "--history", help="The retention of all tables' histories, such as '1 hour'."
)
@click.option("--roam", is_flag=True, help="Clients choose any warehouse each time.")
@click.option(
    "--versions",
    type=CommaList(click.IntRange(min=0)),
    default="0,10000,100000",
    show_default=True,
    help="Numbers of recent versions (workload ch).",
)
@click.option(
    "--repetitions",
    type=click.IntRange(min=1),
    default=11,
    show_default=True,
    help="Runs of each query (workload ch).",
)
@click.option(
    "--queries",
    type=CommaList(click.Choice(list(QUERIES))),
    default=",".join(QUERIES),
    help="Names of queries (workload ch); all of them by default.",
)
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Draw throughput to this file (needs matplotlib).",
)
@seed_option
@directory_option
@json_option
@scale_options
def compare_command(
    workload: str,
    names: tuple[str, ...],
    clients: tuple[int, ...],
    warehouses: int,
    seconds: float,
    warmup: float,
    rounds: int,
    processes: int,
    distance: float,
    levels: tuple[str, ...],
    history: str | None,
    roam: bool,
    versions: tuple[int, ...],
    repetitions: int,
    queries: tuple[str, ...],
    plot: Path | None,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Run targets side by side, interleaved round by round."""
    near = [n for n in names if not targets.target_class(n).has_distance]
    if distance and near:
        raise click.UsageError(f"--distance: {', '.join(near)} cannot be further away")
    check_levels(names, levels)
    scale = Scale(warehouses, districts, customers, items)
    if workload == ANALYTICAL:
        end(
            show_recent(
                *(names, scale, seed, directory, versions, repetitions, queries),
                as_json=as_json,
                plot=plot,
            )
        )
        return
    pyplot = plotting() if plot else None
    result = show_comparison(
        workloads.make_workload(workload, scale, seed, roam=roam),
        Plan(
            *(names, clients, seconds, warmup, rounds, processes, distance, levels),
            history=history,
        ),
        directory,
        as_json,
    )
    if plot and pyplot:
        report.plot_comparison(result, pyplot, plot)
    end(result.failures)


@click.command("contention")
@targets_option
@click.option("--clients", type=click.IntRange(min=1), default=8, show_default=True)
@click.option(
    "--warehouses",
    type=CommaList(click.IntRange(min=1)),
    default="1,2,4,8",
    show_default=True,
)
@click.option("--seconds", type=float, default=20.0, show_default=True)
@click.option("--warmup", type=float, default=10.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@levels_option(SNAPSHOT)
@click.option("--roam", is_flag=True, help="Clients choose any warehouse each time.")
@seed_option
@directory_option
@json_option
@scale_options
def contention_command(
    names: tuple[str, ...],
    clients: int,
    warehouses: tuple[int, ...],
    seconds: float,
    warmup: float,
    rounds: int,
    levels: tuple[str, ...],
    roam: bool,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Run TPC-C with the same clients on fewer and fewer warehouses."""
    from benchmarks.contention import measure_contention

    check_levels(names, levels)
    scale = Scale(max(warehouses), districts, customers, items)
    plan = Plan(names, (clients,), seconds, warmup, rounds, levels=levels)
    with report.progress() as tell:
        result = measure_contention(
            scale, seed, warehouses, plan, directory, tell, roam=roam
        )
    if as_json:
        click.echo(report.as_json(result))
    else:
        title = f"TPC-C, {clients} clients"
        report.print_contention(result, title, report.stdout())
    end(result.failures)


@click.command("ablation")
@click.option("--target", type=click.Choice(targets.NAMES), default="duckdb+tique")
@click.option(
    "--clients",
    type=CommaList(click.IntRange(min=1)),
    default="1,8",
    show_default=True,
)
@click.option("--warehouses", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--seconds", type=float, default=20.0, show_default=True)
@click.option("--warmup", type=float, default=10.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@seed_option
@directory_option
@json_option
@scale_options
def ablation_command(
    target: str,
    clients: tuple[int, ...],
    warehouses: int,
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
    """Run TPC-C with the store as it is, and without each part of it."""
    from benchmarks.ablation import measure_ablation

    scale = Scale(warehouses, districts, customers, items)
    workload = workloads.make_workload("tpcc", scale, seed, roam=False)
    with report.progress() as tell:
        variants = measure_ablation(
            workload,
            target,
            clients,
            seconds=seconds,
            warmup=warmup,
            rounds=rounds,
            directory=directory,
            progress=tell,
        )
    if as_json:
        click.echo(report.as_json(variants))
    else:
        report.print_ablation(variants, f"{workload.label}, {target}", report.stdout())


@click.command("endure")
@targets_option
@click.option("--clients", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--processes", type=click.IntRange(min=0), default=0)
@click.option("--warehouses", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--warmup", type=float, default=10.0, show_default=True)
@click.option("--slice", "length", type=float, default=30.0, show_default=True)
@click.option("--slices", type=click.IntRange(min=2), default=10, show_default=True)
@click.option(
    "--snapshots",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Leave so many transactions that have read open until the end.",
)
@click.option("--writes", is_flag=True, help="Let each of them write a row at its end.")
@seed_option
@directory_option
@json_option
@scale_options
def endure_command(
    names: tuple[str, ...],
    clients: int,
    processes: int,
    warehouses: int,
    warmup: float,
    length: float,
    slices: int,
    snapshots: int,
    writes: bool,
    seed: int,
    directory: Path,
    as_json: bool,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Run TPC-C for long, in slices, one target after the other."""
    scale = Scale(warehouses, districts, customers, items)
    failures = []
    for name in names:
        with report.progress() as tell:
            result = measure_endurance(
                workloads.make_workload("tpcc", scale, seed, roam=False),
                name,
                directory,
                clients=clients,
                processes=processes,
                warmup=warmup,
                length=length,
                slices=slices,
                snapshots=snapshots,
                writes=writes,
                progress=tell,
            )
        show(result, report.print_endurance, as_json)
        failures += result.failures
    end(failures)


@click.command("demo")
@click.option("--target", type=click.Choice(targets.NAMES), default="duckdb+tique")
@click.option("--clients", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--seconds", type=float, default=15.0, show_default=True)
@seed_option
@directory_option
@scale_options
def demo_command(
    target: str,
    clients: int,
    seconds: float,
    seed: int,
    directory: Path,
    districts: int,
    customers: int,
    items: int,
) -> None:
    """Load TPC-C through tique and run it beside analytical queries."""
    from benchmarks.demo import run_demo

    fine = run_demo(
        targets.target_class(target)(),
        Scale(1, districts, customers, items),
        directory,
        report.stdout(),
        clients=clients,
        seconds=seconds,
        seed=seed,
    )
    if not fine:
        sys.exit(1)


@click.group("pytpcc")
def pytpcc_command() -> None:
    """Run py-tpcc, another implementation of TPC-C, on tique."""


@pytpcc_command.command("install")
@click.argument("checkout", type=click.Path(file_okay=False, path_type=Path))
def pytpcc_install_command(checkout: Path) -> None:
    """Put the driver for the system "tique" into a checkout of py-tpcc."""
    from benchmarks import pytpcc

    try:
        click.echo(pytpcc.install(checkout))
    except FileNotFoundError as error:
        raise click.ClickException(str(error)) from None


COMMANDS: tuple[click.Command, ...] = (
    compare_command,
    contention_command,
    ablation_command,
    endure_command,
    demo_command,
    pytpcc_command,
)
