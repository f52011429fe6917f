"""P10: functions of the application's own that are there when a database is opened.

What a function reads it reads in storage, outside of the snapshot. PostgreSQL's are in
``postgresql/``.
"""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.written_for(
    ["duckdb", "monetdb"], reason="on PostgreSQL functions have a module of their own"
)

MACROS = (
    "CREATE MACRO reads() AS (SELECT count(*) FROM t)",
    "CREATE MACRO calls_it() AS (reads() + 1)",
    "CREATE MACRO rows_of(x) AS TABLE SELECT * FROM t WHERE id > x",
    'CREATE MACRO "odd ""one"(x) AS (SELECT max(note) FROM t)',
    "CREATE MACRO plus(x, y := 2) AS x + y",
    "CREATE MACRO over_it(x) AS (x), (x, y) AS (SELECT count(*) FROM t)",
)
FUNCTIONS = (
    "CREATE FUNCTION reads() RETURNS BIGINT BEGIN RETURN SELECT count(*) FROM t; END",
    "CREATE FUNCTION calls_it() RETURNS BIGINT BEGIN RETURN reads() + 1; END",
    "CREATE FUNCTION rows_of(x INTEGER) RETURNS TABLE (id INTEGER) "
    "BEGIN RETURN SELECT id FROM t WHERE id > x; END",
)
CALLS = (
    "SELECT reads()",
    "SELECT READS() + 1 FROM t",
    'SELECT "reads"()',
    "SELECT calls_it()",
    "SELECT * FROM rows_of(0)",
    "UPDATE t SET n = reads()",
    "INSERT INTO t SELECT 9, reads(), 'x'",
    "DELETE FROM t WHERE id < reads()",
    "CREATE VIEW w AS SELECT reads() AS n",
)
OF_MACROS = (
    "SELECT main.reads()",
    'SELECT "odd ""one"(note) FROM t',
    'SELECT note."odd ""one"() FROM t',
    "SELECT over_it(1)",
)


@pytest.fixture
def connection(engine):
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, note VARCHAR(9))"
        )
        connection.execute("INSERT INTO t VALUES (1, 10, 'a')")
        connection.commit()
        connection.checkpoint()
    native = engine.native()
    for sql in MACROS if engine.name == "duckdb" else FUNCTIONS:
        native.execute(sql)
    getattr(native, "commit", lambda: None)()
    connection = engine.connect()
    connection.execute("INSERT INTO t VALUES (2, 20, 'b')")
    return connection


@pytest.mark.parametrize("sql", CALLS)
def test_one_that_reads_a_table_is_refused(connection, sql):
    with pytest.raises(tique.NotSupportedError, match=r"the function|rows_of\(\)"):
        connection.execute(sql)
    assert connection.execute("SELECT count(*) FROM t").fetchall() == [(2,)]


@pytest.mark.written_for(["duckdb"], reason="MonetDB has no macros")
@pytest.mark.parametrize("sql", OF_MACROS)
def test_a_macro_that_reads_a_table_is_refused(connection, sql):
    with pytest.raises(tique.NotSupportedError, match="the function"):
        connection.execute(sql)


@pytest.mark.written_for(["duckdb"], reason="MonetDB's functions are no expressions")
def test_an_expression_may_be_called(connection):
    found = connection.execute("SELECT plus(n), main.plus(n, 5) FROM t ORDER BY id")
    assert found.fetchall() == [(12, 15), (22, 25)]
    connection.execute("UPDATE t SET n = plus(n) WHERE id = 2")
    assert connection.execute("SELECT n FROM t WHERE id = 2").fetchall() == [(22,)]


def test_names_that_are_no_calls(connection):
    """A column may have a function's name, and so may a table before its columns."""
    connection.commit()
    connection.execute("CREATE TABLE reads (id INTEGER PRIMARY KEY, calls_it INTEGER)")
    connection.execute("INSERT INTO reads (id, calls_it) VALUES (1, 2)")
    found = connection.execute("SELECT calls_it FROM reads").fetchall()
    assert found == [(2,)]


@pytest.mark.written_for(
    ["monetdb"], reason="DuckDB opens no database with such a macro"
)
def test_one_behind_an_operator_is_refused(engine):
    """No text says which operator its operands' types lead to (P1, P10)."""
    connection = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR(9))")
    connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    connection.commit()
    connection.close()
    engine.native().execute(
        "CREATE FUNCTION sys.sql_add(a VARCHAR(9), b INTEGER) RETURNS BIGINT "
        "BEGIN RETURN SELECT count(*) FROM sys.t; END"
    )
    connection = engine.connect(autocommit=True)
    for query in ("SELECT s + id FROM t", "UPDATE t SET s = s + id", "SELECT 1"):
        with pytest.raises(tique.NotSupportedError, match=r"it calls sys\.sql_add"):
            connection.execute(query)
    connection.execute("DROP TABLE u")
