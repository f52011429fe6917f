"""Ctrl-C is KeyboardInterrupt in the main thread, and nothing anywhere else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.signals.child import SCENARIOS, commits, prepare, writes


@pytest.mark.crash
@pytest.mark.parametrize(
    ("scenario", "times"),
    [
        *((work.__name__, 1) for work in SCENARIOS),
        *((work.__name__, 3) for work in (writes, commits)),
    ],
)
def test_an_interrupted_main_thread(engine, scenario, times):
    """P4, P6, P8: its work is done or not done, and other threads go on.

    It may be interrupted again, several times, while it undoes its work.
    """
    prepare(engine.url)
    engine.close()
    child = subprocess.run(
        [sys.executable, "-m", "tests.signals.child", engine.url, scenario, str(times)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.split()[0] == "done"
    assert int(child.stdout.split()[1]) >= 4
