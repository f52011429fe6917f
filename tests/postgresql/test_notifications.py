"""NOTIFY and pg_notify(): sent by commits, and by nothing else (P2, P5, P8)."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest

import tique
from tests.plugins.postgresql import empty


@pytest.fixture
def url(postgresql_cluster):
    empty(postgresql_cluster.socket_url)
    yield postgresql_cluster.socket_url
    empty(postgresql_cluster.socket_url)


@pytest.fixture
def listener(url):
    with closing(psycopg.connect(url, autocommit=True)) as listener:
        for channel in ("news", "more"):
            listener.execute(f"LISTEN {channel}")
        yield listener


def heard(listener):
    listener.execute("SELECT 1")
    return [(n.channel, n.payload) for n in listener.notifies(timeout=0)]


def test_a_commit_sends_and_a_rollback_does_not(url, listener):
    with tique.connect(url) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("NOTIFY news, 'it''s one'")
        connection.execute("NOTIFY News")
        cursor = connection.execute("SELECT pg_notify(%s, %s)", ("more", "two"))
        assert cursor.description[0][0] == "pg_notify"
        assert cursor.fetchall() == [("",)]
        connection.execute("SELECT pg_catalog.pg_notify('more', 'two') AS x")
        assert heard(listener) == []
        connection.commit()
        assert heard(listener) == [("news", "it's one"), ("news", ""), ("more", "two")]
        connection.execute("NOTIFY news, 'never'")
        connection.rollback()
        connection.commit()
        assert heard(listener) == []
        # Without any writes, too.
        connection.execute("NOTIFY news, 'alone'")
        connection.commit()
        assert heard(listener) == [("news", "alone")]
        connection.execute("NOTIFY news, 'closed'")
    assert heard(listener) == [("news", "closed")]


def test_a_commit_stands_if_its_messages_cannot_be_sent(url, caplog):
    """P4; and P11: the log says so, without the message."""
    with tique.connect(url) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        connection.commit()
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute("NOTIFY news, 'secret'")
        pid = connection._execution.session._connection.pid
        with closing(psycopg.connect(url, autocommit=True)) as native:
            native.execute("SELECT pg_terminate_backend(%s, 5000)", [pid])
        connection.commit()
        assert connection.execute("SELECT * FROM t").fetchall() == [(1,)]
    (said,) = [text for text in caplog.messages if "were not sent" in text]
    assert "secret" not in said


def test_a_listener_finds_the_rows(url, listener):
    """P2: they are published before the message."""
    with tique.connect(url) as one, tique.connect(url) as two:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        one.commit()
        two.execute("SELECT 1 FROM t").fetchall()
        two.rollback()
        one.execute("INSERT INTO t VALUES (1)")
        one.execute("NOTIFY news")
        one.commit()
        assert heard(listener) == [("news", "")]
        assert two.execute("SELECT * FROM t").fetchall() == [(1,)]


def test_a_lost_conflict_and_a_savepoint_send_nothing(url, listener):
    with tique.connect(url) as one, tique.connect(url) as two:
        one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        one.execute("INSERT INTO t VALUES (1, 1)")
        one.commit()
        for connection in (one, two):
            connection.execute("SELECT n FROM t").fetchall()
            connection.execute("UPDATE t SET n = 2")
            connection.execute("NOTIFY news, 'lost'")
        one.rollback()
        one.execute("UPDATE t SET n = 3")
        one.execute("NOTIFY news, 'first'")
        one.execute("SAVEPOINT s")
        one.execute("NOTIFY news, 'undone'")
        one.execute("ROLLBACK TO s")
        one.execute("NOTIFY news, 'last'")
        one.commit()
        with pytest.raises(tique.errors.SerializationError):
            two.commit()
        assert heard(listener) == [("news", "first"), ("news", "last")]


def test_autocommit_sends_at_once(url, listener):
    with tique.connect(url, autocommit=True) as connection:
        connection.execute("NOTIFY news, 'now'")
        assert heard(listener) == [("news", "now")]
        connection.execute("BEGIN")
        connection.execute("NOTIFY news, 'later'")
        assert heard(listener) == []
        connection.execute("COMMIT")
        assert heard(listener) == [("news", "later")]


@pytest.mark.parametrize(
    ("channel", "payload", "message"),
    [
        ("", "x", "cannot be empty"),
        (None, "x", "cannot be empty"),
        ("c" * 64, "x", "channel name too long"),
        ("é" * 32, "x", "channel name too long"),
        ("c", "x" * 8000, "payload string too long"),
        ("c", "a\0b", "NUL"),
        ("c", "\ud800", "surrogate"),
    ],
)
def test_what_the_server_would_refuse_is_refused_at_the_statement(
    url, channel, payload, message
):
    """P8: a commit that happened raises nothing."""
    with tique.connect(url) as connection:
        with pytest.raises(tique.DataError, match=message) as caught:
            connection.execute("SELECT pg_notify(%s, %s)", (channel, payload))
        assert caught.value.sqlstate == "22023"
        connection.execute("SELECT pg_notify('c', %s)", (None,))
        connection.execute("SELECT pg_notify(%s, %s)", ("c" * 63, "x" * 7999))
        connection.commit()


def test_texts_are_no_sql(url, listener):
    """P11: a channel and a payload never change a statement."""
    hostile = "'); DROP TABLE t; --\"\\ %s $1 {,}"
    with tique.connect(url) as connection:
        connection.execute("SELECT pg_notify(%s, %s)", ("news", hostile))
        connection.execute(f"NOTIFY more, '{hostile.replace(chr(39), chr(39) * 2)}'")
        connection.commit()
    assert heard(listener) == [("news", hostile), ("more", hostile)]


def test_only_as_a_whole_statement(url):
    with tique.connect(url) as connection:
        connection.execute("CREATE TABLE t (c TEXT)")
        for sql in (
            "SELECT pg_notify(c, 'x') FROM t",
            "SELECT pg_notify('a', 'x'), 1",
            "SELECT pg_notify('a', lower('x'))",
            "SELECT 1 WHERE pg_notify('a', 'x') IS NULL",
            "INSERT INTO t SELECT pg_notify('a', 'x')",
            "LISTEN news",
            "EXPLAIN NOTIFY news",
        ):
            with pytest.raises(tique.NotSupportedError):
                connection.execute(sql)
        for sql in ("NOTIFY", "NOTIFY news 'x'", "NOTIFY news, x", "NOTIFY 'news'"):
            with pytest.raises(tique.ProgrammingError):
                connection.execute(sql)
