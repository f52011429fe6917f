"""Targets side by side: rounds interleaved in one run, summarised as medians."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from benchmarks.environment import describe, loaded_database, prepare_work_directory
from benchmarks.measures import Spread, percentile, spread
from benchmarks.runner import run_round
from benchmarks.targets import baseline_of, target_class

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from benchmarks.runner import Round
    from benchmarks.workload import Workload

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
    level: str = "SNAPSHOT"
    history: str | None = None


@dataclass(frozen=True, slots=True)
class KindSummary:
    """One kind of transaction over all rounds of a target and number of clients."""

    committed: int
    rolled_back: int
    aborts: int
    most_attempts: int
    latency_ms: dict[str, float]


@dataclass(frozen=True, slots=True)
class Summary:
    """A target with a number of clients, over its rounds.

    `latency_ms` is over the transactions of all rounds, with retries.
    """

    target: str
    clients: int
    throughput: Spread
    abort_rate: Spread
    statements_per_transaction: Spread
    latency_ms: dict[str, float]
    kinds: dict[str, KindSummary]


@dataclass(frozen=True, slots=True)
class Ratio:
    """Committed transactions per second of a target over its baseline.

    Each round is divided by the baseline's round beside it in time.
    """

    target: str
    baseline: str
    clients: int
    ratio: Spread


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that a comparison found.

    `settings` has by target its engine's version and settings, as far as it named them.
    """

    workload: str
    plan: Plan
    environment: dict[str, object]
    settings: dict[str, dict[str, str]]
    summaries: list[Summary]
    ratios: list[Ratio]
    failures: list[str]


def compare(
    workload: Workload,
    plan: Plan,
    directory: Path,
    progress: Callable[[str], None],
) -> Comparison:
    """Run all rounds and summarise them.

    In every round each target has its turn with each number of clients, next to the
    others; the order is reversed from round to round, so that the machine's changes
    over time are shared out evenly. A failure ends the run after the round it is in.

    Parameters
    ----------
    workload : Workload
        Makes the clients' transactions.
    plan : Plan
        Targets, numbers of clients, lengths.
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

    results: dict[tuple[str, int], list[Round]] = {}
    failures: list[str] = []
    for number in range(plan.rounds):
        order = plan.targets if number % 2 == 0 else plan.targets[::-1]
        for clients in plan.clients:
            for name in order:
                where = f"round {number + 1}/{plan.rounds}, {name}, {clients} clients"
                progress(where)
                found = run_round(
                    classes[name](),
                    workload,
                    database,
                    clients=clients,
                    seconds=plan.seconds,
                    warmup=plan.warmup,
                    processes=plan.processes,
                    distance=plan.distance,
                    level=plan.level,
                    history=plan.history,
                )
                results.setdefault((name, clients), []).append(found)
                failures += [f"{where}: {failure}" for failure in found.failures]
        if failures:
            break
    return Comparison(
        workload=workload.label,
        plan=plan,
        environment=environment,
        settings={
            name: results[name, plan.clients[0]][0].settings for name in plan.targets
        },
        summaries=[
            summarise(results[name, clients], workload.kinds)
            for clients in plan.clients
            for name in plan.targets
        ],
        ratios=_ratios(results, plan),
        failures=failures,
    )


def latency_ms(seconds: Sequence[float]) -> dict[str, float]:
    """Return the percentiles of some latencies, in milliseconds."""
    ordered = sorted(seconds)
    return {name: percentile(ordered, share) * 1000 for name, share in SHARES.items()}


def summarise(rounds: list[Round], kinds: Sequence[str]) -> Summary:
    """Return the summary of a target's rounds with one number of clients."""
    by_kind = {
        kind: [second for each in rounds for second in each.latencies[kind]]
        for kind in kinds
    }
    return Summary(
        target=rounds[0].target,
        clients=rounds[0].clients,
        throughput=spread(each.throughput for each in rounds),
        abort_rate=spread(each.abort_rate for each in rounds),
        statements_per_transaction=spread(
            each.statements_per_transaction for each in rounds
        ),
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


def _ratios(results: dict[tuple[str, int], list[Round]], plan: Plan) -> list[Ratio]:
    ratios = []
    for clients in plan.clients:
        for name in plan.targets:
            baseline = baseline_of(name)
            if baseline is None or (baseline, clients) not in results:
                continue
            pairs = zip(results[name, clients], results[baseline, clients], strict=True)
            quotients = [
                ours.throughput / theirs.throughput
                for ours, theirs in pairs
                if theirs.throughput
            ]
            if quotients:
                ratios.append(Ratio(name, baseline, clients, spread(quotients)))
    return ratios
