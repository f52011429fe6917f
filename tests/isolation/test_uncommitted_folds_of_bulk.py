"""Uncommitted folds of versions that are in the cache table alone (P1, P4, P7).

They came by a bulk commit, or recovery could not fold them.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

import pytest

import tique
from tests.isolation.test_uncommitted_folds import (
    ONLY_DUCKDB,
    SUM,
    add,
    elsewhere,
    folds,
    one,
)
from tests.portable import numbers
from tests.staging import stage_above
from tique.checkpoint import uncommitted
from tique_backends.errors import EngineError, ErrorKind

pytestmark = pytest.mark.every_engine

OPTIONS = {"checkpoint": "manual", "uncommitted_fold_rows": 0}
ALL = 499_500
"""The sum of the numbers below a thousand."""

SPEND = uncommitted.UncommittedFold._spend


@pytest.fixture(autouse=True)
def _small_buffers(monkeypatch):
    """Let a statement that writes more than ten rows be a bulk commit."""
    stage_above(10, monkeypatch.setattr)
    # PostgreSQL keeps undone rows until a vacuum: of these tables any number.
    monkeypatch.setattr(uncommitted.UncommittedFold, "_spend", lambda *_, **__: None)


@pytest.fixture
def table(engine):
    """A thousand rows in storage."""
    connection = engine.connect(**OPTIONS)
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR(9))"
    )
    connection.execute(f"INSERT INTO t SELECT number, number, 'a' FROM {numbers(1000)}")
    connection.commit()
    connection.checkpoint()
    yield connection
    with suppress(tique.Error):
        connection.rollback()


def bulk(connection, statement):
    connection.execute(statement)
    connection.commit()
    connection._database.timeline.advance()
    assert any(each.bulk for each in connection._database.catalog.all_versions())


@pytest.fixture
def begun(table, monkeypatch):
    """The engine transactions that began for it."""
    found = []
    fold, kind = folds(table), type(table._execution.session)
    begin = kind.begin_uncommitted_fold

    def noted(session):
        if session is fold._session:
            found.append(session)
        begin(session)

    monkeypatch.setattr(kind, "begin_uncommitted_fold", noted)
    return found


def test_a_bulk_commit_is_brought_there_once(engine, table, begun):
    bulk(table, "UPDATE t SET n = n + 1")
    assert one(table, SUM) == (1000, ALL + 1000)
    assert folds(table).versions == 1000
    assert one(table, SUM) == (1000, ALL + 1000)
    table.commit()
    assert one(table, SUM) == (1000, ALL + 1000)
    assert folds(table).versions == 1000
    assert len(begun) == 1


def test_commits_after_it_come_from_memory(engine, table, begun):
    bulk(table, "UPDATE t SET n = n + 1")
    assert one(table, SUM) == (1000, ALL + 1000)
    add(table, 5, 3, 4)
    assert one(table, SUM) == (1000, ALL + 1010)
    assert folds(table).versions == 1002
    assert len(begun) == 1


def test_commits_before_it_come_with_it(engine, table, begun):
    add(table, 5, 3)
    add(table, 5, 3, 4)
    bulk(table, "UPDATE t SET n = n * 2 WHERE id < 100")
    expected = ALL + 15 + 99 * 50 + 15
    assert one(table, SUM) == (1000, expected)
    add(table, 1, 200)
    assert one(table, SUM) == (1000, expected + 1)


def test_the_next_bulk_commit_begins_anew(engine, table, begun):
    """An engine transaction does not see what was appended after its beginning."""
    add(table, 1, 1)
    assert one(table, SUM) == (1000, ALL + 1)
    bulk(table, "UPDATE t SET n = n + 1")
    assert one(table, SUM) == (1000, ALL + 1001)
    bulk(table, "UPDATE t SET n = n + 1 WHERE id >= 500")
    assert one(table, SUM) == (1000, ALL + 1501)
    assert len(begun) == 3


def test_two_tables_do_not_take_turns(engine, table, begun):
    """One engine transaction serves queries of either."""
    table.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, n INTEGER)")
    bulk(table, f"INSERT INTO u SELECT number, 0 FROM {numbers(100)}")
    bulk(table, "UPDATE u SET n = 1")
    bulk(table, "UPDATE t SET n = n + 1")
    begun.clear()
    for _ in range(3):
        assert one(table, "SELECT sum(n + 0) FROM u") == (100,)
        assert one(table, SUM) == (1000, ALL + 1000)
        table.commit()
    assert len(begun) == 1
    # Of a table that is read first after a commit of a few rows, too.
    add(table, 1, 1)
    assert one(table, SUM) == (1000, ALL + 1001)
    assert len(begun) == 1


def test_rows_come_and_go(engine, table):
    for statement, count in (
        ("DELETE FROM t WHERE id < 100", 900),
        (f"INSERT INTO t SELECT number, 7, 'new' FROM {numbers(50)}", 950),
        ("DELETE FROM t WHERE id < 25", 925),
        ("UPDATE t SET id = id + 10000 WHERE id < 50", 925),
        ("DELETE FROM t WHERE id >= 10000", 900),
        (f"INSERT INTO t SELECT number, 8, 'again' FROM {numbers(100)}", 1000),
    ):
        table.execute(statement)
        table.commit()
        assert one(table, SUM)[0] == count, statement
    query = "SELECT id, n, s FROM t WHERE n < 9 OR s <> 'a' ORDER BY id"
    there = table.execute(query).fetchall()
    table.checkpoint()
    assert elsewhere(table, query) == there == [(i, 8, "again") for i in range(100)]


def test_an_older_snapshot_sees_none_of_it(engine, table):
    add(table, 1, 1)
    with engine.connect(**OPTIONS) as older:
        assert one(older, SUM) == (1000, ALL + 1)
        bulk(table, "UPDATE t SET n = 0")
        # The engine transaction that is open has what it sees.
        assert one(older, SUM) == (1000, ALL + 1)
        assert one(table, SUM) == (1000, 0)
        assert elsewhere(older, SUM) == [(1000, ALL + 1)]
        older.commit()
        assert one(older, SUM) == (1000, 0)


def test_an_older_snapshot_between_two(engine, table):
    """What is newer stays in the cache table."""
    bulk(table, "UPDATE t SET n = n + 1")
    with engine.connect(**OPTIONS) as older:
        older.execute("SELECT 1 FROM t").fetchall()
        bulk(table, "UPDATE t SET n = 0 WHERE id >= 10")
        bulk(table, "DELETE FROM t WHERE id >= 10")
        assert one(older, SUM) == (1000, ALL + 1000)
        assert one(table, SUM) == (10, 55)


@ONLY_DUCKDB
def test_types_that_the_driver_cannot_hold(engine, table):
    """Every change of such a table is a bulk commit."""
    table.execute(
        "CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER[], w STRUCT(a INTEGER))"
    )
    table.execute("INSERT INTO u SELECT i, [i, i], {'a': i} FROM range(20) AS r(i)")
    table.commit()
    table.checkpoint()
    table.execute("UPDATE u SET v = [0], w = {'a': 1} WHERE id < 15")
    table.commit()
    query = "SELECT sum(len(v)), sum(w.a) FROM u"
    assert one(table, query) == (25, 15 + sum(range(15, 20)))


def test_a_table_of_keys_alone(engine, table):
    table.execute("CREATE TABLE u (a INTEGER, b VARCHAR(9), PRIMARY KEY (a, b))")
    bulk(table, f"INSERT INTO u SELECT number, 'x' FROM {numbers(120)}")
    bulk(table, "DELETE FROM u WHERE a >= 100")
    assert one(table, "SELECT count(*), sum(a) FROM u") == (100, 4950)
    table.execute("DELETE FROM u WHERE a < 50")
    table.commit()
    assert one(table, "SELECT count(*), sum(a) FROM u") == (50, 3725)


def test_a_table_without_a_key_is_asked_elsewhere(engine, table):
    table.execute("CREATE TABLE u (n INTEGER)")
    bulk(table, f"INSERT INTO u SELECT number FROM {numbers(100)}")
    assert elsewhere(table, "SELECT count(*) FROM u WHERE n >= 0") == [(100,)]


def test_unique_values_that_change_places(engine, table):
    """Storage may refuse them on the way: the other form has them."""
    table.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, k INTEGER UNIQUE)")
    table.execute(f"INSERT INTO u SELECT number, number FROM {numbers(20)}")
    table.commit()
    table.checkpoint()
    bulk(table, "UPDATE u SET k = 19 - k")
    query = "SELECT k FROM u WHERE id + 0 >= 0 ORDER BY id"
    swapped = [(19 - i,) for i in range(20)]
    assert table.execute(query).fetchall() == swapped
    table.checkpoint()
    assert table.execute(query).fetchall() == swapped


def test_the_application_s_stale_session_does_not_matter(engine, table):
    """Another connection asks first, in whose session nothing was drained yet."""
    bulk(table, "UPDATE t SET n = n + 1")
    add(table, 1, 1)
    with engine.connect(**OPTIONS) as other:
        assert one(other, SUM) == (1000, ALL + 1001)


def test_versions_that_recovery_could_not_fold(engine, table):
    bulk(table, "UPDATE t SET n = n + 1")
    add(table, 5, 1)
    kind = type(table._database.engine)

    def refuse(*arguments, **options):
        raise EngineError(ErrorKind.OPERATIONAL, "no", "53100")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fold", "store"):
            patch.setattr(kind, name, refuse)
        table.close()
        connection = engine.connect(**OPTIONS)
    with connection:
        (versions,) = connection._database.catalog.all_versions()
        assert versions.bulk
        assert one(connection, SUM) == (1000, ALL + 1005)
        add(connection, 1, 1)
        assert one(connection, SUM) == (1000, ALL + 1006)
        connection.checkpoint()
        assert elsewhere(connection, SUM) == [(1000, ALL + 1006)]


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint", ["auto", "manual"])
def test_sums_hold_beside_writers(engine, checkpoint):
    """Bulk commits and small ones keep each snapshot's sum."""
    options = {
        "checkpoint": checkpoint,
        "checkpoint_rows": 200,
        "checkpoint_age": 0.2,
        "uncommitted_fold_rows": 0,
    }
    with engine.connect(**options) as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute(f"INSERT INTO t SELECT number, 100 FROM {numbers(100)}")
        connection.commit()
        connection.checkpoint()
        until = time.monotonic() + 2
        failures = []

        def write(seed):
            number = random.Random(seed)
            with engine.connect(**options) as own:
                while time.monotonic() < until:
                    with suppress(tique.SerializationError):
                        if number.random() < 0.3:
                            first = 2 * number.randrange(20)
                            own.execute(
                                "UPDATE t SET n = n + CASE WHEN id %% 2 = 0 THEN 1 "
                                "ELSE -1 END WHERE id >= %s AND id < %s",
                                [first, first + 40],
                            )
                        else:
                            move = "UPDATE t SET n = n + %s WHERE id = %s"
                            own.execute(move, [1, number.randrange(100)])
                            own.execute(move, [-1, number.randrange(100)])
                        own.commit()
                        continue
                    own.rollback()

        def look():
            with engine.connect(**options) as own:
                while time.monotonic() < until:
                    row = own.execute(SUM).fetchone()
                    if row != (100, 10_000):
                        failures.append(row)
                    own.commit()

        threads = [threading.Thread(target=write, args=[n]) for n in range(3)]
        threads += [threading.Thread(target=look) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert folds(connection).queries > 0


@pytest.mark.written_for(["postgresql"], reason="it keeps undone rows until a vacuum")
def test_a_large_part_of_a_table_is_not_written(engine, table, monkeypatch):
    """Not even once: undone, it would be as much until the next vacuum."""
    monkeypatch.setattr(uncommitted.UncommittedFold, "_spend", SPEND)
    part, most = "UPDATE t SET n = n + 1 WHERE id < 60", "UPDATE t SET n = n + 1"
    bulk(table, part)
    assert one(table, SUM) == (1000, ALL + 60)
    bulk(table, part)
    assert elsewhere(table, SUM) == [(1000, ALL + 120)]
    table.checkpoint()
    bulk(table, most)
    folds(table)._resting.clear()
    folds(table)._spent.clear()
    assert elsewhere(table, SUM) == [(1000, ALL + 1120)]
    assert folds(table).versions == 60
