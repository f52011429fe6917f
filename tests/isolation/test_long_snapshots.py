"""A snapshot that was handed to the engine (:mod:`tique.query.transaction.held`)."""

from __future__ import annotations

import gc
import threading
import time

import pytest

import tique
from tests.portable import numbers
from tique.query.write import changes
from tique.store import kept_keys
from tique_backends.errors import EngineError, ErrorKind

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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    if engine.name == "monetdb":
        # Its catalog could not be read any more.
        for autocommit in (False, True):
            with (
                engine.connect(autocommit=autocommit) as other,
                pytest.raises(
                    tique.OperationalError, match="reads the past"
                ) as refused,
            ):
                other.execute("CREATE TABLE fresh (id INTEGER PRIMARY KEY)")
            assert refused.value.sqlstate == "55006"
        assert ask(old) == before
        return
    writer.execute("CREATE TABLE fresh (id INTEGER PRIMARY KEY)")
    writer.execute("INSERT INTO fresh VALUES (1)")
    writer.commit()
    writer.execute("ALTER TABLE fresh ADD COLUMN w INTEGER")
    writer.commit()
    assert ask(old) == before
    with pytest.raises(tique.SerializationError):
        old.execute("SELECT * FROM fresh")
    with pytest.raises(tique.SerializationError, match="handed to the engine"):
        old.execute("CREATE TABLE other (id INTEGER PRIMARY KEY)")
    old.rollback()
    assert old.execute("SELECT id FROM fresh").fetchall() == [(1,)]


@pytest.mark.slow
@pytest.mark.every_engine
def test_one_that_begins_beside_ddl(engine, writer):
    """It waits for DDL, and DDL for it, where the engine cannot have both; not for long."""
    beside = writer._database.engine.capabilities.defines_beside_snapshots
    old, other = engine.connect(), engine.connect(transactional_ddl=True)
    before = ask(old)
    other.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    if not beside:
        with pytest.raises(tique.OperationalError, match="runs DDL") as refused:
            hold(old)
        assert refused.value.sqlstate == "55006"
        assert not old._execution.transaction.is_held
    ending = threading.Timer(0.5, other.rollback)
    ending.start()
    began = time.monotonic()
    hold(old)
    assert beside or time.monotonic() - began > 0.3
    change(writer)
    assert ask(old) == before
    ending.join()
    ending = threading.Timer(0.5, old.rollback)
    ending.start()
    other.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    assert beside or not old._database.engine.held
    other.commit()
    ending.join()


@pytest.mark.every_engine
@pytest.mark.parametrize("level", ["SNAPSHOT", "READ COMMITTED"])
def test_ddl_after_it_has_read(engine, writer, level):
    """P1: a snapshot that is the statement's may go; the transaction's has been read."""
    writer.execute("UPDATE t SET v = v - 1")
    old = engine.connect(isolation_level=level, transactional_ddl=True)
    old.execute("INSERT INTO log VALUES (7)")
    old.execute("SELECT count(*) FROM log")
    hold(old)
    writer.commit()
    writer.checkpoint()
    create = "CREATE TABLE made AS SELECT max(v) AS v FROM t"
    if level == "SNAPSHOT":
        with pytest.raises(tique.SerializationError, match="needs one of now"):
            old.execute(create)
        return
    old.execute(create)
    old.commit()
    (found,) = writer.execute("SELECT (SELECT max(v) FROM t), v FROM made").fetchall()
    assert found[0] == found[1]
    assert writer.execute("SELECT count(*) FROM log WHERE n = 7").fetchone() == (1,)


@pytest.mark.slow
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


@pytest.mark.slow
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


def wait_until(condition, seconds=20):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def watched(engine):
    """A writer on a database whose snapshots are long after a moment."""
    if engine.name == "monetdb":
        pytest.skip("its schema may not change beside an engine transaction")
    opened = engine.connect(checkpoint="manual", long_snapshot=0.05)
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    opened.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(20_000)}")
    opened.commit()
    return opened


def raise_all(writer):
    writer.execute("UPDATE t SET v = v + 1")
    writer.commit()


