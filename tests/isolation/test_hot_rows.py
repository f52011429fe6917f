"""P6: threads that want one row all get their turn.

Each counts its own increments of a counter that all of them increment.
"""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.effort import effort, patience
from tique.commit import turns
from tique.commit.committer import Committer

pytestmark = pytest.mark.one_duckdb

SECONDS = effort(2, 10)
THREADS = 8
MOST_ATTEMPTS = 10


class Counters:
    """Threads that increment one counter for some seconds."""

    def __init__(self, engine, threads=THREADS):
        self.engine = engine
        self.commits = [0] * threads
        self.most_attempts = 0
        self.errors = []
        with engine.connect() as connection:
            connection.execute(
                "CREATE TABLE counter (id INTEGER PRIMARY KEY, n INTEGER)"
            )
            connection.execute("INSERT INTO counter VALUES (1, 0)")

    def run(self, increment, **options):
        self.end = time.monotonic() + SECONDS
        threads = [
            threading.Thread(target=self.guarded, args=(number, increment, options))
            for number in range(len(self.commits))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert self.errors == []
        with self.engine.connect() as connection:
            assert connection.execute("SELECT n FROM counter").fetchall() == [
                (sum(self.commits),)
            ]

    def guarded(self, number, increment, options):
        try:
            with self.engine.connect(**options) as connection:
                while time.monotonic() < self.end:
                    attempts = increment(connection)
                    self.most_attempts = max(self.most_attempts, attempts)
                    self.commits[number] += 1
        except BaseException as error:
            self.errors.append(error)

    def expect_fairness(self):
        mean = sum(self.commits) / len(self.commits)
        assert min(self.commits) > mean / 2, self.commits
        assert self.most_attempts <= MOST_ATTEMPTS


def add_one(connection):
    """Read, compute in the application, write back."""
    ((n,),) = connection.execute("SELECT n FROM counter WHERE id = 1").fetchall()
    connection.execute("UPDATE counter SET n = %s WHERE id = 1", [n + 1])


def in_a_loop(connection):
    for attempt in range(1, 1000):
        try:
            add_one(connection)
            connection.commit()
            return attempt
        except tique.SerializationError:
            connection.rollback()
    raise AssertionError("a thread starved")


def under_run_transaction(connection):
    attempts = []

    def work(connection):
        attempts.append(None)
        add_one(connection)

    tique.run_transaction(connection, work)
    return len(attempts)


@pytest.mark.parametrize("increment", [in_a_loop, under_run_transaction])
def test_read_compute_and_write_back(engine, increment):
    """A connection that lost is served before newcomers."""
    counters = Counters(engine)
    counters.run(increment)
    counters.expect_fairness()


@pytest.mark.slow
def test_many_threads(engine):
    counters = Counters(engine, threads=32)
    counters.run(in_a_loop)
    assert min(counters.commits) > 0
    assert counters.most_attempts <= MOST_ATTEMPTS


def test_autocommit(engine):
    """A statement that lost is run again: no attempt fails."""

    def increment(connection):
        connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
        return 1

    counters = Counters(engine)
    counters.run(increment, autocommit=True)
    counters.expect_fairness()


@pytest.mark.slow
def test_autocommit_of_many_rows(engine):
    def increment(connection):
        connection.cursor().executemany(
            "UPDATE counter SET n = n + %s WHERE id = 1", [(2,), (-1,)]
        )
        return 1

    counters = Counters(engine)
    counters.run(increment, autocommit=True)
    counters.expect_fairness()


def loses(engine, connection):
    """Let a connection's transaction lose against another one's."""
    with engine.connect() as other:
        add_one(connection)
        add_one(other)
        other.commit()
        with pytest.raises(tique.SerializationError):
            connection.commit()


def test_one_that_does_not_come_back_holds_others_up_for_a_moment(engine):
    """Once; it has no turn the next time."""
    Counters(engine)
    with engine.connect() as first, engine.connect() as second:
        loses(engine, first)
        started = time.monotonic()
        add_one(second)
        second.commit()
        assert 0.01 < time.monotonic() - started < patience(2)
        time.sleep(0.1)
        loses(engine, first)
        assert not first._database.turns.are_taken


def test_a_turn_ends_with_its_connection(engine):
    Counters(engine)
    with engine.connect() as first, engine.connect() as second:
        loses(engine, first)
        first.close()
        assert not second._database.turns.are_taken
        add_one(second)
        second.commit()


@pytest.mark.parametrize("priority", [False, True])
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_turn_ends_with_the_last_attempt(engine, monkeypatch, priority, interrupted):
    """P6: run_transaction() that gives up, or is interrupted, holds no other up."""
    Counters(engine)
    attempts = 2 if interrupted else 1

    def interrupt(_):
        raise KeyboardInterrupt

    with engine.connect() as first, engine.connect() as second:

        def lose(connection):
            add_one(connection)
            add_one(second)
            second.commit()

        if interrupted:
            monkeypatch.setattr("tique._retry.pause", interrupt)
        with pytest.raises((tique.SerializationError, KeyboardInterrupt)):
            tique.run_transaction(first, lose, attempts=attempts, priority=priority)
        assert not first._database.turns.are_taken


def test_a_turn_is_for_its_keys_only(engine):
    Counters(engine)
    with engine.connect() as first, engine.connect() as second:
        second.execute("INSERT INTO counter VALUES (2, 0)")
        second.commit()
        loses(engine, first)
        turns = first._database.turns
        second.execute("UPDATE counter SET n = 7 WHERE id = 2")
        second.commit()
        assert turns.are_taken
        add_one(first)
        first.commit()
        assert not turns.are_taken


def test_a_statement_is_not_run_again_for_ever(engine, monkeypatch):
    Counters(engine)
    monkeypatch.setattr("tique.connection.execution._TRIES_FOR", 0.2)
    attempts = []

    def lose(*_, **_options):
        attempts.append(None)
        raise tique.SerializationError("another transaction committed first")

    monkeypatch.setattr(Committer, "commit", lose)
    started = time.monotonic()
    with engine.connect(autocommit=True) as connection:
        with pytest.raises(tique.SerializationError):
            connection.execute("UPDATE counter SET n = n + 1 WHERE id = 1")
        assert time.monotonic() - started < patience(5)
        assert len(attempts) > 1


@pytest.mark.slow
def test_a_long_transaction(engine, monkeypatch):
    """With priority its later attempts hold the others up.

    Commits that were under way when it lost may still overtake the next attempt.
    """
    monkeypatch.setattr(turns, "_LONGEST_TURN", 0.05)
    counters = Counters(engine, threads=3)
    done = threading.Event()

    def work(connection):
        add_one(connection)
        time.sleep(0.4)

    def write():
        with engine.connect() as connection:
            while not done.is_set():
                in_a_loop(connection)

    threads = [threading.Thread(target=write) for _ in counters.commits]
    for thread in threads:
        thread.start()
    try:
        with engine.connect() as connection:
            tique.run_transaction(connection, work, attempts=4, priority=True)
    finally:
        done.set()
        for thread in threads:
            thread.join(patience(5))
    assert not any(thread.is_alive() for thread in threads)
