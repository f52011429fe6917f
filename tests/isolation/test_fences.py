"""P1: no condition is computed, and fails, for a row that the snapshot does not have."""

from __future__ import annotations

import pytest

import tique
from tests.staging import stage_above

pytestmark = pytest.mark.every_engine

ROWS = [(i, i % 2, "x" if i % 2 == 0 else str(i)) for i in range(40)]


@pytest.fixture(params=["buffered", "staged"])
def connection(engine, request, monkeypatch):
    """Storage has rows with 0 and with a text that is no number; the snapshot does not."""
    if request.param == "staged":
        stage_above(3, monkeypatch.setattr)
    with engine.connect(checkpoint="manual") as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR(20))"
        )
        connection.execute("CREATE TABLE k (id INTEGER, n INTEGER, s VARCHAR(20))")
        connection.execute("CREATE TABLE other (id INTEGER PRIMARY KEY, n INTEGER)")
        for table in "tk":
            cursor = connection.cursor()
            cursor.executemany(f"INSERT INTO {table} VALUES (%s, %s, %s)", ROWS)
        connection.commit()
        connection.checkpoint()
        for table in "tk":
            connection.execute(f"DELETE FROM {table} WHERE n = 0")
        yield connection


@pytest.mark.parametrize("state", ["own", "committed", "folded"])
@pytest.mark.parametrize("table", ["t", "k"])
def test_queries(connection, table, state):
    if state != "own":
        connection.commit()
    if state == "folded":
        connection.checkpoint()
    for sql, expected in {
        f"SELECT count(*) FROM {table} WHERE 10 / n > 1": 20,
        f"SELECT count(*) FROM {table} WHERE CAST(s AS INTEGER) > 20": 10,
        f"SELECT max(CAST(s AS INTEGER)) FROM {table}": 39,
        f"SELECT count(*) FROM (SELECT * FROM {table} WHERE id = 7) AS a "
        "WHERE 10 / n + 1 IN (11, 3) AND CAST(s AS INTEGER) + 1 IN (8, 9)": 1,
        f"SELECT count(*) FROM {table} AS a JOIN k AS b ON CAST(a.s AS INTEGER) = b.id "
        "WHERE CAST(a.s AS INTEGER) > 30": 5,
        "SELECT count(*) FROM k AS a WHERE CAST(a.s AS INTEGER) IN "
        f"(SELECT CAST(s AS INTEGER) FROM {table} WHERE CAST(s AS INTEGER) > 30)": 5,
    }.items():
        assert connection.execute(sql).fetchall() == [(expected,)], sql


@pytest.mark.parametrize("table", ["t", "k"])
def test_changes(connection, table):
    for sql, expected in {
        f"UPDATE {table} SET n = 2 WHERE CAST(s AS INTEGER) > 30": 5,
        f"INSERT INTO other SELECT id, n FROM {table} WHERE 10 / n > 5": 15,
        f"DELETE FROM {table} WHERE CAST(s AS INTEGER) < 10": 5,
    }.items():
        assert connection.execute(sql).rowcount == expected, sql
    connection.commit()
    assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (15,)


def test_an_error_in_a_row_that_is_there(connection):
    connection.execute("INSERT INTO k VALUES (41, 0, 'y')")
    for sql in (
        "SELECT count(*) FROM k WHERE CAST(s AS INTEGER) > 20",
        "UPDATE k SET n = 2 WHERE CAST(s AS INTEGER) > 20",
    ):
        with pytest.raises(tique.DataError, match=r"'y'|\"y\"|conversion"):
            connection.execute(sql)
    assert connection.execute("SELECT count(*), sum(n) FROM k").fetchall() == [(21, 20)]
