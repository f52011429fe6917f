"""A database's metrics in the text format that Prometheus reads.

The format is that of https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique.database.metrics import METRICS, PHASES, PHASES_HELP, phases

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tique.database.metrics import Metric
    from tique.database.status import Status

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


def exposition(status: Status) -> str:
    """The text that a scrape gets.

    Parameters
    ----------
    status
        The state; it is this process's where it says so.
    """
    lines = [line for metric in METRICS for line in _lines(metric, status)]
    return "".join(f"{line}\n" for line in [*lines, *_histogram(status)])


def _lines(metric: Metric, status: Status) -> Iterator[str]:
    name = f"tique_{metric.name}"
    if metric.unit == "s":
        name += "_seconds"
    if metric.kind == "counter":
        name += "_total"
    yield from _heading(name, metric.kind, metric.help)
    for labels, value in metric.samples(status):
        yield _sample(name, labels, value)


def _histogram(status: Status) -> Iterator[str]:
    name = f"tique_{PHASES}_seconds"
    yield from _heading(name, "histogram", PHASES_HELP)
    for labels, phase in phases(status):
        for bound, count in phase.buckets:
            yield _sample(f"{name}_bucket", {**labels, "le": f"{bound!r}"}, count)
        yield _sample(f"{name}_bucket", {**labels, "le": "+Inf"}, phase.count)
        yield _sample(f"{name}_sum", labels, phase.seconds)
        yield _sample(f"{name}_count", labels, phase.count)


def _heading(name: str, kind: str, help_: str) -> Iterator[str]:
    yield f"# HELP {name} {help_}"
    yield f"# TYPE {name} {kind}"


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    shown = ",".join(
        f'{label}="{text.translate(_ESCAPES)}"' for label, text in labels.items()
    )
    return f"{name}{{{shown}}} {value:.17g}"
