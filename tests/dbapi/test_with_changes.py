"""INSERT, UPDATE and DELETE in a WITH list (P1, P8, P9), and beside others (P3)."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.written_for(
        ["duckdb", "postgresql"], reason="MonetDB has no changes in WITH"
    ),
]

ROWS = [(1, "a", 10), (2, "b", 20), (3, None, 30)]


@pytest.fixture(params=["stored", "cached", "own", "staged"])
def connection(engine, request):
    """Three rows, wherever rows can be, and an empty archive."""
    connection = engine.connect(checkpoint="manual")
    create(connection)
    if request.param == "staged":
        connection.execute(
            f"INSERT INTO t SELECT number + 1000, NULL, 0 FROM {numbers(2100)}"
        )
        connection.execute("DELETE FROM t WHERE id >= 1000")
    if request.param in ("stored", "cached"):
        connection.commit()
    if request.param == "stored":
        connection.checkpoint()
    return connection


def create(connection):
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20) UNIQUE, "
        "n INTEGER CHECK (n >= 0))"
    )
    connection.execute("CREATE TABLE archive (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.execute("CREATE TABLE heap (id INTEGER, what TEXT)")
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s)", ROWS)


def content(connection, table="t"):
    rows = connection.execute(f"SELECT * FROM {table}").fetchall()
    return sorted(rows, key=repr)


def test_rows_that_move(connection):
    """The idiom: what DELETE returns is inserted elsewhere."""
    cursor = connection.execute(
        "WITH gone AS (DELETE FROM t WHERE n > %s RETURNING id, n) "
        "INSERT INTO archive SELECT id, n + %s FROM gone WHERE id < %s",
        (10, 1, 3),
    )
    assert (cursor.rowcount, cursor.description) == (1, None)
    assert content(connection) == ROWS[:1]
    assert content(connection, "archive") == [(2, 21)]
    connection.commit()
    assert content(connection) == ROWS[:1]
    connection.commit()
    connection.checkpoint()
    assert content(connection) == ROWS[:1]
    assert content(connection, "archive") == [(2, 21)]


@pytest.mark.written_for(["postgresql"], reason="DuckDB's changes happen in turn")
def test_all_parts_see_the_rows_before(connection):
    """P1: neither a query nor another change sees what a member writes, but by name."""
    for condition in ("id = 1", "id < 2", "name = 'a'"):
        connection.execute("SAVEPOINT s")
        cursor = connection.execute(
            f"WITH x AS (UPDATE t SET n = n + 1 WHERE {condition} RETURNING *), "
            "y AS (INSERT INTO t VALUES (4, 'd', 40) RETURNING id), "
            "z AS (DELETE FROM t WHERE id = 2 RETURNING id) "
            "SELECT x.n AS new, t.n AS old, (SELECT count(*) FROM t) AS before, y.id, z.id "
            f"FROM x, y, z, t WHERE t.{condition}"
        )
        assert [column[0] for column in cursor.description][:3] == [
            *("new", "old", "before"),
        ]
        assert cursor.fetchall() == [(11, 10, 3, 4, 2)]
        assert content(connection) == [(1, "a", 11), (3, None, 30), (4, "d", 40)]
        cursor = connection.execute("SELECT n FROM t WHERE id = 1")
        assert cursor.fetchall() == [(11,)]
        connection.execute("ROLLBACK TO s")


@pytest.mark.written_for(["duckdb"], reason="in PostgreSQL all see the rows before")
def test_changes_in_turn(connection):
    """As DuckDB has it: each sees those before it, and a query sees all of them."""
    for condition in ("id = 1", "id < 2", "name = 'a'"):
        connection.execute("SAVEPOINT s")
        cursor = connection.execute(
            "WITH q AS (SELECT count(*) AS c FROM archive), "
            f"x AS (UPDATE t SET n = n + 1 WHERE {condition} RETURNING *), "
            f"y AS (UPDATE t SET n = n * 2 WHERE {condition} RETURNING n), "
            "z AS (DELETE FROM t WHERE n > 20 RETURNING id) "
            "SELECT x.n AS new, y.n AS twice, (SELECT count(*) FROM t) AS after, q.c, "
            "(SELECT count(*) FROM z) FROM x, y, q"
        )
        assert cursor.fetchall() == [(11, 22, 1, 0, 2)]
        assert content(connection) == [(2, "b", 20)]
        connection.execute("ROLLBACK TO s")
        connection.execute(
            "WITH x AS (INSERT INTO t VALUES (4, 'd', 40)) DELETE FROM t WHERE id > 2"
        )
        assert content(connection) == ROWS[:2]
        connection.execute("ROLLBACK TO s")


def test_members_see_those_before_them(engine, connection):
    connection.commit()
    connection.execute("CREATE TABLE wanted (item INTEGER, n INTEGER)")
    connection.execute("INSERT INTO wanted VALUES (1, 10), (2, 20), (3, 0)")
    cursor = connection.execute(
        "WITH a(k, m) AS (SELECT item, n FROM wanted WHERE n > 0), "
        "b AS (UPDATE t SET n = (SELECT max(m) FROM a) WHERE id IN (SELECT k FROM a) "
        "RETURNING t.id, t.n), "
        "c(k, twice) AS (INSERT INTO archive SELECT id, n * 2 FROM b RETURNING *) "
        "INSERT INTO heap SELECT c.k, 'x' || c.twice FROM c JOIN b ON b.id = c.k "
        "RETURNING id, what"
    )
    assert sorted(cursor.fetchall()) == [(1, "x40"), (2, "x40")]
    assert content(connection) == [(1, "a", 20), (2, "b", 20), (3, None, 30)]
    assert content(connection, "archive") == [(1, 40), (2, 40)]
    assert content(connection, "heap") == [(1, "x40"), (2, "x40")]


def test_members_that_nobody_reads(connection):
    cursor = connection.execute(
        "WITH x AS (DELETE FROM t WHERE id = 1), y AS (INSERT INTO archive VALUES (1, 1)) "
        "UPDATE t SET n = 0 WHERE id = 2 RETURNING name"
    )
    assert cursor.fetchall() == [("b",)]
    assert content(connection) == [(2, "b", 0), (3, None, 30)]
    assert content(connection, "archive") == [(1, 1)]


def test_upserts(connection):
    cursor = connection.execute(
        "WITH x AS (INSERT INTO t VALUES (1, 'a', 5), (9, 'i', 9) ON CONFLICT (id) "
        "DO UPDATE SET n = t.n + excluded.n RETURNING id, n), "
        "y AS (INSERT INTO archive VALUES (1, 1), (1, 2) ON CONFLICT DO NOTHING "
        "RETURNING n) SELECT id, n FROM x UNION ALL SELECT 0, n FROM y"
    )
    assert sorted(cursor.fetchall()) == [(0, 1), (1, 15), (9, 9)]
    assert content(connection)[-1] == (9, "i", 9)
    cursor = connection.execute(
        "WITH x AS (DELETE FROM archive RETURNING id) INSERT INTO t SELECT id, 'z', 7 "
        "FROM x ON CONFLICT (id) DO UPDATE SET n = excluded.n RETURNING id, name, n"
    )
    assert cursor.fetchall() == [(1, "a", 7)]


def test_many_rows(connection):
    connection.execute(
        f"WITH x AS (INSERT INTO t SELECT number + 10, NULL, number FROM {numbers(3000)} "
        "RETURNING id) INSERT INTO archive SELECT id, 1 FROM x"
    )
    for table, count in (("t", 3003), ("archive", 3000)):
        query = f"SELECT count(*) FROM {table}"
        assert connection.execute(query).fetchone() == (count,)
    connection.commit()
    cursor = connection.execute(
        "WITH x AS (DELETE FROM t WHERE id >= 10 RETURNING id), "
        "y AS (DELETE FROM archive USING x WHERE x.id = archive.id RETURNING n) "
        "SELECT count(*), sum(n) FROM y"
    )
    assert cursor.fetchall() == [(3000, 3000)]
    connection.commit()
    connection.checkpoint()
    assert content(connection) == ROWS
    assert content(connection, "archive") == []


def test_parameters(engine, connection):
    """Each part counts its own; the order is that of the text."""
    for style in ("pyformat", "named"):
        marks = ["%s"] * 5
        given = ["it's", 1, 100, 2, 7]
        if style == "named":
            marks = ["%(d)s", "%(a)s", "%(b)s", "%(c)s", "%(e)s"]
            given = {"a": 1, "b": 100, "c": 2, "d": "it's", "e": 7}
        connection.execute("SAVEPOINT s")
        cursor = connection.execute(
            "WITH x AS (UPDATE t SET name = {} WHERE id = {} RETURNING id), "
            "y AS (INSERT INTO archive VALUES ({}, {}) RETURNING id, n) "
            "SELECT x.id, y.id, y.n, CAST({} AS INTEGER) FROM x, y".format(*marks),
            given,
        )
        assert cursor.fetchall() == [(1, 100, 2, 7)]
        assert content(connection)[0] == (1, "it's", 10)
        connection.execute("ROLLBACK TO s")


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        (
            "WITH x AS (DELETE FROM t RETURNING id) INSERT INTO archive "
            "SELECT 1, id FROM x",
            errors.UniqueViolation,
        ),
        (
            "WITH x AS (INSERT INTO archive VALUES (7, 7)) INSERT INTO t VALUES (1, 'x', 1)",
            errors.UniqueViolation,
        ),
        (
            "WITH x AS (UPDATE t SET n = -1 WHERE id = 2 RETURNING id) "
            "INSERT INTO archive SELECT id, 1 FROM x",
            errors.CheckViolation,
        ),
        (
            "WITH x AS (INSERT INTO archive VALUES (7, 7) RETURNING id) "
            "SELECT CAST('x' || id AS INTEGER) FROM x",
            tique.DataError,
        ),
        (
            "WITH x AS (DELETE FROM t RETURNING id) SELECT nothing FROM x",
            tique.ProgrammingError,
        ),
        ("WITH x AS (DELETE FROM t) SELECT * FROM x", tique.ProgrammingError),
        (
            "WITH x AS (SELECT * FROM y), y AS (DELETE FROM t RETURNING id) "
            "SELECT * FROM x",
            tique.ProgrammingError,
        ),
        pytest.param(
            "WITH x AS (SELECT count(*) FROM t), y AS (DELETE FROM t) SELECT * FROM x",
            tique.NotSupportedError,
            marks=pytest.mark.written_for(["duckdb"], reason="PostgreSQL says it"),
        ),
        (
            "WITH RECURSIVE x AS (DELETE FROM t RETURNING id) SELECT * FROM x",
            tique.NotSupportedError,
        ),
        (
            "WITH x AS (DELETE FROM t RETURNING id), y AS (SELECT %s) SELECT * FROM x",
            tique.NotSupportedError,
        ),
        (
            "SELECT * FROM (WITH x AS (DELETE FROM t RETURNING id) SELECT * FROM x) AS y",
            tique.Error,
        ),
        (
            "WITH x AS (DELETE FROM tique.log RETURNING 1) SELECT * FROM x",
            tique.NotSupportedError,
        ),
    ],
)
def test_a_statement_that_fails_leaves_no_trace(connection, statement, error):
    """P5: all of its parts, or none."""
    with pytest.raises(error):
        connection.execute(statement, (1,) if "%s" in statement else None)
    assert content(connection) == ROWS
    assert content(connection, "archive") == []
    connection.commit()
    assert content(connection) == ROWS


@pytest.mark.written_for(["postgresql"], reason="DuckDB's changes happen in turn")
def test_a_row_that_two_members_change(connection):
    """PostgreSQL does not say which of them does it: that is an error here."""
    with pytest.raises(errors.CardinalityViolation):
        connection.execute(
            "WITH x AS (UPDATE t SET n = 1 WHERE id = 1 RETURNING id) "
            "DELETE FROM t WHERE id < 3"
        )
    assert content(connection) == ROWS


def test_foreign_keys(engine):
    """P9: the constraints are checked when the whole statement is over."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE team (id INTEGER PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE player (id INTEGER PRIMARY KEY, team INTEGER REFERENCES team (id))"
    )
    connection.execute(
        "WITH new AS (INSERT INTO team VALUES (1), (2) RETURNING id) "
        "INSERT INTO player SELECT id + 10, id FROM new"
    )
    assert content(connection, "player") == [(11, 1), (12, 2)]
    with pytest.raises(errors.ForeignKeyViolation):
        connection.execute(
            "WITH x AS (DELETE FROM player WHERE id = 11) DELETE FROM team"
        )
    connection.execute("WITH x AS (DELETE FROM player) DELETE FROM team WHERE id = 1")
    assert content(connection, "team") == [(2,)]


