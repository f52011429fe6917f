"""A picture of a run: how many operations ended how, their latencies, the faults."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from jepsen.runner import Result

_COLORS = {"ok": "tab:green", "fail": "tab:orange", "info": "tab:red"}
_BINS = 120
_MOST_POINTS = 20_000


def draw(result: Result, path: Path) -> None:
    """Draw it to a file, in the format that its name says.

    Raises
    ------
    ImportError
        If matplotlib is not installed.
    """
    from matplotlib.figure import Figure

    began = result.began
    end = (
        max((event.time for event in result.events), default=began + 1) - began
    ) / 1e9
    figure = Figure(figsize=(14, 9), layout="constrained")
    rates, latencies, faults = figure.subplots(
        3, 1, sharex=True, gridspec_kw={"height_ratios": [2, 2, 1.2]}
    )
    width = end / _BINS
    for kind, color in _COLORS.items():
        bins = Counter(
            min(int((event.time - began) / 1e9 / width), _BINS - 1)
            for event in result.events
            if event.kind == kind
        )
        rates.step(
            [number * width for number in range(_BINS)],
            [bins[number] / width for number in range(_BINS)],
            where="post",
            color=color,
            label=kind,
        )
    rates.set_ylabel("operations a second")
    rates.legend(loc="upper right")
    request = result.request
    rates.set_title(
        f"{request.workload} on {request.url.partition(':')[0]}, {request.clients} "
        f"clients, seed {request.seed}"
    )
    for kind, points in _latencies(result).items():
        step = len(points) // _MOST_POINTS + 1
        latencies.scatter(
            [x for x, _ in points[::step]],
            [y for _, y in points[::step]],
            s=2 if kind == "ok" else 8,
            color=_COLORS[kind],
            zorder=list(_COLORS).index(kind),
        )
    latencies.set_yscale("log")
    latencies.set_ylabel("seconds an operation took")
    names = sorted({fault.nemesis for fault in result.faults})
    for fault in result.faults:
        start = (fault.start - began) / 1e9
        faults.barh(
            names.index(fault.nemesis),
            max((fault.end - fault.start) / 1e9, end / 1000),
            left=start,
            height=0.7,
            color="black",
        )
    faults.set_yticks(range(len(names)), names)
    faults.set_ylim(-0.5, max(len(names), 1) - 0.5)
    faults.set_xlabel("seconds")
    faults.set_xlim(0, end)
    figure.savefig(path, dpi=110)


def _latencies(result: Result) -> dict[str, list[tuple[float, float]]]:
    """When operations ended, and how long they took."""
    begun: dict[int, int] = {}
    points: dict[str, list[tuple[float, float]]] = {kind: [] for kind in _COLORS}
    for event in result.events:
        if event.kind == "invoke":
            begun[event.process] = event.time
        else:
            seconds = (event.time - begun[event.process]) / 1e9
            points[event.kind].append(((event.time - result.began) / 1e9, seconds))
    return points
