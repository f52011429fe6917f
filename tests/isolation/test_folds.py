"""Folds change stored rows in their places, and only what changed of them (P4, P7, P9)."""

from __future__ import annotations

import random
import time
from contextlib import closing

import pytest

from tests.isolation.test_long_snapshots import wait_until
from tests.portable import numbers
from tests.staging import BUFFERED_ROWS, stage_above
from tique_backends.errors import EngineError

FAR = 5000
"""More rows than DuckDB looks at together, which are 2,048."""

ON_DUCKDB = pytest.mark.written_for(["duckdb"], reason="the places are DuckDB's rowids")

BY_ROW, IN_BULK = BUFFERED_ROWS * 10, 0


@pytest.fixture(params=[BY_ROW, IN_BULK], ids=["from memory", "by sql"])
def stage(request, monkeypatch):
    """Whether the fold has its rows from memory, or finds them in the cache table."""
    stage_above(request.param, monkeypatch.setattr)


@pytest.fixture
def connection(engine):
    return engine.connect(checkpoint="manual")


def stored(engine, query):
    return engine.native().execute(query).fetchall()


def fill(connection, columns, row, rows=FAR):
    """A table that stores rows with ids below ``rows``."""
    connection.execute(f"CREATE TABLE t ({columns})")
    connection.execute(f"INSERT INTO t SELECT {row} FROM {numbers(rows)}")
    connection.commit()
    connection.checkpoint()


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("known", [True, False], ids=["known", "not known"])
def test_unique_values_change_hands_far_apart(engine, connection, known):
    """P4, P9: at no moment of a fold does storage have one of them twice."""
    fill(
        connection,
        "id INTEGER PRIMARY KEY, u INTEGER UNIQUE, a INTEGER, b INTEGER, c INTEGER, "
        "d INTEGER, e INTEGER, f INTEGER",
        "number, number, 1, 2, 3, 4, 5, 6",
    )
    last = FAR - 1
    if known:
        # Rows that a point statement reads stay in memory.
        for key in range(0, FAR, 50):
            connection.execute("SELECT u, b FROM t WHERE id = %s", [key]).fetchall()
    connection.execute(f"UPDATE t SET u = {last} - u")
    connection.execute("UPDATE t SET b = 20 WHERE id = 3")
    connection.commit()
    connection.checkpoint()
    expected = [(key, last - key, 20 if key == 3 else 2) for key in range(FAR)]
    assert (
        connection.execute("SELECT id, u, b FROM t ORDER BY id").fetchall() == expected
    )
    connection.close()
    assert stored(engine, "SELECT id, u, b FROM t ORDER BY id") == expected


@pytest.mark.usefixtures("stage")
def test_a_value_goes_to_a_new_row(engine, connection):
    """P4, P9: what is given up by one row may be taken by another in the same fold."""
    fill(
        connection,
        "id INTEGER PRIMARY KEY, u INTEGER UNIQUE, n INTEGER",
        "number, number, 0",
    )
    connection.execute("UPDATE t SET u = u + 10000 WHERE id >= 4000")
    connection.execute("DELETE FROM t WHERE id < 100")
    connection.execute(
        f"INSERT INTO t SELECT number + {FAR}, number + 4000, 1 FROM {numbers(1000)}"
    )
    connection.execute(
        f"INSERT INTO t SELECT number + 9000, number, 2 FROM {numbers(100)}"
    )
    connection.commit()
    connection.checkpoint()
    query = "SELECT count(*), sum(u), sum(n), max(id) FROM t"
    ((*counts,),) = connection.execute(query).fetchall()
    connection.close()
    values = [*range(FAR), *range(14000, 15000)]
    expected = [FAR + 1000, sum(values), 1200, 9099]
    assert counts == expected
    assert [tuple(counts)] == [tuple(map(int, row)) for row in stored(engine, query)]


