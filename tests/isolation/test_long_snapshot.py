"""Issue 2: an old snapshot reads its state while commits and checkpoints pass.

2,000 commits, 100,000 in a long run.
"""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import pytest

import tique
from tests.effort import effort
from tests.portable import numbers

pytestmark = pytest.mark.one_duckdb

COMMITS = effort(2_000, 100_000)
ROWS = 1000
THREADS = 8


def resident():
    status = Path("/proc/self/statm")
    pages = int(status.read_text().split()[1]) if status.exists() else 0
    return pages * 4096 / 2**20


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_an_old_snapshot_among_many_commits(engine):
    writer = engine.connect(checkpoint_age=0.25, long_snapshot=None)
    writer.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    writer.execute(f"INSERT INTO t SELECT number, number FROM {numbers(ROWS)}")
    writer.commit()
    old = engine.connect()
    before = old.execute("SELECT * FROM t ORDER BY id").fetchall()
    assert before == [(i, i) for i in range(ROWS)]
    checkpointer = writer._database.checkpointer
    rounds, memory, started = checkpointer.rounds, resident(), time.monotonic()
    left = threading.Semaphore(COMMITS)
    errors = []

    def work(seed):
        chance = random.Random(seed)
        try:
            with tique.connect(engine.url) as connection:
                while left.acquire(blocking=False):
                    # Each thread has rows of its own, so that nothing conflicts.
                    key = chance.randrange(seed, ROWS, THREADS)
                    if chance.random() < 0.1:
                        connection.execute("DELETE FROM t WHERE id = %s", (key,))
                        connection.execute("INSERT INTO t VALUES (%s, -1)", (key,))
                    else:
                        connection.execute(
                            "UPDATE t SET v = v + 1 WHERE id = %s", (key,)
                        )
                    connection.commit()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(THREADS)]
    for thread in threads:
        thread.start()
    slowest, chance, reads = 0.0, random.Random(0), 0
    while any(thread.is_alive() for thread in threads):
        asked = time.monotonic()
        key = chance.randrange(ROWS)
        assert old.execute("SELECT v FROM t WHERE id = %s", (key,)).fetchone() == (key,)
        found = old.execute("SELECT sum(v), count(*) FROM t").fetchone()
        slowest = max(slowest, time.monotonic() - asked)
        assert found == (ROWS * (ROWS - 1) // 2, ROWS)
        reads += 1
        time.sleep(0.2)
    if errors:
        raise errors[0]
    seconds = time.monotonic() - started
    assert old.execute("SELECT * FROM t ORDER BY id").fetchall() == before
    print(
        f"{COMMITS} commits in {seconds:.1f} s, {checkpointer.rounds - rounds} rounds of "
        f"checkpoints, {reads} reads of the old snapshot, slowest {slowest:.2f} s, "
        f"{resident() - memory:.0f} MB grown"
    )
    assert checkpointer.rounds > rounds
    old.rollback()
    while not all(v.is_empty for v in writer._database.catalog.all_versions()):
        writer.checkpoint()
    newest = writer.execute("SELECT count(*), sum(v) FROM t").fetchone()
    assert newest[0] == ROWS
    assert old.execute("SELECT count(*), sum(v) FROM t").fetchone() == newest
