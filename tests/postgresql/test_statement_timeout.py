"""statement_timeout limits the application's whole statement (P12, P6)."""

from __future__ import annotations

import time
from contextlib import contextmanager

import pytest

import tique
from tests.plugins.engine import PostgreSQL


@pytest.fixture
def database(request):
    opened = PostgreSQL.fresh(request)
    with tique.connect(opened.url, autocommit=True) as connection:
        for name in "ab":
            connection.execute(
                f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)"
            )
            connection.execute(f"INSERT INTO {name} VALUES (1, 0), (2, 0)")
    yield opened
    opened.close()


@pytest.fixture(params=["set", "url"])
def limited(request, database):
    """A connection whose statements may take 300 ms, and wait for locks a minute."""
    url = database.url
    if request.param == "url":
        url += "&options=-cstatement_timeout%3D300ms%20-clock_timeout%3D1min"
    with tique.connect(url) as connection:
        if request.param == "set":
            connection.execute("SET statement_timeout = '300ms'")
            connection.execute("SET lock_timeout = '1min'")
            connection.commit()
        yield connection


@contextmanager
def too_long(connection):
    began = time.monotonic()
    with pytest.raises(tique.OperationalError, match="statement timeout") as caught:
        yield
    assert caught.value.sqlstate == "57014"
    assert 0.25 < time.monotonic() - began < 15
    connection.rollback()
    # The connection goes on.
    assert connection.execute("SELECT count(*) FROM a").fetchone() == (2,)
    connection.rollback()


@pytest.mark.parametrize("where", ["one process", "two processes"])
def test_waits_for_row_locks(database, limited, where):
    url = database.url + ("&application_name=o" if where == "two processes" else "")
    with tique.connect(url) as other:
        other.execute("SELECT * FROM a FOR UPDATE").fetchall()
        with too_long(limited):
            limited.execute("SELECT * FROM a FOR UPDATE").fetchall()
        limited.autocommit = True
        with too_long(limited):
            limited.execute("UPDATE a SET n = n + 1 WHERE id = 1")
        limited.autocommit = False
        other.commit()
    assert limited.execute("SELECT sum(n) FROM a").fetchone() == (0,)


def test_several_statements_of_the_engines(limited):
    """Each takes less than the limit."""
    change = (
        "{0} AS (UPDATE {0} SET n = n + 1 WHERE pg_sleep(0.1) IS NOT NULL RETURNING id)"
    )
    with too_long(limited):
        limited.execute(
            f"WITH {change.format('a')}, {change.format('b')} SELECT * FROM a, b"
        )
    assert limited.execute("SELECT sum(a.n + b.n) FROM a, b").fetchone() == (0,)


def test_one_statement(limited):
    with too_long(limited):
        limited.execute("SELECT pg_sleep(60)").fetchall()
    with too_long(limited):
        limited.execute("UPDATE a SET n = 1 WHERE pg_sleep(60) IS NOT NULL")
    limited.execute("UPDATE a SET n = 1 WHERE pg_sleep(0.01) IS NOT NULL")
    limited.commit()
    assert limited.execute("SELECT sum(n) FROM a").fetchone() == (2,)


def test_nothing_is_stopped_behind_it(limited):
    """The time of a statement that has ended counts for no other one."""
    for _ in range(30):
        limited.execute("SELECT pg_sleep(0.03)").fetchall()
    limited.commit()
    limited.execute("SET statement_timeout = 0")
    limited.execute("SELECT pg_sleep(0.5)").fetchall()
    limited.execute("RESET statement_timeout")
    limited.commit()
