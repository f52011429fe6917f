"""Options that commands have in common, and how they end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from typing_extensions import override

from benchmarks import report, targets
from benchmarks.compare import Plan, compare
from benchmarks.environment import DEFAULT_WORK_DIRECTORY
from benchmarks.targets.base import READ_COMMITTED, SERIALIZABLE, SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from rich.console import Console

    from benchmarks.compare import Comparison
    from benchmarks.workload import Workload

_Result = TypeVar("_Result")


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


targets_option = click.option(
    "--targets",
    "names",
    type=CommaList(click.Choice(targets.NAMES)),
    default="duckdb+tique,duckdb",
    show_default=True,
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
directory_option = click.option(
    "--work-directory",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    default=DEFAULT_WORK_DIRECTORY,
    show_default=True,
    help="Where databases are kept: the file system that is measured.",
)
seed_option = click.option(
    "--seed", type=int, default=42, show_default=True, help="Fixes the database."
)


def levels_option(default: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the option for the isolation levels of all targets."""
    levels = [READ_COMMITTED, SNAPSHOT, SERIALIZABLE]
    return click.option(
        "--level",
        "levels",
        type=CommaList(click.Choice(levels, case_sensitive=False)),
        default=default,
        show_default=True,
        help="Isolation levels of all targets, side by side; at READ COMMITTED rows are"
        " locked that are read to compute new values.",
    )


def scale_options(command: Callable[..., None]) -> Callable[..., None]:
    """Add the hidden options with which tests make a database small."""
    for name, default in (("districts", 10), ("customers", 3000), ("items", 100_000)):
        command = click.option(f"--{name}", type=int, default=default, hidden=True)(
            command
        )
    return command


def check_levels(names: tuple[str, ...], levels: tuple[str, ...]) -> None:
    """Refuse a level that one of the targets lacks."""
    for level in levels:
        lacking = [n for n in names if level not in targets.target_class(n).levels]
        if lacking:
            raise click.UsageError(f"--level: {', '.join(lacking)} has no {level}")


def check_protocols(names: tuple[str, ...], protocols: tuple[str, ...]) -> None:
    """Refuse targets that have a choice of protocols, and none of these."""
    for name in names:
        known = targets.target_class(name).protocols
        if known and not set(known) & set(protocols):
            raise click.UsageError(f"--protocols: {name} has {', '.join(known)} only")


def show(
    result: _Result, printed: Callable[[_Result, Console], None], as_json: bool
) -> None:
    """Print a result, as JSON or for people to read."""
    if as_json:
        click.echo(report.as_json(result))
    else:
        printed(result, report.stdout())


def plotting() -> ModuleType:
    """Return what draws plots; an error of usage if it is not installed."""
    try:
        return report.load_plotting()
    except RuntimeError as error:
        raise click.UsageError(str(error)) from error


def show_comparison(
    workload: Workload, plan: Plan, directory: Path, as_json: bool
) -> Comparison:
    """Run a workload on all targets of a plan, and show what was found."""
    with report.progress() as tell:
        result = compare(workload, plan, directory, tell)
    show(result, report.print_comparison, as_json)
    return result


def end(failures: list[str]) -> None:
    """End with status 1 if anything failed; it has been printed."""
    if failures:
        sys.exit(1)
