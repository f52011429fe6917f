"""Row locks that processes see of each other (P3, P6)."""

from __future__ import annotations

import threading
import time
from contextlib import closing

import pytest

import tique
from tests.portable import numbers
from tests.sharing.playing import ROWS, stop, waiting
from tique_backends.postgresql.sessions.connection import Connection
from tique_backends.servers import leased_locks

LOCK = "SELECT v FROM t WHERE id = 1 FOR UPDATE"
SKIP = "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
PATIENCE = 20


STEPPED = pytest.mark.written_for(["monetdb"], reason="a commit is several requests")
APPENDS = pytest.mark.written_for(["postgresql"], reason="a commit is one request")


def expect_waiting(process, outcome):
    end = time.monotonic() + PATIENCE
    while not process.database.locks._waits and time.monotonic() < end:
        assert not outcome.done(), outcome.result()
        time.sleep(0.001)
    assert not outcome.done()


def test_a_process_that_comes_later(process):
    """P3: it sees the locks that were there before it."""
    first = process()
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit("INSERT INTO t VALUES (1, 0), (2, 0)")
    first.run(LOCK)
    first.run("UPDATE t SET v = 1 WHERE id = 2")
    second = process(lock_timeout=0.05)
    second.run("UPDATE t SET v = 1 WHERE id = 1")
    with pytest.raises(tique.OperationalError) as refused:
        second.connection.commit()
    assert refused.value.sqlstate == "55P03"
    first.connection.commit()


@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_a_row_has_one_owner(pair, pool, end):
    first, second = pair
    first.run(LOCK)
    with pytest.raises(tique.OperationalError) as refused:
        second.run(f"{LOCK} NOWAIT")
    assert refused.value.sqlstate == "55P03"
    assert second.run(SKIP).fetchall() == [(2,)]
    outcome = pool.submit(second.rows, LOCK)
    expect_waiting(second, outcome)
    getattr(first.connection, end)()
    assert outcome.result(PATIENCE) == [(0,)]


def test_the_newest_version_is_locked(pair, pool):
    """P3: READ COMMITTED reads it again, SNAPSHOT refuses an older one."""
    first, second = pair
    newest = second.another()
    newest.isolation_level = "READ COMMITTED"
    second.run("SELECT v FROM t")
    first.run(LOCK)
    first.run("UPDATE t SET v = 7 WHERE id = 1")
    outcome = pool.submit(lambda: newest.execute(LOCK).fetchall())
    expect_waiting(second, outcome)
    first.connection.commit()
    assert outcome.result(PATIENCE) == [(7,)]
    newest.rollback()
    with pytest.raises(tique.SerializationError) as conflict:
        second.run(LOCK)
    assert conflict.value.key == (1,)
    newest.close()


def test_a_writer_without_locks_waits_for_the_holder(pair, pool):
    first, second = pair
    first.run(LOCK)
    second.run("UPDATE t SET v = v + 5 WHERE id = 1")
    outcome = pool.submit(second.connection.commit)
    expect_waiting(second, outcome)
    first.run("UPDATE t SET v = 1 WHERE id = 1")
    first.connection.commit()
    outcome.result(PATIENCE)
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(6,)]
    assert not second.database.locks.server._held


def test_others_of_a_group_do_not_wait(pair, pool, monkeypatch):
    """P6: they are committed though one of their batch meets a lock."""
    first, second = pair
    other = second.another()
    first.run(LOCK)
    second.run("UPDATE t SET v = 5 WHERE id = 1")
    other.execute("UPDATE t SET v = 5 WHERE id = 2")
    with waiting(monkeypatch, second.database.committer, "_gather") as (there, go_on):
        waits = pool.submit(second.connection.commit)
        assert there.wait(PATIENCE)
        passes = pool.submit(other.commit)
        while len(second.database.committer._queue) < 2:
            time.sleep(0.001)
        go_on.set()
        passes.result(PATIENCE)
    expect_waiting(second, waits)
    first.connection.rollback()
    waits.result(PATIENCE)
    assert first.rows("SELECT v FROM t ORDER BY id") == [(5,), (5,)]
    other.close()


