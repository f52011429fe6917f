"""READ COMMITTED: a change waits for the one before it, and is made of its row (P3, P6, P8)."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import pytest

import tique
from tests.effort import effort

LEVEL = "READ COMMITTED"
ADD = "UPDATE t SET n = abs(n) + 1 WHERE id = 1"
"""It does not merge."""
PATIENCE = 30


@pytest.fixture
def table(engine):
    """Three rows."""
    with engine.connect(autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, note VARCHAR(9))"
        )
        connection.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')")
        connection.execute("INSERT INTO t VALUES (3, 30, 'c')")
        yield connection


@pytest.fixture
def pair(engine, table):
    with (
        engine.connect(isolation_level=LEVEL) as one,
        engine.connect(isolation_level=LEVEL) as two,
    ):
        yield one, two


def content(connection):
    return connection.execute("SELECT * FROM t ORDER BY id").fetchall()


def expect_waiting(connection, thread):
    """Wait until a transaction waits for a lock."""
    locks = connection._database.locks
    end = time.monotonic() + PATIENCE
    while not locks._waits and thread.is_alive() and time.monotonic() < end:
        time.sleep(0.001)
    assert thread.is_alive(), "it does not wait"


@contextmanager
def waiting(connection, sql, parameters=()):
    """Run a statement in a thread that has to wait; its cursor, or the error, at the end."""
    outcome = []

    def run():
        try:
            cursor = connection.cursor()
            if parameters and isinstance(parameters[0], list):
                cursor.executemany(sql, parameters)
            else:
                cursor.execute(sql, parameters or None)
            outcome.append(cursor)
        except tique.Error as error:
            outcome.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    expect_waiting(connection, thread)
    yield outcome
    thread.join(PATIENCE)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(ADD, id="by key"),
        pytest.param("UPDATE t SET n = n + 1 WHERE id + 0 = 1", id="by predicate"),
        pytest.param(
            "UPDATE t SET n = (SELECT max(n) FROM t WHERE id = 1) + 1 WHERE id = 1",
            id="by subquery",
        ),
    ],
)
def test_a_hot_row(engine, table, change):
    """No attempt is lost, and no update."""
    times = effort(10, 200)
    failures = []

    def work():
        try:
            with engine.connect(isolation_level=LEVEL) as connection:
                for number in range(times):
                    if number % 2:
                        connection.execute("SELECT n FROM t WHERE id = 1").fetchall()
                    connection.execute(change)
                    connection.commit()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert content(table)[0][1] == 10 + 8 * times


CASES = {
    "changed": ("UPDATE t SET n = 15 WHERE id = 1", ADD, 1, (1, 16, "a")),
    "condition": (
        "UPDATE t SET n = 15 WHERE id = 1",
        "UPDATE t SET note = upper(note) WHERE n = 10",
        0,
        (1, 15, "a"),
    ),
    "condition by key": (
        "UPDATE t SET n = 15 WHERE id = 1",
        "UPDATE t SET note = upper(note) WHERE id = 1 AND n = 10",
        0,
        (1, 15, "a"),
    ),
    "deleted": ("DELETE FROM t WHERE id = 1", ADD, 0, (2, 20, "b")),
    "delete deleted": (
        "DELETE FROM t WHERE id = 1",
        "DELETE FROM t WHERE n = 10",
        0,
        (2, 20, "b"),
    ),
    "delete changed": (
        "UPDATE t SET n = 15 WHERE id = 1",
        "DELETE FROM t WHERE n < 12",
        0,
        (1, 15, "a"),
    ),
    "key": (
        "UPDATE t SET id = 0 WHERE id = 1",
        "UPDATE t SET n = abs(n) + 1 WHERE note = 'a'",
        1,
        (0, 11, "a"),
    ),
    "key by key": ("UPDATE t SET id = 0 WHERE id = 1", ADD, 0, (0, 10, "a")),
    "many": (
        "UPDATE t SET n = abs(n) * 2",
        "UPDATE t SET n = abs(n) + 1 WHERE n < 50",
        2,
        (1, 21, "a"),
    ),
    "upsert": (
        "UPDATE t SET n = 15 WHERE id = 1",
        "INSERT INTO t VALUES (1, 5, 'x') "
        "ON CONFLICT (id) DO UPDATE SET n = abs(t.n) + EXCLUDED.n",
        1,
        (1, 20, "a"),
    ),
    "upsert deleted": (
        "DELETE FROM t WHERE id = 1",
        "INSERT INTO t VALUES (1, 5, 'x') "
        "ON CONFLICT (id) DO UPDATE SET n = abs(t.n) + EXCLUDED.n",
        1,
        (1, 5, "x"),
    ),
    "merge": (
        "UPDATE t SET n = 15 WHERE id = 1",
        "MERGE INTO t USING (SELECT 1 AS k) AS s ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET n = n + 1",
        1,
        (1, 16, "a"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_row_is_read_again(pair, case):
    one, two = pair
    first, second, count, row = CASES[case]
    # Also a change by key of constants, which would merge, has to lock here.
    one.execute(first.replace("n = 15", "n = abs(15 + 0 * n)"))
    two.execute("SELECT 1").fetchall()
    with waiting(two, second) as outcome:
        one.commit()
    assert outcome[0].rowcount == count
    two.commit()
    assert content(one)[0] == row


def test_results(pair):
    """RETURNING shows what was written, and sees the newer rows."""
    one, two = pair
    one.execute(ADD)
    with waiting(two, "UPDATE t SET n = n + 1 WHERE id < 3 RETURNING id, n") as outcome:
        one.commit()
    assert sorted(outcome[0].fetchall()) == [(1, 12), (2, 21)]


def test_many_rows_of_parameters(pair):
    one, two = pair
    one.execute(ADD)
    change = "UPDATE t SET n = abs(n) + %s WHERE id = %s"
    with waiting(two, change, ([5, 1], [6, 2], [7, 1])) as outcome:
        one.commit()
    assert outcome[0].rowcount == 3
    two.commit()
    assert content(one) == [(1, 23, "a"), (2, 26, "b"), (3, 30, "c")]


@pytest.fixture
def unique(table):
    """A table with a UNIQUE key."""
    table.execute(
        "CREATE TABLE u (id INTEGER PRIMARY KEY, a INTEGER UNIQUE, b INTEGER)"
    )
    table.execute("INSERT INTO u VALUES (1, 10, 0), (2, 20, 0)")
    return table


TAKEN = {
    "key": "INSERT INTO u VALUES (5, 51, 1)",
    "value": "INSERT INTO u VALUES (6, 50, 1)",
    "update": "UPDATE u SET a = 50, b = 1 WHERE id = 1",
    "one of many": "INSERT INTO u VALUES (4, 40, 1), (5, 51, 1), (6, 60, 1)",
    "query": "INSERT INTO u SELECT id + 4, a + 41, 1 FROM u WHERE id = 1",
}


@pytest.mark.parametrize("case", TAKEN)
@pytest.mark.parametrize("end", ["commit", "rollback"])
def test_what_another_one_inserts(pair, unique, case, end):
    """P9: it is a duplicate if the other one commits, and known to be one at once."""
    one, two = pair
    one.execute("INSERT INTO u VALUES (5, 50, 0)")
    two.execute("INSERT INTO u VALUES (7, 70, 1)")
    with waiting(two, TAKEN[case]) as outcome:
        getattr(one, end)()
    if end == "commit":
        assert isinstance(outcome[0], tique.IntegrityError)
        # The rest of the transaction can be committed (P8), without a lock of these.
        one.execute("INSERT INTO u VALUES (4, 40, 0), (6, 60, 0)")
        one.commit()
    else:
        assert outcome[0].rowcount >= 1
    two.commit()
    found = unique.execute("SELECT id, a, b FROM u WHERE id > 3 OR b > 0").fetchall()
    assert (7, 70, 1) in found
    assert ((5, 50, 0) in found) == (end == "commit")
    assert two._database.locks.count == 0


def test_values_that_are_not_there_take_nothing(pair, unique):
    """NULL is no duplicate of NULL."""
    one, two = pair
    one.execute("INSERT INTO u VALUES (5, NULL, 0)")
    two.execute("INSERT INTO u VALUES (6, NULL, 0)")
    two.commit()
    one.commit()
    assert unique.execute("SELECT count(*) FROM u").fetchall() == [(4,)]


@pytest.mark.parametrize("end", ["rollback", "close"])
def test_the_first_one_gives_up(pair, end):
    one, two = pair
    one.execute(ADD)
    with waiting(two, ADD) as outcome:
        getattr(one, end)()
    assert outcome[0].rowcount == 1
    two.commit()
    assert content(two)[0] == (1, 11, "a")


def test_what_was_written_before_stays(pair):
    """P8: only the statement is run again."""
    one, two = pair
    one.execute(ADD)
    two.execute("UPDATE t SET n = abs(n) + 5 WHERE id = 3")
    two.execute("INSERT INTO t VALUES (4, 40, 'd')")
    with waiting(two, "UPDATE t SET n = abs(n) + 1 WHERE id IN (1, 4)") as outcome:
        one.commit()
    assert outcome[0].rowcount == 2
    two.commit()
    assert content(one) == [
        (1, 12, "a"),
        (2, 20, "b"),
        (3, 35, "c"),
        (4, 41, "d"),
    ]


def test_a_deadlock(pair):
    """P6: one of the two is told, and the other goes on."""
    one, two = pair
    one.execute("UPDATE t SET n = abs(n) + 1 WHERE id = 1")
    two.execute("UPDATE t SET n = abs(n) + 1 WHERE id = 2")
    with waiting(two, "UPDATE t SET n = abs(n) + 1 WHERE id = 1") as outcome:
        with pytest.raises(tique.SerializationError) as told:
            one.execute("UPDATE t SET n = abs(n) + 1 WHERE id = 2")
        assert told.value.sqlstate == "40P01"
        one.rollback()
    assert outcome[0].rowcount == 1
    two.commit()
    assert [n for _, n, _ in content(two)] == [11, 21, 30]


def test_lock_timeout(engine, pair):
    one, two = pair
    two.lock_timeout = 0.02
    one.execute(ADD)
    with pytest.raises(tique.OperationalError) as refused:
        two.execute("UPDATE t SET n = abs(n) WHERE id > 0")
    assert refused.value.sqlstate == "55P03"
    # A statement that failed keeps no lock (P8).
    one.execute("UPDATE t SET n = abs(n) + 1 WHERE id = 3")
    one.commit()
    two.execute(ADD)
    two.commit()
    assert [n for _, n, _ in content(one)] == [12, 20, 31]


def test_a_savepoint_gives_rows_back(pair):
    one, two = pair
    one.execute("SAVEPOINT s")
    one.execute(ADD)
    one.execute("ROLLBACK TO s")
    two.execute(ADD)
    two.commit()
    one.execute(ADD)
    one.commit()
    assert content(two)[0] == (1, 12, "a")


def test_a_row_that_is_found_no_more_is_given_back(pair, table):
    one, two = pair
    one.execute("UPDATE t SET n = abs(n) + 1 WHERE id = 1")
    with waiting(two, "UPDATE t SET n = abs(n) + 1 WHERE n IN (10, 20)") as outcome:
        one.commit()
    assert outcome[0].rowcount == 1
    assert {key for (_, (key,)) in two._database.locks.of(two.txid)} == {2}
    two.commit()
    assert [n for _, n, _ in content(table)] == [11, 21, 30]


def test_updates_that_merge_do_not_wait(pair):
    one, two = pair
    add = "UPDATE t SET n = n + 1 WHERE id = 1"
    one.execute(add)
    two.execute(add)
    two.commit()
    one.commit()
    assert content(two)[0] == (1, 12, "a")


def test_an_update_that_merges_comes_after_the_lock(engine, pair):
    """It waits for the row of a change that does not merge, and the other way round."""
    one, two = pair
    merging = "UPDATE t SET n = n + 5 WHERE id = 1"
    one.execute(ADD)
    with waiting(two, merging) as outcome:
        one.commit()
    assert outcome[0].rowcount == 1
    two.commit()
    assert content(one)[0] == (1, 16, "a")
    one.commit()
    one.execute(merging)
    two.execute(merging)
    with engine.connect(isolation_level=LEVEL) as three:
        with waiting(three, ADD) as outcome:
            two.commit()
            one.commit()
        assert outcome[0].rowcount == 1
        three.commit()
    assert content(one)[0] == (1, 27, "a")


def test_a_merged_row_that_is_read(engine, pair):
    """What the transaction reads of it stays so: who merges, too, commits after it."""
    one, two = pair
    merging = "UPDATE t SET n = n + 5 WHERE id = 1"
    one.execute(merging)
    two.execute(merging)
    with engine.connect(isolation_level=LEVEL) as three:
        waiter = threading.Thread(target=lambda: three.execute(ADD))
        waiter.start()
        expect_waiting(three, waiter)
        assert content(one)[0] == (1, 15, "a")
        committing = threading.Thread(target=two.commit)
        committing.start()
        while len(one._database.locks._waits) < 2 and committing.is_alive():
            time.sleep(0.001)
        assert content(one)[0] == (1, 15, "a")
        one.commit()
        committing.join()
        waiter.join()
        assert content(three)[0] == (1, 21, "a")
        three.rollback()
    assert content(two)[0] == (1, 20, "a")


def test_a_merged_row_that_is_read_late(engine, pair):
    """It is computed again, before it is read, of what others have committed."""
    one, two = pair
    one.execute("UPDATE t SET n = n + 5 WHERE id = 1")
    one.execute("SAVEPOINT s")
    two.execute("UPDATE t SET n = n + 7 WHERE id = 1")
    two.commit()
    assert content(one)[0] == (1, 22, "a")
    one.execute("ROLLBACK TO s")
    one.execute("UPDATE t SET n = n + 1 WHERE id = 1")
    assert content(one)[0] == (1, 23, "a")
    one.commit()
    assert content(two)[0] == (1, 23, "a")


@pytest.mark.parametrize("clause", ["FOR UPDATE", "FOR SHARE"])
def test_rows_that_are_locked_by_a_query(pair, clause):
    """Each waits for the other one, in either order."""
    one, two = pair
    lock = f"SELECT n FROM t WHERE id = 1 {clause}"
    one.execute(lock)
    with waiting(two, ADD) as outcome:
        one.execute(ADD)
        one.commit()
    assert outcome[0].rowcount == 1
    with waiting(one, lock) as outcome:
        two.commit()
    assert outcome[0].fetchall() == [(12,)]
    two.lock_timeout = 0.02
    with pytest.raises(tique.OperationalError) as refused:
        two.execute(ADD)
    assert refused.value.sqlstate == "55P03"


def test_rows_that_are_written_are_skipped(pair):
    one, two = pair
    one.execute(ADD)
    query = "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
    assert two.execute(query).fetchall() == [(2,)]
    one.commit()
    two.rollback()
    assert two.execute(query).fetchall() == [(1,)]


def test_it_costs_no_statement_of_the_engine(engine, table):
    """Where no other transaction is there: as under SNAPSHOT."""

    def cost(level):
        costs = set()
        with engine.connect(isolation_level=level) as connection:
            for _ in range(5):
                before = connection.info.engine_statements
                connection.execute(ADD)
                after = connection.info.engine_statements
                connection.commit()
                costs.add(after - before)
        return min(costs)

    assert cost(LEVEL) == cost("SNAPSHOT")
