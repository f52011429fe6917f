"""executemany(): many rows of parameters are one statement (P8, P9)."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

NO_CHECKS = pytest.mark.never(
    ["monetdb"], raises=pytest.fail.Exception, reason="MonetDB 11.41 has no CHECK"
)


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT, "
        f"n DECIMAL(10,2) DEFAULT 5 {engine.check('n >= 0')})"
    )
    connection.execute("INSERT INTO t VALUES (1, 'one', 1), (2, 'two', 2)")
    connection.commit()
    return connection


def content(connection):
    return connection.execute("SELECT id, v, n FROM t ORDER BY id").fetchall()


@pytest.mark.parametrize("count", [1, 3, 100, 1999, 2001, 5000])
def test_insert(statements, connection, count):
    """P8: one batch, never a loop of statements; its rows can be read at once."""
    rows = [(i, f"v{i}", Decimal(i)) for i in range(10, 10 + count)]
    cursor = connection.cursor()
    spent = statements(
        connection,
        lambda: cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows),
    )
    assert spent < 20
    assert cursor.rowcount == count
    old = [(1, "one", Decimal(1)), (2, "two", Decimal(2))]
    assert content(connection) == old + rows
    assert connection.execute(
        "SELECT v FROM t WHERE id = %s", (9 + count,)
    ).fetchone() == (f"v{9 + count}",)
    connection.commit()
    assert content(connection) == old + rows
    connection.commit()
    connection.checkpoint()
    assert content(connection) == old + rows


@pytest.mark.parametrize("level", ["SNAPSHOT", "READ COMMITTED", "SERIALIZABLE"])
def test_new_keys_of_a_table_that_is_not_in_memory(statements, connection, level):
    """P9: the engine is asked about all of them at once, and finds those that are there."""
    connection.checkpoint()
    connection.execute(
        f"INSERT INTO t SELECT number + 1000, 'bulk', 1 FROM {numbers(3000)}"
    )
    connection.commit()
    connection.execute("DELETE FROM t WHERE id IN (2, 1500)")
    connection.execute("INSERT INTO t VALUES (5, 'small', 1)")
    connection.commit()
    connection.isolation_level = level
    connection.execute("INSERT INTO t VALUES (6, 'own', 1)")
    connection.execute("DELETE FROM t WHERE id = 1501")
    cursor = connection.cursor()

    def insert(*keys):
        rows = [(key, "new") for key in (*range(100, 800), *keys)]
        cursor.executemany("INSERT INTO t (id, v) VALUES (%s, %s)", rows)

    for taken in (1, 5, 6, 1499):
        with pytest.raises(tique.errors.UniqueViolation):
            insert(taken)
        connection.rollback()
        connection.execute("INSERT INTO t VALUES (6, 'own', 1)")
        connection.execute("DELETE FROM t WHERE id = 1501")
    assert statements(connection, lambda: insert(2, 1500, 1501)) < 30
    connection.commit()
    found = connection.execute("SELECT count(*), count(DISTINCT id) FROM t").fetchone()
    # (Three of those that were there are gone, and are there again.)
    assert found == (2 + 3000 + 2 + 700, 2 + 3000 + 2 + 700)
    queries = (f"v = '{v}'" for v in ("new", "small", "own", "bulk"))
    counts = [
        connection.execute(f"SELECT count(*) FROM t WHERE {q}").fetchone()[0]
        for q in queries
    ]
    assert counts == [703, 1, 1, 2998]


@pytest.mark.parametrize("count", [3, 150, 2500])
def test_insert_with_conversion_and_defaults(connection, count):
    rows = [(str(i), 1.5 if i % 2 else None) for i in range(10, 10 + count)]
    cursor = connection.cursor()
    cursor.executemany("INSERT INTO t (id, v) VALUES (%s, %s)", rows)
    assert cursor.rowcount == count
    assert content(connection)[2:] == [
        (i, "1.5" if i % 2 else None, Decimal(5)) for i in range(10, 10 + count)
    ]


def test_insert_with_expressions(connection):
    connection.cursor().executemany(
        "INSERT INTO t (id, v) VALUES (%(a)s + 1, upper(%(b)s)), (%(a)s + 2, 'x')",
        [{"a": 10, "b": "p"}, {"a": 20, "b": "q"}],
    )
    assert [row[:2] for row in content(connection)[2:]] == [
        (11, "P"),
        (12, "x"),
        (21, "Q"),
        (22, "x"),
    ]


def drawn(engine):
    return "NEXT VALUE FOR s" if engine.name == "monetdb" else "nextval('s')"


@pytest.fixture
def keyed(engine, connection):
    """A connection to a table whose keys are a sequence's next values."""
    random = "rand()" if engine.name == "monetdb" else "random()"
    connection.execute("CREATE SEQUENCE s START WITH 11")
    connection.execute(
        f"CREATE TABLE k (id INTEGER DEFAULT {drawn(engine)} PRIMARY KEY, "
        f"a INTEGER NOT NULL, u INTEGER UNIQUE, r DOUBLE PRECISION DEFAULT {random})"
    )
    connection.commit()
    yield connection
    connection.rollback()
    connection.execute("DROP TABLE k")
    connection.execute("DROP SEQUENCE s")
    connection.commit()