@pytest.mark.written_for(["postgresql"], reason="the types are PostgreSQL's")
def test_values_of_every_kind(engine):
    """What RETURNING has is of the columns' types for the parts that read it."""
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE k (id INTEGER PRIMARY KEY, j JSONB, a INTEGER[], m TIMESTAMPTZ, "
        "n NUMERIC)"
    )
    connection.execute(
        "CREATE TABLE l (id INTEGER PRIMARY KEY, j JSONB, a INTEGER[], m TIMESTAMPTZ, "
        "n NUMERIC)"
    )
    connection.execute(
        "INSERT INTO k VALUES (1, '{\"a\": [1, 2]}', '{1,2}', '2024-01-01 00:00+00', 1.50)"
    )
    before = connection.execute("SELECT * FROM k").fetchall()
    cursor = connection.execute(
        "WITH x AS (DELETE FROM k RETURNING *), y AS (INSERT INTO l SELECT * FROM x "
        "RETURNING j->'a' AS e, a[2] AS f) SELECT e, f FROM y"
    )
    assert cursor.fetchall() == [([1, 2], 2)]
    assert connection.execute("SELECT * FROM l").fetchall() == before


# Beside other transactions


@pytest.mark.parametrize(
    "change", ["UPDATE t SET n = 0 WHERE id = 2", "INSERT INTO archive VALUES (2, 0)"]
)
def test_of_two_writers_one_commits(engine, change):
    """P3: the keys of all parts are in the write set."""
    first = engine.connect(checkpoint="manual")
    create(first)
    first.commit()
    one, other = (engine.connect(checkpoint="manual") for _ in range(2))
    other.execute(
        "WITH x AS (DELETE FROM t WHERE id = 2 RETURNING id) "
        "INSERT INTO archive SELECT id, 1 FROM x"
    )
    one.execute(change)
    one.commit()
    first.checkpoint()
    with pytest.raises(tique.SerializationError):
        other.commit()
    assert [row[0] for row in content(first)] == [1, 2, 3]


