"""A snapshot that was handed to the engine (:mod:`tique.query.transaction.held`)."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique.query.write import changes
from tique.store import kept_keys

ROWS = 200
QUERIES = (
    "SELECT id, v, note FROM t ORDER BY id",
    "SELECT count(*), sum(v), min(note) FROM t",
    "SELECT v FROM t WHERE id = 7",
    "SELECT v FROM t WHERE id = 1000",
    "SELECT sum(n) FROM log",
    "SELECT a.v, b.v FROM t AS a JOIN t AS b ON a.id = b.id + 1 ORDER BY a.id LIMIT 5",
)


@pytest.fixture
def writer(engine, monkeypatch):
    # A hundred rows are staged.
    monkeypatch.setattr(changes, "BUFFERED_ROWS", 50)
    opened = engine.connect(checkpoint="manual", uncommitted_fold_rows=None)
    opened.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note VARCHAR(20) NOT NULL)"
    )
    opened.execute("CREATE TABLE log (n INTEGER)")
    opened.execute(f"INSERT INTO t SELECT number, number, 'first' FROM {numbers(ROWS)}")
    opened.execute("INSERT INTO log VALUES (1), (2), (3)")
    opened.commit()
    opened.checkpoint()
    # Some of what a snapshot sees is not folded.
    opened.execute("UPDATE t SET v = v + 1 WHERE id < 20")
    opened.execute("DELETE FROM t WHERE id = 30")
    opened.execute("INSERT INTO log VALUES (4)")
    opened.commit()
    return opened


def hold(connection):
    """Hand the open transaction's snapshot over, as the watcher does."""
    with connection._execution.guarded():
        connection._execution.transaction.hold()


def ask(connection):
    return [connection.execute(query).fetchall() for query in QUERIES]


def change(writer, since=0):
    """Commits of every kind, each behind a fold."""
    for number in range(since, since + 10):
        writer.execute("UPDATE t SET v = v + 100, note = 'x' WHERE id = %s", (number,))
        writer.execute("DELETE FROM t WHERE id = %s", (number + 50,))
        writer.execute("INSERT INTO t VALUES (%s, 1, 'new')", (number + 1000,))
        writer.execute("INSERT INTO log VALUES (%s)", (number,))
        writer.execute("DELETE FROM log WHERE n = 1")
        writer.commit()
        writer.checkpoint()
    writer.execute("UPDATE t SET v = v - 1")
    writer.commit()
    writer.checkpoint()


def commit(connection, statement, *parameters):
    connection.execute(statement, parameters)
    connection.commit()


def is_empty(connection):
    """Whether λ has passed everything: the cache and memory hold nothing recent."""
    return all(v.is_empty for v in connection._database.catalog.all_versions())


@pytest.mark.every_engine
def test_it_stays_the_same(engine, writer):
    """P1, P7: nothing that others do is seen, and nothing is kept for it."""
    old = engine.connect()
    before = ask(old)
    hold(old)
    assert ask(old) == before
    change(writer)
    assert is_empty(writer)
    assert ask(old) == before
    old.rollback()
    assert ask(old) != before
    change(writer, since=20)
    assert not old._execution.transaction.is_held


@pytest.mark.every_engine
@pytest.mark.parametrize("ends", ["commit", "rollback"])
def test_own_writes_are_on_top(engine, writer, ends):
    """P1, P5, P8: buffered and staged rows, savepoints, and then all or nothing."""
    old = engine.connect()
    old.execute("INSERT INTO t VALUES (2000, 1, 'own')")
    before = ask(old)
    hold(old)
    change(writer)
    assert ask(old) == before
    old.execute("UPDATE t SET v = 5 WHERE id = 2000")
    old.execute("SAVEPOINT s")
    old.execute(f"INSERT INTO t SELECT number + 3000, 0, 'staged' FROM {numbers(ROWS)}")
    old.execute("INSERT INTO log VALUES (10)")
    assert old.execute("SELECT count(*) FROM t WHERE note = 'staged'").fetchone() == (
        ROWS,
    )
    old.execute("ROLLBACK TO s")
    assert old.execute("SELECT count(*) FROM t WHERE note = 'staged'").fetchone() == (
        0,
    )
    old.execute(f"INSERT INTO t SELECT number + 4000, 0, 'kept' FROM {numbers(ROWS)}")
    own = old.execute("SELECT count(*) FROM t WHERE note IN ('kept', 'own')").fetchone()
    assert own == (ROWS + 1,)
    getattr(old, ends)()
    found = writer.execute("SELECT count(*) FROM t WHERE note IN ('kept', 'own')")
    assert found.fetchone() == (ROWS + 1 if ends == "commit" else 0,)


