"""P1, P3, P6: a transaction comes to a contested row in its turn, with a newer snapshot."""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.effort import patience
from tique.commit import turns

pytestmark = pytest.mark.one_duckdb

READ = "SELECT n FROM t WHERE id = 1"


@pytest.fixture
def contested(engine, monkeypatch):
    """A function that lets two transactions meet at the row 1, and changes more beside."""
    monkeypatch.setattr(turns, "_CONTESTED", 600.0)
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, m INTEGER)"
        )
        connection.execute("CREATE TABLE g (a INTEGER, b INTEGER, PRIMARY KEY (a, b))")
        connection.execute("INSERT INTO t VALUES (1, 0, 0), (2, 0, 0)")
        connection.execute("INSERT INTO g VALUES (1, 1), (2, 1)")

    def meet(*more):
        with engine.connect() as winner, engine.connect() as loser:
            for connection in (winner, loser):
                (n,) = connection.execute(READ).fetchone()
                connection.execute("UPDATE t SET n = %s WHERE id = 1", (n + 1,))
            for sql in more:
                winner.execute(sql)
            winner.commit()
            with pytest.raises(tique.SerializationError):
                loser.commit()

    # The database stays open, and knows what is contested.
    with engine.connect():
        yield meet


def value(connection, sql=READ):
    return connection.execute(sql).fetchone()[0]


M_OF_2 = "SELECT m FROM t WHERE id = 2"
CHANGE_N_OF_2 = "UPDATE t SET n = 9 WHERE id = 2"
CHANGE_M_OF_2 = "UPDATE t SET m = 9 WHERE id = 2"


@pytest.mark.parametrize(
    ("seen", "change", "moves"),
    [
        pytest.param("SELECT 1", CHANGE_M_OF_2, True, id="nothing"),
        pytest.param(M_OF_2, CHANGE_N_OF_2, True, id="another column"),
        pytest.param(M_OF_2, CHANGE_M_OF_2, False, id="a column"),
        pytest.param(
            "SELECT m FROM t WHERE id = 3",
            "INSERT INTO t VALUES (3, 0, 0)",
            False,
            id="no row",
        ),
        pytest.param(
            "SELECT count(*) FROM g WHERE a = 1",
            "INSERT INTO g VALUES (1, 2)",
            False,
            id="a group",
        ),
        pytest.param(
            "SELECT sum(b) FROM g", "DELETE FROM g WHERE a = 2", False, id="a table"
        ),
        pytest.param("SELECT sum(b) FROM g", CHANGE_M_OF_2, True, id="another table"),
        pytest.param("SELECT sum(m) FROM t", CHANGE_M_OF_2, False, id="the table"),
    ],
)
@pytest.mark.parametrize("folded", [False, True], ids=["recent", "folded"])
def test_the_snapshot_moves_if_what_was_seen_is_the_same(
    engine, contested, seen, change, moves, folded
):
    with engine.connect() as connection:
        before = connection.execute(seen).fetchall()
        contested(change)
        if folded:
            connection.checkpoint()
        assert value(connection) == moves
        # P1: all of it is one snapshot, whichever it is.
        assert connection.execute(seen).fetchall() == before
        connection.execute("UPDATE t SET n = 100 WHERE id = 1")
        if moves:
            connection.commit()
            assert value(connection) == 100
        else:
            with pytest.raises(tique.SerializationError):
                connection.commit()


def test_it_stays_after_a_write(engine, contested):
    with engine.connect() as connection:
        connection.execute("UPDATE t SET m = 1 WHERE id = 2")
        contested()
        assert value(connection) == 0


def test_a_result_that_is_not_fetched_yet(engine, contested):
    with engine.connect() as connection:
        cursor = connection.cursor()
        cursor.execute("SELECT n FROM t ORDER BY id")
        contested()
        assert value(connection) == 0
        assert cursor.fetchall() == [(0,), (0,)]


def test_read_committed(engine, contested):
    with engine.connect(isolation_level="READ COMMITTED") as connection:
        connection.execute("SELECT 1").fetchall()
        contested()
        n = value(connection)
        assert n == 1
        connection.execute("UPDATE t SET n = %s WHERE id = 1", (n + 1,))
        connection.commit()
        assert value(connection) == 2


