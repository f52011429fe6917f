"""The planner's settings of an application are for its own statements (P6, P12)."""

from __future__ import annotations

import time

import pytest

import tique
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
    assert time.monotonic() - began < 4
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (6000,)


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
