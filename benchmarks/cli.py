"""The commands of `python -m benchmarks`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from typing_extensions import override

from benchmarks import report, targets, workloads
from benchmarks.ch.measure import measure_queries
from benchmarks.ch.queries import QUERIES
from benchmarks.ch.workload import ChWorkload
from benchmarks.compare import Plan, compare
from benchmarks.endurance import measure_endurance
from benchmarks.environment import DEFAULT_WORK_DIRECTORY
from benchmarks.micro.group_commit import GroupCommitWorkload
from benchmarks.micro.hot_row import MODES, HotRowWorkload
from benchmarks.tpcc.rules import Scale

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from benchmarks.compare import Comparison
    from benchmarks.workload import Workload


ANALYTICAL = ChWorkload.name
"""The workload whose queries are timed, not transactions."""


class CommaList(click.ParamType[tuple[Any, ...]]):
    """Values separated by commas, each converted and checked by another type."""

    name = "list"

    def __init__(self, element: click.ParamType[Any]) -> None:
        self._element = element

    @override
    def convert(
        self,
        value: object,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> tuple[Any, ...]:
        """Return the values as a tuple."""
        parts = str(value).split(",")
        return tuple(self._element.convert(part, param, ctx) for part in parts)


_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_directory_option = click.option(
    "--work-directory",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_WORK_DIRECTORY,
    show_default=True,
    help="Where databases are kept: the file system that is measured.",
)
_seed_option = click.option(
    "--seed", type=int, default=42, show_default=True, help="Fixes the database."
)
_level_option = click.option(
    "--level",
    type=click.Choice(["SNAPSHOT", "READ COMMITTED"], case_sensitive=False),
    default="SNAPSHOT",
    show_default=True,
    help="Isolation level of all targets; READ COMMITTED locks rows before it writes.",
)


def _scale_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the hidden options with which tests make a database small."""
    for name, default in (("districts", 10), ("customers", 3000), ("items", 100_000)):
        command = click.option(f"--{name}", type=int, default=default, hidden=True)(
            command
        )
    return command


