"""Cursors: parameters, description, fetching, several at once."""

from __future__ import annotations

from decimal import Decimal

import pytest

import tique
from tests.portable import numbers
from tique.rows import dict_row, namedtuple_row

pytestmark = pytest.mark.fresh_tables


@pytest.fixture
def connection(engine):
    connection = engine.connect()
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, price DECIMAL(8,2))"
    )
    connection.execute(
        f"INSERT INTO t SELECT number, 'n' || number, number FROM {numbers(3000)}"
    )
    connection.commit()
    return connection


def fail(connection, query):
    with pytest.raises(tique.DatabaseError):
        connection.execute(query)


POINT = "SELECT * FROM t WHERE id = 7"
SCAN = "SELECT * FROM t WHERE id BETWEEN 7 AND 7"


@pytest.mark.parametrize("query", [POINT, SCAN])
def test_description(engine, connection, query):
    description = connection.execute(query).description
    assert [item[0] for item in description] == ["id", "name", "price"]
    assert [item[1] for item in description] == ["INTEGER", engine.text, engine.money]
    assert all(len(item) == 7 for item in description)


@pytest.mark.parametrize("query", [POINT, SCAN])
def test_a_row(connection, query):
    cursor = connection.execute(query)
    assert cursor.rownumber == 0
    assert cursor.fetchone() == (7, "n7", Decimal("7.00"))
    assert cursor.rownumber == 1
    assert cursor.fetchone() is None
    assert cursor.fetchone() is None
    assert cursor.fetchmany(3) == cursor.fetchall() == []


def test_before_and_after(connection):
    cursor = connection.cursor()
    assert cursor.description is None
    assert cursor.rowcount == -1
    assert cursor.rownumber is None
    assert cursor.connection is connection
    for use in (cursor.fetchone, cursor.fetchall, cursor.fetchmany, cursor.__next__):
        with pytest.raises(tique.ProgrammingError, match="no result"):
            use()
    cursor.execute("DELETE FROM t WHERE id < 10")
    assert cursor.rowcount == 10
    assert cursor.description is None
    with pytest.raises(tique.ProgrammingError, match="no result"):
        cursor.fetchone()
    with pytest.raises(tique.ProgrammingError):
        cursor.execute("SELECT nothing FROM t")
    assert cursor.description is None
    assert cursor.rowcount == -1


def test_a_closed_cursor_still_has_the_number_of_rows(connection):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM t WHERE id < 10")
    cursor.close()
    assert cursor.rowcount == 10
    with connection.cursor() as cursor:
        pass
    assert cursor.rowcount == -1


def test_a_closed_cursor(connection):
    with connection.cursor() as cursor:
        cursor.execute(SCAN)
    assert cursor.closed
    cursor.close()
    for use in (
        cursor.fetchone,
        cursor.fetchall,
        cursor.fetchmany,
        cursor.fetch_arrow_table,
        lambda: cursor.execute("SELECT 1"),
        lambda: cursor.executemany("DELETE FROM t WHERE id = %s", [(1,)]),
    ):
        with pytest.raises(tique.InterfaceError, match="closed"):
            use()


def test_fetching_in_pieces(connection):
    cursor = connection.execute("SELECT id FROM t ORDER BY id")
    assert cursor.arraysize == 1
    assert cursor.fetchmany() == [(0,)]
    cursor.arraysize = 5
    assert cursor.fetchmany() == [(i,) for i in range(1, 6)]
    assert cursor.fetchmany(2000) == [(i,) for i in range(6, 2006)]
    assert cursor.rownumber == 2006
    assert next(cursor) == (2006,)
    assert cursor.fetchmany(0) == []
    for row in cursor:
        assert row == (2007,)
        break
    assert cursor.fetchall() == [(i,) for i in range(2008, 3000)]
    assert cursor.rownumber == 3000
    assert list(cursor) == []


def test_setsizes_do_nothing(connection):
    cursor = connection.cursor()
    cursor.setinputsizes([1])
    cursor.setoutputsize(1, 2)


