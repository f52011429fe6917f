"""P3, P6: the status has the keys on which transactions met."""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tique.commit.hot_keys import HotKey


@pytest.fixture
def pair(engine):
    with engine.connect() as first, engine.connect() as second:
        first.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
        first.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
        first.commit()
        yield first, second


def test_a_conflict_is_counted_for_its_key(pair, engine):
    first, second = pair
    for connection in pair:
        (n,) = connection.execute("SELECT n FROM t WHERE id = 2").fetchone()
        connection.execute("UPDATE t SET n = %s WHERE id = 2", (n + 1,))
    first.commit()
    with pytest.raises(tique.SerializationError) as caught:
        second.commit()
    (hot,) = first.status().hot_keys
    assert hot == HotKey(caught.value.table, (2,), 1, 0)


@pytest.mark.one_duckdb
def test_an_update_computed_again_is_counted(pair, engine):
    with engine.connect() as third:
        for connection in (*pair, third):
            connection.rollback()
            connection.autocommit = True
        committer = third._database.committer
        with committer.paused(10):
            threads = [
                threading.Thread(
                    target=connection.execute,
                    args=("UPDATE t SET n = n + 1 WHERE id = 1",),
                )
                for connection in pair
            ]
            for thread in threads:
                thread.start()
            latest = time.monotonic() + 10
            while len(committer._queue) < 2 and time.monotonic() < latest:
                time.sleep(0.001)
        for thread in threads:
            thread.join()
        (hot,) = third.status().hot_keys
    assert hot.key == (1,)
    assert (hot.conflicts, hot.merges) == (0, 1)