KINDS = {
    "plain": ("", "0"),
    "list": (", extra INTEGER[] DEFAULT [1]", "[number, 2]"),
    "struct": (", extra STRUCT(a INTEGER, b VARCHAR)", "{'a': number, 'b': 'x'}"),
    "generated": (", extra INTEGER, g INTEGER GENERATED ALWAYS AS (n + 1)", "7"),
    "check": (", extra INTEGER, CHECK (n >= m)", "7"),
    "place": (", extra INTEGER, rowid INTEGER DEFAULT 1", "7"),
}


@pytest.mark.slow
@ON_DUCKDB
@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "anew"])
@pytest.mark.parametrize("index", [False, True], ids=["", "index"])
@pytest.mark.parametrize("kind", KINDS)
def test_any_changes_of_any_table(engine, connection, kind, index, in_place):
    """P4, P7: storage is what the versions said, whatever its columns are."""
    more, extra = KINDS[kind]
    more = more or ", extra INTEGER"
    names = "id, n, m, s, extra"
    connection.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, m INTEGER, s VARCHAR{more})"
    )
    connection.execute(
        f"INSERT INTO t (id, n, m, s, extra) SELECT number, 10, 1, 'a', {extra} "
        f"FROM {numbers(300)}"
    )
    connection.commit()
    if index:
        connection.execute("CREATE INDEX t_n ON t (n)")
    connection.checkpoint()
    if not in_place:
        connection._database.engine.held.add(connection)
    chance = random.Random(kind)
    for number in range(6):
        for _ in range(12):
            key = chance.randrange(330)
            # Every other fold has nothing but changes of rows that are there.
            kinds = 3 if number % 2 else 6
            connection.execute(
                chance.choice(
                    [
                        f"UPDATE t SET n = n + 1 WHERE id = {key}",
                        f"UPDATE t SET s = s || 'b', m = m - 1 WHERE id < {key % 40}",
                        f"UPDATE t SET extra = (SELECT extra FROM t WHERE id = 299) "
                        f"WHERE id = {key % 290}",
                        f"DELETE FROM t WHERE id = {key}",
                        f"UPDATE t SET id = id + 1000 WHERE id = {key}",
                        f"INSERT INTO t (id, n, m, s) VALUES ({key}, 9, 2, 'new') "
                        "ON CONFLICT (id) DO UPDATE SET n = 12, s = excluded.s",
                    ][:kinds]
                )
            )
            connection.commit()
        before = connection.execute(f"SELECT {names} FROM t ORDER BY id").fetchall()
        connection.commit()
        connection.checkpoint()
        after = connection.execute(f"SELECT {names} FROM t ORDER BY id").fetchall()
        connection.commit()
        assert after == before
    connection.close()
    assert stored(engine, f"SELECT {names} FROM t ORDER BY id") == before


@ON_DUCKDB
@pytest.mark.usefixtures("stage")
def test_changed_rows_keep_their_places(engine, connection):
    """As natively: what the application sees in their order, and a scan's locality."""
    columns = "id INTEGER PRIMARY KEY, n INTEGER, s VARCHAR, m INTEGER"
    fill(connection, columns, "number, 0, 'a', 1")
    connection.close()
    before = stored(engine, "SELECT id FROM t")
    connection = engine.connect(checkpoint="manual")
    connection.execute("UPDATE t SET n = id WHERE id % 7 = 0")
    connection.commit()
    connection.execute("UPDATE t SET s = 'b' WHERE id < 100")
    connection.commit()
    connection.checkpoint()
    connection.close()
    rows = stored(engine, "SELECT id, n, s FROM t")
    assert rows == [
        (key, 0 if key % 7 else key, "b" if key < 100 else "a") for (key,) in before
    ]


