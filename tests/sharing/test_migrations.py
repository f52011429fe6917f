"""Transactions with DDL beside other processes (P1, P3, P5, P9)."""

from __future__ import annotations

import pytest

import tique
from tests.sharing.playing import expect_nothing_unfinished

WRITES = (
    "CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)",
    "INSERT INTO u VALUES (1, 7)",
    "UPDATE t SET v = 5 WHERE id = 2",
)
ALTERS = ("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 3", "UPDATE t SET w = 4")


def run(process, *statements):
    for statement in statements:
        process.run(statement)


def knows(process, table):
    try:
        process.rows(f"SELECT * FROM {table}")
    except tique.ProgrammingError:
        process.connection.rollback()
        return False
    return True


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
def test_all_of_it_at_once(pair, process, ends):
    """P2, P5: for a process that was there, and for one that comes meanwhile."""
    first, second = pair
    run(first, "BEGIN", *WRITES)
    third = process()
    for other in (second, third):
        assert not knows(other, "u")
        assert other.rows("SELECT v FROM t ORDER BY id") == [(0,), (0,)]
    run(first, *ALTERS, ends)
    for other in (first, second, third, process()):
        if ends == "COMMIT":
            assert other.rows("SELECT * FROM u") == [(1, 7)]
            assert other.rows("SELECT v, w FROM t ORDER BY id") == [(0, 4), (5, 4)]
        else:
            assert not knows(other, "u")
            assert other.rows("SELECT v FROM t ORDER BY id") == [(0,), (0,)]
    second.commit("INSERT INTO t (id, v) VALUES (3, 3)")
    assert first.rows("SELECT v FROM t WHERE id = 3") == [(3,)]
    expect_nothing_unfinished(first)


@pytest.mark.parametrize("change", ["UPDATE t SET v = 9 WHERE id = 2", ALTERS[0]])
def test_another_process_commits_first(pair, change):
    """P3, P9: a key that it has written, or to a table that it alters."""
    first, second = pair
    second.run("UPDATE t SET v = 1 WHERE id = 2")
    run(first, "BEGIN", WRITES[0], WRITES[1], change)
    second.connection.commit()
    with pytest.raises(tique.SerializationError):
        first.connection.commit()
    for one in pair:
        assert not knows(one, "u")
        assert one.rows("SELECT * FROM t ORDER BY id") == [(1, 0, "a"), (2, 1, "b")]
    run(first, "BEGIN", WRITES[0], change)
    first.connection.commit()
    assert knows(second, "u")
    expect_nothing_unfinished(first)


def test_it_commits_first(pair):
    """P9: a writer by the old definition runs again, though it wrote before."""
    first, second = pair
    second.run("UPDATE t SET v = 1 WHERE id = 2")
    run(first, "BEGIN", *ALTERS, "COMMIT")
    with pytest.raises(tique.SerializationError):
        second.connection.commit()
    second.commit("UPDATE t SET v = 1 WHERE id = 2")
    assert first.rows("SELECT v, w FROM t ORDER BY id") == [(0, 4), (1, 4)]


def test_an_older_snapshot_elsewhere(pair):
    """P1: it gets no rows of a table that came with them."""
    first, second = pair
    assert second.run("SELECT v FROM t WHERE id = 2").fetchall() == [(0,)]
    run(first, "BEGIN", *WRITES, "COMMIT")
    second.database.timeline.catch_up()
    assert second.run("SELECT v FROM t WHERE id = 2").fetchall() == [(0,)]
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        second.run("SELECT * FROM u")
    second.connection.rollback()
    assert second.rows("SELECT * FROM u") == [(1, 7)]


def test_nothing_is_folded_meanwhile(pair):
    """P1, P7: what the engine transaction's snapshot has is what its statements look for."""
    first, second = pair
    second.commit("UPDATE t SET v = v + 1")
    run(first, "BEGIN", *WRITES[:2])
    second.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    second.database.checkpointer.checkpoint()
    assert second.database.catalog.caches()
    assert first.run("SELECT sum(v) FROM t").fetchall() == [(2,)]
    first.run("COMMIT")
    assert first.rows("SELECT sum(v) FROM t") == [(3,)]


@pytest.mark.written_for(["postgresql"], reason="row locks of processes are its own")
def test_a_row_that_another_process_has_locked(pair):
    """P3: it is not written before the lock is given back."""
    first, second = pair
    second.run("SELECT v FROM t WHERE id = 2 FOR UPDATE").fetchall()
    first.connection.lock_timeout = 0.1
    run(first, "BEGIN", *WRITES)
    with pytest.raises(tique.OperationalError) as caught:
        first.connection.commit()
    assert caught.value.sqlstate == "55P03"
    assert not knows(first, "u")
    second.connection.rollback()
    run(first, "BEGIN", *WRITES, "COMMIT")
    assert second.rows("SELECT v FROM t WHERE id = 2") == [(5,)]
