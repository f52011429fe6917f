"""P4, P5: the server is killed while three processes commit; nothing is lost or torn.

Two rounds, twenty in a long run.
"""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import ExitStack, contextmanager
from functools import partial

import psycopg
import pytest

import tique
from tests.effort import effort, patience
from tests.plugins.postgresql import private_cluster
from tests.processes.children import ChildProcess
from tests.processes.restarting_child import ACCOUNTS, START, connected, create
from tique_backends.monetdb.server import MonetDBServer

ROUNDS = effort(2, 20)
PROCESSES = 3


def kill(server, chance):
    server.kill()
    server.start()


def kill_session(cluster, chance):
    """Kill one of PostgreSQL's processes: it ends all others and recovers by itself."""
    with psycopg.connect(cluster.socket_url, autocommit=True) as connection:
        sessions = connection.execute(
            "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' "
            "AND pid <> pg_backend_pid() ORDER BY pid"
        ).fetchall()
        os.kill(chance.choice(sessions)[0], signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT pg_sleep(60)")


@contextmanager
def monetdb(folder):
    with MonetDBServer(folder / "server", socket=folder / "s") as server:
        yield server.url, partial(kill, server)


@contextmanager
def postgresql(folder, sequencer, how):
    with private_cluster() as cluster:
        yield f"{cluster.socket_url}&sequencer={sequencer}", partial(how, cluster)


SERVERS = {
    "monetdb": monetdb,
    "postgresql": partial(postgresql, sequencer="extension", how=kill),
    "postgresql-session": partial(postgresql, sequencer="extension", how=kill_session),
    "postgresql-plain": partial(postgresql, sequencer="plain", how=kill),
    "postgresql-plain-session": partial(
        postgresql, sequencer="plain", how=kill_session
    ),
}


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize(
    "server",
    [
        pytest.param(name, marks=getattr(pytest.mark, name.partition("-")[0]))
        for name in SERVERS
    ],
)
def test_every_acknowledged_commit_survives(server, tmp_path):
    with SERVERS[server](tmp_path) as (url, kill):
        survive(url, kill)


def survive(url, kill):
    chance = random.Random(20262)
    with tique.connect(url) as connection:
        create(connection)
    with ExitStack() as stack:
        children = [
            stack.enter_context(
                ChildProcess("tests.processes.restarting_child", url, number)
            )
            for number in range(PROCESSES)
        ]
        for child in children:
            child.await_lines("committed")
        longest = 0.0
        for _ in range(ROUNDS):
            time.sleep(chance.uniform(0.5, 2.0))
            kill(chance)
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
    with connected(url) as connection:
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
    assert longest < patience(15)
