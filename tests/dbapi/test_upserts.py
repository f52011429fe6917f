"""ON CONFLICT: parameters, executemany(), its cost, DuckDB's own words (P8, P11)."""

from __future__ import annotations

from decimal import Decimal

import pytest

import tique
from tique import errors

pytestmark = pytest.mark.fresh_tables

ROWS = [(1, "one", 10), (2, "two", 20), (3, None, 30)]


@pytest.fixture(params=["stored", "own"])
def connection(engine, request):
    """A table of three rows with two keys."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INTEGER DEFAULT 7)"
    )
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s)", ROWS)
    if request.param == "stored":
        connection.commit()
        connection.checkpoint()
    return connection


@pytest.fixture
def simple(engine):
    """One key, no other constraint: the case that needs the engine least."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, price DECIMAL(10,2))"
    )
    connection.execute("INSERT INTO t VALUES (1, 10, 1.5), (2, 20, 2.5)")
    connection.commit()
    connection.checkpoint()
    return connection


def content(connection):
    return connection.execute("SELECT * FROM t ORDER BY id").fetchall()


# Parameters


@pytest.mark.parametrize("style", ["pyformat", "named", "qmark"])
def test_parameters(engine, style):
    """Each clause's are its own, and none of them changes the statement."""
    mark = {"pyformat": ["%s"] * 6, "qmark": ["?"] * 6}.get(
        style, ["%(id)s", "%(n)s", "%(x)s", "%(n)s", "%(low)s", "%(x)s"]
    )
    given = ["1); DROP TABLE t; --", 5, "o'x", 5, 3, "o'x"]
    values = dict(zip(("id", "n", "x", "low"), (*given[:3], 3), strict=True))
    connection = engine.connect(paramstyle="qmark" if style == "qmark" else "pyformat")
    connection.execute("CREATE TABLE t (id TEXT PRIMARY KEY, n INTEGER, x TEXT)")
    statement = (
        "INSERT INTO t VALUES ({}, {}, NULL) ON CONFLICT (id) DO UPDATE SET "
        "x = {} || t.x, n = t.n + {} WHERE t.n > {} AND t.x <> {}"
    ).format(*mark)
    simple = statement.replace(f"{mark[2]} || t.x", mark[2]).split(" WHERE")[0]
    for _ in range(2):
        row = values if style == "named" else given[:4]
        assert connection.execute(simple, row).rowcount == 1
    assert connection.execute("SELECT * FROM t").fetchall() == [(given[0], 10, "o'x")]
    row = values if style == "named" else given
    assert connection.execute(statement, row).rowcount == 0
    row = {**values, "x": "'"} if style == "named" else [*given[:2], "'", 5, 3, "'"]
    assert connection.execute(statement, row).rowcount == 1
    assert connection.execute("SELECT * FROM t").fetchall() == [(given[0], 15, "'o'x")]


@pytest.mark.parametrize(
    "value", ["'; DROP TABLE t; --", "a\\'b", "$1", "%s", "_excluded_1"]
)
def test_hostile_values(engine, value):
    connection = engine.connect()
    connection.execute("CREATE TABLE t (k TEXT PRIMARY KEY, v TEXT UNIQUE)")
    statement = (
        "INSERT INTO t VALUES (%s, %s) ON CONFLICT ({}) "
        "DO UPDATE SET v = coalesce(excluded.v || %s, %s)"
    )
    for key in ("k", "v", "k"):
        connection.execute(statement.format(key), (value, value, value, value))
    assert connection.execute("SELECT * FROM t").fetchall() == [(value, value * 2)]


def test_hostile_names(engine):
    connection = engine.connect()
    connection.execute(
        'CREATE TABLE "a ""b" ("x y" INTEGER PRIMARY KEY, "select" INTEGER, "$1" INTEGER)'
    )
    for _ in range(2):
        cursor = connection.execute(
            'INSERT INTO "a ""b" VALUES (1, 2, 3) ON CONFLICT ("x y") DO UPDATE SET '
            '"select" = "a ""b"."select" * excluded."$1", "$1" = excluded."select" '
            'RETURNING "$1" + 0 AS "a""", *'
        )
    assert cursor.description[0][0] == 'a"'
    assert cursor.fetchall() == [(2, 1, 6, 2)]


# executemany