@ON_DUCKDB
@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "anew"])
def test_a_fold_beside_an_engine_transaction(connection, in_place):
    """P7: rows that do not change in their places let DuckDB write its file."""
    columns = ", ".join(f"c{i} INTEGER DEFAULT 0" for i in range(8))
    fill(
        connection,
        f"id INTEGER PRIMARY KEY, n INTEGER, {columns}",
        "number, 0" + ", 0" * 8,
    )
    database = connection._database
    held, session = database.engine.session(), database.engine.session()
    held.begin()
    assert held.execute("SELECT sum(n) FROM t").fetch_all() == [(0,)]
    if not in_place:
        database.engine.held.add(held)
    for key in range(20):
        connection.execute("UPDATE t SET n = n + 1 WHERE id = %s", [key])
    connection.execute("UPDATE t SET n = n + 1 WHERE id >= 4000")
    connection.commit()
    with database.checkpointer.paused(10):
        database.checkpointer.fold_all_stable()
    database.engine.prune_log(
        session, connection._database.checkpointer._timeline.stable(), 0
    )
    assert held.execute("SELECT sum(n) FROM t").fetch_all() == [(0,)]
    assert session.execute("SELECT sum(n) FROM t").fetch_all() == [(1020,)]
    if in_place:
        with pytest.raises(EngineError, match="CHECKPOINT"):
            database.engine.compact(session, force=True)
    else:
        database.engine.compact(session, force=True)
    assert held.execute("SELECT sum(n) FROM t").fetch_all() == [(0,)]
    held.close()
    session.close()


@ON_DUCKDB
@pytest.mark.usefixtures("stage")
def test_a_snapshot_that_is_held_has_folds_anew(engine):
    """P7: DuckDB writes its file beside a long transaction, whatever is updated."""
    with (
        engine.connect(long_snapshot=0.1, checkpoint="manual") as connection,
        engine.connect(long_snapshot=0.1, checkpoint="manual") as reader,
    ):
        fill(connection, "id INTEGER PRIMARY KEY, n INTEGER", "number, 0")
        connection.checkpoint()
        kept = connection._database.engine
        total = "SELECT sum(n) FROM t"
        assert reader.execute(total).fetchall() == [(0,)]
        for key in range(20):
            connection.execute("UPDATE t SET n = n + 1 WHERE id = %s", [key])
            connection.commit()
        wait_until(lambda: not kept.in_place)
        with closing(kept.session()) as session:
            # (λ passes the snapshot after that.)
            wait_until(connection.checkpoint)
            kept.compact(session, force=True)
        assert reader.execute(total).fetchall() == [(0,)]
        reader.rollback()
        assert kept.in_place


@ON_DUCKDB
def test_folds_wait_for_more_beside_a_snapshot_that_is_held(engine):
    """P7: rows that are written anew are gathered first, and folded for all that."""
    connection = engine.connect(checkpoint_rows=100, checkpoint_age=60)
    database = connection._database
    (versions,) = fill_and_watch(connection)
    database.engine.held.add(connection)
    insert(connection, range(150))
    time.sleep(1)
    assert versions.rows == 150
    insert(connection, range(150, 650))
    wait_until(lambda: versions.is_empty)
    insert(connection, range(650, 800))
    time.sleep(1)
    assert versions.rows == 150
    database.engine.held.discard(connection)
    wait_until(lambda: versions.is_empty)


def fill_and_watch(connection):
    """What is known of the versions of a new table."""
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.commit()
    return connection._database.catalog.all_versions()


def insert(connection, keys):
    for key in keys:
        connection.execute("INSERT INTO t VALUES (%s)", [key])
    connection.commit()


@pytest.mark.usefixtures("stage")
def test_a_key_that_is_deleted_and_inserted(engine, connection):
    """P7: the newest version of a key counts, also where storage has an older row."""
    fill(connection, "id INTEGER PRIMARY KEY, n INTEGER", "number, 0", rows=100)
    for key in (1, 2, 200):
        connection.execute("DELETE FROM t WHERE id = %s", [key])
        connection.commit()
        connection.execute("INSERT INTO t VALUES (%s, 1)", [key])
        connection.commit()
    for key in (2, 3, 201):
        connection.execute("INSERT INTO t VALUES (%s, 1)", [key + 100])
        connection.execute("DELETE FROM t WHERE id IN (%s, %s)", [key, key + 100])
        connection.commit()
    connection.checkpoint()
    connection.close()
    rows = stored(engine, "SELECT id, n FROM t WHERE n > 0 OR id > 98 ORDER BY id")
    assert rows == [(1, 1), (99, 0), (200, 1)]
    assert stored(engine, "SELECT count(*) FROM t") == [(99,)]
