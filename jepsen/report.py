"""What people read of a run."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table

from jepsen.recorder import OUTCOMES, count

if TYPE_CHECKING:
    from rich.console import Console

    from jepsen.runner import Result

_MOST_PROBLEMS = 5


def print_result(result: Result, console: Console) -> None:
    """Print tables of operations and faults, and what went wrong."""
    console.print(operations_table(result))
    if result.faults:
        console.print(faults_table(result))
    console.print(
        f"{throughput(result):,.0f} operations a second, the longest time without a "
        f"commit {longest_silence(result):.2f} s"
    )
    if result.outcomes:
        asked = ", ".join(f"{n:,} {name}" for name, n in result.outcomes.most_common())
        console.print(f"what was unknown, asked for at the end: {asked}")
    for problem in result.problems[:_MOST_PROBLEMS]:
        console.print(f"PROBLEM {problem}", style="red", markup=False)
    if len(result.problems) > _MOST_PROBLEMS:
        console.print(f"and {len(result.problems) - _MOST_PROBLEMS} more problems")


def operations_table(result: Result) -> Table:
    """A row per operation: how often it ended how, and why it did not succeed."""
    request = result.request
    table = Table(title=f"{request.workload}, seed {request.seed}")
    table.add_column("operation")
    for outcome in OUTCOMES:
        table.add_column(outcome, justify="right")
    table.add_column("why not")
    reasons: dict[str, Counter[str]] = {}
    for event in result.events:
        if event.error:
            reasons.setdefault(event.f, Counter())[event.error.partition(":")[0]] += 1
    for f, outcomes in sorted(count(result.events).items()):
        why = ", ".join(
            f"{name} {number:,}"
            for name, number in reasons.get(f, Counter()).most_common()
        )
        table.add_row(f, *(f"{outcomes[name]:,}" for name in OUTCOMES), why)
    return table


def faults_table(result: Result) -> Table:
    """A row per nemesis."""
    table = Table(title="faults")
    table.add_column("nemesis")
    table.add_column("times", justify="right")
    table.add_column("seconds", justify="right")
    for nemesis, times in sorted(Counter(f.nemesis for f in result.faults).items()):
        seconds = sum(f.end - f.start for f in result.faults if f.nemesis == nemesis)
        table.add_row(nemesis, f"{times:,}", f"{seconds / 1e9:,.1f}")
    return table


def throughput(result: Result) -> float:
    """Operations a second, of the whole history."""
    if not result.events:
        return 0.0
    operations = sum(event.kind == "invoke" for event in result.events)
    return operations / max(
        (result.events[-1].time - result.events[0].time) / 1e9, 1e-9
    )


def longest_silence(result: Result) -> float:
    """Seconds between two operations that succeeded, at most."""
    times = [event.time for event in result.events if event.kind == "ok"]
    return max(
        ((later - earlier) / 1e9 for earlier, later in pairwise(times)),
        default=0.0,
    )
