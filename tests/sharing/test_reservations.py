"""P6: a transaction that lost to another process reserves the row before it tries again."""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.sharing.playing import stop
from tique.commit import server_locks, turns

READ = "SELECT v FROM t WHERE id = 1"
LOCK = "SELECT v FROM t WHERE id = 1 FOR UPDATE"
PATIENCE = 20


def expect_waiting(process, outcome):
    end = time.monotonic() + PATIENCE
    while not process.database.locks._waits and time.monotonic() < end:
        assert not outcome.done(), outcome.result()
        time.sleep(0.001)
    assert not outcome.done()


def begin(process):
    """Read, and compute a value."""
    ((v,),) = process.run(READ).fetchall()
    process.run("UPDATE t SET v = %s WHERE id = 1", [v + 10])


def lose(loser, winner):
    begin(loser)
    winner.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        loser.connection.commit()


@pytest.fixture
def lost(pair, monkeypatch):
    """Two processes: the second has lost in its turn, and its next attempt has begun."""
    # Nothing lapses but in the test of that.
    monkeypatch.setattr(turns, "_SHORTEST_TURN", 60.0)
    monkeypatch.setattr(turns, "_LONGEST_TURN", 60.0)
    monkeypatch.setattr(turns, "_CONTESTED", 60.0)
    first, second = pair
    lose(second, first)
    assert not second.database.locks.server._held
    lose(second, first)
    begin(second)
    return first, second


def test_others_wait_and_it_does_not_lose_again(lost, pool):
    first, second = lost
    first.run("UPDATE t SET v = v + 1 WHERE id = 1")
    outcome = pool.submit(first.connection.commit)
    expect_waiting(first, outcome)
    second.connection.commit()
    outcome.result(PATIENCE)
    assert first.rows(READ) == [(13,)]
    assert not first.database.locks.server._held
    assert not second.database.locks.server._held


@pytest.mark.parametrize("end", ["rollback", "close"])
def test_it_ends_with_the_transaction(lost, end):
    first, second = lost
    with pytest.raises(tique.OperationalError):
        first.run(f"{LOCK} NOWAIT")
    getattr(second.connection, end)()
    assert first.rows(f"{LOCK} NOWAIT") == [(2,)]


def test_newcomers_reserve_it_too(lost, pool):
    """The transactions of a process come to the row in turn, and each reserves it."""
    first, second = lost
    other = second.another()
    outcome = pool.submit(lambda: other.execute(READ).fetchall())
    while len(next(iter(second.database.turns._queues.values()))) < 2:
        assert not outcome.done()
        time.sleep(0.001)
    second.connection.commit()
    assert outcome.result(PATIENCE) == [(12,)]
    with pytest.raises(tique.OperationalError):
        first.run(f"{LOCK} NOWAIT")
    other.close()


def test_one_that_sleeps_holds_others_up_for_a_turn(lost):
    first, second = lost
    (held,) = second.database.locks.server._held.values()
    held.reserved_until = 0.0
    # By a heartbeat.
    first.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        second.connection.commit()
    assert first.rows(READ) == [(3,)]


def test_it_does_not_lapse_while_it_is_committed(lost, pool, monkeypatch):
    """P6: otherwise the commit would pass the lock of the one that gets it then."""
    first, second = lost
    locks = second.database.locks
    enter, lapsed = locks.enter, []

    def entered(*arguments, **options):
        enter(*arguments, **options)
        (held,) = locks.server._held.values()
        monkeypatch.setattr(server_locks.time, "monotonic", lambda: 1e12)
        held.lapse()
        monkeypatch.undo()
        lapsed.append(not held.modes)

    monkeypatch.setattr(locks, "enter", entered)
    second.connection.commit()
    assert lapsed == [False]
    assert first.rows(READ) == [(12,)]


def test_a_row_that_it_then_locks_stays_locked(lost):
    first, second = lost
    second.run(LOCK)
    (held,) = second.database.locks.server._held.values()
    held.reserved_until = 0.0
    held.lapse()
    with pytest.raises(tique.OperationalError):
        first.run(f"{LOCK} NOWAIT")


def test_a_commit_whose_reservation_has_lapsed_passes_no_lock(lost, pool):
    first, second = lost
    (held,) = second.database.locks.server._held.values()
    held.reserved_until = 0.0
    held.lapse()
    first.run(LOCK)
    outcome = pool.submit(second.connection.commit)
    expect_waiting(second, outcome)
    first.connection.rollback()
    outcome.result(PATIENCE)
    assert first.rows(READ) == [(12,)]


def test_a_commit_whose_reservation_went_with_the_lease_is_refused(lost):
    """P6: a process has no commit where it has no reservations."""
    first, second = lost
    stop(second)
    first.run(LOCK)
    with pytest.raises(tique.Error):
        second.connection.commit()
    first.run("UPDATE t SET v = v + 1 WHERE id = 1")
    first.connection.commit()
    assert first.rows(READ) == [(3,)]


def test_it_goes_with_its_process(lost):
    first, second = lost
    stop(second)
    first.database.timeline._beat()
    first.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    assert first.rows(READ) == [(3,)]


def test_it_is_given_back_before_a_row_lock_is_waited_for(lost, pool):
    """No transaction of the application is a deadlock's victim because of it."""
    first, second = lost
    lock = "SELECT v FROM t WHERE id = 2 FOR UPDATE"
    first.run(lock)
    outcome = pool.submit(second.run, lock)
    expect_waiting(second, outcome)
    first.run("UPDATE t SET v = v + 1 WHERE id = 1")
    first.connection.commit()
    assert outcome.result(PATIENCE).fetchall() == [(0,)]
    with pytest.raises(tique.SerializationError):
        second.connection.commit()


def test_a_wait_for_it_is_cancelled(lost, pool):
    first, second = lost
    second.connection.rollback()
    first.run(LOCK)
    outcome = pool.submit(second.run, READ)
    expect_waiting(second, outcome)
    while not outcome.done():
        second.connection.cancel()
        time.sleep(0.01)
    with pytest.raises(tique.OperationalError) as cancelled:
        outcome.result()
    assert cancelled.value.sqlstate == "57014"
    first.connection.rollback()
    assert second.rows(READ) == [(2,)]


def test_read_committed_reserves_nothing(lost):
    _, second = lost
    second.connection.rollback()
    second.connection.isolation_level = "READ COMMITTED"
    second.run(READ)
    assert not second.database.locks.server._held


def test_few_attempts_are_lost(process):
    """Four processes that read a row and write it back: one after the other wins."""
    first = process()
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit("INSERT INTO t VALUES (1, 0)")
    processes = [first, *(process() for _ in range(3))]
    attempts, failures = [], []

    def work(one):
        def add(_):
            attempts.append(one)
            begin(one)

        try:
            for _ in range(25):
                tique.run_transaction(one.connection, add, attempts=10)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=[one]) for one in processes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert first.rows(READ) == [(1000,)]
    assert len(attempts) < 150
