"""Names of results that have no alias: the application's text, never ours (P10)."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.fresh_tables

QUERY = "SELECT (SELECT max(b) FROM t WHERE a < %s), a + 1 FROM t WHERE b > %s"


def names(cursor):
    return [column[0] for column in cursor.description]


def connect(engine, **options):
    connection = engine.connect(checkpoint="manual", **options)
    connection.execute("CREATE TABLE t (a INTEGER PRIMARY KEY, b INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 4711)")
    connection.commit()
    return connection


@pytest.fixture
def connection(engine):
    return connect(engine)


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


def test_the_engine_is_asked_for_names_once(statements, engine):
    # Before a query in an uncommitted fold, MonetDB is asked for shadowed functions.
    connection = connect(engine, uncommitted_fold_rows=None)

    def ask():
        for number in range(3):
            connection.execute(QUERY, (number, 0)).fetchall()

    ask()
    assert statements(connection, ask) == 3


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


DISTINCT = (
    "SELECT DISTINCT 1, w.* FROM w WHERE b = 3",
    "SELECT DISTINCT a + 1, a, b, c + d, d, e FROM w WHERE b IN (SELECT b FROM t)",
    "(SELECT DISTINCT a, a, %s + 1, c, d, e, (SELECT max(a) FROM t) FROM w WHERE b > 0)",
    "WITH v AS (SELECT DISTINCT b AS f FROM t) "
    "SELECT DISTINCT -a, a, b, c, d, e FROM w JOIN v ON f = b",
)


@pytest.mark.parametrize("sql", DISTINCT)
def test_distinct_results_need_no_names(connection, sql):
    """MonetDB gives no result for some of these, and PREPARE of them crashes it."""
    connection.execute(
        "CREATE TABLE w (a INTEGER PRIMARY KEY, b INTEGER, c INTEGER, d INTEGER, "
        "e INTEGER)"
    )
    connection.execute("INSERT INTO w VALUES (1, 3, 3, 4, 5)")
    connection.execute("INSERT INTO t VALUES (3, 3)")
    parameters = (7,) * sql.count("%s")
    answers = []
    for step in (connection.commit, connection.commit, connection.checkpoint):
        cursor = connection.execute(sql, parameters)
        answers.append((names(cursor), cursor.fetchall()))
        step()
    # Another text: its names are asked for when all is stored.
    cursor = connection.execute(f"{sql} ", parameters)
    answers.append((names(cursor), cursor.fetchall()))
    assert answers == [answers[0]] * 4
    assert len(answers[0][1]) == 1
    assert not any("unnamed" in name for name in answers[0][0])


def test_distinct_results_are_inserted(connection):
    for table in ("v", "w"):
        connection.execute(
            f"CREATE TABLE {table} (a INTEGER PRIMARY KEY, b INTEGER, c INTEGER, "
            "d INTEGER, e INTEGER)"
        )
    connection.execute("INSERT INTO v VALUES (1, 3, 3, 4, 5)")
    connection.commit()
    connection.checkpoint()
    query = "SELECT DISTINCT a + 1, b, c, d, a FROM v WHERE b = 3"
    assert connection.execute(f"INSERT INTO w {query}").rowcount == 1
    assert connection.execute("SELECT * FROM w").fetchall() == [(2, 3, 3, 4, 1)]


@pytest.mark.written_for(["duckdb"], reason="its stored tables have a rowid")
@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.rowid FROM other, t",
        "SELECT (SELECT rowid) FROM t, other",
        "SELECT * FROM t AS a JOIN t AS b USING (rowid)",
        "SELECT count(*) FROM t WHERE rowid = 0 AND EXISTS (SELECT 1 AS rowid)",
        "UPDATE t SET n = t.rowid FROM other",
    ],
)
def test_no_rowid_of_storage_beside_a_column_of_that_name(engine, query):
    """P1: all rows are in storage, which the engine reads as it stands."""
    with engine.connect(checkpoint="manual", autocommit=True) as conn:
        conn.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        conn.execute("CREATE TABLE other (rowid INTEGER PRIMARY KEY)")
        conn.execute("INSERT INTO t SELECT range, range FROM range(10)")
        conn.execute("INSERT INTO other VALUES (1)")
        conn.checkpoint()
    with engine.connect(checkpoint="manual", autocommit=True) as conn:
        with pytest.raises(tique.NotSupportedError, match="pseudo-column rowid"):
            conn.execute(query)
        assert conn.execute("SELECT rowid FROM other").fetchall() == [(1,)]
