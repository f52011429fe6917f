"""P2 and P3 under fire: acknowledged means seen; every increment counts."""

from __future__ import annotations

import random
import threading
import time

import pytest

import tique
from tests.effort import patience
from tests.portable import numbers
from tique.store.versions import TableVersions


class Team:
    """Threads that report their errors."""

    def __init__(self, engine, **options):
        self.engine = engine
        self.options = options
        self.stop = threading.Event()
        self.errors = []
        self.threads = []

    def connect(self):
        return self.engine.connect(**self.options)

    def start(self, body, *arguments):
        def guarded():
            try:
                body(*arguments)
            except BaseException as error:
                self.errors.append(error)
                self.stop.set()

        thread = threading.Thread(target=guarded)
        self.threads.append(thread)
        thread.start()

    def finish(self, seconds):
        self.stop.wait(seconds)
        self.stop.set()
        for thread in self.threads:
            thread.join(20)
            assert not thread.is_alive(), "a thread is stuck"
        if self.errors:
            raise self.errors[0]


@pytest.fixture(params=["memory", "query"])
def team(engine, request):
    options = {"certifier": request.param, "checkpoint_age": 0.1}
    with engine.connect(**options) as connection:
        connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, v INTEGER)")
        connection.execute(f"INSERT INTO counter SELECT number, 0 FROM {numbers(4)}")
    return Team(engine, **options)


@pytest.mark.slow
def test_acknowledged_commits_are_seen_by_whoever_begins_afterwards(team):
    """P2: through another thread and connection, by key and by scan."""
    acknowledged = [0, 0, 0, 0]

    def writer(key):
        connection = team.connect()
        while not team.stop.is_set():
            connection.execute("UPDATE counter SET v = v + 1 WHERE id = %s", (key,))
            connection.commit()
            acknowledged[key] += 1

    def reader(seed):
        chance = random.Random(seed)
        connection = team.connect()
        while not team.stop.is_set():
            least = list(acknowledged)
            if chance.random() < 0.8:
                key = chance.randrange(4)
                found = connection.execute(
                    "SELECT v FROM counter WHERE id = %s", (key,)
                ).fetchall()
                assert found[0][0] >= least[key]
            else:
                found = dict(connection.execute("SELECT id, v FROM counter").fetchall())
                assert all(found[key] >= least[key] for key in found)
            connection.rollback()

    for key in range(4):
        team.start(writer, key)
    for seed in range(3):
        team.start(reader, seed)
    team.finish(2.5)
    assert min(acknowledged) > 2


def test_a_snapshot_taken_before_a_commit_is_published(faults, team):
    """P2: a commit that is already durable is not seen until its timestamp is finished.

    PostgreSQL does both at once: a reader right after it sees it, and all of it.
    """
    writer, reader = team.connect(), team.connect()
    query = "SELECT id, v FROM counter WHERE id = 1"
    early = []
    faults.plan(
        "after",
        team.engine.commit_call,
        lambda: early.append(reader.execute(query).fetchall()),
    )
    writer.execute("UPDATE counter SET v = 7 WHERE id = 1")
    writer.commit()
    value = 7 if team.engine.settles_commits else 0
    assert early == [[(1, value)]]
    assert reader.execute(query).fetchall() == [(1, value)]
    reader.commit()
    assert reader.execute(query).fetchall() == [(1, 7)]


@pytest.mark.written_for(
    ["duckdb"], reason="a process that shares a database publishes when it follows"
)
def test_a_snapshot_taken_amid_a_publication_is_whole(team, monkeypatch):
    """P2: a reader that begins before a commit is published never sees any of it."""
    writer, reader = team.connect(), team.connect()
    query = "SELECT id, v FROM counter WHERE id = 1"
    amid = []
    publish = TableVersions.publish

    def watched(versions, *arguments, **options):
        amid.append(reader.execute(query).fetchall())
        publish(versions, *arguments, **options)

    monkeypatch.setattr(TableVersions, "publish", watched)
    writer.execute("UPDATE counter SET v = 7 WHERE id = 1")
    writer.commit()
    assert amid == [[(1, 0)]]
    assert reader.execute(query).fetchall() == [(1, 0)]
    reader.commit()
    assert reader.execute(query).fetchall() == [(1, 7)]


def test_every_acknowledged_increment_counts(team):
    """P3: the counters add up to the number of commits, on one hot row too."""
    commits = []
    conflicts = []

    def increment(seed):
        chance = random.Random(seed)
        connection = team.connect()
        while not team.stop.is_set():
            key = chance.choice([0, 0, 0, 1, 2, 3])
            if chance.random() < 0.5:
                connection.execute("UPDATE counter SET v = v + 1 WHERE id = %s", (key,))
            else:
                (value,) = connection.execute(
                    "SELECT v FROM counter WHERE id = %s", (key,)
                ).fetchone()
                connection.execute(
                    "UPDATE counter SET v = %s WHERE id = %s", (value + 1, key)
                )
            try:
                connection.commit()
                commits.append(key)
            except tique.SerializationError:
                conflicts.append(key)

    for seed in range(8):
        team.start(increment, seed)
    team.finish(2.5)
    found = dict(team.connect().execute("SELECT id, v FROM counter").fetchall())
    assert found == {key: commits.count(key) for key in range(4)}
    assert conflicts
    assert len(commits) > 20


def test_nobody_waits_for_a_transaction_that_stays_open(team):
    """P6: an idle writer and an idle reader hold up no commit, but keep their state."""
    idle = team.connect()
    before = idle.execute("SELECT sum(v) FROM counter").fetchone()
    idle.execute("UPDATE counter SET v = -1 WHERE id = 3")
    longest = [0.0]

    def work(key):
        connection = team.connect()
        for _ in range(60):
            started = time.monotonic()
            connection.execute("UPDATE counter SET v = v + 1 WHERE id = %s", (key,))
            connection.commit()
            longest[0] = max(longest[0], time.monotonic() - started)

    for key in range(4):
        team.start(work, key)
    for thread in team.threads:
        thread.join(20)
    team.finish(0)
    assert longest[0] < patience(10)
    assert idle.execute("SELECT sum(v) FROM counter WHERE id < 3").fetchone() == before
    with pytest.raises(tique.SerializationError):
        idle.commit()
    assert idle.execute("SELECT sum(v) FROM counter").fetchone() == (240,)


@pytest.mark.slow
def test_definitions_get_their_turn_among_commits(team):
    """P6: a schema change neither starves nor stops committing transactions."""
    commits = [0]

    def work(key):
        connection = team.connect()
        while not team.stop.is_set():
            connection.execute("UPDATE counter SET v = v + 1 WHERE id = %s", (key,))
            connection.commit()
            commits[0] += 1

    for key in range(4):
        team.start(work, key)
    connection = team.connect()
    for number in range(5):
        started = time.monotonic()
        connection.execute(f"CREATE TABLE made_{number} (id INTEGER PRIMARY KEY)")
        connection.execute(f"INSERT INTO made_{number} VALUES (1)")
        connection.commit()
        connection.execute(f"DROP TABLE made_{number}")
        connection.commit()
        assert time.monotonic() - started < patience(10)
    team.finish(0.2)
    assert commits[0] > 10
