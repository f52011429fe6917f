"""Time-outs of an idle connection and of a transaction are obeyed, as natively (P12, P6)."""

from __future__ import annotations

import threading
import time
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.plugins.engine import PostgreSQL

SESSION, TRANSACTION = "idle_session_timeout", "transaction_timeout"
IDLE = "idle_in_transaction_session_timeout"
STATES = {IDLE: "25P03", SESSION: "57P05", TRANSACTION: "25P04"}


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    with tique.connect(opened.url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute("INSERT INTO t VALUES (1, 0), (2, 0)")
    yield opened
    opened.close()


def limited(database, how, name, value, **options):
    """A connection with a time-out; the server that is here may not know all of them."""
    if how == "url":
        url = f"{database.url}&options={quote(f'-c{name}={value}')}"
        return tique.connect(url, **options)
    connection = tique.connect(database.url, **options)
    connection.execute(f"SET {name} = '{value}'")
    connection.commit()
    return connection


def await_closed(connection):
    until = time.monotonic() + patience(10)
    while not connection.closed:
        assert time.monotonic() < until
        time.sleep(0.01)


def expect_ended(connection, sqlstate):
    """Each later call says why; closing it is allowed."""
    await_closed(connection)
    for call in (
        lambda: connection.execute("SELECT 1"),
        lambda: connection.execute("SELECT 1"),
        connection.commit,
        connection.rollback,
    ):
        with pytest.raises(tique.DatabaseError, match="timeout") as caught:
            call()
        assert caught.value.sqlstate == sqlstate
    connection.close()


HOWS = ["url", "set"]


@pytest.mark.parametrize("how", HOWS)
def test_idle_in_a_transaction(database, how):
    connection = limited(database, how, IDLE, "200ms")
    connection.execute("SELECT * FROM t FOR UPDATE").fetchall()
    connection.execute("UPDATE t SET n = 1 WHERE id = 1")
    with tique.connect(database.url, lock_timeout=patience(20)) as other:
        other.execute("UPDATE t SET n = n + 10")
        assert other.execute("SELECT * FROM t FOR UPDATE").fetchall() == [
            (1, 10),
            (2, 10),
        ]
    expect_ended(connection, STATES[IDLE])


@pytest.mark.parametrize("how", HOWS)
def test_its_message_is_that_of_the_server(database, how):
    connection = limited(database, how, IDLE, "100ms")
    connection.execute("SELECT 1")
    await_closed(connection)
    with pytest.raises(tique.DatabaseError) as caught:
        connection.execute("SELECT 1")
    place = psycopg.connect(database.place, options=f"-c{IDLE}=100ms")
    with closing(place) as natively:
        natively.execute("SELECT 1")
        time.sleep(0.3)
        with pytest.raises(psycopg.DatabaseError) as expected:
            natively.execute("SELECT 1")
        assert expected.value.sqlstate == caught.value.sqlstate == STATES[IDLE]
        assert isinstance(expected.value, psycopg.InternalError)
        assert isinstance(caught.value, tique.InternalError)
        assert str(caught.value) in str(expected.value)


@pytest.mark.parametrize("how", HOWS)
def test_busy_and_outside_of_transactions_it_does_not_count(database, how):
    with limited(database, how, IDLE, "300ms") as connection:
        connection.execute("SELECT pg_sleep(0.6)").fetchall()
        connection.commit()
        time.sleep(0.6)
        for _ in range(12):
            connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
            time.sleep(0.05)
        connection.commit()
        shown = connection.execute(f"SHOW {IDLE}").fetchone()
        assert shown == ("300ms",)
        connection.execute(f"SET LOCAL {IDLE} = 0")
        time.sleep(0.6)
        assert connection.execute("SELECT sum(n) FROM t").fetchone() == (12,)
        connection.rollback()


def test_a_block_fails_as_natively(database):
    connection = limited(database, "set", IDLE, "100ms")

    def block():
        with connection.transaction():
            connection.execute("UPDATE t SET n = 5")
            await_closed(connection)

    with pytest.raises(tique.DatabaseError) as caught:
        block()
    assert caught.value.sqlstate == STATES[IDLE]
    with tique.connect(database.url) as other:
        assert other.execute("SELECT sum(n) FROM t").fetchone() == (0,)


def test_its_ddl_is_undone(database):
    """P5: and nothing stays locked."""
    connection = limited(database, "url", IDLE, "200ms", autocommit=True)
    connection.execute("BEGIN")
    connection.execute("ALTER TABLE t ADD COLUMN m INTEGER")
    expect_ended(connection, STATES[IDLE])
    with tique.connect(database.url, autocommit=True) as other:
        other.execute("ALTER TABLE t ADD COLUMN o INTEGER")
        assert other.execute("SELECT * FROM t WHERE id = 1").fetchall() == [
            (1, 0, None)
        ]


@pytest.mark.parametrize("how", HOWS)
def test_an_idle_session(database, how):
    connection = limited(database, how, SESSION, "300ms")
    connection.execute("SELECT 1")
    time.sleep(0.7)
    connection.execute("UPDATE t SET n = n + 1")
    connection.commit()
    expect_ended(connection, STATES[SESSION])
    with tique.connect(database.url) as other:
        assert other.execute("SELECT sum(n) FROM t").fetchone() == (2,)


def test_a_session_that_is_never_used(database):
    expect_ended(limited(database, "url", SESSION, "100ms"), STATES[SESSION])


@pytest.mark.slow
def test_a_transactions_time_between_statements(database):
    connection = limited(database, "set", TRANSACTION, "500ms")
    began = time.monotonic()

    def change():
        while time.monotonic() < began + patience(20):
            connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
            time.sleep(0.02)

    with pytest.raises(tique.DatabaseError) as caught:
        change()
    assert caught.value.sqlstate == STATES[TRANSACTION]
    assert time.monotonic() - began > 0.4
    expect_ended(connection, STATES[TRANSACTION])
    with tique.connect(database.url) as other:
        assert other.execute("SELECT sum(n) FROM t").fetchone() == (0,)


@pytest.mark.parametrize(
    "statement",
    ["SELECT pg_sleep(60)", "SELECT * FROM t FOR UPDATE", "UPDATE t SET n = n + 1"],
)
def test_a_transactions_time_in_a_statement(database, statement):
    with tique.connect(database.url) as other:
        other.execute("SELECT * FROM t FOR UPDATE").fetchall()
        level = "READ COMMITTED" if "UPDATE t" in statement else "SNAPSHOT"
        connection = limited(
            database, "set", TRANSACTION, "300ms", isolation_level=level
        )
        began = time.monotonic()
        with pytest.raises(tique.DatabaseError) as caught:
            connection.execute(statement).fetchall()
        assert caught.value.sqlstate == STATES[TRANSACTION]
        assert 0.25 < time.monotonic() - began < patience(10)
        expect_ended(connection, STATES[TRANSACTION])


def test_transactions_one_after_the_other(database):
    with limited(database, "set", TRANSACTION, "400ms") as connection:
        for _ in range(12):
            connection.execute("UPDATE t SET n = n + 1")
            time.sleep(0.05)
            connection.commit()
        time.sleep(0.6)
        assert connection.execute("SELECT sum(n) FROM t").fetchone() == (24,)


def test_no_thread_is_left(database):
    before = threading.active_count()
    connection = limited(database, "url", IDLE, "1h")
    for _ in range(20):
        connection.execute("SELECT 1").fetchall()
    connection.close()
    until = time.monotonic() + patience(5)
    while [t for t in threading.enumerate() if t.name == "tique-rest"]:
        assert time.monotonic() < until, before
        time.sleep(0.01)


def test_settings_of_a_dump_pass(database):
    """Its first lines, on any release."""
    with tique.connect(database.url, autocommit=True) as connection:
        for name in STATES:
            connection.execute(f"SET {name} = 0")
        for value, shown in (("90000", "90s"), ("2h", "2h"), ("60s", "1min")):
            connection.execute(f"SET {IDLE} = '{value}'")
            assert connection.execute(f"SHOW {IDLE}").fetchone() == (shown,)
        connection.execute(f"RESET {IDLE}")
        assert connection.execute(f"SHOW {IDLE}").fetchone() == ("0",)
