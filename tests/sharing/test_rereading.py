"""READ COMMITTED beside other processes: a change waits for theirs, and is made of their row (P3, P6)."""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.effort import effort
from tests.sharing.playing import ROWS
from tests.sharing.test_row_locks import expect_waiting
from tique.commit.locks import MOST_EVERYWHERE

ADD = "UPDATE t SET v = abs(v) + 1 WHERE id = 1"
"""It does not merge."""
PATIENCE = 20


@pytest.fixture
def both(process):
    first = process(isolation_level="READ COMMITTED")
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)")
    first.commit("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'b')")
    second = process(isolation_level="READ COMMITTED")
    wait_for_company(first)
    return first, second


def wait_for_company(process):
    """Wait until its heartbeat has found the other one."""
    timeline = process.database.timeline
    end = time.monotonic() + PATIENCE
    while not timeline.has_company:
        assert time.monotonic() < end
        time.sleep(0.01)


def value(process):
    return process.rows("SELECT v FROM t WHERE id = 1")[0][0]


@pytest.mark.parametrize(
    ("sql", "count", "expected"),
    [
        pytest.param(ADD, 1, 2, id="changed"),
        pytest.param("UPDATE t SET v = 9 WHERE v = 0 AND id < 2", 0, 1, id="condition"),
        pytest.param("UPDATE t SET v = abs(v) + 10", 2, 11, id="many"),
        pytest.param("DELETE FROM t WHERE v = 0 AND id < 2", 0, 1, id="deleted"),
    ],
)
def test_it_waits_and_reads_again(both, pool, sql, count, expected):
    first, second = both
    first.run(ADD)
    second.run("SELECT 1").fetchall()
    waiting = pool.submit(second.run, sql)
    expect_waiting(second, waiting)
    first.connection.commit()
    assert waiting.result(PATIENCE).rowcount == count
    second.connection.commit()
    assert value(first) == expected


def test_an_insert_of_the_same_key(both, pool):
    first, second = both
    first.run("INSERT INTO t VALUES (5, 0, '')")
    waiting = pool.submit(second.run, "INSERT INTO t VALUES (5, 1, '')")
    expect_waiting(second, waiting)
    first.connection.commit()
    with pytest.raises(tique.IntegrityError):
        waiting.result(PATIENCE)


def test_what_was_locked_is_given_back(both):
    first, second = both
    first.run(ADD)
    second.connection.lock_timeout = 0.05
    with pytest.raises(tique.OperationalError) as refused:
        second.run(ADD)
    assert refused.value.sqlstate == "55P03"
    first.connection.rollback()
    second.run(ADD)
    second.connection.commit()
    assert value(first) == 1
    for each in both:
        assert not each.database.locks.count
        assert not each.database.locks.server._held


def test_more_rows_than_the_server_has_room_for(both):
    """They are locked in this process, and the first one that commits wins."""
    first, second = both
    more = MOST_EVERYWHERE + 1
    rows = ", ".join(f"({n + 10}, 0, '')" for n in range(more))
    first.commit(f"INSERT INTO t VALUES {rows}")
    first.run("UPDATE t SET v = abs(v) + 1")
    second.commit(ADD)
    with pytest.raises(tique.SerializationError):
        first.connection.commit()
    # P6: no other transaction waits for the next attempt, which takes locks.
    assert not first.connection._execution.contender.has_place


def test_round_trips(both):
    """P6: beside others a change asks for a snapshot, a row, locks, and what has begun."""
    first, _ = both
    statistics = first.database.engine.statistics
    counts = []
    for _ in range(effort(10, 20)):
        stops = [statistics.statements]
        for row in 1, 2:
            first.run("UPDATE t SET v = abs(v) + 1 WHERE id = %s", (row,))
            stops.append(statistics.statements)
        first.connection.rollback()
        counts.append((stops[1] - stops[0], stops[2] - stops[1]))
    # The heartbeat's are among them, of which some of the times have none. On MonetDB
    # each mode of locks is asked for by itself; the first time makes their owner, too.
    of_first, of_second = map(min, zip(*counts, strict=True))
    assert of_first <= 6
    assert of_second <= 4


def test_hot_transactions(both):
    """None is lost, and none fails."""
    times = effort(8, 100)
    failures = []

    def work(process):
        try:
            for _ in range(times):
                process.run("SELECT v FROM t WHERE id = 2").fetchall()
                process.run(ADD)
                process.connection.commit()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert value(both[0]) == 2 * times


@pytest.mark.slow
@pytest.mark.parametrize(
    "sql",
    [
        pytest.param(ADD, id="a row"),
        pytest.param("UPDATE t SET v = abs(v) + 1", id="many rows"),
        pytest.param("UPDATE k SET v = v + 1", id="no key"),
    ],
)
def test_in_autocommit_nothing_fails(both, sql):
    """P6: a statement that lost is run again; also if its rows are staged, or have no key."""
    first, _ = both
    first.commit("CREATE TABLE k (v INTEGER)")
    first.commit("INSERT INTO k VALUES (0)")
    if sql == "UPDATE t SET v = abs(v) + 1":
        values = ", ".join(f"({n + 10}, 0, '')" for n in range(ROWS))
        first.commit(f"INSERT INTO t VALUES {values}")
    times = effort(4, 30)
    failures = []

    def work(process):
        process.connection.autocommit = True
        try:
            for _ in range(times):
                process.run(sql)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(each,)) for each in both]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    table = "k" if " k " in sql else "t"
    found = first.run(f"SELECT max(v) FROM {table}").fetchall()
    assert found == [(2 * times,)]
