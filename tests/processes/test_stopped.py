"""P6: a process that is stopped in its commit for longer than its lease is fenced.

Twelve rounds over all steps, by default; ``TIQUE_CRASH=full`` makes it fifty.
"""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.processes.children import ChildProcess

ROUNDS = 50 if os.environ.get("TIQUE_CRASH") == "full" else 12
STEPS = 6
"""Before and after: certify, append, finish."""
LEASE = 0.8


@pytest.mark.crash
def test_others_go_on_and_nothing_of_it_is_ever_seen(shared_engine):
    connection = shared_engine.connect()
    connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("CREATE TABLE mark (number INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO counter VALUES (1, 0), (2, 0)")
    connection.commit()
    visible = set()
    increments = 0
    with ChildProcess(
        "tests.processes.stopped_child", shared_engine.url, LEASE
    ) as child:
        child.await_lines("ready")
        for number in range(ROUNDS):
            step = number % STEPS
            before = len(child.of_kind("stopping"))
            child.write(f"{step}\n")
            child.await_lines("stopping", before + 1)
            stopped = time.monotonic()
            longest = 0.0
            while time.monotonic() < stopped + 2 * LEASE:
                started = time.monotonic()
                # The row that the stopped one writes too: once it is fenced, or done.
                for row in (2, 1):
                    connection.execute(
                        "UPDATE counter SET v = v + 1 WHERE id = %s", (row,)
                    )
                    increments += row == 1
                    connection.commit()
                longest = max(longest, time.monotonic() - started)
            seen = {n for (n,) in connection.execute("SELECT number FROM mark")}
            connection.commit()
            child.signal(signal.SIGCONT)
            outcome = child.await_lines("outcome", number + 1)
            # Only what was finished before it stopped can be committed.
            assert outcome == [str(number), "committed" if step == 5 else "aborted"]
            if step == 5:
                visible.add(number)
                increments += 1
            assert longest < LEASE + 2
            assert seen == visible
            rows = connection.execute("SELECT number FROM mark").fetchall()
            assert {n for (n,) in rows} == visible
            found = connection.execute("SELECT v FROM counter WHERE id = 1").fetchone()
            assert found == (increments,)
            connection.commit()
        child.end()
    connection.checkpoint()
    rows = connection.execute("SELECT number FROM mark").fetchall()
    assert {n for (n,) in rows} == visible
    connection.close()
    with shared_engine.connect() as again:
        rows = again.execute("SELECT number FROM mark").fetchall()
        assert {n for (n,) in rows} == visible
