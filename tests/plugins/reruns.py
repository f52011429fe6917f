"""Tests that get a second chance, because how long things take decides in them.

A test that waits for a lease, a thread or a server may fail on a machine that stands still
for a second. Such a failure is told (``R``), and the test is run once more. Where a test
judges histories or rows, one failure is a finding, however seldom: those of ``VERDICTS`` are
never run again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

VERDICTS = {
    "crash",
    "differential",
    "fuzz",
    "isolation",
    "jepsen",
    "poison",
    "replica",
    "rewriter",
    "sharing",
}
"""Folders of tests about what must never happen once."""

_TESTS = Path(__file__).parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.relative_to(_TESTS).parts[0] not in VERDICTS:
            item.add_marker(pytest.mark.flaky(reruns=1))