def _check_level(names: tuple[str, ...], level: str) -> None:
    lacking = [n for n in names if level not in targets.target_class(n).levels]
    if lacking:
        raise click.UsageError(f"--level: {', '.join(lacking)} has no {level}")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure an engine with tique beside the same engine without it."""


@main.command("compare")
@click.option(
    "--workload", type=click.Choice([*workloads.NAMES, ANALYTICAL]), default="tpcc"
)
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,duckdb",
    show_default=True,
)
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
@_level_option
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
@_seed_option
@_directory_option
@_json_option
@_scale_options
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
    level: str,
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
    _check_level(names, level)
    pyplot = _plotting() if plot else None
    scale = Scale(warehouses, districts, customers, items)
    if workload == ANALYTICAL:
        failures = []
        for name in names:
            if targets.baseline_of(name) is None:
                # It is measured beside the target that is set against it.
                continue
            with report.progress() as tell:
                found = measure_queries(
                    ChWorkload(scale, seed),
                    directory,
                    target=name,
                    versions=versions,
                    repetitions=repetitions,
                    queries=queries,
                    progress=tell,
                )
            if as_json:
                click.echo(report.as_json(found))
            else:
                report.print_analytics(found, report.stdout())
            if plot and pyplot:
                report.plot_analytics(
                    found, pyplot, plot.with_stem(f"{plot.stem}-{name}")
                )
            failures += found.failures
        _exit(failures)
        return
    result = _compare(
        workloads.make_workload(
            workload, scale, seed, roam=roam, locking=level != "SNAPSHOT"
        ),
        Plan(
            *(names, clients, seconds, warmup, rounds, processes, distance, level),
            history=history,
        ),
        directory,
        as_json,
    )
    if plot and pyplot:
        report.plot_comparison(result, pyplot, plot)
    _exit(result.failures)


@main.command("past")
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
@_seed_option
@_directory_option
@_json_option
@_scale_options
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
        if as_json:
            click.echo(report.as_json(found))
        else:
            report.print_past(found, report.stdout())
        failures += found.failures
    _exit(failures)


@main.command("hybrid")
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,duckdb",
    show_default=True,
)
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
@_seed_option
@_directory_option
@_json_option
@_scale_options
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

    pyplot = _plotting() if plot else None
    with report.progress() as tell:
        result = hybrid.measure_hybrid(
            Scale(warehouses, districts, customers, items),
            seed,
            hybrid.Plan(names, oltp, olap, seconds, warmup, rounds, rate, queries),
            directory,
            tell,
        )
    if as_json:
        click.echo(report.as_json(result))
    else:
        report.print_hybrid(result, report.stdout())
    if plot and pyplot:
        report.plot_hybrid(result, pyplot, plot)
    _exit(result.failures)


@main.command("group-commit")
@click.option("--threads", type=click.IntRange(1, 100), default=16, show_default=True)
@click.option("--seconds", type=float, default=10.0, show_default=True)
@click.option("--warmup", type=float, default=1.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,duckdb",
    show_default=True,
)
@click.option(
    "--explicit", is_flag=True, help="BEGIN, UPDATE, COMMIT instead of autocommit."
)
@_directory_option
@_json_option
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
    _exit(_compare(workload, plan, directory, as_json).failures)


@main.command("hot-row")
@click.option("--mode", type=click.Choice(MODES), default=MODES[0], show_default=True)
@click.option("--threads", type=click.IntRange(1, 100), default=8, show_default=True)
@click.option("--processes", type=click.IntRange(min=0), default=0)
@click.option("--seconds", type=float, default=6.0, show_default=True)
@click.option("--warmup", type=float, default=1.0, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,duckdb",
    show_default=True,
)
@_directory_option
@_json_option
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
    _exit(_compare(workload, plan, directory, as_json).failures)


@main.command("contention")
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,duckdb",
    show_default=True,
)
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
@_level_option
@click.option("--roam", is_flag=True, help="Clients choose any warehouse each time.")
@_seed_option
@_directory_option
@_json_option
@_scale_options
def contention_command(
    names: tuple[str, ...],
    clients: int,
    warehouses: tuple[int, ...],
    seconds: float,
    warmup: float,
    rounds: int,
    level: str,
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

    _check_level(names, level)
    scale = Scale(max(warehouses), districts, customers, items)
    plan = Plan(names, (clients,), seconds, warmup, rounds, level=level)
    with report.progress() as tell:
        result = measure_contention(
            scale, seed, warehouses, plan, directory, tell, roam=roam
        )
    if as_json:
        click.echo(report.as_json(result))
    else:
        title = f"TPC-C, {clients} clients"
        report.print_contention(result, title, report.stdout())
    _exit(result.failures)


@main.command("ablation")
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
@_seed_option
@_directory_option
@_json_option
@_scale_options
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


@main.command("driver-cost")
@click.option(
    "--statements", type=click.IntRange(1, 50_000), default=5000, show_default=True
)
@_directory_option
@_json_option
def driver_cost_command(statements: int, directory: Path, as_json: bool) -> None:
    """Measure the driver's own cost of a point SELECT, without the engine's time."""
    from benchmarks.micro.driver_cost import measure_driver_cost

    with report.progress() as tell:
        result = measure_driver_cost(directory, statements, tell)
    if as_json:
        click.echo(report.as_json(result))
    else:
        report.print_driver_cost(result, report.stdout())


@main.command("feed")
@click.option(
    "--commits", type=click.IntRange(min=100), default=100_000, show_default=True
)
@click.option("--seconds", type=click.FloatRange(min=0.1), default=10.0)
@_directory_option
@_json_option
def feed_command(commits: int, seconds: float, directory: Path, as_json: bool) -> None:
    """Replay the changes of a table, and follow them beside four writers."""
    from benchmarks.micro.feed import measure_feed

    with report.progress() as tell:
        result = measure_feed(directory, commits, seconds, tell)
    if as_json:
        click.echo(report.as_json(result))
    else:
        report.print_feed(result, report.stdout())
    _exit(result.failures)


@main.command("scans")
@click.option(
    "--engine",
    type=click.Choice([n for n in targets.NAMES if targets.baseline_of(n) is None]),
    default="duckdb",
    show_default=True,
)
@click.option("--rows", type=click.IntRange(min=1), default=1_000_000)
@click.option("--cached", type=click.IntRange(min=1), default=10_000)
@click.option("--repetitions", type=click.IntRange(min=1), default=21)
@_directory_option
@_json_option
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
    if as_json:
        click.echo(report.as_json(result))
    else:
        report.print_scans(result, report.stdout())
    _exit(result.failures)


@main.command("folds")
@click.option("--warehouses", type=click.IntRange(min=1), default=4, show_default=True)
@click.option(
    "--keys",
    type=CommaList(click.IntRange(min=1)),
    default="1000,10000",
    show_default=True,
)
@click.option("--rounds", type=click.IntRange(min=1), default=5, show_default=True)
@click.option("--history", help="The retention of the table's history.")
@_seed_option
@_directory_option
@_json_option
@_scale_options
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
    if as_json:
        click.echo(report.as_json(result))
    else:
        report.print_folds(result, report.stdout())
    _exit(result.failures)


@main.command("endure")
@click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,duckdb",
    show_default=True,
)
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
@_seed_option
@_directory_option
@_json_option
@_scale_options
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
        if as_json:
            click.echo(report.as_json(result))
        else:
            report.print_endurance(result, report.stdout())
        failures += result.failures
    _exit(failures)


@main.group("pytpcc")
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


@main.command("demo")
@click.option("--target", type=click.Choice(targets.NAMES), default="duckdb+tique")
@click.option("--clients", type=click.IntRange(min=1), default=4, show_default=True)
@click.option("--seconds", type=float, default=15.0, show_default=True)
@_seed_option
@_directory_option
@_scale_options
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


def _compare(
    workload: Workload, plan: Plan, directory: Path, as_json: bool
) -> Comparison:
    with report.progress() as tell:
        result = compare(workload, plan, directory, tell)
    if as_json:
        click.echo(report.as_json(result))
    else:
        report.print_comparison(result, report.stdout())
    return result


def _plotting() -> ModuleType:
    try:
        return report.load_plotting()
    except RuntimeError as error:
        raise click.UsageError(str(error)) from error


def _exit(failures: list[str]) -> None:
    """End with status 1 if anything failed; it has been printed."""
    if failures:
        sys.exit(1)
