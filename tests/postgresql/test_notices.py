"""Notices: what functions of the application's own say, and nothing of tique's own."""

from __future__ import annotations

import psycopg
import pytest

import tique

FUNCTION = """
CREATE FUNCTION say(what TEXT) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
BEGIN
    RAISE NOTICE 'one %', what;
    RAISE WARNING 'two' USING DETAIL = 'more', HINT = 'less', ERRCODE = '01ABC';
    RETURN what;
END $$
"""
FIELDS = (
    *("severity", "severity_nonlocalized", "sqlstate"),
    *("message_primary", "message_detail", "message_hint"),
)


def seen(notices):
    return [tuple(getattr(notice, name) for name in FIELDS) for notice in notices]


@pytest.fixture
def connection(database):
    connection = database.connect(autocommit=True)
    connection.execute(FUNCTION)
    connection.trust_function("public.say(text)")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, note TEXT)")
    return connection


def test_they_are_those_of_psycopg(connection, database):
    wanted, found = [], []
    connection.add_notice_handler(found.append)
    connection.execute("INSERT INTO t VALUES (1, say('a'))")
    assert connection.execute("SELECT note FROM t").fetchall() == [("a",)]
    with psycopg.connect(database.place, autocommit=True) as native:
        # (Its diagnostics are empty when their result is gone.)
        native.add_notice_handler(lambda notice: wanted.extend(seen([notice])))
        native.execute("SELECT say('a')")
        assert len(wanted) == 2
        assert seen(found) == wanted
    assert isinstance(found[0], tique.Notice)


def test_handlers_come_and_go(connection):
    first, second = [], []
    connection.add_notice_handler(first.append)
    connection.add_notice_handler(second.append)
    connection.execute("SELECT say('a')").fetchall()
    connection.remove_notice_handler(first.append)
    connection.execute("SELECT say('b')").fetchall()
    with pytest.raises(ValueError, match="not in list"):
        connection.remove_notice_handler(first.append)
    assert (len(first), len(second)) == (2, 4)


def test_an_error_in_a_handler_is_not_the_statements(connection):
    def fail(_):
        raise RuntimeError("of the handler's")

    connection.add_notice_handler(fail)
    assert connection.execute("SELECT say('a')").fetchall() == [("a",)]


def test_what_tique_does_says_nothing(connection):
    found = []
    connection.add_notice_handler(found.append)
    connection.execute("BEGIN")
    connection.execute("INSERT INTO t SELECT n, 'x' FROM generate_series(1, 3000) AS n")
    connection.execute("ROLLBACK")
    connection.execute("CREATE TEMPORARY TABLE IF NOT EXISTS u (a INTEGER)")
    connection.execute("DROP TABLE u")
    connection.execute("ALTER TABLE t ADD COLUMN n INTEGER")
    connection.checkpoint()
    assert found == []


def test_a_session_in_place_of_a_lost_one_is_heard(connection, database):
    found = []
    connection.add_notice_handler(found.append)
    (pid,) = connection.execute("SELECT pg_backend_pid()").fetchone()
    with psycopg.connect(database.place, autocommit=True) as native:
        native.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
    with pytest.raises(tique.OperationalError):
        connection.execute("SELECT 1")
    assert connection.execute("SELECT say('a')").fetchall() == [("a",)]
    assert len(found) == 2
