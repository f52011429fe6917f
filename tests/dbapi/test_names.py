"""Names of results that have no alias: the application's text, never ours (P10)."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.fresh_tables

QUERY = "SELECT (SELECT max(b) FROM t WHERE a < %s), a + 1 FROM t WHERE b > %s"


def names(cursor):
    return [column[0] for column in cursor.description]


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 4711)")
    connection.commit()
    return connection


def test_names_are_the_same_wherever_rows_are(connection):
    recent = names(connection.execute(QUERY, (7, 0)))
    own = []
    for number in range(2, 40):
        connection.execute("INSERT INTO t VALUES (%s, %s)", (number, number))
        own.append(names(connection.execute(QUERY, (7, 0))))
    connection.commit()
    connection.checkpoint()
    # Another text: nothing is known of it from before.
    stored = names(connection.execute(QUERY + " AND a > 0", (7, 0)))
    assert [stored] * 39 == [recent, *own]
    assert not any("4711" in name for name in stored)


def test_the_engine_is_asked_for_names_once(connection):
    for number in range(3):
        connection.execute(QUERY, (number, 0)).fetchall()
    before = connection.info.engine_statements
    for number in range(3):
        connection.execute(QUERY, (number, 0)).fetchall()
    assert connection.info.engine_statements == before + 3


@pytest.mark.written_for(["duckdb"], reason="it calls a result by its text")
@pytest.mark.parametrize("paramstyle", ["qmark", "pyformat"])
def test_names_are_duckdbs_own_with_placeholders(engine, paramstyle):
    sql = "SELECT (select max( b ) FROM t WHERE a=?)+?"
    native = engine.native()
    native.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)")
    expected = names(native.execute(sql, (1, 2)))
    engine.close()
    tique.adopt(engine.url)
    connection = engine.connect(paramstyle=paramstyle)
    connection.execute("INSERT INTO t VALUES (1, 4711)")
    marks = sql if paramstyle == "qmark" else sql.replace("?", "%s")
    assert names(connection.execute(marks, (1, 2))) == expected


def test_arrow_has_the_names_too(connection):
    cursor = connection.execute(QUERY, (7, 0))
    expected = names(cursor)
    assert cursor.fetch_arrow_table().column_names == expected


def test_arrow_has_numbered_names_too(connection):
    cursor = connection.execute("SELECT count(*), max(a + b) FROM t")
    expected = names(cursor)
    assert cursor.fetch_arrow_table().column_names == expected


def test_returning_calls_results_so_too(connection):
    sql = "UPDATE t SET b = b + 1 WHERE a = %s RETURNING (SELECT max(b) FROM t), a + b"
    found = [names(connection.execute(sql, (1,)))]
    for number in range(2, 12):
        connection.execute("INSERT INTO t VALUES (%s, 1)", (number,))
        found.append(names(connection.execute(sql, (1,))))
    assert found == [found[0]] * 11
    assert not any("4711" in name or "_cts" in name for name in found[0])


@pytest.mark.written_for(["duckdb"], reason="elsewhere the name is another")
def test_a_query_around_it_may_use_the_name(connection):
    connection.execute("CREATE TABLE u (a INTEGER, b INTEGER)")
    connection.execute("INSERT INTO u SELECT a, b FROM t")
    sql = (
        'INSERT INTO u (a) SELECT "(SELECT max(b) FROM t)" FROM '
        "(SELECT (SELECT max(b) FROM t))"
    )
    assert connection.execute(sql).rowcount == 1
    assert connection.execute("SELECT max(a) FROM u").fetchone() == (4711,)
    cursor = connection.execute(
        'SELECT (SELECT max(b) FROM t) UNION SELECT 1 ORDER BY "(SELECT max(b) FROM t)"'
    )
    assert names(cursor) == ["(SELECT max(b) FROM t)"]
