"""``python -m jepsen run``: record a history while things go wrong, and judge it."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

import tique
from jepsen import checker, history, report, timeline
from jepsen.checker.models import PROSCRIBED, Model
from jepsen.mutations import MUTATIONS
from jepsen.nemesis import NEMESES
from jepsen.preload import PreloadError
from jepsen.runner import Request, Run
from jepsen.systems import Unusable
from jepsen.workloads import LEVELS, WORKLOADS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from jepsen.checker.verdict import Verdict

_WIDTH = 120
_MODELS = {
    "snapshot": Model.STRONG_SNAPSHOT_ISOLATION,
    "read committed": Model.STRONG_READ_COMMITTED,
    "serializable": Model.STRICT_SERIALIZABLE,
}
_WORDS = {True: "[green]valid[/]", False: "[red]INVALID[/]", None: "[yellow]unknown[/]"}


def _names(_context: click.Context, _option: click.Parameter, text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in {*NEMESES, "all"}:
            raise click.BadParameter(f"{name!r} is none of {', '.join(NEMESES)}, all")
    return names


def _options(
    _context: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, Any]:
    try:
        return {
            name: json.loads(value)
            for name, value in (text.split("=", 1) for text in texts)
        }
    except ValueError as error:
        raise click.BadParameter(f"not NAME=JSON: {error}") from error


@click.command()
@click.option(
    "--url",
    required=True,
    help="A database, empty; or duckdb:, monetdb:, postgresql: or citus: for one of its own.",
)
@click.option("--workload", type=click.Choice(list(WORKLOADS)), default="list-append")
@click.option(
    "--level",
    type=click.Choice(list(LEVELS), case_sensitive=False),
    default="snapshot",
    show_default=True,
    help="The transactions' isolation level.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    callback=_options,
    metavar="NAME=JSON",
    help="A further option of tique.connect, such as long_snapshot=0.05.",
)
@click.option(
    "--nemesis",
    "nemeses",
    default="",
    callback=_names,
    help=f"Of {', '.join(NEMESES)}, with commas between; or all.",
)
@click.option(
    "--bulk",
    type=click.FloatRange(0, 1),
    default=0.0,
    show_default=True,
    help="The share of transactions that commit in bulk, as those with many rows do.",
)
@click.option("--seconds", type=float, default=30.0, show_default=True)
@click.option(
    "--transactions", type=click.IntRange(min=1), help="End after so many, if earlier."
)
@click.option("--clients", type=click.IntRange(1, 32), default=8, show_default=True)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Clients are threads of so many; of one, if the engine is embedded.",
)
@click.option("--seed", type=int, default=1, show_default=True)
@click.option(
    "--check",
    "model",
    type=click.Choice([str(model) for model in Model]),
    help="The model that the history must be valid under; by default the level's.",
)
@click.option(
    "--break",
    "mutation",
    type=click.Choice(list(MUTATIONS)),
    help="Break tique in the clients' processes, to see that it is noticed.",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("jepsen-run"),
    show_default=True,
    help="A new folder for the history and all else.",
)
def run(
    url: str,
    workload: str,
    level: str,
    options: dict[str, Any],
    nemeses: list[str],
    bulk: float,
    seconds: float,
    transactions: int | None,
    clients: int,
    processes: int,
    seed: int,
    model: str | None,
    mutation: str | None,
    output: Path,
) -> None:
    """Run a workload while nemeses break things, and judge its history.

    The exit status is 0 if the history is valid under the model and nothing else went
    wrong, 1 if not, and 2 if the verdict is unknown.
    """
    if output.exists() and any(output.iterdir()):
        raise click.UsageError(f"{output} is not empty")
    if workload not in LEVELS[level]:
        raise click.UsageError(
            f"{workload} reads, and writes what it computed: at {level} there are "
            f"{', '.join(LEVELS[level])}"
        )
    request = Request(
        url,
        workload,
        nemeses,
        seconds,
        transactions,
        clients,
        processes,
        seed,
        mutation,
        level,
        options,
        bulk,
    )
    console = Console()
    if not console.is_terminal:
        console = Console(width=_WIDTH)
    try:
        with _progress() as show:
            result = Run(request, output, show).run()
            show("judging")
            operations = history.read(output / "history.edn")
            verdict = checker.check(operations, workload)
    except (Unusable, PreloadError) as error:
        raise click.UsageError(str(error)) from error
    except tique.Error as error:
        raise click.ClickException(f"the run did not begin: {error}") from error
    report.print_result(result, console)
    wanted = Model(model) if model else _MODELS[level]
    _show(verdict, wanted, console)
    try:
        timeline.draw(result, output / "timeline.png")
    except ImportError:
        console.print("no timeline: matplotlib is not installed")
    console.print(f"history.edn, history.jsonl.gz, timeline.png in {output}")
    is_valid = verdict.valid(wanted)
    if is_valid is False or result.problems:
        sys.exit(1)
    if is_valid is None:
        sys.exit(2)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """Show the current step on stderr if that is a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _message: None
        return
    with console.status("") as status:
        yield status.update


def _show(verdict: Verdict, model: Model, console: Console) -> None:
    doubt = verdict.unknown or verdict.doubts.get(model)
    because = f" ({doubt})" if doubt else ""
    console.print(f"{model}: {_WORDS[verdict.valid(model)]}{escape(because)}")
    found = ", ".join(f"{name} {n:,}" for name, n in sorted(verdict.counts.items()))
    if found:
        console.print(f"anomalies, allowed or not: {found}")
    for anomaly in verdict.anomalies:
        if anomaly.name in PROSCRIBED[model]:
            console.print(f"[bold]{anomaly.name}[/]")
            for line in anomaly.lines:
                console.print(f"  {escape(line)}")
