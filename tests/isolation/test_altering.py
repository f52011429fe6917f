"""ALTER TABLE: everything follows, atomically, alone, under every open snapshot."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager

import psycopg
import pytest

import tique
from tique.errors import NotNullViolation
from tique_backends.postgresql import engine as postgresql
from tique_backends.postgresql import sequencer

CREATE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note VARCHAR(20))"


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute(CREATE)
    opened.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, NULL)")
    opened.commit()
    return opened


@pytest.fixture
def two(engine, one):
    return engine.connect()


def rows(connection, query="SELECT * FROM t ORDER BY id"):
    found = connection.execute(query).fetchall()
    connection.rollback()
    return found


def names(connection, table="t"):
    cursor = connection.execute(f"SELECT * FROM {table}")
    found = [column[0] for column in cursor.description]
    connection.rollback()
    return found


def kept(engine, one, *expected, query="SELECT * FROM t ORDER BY id"):
    """The rows are there for all: at once, after a checkpoint, after opening again."""
    one.rollback()
    assert rows(one, query) == list(expected)
    one.checkpoint()
    assert rows(one, query) == list(expected)
    engine.close()
    assert rows(engine.connect(), query) == list(expected)
    engine.close()
    assert engine.native().execute(query).fetchall() == list(expected)


# Columns


def test_add_a_column(engine, one, two):
    """P9: rows that are not folded yet have it, and statements are planned anew."""
    assert rows(two) == [(1, 10, "a"), (2, 20, None)]
    one.execute("ALTER TABLE t ADD COLUMN extra INTEGER DEFAULT 7")
    one.commit()
    assert rows(two) == [(1, 10, "a", 7), (2, 20, None, 7)]
    two.execute("INSERT INTO t (id, v) VALUES (3, 30)")
    two.execute("UPDATE t SET extra = 8 WHERE id = 1")
    two.commit()
    one.execute("ALTER TABLE t ADD later VARCHAR(10)")
    one.execute("INSERT INTO t VALUES (4, 40, 'd', 9, 'x')")
    one.commit()
    kept(
        engine,
        one,
        (1, 10, "a", 8, None),
        (2, 20, None, 7, None),
        (3, 30, None, 7, None),
        (4, 40, "d", 9, "x"),
    )


def test_drop_a_column(engine, one, two):
    rows(two)
    one.execute("ALTER TABLE t DROP COLUMN v")
    one.commit()
    with pytest.raises(tique.ProgrammingError):
        two.execute("SELECT v FROM t")
    two.rollback()
    two.execute("UPDATE t SET note = 'b' WHERE id = 2")
    two.commit()
    kept(engine, one, (1, "a"), (2, "b"))


def test_rename_a_column(engine, one, two):
    rows(two)
    one.execute("ALTER TABLE t RENAME COLUMN v TO w")
    one.execute("ALTER TABLE t RENAME note TO v")
    two.execute("UPDATE t SET v = 'new', w = w + 1 WHERE id = 1")
    two.commit()
    assert names(one) == ["id", "w", "v"]
    kept(engine, one, (1, 11, "new"), (2, 20, None))


def test_columns_that_are_there_or_not(one):
    one.execute("ALTER TABLE t ADD COLUMN IF NOT EXISTS v INTEGER")
    one.execute("ALTER TABLE t ADD COLUMN IF NOT EXISTS w INTEGER")
    one.execute("ALTER TABLE t DROP COLUMN IF EXISTS missing")
    one.execute("ALTER TABLE t DROP COLUMN IF EXISTS note")
    one.execute("ALTER TABLE IF EXISTS missing ADD COLUMN x INTEGER")
    one.commit()
    assert names(one) == ["id", "v", "w"]
    for statement, state in (
        ("ALTER TABLE t ADD COLUMN v INTEGER", "42701"),
        ("ALTER TABLE t DROP COLUMN missing", "42703"),
        ("ALTER TABLE t RENAME COLUMN missing TO x", "42703"),
        ("ALTER TABLE t RENAME COLUMN v TO w", "42701"),
        ("ALTER TABLE missing ADD COLUMN x INTEGER", "42P01"),
    ):
        with pytest.raises(tique.ProgrammingError) as caught:
            one.execute(statement)
        assert caught.value.sqlstate == state
        one.rollback()


def test_defaults(engine, one, two):
    one.execute("ALTER TABLE t ALTER COLUMN v SET DEFAULT 5")
    two.execute("INSERT INTO t (id) VALUES (3)")
    two.commit()
    one.execute("ALTER TABLE t ALTER v DROP DEFAULT")
    two.execute("INSERT INTO t (id) VALUES (4)")
    two.commit()
    kept(engine, one, (1, 10, "a"), (2, 20, None), (3, 5, None), (4, None, None))


def test_not_null(engine, one, two):
    with pytest.raises(tique.DatabaseError):
        one.execute("ALTER TABLE t ALTER COLUMN note SET NOT NULL")
    one.rollback()
    one.execute("UPDATE t SET note = 'b' WHERE id = 2")
    one.commit()
    one.execute("ALTER TABLE t ALTER COLUMN note SET NOT NULL")
    with pytest.raises(NotNullViolation):
        two.execute("UPDATE t SET note = NULL")
    two.rollback()
    one.execute("ALTER TABLE t ALTER COLUMN note DROP NOT NULL")
    two.execute("UPDATE t SET note = NULL WHERE id = 1")
    two.commit()
    kept(engine, one, (1, 10, None), (2, 20, "b"))


@pytest.mark.never(
    ["monetdb"], raises=tique.NotSupportedError, reason="MonetDB 11.41 has none"
)
def test_the_type_of_a_column(engine, one, two):
    rows(two)
    one.execute("ALTER TABLE t ALTER COLUMN v TYPE BIGINT")
    two.execute("UPDATE t SET v = 5000000000 WHERE id = 1")
    two.commit()
    one.execute("ALTER TABLE t ALTER note SET DATA TYPE INTEGER USING length(note) + 1")
    kept(engine, one, (1, 5_000_000_000, 2), (2, 20, None))


def test_statements_that_were_prepared(engine, one, two):
    """P9: another session has prepared reads of the column by key."""
    one.checkpoint()
    before = two._database.catalog.find(None, "t")
    assert two._execution.session.read_row(before, (1,))[1] == 10
    assert two._execution.session.read_rows(before, [(1,)])[(1,)][1] == 10
    two.execute("UPDATE t SET v = v + 1 WHERE id = 2")
    two.commit()
    one.checkpoint()
    if engine.name == "monetdb":
        one.execute("ALTER TABLE t DROP COLUMN v")
        one.execute("ALTER TABLE t ADD COLUMN v VARCHAR(9) DEFAULT 'x'")
    else:
        one.execute("ALTER TABLE t ALTER v TYPE VARCHAR(9) USING 'x'")
    one.commit()
    table = two._database.catalog.find(None, "t")
    for key in (1,), (2,):
        assert "x" in two._execution.session.read_row(table, key)
        assert "x" in two._execution.session.read_rows(table, [key])[key]
    two.execute("UPDATE t SET v = 'y' WHERE id = 2")
    two.commit()
    one.checkpoint()
    assert rows(one, "SELECT v FROM t WHERE id = 2") == [("y",)]


def test_rename_a_table(engine, one, two):
    rows(two)
    one.execute("ALTER TABLE t RENAME TO u")
    with pytest.raises(tique.ProgrammingError):
        two.execute("SELECT * FROM t")
    two.rollback()
    two.execute("UPDATE u SET v = 11 WHERE id = 1")
    two.commit()
    one.execute("CREATE TABLE t (id INTEGER)")
    with pytest.raises(tique.ProgrammingError, match="exists already"):
        one.execute("ALTER TABLE u RENAME TO t")
    one.rollback()
    assert rows(one) == []
    kept(engine, one, (1, 11, "a"), (2, 20, None), query="SELECT * FROM u ORDER BY id")


def test_a_table_without_a_key(engine, one, two):
    one.execute("CREATE TABLE bag (x INTEGER, y INTEGER)")
    one.execute("INSERT INTO bag VALUES (1, 1), (1, 1), (2, NULL)")
    one.commit()
    one.execute("ALTER TABLE bag ADD COLUMN z INTEGER DEFAULT 3")
    two.execute("DELETE FROM bag WHERE x = 2")
    two.execute("INSERT INTO bag VALUES (1, 1, 3)")
    two.commit()
    one.execute("ALTER TABLE bag DROP COLUMN y")
    kept(engine, one, *[(1, 3)] * 3, query="SELECT * FROM bag")


def test_a_table_below_a_view(engine, one, two):
    """P1: the view goes on, in the snapshot, and a table can be made of it."""
    one.execute("CREATE VIEW w AS SELECT id, note FROM t WHERE v < 15")
    one.commit()
    assert rows(two, "SELECT * FROM w") == [(1, "a")]
    one.execute("ALTER TABLE t ADD COLUMN extra INTEGER DEFAULT 7")
    two.execute("UPDATE t SET note = 'b' WHERE id = 1")
    two.commit()
    one.commit()
    assert rows(one, "SELECT * FROM w") == [(1, "b")]
    one.execute("CREATE TABLE c AS SELECT w.id, extra FROM w JOIN t ON t.id = w.id")
    assert rows(two, "SELECT * FROM c") == [(1, 7)]
    one.execute("DROP VIEW w")
    one.execute("ALTER TABLE t DROP COLUMN note")
    kept(engine, one, (1, 10, 7), (2, 20, 7))


# Alone


def test_a_table_that_is_in_use_is_not_altered(one, two):
    two.execute("SELECT * FROM t").fetchall()
    with pytest.raises(tique.OperationalError, match="uses it") as caught:
        one.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    assert caught.value.sqlstate == "55006"
    one.rollback()
    two.rollback()
    one.execute("ALTER TABLE t ADD COLUMN w INTEGER")


def test_not_within_uncommitted_writes(one):
    one.execute("UPDATE t SET v = 11")
    with pytest.raises(tique.NotSupportedError, match="uncommitted writes"):
        one.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    one.commit()
    assert names(one) == ["id", "v", "note"]


def test_an_older_snapshot_sees_its_rows(engine, one, two):
    """P1: rows that it does not see are not folded below it."""
    one.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    one.checkpoint()
    two.execute("SELECT * FROM other").fetchall()
    one.execute("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7")
    one.execute("UPDATE t SET v = 99, w = 99")
    one.execute("DELETE FROM t WHERE id = 2")
    one.commit()
    one.checkpoint()
    assert two.execute("SELECT * FROM t ORDER BY id").fetchall() == [
        (1, 10, "a", 7),
        (2, 20, None, 7),
    ]
    two.execute("UPDATE t SET w = 1 WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        two.commit()
    assert rows(one) == [(1, 99, "a", 99)]


def test_versions_that_an_older_snapshot_does_not_see(one, two, monkeypatch):
    """P1: refused, and the table is as it was."""
    monkeypatch.setattr("tique.query.define.schema_changes._PATIENCE", 0.2)
    one.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    two.execute("SELECT * FROM other").fetchall()
    one.execute("UPDATE t SET v = 99 WHERE id = 1")
    one.commit()
    with pytest.raises(tique.OperationalError, match="open snapshot") as caught:
        one.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    assert caught.value.sqlstate == "55006"
    one.rollback()
    assert two.execute("SELECT v FROM t ORDER BY id").fetchall() == [(10,), (20,)]
    two.rollback()
    one.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    assert rows(two) == [(1, 99, "a", None), (2, 20, None, None)]


def test_a_snapshot_that_nothing_was_read_under(engine, one, two):
    """P1: a transaction of DDL alone may take a newer one."""
    one.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    two.execute("UPDATE t SET v = 99 WHERE id = 1")
    two.commit()
    one.execute("ALTER TABLE t DROP COLUMN w")
    assert one.execute("SELECT v FROM t WHERE id = 1").fetchone() == (99,)


def test_versions_that_its_own_snapshot_does_not_see(one, two):
    """P1, P3: it is run again."""
    one.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    one.commit()
    one.execute("SELECT * FROM other").fetchall()
    two.execute("UPDATE t SET v = 99 WHERE id = 1")
    two.commit()
    with pytest.raises(tique.SerializationError):
        one.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    one.rollback()
    one.execute("ALTER TABLE t ADD COLUMN w INTEGER")
    assert rows(two) == [(1, 99, "a", None), (2, 20, None, None)]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    "text", ["ALTER TABLE", "DROP TABLE tique", 'CREATE TABLE tique."', "COMMIT"]
)
def test_an_alter_that_fails_half_way(engine, faults, when, text):
    """P5: the old table with the old rows, or the new one."""
    one = engine.connect(checkpoint="manual")
    one.execute(CREATE)
    one.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, NULL)")
    one.commit()
    one.checkpoint()
    one.execute("UPDATE t SET v = 11 WHERE id = 1")
    one.commit()
    faults.plan(when, text, engine.failure())
    with pytest.raises(tique.OperationalError, match="disk went away"):
        one.execute("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7")
    faults.clear()
    one.rollback()
    if "w" not in names(one):
        one.execute("ALTER TABLE t ADD COLUMN w INTEGER DEFAULT 7")
    one.execute("UPDATE t SET v = 21 WHERE id = 2")
    one.commit()
    kept(engine, one, (1, 11, "a", 7), (2, 21, None, 7))


# While it waits


@contextmanager
def committing(engine, connection):
    """Another thread commits to another table meanwhile; when each commit was over."""
    connection.execute("CREATE TABLE beside (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO beside VALUES (1, 0)")
    connection.commit()
    moments = []
    is_over = threading.Event()
    writer = engine.connect()

    def run():
        while not is_over.is_set():
            writer.execute("UPDATE beside SET v = v + 1 WHERE id = 1")
            writer.commit()
            moments.append(time.monotonic())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield moments
    finally:
        is_over.set()
        thread.join()


def refused(connection, moments, sqlstate):
    """A column is not added: not at once, and while it is waited for commits go on."""
    started = time.monotonic()
    with pytest.raises(tique.OperationalError) as refusal:
        connection.execute("ALTER TABLE t ADD COLUMN extra INTEGER")
    ended = time.monotonic()
    assert refusal.value.sqlstate == sqlstate
    assert ended - started > 1.5
    connection.rollback()
    assert any(started + 0.5 < moment < ended - 0.5 for moment in moments)


@pytest.mark.slow
@pytest.mark.parametrize("begin", ["", "BEGIN"], ids=["alone", "in a transaction"])
def test_commits_go_on_while_it_waits_for_a_snapshot(engine, one, begin):
    """P6: it is refused, and no commit has waited for that."""
    old, other = engine.connect(), engine.connect(autocommit=True)
    with committing(engine, one) as moments:
        old.execute("SELECT * FROM beside").fetchall()
        one.execute("UPDATE t SET v = v + 1")
        one.commit()
        if begin:
            other.execute(begin)
        refused(other, moments, "55006")
    old.rollback()
    other.execute("ALTER TABLE t ADD COLUMN extra INTEGER")
    assert rows(one) == [(1, 11, "a", None), (2, 21, None, None)]


@pytest.mark.slow
@pytest.mark.written_for(["postgresql"], reason="others have no such locks")
def test_commits_go_on_while_it_waits_for_a_lock(engine, one, monkeypatch):
    """P6: of a client that knows nothing of tique."""
    for place in (postgresql, sequencer):
        monkeypatch.setattr(place, "LOCK_PATIENCE", "3s")
    with committing(engine, one) as moments, psycopg.connect(engine.place) as native:
        native.execute("SELECT * FROM t")
        refused(one, moments, "55P03")
    one.execute("ALTER TABLE t ADD COLUMN extra INTEGER")
