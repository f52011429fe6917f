"""Draws the ratios in ``RESULTS.md`` as ``docs/results.svg``.

``python -m benchmarks.picture`` after a change of the results. No figure is in this module;
the same tables make the same file, but for what differs between releases of matplotlib.
"""

from __future__ import annotations

import io
import re
from dataclasses import dataclass
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
PICTURE = ROOT / "docs" / "results.svg"

_DRAWN = {
    "TPC-C": "{engine}, clients: {clients}",
    "One hot row": "{engine}, {clients}, {mode}",
}
"""The tables, by their headings, and how their columns name a row."""

_NUMBER = re.compile(r"\d+\.\d+")
_FASTER, _SLOWER = "#2a7f62", "#b5483a"


@dataclass(frozen=True)
class Bar:
    """A row of a table that has a ratio to the engine by itself."""

    label: str
    median: float
    lowest: float
    highest: float


def rows(text: str, heading: str) -> list[dict[str, str]]:
    """Return the first table below a heading, a dictionary per row."""
    below = text.split(f"\n## {heading}\n", 1)[1]
    lines = re.findall(r"(?:^\|.*\|\n)+", below, re.MULTILINE)[0].splitlines()
    cells = [[cell.strip() for cell in line[1:-1].split("|")] for line in lines]
    columns, _, *found = cells
    return [dict(zip(columns, row, strict=True)) for row in found]


def bars(text: str, heading: str) -> list[Bar]:
    """Return a table's ratios, from top to bottom."""
    found = []
    for row in rows(text, heading):
        ratio = [float(number) for number in _NUMBER.findall(row["ratio"])]
        if ratio:
            label = _DRAWN[heading].format_map(row)
            found.append(Bar(label, ratio[0], min(ratio), max(ratio)))
    return found


def draw(text: str) -> str:
    """Draw the results' ratios; the SVG's text."""
    parts = {heading: bars(text, heading) for heading in _DRAWN}
    heights = [len(part) for part in parts.values()]
    with matplotlib.rc_context(
        {"svg.hashsalt": "tique", "svg.fonttype": "none", "font.size": 9}
    ):
        figure = Figure(figsize=(8, 0.27 * sum(heights) + 1.4), layout="constrained")
        places = figure.subplots(
            len(parts), sharex=True, squeeze=False, height_ratios=heights
        )
        for axes, (heading, part) in zip(places.flat, parts.items(), strict=True):
            errors = (
                [bar.median - bar.lowest for bar in part],
                [bar.highest - bar.median for bar in part],
            )
            axes.barh(
                [bar.label for bar in part],
                [bar.median - 1 for bar in part],
                left=1,
                xerr=errors,
                color=[_FASTER if bar.median >= 1 else _SLOWER for bar in part],
                error_kw={"linewidth": 0.8},
            )
            for place, bar in enumerate(part):
                axes.annotate(
                    f"{bar.median:g}",
                    (max(bar.highest, 1), place),
                    (4, 0),
                    textcoords="offset points",
                    va="center",
                )
            axes.set_xscale("log")
            axes.set_xlim(0.1, 40)
            axes.set_xticks([0.1, 0.2, 0.5, 1, 2, 5, 10, 20], minor=False)
            axes.set_xticks([], minor=True)
            axes.xaxis.set_major_formatter("{x:g}")
            axes.axvline(1, color="grey", linewidth=0.8)
            axes.invert_yaxis()
            axes.set_title(heading, loc="left", fontsize=10)
            axes.spines[["top", "right"]].set_visible(False)
        axes.set_xlabel("tique's throughput, as a multiple of the engine's own")
        target = io.StringIO()
        figure.savefig(target, format="svg", metadata={"Date": None, "Creator": None})
    return re.sub(r"[ \t]+$", "", target.getvalue(), flags=re.MULTILINE)


if __name__ == "__main__":
    PICTURE.write_text(draw(RESULTS.read_text()))