@pytest.mark.every_engine
def test_a_statement_that_fails(engine, writer):
    """P1, P8: the snapshot stays, or everything is refused by name until ROLLBACK."""
    old = engine.connect()
    old.execute("INSERT INTO log VALUES (99)")
    before = ask(old)
    hold(old)
    change(writer)
    # A row that the snapshot lacks may be at fault, and cannot be left out any more.
    with pytest.raises((tique.DataError, tique.SerializationError)):
        old.execute("SELECT CAST(note AS INTEGER) FROM t").fetchall()
    if old._database.engine.capabilities.nests_transactions:
        assert ask(old) == before
        old.commit()
    else:
        with pytest.raises(tique.OperationalError, match="kept its snapshot") as failed:
            old.execute(QUERIES[0])
        assert failed.value.sqlstate == "25P02"
        with pytest.raises(tique.OperationalError, match="kept its snapshot"):
            old.commit()
    count = writer.execute("SELECT count(*) FROM log WHERE n = 99").fetchone()
    assert count == (old._database.engine.capabilities.nests_transactions,)
    assert ask(old) != before
    old.rollback()


@pytest.mark.every_engine
def test_temporary_tables(engine, writer):
    """Those of the connection are read and written in it, and stay."""
    old = engine.connect()
    old.execute(
        "CREATE TEMPORARY TABLE mine (k INTEGER PRIMARY KEY) ON COMMIT PRESERVE ROWS"
    )
    old.execute("INSERT INTO mine VALUES (1)")
    old.commit()
    before = ask(old)
    old.execute("INSERT INTO mine VALUES (2)")
    hold(old)
    old.execute("INSERT INTO mine VALUES (3)")
    old.execute("CREATE TEMPORARY TABLE more (k INTEGER) ON COMMIT PRESERVE ROWS")
    old.execute("INSERT INTO more SELECT id FROM t")
    change(writer)
    assert ask(old) == before
    assert old.execute("SELECT k FROM mine ORDER BY k").fetchall() == [(1,), (2,), (3,)]
    old.commit()
    assert old.execute("SELECT k FROM mine ORDER BY k").fetchall() == [(1,), (2,), (3,)]
    assert old.execute("SELECT count(*) FROM more").fetchone() == (ROWS - 1,)
    old.commit()


@pytest.mark.every_engine
def test_ddl_beside_and_within(engine, writer):
    """Other tables may change; a table that was made since, and own DDL, are refused."""
    old = engine.connect()
    before = ask(old)
    hold(old)
    writer.execute("CREATE TABLE fresh (id INTEGER PRIMARY KEY)")
    writer.execute("INSERT INTO fresh VALUES (1)")
    writer.commit()
    if engine.name != "monetdb":
        # It aborts an ALTER of a table beside a transaction that began before.
        writer.execute("ALTER TABLE fresh ADD COLUMN w INTEGER")
        writer.commit()
    assert ask(old) == before
    with pytest.raises(tique.SerializationError):
        old.execute("SELECT * FROM fresh")
    with pytest.raises(tique.SerializationError, match="handed to the engine"):
        old.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    old.rollback()
    assert old.execute("SELECT id FROM fresh").fetchall() == [(1,)]


