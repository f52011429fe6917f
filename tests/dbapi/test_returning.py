"""RETURNING: the rows that a statement wrote, as it left them (P8)."""

from __future__ import annotations

from decimal import Decimal

import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = pytest.mark.fresh_tables

ROWS = [(1, "one", Decimal("1.50")), (2, "two", Decimal("2.50")), (3, None, None)]


@pytest.fixture(params=["stored", "cached", "own", "staged"])
def connection(engine, request):
    """A table of three rows, wherever a row can be."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(10,2))"
    )
    connection.cursor().executemany("INSERT INTO t VALUES (%s, %s, %s)", ROWS)
    if request.param == "staged":
        connection.execute(
            f"INSERT INTO t SELECT number + 1000, 'x', 9 FROM {numbers(2100)}"
        )
    if request.param in ("stored", "cached"):
        connection.commit()
    if request.param == "stored":
        connection.checkpoint()
    return connection


def content(connection):
    return connection.execute("SELECT * FROM t WHERE id < 1000 ORDER BY id").fetchall()


def names(cursor):
    return [column[0] for column in cursor.description]


LISTS = (
    "id, price",
    'id AS number, price AS "the price"',
    "*",
    "t.*",
    "id, *",
    "price * 2 AS twice, id",
    "name || '!' AS loud",
    "coalesce(name, %s) AS n",
)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (7, 'seven', 7), (8, NULL, 8)",
        "INSERT INTO t (id) SELECT id + 10 FROM t WHERE id < 3",
        "INSERT INTO t (id) VALUES (1 + 8)",
        "UPDATE t SET price = price + 1, name = 'new' WHERE id = 1",
        "UPDATE t SET price = 0 WHERE price > 1 AND id < 1000",
        "UPDATE t SET id = id + 100 WHERE id = 3",
        "DELETE FROM t WHERE id = 2",
        "DELETE FROM t WHERE id IN (1, 3)",
        "DELETE FROM t WHERE id = 77",
        "INSERT INTO t (id, price) VALUES (1, 9), (4, 4) ON CONFLICT (id) "
        "DO UPDATE SET price = excluded.price",
        "INSERT INTO t (id) VALUES (1), (4), (4) ON CONFLICT DO NOTHING",
    ],
)
def test_what_is_returned_is_what_was_written(connection, statement):
    """The same list, asked for afterwards, of the rows that differ."""
    before = content(connection)
    connection.execute("SAVEPOINT before")
    for items in LISTS:
        parameters = ("none",) if "%s" in items else None
        cursor = connection.execute(f"{statement} RETURNING {items}", parameters)
        found = cursor.fetchall()
        assert cursor.rowcount == len(found)
        after = content(connection)
        written = [row for row in after if row not in before]
        if statement.startswith("DELETE"):
            written = [row for row in before if row not in after]
            connection.execute("ROLLBACK TO before")
        where = f"id IN ({', '.join(str(row[0]) for row in written) or '-1'})"
        query = connection.execute(f"SELECT {items} FROM t WHERE {where}", parameters)
        assert sorted(found, key=repr) == sorted(query.fetchall(), key=repr)
        assert names(cursor) == names(query)
        connection.execute("ROLLBACK TO before")
    assert content(connection) == before


def test_fetching(connection):
    cursor = connection.execute(
        "INSERT INTO t (id) VALUES (4), (5), (6), (7) RETURNING id, id + 1 AS more_than_id"
    )
    selected = connection.execute("SELECT id, id + 1 AS more_than_id FROM t")
    assert cursor.description == selected.description
    assert cursor.fetchone() == (4, 5)
    assert cursor.rownumber == 1
    assert cursor.fetchmany(2) == [(5, 6), (6, 7)]
    assert list(cursor) == [(7, 8)]
    assert cursor.fetchone() is None
    table = connection.execute(
        "DELETE FROM t WHERE id = 4 RETURNING id AS gone"
    ).fetch_arrow_table()
    assert table.to_pydict() == {"gone": [4]}


def test_default_values(engine):
    connection = engine.connect()
    connection.execute("CREATE TABLE d (id INTEGER DEFAULT 4 PRIMARY KEY, n INTEGER)")
    cursor = connection.execute(
        "INSERT INTO d DEFAULT VALUES RETURNING *, n IS NULL AS e"
    )
    assert cursor.fetchall() == [(4, None, True)]


def test_an_alias(connection):
    for statement in (
        "INSERT INTO t AS x (id) VALUES (4) RETURNING x.id, x.id + 1 AS more",
        "UPDATE t x SET name = 'n' WHERE x.id = 4 RETURNING x.id, x.id + 1 AS more",
        "DELETE FROM t AS x WHERE id = 4 RETURNING x.id, x.id + 1 AS more",
    ):
        assert connection.execute(statement).fetchall() == [(4, 5)]
    before = content(connection)
    with pytest.raises(tique.ProgrammingError):
        connection.execute("UPDATE t AS x SET name = 'n' RETURNING t.id + 1")
    assert content(connection) == before


@pytest.mark.parametrize("count", [30, 2500])
def test_many_rows(connection, count):
    """Staged rows are returned too, in one piece."""
    cursor = connection.execute(
        f"INSERT INTO t (id, price) SELECT number + 5000, number FROM {numbers(count)} "
        "RETURNING id, price + 1 AS more"
    )
    assert cursor.rowcount == count
    assert sorted(cursor.fetchall()) == [
        (5000 + i, Decimal(i + 1)) for i in range(count)
    ]
    cursor = connection.execute(
        "UPDATE t SET id = id + 5000, price = -1 WHERE id >= 5000 RETURNING *"
    )
    assert sorted(cursor.fetchall()) == [
        (10000 + i, None, Decimal(-1)) for i in range(count)
    ]
    cursor = connection.execute("DELETE FROM t WHERE id >= 10000 RETURNING price")
    assert cursor.rowcount == count
    assert set(cursor.fetchall()) == {(Decimal(-1),)}
    assert content(connection) == ROWS
    connection.commit()
    assert content(connection) == ROWS


def test_a_table_without_a_key(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE b (x INTEGER, y TEXT)")
    cursor = connection.execute(
        "INSERT INTO b VALUES (1, 'a'), (1, 'a'), (NULL, NULL) RETURNING y, x"
    )
    assert cursor.fetchall() == [("a", 1), ("a", 1), (None, None)]
    cursor = connection.execute("UPDATE b SET x = 2 WHERE x = 1 RETURNING x * 2 AS z")
    assert cursor.fetchall() == [(4,), (4,)]
    cursor = connection.execute("DELETE FROM b RETURNING *")
    assert sorted(cursor.fetchall(), key=repr) == [(2, "a"), (2, "a"), (None, None)]


@pytest.mark.written_for(["duckdb"], reason="the types are DuckDB's")
def test_types_that_stay_in_the_engine(engine):
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE odd (id INTEGER PRIMARY KEY, list INTEGER[], m TIMESTAMPTZ)"
    )
    cursor = connection.execute(
        "INSERT INTO odd VALUES (1, [1, 2], NULL) RETURNING list, id"
    )
    assert cursor.fetchall() == [([1, 2], 1)]
    cursor = connection.execute("UPDATE odd SET list = list || [3] RETURNING len(list)")
    assert cursor.fetchall() == [(3,)]
    cursor = connection.execute("DELETE FROM odd RETURNING *")
    assert cursor.fetchall() == [(1, [1, 2, 3], None)]
    assert connection.execute("SELECT * FROM odd").fetchall() == []


def test_a_wide_table(engine):
    """A change by key reads no more than it needs; RETURNING needs all."""
    connection = engine.connect(checkpoint="manual")
    columns = [f"c{i}" for i in range(12)]
    connection.execute(
        "CREATE TABLE w (id INTEGER PRIMARY KEY, "
        f"{', '.join(f'{c} INTEGER' for c in columns)})"
    )
    connection.execute(f"INSERT INTO w VALUES (1, {', '.join(map(str, range(12)))})")
    connection.commit()
    connection.checkpoint()
    connection.close()
    connection = engine.connect(checkpoint="manual")
    connection.execute("UPDATE w SET c3 = c3 + 1 WHERE id = 1")
    cursor = connection.execute("UPDATE w SET c3 = c3 + 1 WHERE id = 1 RETURNING *")
    whole = (1, 0, 1, 2, 5, 4, 5, 6, 7, 8, 9, 10, 11)
    assert cursor.fetchall() == [whole]
    assert connection.execute("DELETE FROM w WHERE id = 1 RETURNING *").fetchall() == [
        whole
    ]


def test_subqueries_see_what_was_there_before(connection):
    counted = "(SELECT count(*) FROM t x WHERE x.id < 1000) AS c, (SELECT max(x.id) FROM t x WHERE x.id <= t.id) AS m"
    cursor = connection.execute(f"INSERT INTO t (id) VALUES (7) RETURNING {counted}")
    assert cursor.fetchall() == [(3, 3)]
    cursor = connection.execute(
        f"UPDATE t SET id = 9 WHERE id = 7 RETURNING id, {counted}"
    )
    assert cursor.fetchall() == [(9, 4, 7)]
    cursor = connection.execute(f"DELETE FROM t WHERE id = 9 RETURNING {counted}")
    assert cursor.fetchall() == [(4, 9)]


def test_an_error_in_it_undoes_the_statement(connection):
    for statement in (
        "INSERT INTO t VALUES (4, 'four', 4) RETURNING CAST(name AS INTEGER)",
        "UPDATE t SET name = 'x' WHERE id = 1 RETURNING CAST(name AS INTEGER)",
        f"INSERT INTO t SELECT number + 5000, 'x', 1 FROM {numbers(2500)} "
        "RETURNING CAST(name AS INTEGER)",
        "DELETE FROM t WHERE id < 3 RETURNING CAST(name AS INTEGER)",
        "DELETE FROM t WHERE id = 3 RETURNING nothing",
    ):
        with pytest.raises((tique.DataError, tique.ProgrammingError)):
            connection.execute(statement)
        assert content(connection) == ROWS
    connection.commit()
    assert content(connection) == ROWS
    assert connection.execute("SELECT count(*) FROM t WHERE id >= 5000").fetchone() == (
        0,
    )


def test_an_error_of_the_statement(connection):
    with pytest.raises(errors.UniqueViolation):
        connection.execute("INSERT INTO t (id) VALUES (4), (1) RETURNING id")
    assert content(connection) == ROWS


def test_autocommit(engine):
    connection = engine.connect(autocommit=True)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    cursor = connection.execute("INSERT INTO t VALUES (1, 1) RETURNING id, n + 1 AS m")
    other = engine.connect()
    assert other.execute("SELECT * FROM t").fetchall() == [(1, 1)]
    assert cursor.fetchall() == [(1, 2)]


@pytest.mark.parametrize("style", ["pyformat", "named", "qmark"])
def test_parameters(engine, style):
    """Those of RETURNING are counted apart from those before it."""
    marks = {"pyformat": ["%s"] * 4, "qmark": ["?"] * 4}.get(
        style, ["%(a)s", "%(b)s", "%(a)s", "%(c)s"]
    )
    given = {"a": 1, "b": "b'; --", "c": 3} if style == "named" else [1, "b'; --", 1, 3]
    connection = engine.connect(paramstyle="qmark" if style == "qmark" else "pyformat")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    for _ in range(2):
        cursor = connection.execute(
            "INSERT INTO t VALUES ({}, {}) RETURNING v, id + {} AS x, {} + id AS y".format(
                *marks
            ),
            given,
        )
        assert cursor.fetchall() == [("b'; --", 2, 4)]
        connection.rollback()
        connection.execute(
            "CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, v TEXT)"
        )
    connection.execute("INSERT INTO t VALUES (1, 'x')")
    for statement in (
        "UPDATE t SET v = 'w' WHERE id = {} AND v <> {} RETURNING id + {} + {} AS s",
        "DELETE FROM t WHERE id = {} AND v <> {} RETURNING id + {} + {} AS s",
    ):
        cursor = connection.execute(statement.format(*marks), given)
        assert cursor.fetchall() == [(5,)]


def results(cursor):
    """The rows of each result that is left."""
    yield cursor.fetchall()
    while cursor.nextset():
        yield cursor.fetchall()


@pytest.mark.parametrize(
    ("statement", "parameters", "wanted"),
    [
        (
            "INSERT INTO t (id, price) VALUES (%s, %s) RETURNING id, name, price",
            [(4, 1), (6, 2), (5, "3")],
            [[(4, None, 1)], [(6, None, 2)], [(5, None, 3)]],
        ),
        (
            "INSERT INTO t (id) VALUES (%s), (%s + 10) RETURNING id",
            [(4, 4), (5, 5)],
            [[(4,), (14,)], [(5,), (15,)]],
        ),
        (
            "INSERT INTO t (id) VALUES (%s) "
            "RETURNING id * %s AS x, (SELECT count(*) FROM t AS o WHERE o.id < 1000)",
            [(4, 2), (5, 3)],
            [[(8, 3)], [(15, 4)]],
        ),
        (
            "INSERT INTO t (id) SELECT id + %s FROM t WHERE id < 3 RETURNING id",
            [(10,), (20,)],
            [[(11,), (12,)], [(21,), (22,)]],
        ),
        (
            "INSERT INTO t (id, price) VALUES (%s, 1) "
            "ON CONFLICT (id) DO UPDATE SET price = t.price + 1 RETURNING id, price",
            [(7,), (1,), (7,), (7,)],
            [[(7, 1)], [(1, Decimal("2.50"))], [(7, 2)], [(7, 3)]],
        ),
        (
            "INSERT INTO t (id) VALUES (%s) ON CONFLICT DO NOTHING RETURNING id",
            [(7,), (1,), (7,), (8,)],
            [[(7,)], [], [], [(8,)]],
        ),
        (
            "UPDATE t SET price = price + 1 WHERE id = %s RETURNING price",
            [(1,), (77,), (1,), (2,)],
            [[(Decimal("2.50"),)], [], [(Decimal("3.50"),)], [(Decimal("3.50"),)]],
        ),
        (
            "UPDATE t SET id = id + 1 WHERE id = %s RETURNING id, name",
            [(3,), (2,), (4,)],
            [[(4, None)], [(3, "two")], [(5, None)]],
        ),
        (
            "DELETE FROM t WHERE id < %s RETURNING id",
            [(2,), (3,), (3,)],
            [[(1,)], [(2,)], []],
        ),
    ],
)
def test_executemany(connection, statement, parameters, wanted):
    """P8: a result for each row of parameters, which sees the writes of those before."""
    before = content(connection)
    connection.execute("SAVEPOINT before")
    cursor = connection.cursor()
    for _ in range(2):
        cursor.executemany(statement, parameters, returning=True)
        assert cursor.rowcount == len(wanted[0])
        assert list(map(sorted, results(cursor))) == wanted
        assert cursor.nextset() is None
        after = content(connection)
        connection.execute("ROLLBACK TO before")
        assert content(connection) == before
    cursor.executemany(statement, parameters)
    assert cursor.rowcount == sum(map(len, wanted))
    assert cursor.description is None
    assert cursor.nextset() is None
    with pytest.raises(tique.ProgrammingError, match="no result"):
        cursor.fetchall()
    assert content(connection) == after


def test_executemany_is_all_or_nothing(connection):
    """P8: an error in one of the results, or of one of the rows, undoes them all."""
    before = content(connection)
    cursor = connection.cursor()
    for statement, parameters, error in (
        (
            "INSERT INTO t (id) VALUES (%s) RETURNING id",
            [(4,), (1,)],
            errors.UniqueViolation,
        ),
        (
            "INSERT INTO t (id, name) VALUES (%s, %s) RETURNING CAST(name AS INTEGER)",
            [(4, "4"), (5, "x")],
            tique.DataError,
        ),
        (
            "UPDATE t SET id = id + %s WHERE id = 1 RETURNING id",
            [(5,), (5,), (None,)],
            None,
        ),
        (
            "UPDATE t SET id = %s WHERE id < 3 RETURNING id",
            [(1,)],
            errors.UniqueViolation,
        ),
    ):
        if error is None:
            cursor.executemany(statement, parameters, returning=True)
            assert list(results(cursor)) == [[(6,)], [], []]
            connection.execute("UPDATE t SET id = 1 WHERE id = 6")
        else:
            with pytest.raises(error):
                cursor.executemany(statement, parameters, returning=True)
        assert content(connection) == before


@pytest.mark.parametrize("count", [100, 2500])
def test_executemany_of_many_rows_is_one_batch(statements, connection, count):
    cursor = connection.cursor()
    rows = [(5000 + i, i) for i in range(count)]
    statement = "INSERT INTO t (id, price) VALUES (%s, %s) RETURNING price, id"
    spent = statements(
        connection, lambda: cursor.executemany(statement, rows, returning=True)
    )
    assert spent < 20
    assert [result for (result,) in results(cursor)] == [(p, i) for i, p in rows]
    connection.commit()
    query = "SELECT id, price FROM t WHERE id >= 5000 ORDER BY id"
    assert connection.execute(query).fetchall() == rows


def test_the_results_of_executemany(connection):
    """PEP 249: a cursor has one result at a time, and nextset() skips what is left."""
    cursor = connection.cursor()
    assert cursor.nextset() is None
    cursor.executemany(
        "INSERT INTO t (id) VALUES (%s), (%s) RETURNING id AS number",
        [(4, 5), (6, 7), (8, 9)],
        returning=True,
    )
    assert cursor.fetchone() == (4,)
    assert cursor.nextset() is True
    assert names(cursor) == ["number"]
    assert cursor.rownumber == 0
    assert cursor.fetchmany(5) == [(6,), (7,)]
    assert cursor.nextset() is True
    assert cursor.fetch_arrow_table().to_pydict() == {"number": [8, 9]}
    assert cursor.nextset() is None
    assert cursor.fetchall() == []
    cursor.executemany("DELETE FROM t WHERE id = %s", [(4,), (5,)], returning=True)
    assert cursor.rowcount == 2
    assert cursor.nextset() is None
    cursor.executemany(
        "DELETE FROM t WHERE id = %s RETURNING id", [(6,), (7,)], returning=True
    )
    cursor.execute("SELECT 1")
    assert cursor.nextset() is None
    cursor.close()
    with pytest.raises(tique.InterfaceError):
        cursor.nextset()


def test_plain_columns_cost_no_statement(statements, engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1)")
    connection.execute("UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n")

    def work():
        for _ in range(10):
            cursor = connection.execute(
                "UPDATE t SET n = n + 1 WHERE id = 1 RETURNING n AS m"
            )
        assert cursor.fetchall() == [(12,)]

    assert statements(connection, work) == 0
