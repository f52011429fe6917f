"""Uncommitted folds beside other processes (P1, P6, P7).

The argument is in :mod:`tique.checkpoint.uncommitted`.
"""

from __future__ import annotations

import time

import pytest

from tests.portable import numbers
from tests.staging import stage_above
from tique.checkpoint import uncommitted

SUM = "SELECT count(*), sum(v + 0) FROM t"


@pytest.fixture
def folding(process):
    """Two processes and a thousand rows in storage; the first asks its queries there."""
    first = process(uncommitted_fold_rows=0)
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    first.commit(f"INSERT INTO t SELECT number, 0 FROM {numbers(1000)}")
    first.commit("INSERT INTO u VALUES (1)")
    first.connection.checkpoint()
    first.commit("UPDATE t SET v = 1 WHERE id < 3")
    return first, process(uncommitted_fold_rows=0)


def folds(process):
    return process.database.uncommitted


def ask(process):
    """The sum, which must have been read there."""
    before = folds(process).queries
    (row,) = process.rows(SUM)
    assert folds(process).queries == before + 1
    return row


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_what_another_process_commits_is_seen(folding):
    first, second = folding
    assert ask(first) == (1000, 3)
    second.commit("UPDATE t SET v = 5 WHERE id = 2")
    assert ask(first) == (1000, 7)
    second.commit("DELETE FROM t WHERE id = 0")
    assert ask(first) == (999, 6)


def test_what_another_process_changes_by_a_large_statement(folding, monkeypatch):
    """A fold that began before it ends, and another one brings it."""
    stage_above(10, monkeypatch.setattr)
    monkeypatch.setattr(uncommitted.UncommittedFold, "_spend", lambda *_, **__: None)
    first, second = folding
    assert ask(first) == (1000, 3)
    for number in (1, 2):
        second.commit("UPDATE t SET v = v + 1")
        before = folds(first).queries
        assert first.rows(SUM) == [(1000, 3 + 1000 * number)]
        assert folds(first).queries > before
    first.commit("UPDATE t SET v = 0 WHERE id = 0")
    assert first.rows(SUM) == [(1000, 2000)]


def test_one_process_has_one_at_a_time(folding):
    """The other process uses its other form meanwhile."""
    first, second = folding
    assert ask(first) == (1000, 3)
    assert second.rows(SUM) == [(1000, 3)]
    assert folds(second).queries == 0
    first.connection.checkpoint()
    first.commit("UPDATE t SET v = 2 WHERE id = 0")
    assert ask(second) == (1000, 4)


@pytest.mark.parametrize("is_busy", [False, True])
def test_another_process_folds(folding, pool, monkeypatch, is_busy):
    """The first lets it, whether it goes on to ask or not."""
    monkeypatch.setattr(uncommitted, "_TURN", 0.3)
    first, second = folding
    assert ask(first) == (1000, 3)
    second.rows("SELECT 1 FROM t")
    for process in folding:
        process.database.timeline.advance()
    folding_there = pool.submit(second.connection.checkpoint)
    while is_busy and not folding_there.done():
        assert first.rows(SUM) == [(1000, 3)]
    folding_there.result(60)
    assert all(v.is_empty for v in second.database.catalog.all_versions())
    assert first.rows(SUM) == [(1000, 3)]
    first.commit("UPDATE t SET v = 2 WHERE id = 0")
    wait_until(lambda: first.rows(SUM) == [(1000, 4)] and folds(first).queries > 1)


@pytest.mark.parametrize(
    "change", ["ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7", "DROP TABLE t"]
)
def test_another_process_changes_the_schema(folding, change):
    first, second = folding
    assert ask(first) == (1000, 3)
    second.commit(change)
    if change.startswith("DROP"):
        second.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        second.commit("INSERT INTO t VALUES (1, 7)")
    found = (1, 7) if change.startswith("DROP") else (1000, 3)
    assert first.rows(SUM) == [found]


def test_a_lease_that_was_lost_unnoticed(folding):
    """Another process folds a table that the engine transaction has not read yet."""
    first, second = folding
    assert ask(first) == (1000, 3)
    first.commit("INSERT INTO u VALUES (2)")
    first.database.engine.shared.end_checkpoint()
    second.rows("SELECT 1 FROM u")
    for process in folding:
        process.database.timeline.advance()
    (versions,) = [
        v for v in second.database.catalog.all_versions() if v.table.name == "u"
    ]
    with second.database.timeline.checkpointing() as is_mine:
        assert is_mine
        second.database.checkpointer.fold_stable(versions)
    assert versions.is_empty
    first.database.timeline.note_folds()
    query = "SELECT sum(v + 0), (SELECT count(*) FROM u) FROM t"
    assert first.rows(query) == [(3, 2)]
    assert folds(first)._held is None


def test_a_lease_that_ran_out(folding, pool):
    """The process was stopped: others fold the rows that its engine transaction has written."""
    first, second = folding
    assert ask(first) == (1000, 3)
    first.database.engine.shared.end_checkpoint()
    first.database.timeline._off_until = time.monotonic() - 1
    second.commit("UPDATE t SET v = 9 WHERE id = 1")
    # PostgreSQL's waits for the rows.
    folding_there = pool.submit(second.connection.checkpoint)
    assert first.rows(SUM) == [(1000, 11)]
    folding_there.result(60)
    assert first.rows(SUM) == [(1000, 11)]
    assert second.rows(SUM) == [(1000, 11)]
