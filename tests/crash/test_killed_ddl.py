"""P5, P4: a process that is killed at a call of the engine leaves all of its DDL, or nothing.

Every kind, by itself and in a transaction, at some calls; in a long run at each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.crash.definitions import cases
from tests.effort import effort
from tests.plugins.engine import label


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(effort(300, 850))
@pytest.mark.parametrize(("kind", "is_within"), cases(effort(12, 1)))
def test_killed_at_a_call(engine, tmp_path, kind, is_within):
    place = tmp_path if engine.name == "duckdb" else engine.place
    arguments = (label(type(engine)), place, kind.name, is_within, effort(2, 0))
    finished = subprocess.run(
        [sys.executable, "-m", "tests.crash.killed_ddl", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    points = [json.loads(line) for line in finished.stdout.splitlines()]
    assert [point for point in points if point[3]] == []
    assert [point for point in points if point[2] == -9]
