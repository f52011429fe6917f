"""Targets side by side: rounds interleaved in one run, summarised as medians."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from benchmarks.environment import describe, loaded_database, prepare_work_directory
from benchmarks.measures import Spread, percentile, spread
from benchmarks.runner import run_round
from benchmarks.targets import baseline_of, target_class
from benchmarks.targets.base import OPTIMISTIC, SERIALIZABLE, SNAPSHOT, Setup

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from benchmarks.runner import Round
    from benchmarks.workload import Workload

    _Results: TypeAlias = dict[tuple[Setup, int], list[Round]]

SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


@dataclass(frozen=True, slots=True)
class Plan:
    """The parameters of a comparison."""

    targets: tuple[str, ...]
    clients: tuple[int, ...]
    seconds: float
    warmup: float
    rounds: int
    processes: int = 0
    distance: float = 0.0
    levels: tuple[str, ...] = (SNAPSHOT,)
    protocols: tuple[str, ...] = (OPTIMISTIC,)
    history: str | None = None

    @property
    def setups(self) -> tuple[Setup, ...]:
        """Every target at every level; serializable by every protocol that it has."""
        return tuple(
            Setup(name, level, protocol)
            for name in self.targets
            for level in self.levels
            for protocol in self._protocols(name, level)
        )

    def _protocols(self, name: str, level: str) -> tuple[str | None, ...]:
        known = target_class(name).protocols
        if level != SERIALIZABLE or not known:
            return (None,)
        return tuple(each for each in self.protocols if each in known)


@dataclass(frozen=True, slots=True)
class KindSummary:
    """One kind of transaction over all rounds of a setup and number of clients."""

    committed: int
    rolled_back: int
    aborts: int
    most_attempts: int
    latency_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Summary:
    """A setup with a number of clients, over its rounds.

    `latency_ms` is over the transactions of all rounds, with retries; `anomalies` is
    the sum of theirs.
    """

    setup: Setup
    clients: int
    throughput: Spread
    abort_rate: Spread
    statements_per_transaction: Spread
    anomalies: int
    latency_ms: dict[str, float]
    kinds: dict[str, KindSummary]


@dataclass(frozen=True, slots=True)
class Ratio:
    """A setup against another one: its baseline by itself, or itself at SNAPSHOT.

    Each round is set against the other's round beside it in time: `ratio` divides the
    committed transactions per second, `more_aborts` is what is added to the share of
    attempts that are lost.
    """

    setup: Setup
    baseline: Setup
    clients: int
    ratio: Spread
    more_aborts: Spread


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that a comparison found.

    `settings` has by target its engine's version and settings, as far as it named them.
    `ratios` are to targets without tique at the same level, `costs` to the same target
    at SNAPSHOT.
    """

    workload: str
    plan: Plan
    environment: dict[str, object]
    settings: dict[str, dict[str, str]]
    summaries: list[Summary]
    ratios: list[Ratio]
    costs: list[Ratio]
    failures: list[str]


def compare(
    workload: Workload,
    plan: Plan,
    directory: Path,
    progress: Callable[[str], None],
) -> Comparison:
    """Run all rounds and summarise them.

    In every round each setup has its turn with each number of clients, next to the
    others; the order is reversed from round to round, so that the machine's changes
    over time are shared out evenly. A failure ends the run after the round it is in.

    Parameters
    ----------
    workload : Workload
        Makes the clients' transactions.
    plan : Plan
        Targets, levels, numbers of clients, lengths.
    directory : pathlib.Path
        Where databases are kept; the file system that is measured.
    progress : callable
        Called with each step.
    """
    classes = {name: target_class(name) for name in plan.targets}
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    environment = describe(directory)

    results: _Results = {}
    failures: list[str] = []
    for number in range(plan.rounds):
        order = plan.setups if number % 2 == 0 else plan.setups[::-1]
        for clients in plan.clients:
            for setup in order:
                where = f"round {number + 1}/{plan.rounds}, {setup}, {clients} clients"
                progress(where)
                found = run_round(
                    classes[setup.target](),
                    workload,
                    database,
                    clients=clients,
                    seconds=plan.seconds,
                    warmup=plan.warmup,
                    processes=plan.processes,
                    distance=plan.distance,
                    level=setup.level,
                    protocol=setup.protocol,
                    history=plan.history,
                )
                results.setdefault((setup, clients), []).append(found)
                failures += [f"{where}: {failure}" for failure in found.failures]
        if failures:
            break
    return Comparison(
        workload=workload.label,
        plan=plan,
        environment=environment,
        settings={
            each.target: results[each, plan.clients[0]][0].settings
            for each in plan.setups
        },
        summaries=[
            summarise(results[setup, clients], workload.kinds)
            for clients in plan.clients
            for setup in plan.setups
        ],
        ratios=_ratios(results, _by_itself),
        costs=_ratios(results, _at_snapshot),
        failures=failures,
    )


def latency_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of some latencies, in milliseconds."""
    ordered = sorted(seconds)
    return {name: percentile(ordered, share) * 1000 for name, share in SHARES.items()}


def summarise(rounds: list[Round], kinds: Sequence[str]) -> Summary:
    """Return the summary of a setup's rounds with one number of clients."""
    by_kind = {
        kind: [second for each in rounds for second in each.latencies[kind]]
        for kind in kinds
    }
    return Summary(
        setup=rounds[0].setup,
        clients=rounds[0].clients,
        throughput=spread(each.throughput for each in rounds),
        abort_rate=spread(each.abort_rate for each in rounds),
        statements_per_transaction=spread(
            each.statements_per_transaction for each in rounds
        ),
        anomalies=sum(each.anomalies for each in rounds),
        latency_ms=latency_ms(list(chain.from_iterable(by_kind.values()))),
        kinds={
            kind: KindSummary(
                committed=len(seconds),
                rolled_back=sum(each.rolled_back[kind] for each in rounds),
                aborts=sum(each.aborts[kind] for each in rounds),
                most_attempts=max(each.most_attempts[kind] for each in rounds),
                latency_ms=latency_ms(seconds),
            )
            for kind, seconds in by_kind.items()
        },
    )


def _by_itself(setup: Setup) -> Setup | None:
    baseline = baseline_of(setup.target)
    return None if baseline is None else Setup(baseline, setup.level)


def _at_snapshot(setup: Setup) -> Setup | None:
    return None if setup.level == SNAPSHOT else Setup(setup.target)


def _ratios(
    results: _Results, baseline_of_setup: Callable[[Setup], Setup | None]
) -> list[Ratio]:
    """Set setups against their baselines, where these were measured, too."""
    ratios = []
    for (setup, clients), rounds in results.items():
        baseline = baseline_of_setup(setup)
        if baseline is None or (baseline, clients) not in results:
            continue
        pairs = [
            (ours, theirs)
            for ours, theirs in zip(rounds, results[baseline, clients], strict=True)
            if theirs.throughput
        ]
        if pairs:
            ratios.append(
                Ratio(
                    *(setup, baseline, clients),
                    spread(
                        ours.throughput / theirs.throughput for ours, theirs in pairs
                    ),
                    spread(
                        ours.abort_rate - theirs.abort_rate for ours, theirs in pairs
                    ),
                )
            )
    return ratios