def test_row_factories(engine, connection):
    assert connection.cursor(row_factory=dict_row).execute(POINT).fetchone() == {
        "id": 7,
        "name": "n7",
        "price": Decimal("7.00"),
    }
    connection.row_factory = namedtuple_row
    assert connection.execute(SCAN).fetchone().name == "n7"
    assert connection.execute(SCAN).fetchall()[0].id == 7
    assert next(connection.execute(POINT)).id == 7
    named = engine.connect(row_factory=dict_row)
    assert named.execute("SELECT 1 AS one").fetchmany(1) == [{"one": 1}]


def test_iteration_with_a_write_between(connection):
    """P1: a cursor that is being read keeps its rows beside any write."""
    seen = []
    for (key,) in connection.execute("SELECT id FROM t WHERE id < 2500 ORDER BY id"):
        seen.append(key)
        if key % 500 == 0:
            connection.execute("DELETE FROM t WHERE id = %s", (key + 1,))
        if key == 1000:
            connection.execute(
                f"INSERT INTO t (id) SELECT 5000 + number FROM {numbers(2100)}"
            )
    assert seen == list(range(2500))
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (5095,)


@pytest.mark.parametrize(
    "between",
    [
        lambda c: c.execute(POINT),
        lambda c: c.execute("SELECT count(*) FROM t"),
        lambda c: c.execute("SELECT * FROM t"),
        lambda c: c.execute("UPDATE t SET name = 'x' WHERE id = 2999"),
        lambda c: c.execute("UPDATE t SET name = 'x' WHERE id >= 0"),
        lambda c: c.execute("INSERT INTO t (id) VALUES (-1)"),
        lambda c: c.cursor().executemany(
            "UPDATE t SET name = %s WHERE id = %s", [("x", i) for i in range(100)]
        ),
        lambda c: c.cursor().executemany(
            "INSERT INTO t (id) VALUES (%s)", [(i,) for i in range(-3000, 0)]
        ),
        lambda c: c.commit(),
        lambda c: c.rollback(),
        lambda c: c.checkpoint(),
        lambda c: fail(c, "SELECT nothing FROM t"),
        lambda c: fail(c, "SELECT CAST('x' AS INTEGER)"),
        lambda c: (c.execute("DELETE FROM t"), c.commit(), c.checkpoint()),
    ],
)
def test_an_open_cursor_survives(connection, between):
    """P1, PEP 249: cursors of one connection are read independently."""
    first = connection.execute("SELECT id FROM t ORDER BY id")
    second = connection.execute("SELECT name FROM t ORDER BY id")
    assert first.fetchmany(3) == [(0,), (1,), (2,)]
    assert second.fetchone() == ("n0",)
    between(connection)
    assert first.fetchmany(2) == [(3,), (4,)]
    assert second.fetchone() == ("n1",)
    assert len(second.fetchall()) == 2998
    assert first.fetchall() == [(i,) for i in range(5, 3000)]


@pytest.mark.parametrize("autocommit", [False, True])
def test_fetching_in_autocommit(connection, autocommit):
    connection.autocommit = autocommit
    one = connection.execute("SELECT id FROM t ORDER BY id")
    two = connection.execute("SELECT id FROM t ORDER BY id")
    assert one.fetchone() == two.fetchone() == (0,)
    assert len(one.fetchall()) == len(two.fetchall()) == 2999


@pytest.mark.parametrize("autocommit", [False, True])
@pytest.mark.parametrize("query", [POINT, SCAN])
def test_arrow(connection, query, autocommit):
    connection.autocommit = autocommit
    table = connection.execute(query).fetch_arrow_table()
    assert table.column_names == ["id", "name", "price"]
    assert [str(t) for t in table.schema.types] == [
        "int32",
        "string",
        "decimal128(8, 2)",
    ]
    assert table.to_pylist() == [{"id": 7, "name": "n7", "price": Decimal("7.00")}]


