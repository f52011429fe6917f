"""P4, P5: the server is killed while three processes commit; nothing is lost or torn.

Five rounds, by default; ``TIQUE_CRASH=full`` makes it twenty.
"""

from __future__ import annotations

import os
import random
import time
from contextlib import ExitStack

import pytest

import tique
from tests.processes.children import ChildProcess
from tests.processes.restarting_child import ACCOUNTS, START, create
from tique_backends.monetdb.server import MonetDBServer

ROUNDS = 20 if os.environ.get("TIQUE_CRASH") == "full" else 5
PROCESSES = 3


@pytest.fixture
def server(tmp_path):
    server = MonetDBServer(tmp_path / "server", socket=tmp_path / "s")
    server.start()
    yield server
    server.stop()


@pytest.mark.crash
def test_every_acknowledged_commit_survives(server):
    chance = random.Random(20262)
    with tique.connect(server.url) as connection:
        create(connection)
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                ChildProcess("tests.processes.restarting_child", server.url, number)
            )
            for number in range(PROCESSES)
        ]
        for child in children:
            child.await_lines("committed")
        longest = 0.0
        for _ in range(ROUNDS):
            time.sleep(chance.uniform(0.5, 2.0))
            server.kill()
            server.start()
            started = time.monotonic()
            for child in children:
                child.await_lines("committed", len(child.of_kind("committed")) + 5)
            longest = max(longest, time.monotonic() - started)
        for child in children:
            child.end()
    for child in children:
        assert child.of_kind("failed") == [], child.errors
        assert child.of_kind("torn") == []
        assert len(child.of_kind("again")) >= ROUNDS
    facts = {kind: set() for kind in ("begun", "committed", "aborted")}
    for process, child in enumerate(children):
        for kind, found in facts.items():
            found |= {(process, int(number)) for (number,) in child.of_kind(kind)}
    unknown = facts["begun"] - facts["committed"] - facts["aborted"]
    print(
        f"{len(facts['committed'])} transfers, {len(unknown)} unknown, {longest=:.1f} s"
    )
    assert unknown == set()
    with tique.connect(server.url) as connection:
        rows = connection.execute("SELECT process, number FROM transfer").fetchall()
        balances = dict(connection.execute("SELECT id, balance FROM account"))
        moved = connection.execute("SELECT source, target, amount FROM transfer")
        expected = dict.fromkeys(range(ACCOUNTS), START)
        for source, target, amount in moved:
            expected[source] -= amount
            expected[target] += amount
    assert len(set(rows)) == len(rows)
    assert set(rows) == facts["committed"]
    assert balances == expected
    assert longest < 15