@pytest.mark.parametrize("count", [3, 700, 2500])
def test_many(statements, simple, count):
    """One batch, in the order given: a row may be met again by a later set."""
    cursor = simple.cursor()
    statement = (
        "INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (id) "
        "DO UPDATE SET n = t.n + excluded.n, price = excluded.price"
    )
    rows = [(i, 1, Decimal(i)) for i in range(count)]
    spent = statements(simple, lambda: cursor.executemany(statement, rows + rows))
    # Not one per row; a shared engine counts the calls that keep its process alive too.
    assert spent < 40
    assert cursor.rowcount == 2 * count
    expected = [(i, 2 + 10 * i * (i < 3), Decimal(i)) for i in range(count)]
    read = "SELECT * FROM t ORDER BY id"
    assert simple.execute(read).fetchall() == expected
    simple.commit()
    simple.checkpoint()
    assert simple.execute(read).fetchall() == expected


def test_many_by_the_engine(connection):
    """Values that need converting, expressions that need computing: still in order."""
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO t (id, name, n) VALUES (%s, %s, %s) ON CONFLICT (name) "
        "DO UPDATE SET n = t.n * 10 + excluded.n, id = excluded.id "
        "WHERE excluded.n <> %s",
        [
            ("4", "four", 1, 0),
            (5, "four", 3, 0),
            (6, "two", "2", 0),
            (7, "two", 9, 9),
            (2, "four", 5, 0),
        ],
    )
    assert cursor.rowcount == 4
    assert content(connection) == [
        (1, "one", 10),
        (2, "four", 135),
        (3, None, 30),
        (6, "two", 202),
    ]


def test_many_when_a_key_is_given_up(connection):
    """A later set may take the key that an earlier one changed."""
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO t VALUES (%s, %s, 1) ON CONFLICT (name) "
        "DO UPDATE SET name = excluded.name || '!'",
        [(5, "two"), (6, "two"), (7, "two!"), (8, "four")],
    )
    assert cursor.rowcount == 4
    expected = [ROWS[0], (2, "two!!", 20), ROWS[2], (6, "two", 1), (8, "four", 1)]
    assert content(connection) == expected
    connection.commit()
    assert content(connection) == expected


def test_many_with_do_nothing(connection):
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO t VALUES (%s, %s, 1) ON CONFLICT DO NOTHING",
        [(1, "a"), (4, "b"), (4, "c"), (5, "b"), (6, "two"), (7, None)],
    )
    assert cursor.rowcount == 2
    assert content(connection) == [*ROWS, (4, "b", 1), (7, None, 1)]


def test_many_is_all_or_nothing(connection):
    cursor = connection.cursor()
    with pytest.raises(errors.CardinalityViolation):
        cursor.executemany(
            "INSERT INTO t (id) VALUES (%s), (%s) ON CONFLICT (id) DO UPDATE SET n = 0",
            [(1, 4), (1, 5), (6, 6)],
        )
    assert content(connection) == ROWS


# Cost


def test_a_counter_costs_no_statement(statements, simple):
    """The row is known after the first time."""
    statement = (
        "INSERT INTO t (id, n) VALUES (%s, 1) ON CONFLICT (id) "
        "DO UPDATE SET n = t.n + excluded.n"
    )
    simple.execute(statement, (1,))
    spent = statements(
        simple, lambda: [simple.execute(statement, (1,)) for _ in range(20)]
    )
    assert spent == 0
    simple.commit()
    assert simple.execute("SELECT n FROM t WHERE id = 1").fetchone() == (31,)


# DuckDB's own words, which MonetDB's tables are given too

no_insert_or = pytest.mark.never(
    ["postgresql"],
    raises=tique.NotSupportedError,
    reason="its SQL has ON CONFLICT alone, and so have its applications",
)


@no_insert_or
def test_insert_or_ignore(connection):
    cursor = connection.execute(
        "INSERT OR IGNORE INTO t VALUES (9, 'one', 1), (4, 'four', 1)"
    )
    assert cursor.rowcount == 1
    assert content(connection) == [*ROWS, (4, "four", 1)]


@no_insert_or
def test_insert_or_replace(simple):
    cursor = simple.execute("INSERT OR REPLACE INTO t VALUES (1, 5, 6), (3, 7, 8)")
    assert cursor.rowcount == 2
    assert (
        simple.execute("INSERT OR REPLACE INTO t (id, n) VALUES (2, 9)").rowcount == 1
    )
    assert content(simple) == [
        (1, 5, Decimal(6)),
        (2, 9, Decimal("2.5")),
        (3, 7, Decimal(8)),
    ]


@no_insert_or
def test_insert_or_replace_needs_one_key(connection):
    with pytest.raises(tique.ProgrammingError, match="several keys"):
        connection.execute("INSERT OR REPLACE INTO t VALUES (1, 'x', 1)")