@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.parametrize(
    ("key", "clause"),
    [
        ("DEFAULT", ""),
        ("DEFAULT", "ON CONFLICT DO NOTHING"),
        ("DEFAULT", "RETURNING id, a"),
        (None, ""),
    ],
)
def test_defaults_of_many_rows(statements, engine, keyed, count, key, clause):
    """P8: the engine computes them together, for each row by itself and in order."""
    # Some rows are alike: an engine may take equal queries for one.
    rows = [((count - i) // 2,) for i in range(count)]
    insert = f"INSERT INTO k (id, a) VALUES ({key or drawn(engine)}, %s) {clause}"
    cursor = keyed.cursor()
    returning = "RETURNING" in clause
    spent = statements(
        keyed, lambda: cursor.executemany(insert, rows, returning=returning)
    )
    assert spent < 20
    inserted = [(11 + i, a) for i, (a,) in enumerate(rows)]
    if returning:
        returned = [cursor.fetchone()]
        while cursor.nextset():
            returned.append(cursor.fetchone())
        assert returned == inserted
    else:
        assert cursor.rowcount == count
    keyed.commit()
    content = keyed.execute("SELECT id, a, r FROM k ORDER BY id").fetchall()
    assert [row[:2] for row in content] == inserted
    assert len({r for *_, r in content}) == count


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ([(1, 1, 1), (2, 2, 2), (1, 3, 3)], tique.errors.UniqueViolation, "PRIMARY"),
        ([(1, 1, 1), (7, 2, 2)], tique.errors.UniqueViolation, "PRIMARY"),
        ([(1, 1, 1), (2, 2, 8)], tique.errors.UniqueViolation, "UNIQUE"),
        ([(1, 1, 1), (2, None, 2)], tique.errors.NotNullViolation, "k.a"),
        ([(1, 1, 1), (2, 2, "x")], tique.DataError, None),
    ],
)
@pytest.mark.parametrize("more", [0, 200])
def test_one_wrong_row_beside_defaults(keyed, rows, error, message, more):
    """P8, P9: the constraint that it breaks is named, and nothing is left behind."""
    keyed.execute("INSERT INTO k (id, a, u) VALUES (7, 7, 8)")
    rows = [(100 + i, i, 100 + i) for i in range(more)] + rows
    with pytest.raises(error, match=message):
        keyed.cursor().executemany("INSERT INTO k (id, a, u) VALUES (%s, %s, %s)", rows)
    keyed.commit()
    assert keyed.execute("SELECT id FROM k").fetchall() == [(7,)]


@pytest.mark.parametrize("count", [3, 100, 2500])
def test_update(statements, connection, count):
    connection.execute(
        f"INSERT INTO t SELECT number + 10, 'x', number FROM {numbers(count)}"
    )
    connection.commit()
    connection.checkpoint()
    cursor = connection.cursor()
    spent = statements(
        connection,
        lambda: cursor.executemany(
            "UPDATE t SET n = n + %s WHERE id = %s",
            [(1, i + 10) for i in range(count)] + [(1, -5)],
        ),
    )
    assert cursor.rowcount == count
    assert spent < (10 if count < 2000 else 20)
    assert content(connection)[2:] == [
        (i + 10, "x", Decimal(i + 1)) for i in range(count)
    ]
    connection.commit()
    assert content(connection)[2:] == [
        (i + 10, "x", Decimal(i + 1)) for i in range(count)
    ]


def test_later_rows_see_what_earlier_ones_did(connection):
    cursor = connection.cursor()
    cursor.executemany(
        "UPDATE t SET n = n * 2, v = v || %s WHERE id = %s",
        [("a", 1), ("b", 1), ("c", 2)],
    )
    assert cursor.rowcount == 3
    assert content(connection) == [(1, "oneab", Decimal(4)), (2, "twoc", Decimal(4))]
    cursor.executemany("UPDATE t SET id = id + 1 WHERE id = %s", [(2,), (3,), (4,)])
    assert [row[0] for row in content(connection)] == [1, 5]
    cursor.executemany("UPDATE t SET v = v || '!' WHERE n > %s", [(0,), (1,)])
    assert cursor.rowcount == 4
    assert content(connection)[0][1] == "oneab!!"


def test_delete(connection):
    cursor = connection.cursor()
    cursor.executemany("DELETE FROM t WHERE id = %s", [(1,), (1,), (7,), (2,)])
    assert cursor.rowcount == 2
    assert content(connection) == []
    connection.commit()
    assert content(connection) == []