@APPENDS
def test_a_commit_at_the_server_is_waited_for(pair, pool, monkeypatch):
    """P3: one that has looked for locks before this one was there."""
    first, second = pair
    second.connection.isolation_level = "READ COMMITTED"
    ask, looked, go_on = Connection.ask, threading.Event(), threading.Event()

    def slow(connection, sql, *arguments, **options):
        if "tique.append(" not in sql:
            return ask(connection, sql, *arguments, **options)
        ask(connection, "BEGIN")
        answer = ask(connection, sql, *arguments, **options)
        looked.set()
        assert go_on.wait(PATIENCE)
        ask(connection, "COMMIT")
        return answer

    first.run("UPDATE t SET v = 9 WHERE id = 1")
    monkeypatch.setattr(Connection, "ask", slow)
    committed = pool.submit(first.connection.commit)
    assert looked.wait(PATIENCE)
    outcome = pool.submit(second.rows, LOCK)
    time.sleep(0.1)
    assert not outcome.done()
    go_on.set()
    committed.result(PATIENCE)
    assert outcome.result(PATIENCE) == [(9,)]


def test_a_commit_that_came_before_the_lock_is_seen(pair):
    first, second = pair
    second.connection.isolation_level = "READ COMMITTED"
    second.run("SELECT v FROM t")
    first.commit("UPDATE t SET v = 9 WHERE id = 1")
    assert second.run(LOCK).fetchall() == [(9,)]


