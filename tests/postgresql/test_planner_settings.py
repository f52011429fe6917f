"""The planner's settings of an application are for its own statements (P6, P12)."""

from __future__ import annotations

import time
from contextlib import closing
from urllib.parse import quote

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.plugins.engine import PostgreSQL

SLOW = ("enable_seqscan = off", "enable_hashjoin = off", "enable_sort = off")


@pytest.fixture
def connection(request):
    opened = PostgreSQL.fresh(request)
    connection = opened.connect(autocommit=True)
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, n INTEGER)"
    )
    yield connection
    opened.close()


def plan(connection):
    query = "EXPLAIN SELECT count(*) FROM generate_series(1, 9) AS a(i) JOIN "
    query += "generate_series(1, 9) AS b(i) ON a.i = b.i"
    return "\n".join(str(row) for row in connection.execute(query).fetchall())


def test_checks_of_unique_keys_are_not_planned_by_them(connection):
    """27 s for 3,000 rows were seen."""
    rows = "SELECT i + {0}, i + {0}, 0 FROM generate_series(1, 3000) AS g(i)"
    connection.execute(f"INSERT INTO t {rows.format(0)}")
    for setting in SLOW:
        connection.execute(f"SET {setting}")
    began = time.monotonic()
    connection.execute(f"INSERT INTO t {rows.format(10_000)}")
    connection.execute("UPDATE t SET u = u + 100000")
    with pytest.raises(tique.IntegrityError):
        connection.execute(f"INSERT INTO t {rows.format(12_000)}")
    assert time.monotonic() - began < patience(4)
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (6000,)


OWN = ("enable_seqscan=off", "enable_hashjoin=off", "enable_sort=off", "work_mem=64kB")


@pytest.fixture(params=["url", "environment", "role"])
def given(request, monkeypatch):
    """A connection whose URL, PGOPTIONS or role has such settings; and a native one."""
    opened = PostgreSQL.fresh(request)
    url, options = opened.url, " ".join(f"-c{setting}" for setting in OWN)
    if request.param == "url":
        url += f"&options={quote(options)}"
    elif request.param == "environment":
        monkeypatch.setenv("PGOPTIONS", options)
    native = psycopg.connect(opened.place, autocommit=True)
    if request.param == "role":
        for setting in OWN:
            name, value = setting.split("=")
            native.execute(f"ALTER ROLE CURRENT_USER SET {name} = '{value}'")
    with tique.connect(url, autocommit=True) as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, u INTEGER UNIQUE, n INTEGER)"
        )
        yield connection
    native.execute("ALTER ROLE CURRENT_USER RESET ALL")
    native.close()
    opened.close()


def test_tiques_own_sessions_are_without_those_of_url_and_role(given):
    """Checkpoints, certification and checks of unique keys."""
    engine = given._database.engine
    for setting in OWN:
        name, value = setting.split("=")
        assert given.execute(f"SHOW {name}").fetchone() == (value,)
        ((own,),) = engine._presence.ask(f"SHOW {name}")
        with closing(engine.session()) as session:
            ((usual,),) = session.execute(f"SHOW {name}").fetch_all()
        assert own == usual != value
    rows = "SELECT i + {0}, i + {0}, 0 FROM generate_series(1, 3000) AS g(i)"
    began = time.monotonic()
    for shift in (0, 10_000):
        given.execute(f"INSERT INTO t {rows.format(shift)}")
    given.execute("UPDATE t SET u = u + 100000")
    given.checkpoint()
    assert time.monotonic() - began < patience(8)
    given.execute("SET enable_seqscan = on")
    given.execute("RESET enable_seqscan")
    assert given.execute("SHOW enable_seqscan").fetchone() == ("off",)
    given.execute("BEGIN")
    given.execute("CREATE TABLE other (id INTEGER)")
    shown = given._execution.session.aside.execute("SHOW enable_seqscan")
    assert shown.fetch_all() == [("on",)]
    given.execute("COMMIT")
    with given.cursor("large") as cursor:
        cursor.execute("SELECT current_setting('enable_hashjoin')")
        assert cursor.fetchall() == [("off",)]


def test_another_session_gets_them(given):
    ((pid,),) = given.execute("SELECT pg_backend_pid()").fetchall()
    given._database.engine._presence.ask("SELECT pg_terminate_backend($1)", [pid])
    with pytest.raises(tique.OperationalError):
        given.execute("SELECT pg_sleep(5)").fetchall()
    assert given.execute("SHOW work_mem").fetchone() == ("64kB",)


def test_the_applications_statements_are(connection):
    """Also behind a check, a transaction and an error."""
    before = plan(connection)
    connection.execute("SET enable_hashjoin = off")
    connection.execute("SET enable_mergejoin = off")
    after = plan(connection)
    assert before != after
    many = "INSERT INTO t SELECT i, i, 0 FROM generate_series(1, 3000) AS g(i)"
    connection.execute(many)
    assert plan(connection) == after
    with pytest.raises(tique.IntegrityError):
        connection.execute(many)
    assert plan(connection) == after
    connection.execute("BEGIN")
    connection.execute("CREATE TABLE other (id INTEGER)")
    connection.execute("COMMIT")
    assert plan(connection) == after
    assert connection.execute("SHOW enable_hashjoin").fetchone() == ("off",)
    connection.execute("RESET enable_hashjoin")
    connection.execute("RESET enable_mergejoin")
    assert plan(connection) == before


def test_those_of_tiques_own_connections_are_not_the_applications(connection):
    """P6: a search for a circle of locks is not compiled, under the mutex of commits."""
    engine = connection._database.engine
    with closing(engine._presence.connect_own()) as own:
        assert own.ask("SHOW jit") == [("off",)]
    assert engine._presence.ask("SHOW jit") == [("off",)]
    assert connection.execute("SHOW jit").fetchone() == ("on",)
    connection.execute("SET jit = off")
    connection.execute("RESET jit")
    assert connection.execute("SHOW jit").fetchone() == ("on",)
    with closing(engine.session()) as session:
        assert session.execute("SHOW jit").fetch_all() == [("on",)]


def test_they_cost_small_changes_nothing(connection):
    """A statement by key asks the engine as often as without them."""

    def cost():
        before = connection.info.engine_statements
        connection.execute("INSERT INTO t VALUES (1, 1, 1)")
        connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
        connection.execute("DELETE FROM t WHERE id = 1")
        return connection.info.engine_statements - before

    usual = min(cost() for _ in range(5))
    connection.execute("SET enable_hashjoin = off")
    assert min(cost() for _ in range(5)) <= usual
