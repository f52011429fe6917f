"""P6: locks of a process that is stopped end with its lease, in whatever state it is.

The holder is stopped by SIGSTOP; another process has the row within the lease and a bound. When
the holder runs again it learns that it has lost what it had, and nothing of it is there.
"""

from __future__ import annotations

import signal
import time

import pytest

import tique
from tests.effort import effort, patience
from tests.processes.children import ChildProcess
from tests.processes.locking_child import LOCK, STATES

ROUNDS = effort(1, 4)
LEASE = 1.0
BOUND = 3.0
"""Seconds behind the lease until the row is another's."""

FREE = ("idle", "idle_in_transaction")
LOST = ("08006", "40001")
"""The SQLSTATEs when the process was given up, or its locks were lost."""


def locked(connection, row):
    """Lock a row, as often as it takes; how long it took."""
    started = time.monotonic()
    while True:
        try:
            connection.execute(LOCK, [row]).fetchall()
        except tique.OperationalError as error:
            if error.sqlstate != "55P03":
                raise
            connection.rollback()
            assert time.monotonic() - started < LEASE + patience(2 * BOUND)
            continue
        return time.monotonic() - started


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.parametrize("state", STATES)
def test_the_row_is_free_with_the_lease(shared_engine, state):
    connection = shared_engine.connect(lock_timeout=0.5)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (9, 0)")
    connection.commit()
    blocker = shared_engine.connect()
    with ChildProcess(
        "tests.processes.locking_child", shared_engine.url, LEASE
    ) as child:
        child.await_lines("ready")
        for number in range(ROUNDS):
            if state == "waiting":
                blocker.execute(LOCK, [3]).fetchall()
            child.write(f"{state}\n")
            child.await_lines("stopping", number + 1)
            child.signal(signal.SIGSTOP)
            # The place in the queue goes with the lease, too.
            blocker.commit()
            assert locked(connection, 1) < LEASE + patience(BOUND)
            assert locked(connection, 3) < LEASE + patience(BOUND)
            connection.execute("UPDATE t SET v = v + 10 WHERE id IN (1, 3)")
            connection.commit()
            seen = connection.execute("SELECT v FROM t WHERE id = 9").fetchone()
            connection.commit()
            child.signal(signal.SIGCONT)
            child.write("\n")
            (outcome,) = child.await_lines("outcome", number + 1)
            # One that had nothing to lose may commit nothing.
            assert outcome in (("committed", *LOST) if state in FREE else LOST)
            assert seen == (0,)
            assert child.await_lines("again", number + 1) == ["0"]
        child.end()
    rows = connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()
    assert rows == [(1, 10 * ROUNDS), (2, 0), (3, 10 * ROUNDS), (9, 0)]
