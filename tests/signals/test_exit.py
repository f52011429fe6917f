"""The interpreter ends while daemon threads work."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


def in_a_process(program, *arguments):
    return subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
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


_LEFT_OPEN = """
import sys, tique
connection = tique.connect(sys.argv[1], autocommit=True)
connection.execute("INSERT INTO t VALUES (1), (2)")
connection.execute("DELETE FROM t WHERE id = 2")
"""


@pytest.mark.crash
def test_a_connection_that_is_left_open(engine):
    """P4: it is closed in peace, and the last fold brings all rows to storage."""
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    engine.close()
    child = in_a_process(_LEFT_OPEN, engine.url)
    assert (child.returncode, child.stderr) == (0, "")
    assert engine.native().execute("SELECT id FROM t").fetchall() == [(1,)]


_MIGRATION = """
import sys, tique
connection = tique.connect(sys.argv[1])
connection.execute("BEGIN")
connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
connection.execute("INSERT INTO t VALUES (2)")
"""


@pytest.mark.crash
def test_in_the_midst_of_a_transaction_with_ddl(engine):
    """P5, P6: it ends at once, and nothing is left."""
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY)")
    engine.close()
    child = in_a_process(_MIGRATION, engine.url)
    assert (child.returncode, child.stderr) == (0, "")
    connection = engine.connect(autocommit=True)
    assert connection.execute("SELECT * FROM t").fetchall() == []
    connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