@pytest.mark.parametrize(
    ("query", "rows", "error"),
    [
        (
            "INSERT INTO t (id) VALUES (%s)",
            [(3,), (1,)],
            tique.errors.UniqueViolation,
        ),
        ("INSERT INTO t (id) VALUES (%s)", [(3,), (3,)], tique.errors.UniqueViolation),
        (
            "INSERT INTO t VALUES (%s, 'x', 1)",
            [(i,) for i in range(9000, 0, -1)],
            tique.errors.UniqueViolation,
        ),
        (
            "INSERT INTO t (id) VALUES (%s)",
            [(3,), (None,)],
            tique.errors.NotNullViolation,
        ),
        ("INSERT INTO t (id) VALUES (%s)", [(3,), ("x",)], tique.DataError),
        pytest.param(
            "INSERT INTO t (id, n) VALUES (%s, %s)",
            [(3, 1), (4, -1)],
            tique.errors.CheckViolation,
            marks=NO_CHECKS,
        ),
        pytest.param(
            "INSERT INTO t (id, n) VALUES (%s, %s)",
            [(i, 1 if i < 5000 else -1) for i in range(3, 6000)],
            tique.errors.CheckViolation,
            marks=NO_CHECKS,
        ),
        pytest.param(
            "UPDATE t SET n = n - %s WHERE id = %s",
            [(1, 1), (1, 2), (5, 2)],
            tique.errors.CheckViolation,
            marks=NO_CHECKS,
        ),
        (
            "UPDATE t SET id = %s WHERE id = %s",
            [(3, 1), (3, 2)],
            tique.errors.UniqueViolation,
        ),
        (
            "UPDATE t SET n = CAST(%s AS INTEGER) WHERE id = %s",
            [("1", 1), ("x", 2)],
            tique.DataError,
        ),
        ("INSERT INTO t (id) VALUES (%s)", [(3,), (4, 5)], tique.ProgrammingError),
        ("INSERT INTO t (id) VALUES (%s)", [(3,), {"a": 1}], tique.ProgrammingError),
    ],
)
def test_all_or_nothing(connection, query, rows, error):
    """P8: one wrong row undoes the whole batch and nothing else."""
    connection.execute("INSERT INTO t VALUES (0, 'zero', 0)")
    before = content(connection)
    with pytest.raises(error):
        connection.cursor().executemany(query, rows)
    assert content(connection) == before
    connection.commit()
    assert content(connection) == before
    connection.commit()
    connection.checkpoint()
    assert content(connection) == before


def test_what_it_takes(connection):
    cursor = connection.cursor()
    assert cursor.executemany("DELETE FROM t WHERE id = %s", []).rowcount == 0
    assert cursor.executemany("DELETE FROM t WHERE id = %s", iter([(1,)])).rowcount == 1
    generator = ((i,) for i in range(50, 53))
    assert cursor.executemany("INSERT INTO t (id) VALUES (%s)", generator).rowcount == 3
    for query in ("SELECT * FROM t WHERE id = %s", "COMMIT", "BEGIN"):
        with pytest.raises(tique.ProgrammingError, match="executemany"):
            cursor.executemany(query, [(1,)])
    with pytest.raises(tique.ProgrammingError):
        cursor.executemany("CREATE TABLE u (a INTEGER)", [()])


def test_autocommit(engine, connection):
    connection.autocommit = True
    connection.cursor().executemany("INSERT INTO t (id) VALUES (%s)", [(3,), (4,)])
    with pytest.raises(tique.IntegrityError):
        connection.cursor().executemany("INSERT INTO t (id) VALUES (%s)", [(5,), (4,)])
    assert [row[0] for row in content(engine.connect())] == [1, 2, 3, 4]


def test_rows_in_the_engine_only(engine, connection):
    """Types that do not survive the way through Python take the same way in bulk."""
    connection.execute(
        "CREATE TABLE e (id INTEGER PRIMARY KEY, t TIME, d DATE, f FLOAT)"
    )
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO e VALUES (%s, %s, %s, %s)",
        [(i, "10:00:01", date(2024, 1, 1), 0.1) for i in range(500)],
    )
    assert cursor.rowcount == 500
    cursor.executemany(
        "UPDATE e SET f = f + %s WHERE id = %s", [(1, 1), (1, 1), (2, 2)]
    )
    assert cursor.rowcount == 3
    connection.commit()
    found = connection.execute(
        "SELECT id, CAST(CAST(f AS DECIMAL(4,1)) AS TEXT), CAST(t AS TEXT) FROM e "
        "WHERE id < 4 ORDER BY id"
    ).fetchall()
    assert found == [
        (0, "0.1", "10:00:01"),
        (1, "2.1", "10:00:01"),
        (2, "2.1", "10:00:01"),
        (3, "0.1", "10:00:01"),
    ]
