"""Columns of composite and range types (P1, P8, P9): values, changes, conflicts, folds."""

from __future__ import annotations

import pytest

import tique


@pytest.fixture
def connection(database):
    connection = database.connect(autocommit=True, checkpoint="manual")
    connection.execute('CREATE TYPE place AS (x INTEGER, "Y" TEXT, at NUMERIC(5,2))')
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, p place DEFAULT ROW(0, 'd', 1), n INTEGER)"
    )
    connection.execute(
        "INSERT INTO t VALUES (1, ROW(1, 'a,\"b', 1.5), 1), (2, NULL, 2)"
    )
    yield connection
    connection.execute("DROP TABLE t")
    connection.execute("DROP TYPE place")


def rows(connection):
    return connection.execute(
        'SELECT id, (p).x, (p)."Y", (p).at, p::text, n FROM t ORDER BY id'
    ).fetchall()


def test_values(connection):
    expected = [
        (1, 1, 'a,"b', pytest.approx(1.5), '(1,"a,""b",1.50)', 1),
        (2, None, None, None, None, 2),
    ]
    assert rows(connection) == expected
    connection.checkpoint()
    assert rows(connection) == expected
    connection.execute("UPDATE t SET n = n + 1 WHERE id = 1")
    connection.execute("UPDATE t SET p = ROW((p).x + 5, NULL, 2) WHERE id = 1")
    connection.execute("INSERT INTO t (id) VALUES (3)")
    expected = [
        (1, 6, None, 2, "(6,,2.00)", 2),
        (2, None, None, None, None, 2),
        (3, 0, "d", 1, "(0,d,1.00)", None),
    ]
    assert rows(connection) == expected
    connection.checkpoint()
    assert rows(connection) == expected
    with pytest.raises(tique.DataError):
        connection.execute("UPDATE t SET p = ROW(1, 'x', 99999) WHERE id = 1")
    found = connection.execute("SELECT id FROM t WHERE p = ROW(0, 'd', 1.00)::place")
    assert found.fetchall() == [(3,)]


def test_concurrent_changes(database, connection):
    one, two = database.connect(), database.connect()
    one.execute("UPDATE t SET p = ROW(8, 'one', 1) WHERE id = 1")
    two.execute("UPDATE t SET p = ROW(9, 'two', 1) WHERE id = 1")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    assert rows(connection)[0][:3] == (1, 8, "one")


def test_a_key(database, connection):
    connection.execute("CREATE TABLE k (p place PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO k VALUES (ROW(1, 'a', 1), 1)")
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO k VALUES (ROW(1, 'a', 1.00), 2)")
    one, two = database.connect(), database.connect()
    one.execute("INSERT INTO k VALUES (ROW(2, 'a', 1), 1)")
    two.execute("INSERT INTO k VALUES (ROW(2, 'a', 1.0), 2)")
    one.commit()
    with pytest.raises(tique.Error):
        two.commit()
    connection.checkpoint()
    assert connection.execute("SELECT count(*) FROM k").fetchall() == [(2,)]
    connection.execute("DROP TABLE k")


def test_a_type_in_use_stays(connection):
    with pytest.raises(tique.Error):
        connection.execute("DROP TYPE place")
    for change in (
        "ALTER TYPE place ADD ATTRIBUTE z INTEGER",
        "ALTER TYPE place DROP ATTRIBUTE x",
        "ALTER TYPE place ALTER ATTRIBUTE x TYPE TEXT",
        "DROP TYPE place CASCADE",
    ):
        with pytest.raises(tique.NotSupportedError):
            connection.execute(change)


def test_a_range_of_your_own(database, connection):
    connection.execute("CREATE TYPE span AS RANGE (SUBTYPE = TEXT)")
    connection.execute("CREATE TABLE r (a span PRIMARY KEY, b span)")
    connection.execute("INSERT INTO r VALUES ('[a,c)', '(,b]'), ('[d,e]', NULL)")
    connection.execute("UPDATE r SET b = '[x,y)' WHERE a = '[a,c)'")
    for _ in range(2):
        found = connection.execute(
            "SELECT a::text, b::text FROM r WHERE a @> 'b'::text"
        )
        assert found.fetchall() == [("[a,c)", "[x,y)")]
        with pytest.raises(tique.IntegrityError):
            connection.execute("INSERT INTO r VALUES ('[a,c)', NULL)")
        connection.checkpoint()
    one, two = database.connect(), database.connect()
    one.execute("UPDATE r SET b = NULL WHERE a = '[a,c)'")
    two.execute("DELETE FROM r WHERE a = '[a,c)'")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    connection.execute("DROP TABLE r")
    connection.execute("DROP TYPE span")