@pytest.mark.every_engine
@pytest.mark.parametrize("certifier", ["memory", "query"])
def test_folded_keys_are_certified(engine, certifier):
    """P3: a row that was changed and folded since the snapshot is a conflict, no other is."""
    writer = engine.connect(checkpoint="manual", certifier=certifier)
    writer.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, u INTEGER UNIQUE)"
    )
    writer.execute("INSERT INTO t VALUES (1, 0, 1), (2, 0, 2), (3, 0, 3), (4, 0, 4)")
    writer.commit()
    statements = {
        "UPDATE t SET v = v + 1 WHERE id = 1": False,
        "DELETE FROM t WHERE id = 2": False,
        "INSERT INTO t VALUES (7, 0, 7)": False,
        "INSERT INTO t VALUES (8, 0, 6)": False,
        "SELECT id FROM t WHERE id = 1 FOR UPDATE": False,
        "UPDATE t SET v = v + 1 WHERE id = 3": True,
        "INSERT INTO t VALUES (9, 0, 9)": True,
    }
    for statement, wins in statements.items():
        old = engine.connect()
        old.execute("SELECT * FROM t WHERE id = 1")
        hold(old)
        writer.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        writer.execute("UPDATE t SET v = v + 1 WHERE id = 2")
        writer.execute("DELETE FROM t WHERE id >= 5")
        writer.commit()
        writer.execute("INSERT INTO t VALUES (5, 0, 6), (7, 0, 7)")
        writer.commit()
        writer.checkpoint()
        assert is_empty(writer)
        if wins:
            commit(old, statement)
        else:
            with pytest.raises(tique.SerializationError):
                commit(old, statement)
        old.close()
        writer.execute("DELETE FROM t WHERE id >= 5")
        writer.commit()
    writer.checkpoint()


@pytest.mark.every_engine
def test_staged_writes(engine, writer):
    """P3: rows in bulk are certified by folded keys, too; of copies there are none."""
    many = f"INSERT INTO t SELECT number + %s, 0, '' FROM {numbers(ROWS)}"
    for folds in (False, True):
        for key, statement in (
            (6000, many),
            (7000, many),
            (0, "DELETE FROM log WHERE n = 2 AND n > %s"),
        ):
            writer.execute("DELETE FROM t WHERE id >= 5000")
            writer.commit()
            old = engine.connect()
            old.execute("SELECT count(*) FROM t, log")
            hold(old)
            writer.execute("INSERT INTO t VALUES (6010, 0, '')")
            writer.execute("INSERT INTO log VALUES (5)")
            writer.commit()
            if folds:
                writer.checkpoint()
            if key == 7000 or (key == 0 and not folds):
                commit(old, statement, key)
            else:
                reason = "committed first" if key else "too old"
                with pytest.raises(tique.SerializationError, match=reason):
                    commit(old, statement, key)
            old.close()
            writer.execute("INSERT INTO log VALUES (2)")
            writer.commit()
            writer.checkpoint()


@pytest.mark.every_engine
def test_references_to_what_was_folded(engine):
    """P9: a parent that is gone, and a child that came, since the snapshot."""
    writer = engine.connect(checkpoint="manual")
    writer.execute("CREATE TABLE p (id INTEGER PRIMARY KEY)")
    writer.execute("CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p)")
    writer.execute("INSERT INTO p VALUES (1), (2)")
    writer.commit()
    for theirs, mine in (
        ("DELETE FROM p WHERE id = 1", "INSERT INTO c VALUES (1, 1)"),
        ("INSERT INTO c VALUES (2, 2)", "DELETE FROM p WHERE id = 2"),
    ):
        old = engine.connect()
        old.execute("SELECT * FROM p, c")
        hold(old)
        writer.execute(theirs)
        writer.commit()
        writer.checkpoint()
        with pytest.raises(tique.SerializationError):
            commit(old, mine)
        old.close()


@pytest.mark.every_engine
def test_the_keys_are_bounded(engine, writer, monkeypatch):
    """P3: beyond the bound the next write is told so; reads go on, and READ ONLY keeps none."""
    monkeypatch.setattr(kept_keys, "MOST_KEYS", 32)
    old, reader = engine.connect(), engine.connect()
    reader.read_only = True
    before = ask(old)
    assert ask(reader) == before
    hold(reader)
    change(writer)
    kept = writer._database.catalog.find_versions
    number = next(t.id for t in writer._database.catalog if t.name == "t")
    assert not any(kept(number)._kept._commits)
    hold(old)
    for first in range(3):
        writer.execute("UPDATE t SET v = v + 1 WHERE id BETWEEN 100 AND 120")
        writer.commit()
        writer.execute(
            "UPDATE t SET v = v + 1 WHERE id BETWEEN %s AND 190", (170 - first,)
        )
        writer.commit()
        writer.checkpoint()
    assert 0 < max(map(len, kept(number)._kept._commits)) <= 32
    assert ask(reader) == before
    with pytest.raises(tique.SerializationError, match="too old to write to"):
        old.execute("INSERT INTO t VALUES (9000, 1, 'x')")
    old.rollback()
    writer.checkpoint()
    assert not any(kept(number)._kept._commits)