def test_arrow_of_the_rest(connection):
    cursor = connection.execute("SELECT id, name FROM t ORDER BY id")
    assert cursor.fetchone() == (0, "n0")
    table = cursor.fetch_arrow_table()
    assert table.num_rows == 2999
    assert table.column("id").to_pylist() == list(range(1, 3000))
    assert cursor.rownumber == 3000
    assert cursor.fetchall() == []
    assert cursor.fetch_arrow_table().num_rows == 0


def test_arrow_after_another_statement(connection):
    cursor = connection.execute("SELECT id FROM t ORDER BY id")
    connection.execute("DELETE FROM t WHERE id = 0")
    assert cursor.fetch_arrow_table().num_rows == 3000


def test_arrow_of_nothing(connection):
    table = connection.execute("SELECT * FROM t WHERE id = -1").fetch_arrow_table()
    assert table.num_rows == 0
    assert table.column_names == ["id", "name", "price"]


@pytest.mark.parametrize(
    ("query", "parameters"),
    [
        ("SELECT %s", None),
        ("SELECT %s", ()),
        ("SELECT %s", (1, 2)),
        ("SELECT %s, %s", (1,)),
        ("SELECT 1", (1,)),
        ("SELECT %(a)s", (1,)),
        ("SELECT %(a)s", {}),
        ("SELECT %(a)s", {"b": 1}),
        ("SELECT %s", {"a": 1}),
        ("SELECT %(a)s, %s", {"a": 1}),
        ("SELECT %d", (1,)),
        ("SELECT 5 % 3", ()),
        ("SELECT ?", (1,)),
        ("SELECT $1", (1,)),
        ("SELECT :a", {"a": 1}),
        ("SELECT %s", "x"),
        ("SELECT %s", 1),
        ("SELECT %s", {1}),
    ],
)
def test_wrong_parameters(connection, query, parameters):
    """P10, P11: never guessed at; the connection stays usable."""
    with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
        connection.execute(query, parameters)
    assert connection.execute(POINT).fetchone()[0] == 7


@pytest.mark.parametrize(
    ("query", "parameters", "row"),
    [
        ("SELECT 'a' LIKE 'a%'", None, (True,)),
        ("SELECT 'a' LIKE 'a%%' AND %s", (True,), (True,)),
        ("SELECT 5 % 3", None, (2,)),
        ("SELECT 5 %% %s", (3,), (2,)),
        ("SELECT '%s'", None, ("%s",)),
        ("SELECT '%(a)s', %(a)s", {"a": "x"}, ("%(a)s", "x")),
        ("SELECT %(a)s, %(b)s, %(a)s", {"a": "x", "b": "y", "c": "z"}, ("x", "y", "x")),
        ("SELECT %s, %s", ["x", None], ("x", None)),
        ("SELECT 1", (), (1,)),
        ("SELECT 1", [], (1,)),
        ("SELECT 1", {}, (1,)),
        ("SELECT 1 -- %s ?\n, 2", (), (1, 2)),
    ],
)
def test_parameters(connection, query, parameters, row):
    assert connection.execute(query, parameters).fetchone() == row


@pytest.mark.parametrize("query", ["SELECT 1; SELECT 2", "; SELECT 1", "SELEC 1"])
def test_what_is_not_one_statement(connection, query):
    """P10, P11: two statements in one text are refused, never half executed."""
    with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
        connection.execute(query)


def test_a_semicolon_at_the_end_is_fine(connection):
    assert connection.execute("SELECT 1;").fetchone() == (1,)
    assert connection.execute("DELETE FROM t WHERE id = 1;").rowcount == 1


def test_explain_shows_what_would_run(connection):
    connection.execute("DELETE FROM t WHERE id = 1")
    shown = connection.execute("EXPLAIN SELECT * FROM t").fetchall()
    assert shown[0][0] == "rewritten statement"
    assert '"t"' in shown[0][1]
    assert connection.execute("EXPLAIN DELETE FROM t").fetchall()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (2999,)
