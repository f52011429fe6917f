"""INSERT … ON CONFLICT: what is inserted, what is updated, what is left (P1, P8, P9)."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest

import tique
from tests.portable import numbers
from tique import errors

NO_CHECKS = pytest.mark.never(
    ["monetdb"], raises=pytest.fail.Exception, reason="MonetDB 11.41 has no CHECK"
)

ROWS = [(1, "one", 10), (2, "two", 20), (3, None, 30)]


def settled(connection, state):
    """Bring what was inserted, and is not committed, into one of the states."""
    if state == "staged":
        connection.execute(
            f"INSERT INTO t (id) SELECT number + 1000 FROM {numbers(2100)}"
        )
    if state in ("cached", "stored"):
        connection.commit()
    if state == "stored":
        connection.checkpoint()


@pytest.fixture(params=["stored", "cached", "own", "staged"])
def connection(engine, request):
    """A table of three rows, wherever a row can be."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, "
        "n INTEGER DEFAULT 7 NOT NULL)"
    )
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s)", ROWS)
    settled(connection, request.param)
    return connection


@pytest.fixture
def simple(engine):
    """One key, no other constraint: what needs the engine least."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, price DECIMAL(10,2))"
    )
    connection.execute("INSERT INTO t VALUES (1, 10, 1.5), (2, 20, 2.5)")
    connection.commit()
    connection.checkpoint()
    return connection


def content(connection):
    return connection.execute("SELECT * FROM t WHERE id < 1000 ORDER BY id").fetchall()


def statements(connection, work):
    before = connection.info.engine_statements
    work()
    return connection.info.engine_statements - before


# DO NOTHING


@pytest.mark.parametrize("target", ["", "(id)", "(ID)"])
def test_do_nothing(connection, target):
    cursor = connection.execute(
        f"INSERT INTO t VALUES (1, 'x', 1), (4, 'y', 2) ON CONFLICT {target} DO NOTHING"
    )
    assert cursor.rowcount == 1
    assert cursor.description is None
    assert content(connection) == [*ROWS, (4, "y", 2)]
    connection.commit()
    assert content(connection) == [*ROWS, (4, "y", 2)]


def test_do_nothing_at_all(connection):
    cursor = connection.execute(
        "INSERT INTO t (id) VALUES (1), (2) ON CONFLICT DO NOTHING"
    )
    assert cursor.rowcount == 0
    assert content(connection) == ROWS


def test_do_nothing_looks_at_every_key(connection):
    """A row that is skipped takes nothing from those after it."""
    cursor = connection.execute(
        "INSERT INTO t VALUES (7, 'two', 1), (1, 'seven', 1), (7, 'seven', 1), "
        "(8, 'seven', 1), (7, 'eight', 1), (9, NULL, 1), (10, NULL, 1) "
        "ON CONFLICT DO NOTHING"
    )
    assert cursor.rowcount == 3
    assert content(connection) == [*ROWS, (7, "seven", 1), (9, None, 1), (10, None, 1)]


def test_another_key_than_the_target_is_no_excuse(connection):
    with pytest.raises(errors.UniqueViolation, match="name"):
        connection.execute(
            "INSERT INTO t VALUES (4, 'four', 1), (7, 'two', 1) ON CONFLICT (id) DO NOTHING"
        )
    with pytest.raises(errors.UniqueViolation, match="PRIMARY KEY"):
        connection.execute(
            "INSERT INTO t VALUES (4, 'four', 1), (1, 'x', 1) ON CONFLICT (name) DO NOTHING"
        )
    with pytest.raises(errors.UniqueViolation, match="name"):
        connection.execute(
            "INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT (id) DO UPDATE SET name = 'two'"
        )
    assert content(connection) == ROWS


# DO UPDATE


@pytest.mark.parametrize("target", ["(id)", "(name)"])
def test_do_update(connection, target):
    cursor = connection.execute(
        f"INSERT INTO t VALUES (2, 'two', 5), (4, 'four', 6) ON CONFLICT {target} "
        "DO UPDATE SET n = t.n + EXCLUDED.n"
    )
    assert cursor.rowcount == 2
    expected = [ROWS[0], (2, "two", 25), ROWS[2], (4, "four", 6)]
    assert content(connection) == expected
    connection.commit()
    assert content(connection) == expected
    connection.checkpoint()
    assert content(connection) == expected


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        ("n = excluded.n", (2, "two", 5)),
        ("n = n + 1", (2, "two", 21)),
        ("n = t.n - excluded.n - n", (2, "two", -5)),
        ("n = DEFAULT, name = excluded.name", (2, "new", 7)),
        ("n = n * excluded.n", (2, "two", 100)),
        ("n = CASE WHEN n > EXCLUDED . n THEN 1 ELSE 0 END", (2, "two", 1)),
        ("name = excluded.name || name || t.name", (2, "newtwotwo", 20)),
        ("n = (SELECT max(n) FROM t x WHERE x.id < 9) + excluded.n", (2, "two", 35)),
        ("n = (SELECT count(*) FROM t x WHERE x.id <= t.id)", (2, "two", 2)),
        ("n = 1 WHERE t.n > excluded.n", (2, "two", 1)),
        ("n = 1 WHERE t.n < excluded.n", (2, "two", 20)),
        ("n = 1 WHERE NULLIF(n, n) > 0", (2, "two", 20)),
        ("id = 9", (9, "two", 20)),
        ("id = excluded.n, n = id", (5, "two", 2)),
    ],
)
def test_what_is_set(connection, assignments, expected):
    cursor = connection.execute(
        "INSERT INTO t VALUES (2, 'new', 5) ON CONFLICT (id) DO UPDATE SET "
        + assignments
    )
    assert cursor.rowcount == (expected != ROWS[1])
    assert content(connection) == sorted([ROWS[0], ROWS[2], expected])
    connection.commit()
    assert content(connection) == sorted([ROWS[0], ROWS[2], expected])


def test_an_alias(connection):
    connection.execute(
        "INSERT INTO t AS a (id, n) VALUES (1, 5) ON CONFLICT (id) "
        "DO UPDATE SET n = a.n + excluded.n + n"
    )
    assert content(connection)[0] == (1, "one", 25)
    with pytest.raises(tique.ProgrammingError):
        connection.execute(
            "INSERT INTO t AS a (id, n) VALUES (1, 5) ON CONFLICT (id) "
            "DO UPDATE SET n = t.n + 1"
        )
    assert content(connection)[0] == (1, "one", 25)


@pytest.mark.parametrize("count", [40, 2500])
def test_from_a_query(connection, count):
    """More than fits the buffer is written too, and found."""
    before = dict(connection.execute("SELECT id, n FROM t").fetchall())
    cursor = connection.execute(
        f"INSERT INTO t (id, n) SELECT number, number FROM {numbers(count)} "
        "ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n"
    )
    assert cursor.rowcount == count
    expected = before | {i: before.get(i, 0) + i for i in range(count)}
    read = "SELECT id, n FROM t"
    assert dict(connection.execute(read).fetchall()) == expected
    connection.commit()
    assert dict(connection.execute(read).fetchall()) == expected
    connection.checkpoint()
    assert dict(connection.execute(read).fetchall()) == expected
    again = connection.execute(
        f"INSERT INTO t (id) SELECT number FROM {numbers(count + 3)} "
        "ON CONFLICT DO NOTHING"
    )
    expected = dict.fromkeys(range(count + 3), 7) | expected
    assert again.rowcount == len(expected) - len({*before, *range(count)})
    assert dict(connection.execute(read).fetchall()) == expected
    assert content(connection)[1:3] == [(1, "one", 11), (2, "two", 22)]


def test_default_values(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE d (id INTEGER DEFAULT 1 PRIMARY KEY, n INTEGER)")
    statement = (
        "INSERT INTO d DEFAULT VALUES ON CONFLICT (id) "
        "DO UPDATE SET n = coalesce(d.n, 0) + 1"
    )
    for _ in range(3):
        assert connection.execute(statement).rowcount == 1
    assert connection.execute("SELECT * FROM d").fetchall() == [(1, 2)]


def test_a_table_with_a_unique_key_only(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE b (name TEXT, part INTEGER, n INTEGER, UNIQUE (part, name))"
    )
    statement = (
        "INSERT INTO b VALUES (%s, 1, 1) ON CONFLICT (name, part) "
        "DO UPDATE SET n = n + excluded.n"
    )
    for name in ("a", "b", "a", None, None, "a"):
        assert connection.execute(statement, (name,)).rowcount == 1
        connection.commit()
    expected = [("a", 1, 3), ("b", 1, 1), (None, 1, 1), (None, 1, 1)]
    query = "SELECT * FROM b ORDER BY name IS NULL, name"
    assert connection.execute(query).fetchall() == expected
    connection.commit()
    connection.checkpoint()
    assert connection.execute(query).fetchall() == expected


def test_a_wide_table(engine):
    """What is known of a row in part is completed."""
    connection = engine.connect(checkpoint="manual")
    columns = [f"c{i}" for i in range(12)]
    connection.execute(
        f"CREATE TABLE w (id INTEGER PRIMARY KEY, {', '.join(f'{c} INTEGER' for c in columns)})"
    )
    connection.execute(f"INSERT INTO w VALUES (1, {', '.join(map(str, range(12)))})")
    connection.commit()
    connection.checkpoint()
    connection.close()
    connection = engine.connect(checkpoint="manual")
    connection.execute("UPDATE w SET c3 = 33 WHERE id = 1")
    connection.commit()
    for assignments in (
        "c5 = w.c3 + excluded.c5",
        "c7 = w.c7 + excluded.c5, c8 = c9",
        "c10 = w.c11 * 2",
    ):
        connection.execute("INSERT INTO w (id) VALUES (1) ON CONFLICT DO NOTHING")
        connection.execute(
            "INSERT INTO w (id, c5) VALUES (1, 50) ON CONFLICT (id) "
            f"DO UPDATE SET {assignments}"
        )
        connection.commit()
    expected = [(1, 0, 1, 2, 33, 4, 83, 6, 57, 9, 9, 22, 11)]
    assert connection.execute("SELECT * FROM w").fetchall() == expected
    connection.commit()
    connection.checkpoint()
    assert connection.execute("SELECT * FROM w").fetchall() == expected


# The same row twice


def test_twice_with_do_nothing_is_once(connection):
    cursor = connection.execute(
        "INSERT INTO t VALUES (4, 'a', 1), (4, 'b', 2) ON CONFLICT (id) DO NOTHING"
    )
    assert cursor.rowcount == 1
    assert content(connection) == [*ROWS, (4, "a", 1)]


@pytest.mark.parametrize("key", [1, 4])
@pytest.mark.parametrize("value", ["1", "t.n * 2"])
def test_twice_with_do_update_is_refused(connection, key, value):
    with pytest.raises(errors.CardinalityViolation, match="second time") as caught:
        connection.execute(
            f"INSERT INTO t (id) VALUES (5), ({key}), ({key}) ON CONFLICT (id) "
            f"DO UPDATE SET n = {value}"
        )
    assert caught.value.sqlstate == "21000"
    assert content(connection) == ROWS


def test_twice_without_an_update_is_nothing(connection):
    cursor = connection.execute(
        "INSERT INTO t (id) VALUES (1), (1), (1) ON CONFLICT (id) "
        "DO UPDATE SET n = 0 WHERE t.n < 0"
    )
    assert cursor.rowcount == 0
    assert content(connection) == ROWS


# Constraints and errors


def test_not_null(connection):
    for statement in (
        "INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT (id) DO UPDATE SET n = NULL",
        "INSERT INTO t VALUES (1, 'x', 1) ON CONFLICT (id) DO UPDATE SET n = NULLIF(t.n, 10)",
        "INSERT INTO t VALUES (9, 'x', 1), (8, 'y', NULL) ON CONFLICT (id) DO NOTHING",
        "INSERT INTO t VALUES (NULL, 'x', 1) ON CONFLICT (id) DO NOTHING",
    ):
        with pytest.raises(errors.NotNullViolation):
            connection.execute(statement)
        assert content(connection) == ROWS


@NO_CHECKS
def test_check(engine):
    connection = engine.connect()
    connection.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER {engine.check('n >= 0')})"
    )
    connection.execute("INSERT INTO t VALUES (1, 1)")
    with pytest.raises(errors.CheckViolation):
        connection.execute(
            "INSERT INTO t VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET n = t.n - excluded.n"
        )
    with pytest.raises(errors.CheckViolation):
        connection.execute("INSERT INTO t VALUES (2, -5) ON CONFLICT (id) DO NOTHING")
    assert connection.execute("SELECT * FROM t").fetchall() == [(1, 1)]


def test_an_error_leaves_no_trace(connection):
    connection.execute("UPDATE t SET n = 11 WHERE id = 1")
    for value in ("CAST(excluded.name AS INTEGER)", "t.n + 2147483647"):
        with pytest.raises(tique.DataError):
            connection.execute(
                "INSERT INTO t VALUES (4, 'a', 1), (2, 'b', 1) ON CONFLICT (id) "
                f"DO UPDATE SET n = {value}"
            )
    connection.commit()
    assert content(connection) == [(1, "one", 11), *ROWS[1:]]


def test_savepoints(connection):
    connection.execute("SAVEPOINT before")
    connection.execute(
        "INSERT INTO t VALUES (1, 'x', 1), (4, 'y', 1) ON CONFLICT (id) DO UPDATE SET n = 0"
    )
    connection.execute("ROLLBACK TO before")
    assert content(connection) == ROWS
    connection.execute("INSERT INTO t (id) VALUES (4) ON CONFLICT (id) DO NOTHING")
    connection.commit()
    assert content(connection) == [*ROWS, (4, None, 7)]


@pytest.mark.parametrize(
    ("statement", "sqlstate", "message"),
    [
        (
            "INTO t (id) VALUES (1) ON CONFLICT (n) DO NOTHING",
            "42P10",
            r"\(n\).*column 43",
        ),
        (
            "INTO t (id) VALUES (1) ON CONFLICT (id, name) DO NOTHING",
            "42P10",
            "id, name",
        ),
        ("INTO t (id) VALUES (1) ON CONFLICT DO UPDATE SET n = 1", "42P10", "several"),
        ("INTO keyless VALUES (1) ON CONFLICT DO NOTHING", "42P10", "keyless"),
        ("INTO t (id) VALUES (1) ON CONFLICT (nope) DO NOTHING", "42000", "nope"),
    ],
)
def test_no_such_key(connection, statement, sqlstate, message):
    connection.rollback()
    connection.execute("CREATE TABLE keyless (n INTEGER)")
    with pytest.raises(tique.ProgrammingError, match=message) as caught:
        connection.execute("INSERT " + statement)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.written_for(["duckdb"], reason="the type is DuckDB's")
def test_types_that_do_not_survive_python(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE odd (id INTEGER PRIMARY KEY, list INTEGER[])")
    connection.execute("INSERT INTO odd VALUES (1, [1])")
    for statement in (
        "INSERT INTO odd (id) VALUES (1) ON CONFLICT DO NOTHING",
        "INSERT INTO odd SELECT 2, [2] ON CONFLICT DO NOTHING",
    ):
        with pytest.raises(tique.NotSupportedError, match=r"main\.odd"):
            connection.execute(statement)
    with pytest.raises(tique.NotSupportedError, match=r"main\.odd"):
        connection.cursor().executemany(
            "INSERT INTO odd (id) VALUES (%s) ON CONFLICT DO NOTHING", [(1,), (2,)]
        )
    assert connection.execute("SELECT * FROM odd").fetchall() == [(1, [1])]


@pytest.mark.written_for(["duckdb"], reason="only DuckDB has infinite timestamps")
def test_rows_that_do_not_survive_python(engine):
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE m (id INTEGER PRIMARY KEY, moment TIMESTAMP, n INTEGER)"
    )
    connection.execute("INSERT INTO m VALUES (1, 'infinity', 0), (2, '2020-01-01', 0)")
    for statement in (
        "INSERT INTO m (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET n = 1",
        "INSERT INTO m VALUES (3, 'infinity', 1) ON CONFLICT (id) DO NOTHING",
        "INSERT INTO m SELECT 3, 'infinity', 1 ON CONFLICT (id) DO NOTHING",
        "INSERT INTO m (id) VALUES (2) ON CONFLICT (id) DO UPDATE SET moment = 'infinity'",
    ):
        with pytest.raises(tique.NotSupportedError, match=r"main\.m"):
            connection.execute(statement)
    connection.execute("INSERT INTO m (id) VALUES (1) ON CONFLICT (id) DO NOTHING")
    assert connection.execute("SELECT id, n FROM m ORDER BY id").fetchall() == [
        (1, 0),
        (2, 0),
    ]
    connection.execute(
        "INSERT INTO m (id) VALUES (2) ON CONFLICT (id) DO UPDATE SET n = 1"
    )
    assert connection.execute("SELECT * FROM m WHERE id = 2").fetchall() == [
        (2, datetime(2020, 1, 1), 1)
    ]


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
def test_many(simple, count):
    """One batch, in the order given: a row may be met again by a later set."""
    cursor = simple.cursor()
    statement = (
        "INSERT INTO t VALUES (%s, %s, %s) ON CONFLICT (id) "
        "DO UPDATE SET n = t.n + excluded.n, price = excluded.price"
    )
    rows = [(i, 1, Decimal(i)) for i in range(count)]
    spent = statements(simple, lambda: cursor.executemany(statement, rows + rows))
    assert spent < 12
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


# What it costs


def test_a_counter_costs_no_statement(simple):
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


# DuckDB's own words


def test_insert_or_ignore(connection):
    cursor = connection.execute(
        "INSERT OR IGNORE INTO t VALUES (9, 'one', 1), (4, 'four', 1)"
    )
    assert cursor.rowcount == 1
    assert content(connection) == [*ROWS, (4, "four", 1)]


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


def test_insert_or_replace_needs_one_key(connection):
    with pytest.raises(tique.ProgrammingError, match="several keys"):
        connection.execute("INSERT OR REPLACE INTO t VALUES (1, 'x', 1)")
