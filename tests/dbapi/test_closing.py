"""A connection that one thread closes while another one uses it (P6)."""

from __future__ import annotations

import random
import threading
import time
from collections import UserDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

import tique
from tests.dbapi.test_async import slow
from tests.dbapi.test_connection import wait_until
from tests.effort import effort, patience
from tests.portable import numbers
from tique.checkpoint.checkpointer import Checkpointer
from tique.connection import connection as connections
from tique.connection.execution import Execution
from tique.database.database import Database

SOON = 6.0
"""Seconds: it waits for one, stops the call, and waits for another one."""


@pytest.fixture
def connection(engine):
    connection = engine.connect(history="1 hour")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    connection.commit()
    return connection


@pytest.fixture
def pool():
    with ThreadPoolExecutor(1) as pool:
        yield pool


def seconds_to_close(closed):
    started = time.monotonic()
    closed.close()
    assert getattr(closed, "closed", True)
    return time.monotonic() - started


class Stuck(UserDict):
    """Parameters that a statement waits for."""

    def __init__(self):
        super().__init__(a=1)
        self.is_asked = threading.Event()
        self.answers = threading.Event()

    def __getitem__(self, key):
        self.is_asked.set()
        assert self.answers.wait(60)
        return super().__getitem__(key)


@pytest.mark.parametrize(
    "cursor",
    [lambda connection: connection.cursor(), lambda connection: connection.cursor("n")],
    ids=["own session", "side session"],
)
def test_a_statement_of_another_thread_is_stopped(engine, connection, pool, cursor):
    """P6: its thread learns why, and what it had is given back."""
    running = pool.submit(
        lambda: cursor(connection).execute(slow(engine)).fetchall() and time.monotonic()
    )
    wait_until(lambda: connection.txid is not None)
    time.sleep(0.3)
    assert seconds_to_close(connection) < patience(SOON)
    with pytest.raises((tique.OperationalError, tique.InterfaceError)):
        running.result(patience(SOON))
    with pytest.raises(tique.InterfaceError, match="closed"):
        connection.execute("SELECT 1")


@pytest.mark.slow
def test_a_call_that_does_not_end_is_left(engine, connection, pool):
    """P6: the connection gives everything back when it does."""
    other = engine.connect(history="1 hour")
    before = other._database.connections
    stuck = Stuck()
    running = pool.submit(
        lambda: connection.execute("SELECT v FROM t WHERE id = %(a)s", stuck).fetchone()
    )
    assert stuck.is_asked.wait(10)
    assert seconds_to_close(connection) < patience(SOON)
    assert other._database.connections == before
    stuck.answers.set()
    with pytest.raises(tique.InterfaceError, match="closed"):
        running.result(10)
    wait_until(lambda: other._database.connections == before - 1)
    assert other.execute("SELECT v FROM t WHERE id = 1").fetchone() == (0,)


def test_a_feed_that_reads_is_closed(connection, pool):
    """P6: its iteration ends."""
    feed = connection.changes("t", since=connection.version)
    is_read, goes_on = threading.Event(), threading.Event()

    def pieces():
        is_read.set()
        assert goes_on.wait(60)
        yield from ()

    feed._pieces = pieces()
    reading = pool.submit(list, feed)
    assert is_read.wait(10)
    assert seconds_to_close(feed) < patience(SOON)
    goes_on.set()
    assert reading.result(10) == []


REFUSALS = tique.InterfaceError, tique.OperationalError


@pytest.mark.parametrize(
    ("use", "place", "name"),
    [
        (lambda c: c.status(), connections, "status"),
        (lambda c: c.outcome(1), Database, "outcome"),
        (lambda c: c.checkpoint(), Checkpointer, "checkpoint_now"),
        (lambda c: c.cancel(), Execution, "_stop"),
        (lambda c: c.changes("t", since=0).close(), connections, "keep"),
    ],
    ids=["status", "outcome", "checkpoint", "cancel", "feed"],
)
def test_closed_when_a_call_has_begun(connection, monkeypatch, use, place, name):
    """PEP 249: it fails like one that begins later, or has not noticed."""
    call = getattr(place, name)

    def closed_first(*arguments, **options):
        monkeypatch.undo()
        connection.close()
        return call(*arguments, **options)

    monkeypatch.setattr(place, name, closed_first)
    with suppress(*REFUSALS):
        use(connection)
    assert connection.closed


@pytest.mark.parametrize(
    "fetch",
    [
        lambda cursor: cursor.fetchone(),
        lambda cursor: cursor.fetchall(),
        lambda cursor: cursor.fetch_arrow_table(),
    ],
    ids=["one", "all", "arrow"],
)
@pytest.mark.parametrize("name", ["", "n"], ids=["own session", "side session"])
def test_closed_before_a_fetch_has_its_turn(connection, pool, name, fetch):
    """P10: rows that are gone are not taken for the end of the result."""
    cursor = connection.cursor(name)
    cursor.execute(f"SELECT number, id FROM {numbers(5000)} CROSS JOIN t")
    with connection._execution.lock:
        running = pool.submit(fetch, cursor)
        time.sleep(0.2)
        connection.close()
    with pytest.raises(tique.InterfaceError, match="closed") as refused:
        running.result(10)
    assert refused.value.sqlstate == "08003"


def use_all(connection):
    with connection.transaction():
        connection.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        connection.cursor().executemany("DELETE FROM t WHERE id = %s", [(8,), (9,)])
    for row in connection.cursor("n").execute("SELECT * FROM t"):
        assert len(row) == 2
    connection.execute("SELECT sum(v) FROM t").fetch_arrow_table()
    connection.rollback()
    connection.status()
    connection.checkpoint()
    connection.outcome(connection.txid or 1)
    connection.cancel()
    for change in connection.changes("t", since=connection.version):
        assert change
    connection.rollback()


@pytest.mark.slow
@pytest.mark.parametrize("is_last", [True, False])
def test_closed_at_any_moment(engine, connection, pool, is_last):
    """PEP 249: no other error leaves the driver."""
    chance = random.Random(5)
    if not is_last:
        engine.connect(history="1 hour")
    for _ in range(effort(15, 300)):
        running = pool.submit(
            lambda used: [use_all(used) for _ in range(1000)], connection
        )
        time.sleep(chance.uniform(0, 0.1))
        connection.close()
        with pytest.raises(REFUSALS):
            running.result(patience(20))
        connection = engine.connect(history="1 hour")
