"""P6: an interrupted import is done, or can be done again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.effort import effort

_CHILD = """
import signal, sys, tique

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, float(sys.argv[1]))
try:
    tique.connect
except KeyboardInterrupt:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
tique.connect
"""


@pytest.mark.engine_free
@pytest.mark.parametrize("moment", range(effort(6, 60)))
def test_the_driver_is_there_afterwards(moment):
    seconds = 0.02 + moment * 0.6 / effort(6, 60)
    subprocess.run(
        [sys.executable, "-c", _CHILD, str(seconds)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        timeout=60,
    )
