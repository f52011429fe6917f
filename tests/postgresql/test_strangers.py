"""P6, P11: what a role without any right can take, hold or fill stops no process.

A stranger may only connect. It takes each advisory lock that tique may use before
processes work, and queues for each that they show in ``pg_locks``.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.portable import numbers
from tests.sharing.playing import ROWS, cached
from tique_backends.postgresql.sessions.presence import LOCKS

pytestmark = pytest.mark.both_sequencers

LONGEST = 15.0
SHOWN = (
    "SELECT DISTINCT classid::int, objid::bigint, objsubid FROM pg_locks "
    "WHERE locktype = 'advisory' AND pid <> pg_backend_pid()"
)


class Stranger:
    """A role's sessions; those that wait have threads of their own."""

    def __init__(self, shop):
        self._url = shop.url("stranger").partition("&sequencer")[0]
        self._connections = []
        self._known = set()
        self._threads = []
        self._done = threading.Event()
        self.connection = self._connect()

    def _connect(self):
        self._connections.append(psycopg.connect(self._url, autocommit=True))
        return self._connections[-1]

    def take_all(self):
        """Take each small number of tique's, in a session that stays."""
        for number in range(16):
            self.connection.execute(
                "SELECT pg_try_advisory_lock(%s, %s)", [LOCKS, number]
            )

    def queue(self):
        """Wait for each advisory lock that others have, before anybody else does."""
        watcher = self._connect()

        def watch():
            while not self._done.is_set():
                for key in watcher.execute(SHOWN).fetchall():
                    if key not in self._known and len(self._known) < 40:
                        self._known.add(key)
                        self._threads.append(threading.Thread(target=wait, args=key))
                        self._threads[-1].start()
                self._done.wait(0.02)

        def wait(classid, objid, kind):
            key = [classid, objid] if kind == 2 else [(classid << 32) + objid]
            places = ", ".join(["%s::int"] * 2 if kind == 2 else ["%s::bigint"])
            connection = self._connect()
            with suppress(psycopg.Error):
                connection.execute(f"SELECT pg_advisory_lock({places})", key)
                self._done.wait(60)

        self._threads.append(threading.Thread(target=watch))
        self._threads[-1].start()

    def close(self):
        self._done.set()
        for connection in self._connections:
            connection.cancel()
        for thread in list(self._threads):
            thread.join(patience(10))
        for connection in self._connections:
            connection.close()


@pytest.fixture
def stranger(shop):
    opened = Stranger(shop)
    yield opened
    opened.close()


@pytest.fixture
def timed():
    """Run something, which has to end soon."""
    with ThreadPoolExecutor() as pool:
        yield lambda work, *given: pool.submit(work, *given).result(patience(LONGEST))


def bulk(process):
    process.commit(f"INSERT INTO open SELECT number + 100, 0, 'n' FROM {numbers(ROWS)}")


def lock_and_change(process):
    process.run("SELECT v FROM open WHERE id = 1 FOR UPDATE")
    process.commit("UPDATE open SET v = v + 1 WHERE id = 1")


def fold(process):
    process.commit("UPDATE open SET v = v + 1 WHERE id = 2")
    end = time.monotonic() + patience(LONGEST)
    moved = 0
    # Others' snapshots hold it up until they advance, with their beats.
    while cached(process):
        moved += process.connection.checkpoint()
        assert time.monotonic() < end
    assert moved > 0


def define(process):
    process.commit("CREATE TABLE made (id INTEGER PRIMARY KEY)")
    process.commit("DROP TABLE made")


WORK = {
    "small": lambda process: process.commit("UPDATE open SET v = v + 1 WHERE id = 1"),
    "bulk": bulk,
    "locks": lock_and_change,
    "fold": fold,
    "definition": define,
}


@pytest.mark.parametrize("work", WORK)
def test_numbers_that_are_taken(shop, stranger, timed, work):
    """Locks of advisory numbers are nothing to the protocol."""
    stranger.take_all()
    timed(WORK[work], shop.owner)
    if work not in ("definition", "fold"):
        timed(WORK["small"], timed(shop.process, "writer"))


@pytest.mark.slow
def test_locks_that_are_queued_for(shop, stranger, timed):
    """New connections and new processes do not wait behind them, and live on."""
    stranger.queue()
    for _ in range(3):
        process = timed(shop.process)
        for work in WORK.values():
            if work is not bulk:
                timed(work, process)
        with closing(timed(process.another)) as other:
            timed(other.execute, "SELECT v FROM open")
        timed(shop.owner.database.engine.shared.tend)
        timed(WORK["small"], process)


def test_a_restart(shop, stranger, timed):
    """The database is recovered though somebody has the number of the recovering."""
    shop.restart()
    again = Stranger(shop)
    try:
        again.take_all()
        timed(WORK["small"], timed(shop.process))
    finally:
        again.close()


