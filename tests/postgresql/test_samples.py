"""TABLESAMPLE: of the rows of the snapshot (P1)."""

from __future__ import annotations

import pytest

import tique


@pytest.fixture
def connection(database):
    connection = database.connect(autocommit=True, checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    connection.execute(
        "INSERT INTO t SELECT g, 'v' || g FROM generate_series(1, 1000) AS g"
    )
    return connection


def count(connection, sample, rest=""):
    query = f"SELECT count(*) FROM t TABLESAMPLE {sample}{rest}"
    return connection.execute(query).fetchall()[0][0]


@pytest.mark.parametrize("state", ["recent", "stored"])
def test_a_share_of_the_snapshot(connection, state):
    if state == "stored":
        connection.checkpoint()
        connection.execute("DELETE FROM t WHERE id > 900")
    total = count(connection, "BERNOULLI (100)")
    assert total == (900 if state == "stored" else 1000)
    assert count(connection, "SYSTEM (0)") == 0
    for sample in ("BERNOULLI (50)", "SYSTEM (50)", "BERNOULLI (50) REPEATABLE (3)"):
        assert 0.35 * total < count(connection, sample) < 0.65 * total


def test_a_sample_is_repeated(connection):
    query = "SELECT id FROM t TABLESAMPLE BERNOULLI (20) REPEATABLE (%s) ORDER BY id"
    one, other = (query % seed for seed in ("7", "8.5"))
    first = connection.execute(one).fetchall()
    connection.checkpoint()
    assert connection.execute(one).fetchall() == first
    assert connection.execute(other).fetchall() != first
    connection.execute("UPDATE t SET v = 'x' WHERE id = 1")
    changed = connection.execute(one).fetchall()
    assert [r for r in changed if r != (1,)] == [r for r in first if r != (1,)]


def test_rows_by_key_are_sampled_too(connection):
    found = {count(connection, "BERNOULLI (50)", " WHERE id = 5") for _ in range(40)}
    assert found == {0, 1}


def test_names_and_joins(connection):
    rows = connection.execute(
        "SELECT a.x, t.v FROM t AS a (x, y) TABLESAMPLE SYSTEM (100) REPEATABLE (1) "
        "JOIN ONLY t TABLESAMPLE BERNOULLI (100) ON t.id = a.x WHERE x < 3 ORDER BY 1"
    ).fetchall()
    assert rows == [(1, "v1"), (2, "v2")]
    cursor = connection.execute(
        "UPDATE t AS u SET v = 'new' FROM t TABLESAMPLE SYSTEM (100) WHERE t.id = u.id"
    )
    assert cursor.rowcount == 1000
    connection.execute("CREATE VIEW w AS SELECT id FROM t TABLESAMPLE BERNOULLI (100)")
    assert len(connection.execute("SELECT * FROM w").fetchall()) == 1000


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM t TABLESAMPLE BERNOULLI (%s)",
        "SELECT * FROM t TABLESAMPLE BERNOULLI (-1)",
        "SELECT * FROM t TABLESAMPLE BERNOULLI (100.1)",
        "SELECT * FROM w TABLESAMPLE BERNOULLI (1)",
        "SELECT * FROM pg_class TABLESAMPLE BERNOULLI (1)",
        "SELECT * FROM t TABLESAMPLE SYSTEM (1) REPEATABLE (1e30)",
    ],
)
def test_what_is_refused(connection, query):
    connection.execute("CREATE VIEW w AS SELECT id FROM t")
    with pytest.raises(tique.NotSupportedError):
        connection.execute(query, [5] if "%s" in query else None)
