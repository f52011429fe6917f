"""P1, P2, P4, P6, P9: eight processes on one bank, two of which are killed all the time.

Where the server has a process per connection, some of these are ended too, at random.
Six seconds, a minute in a long run.
"""

from __future__ import annotations

import random
import time
from contextlib import ExitStack

import pytest

from tests.effort import effort, patience
from tests.processes.bank_child import ACCOUNTS, START, create
from tests.processes.children import ChildProcess

SECONDS = effort(6, 60)
PROCESSES = 8
THREADS = 4
PATIENCE = 2.0


@pytest.mark.crash
def test_some_are_killed(shared_engine):
    chance = random.Random(20261)
    with shared_engine.connect() as connection:
        create(connection)
    with ExitStack() as stack:

        def start(number):
            return stack.enter_context(
                ChildProcess("tests.processes.bank_child", shared_engine.url, number)
            )

        running = [start(number) for number in range(PROCESSES)]
        for child in running:
            child.await_lines("ready")
        everyone = list(running)
        numbers = list(range(PROCESSES))
        ended = 0
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            time.sleep(chance.uniform(1, 2))
            ended += shared_engine.end_sessions(chance, 2)
            time.sleep(chance.uniform(0, 1))
            victim = chance.randrange(2)
            running[victim].kill()
            number = len(everyone)
            running[victim] = start(number)
            numbers[victim] = number
            everyone.append(running[victim])
        for child in running:
            child.end()
    for child in running:
        assert child.of_kind("failed") == [], child.errors
    assert [child.of_kind("torn") for child in everyone if child.of_kind("torn")] == []
    slowest = [float(s) for child in everyone for (s,) in child.of_kind("slow")]
    assert max(slowest, default=0) < patience(PATIENCE)
    acknowledged = {
        (process, int(number))
        for process, child in enumerate(everyone)
        for (number,) in child.of_kind("committed")
    }
    begun = {
        (process, int(number))
        for process, child in enumerate(everyone)
        for (number,) in child.of_kind("begun")
    }
    again = sum(len(child.of_kind("again")) for child in everyone)
    defined = sum(len(child.of_kind("defined")) for child in everyone)
    print(
        f"{len(acknowledged)} transfers, {defined} tables, "
        f"{len(everyone) - PROCESSES} kills, {ended} sessions ended, "
        f"{again} again, {slowest=}"
    )
    # No thread loses a connection otherwise.
    assert again <= ended * THREADS
    assert len(acknowledged) > 20 * SECONDS
    assert defined > 0
    with shared_engine.connect() as connection:
        rows = connection.execute("SELECT process, number FROM transfer").fetchall()
        total = connection.execute("SELECT sum(balance) FROM account").fetchone()
    assert len(set(rows)) == len(rows)
    assert acknowledged <= set(rows), "an acknowledged transfer is lost"
    assert set(rows) <= begun
    assert total == (ACCOUNTS * START,)