def test_a_database_that_is_new(database, timed):
    with closing(psycopg.connect(database.place, autocommit=True)) as other:
        for number in range(16):
            other.execute("SELECT pg_advisory_lock(%s, %s)", [LOCKS, number])
        with closing(timed(database.connect)) as connection:
            timed(connection.execute, "CREATE TABLE t (id INTEGER PRIMARY KEY)")


MODES = (
    "ROW SHARE",
    "ROW EXCLUSIVE",
    "SHARE UPDATE EXCLUSIVE",
    "SHARE",
    "SHARE ROW EXCLUSIVE",
    "EXCLUSIVE",
    "ACCESS EXCLUSIVE",
)


@pytest.mark.parametrize("role", ["stranger", "reader", "writer"])
def test_no_table_of_the_schema_can_be_locked(shop, role):
    """P11: not a guest's either; nor its rows."""
    with shop.by_hand() as hand:
        tables = hand.execute(
            "SELECT format('tique.%I', relname), relkind = 'v' FROM pg_class "
            "WHERE relnamespace = 'tique'::regnamespace AND relkind IN ('r', 'v')"
        ).fetchall()
    assert len(tables) > 8
    denied = pytest.raises(psycopg.errors.InsufficientPrivilege)
    with shop.by_hand(role) as connection:
        for table, is_call in tables:
            # A call is an INSERT into a view, which has no rows.
            for mode in MODES[2 if is_call else 0 :]:
                with denied, connection.transaction():
                    connection.execute(f"LOCK TABLE {table} IN {mode} MODE")
            with denied, connection.transaction():
                connection.execute(f"SELECT FROM {table} FOR KEY SHARE")


LOCKERS = {
    "table": "LOCK TABLE open IN ACCESS EXCLUSIVE MODE",
    "rows": "SELECT FROM open FOR UPDATE",
    "writes": "UPDATE open SET v = v",
}


@pytest.fixture
def locker(shop):
    """A session of a role that may write a table; a function that says how errors name it."""
    with shop.by_hand("writer") as connection:
        connection.execute("SET application_name = 'nightly load'")
        yield connection


def expect_named(error, locker):
    """The error names the session, and what ends it."""
    pid = locker.info.backend_pid
    assert f"pid {pid}, role writer, application 'nightly load'" in str(error)
    assert "pg_terminate_backend" in str(error)


def expect_folded(shop, value):
    """The versions come to storage, as nothing is in the way any more."""
    end = time.monotonic() + patience(20)
    with shop.by_hand() as hand:
        while hand.execute("SELECT v FROM open WHERE id = 1").fetchone() != (value,):
            assert time.monotonic() < end
            for process in shop.processes:
                process.database.timeline.advance()
            shop.owner.connection.checkpoint()


@pytest.mark.slow
@pytest.mark.parametrize("sql", LOCKERS.values(), ids=LOCKERS)
def test_a_table_that_is_locked_natively(shop, locker, timed, sql):
    """P6: by a role that may write it. Other tables' commits and folds go on."""
    other = shop.process()
    # Rows that a stranger can lock are those of storage.
    expect_folded(shop, 10)
    shop.owner.commit("UPDATE open SET v = 12 WHERE id = 1")
    for process in shop.processes:
        process.database.timeline.advance()
    with locker.transaction(force_rollback=True):
        locker.execute(sql)
        started = time.monotonic()
        with ThreadPoolExecutor() as pool:
            held = pool.submit(shop.owner.connection.checkpoint)
            while not held.done():
                timed(other.commit, "UPDATE closed SET v = v + 1 WHERE id = 1")
                assert time.monotonic() - started < patience(60)
            with pytest.raises(tique.OperationalError) as refused:
                held.result()
        assert refused.value.sqlstate == "55P03"
        expect_named(refused.value, locker)
    shop.owner.commit("UPDATE open SET v = 13 WHERE id = 1")
    expect_folded(shop, 13)


@pytest.mark.slow
def test_a_process_that_opens_beside_a_locked_table(shop, locker, timed):
    """P6: the wait has an end, which names who is in the way; others' work goes on."""
    other = shop.process()
    expect_folded(shop, 10)
    with locker.transaction(force_rollback=True):
        locker.execute(LOCKERS["table"])
        with pytest.raises(tique.OperationalError) as refused:
            timed(shop.process)
        timed(other.commit, "UPDATE closed SET v = v + 1 WHERE id = 1")
    assert refused.value.sqlstate == "55P03"
    expect_named(refused.value, locker)
    assert timed(shop.process).rows("SELECT v FROM open WHERE id = 1") == [(10,)]
