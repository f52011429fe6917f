"""Levels and protocols as tables and as a picture."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from rich.table import Table

from benchmarks.report import environment_line, print_failures
from benchmarks.targets.base import READ_COMMITTED, SNAPSHOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType
    from typing import Any

    from rich.console import Console

    from benchmarks.compare import Summary
    from benchmarks.measures import Spread
    from benchmarks.protocols.measure import Found, Protocols
    from benchmarks.targets.base import Setup

_LINES = {READ_COMMITTED: ":", SNAPSHOT: "--"}
"""How a level is drawn; a protocol for SERIALIZABLE has a full line, and a marker."""

_MARKERS = {"optimistic": "o", "locking": "s", "ssn": "^"}


def print_protocols(result: Protocols, console: Console) -> None:
    """Print a table per workload."""
    plan = result.plan
    console.print(
        f"{plan.rounds} rounds of {plan.seconds:g} s after {plan.warmup:g} s of warm-up,"
        " median (lowest–highest)"  # noqa: RUF001
    )
    console.print(environment_line(result.found[0].comparison.environment))
    for name, found in _by_workload(result).items():
        console.print(_table(name, found))
    print_failures(result.failures, console)


def _by_workload(result: Protocols) -> dict[str, list[Found]]:
    workloads: dict[str, list[Found]] = {}
    for each in result.found:
        workloads.setdefault(each.workload, []).append(each)
    return workloads


def _table(name: str, found: list[Found]) -> Table:
    has_skew = found[0].theta is not None
    has_anomalies = any(
        s.anomalies for case in found for s in case.comparison.summaries
    )
    table = Table(title=name)
    table.add_column("θ, threads" if has_skew else "threads", justify="right")
    for heading in ("target", "level"):
        table.add_column(heading, no_wrap=True)
    for heading in ("tx/s", "of SNAPSHOT", "lost, of 100"):
        table.add_column(heading, justify="right")
    if has_anomalies:
        table.add_column("anomalies", justify="right")
    for case in found:
        costs = {(cost.setup, cost.clients): cost for cost in case.comparison.costs}
        skew = f"{case.theta:g}, " if has_skew else ""
        for clients, summaries in groupby(
            case.comparison.summaries, attrgetter("clients")
        ):
            for each in summaries:
                cost = costs.get((each.setup, clients))
                table.add_row(
                    f"{skew}{clients}",
                    each.setup.target,
                    each.setup.isolation,
                    each.throughput.shown(0),
                    cost.ratio.shown(2) if cost else "",
                    each.abort_rate.of_100().shown(),
                    *([f"{each.anomalies:,}"] if has_anomalies else []),
                )
            table.add_section()
    return table


def plot_protocols(result: Protocols, pyplot: ModuleType, path: Path) -> None:
    """Draw throughput by threads and abort rates by skew, a row per workload.

    A workload without skews has its abort rates by threads.
    """
    workloads = _by_workload(result)
    figure, places = pyplot.subplots(
        *(len(workloads), 2),
        figsize=(12, 4 * len(workloads) + 1),
        squeeze=False,
        layout="constrained",
    )
    variations = result.variations
    for (name, found), (left, right) in zip(workloads.items(), places, strict=True):
        by_threads = [
            (each.clients, each)
            for case in found
            if case.theta in (None, variations.theta)
            for each in case.comparison.summaries
            if each.clients in variations.threads
        ]
        by_theta = [
            (case.theta, each)
            for case in found
            if case.theta in variations.thetas
            for each in case.comparison.summaries
            if each.clients == variations.clients
        ]
        _draw(left, result, by_threads, lambda each: each.throughput)
        left.set_title(
            name if found[0].theta is None else f"{name}, θ {variations.theta:g}"
        )
        left.set_xlabel("threads")
        left.set_ylabel("committed transactions per second")
        _draw(right, result, by_theta or by_threads, lambda e: e.abort_rate.of_100())
        right.set_title(f"{name}, {variations.clients} threads" if by_theta else name)
        right.set_xlabel("θ" if by_theta else "threads")
        right.set_ylabel("attempts lost, of 100")
    handles, labels = places[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.savefig(path)
    pyplot.close(figure)


def _draw(
    axes: Any,
    result: Protocols,
    points: list[tuple[Any, Summary]],
    measure: Callable[[Summary], Spread],
) -> None:
    """Draw a line with ranges per setup, a colour per target."""
    for setup in result.plan.setups:
        found = [(x, measure(each)) for x, each in points if each.setup == setup]
        axes.errorbar(
            [x for x, _ in found],
            [value.median for _, value in found],
            yerr=[
                [value.median - value.low for _, value in found],
                [value.high - value.median for _, value in found],
            ],
            color=f"C{result.plan.targets.index(setup.target)}",
            capsize=2,
            label=str(setup),
            **_style(setup),
        )
    axes.set_ylim(bottom=0)


def _style(setup: Setup) -> dict[str, str]:
    return {
        "linestyle": _LINES.get(setup.level, "-"),
        "marker": _MARKERS.get(setup.protocol or "", "."),
    }
