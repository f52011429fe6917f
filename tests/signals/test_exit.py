"""The interpreter ends while daemon threads work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.crash
@pytest.mark.parametrize("seconds", [0.5, 0.9])
def test_daemon_threads_that_write(engine, seconds):
    """P4, P5: it ends at once and in peace, and acknowledged commits are there."""
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    engine.close()
    child = subprocess.run(
        [sys.executable, "-m", "tests.signals.exit_child", engine.url, str(seconds)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    assert "Traceback" not in child.stderr
    assert "FATAL" not in child.stderr
    acknowledged = {int(line) for line in child.stdout.split()}
    there = {k for (k,) in engine.connect().execute("SELECT id FROM t").fetchall()}
    # A commit may be done before its thread could report it.
    assert acknowledged <= there
    assert len(there - acknowledged) <= 4
