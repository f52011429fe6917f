"""P4, P5: killed before any call to the engine, all of a step is there or nothing.

Every 23rd call, and of the many to a server every 138th; in a long run all, or every
sixth.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.crash.scenarios import SCENARIOS
from tests.effort import effort
from tests.plugins.engine import label

STRIDE = effort(23, 1)
SPARSER = {"duckdb": 1, "monetdb": 6, "postgresql": 6}


def killed(engine, tmp_path, scenario, kills, first):
    place = tmp_path if engine.name == "duckdb" else engine.place
    stride = STRIDE * SPARSER[engine.name]
    arguments = [
        label(type(engine)),
        place,
        scenario,
        str(kills),
        str(first),
        str(stride),
    ]
    finished = subprocess.run(
        [sys.executable, "-m", "tests.crash.kill_points", *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return [json.loads(line) for line in finished.stdout.splitlines()]


LACKING = {
    name: pytest.mark.written_for(["duckdb", "postgresql"], reason=reason)
    for name, reason in (
        ("copying", "MonetDB's COPY is refused"),
        ("unique indexes", "MonetDB's let duplicates in"),
    )
}


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(effort(300, 850))
@pytest.mark.parametrize(
    "scenario",
    [pytest.param(name, marks=LACKING.get(name, ())) for name in SCENARIOS],
)
def test_killed_before_a_call(engine, tmp_path, scenario):
    points = killed(engine, tmp_path, scenario, 1, 1 if STRIDE == 1 else 6)
    assert [point for point in points if point[3]] == []
    assert len(points) > 35 // STRIDE // SPARSER[engine.name]
    assert points[-1][2] == 0, "the last run is the one that was not killed"


@pytest.mark.long_only
@pytest.mark.crash
@pytest.mark.timeout(effort(300, 850))
@pytest.mark.parametrize("scenario", ["small", "bulk"])
def test_recovery_is_killed_twice_in_a_row(engine, tmp_path, scenario):
    points = killed(engine, tmp_path, scenario, 3, 1 if STRIDE == 1 else 25)
    assert [point for point in points if point[3]] == []
