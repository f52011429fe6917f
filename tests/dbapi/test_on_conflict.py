"""INSERT … ON CONFLICT: rows that are inserted, updated and left alone (P1, P8, P9)."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = pytest.mark.fresh_tables

NO_CHECKS = pytest.mark.never(
    ["monetdb"], raises=pytest.fail.Exception, reason="MonetDB 11.41 has no CHECK"
)

ROWS = [(1, "one", 10), (2, "two", 20), (3, None, 30)]


def settled(connection, state):
    """Bring inserted, uncommitted rows into one of the states."""
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


def content(connection):
    return connection.execute("SELECT * FROM t WHERE id < 1000 ORDER BY id").fetchall()


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
    """A row that is known in part is completed."""
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
        ("INTO keyless VALUES (1) ON CONFLICT DO UPDATE SET n = 1", "42P10", "keyless"),
        ("INTO t (id) VALUES (1) ON CONFLICT (nope) DO NOTHING", "42703", "nope"),
    ],
)
def test_no_such_key(connection, statement, sqlstate, message):
    connection.rollback()
    connection.execute("CREATE TABLE keyless (n INTEGER)")
    with pytest.raises(tique.ProgrammingError, match=message) as caught:
        connection.execute("INSERT " + statement)
    assert caught.value.sqlstate == sqlstate


@pytest.mark.never(
    ["duckdb"], raises=tique.ProgrammingError, reason="DuckDB refuses that"
)
def test_without_keys_nothing_is_in_conflict(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE keyless (n INTEGER)")
    for _ in range(2):
        sql = "INSERT INTO keyless VALUES (1) ON CONFLICT DO NOTHING"
        assert connection.execute(sql).rowcount == 1
    assert connection.execute("SELECT * FROM keyless").fetchall() == [(1,), (1,)]
