"""SERIALIZABLE by row locks, among processes (P1, P3, P6)."""

from __future__ import annotations

import time

import pytest

import tique

READ = "SELECT v FROM t WHERE id = 1"
WRITE = "UPDATE t SET v = 7 WHERE id = 1"
PATIENCE = 20


@pytest.fixture
def locking(process):
    """Two processes that know of one another."""
    options = {"concurrency": "locking", "isolation_level": "SERIALIZABLE"}
    first = process(**options)
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)")
    first.commit("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'b')")
    second = process(**options)
    for each in (second, first):
        each.rows(READ)
    return first, second


def expect_waiting(process, outcome):
    end = time.monotonic() + PATIENCE
    while not process.database.locks._waits and time.monotonic() < end:
        assert not outcome.done(), outcome.result()
        time.sleep(0.001)
    assert not outcome.done()


def test_a_reader_waits_for_a_writer(locking, pool):
    """Its snapshot moves to what the other process has left: it loses nothing."""
    first, second = locking
    first.run(WRITE)
    assert second.run("SELECT v FROM t WHERE id = 2").fetchall() == [(0,)]
    outcome = pool.submit(lambda: second.run(READ).fetchall())
    expect_waiting(second, outcome)
    first.connection.commit()
    assert outcome.result(PATIENCE) == [(7,)]
    second.commit("UPDATE t SET v = 8 WHERE id = 2")


def test_a_writer_waits_for_a_reader(locking, pool):
    first, second = locking
    first.run(READ)
    outcome = pool.submit(second.run, WRITE)
    expect_waiting(second, outcome)
    first.commit("UPDATE t SET v = 8 WHERE id = 2")
    assert outcome.result(PATIENCE).rowcount == 1
    second.connection.commit()


def test_beside_a_process_that_does_not_lock(locking, process):
    """All validate: so protocols may differ from process to process."""
    first, second = locking[0], process(isolation_level="SERIALIZABLE")
    assert first.run(READ).fetchall() == [(0,)]
    assert second.run("SELECT sum(v) FROM t").fetchall() == [(0,)]
    first.commit("UPDATE t SET v = 8 WHERE id = 2")
    second.run("UPDATE t SET note = 'c' WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        second.connection.commit()