def test_a_bulk_writer_waits(pair, pool):
    first, second = pair
    first.run(LOCK)
    second.run(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    outcome = pool.submit(second.connection.commit)
    expect_waiting(second, outcome)
    first.connection.rollback()
    outcome.result(PATIENCE)
    # And it gives back what it has taken.
    assert first.rows(f"{LOCK} NOWAIT") == [(0,)]


def test_a_deadlock_has_a_victim(pair, pool):
    """The server finds it: no process knows all of the circle."""
    first, second = pair
    first.run(LOCK)
    second.run("SELECT v FROM t WHERE id = 2 FOR UPDATE")

    def lock(process, number):
        try:
            process.run(f"SELECT v FROM t WHERE id = {number} FOR UPDATE")
        except tique.SerializationError as error:
            process.connection.rollback()
            return error.sqlstate
        return None

    outcomes = [pool.submit(lock, first, 2), pool.submit(lock, second, 1)]
    assert sorted(str(one.result(PATIENCE)) for one in outcomes) == ["40P01", "None"]


def test_sharing(pair):
    first, second = pair
    share = "SELECT v FROM t WHERE id = 1 FOR SHARE NOWAIT"
    first.run(share)
    second.run(share)
    with pytest.raises(tique.OperationalError):
        second.run(f"{LOCK} NOWAIT")
    first.connection.rollback()
    second.run(f"{LOCK} NOWAIT")
    with pytest.raises(tique.OperationalError):
        first.run(share)


def test_a_savepoint_gives_locks_back(pair):
    first, second = pair
    first.run("SAVEPOINT s")
    first.run(LOCK)
    first.run("ROLLBACK TO SAVEPOINT s")
    assert second.rows(f"{LOCK} NOWAIT") == [(0,)]


def test_locks_of_a_process_that_is_given_up_go_with_it(pair):
    """P6: their sessions are ended by those that give it up."""
    first, second = pair
    first.run(LOCK)
    stop(first)
    second.database.timeline._beat()
    assert second.rows(LOCK) == [(0,)]


def test_what_was_decided_under_a_lost_lock_is_not_committed(pair):
    """P3."""
    first, second = pair
    first.run(LOCK)
    first.run("UPDATE t SET v = 1 WHERE id = 2")
    (held,) = first.database.locks.server._held.values()
    client = first.database.engine.shared._client
    end = f"tique.close_locker({client}, {held.session.locker})"
    with closing(second.database.engine.session()) as session:
        session.execute(f"SELECT {end}").fetch_all()
    second.commit("UPDATE t SET v = 1 WHERE id = 1")
    with pytest.raises(tique.SerializationError, match="locks are lost"):
        first.connection.commit()
    assert second.rows("SELECT v FROM t ORDER BY id") == [(1,), (0,)]
    assert first.rows(LOCK) == [(1,)]


def test_a_fenced_process_commits_nothing_under_its_locks(pair, pool):
    """P3, P6: a wait for a lock ends with the lease of the process that had it."""
    first, second = pair
    first.run(LOCK)
    first.run("UPDATE t SET v = 1 WHERE id = 2")
    outcome = pool.submit(second.rows, LOCK)
    expect_waiting(second, outcome)
    stop(first)
    assert outcome.result(PATIENCE) == [(0,)]
    second.commit("UPDATE t SET v = 5 WHERE id = 1")
    with pytest.raises(tique.Error):
        first.connection.commit()
    assert second.rows("SELECT v FROM t ORDER BY id") == [(5,), (0,)]


@STEPPED
def test_a_commit_with_a_timestamp_is_waited_for(pair, pool, monkeypatch):
    """P3: one that has looked for locks before this one was there."""
    first, second = pair
    second.connection.isolation_level = "READ COMMITTED"
    first.run("UPDATE t SET v = 9 WHERE id = 1")
    with waiting(monkeypatch, first.database.committer, "_append") as (there, go_on):
        committed = pool.submit(first.connection.commit)
        assert there.wait(PATIENCE)
        outcome = pool.submit(second.rows, LOCK)
        time.sleep(0.1)
        assert not outcome.done()
        go_on.set()
        committed.result(PATIENCE)
    assert outcome.result(PATIENCE) == [(9,)]


def test_a_wait_is_cancelled(pair, pool):
    first, second = pair
    first.run(LOCK)
    outcome = pool.submit(second.run, LOCK)
    expect_waiting(second, outcome)
    while not outcome.done():
        second.connection.cancel()
        time.sleep(0.01)
    with pytest.raises(tique.OperationalError) as cancelled:
        outcome.result()
    assert cancelled.value.sqlstate == "57014"
    first.connection.rollback()
    assert second.rows(LOCK) == [(0,)]


def test_a_wait_that_is_over_is_in_no_others_way(pair):
    """P6."""
    first, second = pair
    first.run(LOCK)
    second.run("SELECT v FROM t WHERE id = 2 FOR UPDATE")
    second.connection.lock_timeout = 0.05
    with pytest.raises(tique.OperationalError) as refused:
        second.run(LOCK)
    assert refused.value.sqlstate == "55P03"
    first.connection.rollback()
    first.run(f"{LOCK} NOWAIT")


def test_a_wait_is_several_calls(pair, pool, monkeypatch):
    """P6: none holds a thread of the server up for long, and the place is kept."""
    monkeypatch.setattr(leased_locks, "_LONGEST_WAIT", 0.02)
    first, second = pair
    last = second.another()
    first.run(LOCK)
    outcome = pool.submit(second.run, LOCK)
    expect_waiting(second, outcome)
    time.sleep(0.2)
    assert not outcome.done()
    first.connection.rollback()
    with pytest.raises(tique.OperationalError):
        last.execute(f"{LOCK} NOWAIT")
    assert outcome.result(PATIENCE).fetchall() == [(0,)]
    last.close()


def test_no_more_are_locked_than_the_server_has_room_for(filled):
    first, second = filled
    with pytest.raises(tique.NotSupportedError, match="LIMIT"):
        first.run("SELECT id FROM t FOR UPDATE")
    assert second.rows("SELECT id FROM t WHERE id < 3 FOR UPDATE NOWAIT")


def test_a_queue_hands_out_each_job_once(pair):
    first, second = pair
    for number in range(3, 21):
        first.run(f"INSERT INTO t VALUES ({number}, 0, '')")
    first.connection.commit()
    done, failures = [], []

    def take(connection):
        found = connection.execute(
            "SELECT id FROM t WHERE v = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
        ).fetchall()
        for (job,) in found:
            connection.execute("UPDATE t SET v = 1 WHERE id = %s", [job])
        return [job for (job,) in found]

    def work(connection):
        try:
            while found := tique.run_transaction(connection, take, attempts=100):
                done.extend(found)
        except BaseException as error:
            failures.append(error)

    connections = [first.connection, first.another(), second.connection]
    threads = [threading.Thread(target=work, args=[each]) for each in connections]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    connections[1].close()
    assert failures == []
    assert sorted(done) == list(range(1, 21))


def test_a_wait_that_is_over_names_the_other_process(pair):
    """P6: its session, as the engine shows it, and what an administrator can do."""
    first, second = pair
    second.connection.lock_timeout = 0.05
    first.run(LOCK)
    client = first.database.engine.shared._client
    with pytest.raises(tique.OperationalError, match=rf"client {client} \(") as refused:
        second.run(LOCK)
    assert refused.value.sqlstate == "55P03"
    assert "tique.leave_client" in str(refused.value)
    second.connection.rollback()
    second.run("UPDATE t SET v = v + 5 WHERE id = 1")
    with pytest.raises(tique.OperationalError, match=rf"client {client} \("):
        second.connection.commit()
    stop(first)
    assert second.rows(LOCK) == [(0,)]
