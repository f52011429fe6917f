"""P3, P9: when keys count as the same, and the loser's error."""

from __future__ import annotations

import pytest

import tique
from tests.isolation.overtaking import together

pytestmark = pytest.mark.fresh_tables


@pytest.fixture(params=["memory", "query"])
def connect(request, engine):
    return lambda **options: engine.connect(certifier=request.param, **options)


@pytest.fixture
def pair(connect):
    """Two connections to a table with a UNIQUE key and one without any."""
    one, two = connect(), connect()
    one.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
    one.execute("CREATE TABLE b (x INTEGER)")
    one.execute("INSERT INTO u VALUES (1, 'one')")
    one.execute("INSERT INTO b VALUES (1), (2)")
    one.commit()
    one.checkpoint()
    return one, two


def refused(connection):
    with pytest.raises(tique.SerializationError) as caught:
        connection.commit()
    connection.rollback()
    return caught.value


def test_the_loser_learns_which_row_and_who(engine, pair):
    one, two = pair
    for number, connection in enumerate(pair):
        connection.execute("UPDATE u SET name = %s WHERE id = 1", (str(number),))
    winner = one.txid
    one.commit()
    conflict = refused(two)
    assert (conflict.sqlstate, conflict.table) == ("40001", f"{engine.schema}.u")
    assert (conflict.key, conflict.winner) == ((1,), one.status().sts)
    assert one.outcome(winner) == "committed"


@pytest.mark.parametrize("level", ["SNAPSHOT", "READ COMMITTED"])
@pytest.mark.parametrize("end", [None, "commit", "rollback"])
@pytest.mark.parametrize("values", ["1, 'two'", "2, 'one'"], ids=["key", "unique"])
def test_a_key_that_another_one_deletes(pair, level, end, values):
    """P9: it is a duplicate as long as the statement's snapshot has it, and at once."""
    one, two = pair
    two.isolation_level = level
    assert two.execute("SELECT count(*) FROM u").fetchall() == [(1,)]
    one.execute("DELETE FROM u WHERE id = 1")
    if end is not None:
        getattr(one, end)()
    insert = f"INSERT INTO u VALUES ({values})"
    if level == "READ COMMITTED" and end == "commit":
        two.execute(insert)
    else:
        with pytest.raises(tique.IntegrityError):
            two.execute(insert)
        one.commit()
        two.rollback()
        if end != "rollback":
            two.execute(insert)
    two.commit()
    assert two.execute("SELECT count(*) FROM u").fetchall() == [(1,)]


def test_the_loser_learns_which_columns(engine):
    one, two = engine.connect(), engine.connect()
    one.execute("CREATE TABLE w (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c INTEGER)")
    one.execute("INSERT INTO w VALUES (1, 1, 'x', 1)")
    one.commit()
    for change, columns in (
        ("UPDATE w SET a = a + 1, b = 'y' WHERE id = 1", ("a", "b")),
        ("UPDATE w SET c = c + 1 WHERE id = 1", ("c",)),
        ("DELETE FROM w WHERE id = 1", ()),
    ):
        two.execute("SELECT a, b, c FROM w WHERE id = 1").fetchall()
        two.execute("UPDATE w SET a = a + 5 WHERE id = 1")
        one.execute(change)
        one.commit()
        conflict = refused(two)
        assert conflict.columns == columns
        assert ", ".join(columns) in str(conflict)


def test_a_unique_key(pair):
    one, two = pair
    one.execute("INSERT INTO u VALUES (7, 'same')")
    two.execute("INSERT INTO u VALUES (8, 'same')")
    two.commit()
    assert refused(one).key == ("same",)
    assert one.execute("SELECT id FROM u ORDER BY id").fetchall() == [(1,), (8,)]


def test_a_unique_key_that_an_update_takes(pair):
    one, two = pair
    one.execute("UPDATE u SET name = 'same' WHERE id = 1")
    two.execute("INSERT INTO u VALUES (8, 'same')")
    one.commit()
    assert refused(two).key == ("same",)
    assert two.execute("SELECT * FROM u").fetchall() == [(1, "same")]


def test_a_unique_key_that_two_of_a_batch_take(engine, pair):
    """P3, P6: a value of another type than the primary key's."""
    outcomes = together(
        engine,
        ("INSERT INTO u VALUES (8, 'same')",),
        ("INSERT INTO u VALUES (9, 'same')",),
        ("INSERT INTO u VALUES (10, 'other')",),
    )
    # The one that loses is run again, as it is the whole transaction.
    assert outcomes == [1, tique.errors.UniqueViolation, 1]


def test_one_copy_of_a_row_without_a_key(pair):
    one, two = pair
    for connection in pair:
        connection.execute("DELETE FROM b WHERE x = 1")
    one.commit()
    refused(two)
    assert one.execute("SELECT x FROM b").fetchall() == [(2,)]


def test_different_rows_without_a_key(pair):
    one, two = pair
    one.execute("DELETE FROM b WHERE x = 1")
    two.execute("DELETE FROM b WHERE x = 2")
    one.commit()
    two.commit()
    assert one.execute("SELECT x FROM b").fetchall() == []


def test_a_later_transaction_sees_an_acknowledged_commit(pair):
    """P2, strong: a transaction that begins after commit() returned sees it."""
    one, two = pair
    for value in range(50):
        one.execute("UPDATE u SET name = %s WHERE id = 1", (str(value),))
        one.commit()
        assert two.execute("SELECT name FROM u").fetchall() == [(str(value),)]
        two.rollback()


@pytest.mark.parametrize("reads", [False, True])
def test_read_committed_after_a_checkpoint(engine, connect, reads):
    """P3: a fold leaves the versions that certify writes of earlier snapshots."""
    one, two = connect(), connect(isolation_level="READ COMMITTED")
    one.execute("CREATE TABLE r (id INTEGER PRIMARY KEY, x INTEGER)")
    one.execute("INSERT INTO r VALUES (1, 0)")
    one.commit()
    two.execute("UPDATE r SET x = x + 1 WHERE id = 1")
    one.execute("UPDATE r SET x = x + 10 WHERE id = 1")
    one.commit()
    if reads:
        assert two.execute("SELECT x FROM r").fetchall() == [(11,)]
    one.checkpoint()
    two.commit()
    assert one.execute("SELECT x FROM r").fetchall() == [(11,)]
