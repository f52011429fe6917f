"""What each part of the store is worth: throughput with everything, and without it.

A part is switched off by the policy alone (:mod:`tique.store.policy`): its capacity is
nothing.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from benchmarks.environment import loaded_database, prepare_work_directory
from benchmarks.measures import Spread, spread
from benchmarks.runner import run_round
from benchmarks.targets import target_class
from tique.database.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from benchmarks.workload import Workload
    from tique.store.policy import CachePolicy

_OFF: Mapping[str, Mapping[str, Any]] = {
    "rows": {"rows": 0},
    "ranges": {"bytes": 0},
    "tails": {"tail_rows": 0},
}

VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "everything": {},
    **{f"without {part}": changes for part, changes in _OFF.items()},
    "without any of it": {
        k: v for changes in _OFF.values() for k, v in changes.items()
    },
}
"""What is run, and what the policy has otherwise."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One variant with one number of clients.

    Attributes
    ----------
    throughput : Spread
        Committed transactions per second, over the rounds.
    share : float
        Its median by that of everything.
    """

    name: str
    clients: int
    throughput: Spread
    share: float


@contextmanager
def policy(changes: Mapping[str, Any]) -> Iterator[None]:
    """Have databases opened with another policy, in this process."""
    genuine = Settings.policy

    def changed(self: Settings) -> CachePolicy:
        return replace(genuine(self), **changes)

    Settings.policy = changed  # type: ignore[method-assign]
    try:
        yield
    finally:
        Settings.policy = genuine  # type: ignore[method-assign]


def measure_ablation(
    workload: Workload,
    target: str,
    clients: tuple[int, ...],
    *,
    seconds: float,
    warmup: float,
    rounds: int,
    directory: Path,
    progress: Callable[[str], None],
) -> list[Variant]:
    """Run all variants in turns, each with its own copy of the database.

    Raises
    ------
    RuntimeError
        The database was not as it should be at the end of a round.
    """
    prepare_work_directory(directory)
    progress(f"loading {workload.label}")
    database = loaded_database(workload, directory)
    found: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds):
        order = list(VARIANTS) if number % 2 == 0 else list(VARIANTS)[::-1]
        for count in clients:
            for name in order:
                progress(f"round {number + 1}/{rounds}, {name}, {count} clients")
                with policy(VARIANTS[name]):
                    outcome = run_round(
                        target_class(target)(),
                        workload,
                        database,
                        clients=count,
                        seconds=seconds,
                        warmup=warmup,
                        processes=0,
                        distance=0.0,
                    )
                if outcome.failures:
                    raise RuntimeError("; ".join(outcome.failures))
                found.setdefault((name, count), []).append(outcome.throughput)
    variants = []
    for (name, count), each in found.items():
        whole = spread(found["everything", count]).median
        measured = spread(each)
        variants.append(Variant(name, count, measured, measured.median / whole))
    return variants
