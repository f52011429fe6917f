"""Issue 2: SIGKILL at random moments; every acknowledged commit is there afterwards.

Four rounds, fifty in a long run. One database lives through all of them, so that numbers used twice would show.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter

import pytest

from tests.crash.bank_child import ACCOUNTS, BIG, START, create
from tests.effort import effort, patience

pytestmark = pytest.mark.one_duckdb

ROUNDS = effort(4, 50)
THREADS = 6
SEED = int(os.environ.get("TIQUE_SEED", "20260"))


def work_and_kill(url, round_number, chance):
    """Let a child work for a moment, kill it; its acknowledged commits."""
    child = subprocess.Popen(
        [
            *(sys.executable, "-m", "tests.crash.bank_child"),
            *(url, str(SEED), str(round_number), str(THREADS)),
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    lines = []
    ready = threading.Event()

    def read():
        for line in child.stdout:
            lines.append(line.rstrip("\n").split(" ", 3))
            ready.set()
        ready.set()

    reader = threading.Thread(target=read)
    reader.start()
    assert ready.wait(patience(30)), "the child does not start"
    time.sleep(chance.uniform(0.3, 1.2))
    child.kill()
    reader.join(patience(10))
    errors = child.stderr.read()
    child.stderr.close()
    child.stdout.close()
    child.wait(patience(10))
    assert lines, errors
    assert lines[0][0] == "ready", (lines, errors)
    assert float(lines[0][3]) < patience(10), "recovery took too long"
    bad = [line for line in lines if line[0] in ("torn", "failed")]
    assert bad == [], errors
    return lines[1:]


class Book:
    """The acknowledged commits of all rounds."""

    def __init__(self):
        self.transfers = set()
        self.undone = set()
        self.bumps = set()
        self.last_txid = 0

    def note(self, round_number, lines):
        kinds = {"transfer": self.transfers, "undo": self.undone, "bump": self.bumps}
        txids = []
        for kind, thread, number, txid in lines:
            kinds[kind].add((round_number, int(thread), int(number)))
            txids.append(int(txid))
        assert len(set(txids)) == len(txids)
        assert min(txids, default=self.last_txid + 1) > self.last_txid, "txid reused"
        self.last_txid = max(txids, default=self.last_txid)

    def check(self, connection):
        rows = connection.execute("SELECT * FROM transfer").fetchall()
        keys = {row[:3] for row in rows}
        assert len(keys) == len(rows), "a transfer is there twice"
        assert self.transfers <= keys, "an acknowledged transfer is lost"
        undone = {row[:3] for row in rows if row[6]}
        assert self.undone <= undone, "an acknowledged undo is lost"
        entries = Counter(connection.execute("SELECT * FROM entry").fetchall())
        assert entries == Counter(keys - undone), (
            "torn, or a row without a key is doubled"
        )
        balances = dict.fromkeys(range(ACCOUNTS), START)
        for *_, source, target, amount, is_undone in rows:
            if not is_undone:
                balances[source] -= amount
                balances[target] += amount
        found = connection.execute("SELECT * FROM account").fetchall()
        assert dict(found) == balances, "an update is lost"
        bumps = connection.execute("SELECT * FROM bump").fetchall()
        assert self.bumps <= set(bumps), "an acknowledged bulk update is lost"
        assert connection.execute(
            "SELECT min(v), max(v), count(*) FROM big"
        ).fetchone() == (len(bumps), len(bumps), BIG), "a bulk update is torn"
        return len(rows)


@pytest.mark.slow
@pytest.mark.crash
def test_killed_at_random_moments(engine):
    chance = random.Random(SEED)
    with engine.connect() as connection:
        create(connection)
    book = Book()
    sts = 0
    for round_number in range(ROUNDS):
        book.note(round_number, work_and_kill(engine.url, round_number, chance))
        started = time.monotonic()
        with engine.connect() as connection:
            database = connection._database
            if database.engine.shared is None:
                assert all(v.is_empty for v in database.catalog.all_versions())
            assert database.sequencer.sts() >= sts, "a cts is used twice"
            assert time.monotonic() - started < patience(10), "no service"
            connection.execute("SELECT 1 FROM account").fetchall()
            assert connection.txid > book.last_txid, "a txid is used twice"
            count = book.check(connection)
            sts = database.sequencer.sts()
    assert count > ROUNDS, "the children hardly worked"