@pytest.mark.slow
@pytest.mark.every_engine
def test_the_watcher_hands_over(engine, watched):
    """P7: an idle transaction, one that is busy, but none that nothing waits for."""
    idle, busy = engine.connect(), engine.connect()
    total = "SELECT sum(v), count(*) FROM t"
    before = idle.execute(total).fetchone()
    assert busy.execute(total).fetchone() == before
    time.sleep(0.7)
    assert not idle._execution.transaction.is_held
    raise_all(watched)
    (oldest, *_), stable = watched.status().transactions, watched.status().stable
    assert stable == oldest.sts
    wait_until(lambda: idle._execution.transaction.is_held)
    with busy._execution.lock:
        # (A statement is under way.)
        transaction = busy._execution.transaction
        wait_until(lambda: transaction.is_held or transaction.is_long)
    for _ in range(3):
        raise_all(watched)
        assert idle.execute(total).fetchone() == before
        assert busy.execute(total).fetchone() == before
    wait_until(lambda: busy._execution.transaction.is_held)
    watched.checkpoint()
    assert is_empty(watched)
    found = {each.connection: each for each in watched.status().transactions}
    each = found[idle.info.number]
    assert each.is_held
    assert each.age > 0.7
    assert watched.outcome(each.txid) == "active"
    assert idle.execute(total).fetchone() == before
    idle.rollback()
    assert idle.execute(total).fetchone() == (80_000, 20_000)


@pytest.mark.every_engine
def test_a_result_that_is_read_slowly(engine, watched):
    """P1: it is read on; the snapshot is handed over when it is at its end."""
    old = engine.connect()
    cursor = old.execute("SELECT v FROM t")
    rows = cursor.fetchmany(10)
    raise_all(watched)
    transaction = old._execution.transaction
    wait_until(lambda: transaction.is_held or transaction.obstacle)
    if engine.name != "monetdb":
        assert "being read" in transaction.obstacle
        assert "being read" in watched.status().transactions[0].obstacle
    rows += cursor.fetchall()
    assert rows == [(0,)] * 20_000
    transaction.rests_until = 0
    wait_until(lambda: transaction.is_held)
    assert watched.status().transactions[0].obstacle is None
    few = old.execute("SELECT v FROM t WHERE id < 5")
    assert few.fetchmany(2) + few.fetchall() == [(0,)] * 5


@pytest.mark.every_engine
def test_few_rows_are_read_ahead(engine, watched):
    """P1: rows of an open result, and of cursors, stay those of the query."""
    old = engine.connect()
    has_cursors = engine.name == "postgresql"
    if has_cursors:
        old.execute("DECLARE c CURSOR FOR SELECT id FROM t WHERE id < 9 ORDER BY id")
        old.execute("FETCH 2 FROM c").fetchall()
    few = old.execute("SELECT id, v FROM t WHERE id BETWEEN 1 AND 5000 ORDER BY id")
    rows = few.fetchmany(3)
    raise_all(watched)
    transaction = old._execution.transaction
    wait_until(lambda: transaction.is_held)
    rows += few.fetchmany(2)
    if has_cursors:
        assert old.execute("FETCH 2 FROM c").fetchall() == [(2,), (3,)]
    rows += few.fetchall()
    assert rows == [(number, 0) for number in range(1, 5001)]


@pytest.mark.every_engine
def test_read_committed_is_not_held(engine, watched):
    """P7: an idle one that has not written keeps λ back no more; one that has does."""
    reader = engine.connect(isolation_level="READ COMMITTED")
    writer = engine.connect(isolation_level="READ COMMITTED")
    reader.execute("SELECT count(*) FROM t").fetchall()
    reader.execute("SELECT count(*) FROM t").fetchall()
    raise_all(watched)
    wait_until(lambda: watched.checkpoint() is not None and is_empty(watched))
    assert not reader._execution.transaction.is_held
    writer.execute("UPDATE t SET v = 7 WHERE id = 3")
    watched.execute("UPDATE t SET v = 7 WHERE id = 4")
    watched.commit()
    time.sleep(0.7)
    watched.checkpoint()
    assert not is_empty(watched)
    writer.commit()


