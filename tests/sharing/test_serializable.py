"""SERIALIZABLE among several processes: no commit slips in between (strict serializability)."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import tique
from tests.effort import effort
from tique.commit.shared import SharedCommitter

LEVEL = {"isolation_level": "SERIALIZABLE"}
PAIRS = 5


@pytest.fixture
def serializable(process):
    first = process(**LEVEL)
    first.commit(
        "CREATE TABLE duty (id INTEGER PRIMARY KEY, shift INTEGER, here INTEGER)"
    )
    first.commit("INSERT INTO duty VALUES (1, 1, 1), (2, 1, 1), (3, 2, 1)")
    return first, process(**LEVEL)


def on_duty(process, shift=1):
    found = process.run("SELECT sum(here) FROM duty WHERE shift = %s", (shift,))
    return found.fetchone()[0]


def leave(process, who):
    process.run("UPDATE duty SET here = 0 WHERE id = %s", (who,))


def test_write_skew_between_processes(serializable):
    one, two = serializable
    assert on_duty(one) == on_duty(two) == 2
    leave(one, 1)
    leave(two, 2)
    one.connection.commit()
    with pytest.raises(tique.SerializationError, match="duty WHERE shift") as lost:
        two.connection.commit()
    assert lost.value.columns == ("here",)
    assert two.rows("SELECT sum(here) FROM duty WHERE shift = 1") == [(1,)]


def test_what_was_not_seen_does_not_conflict(serializable):
    one, two = serializable
    assert on_duty(one) == 2
    assert on_duty(two, 2) == 1
    leave(one, 1)
    leave(two, 3)
    one.connection.commit()
    two.connection.commit()
    assert one.rows("SELECT sum(here) FROM duty") == [(1,)]


def test_a_commit_of_another_process_that_is_not_followed_yet(serializable):
    """The group is refused, follows it, and finds that nothing has changed that it saw."""
    one, two = serializable
    assert on_duty(two, 2) == 1
    leave(two, 3)
    for _ in range(5):
        one.commit("UPDATE duty SET here = here + 1 WHERE id = 1")
    two.connection.commit()
    assert one.rows("SELECT here FROM duty ORDER BY id") == [(6,), (1,), (0,)]


def test_a_barrier_passes_no_lock_of_a_row(serializable, monkeypatch):
    """P9: a commit that others have overtaken waits for row locks that came meanwhile, too."""
    monkeypatch.setattr(SharedCommitter, "refusals_before_barrier", 1)
    one, two = serializable
    put_back = SharedCommitter._put_back

    def lock_meanwhile(committer, ticket):
        two.run("SELECT here FROM duty WHERE id = 3 FOR UPDATE")
        put_back(committer, ticket)

    monkeypatch.setattr(SharedCommitter, "_put_back", lock_meanwhile)
    assert on_duty(one, 2) == 1
    leave(one, 3)
    two.commit("UPDATE duty SET here = 5 WHERE id = 1")
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(one.connection.commit)
        with pytest.raises(TimeoutError):
            committing.result(1.0)
        two.connection.rollback()
        committing.result(20)
    assert two.rows("SELECT here FROM duty ORDER BY id") == [(5,), (1,), (0,)]


def test_a_bulk_commit_of_another_process(serializable):
    one, two = serializable
    assert on_duty(two) == 2
    leave(two, 2)
    one.run("UPDATE duty SET here = 0 WHERE shift = 1")
    one.run("INSERT INTO duty SELECT id + 10, 3, 1 FROM duty")
    one.connection.commit()
    with pytest.raises(tique.SerializationError):
        two.connection.commit()


def test_no_anomaly_under_load(serializable):
    """At least one of each pair is there, whatever two processes of two clients do (P2)."""
    one, two = serializable
    one.commit("DELETE FROM duty")
    rows = ", ".join(f"({n}, {n // 2}, 1)" for n in range(2 * PAIRS))
    one.commit(f"INSERT INTO duty VALUES {rows}")
    connections = [one.connection, one.another(), two.connection, two.another()]
    done = threading.Event()
    commits = effort(30, 150)

    def work(number, connection):
        connection.isolation_level = "SERIALIZABLE"
        count = 0
        for attempt in range(commits * 10):
            if done.is_set() or count >= commits:
                break
            pair = attempt % PAIRS
            mine = 2 * pair + number % 2
            try:
                ((here,),) = connection.execute(
                    "SELECT sum(here) FROM duty WHERE shift = %s", (pair,)
                ).fetchall()
                assert here >= 1
                ((own,),) = connection.execute(
                    "SELECT here FROM duty WHERE id = %s", (mine,)
                ).fetchall()
                if own and here > 1:
                    change = 0
                elif not own:
                    change = 1
                else:
                    connection.rollback()
                    continue
                connection.execute(
                    "UPDATE duty SET here = %s WHERE id = %s", (change, mine)
                )
                connection.commit()
                count += 1
            except tique.SerializationError:
                connection.rollback()
        return count

    with ThreadPoolExecutor(4) as pool:
        try:
            counts = list(pool.map(work, range(4), connections))
        finally:
            done.set()
    for connection in (connections[1], connections[3]):
        connection.close()
    assert min(counts) > 0
    assert one.rows(
        "SELECT count(*) FROM (SELECT shift FROM duty GROUP BY shift "
        "HAVING sum(here) < 1) AS _none"
    ) == [(0,)]
