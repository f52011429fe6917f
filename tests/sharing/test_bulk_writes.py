"""Bulk writes while other processes use the database (P1, P2, P3, P6)."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

import tique
from tests.sharing.playing import (
    ROWS,
    before_sending,
    expect_nothing_unfinished,
    hooked,
    sequencer_of,
    stopping_before_commit,
    waiting,
)
from tique.commit import shared as shared_commit
from tique_backends.postgresql.sessions.connection import (
    Connection as PostgreSQLConnection,
)


def test_a_bulk_write_beside_others(filled):
    """P1, P2."""
    first, second = filled
    before = second.run("SELECT sum(v) FROM t").fetchall()
    first.commit("UPDATE t SET v = v + 1")
    assert second.run("SELECT sum(v) FROM t").fetchall() == before
    second.connection.rollback()
    assert second.rows("SELECT sum(v) FROM t") == [(ROWS + 2,)]
    assert second.rows("SELECT v FROM t WHERE id = 17") == [(1,)]
    second.commit("UPDATE t SET v = v + 1 WHERE id = 17")
    second.commit("UPDATE t SET v = v + 1")
    assert first.rows("SELECT v FROM t WHERE id = 17") == [(3,)]
    assert first.rows("SELECT sum(v) FROM t") == [(2 * (ROWS + 2) + 1,)]


@pytest.mark.parametrize("bulk_first", [True, False])
def test_bulk_against_small_in_another_process(shared_engine, filled, bulk_first):
    """P3."""
    first, second = filled
    first.run("UPDATE t SET v = v + 1")
    second.run("UPDATE t SET v = v + 10 WHERE id = 17")
    winner, loser = (first, second) if bulk_first else (second, first)
    winner.connection.commit()
    with pytest.raises(tique.SerializationError) as refusal:
        loser.connection.commit()
    assert refusal.value.table == f"{shared_engine.schema}.t"
    for one in filled:
        assert one.rows("SELECT v FROM t WHERE id = 17") == [(1 if bulk_first else 10,)]
    expect_nothing_unfinished(first)


def test_a_commit_during_a_bulk_write(filled, pool, monkeypatch):
    """P3: it was certified by its own process before it could know."""
    first, second = filled
    first.run("UPDATE t SET v = v + 1")
    second.run("UPDATE t SET v = v + 10 WHERE id = 17")
    with waiting(monkeypatch, sequencer_of(first), "commit") as (arrived, go_on):
        bulk = pool.submit(first.connection.commit)
        assert arrived.wait(10)
        small = pool.submit(second.connection.commit)
        with pytest.raises(TimeoutError):
            small.result(0.5)
        go_on.set()
        bulk.result(10)
        with pytest.raises(tique.SerializationError):
            small.result(10)
    assert first.rows("SELECT sum(v) FROM t") == [(ROWS + 2,)]


def test_stopped_in_a_bulk_write(filled, monkeypatch):
    """P6: no row of it is ever visible to a process that reads, joins or folds."""
    first, second = filled

    def work():
        second.commit("UPDATE t SET v = 4 WHERE id = 17")
        assert second.rows("SELECT sum(v) FROM t") == [(4,)]

    first.run("UPDATE t SET v = v + 1")
    assert stopping_before_commit(monkeypatch, first, work) is not None
    with pytest.raises(tique.OperationalError, match="given up"):
        first.connection.commit()
    assert second.rows("SELECT sum(v) FROM t") == [(4,)]
    second.database.timeline._beat()
    second.connection.checkpoint()
    assert second.rows("SELECT sum(v) FROM t") == [(4,)]
    third = first.again()
    assert third.rows("SELECT sum(v) FROM t WHERE id + 0 > 0") == [(4,)]
    expect_nothing_unfinished(third)


def test_a_fold_by_another_process_after_a_bulk_write(filled):
    """P7."""
    first, second = filled
    first.commit("UPDATE t SET v = v + 1")
    second.commit("UPDATE t SET v = v + 1 WHERE id = 17")
    deadline = time.monotonic() + 10
    while any(not v.is_empty for v in second.database.catalog.all_versions()):
        for one in filled:
            one.database.timeline._beat()
        second.connection.checkpoint()
        assert time.monotonic() < deadline
    for one in filled:
        assert one.rows("SELECT sum(v) FROM t") == [(ROWS + 3,)]
        assert one.rows("SELECT v FROM t WHERE id = 17") == [(2,)]


def test_a_fence_beside_a_drop(pair, monkeypatch):
    """P6: of a second barrier, whose owner died while the first one drops a table."""
    first, second = pair
    dying = second.database.engine.shared
    cts = dying.barrier()
    dying.leave()
    engine = first.database.engine
    (table,) = first.database.catalog
    dropped = []

    def dropping(sql):
        is_clearing = sql.startswith("DELETE FROM tique.") and "_cts" in sql
        if (is_clearing or "tique.guest_fence" in sql) and not dropped:
            dropped.append(sql)
            with closing(engine.session()) as session:
                session.transact(lambda: engine.unmanage(session, table))

    before_sending(monkeypatch, dropping)
    # PostgreSQL's server clears the cache tables itself, as it is asked to fence.
    monkeypatch.setattr(
        PostgreSQLConnection, "ask", hooked(PostgreSQLConnection.ask, dropping)
    )
    engine.shared.tend()
    assert dropped
    assert first.database.timeline.position().sts >= cts


def test_more_keys_than_are_certified_at_a_time(filled, monkeypatch):
    """P3, P6: a write set that is too large goes as a bulk write, under a barrier."""
    first, second = filled
    monkeypatch.setattr(shared_commit, "MOST_KEYS", 6)
    barriers = []
    barrier = sequencer_of(first).barrier
    monkeypatch.setattr(
        sequencer_of(first), "barrier", lambda it: barriers.append(it) or barrier(it)
    )
    for number in range(20, 26):
        first.run(f"UPDATE t SET v = v + 1 WHERE id = {number}")
    first.connection.commit()
    assert barriers == []
    second.run("UPDATE t SET v = v + 10 WHERE id = 25")
    for number in range(20, 29):
        first.run(f"UPDATE t SET v = v + 1 WHERE id = {number}")
    first.connection.commit()
    assert len(barriers) == 1
    with pytest.raises(tique.SerializationError):
        second.connection.commit()
    values = "SELECT v FROM t WHERE id BETWEEN 24 AND 29 ORDER BY id"
    for one in filled:
        assert one.rows(values) == [(2,), (2,), (1,), (1,), (1,), (0,)]
    expect_nothing_unfinished(first)