@pytest.mark.every_engine
def test_no_free_connection(engine, watched, monkeypatch):
    """P6: the snapshot stays short, the status says why, and nothing else suffers."""
    old = engine.connect()
    before = old.execute("SELECT sum(v) FROM t").fetchone()
    database = watched._database

    def refuse():
        raise EngineError(ErrorKind.OPERATIONAL, "sorry, too many clients", "53300")

    with monkeypatch.context() as patched:
        patched.setattr(database.engine, "session", refuse)
        raise_all(watched)
        transaction = old._execution.transaction
        wait_until(lambda: transaction.obstacle)
        assert "too many clients" in transaction.obstacle
        assert old.execute("SELECT sum(v) FROM t").fetchone() == before
    transaction.rests_until = 0
    wait_until(lambda: transaction.is_held)
    assert old.execute("SELECT sum(v) FROM t").fetchone() == before


@pytest.mark.every_engine
@pytest.mark.parametrize("folds", [False, True])
@pytest.mark.parametrize("is_held", [False, True])
def test_updates_that_merge(engine, writer, is_held, folds):
    """P3: they are computed again on what memory has, and lose to what was folded."""
    old = engine.connect()
    old.execute("UPDATE t SET v = v + 1 WHERE id = 7")
    if not is_held:
        old.execute("UPDATE t SET v = v + 1 WHERE id = 100")
    hold(old)
    if is_held:
        old.execute("UPDATE t SET v = v + 1 WHERE id = 100")
    writer.execute("UPDATE t SET v = v + 10 WHERE id = 100 OR id = 7")
    writer.commit()
    if folds:
        writer.checkpoint()
        with pytest.raises(tique.SerializationError):
            old.commit()
    else:
        old.commit()
    found = writer.execute("SELECT v FROM t WHERE id = 100 OR id = 7").fetchall()
    assert sorted(found) == ([(18,), (110,)] if folds else [(19,), (111,)])


@pytest.mark.slow
@pytest.mark.every_engine
def test_between_the_steps_of_the_handover(engine, writer, monkeypatch):
    """P1: versions that only memory has are drained, and λ waits for the engine's snapshot."""
    total = "SELECT sum(v), count(*) FROM t"
    (before, count) = writer.execute(total).fetchone()
    writer.commit()
    writer.execute("UPDATE t SET v = v + 1 WHERE id = 7")
    writer.commit()
    old = engine.connect()
    # This is answered from memory: nothing is drained for it.
    old.execute("SELECT v FROM t WHERE id = 7").fetchone()
    kind = type(old._execution.transaction.session)
    begin = kind.hold_snapshot

    def hold_slowly(session, opens_aside):
        begin(session, opens_aside)
        change(writer)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "hold_snapshot", hold_slowly)
        hold(old)
    change(writer, since=20)
    assert is_empty(writer)
    assert old.execute(total).fetchone() == (before + 1, count)


@pytest.mark.slow
@pytest.mark.every_engine
@pytest.mark.parametrize("ends", ["close", "drop"])
def test_a_connection_that_goes(engine, writer, ends):
    """P6: neither its keys nor its sessions stay, closed or garbage-collected."""
    database = writer._database
    old = tique.connect(engine.url)
    before = ask(old)
    hold(old)
    aside = old._execution.transaction.session.aside
    change(writer)
    assert ask(old) == before
    if ends == "close":
        old.close()
    del old
    gc.collect()
    wait_until(lambda: not database.catalog.long_writers)
    database.release_abandoned()
    with pytest.raises(EngineError):
        aside.execute("SELECT 1").fetch_all()
    writer.execute("DROP TABLE log")
    writer.commit()


@pytest.mark.every_engine
def test_one_that_has_seen_nothing(engine, watched):
    """P7: a transaction that has only run DDL takes a newer snapshot, and may run more."""
    other = engine.connect()
    other.execute("CREATE TABLE a (id INTEGER PRIMARY KEY)")
    transaction = other._execution.transaction
    raise_all(watched)
    wait_until(lambda: transaction.sts >= watched.status().sts)
    assert not transaction.is_held
    other.execute("CREATE TABLE b (id INTEGER PRIMARY KEY)")
    other.execute("INSERT INTO b SELECT max(v) FROM t")
    other.commit()
    assert other.execute("SELECT id FROM b").fetchall() == [(1,)]
