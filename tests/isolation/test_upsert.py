"""ON CONFLICT between transactions (P1, P3): certified though it finds no row."""

from __future__ import annotations

import threading
from contextlib import suppress
from functools import partial

import pytest

import tique
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables


@pytest.fixture(params=["memory", "query"])
def pair(engine, request):
    """Two connections to a table with two keys and one row."""
    options = {"certifier": request.param, "checkpoint": "manual"}
    one, two = engine.connect(**options), engine.connect(**options)
    one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INTEGER)")
    one.execute("INSERT INTO t VALUES (1, 'one', 0)")
    one.commit()
    return one, two


def content(connection):
    rows = connection.execute("SELECT * FROM t ORDER BY id").fetchall()
    connection.rollback()
    return rows


UPDATES = (
    "INSERT INTO t VALUES ({}, {}, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + 1",
    "INSERT INTO t VALUES ({}, {}, 1) ON CONFLICT (name) DO UPDATE SET n = t.n + 1",
    "INSERT INTO t VALUES ({}, {}, 1) ON CONFLICT DO NOTHING",
)


@pytest.mark.parametrize("statement", UPDATES)
def test_both_insert(pair, statement):
    """P3: neither saw the other's row; only the first commits."""
    one, two = pair
    for connection in pair:
        connection.execute(statement.format(2, "'two'"))
    one.commit()
    with pytest.raises(tique.SerializationError) as caught:
        two.commit()
    assert caught.value.key in ((2,), ("two",))
    assert content(two) == [(1, "one", 0), (2, "two", 1)]


@pytest.mark.parametrize("statement", UPDATES)
def test_both_insert_under_one_unique_key(pair, statement):
    one, two = pair
    one.execute(statement.format(2, "'two'"))
    two.execute(statement.format(3, "'two'"))
    one.commit()
    with pytest.raises(tique.SerializationError) as caught:
        two.commit()
    assert caught.value.key == ("two",)


@pytest.mark.parametrize("statement", UPDATES[:2])
def test_both_update(pair, statement):
    """P3: no increment is lost."""
    one, two = pair
    for connection in pair:
        connection.execute(statement.format(1, "'one'"))
    two.commit()
    commits = 1
    with suppress(tique.SerializationError):
        # It merges if the statement looks at nothing but its row.
        one.commit()
        commits += 1
    assert content(one) == [(1, "one", commits)]


@pytest.mark.parametrize("statement", UPDATES)
def test_the_snapshot_decides(pair, statement):
    """P1: a row that came later is not there; one that went later is."""
    one, two = pair
    two.execute("SELECT 1 FROM t")
    one.execute("INSERT INTO t VALUES (2, 'two', 5)")
    one.commit()
    assert two.execute(statement.format(2, "'two'")).rowcount == 1
    assert two.execute("SELECT n FROM t WHERE id = 2").fetchone() == (1,)
    with pytest.raises(tique.SerializationError):
        two.commit()
    two.execute("SELECT 1 FROM t")
    one.execute("DELETE FROM t WHERE id = 2")
    one.commit()
    is_update = "UPDATE" in statement
    assert two.execute(statement.format(2, "'two'")).rowcount == is_update
    if is_update:
        with pytest.raises(tique.SerializationError):
            two.commit()
    else:
        two.commit()
    assert content(two) == [(1, "one", 0)]


def test_nothing_done_is_nothing_to_certify(pair):
    one, two = pair
    two.execute(UPDATES[2].format(1, "'one'"))
    one.execute("UPDATE t SET n = 9")
    one.commit()
    two.commit()
    assert content(two) == [(1, "one", 9)]


def test_read_committed_sees_what_was_committed_meanwhile(engine):
    one = engine.connect(checkpoint="manual")
    two = engine.connect(isolation_level="READ COMMITTED")
    one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, n INTEGER)")
    one.commit()
    two.execute("SELECT 1 FROM t")
    one.execute("INSERT INTO t VALUES (2, 'two', 5)")
    one.commit()
    for statement in UPDATES[:2]:
        assert two.execute(statement.format(2, "'two'")).rowcount == 1
    two.commit()
    assert content(one) == [(2, "two", 7)]


LARGE = (
    f"INSERT INTO t (id, n) SELECT number, number FROM {numbers(2500)} "
    "ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n"
)
SMALL = "INSERT INTO t (id, n) VALUES (77, 0) ON CONFLICT (id) DO NOTHING"


@pytest.mark.parametrize(
    ("first", "second", "rows"), [(LARGE, SMALL, 2500), (SMALL, LARGE, 2)]
)
def test_large_and_small(pair, first, second, rows):
    """P3: staged writes are certified against buffered ones, and vice versa."""
    one, two = pair
    one.execute(first)
    two.execute(second)
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    assert len(content(two)) == rows


def test_counters_of_many_threads(engine):
    """P3: upserts with retries lose no increment and make no row twice."""
    with engine.connect() as connection:
        connection.execute("CREATE TABLE c (k INTEGER PRIMARY KEY, n INTEGER)")
    threads, rounds = 4, 25
    connections = [engine.connect() for _ in range(threads)]
    failures = []

    def upsert(connection, key):
        connection.execute(
            "INSERT INTO c VALUES (%s, 1) ON CONFLICT (k) DO UPDATE SET n = c.n + 1",
            (key,),
        )

    def count(connection):
        try:
            for number in range(rounds):
                work = partial(upsert, key=number % 3)
                tique.run_transaction(connection, work, attempts=200)
        except BaseException as error:
            failures.append(error)

    workers = [threading.Thread(target=count, args=(c,)) for c in connections]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    found = connections[0].execute("SELECT * FROM c ORDER BY k").fetchall()
    assert found == [(0, 36), (1, 32), (2, 32)]
