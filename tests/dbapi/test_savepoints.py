"""SAVEPOINT, ROLLBACK TO, RELEASE over every way in which writes are kept (P8)."""

from __future__ import annotations

import itertools

import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

# Small writes wait in the driver, large ones in the engine: a few rows, a bulk one.
STEPS = {
    "insert": "INSERT INTO t VALUES (%(n)s, 'new')",
    "update": "UPDATE t SET v = v || %(n)s WHERE id = 1",
    "scan": "UPDATE t SET v = v || '+' WHERE v LIKE '%%a%%'",
    "delete": "DELETE FROM t WHERE id = 2",
    "move": "UPDATE t SET id = id + 100 WHERE id IN (3, 4)",
    "bulk": f"INSERT INTO t SELECT 10000 * %(n)s + number, 'bulk' FROM {numbers(2100)}",
    "all": "UPDATE t SET v = v || %(n)s",
    "shift": "UPDATE t SET id = id + 1",
}


def content(connection, table="t"):
    return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


@pytest.fixture(params=["PRIMARY KEY", "PRIMARY KEY and CHECK", ""])
def connection(engine, request):
    connection = engine.connect(checkpoint="manual")
    constraints = request.param.replace("and CHECK", engine.check("id > 0"))
    connection.execute(f"CREATE TABLE t (id INTEGER {constraints}, v TEXT)")
    connection.execute("INSERT INTO t VALUES (1, 'a'), (2, 'ab'), (3, 'b'), (4, NULL)")
    connection.commit()
    connection.checkpoint()
    connection.execute("UPDATE t SET v = 'a!' WHERE id = 1")
    connection.commit()
    return connection


def run(connection, step, number):
    query = STEPS[step]
    connection.execute(query, {"n": number} if "%(n)s" in query else {})
    return content(connection)


@pytest.mark.parametrize("first", STEPS)
def test_going_back(connection, first):
    """P8: a savepoint brings back exactly the former rows, buffered or staged."""
    start = content(connection)
    for second in STEPS:
        one = run(connection, first, 7)
        assert one != start
        connection.execute("SAVEPOINT one")
        two = run(connection, second, 8)
        connection.execute("ROLLBACK TO one")
        assert content(connection) == one
        assert run(connection, second, 8) == two
        connection.execute("ROLLBACK TO SAVEPOINT one")
        connection.execute("ROLLBACK TO one")
        assert content(connection) == one
        connection.rollback()
        assert content(connection) == start
    run(connection, first, 7)
    connection.execute("SAVEPOINT one")
    run(connection, "bulk", 8)
    connection.execute("ROLLBACK TO one")
    connection.commit()
    assert content(connection) == one
    connection.rollback()
    connection.checkpoint()
    assert content(connection) == one


@pytest.mark.parametrize(
    "order", list(itertools.permutations(("update", "bulk", "all")))
)
def test_going_back_to_the_start(connection, order):
    start = content(connection)
    connection.execute("SAVEPOINT zero")
    for number, step in enumerate(order, start=5):
        run(connection, step, number)
    connection.execute("ROLLBACK TO zero")
    assert content(connection) == start
    connection.commit()
    assert content(connection) == start
    connection.rollback()
    connection.checkpoint()
    assert content(connection) == start


@pytest.mark.parametrize("scans", [(), (1,), (2,), (1, 2)])
@pytest.mark.parametrize(
    "undone", ["DELETE FROM t WHERE id = 7", "UPDATE t SET v = 'other' WHERE id = 7"]
)
def test_a_row_that_was_brought_back_is_there_once(connection, undone, scans):
    """P8: a scan gives the engine what the transaction wrote, a bulk statement all of it."""

    def scan(number):
        if number in scans:
            content(connection)

    connection.execute("INSERT INTO t VALUES (7, 'new')")
    connection.execute("UPDATE t SET v = 'newer' WHERE id = 7")
    scan(1)
    connection.execute("SAVEPOINT one")
    connection.execute(undone)
    scan(2)
    connection.execute("ROLLBACK TO one")
    connection.execute("SAVEPOINT two")
    connection.execute(STEPS["bulk"], {"n": 1})
    rows = content(connection)
    assert len(rows) == 5 + 2100
    assert [row for row in rows if row[0] == 7] == [(7, "newer")]
    connection.execute("ROLLBACK TO two")
    assert len(content(connection)) == 5
    connection.commit()
    connection.checkpoint()
    rows = content(connection)
    assert len(rows) == 5
    assert (7, "newer") in rows


def test_release_keeps_what_it_covers(connection):
    connection.execute("SAVEPOINT a")
    connection.execute("DELETE FROM t WHERE id = 1")
    connection.execute("SAVEPOINT b")
    connection.execute("DELETE FROM t WHERE id = 2")
    connection.execute("RELEASE SAVEPOINT a")
    for name in ("a", "b"):
        with pytest.raises(
            tique.ProgrammingError, match=f"no savepoint {name}"
        ) as caught:
            connection.execute(f"ROLLBACK TO {name}")
        assert caught.value.sqlstate == "3B001"
    connection.commit()
    assert content(connection) == [(3, "b"), (4, None)]


def test_names(connection):
    """A name hides an earlier one of its kind; case counts in quotes only."""
    start = content(connection)
    connection.execute("SAVEPOINT Same")
    connection.execute("DELETE FROM t WHERE id = 1")
    middle = content(connection)
    connection.execute("SAVEPOINT same")
    connection.execute("DELETE FROM t WHERE id = 2")
    connection.execute("ROLLBACK TO SAME")
    assert content(connection) == middle
    connection.execute("RELEASE same")
    connection.execute("ROLLBACK TO same")
    assert content(connection) == start
    connection.execute('SAVEPOINT "a ""b; DROP TABLE t"')
    connection.execute("DELETE FROM t")
    connection.execute('ROLLBACK TO "a ""b; DROP TABLE t"')
    assert content(connection) == start


def test_they_end_with_the_transaction(connection):
    connection.execute("SAVEPOINT a")
    connection.commit()
    connection.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(tique.ProgrammingError, match="no savepoint a"):
        connection.execute("ROLLBACK TO a")


def test_they_need_a_transaction(connection):
    connection.rollback()
    connection.autocommit = True
    with pytest.raises(tique.ProgrammingError, match="BEGIN first") as caught:
        connection.execute("SAVEPOINT a")
    assert caught.value.sqlstate == "25P01"


def test_a_conflicting_write_that_was_undone_does_no_harm(engine, connection):
    """P3: only writes that are committed are certified."""
    other = engine.connect()
    for step in ("DELETE FROM t WHERE id = 1", "UPDATE t SET v = 'x' WHERE id = 1"):
        connection.execute("SAVEPOINT a")
        connection.execute(step)
        connection.execute("ROLLBACK TO a")
    connection.execute("DELETE FROM t WHERE id = 2")
    other.execute("UPDATE t SET v = 'other' WHERE id = 1")
    other.commit()
    connection.commit()
    assert content(connection) == [(1, "other"), (3, "b"), (4, None)]


def test_a_failing_statement_inside_a_savepoint(connection):
    before = content(connection)
    connection.execute("SAVEPOINT a")
    connection.execute("DELETE FROM t WHERE id = 1")
    with pytest.raises(tique.Error):
        connection.execute("UPDATE t SET id = CAST(v AS INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 'again')")
    connection.execute("ROLLBACK TO a")
    assert content(connection) == before
