"""The picture of the results shows what is in their tables now."""

from __future__ import annotations

import re

import pytest

from benchmarks import picture

pytestmark = pytest.mark.engine_free


def shown(svg):
    """What a picture shows; identifiers differ between releases of matplotlib."""
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r"(?<=#|\")\w+(?=\"|\))", "", svg)


def test_the_picture_is_of_the_present_tables():
    drawn = picture.draw(picture.RESULTS.read_text())
    assert shown(drawn) == shown(picture.PICTURE.read_text()), (
        "run: python -m benchmarks.picture"
    )


def test_a_figure_that_changes_changes_the_picture():
    text = picture.RESULTS.read_text()
    (bar, *_) = picture.bars(text, "TPC-C")
    changed = text.replace(f"| {bar.median:g} (", "| 9.87 (", 1)
    assert picture.bars(changed, "TPC-C")[0].median == 9.87
    assert shown(picture.draw(changed)) != shown(picture.draw(text))


def test_rows_without_a_ratio_are_left_out():
    text = (
        "\n## One hot row\n\n| engine | clients | mode | ratio |\n|---|---|---|---|\n"
        "| A | 8 threads | autocommit | 0.50 (0.25 to 1.00) |\n"
        "| A | 8 threads | read-write | |\n"
    )
    assert picture.bars(text, "One hot row") == [
        picture.Bar("A, 8 threads, autocommit", 0.5, 0.25, 1.0)
    ]
