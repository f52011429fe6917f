"""``python -m jepsen check``: whether a history is valid under a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jepsen import checker, history
from jepsen.checker.models import PROSCRIBED, Model
from jepsen.history import MalformedHistory

if TYPE_CHECKING:
    from jepsen.checker.verdict import Verdict

_WORDS = {
    True: "[green]valid[/]",
    False: "[red]invalid[/]",
    None: "[yellow]unknown[/]",
}
_EXIT = {True: 0, False: 1, None: 2}


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--model",
    type=click.Choice([str(model) for model in Model]),
    default=str(Model.STRONG_SNAPSHOT_ISOLATION),
    show_default=True,
    help="The model that the history must be valid under.",
)
@click.option(
    "--workload",
    type=click.Choice(list(checker.CHECKERS)),
    help="The workload that ran; by default the operations tell.",
)
def check(file: Path, model: str, workload: str | None) -> None:
    """Judge the history in FILE (.edn, .json, .jsonl, each also .gz).

    The exit status is 0 if it is valid under the model, 1 if it is not, and 2 if that
    is unknown: too little happened, or the file is no history.
    """
    console = Console(soft_wrap=True, highlight=False)
    try:
        operations = history.read(file)
        verdict = checker.check(operations, workload)
    except MalformedHistory as error:
        Console(stderr=True, soft_wrap=True, highlight=False).print(
            f"[red]no verdict:[/] {escape(str(error))}"
        )
        sys.exit(2)
    _show(console, verdict, Model(model))
    sys.exit(_EXIT[verdict.valid(Model(model))])


def _show(console: Console, verdict: Verdict, asked: Model) -> None:
    table = Table("model", "verdict", "because of", box=None, pad_edge=False)
    for model in Model:
        found = [
            f"{name} ({count})"
            for name, count in verdict.counts.items()
            if name in PROSCRIBED[model]
        ]
        valid = verdict.valid(model)
        mark = " ←" if model is asked else ""
        because = ", ".join(found) or verdict.doubts.get(model, "")
        table.add_row(f"{model}{mark}", _WORDS[valid], because)
    console.print(table)
    if verdict.unknown:
        console.print(f"\n{escape(verdict.unknown)}")
    for anomaly in verdict.anomalies:
        console.print(f"\n[bold]{anomaly.name}[/]")
        for line in anomaly.lines:
            console.print(f"  {escape(line)}")
    shown = {anomaly.name for anomaly in verdict.anomalies}
    for name, count in verdict.counts.items():
        more = count - sum(each.name == name for each in verdict.anomalies)
        if more:
            kind = "more" if name in shown else "not shown"
            console.print(f"\n{more} {kind}: {name}")
