"""Results not read to their end cost no memory, and no later statement its time."""

import gc
import tracemalloc

import pytest

import tique
from tests.portable import numbers

SIDE = 600
BIG = "SELECT a.id, b.name FROM t AS a CROSS JOIN t AS b"
WHOLE = 20 << 20
"""Bytes that its rows take at least, as Python's objects."""
PART = 10 << 20


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(40))")
    connection.execute(
        "INSERT INTO t SELECT number, 'a name that has some length' "
        f"FROM {numbers(SIDE)}"
    )
    connection.commit()
    # Memory that is needed once only is not measured.
    for query in (BIG, "SELECT count(*) FROM t"):
        with connection.cursor() as cursor:
            assert cursor.execute(query).fetchone()
    connection.commit()
    return connection


def peak(work):
    """The most bytes of Python's objects that there were at once, beyond those before."""
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_what_the_whole_result_takes(connection):
    """The measure of the tests below can fail."""
    assert peak(lambda: connection.execute(BIG).fetchall()) > WHOLE


def fail(connection, query):
    with pytest.raises(tique.Error):
        connection.execute(query)


NEXT = [
    lambda c: c.execute("SELECT count(*) FROM t").fetchone(),
    lambda c: c.execute("SELECT name FROM t WHERE id = 7").fetchone(),
    lambda c: c.execute(BIG).fetchone(),
    lambda c: c.execute("UPDATE t SET name = 'x' WHERE id = 7"),
    lambda c: c.execute("UPDATE t SET name = 'x' WHERE id >= 0"),
    lambda c: c.cursor().executemany(
        "INSERT INTO t VALUES (%s, %s)", [(-i, "x") for i in range(1, 3000)]
    ),
    lambda c: (c.execute("DELETE FROM t WHERE id >= 0"), c.commit(), c.checkpoint()),
    lambda c: c.commit(),
    lambda c: c.rollback(),
    lambda c: fail(c, "SELECT nothing FROM t"),
]


@pytest.mark.parametrize(
    ("following", "autocommit"), [(work, False) for work in NEXT] + [(NEXT[3], True)]
)
def test_a_cursor_that_is_gone(connection, following, autocommit):
    connection.autocommit = autocommit

    def work():
        assert connection.execute(BIG).fetchone()
        following(connection)
        connection.commit()

    assert peak(work) < PART


def test_a_cursor_that_executes_again(connection):
    cursor = connection.cursor()

    def work():
        for query in (BIG, "SELECT count(*) FROM t", BIG):
            assert cursor.execute(query).fetchone()
        assert len(cursor.fetchmany(3000)) == 3000
        cursor.execute("UPDATE t SET name = 'x' WHERE id >= 0")
        connection.commit()

    assert peak(work) < PART


@pytest.mark.parametrize("end", ["cursor", "connection"])
def test_a_closed_cursor(connection, end):
    cursor = connection.cursor()

    def work():
        cursor.execute(BIG)
        assert cursor.fetchone()
        (cursor if end == "cursor" else connection).close()
        if end == "cursor":
            assert connection.execute("SELECT count(*) FROM t").fetchone() == (SIDE,)
            connection.rollback()

    assert peak(work) < PART
    with pytest.raises(tique.InterfaceError):
        cursor.fetchone()


def test_beside_an_open_cursor(connection):
    """PEP 249: cursors of one connection are read independently, in any order."""
    held = connection.execute("SELECT id FROM t ORDER BY id")
    assert held.fetchone() == (0,)

    def work():
        for _ in range(3):
            assert connection.execute(BIG).fetchone()

    assert peak(work) < PART
    assert held.fetchall() == [(i,) for i in range(1, SIDE)]


def test_read_in_pieces_beside_others(connection):
    """P1: the rest of a large result is right, with any statement in between."""
    query = f"{BIG} WHERE a.id < 50 ORDER BY a.id, b.id"
    one, two = connection.execute(query), connection.execute(query)
    seen = []
    while piece := one.fetchmany(7001):
        seen += piece
        connection.execute("DELETE FROM t WHERE id = 3")
        with pytest.raises(tique.Error):
            connection.execute("SELECT CAST('x' AS INTEGER)").fetchone()
        connection.rollback()
        assert two.fetchone() == seen[two.rownumber - 1]
    assert [key for key, _ in seen] == [i for i in range(50) for _ in range(SIDE)]
    position = two.rownumber
    assert two.fetchall() == seen[position:]


@pytest.mark.slow
def test_arrow_of_what_is_left(connection):
    cursor = connection.execute(BIG)
    assert cursor.fetchone()
    assert cursor.fetch_arrow_table().num_rows == SIDE * SIDE - 1


def test_an_error_on_the_way_stays(connection):
    """P10: a result that failed does not look like one that is over."""
    cursor = connection.cursor()
    query = (
        "SELECT CAST(CASE WHEN a.id + b.id = %s THEN 'x' ELSE '1' END AS INTEGER) "
        "FROM t AS a CROSS JOIN t AS b ORDER BY 1"
    )
    with pytest.raises(tique.DataError) as first:
        cursor.execute(query, (2 * SIDE - 2,)).fetchall()
    assert first.value.sqlstate
    for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetch_arrow_table):
        with pytest.raises((tique.DataError, tique.ProgrammingError)):
            fetch()
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (SIDE,)


def test_an_interruption_on_the_way_stays(connection, monkeypatch):
    """P10: rows that an interruption lost are missed, not skipped."""
    cursor = connection.execute(BIG)
    assert cursor.fetchone()
    result = cursor._outcome.result
    fetch = type(result).fetch

    def interrupted(self, size):
        fetch(self, size)
        raise KeyboardInterrupt

    monkeypatch.setattr(type(result), "fetch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        cursor.fetchmany(5000)
    monkeypatch.undo()
    for fetch in (cursor.fetchone, cursor.fetchall, cursor.fetch_arrow_table):
        with pytest.raises(tique.OperationalError, match="run the query again") as lost:
            fetch()
        assert lost.value.sqlstate == "57014"
    assert len(cursor.execute(BIG).fetchall()) == SIDE * SIDE