def test_read_committed_loses_no_update(engine):
    first = engine.connect(checkpoint="manual")
    create(first)
    first.commit()
    one, other = (
        engine.connect(checkpoint="manual", isolation_level="READ COMMITTED")
        for _ in range(2)
    )
    other.execute("SELECT 1")
    one.execute("UPDATE t SET n = n + 100 WHERE id = 1")
    one.commit()
    other.execute(
        "WITH x AS (UPDATE t SET n = n + 1 WHERE id = 1 RETURNING id, n) "
        "INSERT INTO archive SELECT id, n FROM x"
    )
    other.commit()
    assert content(first)[0] == (1, "a", 111)
    assert content(first, "archive") == [(1, 111)]


@pytest.mark.parametrize(
    ("query", "parameters", "expected"),
    [
        (
            "WITH m AS (SELECT max(id) AS id FROM t) "
            "UPDATE t SET n = n + 1 FROM m WHERE m.id = t.id",
            None,
            [*ROWS[:2], (3, None, 31)],
        ),
        (
            "WITH m AS (SELECT min(n) AS least FROM t) "
            "UPDATE t SET n = (SELECT least FROM m) + %s WHERE id = %s",
            (5, 2),
            [ROWS[0], (2, "b", 15), ROWS[2]],
        ),
        (
            "WITH a AS (SELECT id FROM t), b (k) AS (SELECT id + 1 FROM a) "
            "DELETE FROM t USING b WHERE b.k = t.id",
            None,
            ROWS[:1],
        ),
        (
            "WITH t2 AS (SELECT 1 AS id) DELETE FROM t WHERE id IN (SELECT id FROM t2)",
            None,
            ROWS[1:],
        ),
    ],
)
def test_queries_before_one_change(connection, query, parameters, expected):
    """P1, P8: they see the snapshot and own writes, and so does the change."""
    cursor = connection.execute(query, parameters)
    assert cursor.rowcount == len(set(ROWS) - set(expected))
    assert content(connection) == expected
    connection.commit()
    connection.checkpoint()
    assert content(connection) == expected


def test_a_query_and_the_change_after_it_have_one_snapshot(engine):
    """P1: under READ COMMITTED too, where each statement has a new one."""
    one = engine.connect(checkpoint="manual", isolation_level="READ COMMITTED")
    create(one)
    one.commit()
    one.execute("SELECT 1")
    other = engine.connect(checkpoint="manual")
    other.execute("INSERT INTO t VALUES (4, 'd', 40)")
    other.commit()
    cursor = one.execute(
        "WITH m AS (SELECT count(*) AS n FROM t) UPDATE t SET n = m.n FROM m"
    )
    assert cursor.rowcount == 4
    assert {row[2] for row in content(one)} == {4}


def test_a_query_before_a_change_of_values_that_stay_in_the_engine(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x INTEGER[])")
    connection.execute("INSERT INTO t VALUES (1, NULL), (2, NULL)")
    connection.execute(
        "WITH m AS (SELECT max(id) AS id FROM t) "
        "UPDATE t SET x = ARRAY[m.id] FROM m WHERE m.id = t.id"
    )
    assert content(connection) == [(1, None), (2, [2])]