def waits(engine, other, sql, seconds):
    """How long a statement takes while another transaction has come to the row."""
    with engine.connect() as holder:
        value(holder)
        holder.execute("UPDATE t SET n = n + 1 WHERE id = 1")
        timer = threading.Timer(seconds, holder.commit)
        timer.start()
        started = time.monotonic()
        other.execute(sql)
        other.commit()
        lasted = time.monotonic() - started
        timer.join()
        return lasted


def test_a_later_one_waits(engine, contested, monkeypatch):
    for name in ("_SHORTEST_TURN", "_LONGEST_TURN"):
        monkeypatch.setattr(turns, name, patience(20))
    with engine.connect() as other:
        contested()
        assert waits(engine, other, READ, 0.5) > 0.05
        # Its transactions do not write the row: it is not worth it.
        assert waits(engine, other, READ, 1) < 0.8
        assert waits(engine, other, "SELECT m FROM t WHERE id = 1", 1) < 0.8
        assert waits(engine, other, "UPDATE t SET m = m + 1 WHERE id = 1", 1) < 0.8
        assert waits(engine, other, "SELECT n FROM t WHERE id = 2", 1) < 0.8


@pytest.fixture
def jobs(engine, monkeypatch):
    """Queues at which a commit has just been lost."""
    for name in ("_CONTESTED", "_SHORTEST_TURN", "_LONGEST_TURN"):
        monkeypatch.setattr(turns, name, patience(20))
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE job (queue INTEGER, id INTEGER, done INTEGER, PRIMARY KEY (queue, id))"
        )
        connection.execute("CREATE TABLE task (id INTEGER PRIMARY KEY, done INTEGER)")
        for id in range(1, 6):
            connection.execute("INSERT INTO job VALUES (1, %s, 0)", (id,))
            connection.execute("INSERT INTO task VALUES (%s, 0)", (id,))
    # The database stays open, and knows what is contested.
    with engine.connect():
        yield


FIRST_JOB = "SELECT id FROM job WHERE queue = 1 ORDER BY id LIMIT 1"
LEAST_JOB = "SELECT min(id) FROM job WHERE queue = 1"
OPEN_TASK = "SELECT id FROM task WHERE done = 0 ORDER BY id LIMIT 1"
REMOVE = "DELETE FROM job WHERE queue = 1 AND id = %s"
FINISH = "UPDATE task SET done = 1 WHERE id = %s"


@pytest.mark.parametrize(
    ("choose", "take"),
    [(FIRST_JOB, REMOVE), (LEAST_JOB, REMOVE), (OPEN_TASK, FINISH)],
    ids=["first", "least", "open"],
)
def test_the_first_of_a_queue(engine, jobs, choose, take):
    with engine.connect() as one, engine.connect() as other:
        for connection in (one, other):
            # The engine has said what types the query has.
            value(connection, choose)
            connection.rollback()
        for connection in (one, other):
            connection.execute(take, (value(connection, choose),))
        one.commit()
        with pytest.raises(tique.SerializationError):
            other.commit()
        other.close()

        one.execute(take, (value(one, choose),))
        timer = threading.Timer(0.5, one.commit)
        timer.start()
        with engine.connect() as next_one:
            job = value(next_one, choose)
            next_one.execute(take, (job,))
            # P3: it would lose, had it not waited.
            next_one.commit()
        timer.join()
        assert job == 3


def test_a_count_of_a_queue_does_not_wait(engine, jobs):
    with engine.connect() as one, engine.connect() as other:
        for connection in (one, other):
            value(connection, FIRST_JOB)
            connection.rollback()
        for connection in (one, other):
            connection.execute(REMOVE, (value(connection, FIRST_JOB),))
        one.commit()
        with pytest.raises(tique.SerializationError):
            other.commit()
        other.close()
        assert value(one, FIRST_JOB) == 2
        with engine.connect() as third:
            started = time.monotonic()
            assert value(third, "SELECT count(*) FROM job WHERE queue = 1") == 4
            assert time.monotonic() - started < patience(5)


def test_the_wait_ends_with_the_turn(engine, contested):
    with engine.connect() as other:
        contested()
        assert waits(engine, other, READ, 2) < 1.5
