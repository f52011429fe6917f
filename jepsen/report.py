"""The report of a run, for people."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from rich.table import Table

from jepsen.recorder import OUTCOMES, count

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import Console

    from jepsen.runner import Result

_MOST_PROBLEMS = 5


def print_result(result: Result, console: Console) -> None:
    """Print tables of operations and faults, and the problems."""
    console.print(operations_table(result))
    if result.faults:
        console.print(faults_table(result))
    silence = longest_silence(result)
    console.print(
        f"{throughput(result):,.0f} operations and {throughput(result, 'ok'):,.0f} "
        f"commits a second, the longest time without a commit {silence.seconds:.2f} s, "
        f"{silence.circumstances}"
    )
    if result.outcomes:
        asked = ", ".join(f"{n:,} {name}" for name, n in result.outcomes.most_common())
        console.print(f"unknown outcomes, asked for at the end: {asked}")
    for problem in result.problems[:_MOST_PROBLEMS]:
        console.print(f"PROBLEM {problem}", style="red", markup=False)
    if len(result.problems) > _MOST_PROBLEMS:
        console.print(f"and {len(result.problems) - _MOST_PROBLEMS} more problems")


def operations_table(result: Result) -> Table:
    """A row per operation: how often it ended how, and why it did not succeed."""
    request = result.request
    table = Table(title=f"{request.workload}, {request.level}, seed {request.seed}")
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


def throughput(result: Result, kind: str = "invoke") -> float:
    """Operations a second of the whole history, those that began or ended so."""
    if not result.events:
        return 0.0
    operations = sum(event.kind == kind for event in result.events)
    return operations / max(
        (result.events[-1].time - result.events[0].time) / 1e9, 1e-9
    )


@dataclass(frozen=True)
class Silence:
    """A time in which no operation succeeded.

    Attributes
    ----------
    start, end
        Nanoseconds of CLOCK_MONOTONIC.
    faults
        By nemesis, for how many seconds of it something was wrong.
    """

    start: int = 0
    end: int = 0
    faults: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """How long it was."""
        return (self.end - self.start) / 1e9

    @property
    def circumstances(self) -> str:
        """The faults in it, in words."""
        if not self.faults:
            return "with no fault in it"
        return "with " + ", ".join(
            f"{nemesis} for {seconds:.2f} s"
            for nemesis, seconds in sorted(self.faults.items())
        )


def longest_silence(result: Result) -> Silence:
    """The longest time between two operations that succeeded."""
    times = [event.time for event in result.events if event.kind == "ok"]
    start, end = max(
        pairwise(times), key=lambda pair: pair[1] - pair[0], default=(0, 0)
    )
    seconds: defaultdict[str, float] = defaultdict(float)
    for fault in result.faults:
        if fault.start < end and fault.end >= start:
            wrong = min(fault.end, end) - max(fault.start, start)
            seconds[fault.nemesis] += wrong / 1e9
    return Silence(start, end, dict(seconds))
