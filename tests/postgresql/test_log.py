"""P4, P5, P6: the role of the log after a crash and when it is pruned."""

from __future__ import annotations

import time
from contextlib import closing

import psycopg
import pytest

ROWS = [(1, "a"), (2, None)]


@pytest.fixture
def native(database):
    with closing(psycopg.connect(database.place, autocommit=True)) as connection:
        yield connection


@pytest.fixture
def connection(database):
    """Rows that are in the log, and nowhere else."""
    connection = database.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s)", ROWS)
    connection.commit()
    return connection


def cached(native):
    rows = native.execute("SELECT id, v FROM tique.tique_cache_1 ORDER BY id, v")
    return rows.fetchall()


def replay(connection):
    engine = connection._database.engine
    (table,) = connection._database.catalog.by_id().values()
    with closing(engine.session()) as session:
        engine.replay(session, table)


def test_replay_brings_what_is_missing_and_nothing_twice(connection, native):
    assert cached(native) == []
    for _ in range(2):
        replay(connection)
        assert cached(native) == ROWS


def test_replay_leaves_out_what_is_fenced(connection, native):
    native.execute("INSERT INTO tique.fences SELECT max(cts) FROM tique.log")
    replay(connection)
    assert cached(native) == []


def test_a_fenced_entry_is_no_outcome_when_it_is_pruned(connection, native):
    engine = connection._database.engine
    ((last,),) = native.execute("SELECT max(cts) FROM tique.log").fetchall()
    fenced, finished = last + 1, last + 2
    for cts in (fenced, finished):
        native.execute(
            "INSERT INTO tique.log VALUES (%s, %s, %s, '[{}]')",
            (cts, cts + 7000, time.time_ns() // 1000),
        )
    native.execute("INSERT INTO tique.fences VALUES (%s)", (fenced,))
    with closing(engine.session()) as session:
        engine.prune_log(session, finished, 3600)
        assert engine.find_commit(session, fenced + 7000) is None
        assert engine.find_commit(session, finished + 7000) == finished
    assert native.execute("SELECT * FROM tique.log").fetchall() == []
