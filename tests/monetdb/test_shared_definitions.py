"""Definitions and bulk writes while other processes use the database (P3, P6, P9)."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import tique
from tests.portable import numbers
from tique import _definition
from tique._database import Database
from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.connection import Connection
from tique_backends.monetdb.sequencer import MonetDBSequencer

ROWS = 3000
"""More than a transaction keeps in memory: such a write is a bulk write."""


@pytest.fixture
def filled(pair):
    first, second = pair
    first.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    return first, second


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool


@contextmanager
def waiting(monkeypatch, owner, method):
    """Hold whoever calls the method back; yields two events: it is there, go on."""
    arrived, go_on = threading.Event(), threading.Event()
    original = getattr(owner, method)

    def held(*arguments):
        arrived.set()
        assert go_on.wait(20)
        return original(*arguments)

    monkeypatch.setattr(owner, method, held)
    try:
        yield arrived, go_on
    finally:
        go_on.set()


def expect_nothing_unfinished(process):
    position = process.database.timeline.position()
    assert position.sts == position.cts


# Definitions


def test_everybody_knows_a_new_table_at_once(pair):
    """P2, P9."""
    first, second = pair
    with pytest.raises(tique.ProgrammingError):
        second.run("SELECT * FROM u")
    second.connection.rollback()
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER UNIQUE)")
    second.commit("INSERT INTO u VALUES (1, 7)")
    assert first.rows("SELECT * FROM u") == [(1, 7)]
    with pytest.raises(tique.IntegrityError):
        first.commit("INSERT INTO u VALUES (2, 7)")


def test_rows_of_a_new_table_are_followed(pair):
    """P1: though the definition and they are followed in one step."""
    first, second = pair
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit("INSERT INTO u VALUES (1, 7)")
    first.commit("UPDATE u SET v = v + 1")
    assert second.rows("SELECT v FROM u WHERE id = 1") == [(8,)]
    assert second.rows("SELECT * FROM u") == [(1, 8)]


def test_what_was_planned_is_planned_anew(pair):
    """P9: a table of the same name with other columns."""
    first, second = pair
    second.connection.autocommit = True
    query, insert = "SELECT * FROM t WHERE id = 1", "INSERT INTO t VALUES (%s, %s, %s)"
    assert second.run(query).fetchall() == [(1, 0, "a")]
    second.run(insert, (5, 5, "e"))
    first.commit("DROP TABLE t")
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, name CLOB)")
    first.commit("INSERT INTO t VALUES (1, 'new')")
    assert second.run(query).fetchall() == [(1, "new")]
    with pytest.raises(tique.ProgrammingError):
        second.run(insert, (5, 5, "e"))
    assert not second.connection.in_transaction
    first.commit("DROP TABLE t")
    with pytest.raises(tique.ProgrammingError):
        second.run(query)


def test_dropped_beside_a_transaction(pair):
    """P9: what it wrote goes nowhere, not to a new table of the same name either."""
    first, second = pair
    second.run("UPDATE t SET v = 99 WHERE id = 1")
    first.commit("DROP TABLE t")
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note CLOB)")
    first.commit("INSERT INTO t VALUES (1, 1, 'new')")
    with pytest.raises(tique.ProgrammingError, match="dropped meanwhile") as refusal:
        second.connection.commit()
    assert refusal.value.sqlstate == "42P01"
    for one in pair:
        assert one.rows("SELECT * FROM t") == [(1, 1, "new")]
    expect_nothing_unfinished(first)


def test_dropped_beside_a_snapshot(pair):
    first, second = pair
    second.run("SELECT v FROM t WHERE id = 1").fetchall()
    first.commit("DROP TABLE t")
    second.database.timeline.catch_up()
    with pytest.raises(tique.ProgrammingError):
        second.run("SELECT v FROM t WHERE id = 2")


def test_who_commits_with_a_dropped_tables_writer_commits(pair, process):
    """P3: one batch, one refused."""
    first, second = pair
    first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    with second.another() as other:
        second.run("UPDATE t SET v = 99 WHERE id = 1")
        other.execute("INSERT INTO u VALUES (1)")
        first.commit("DROP TABLE t")
        committer = second.database.committer
        with ThreadPoolExecutor(2) as pool:
            with committer.paused(10):
                attempts = [pool.submit(c.commit) for c in (second.connection, other)]
                time.sleep(0.1)
            attempts[1].result(10)
            with pytest.raises(tique.ProgrammingError, match="dropped meanwhile"):
                attempts[0].result(10)
    assert first.rows("SELECT * FROM u") == [(1,)]


def test_a_commit_waits_for_a_definition(pair, pool, monkeypatch):
    """P9: and is certified by what is defined then."""
    first, second = pair
    second.run("UPDATE t SET v = 5 WHERE id = 1")
    with waiting(monkeypatch, MonetDBSequencer, "transact") as (arrived, go_on):
        defining = pool.submit(first.commit, "CREATE TABLE u (id INTEGER PRIMARY KEY)")
        assert arrived.wait(10)
        committing = pool.submit(second.connection.commit)
        with pytest.raises(TimeoutError):
            committing.result(0.5)
        go_on.set()
        defining.result(10)
        committing.result(10)
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(5,)]
    assert second.rows("SELECT * FROM u") == []


def test_a_definition_waits_for_a_commit(pair, pool, monkeypatch):
    """P9: for one that was let through before and is not finished."""
    first, second = pair
    second.run("UPDATE t SET v = 5 WHERE id = 1")
    with waiting(monkeypatch, second.database.engine.shared, "finish") as held:
        arrived, go_on = held
        committing = pool.submit(second.connection.commit)
        assert arrived.wait(10)
        defining = pool.submit(first.commit, "DROP TABLE t")
        with pytest.raises(TimeoutError):
            defining.result(0.5)
        go_on.set()
        committing.result(10)
        defining.result(10)
    with pytest.raises(tique.ProgrammingError):
        second.run("SELECT * FROM t")


def test_who_joins_during_a_definition(pair, process, pool, monkeypatch):
    """P9: reads the old catalog, perhaps, and then follows."""
    first, _ = pair
    with waiting(monkeypatch, MonetDBSequencer, "transact") as (arrived, go_on):
        defining = pool.submit(first.commit, "CREATE TABLE u (id INTEGER PRIMARY KEY)")
        assert arrived.wait(10)
        third = process()
        assert third.rows("SELECT count(*) FROM t") == [(2,)]
        go_on.set()
        defining.result(10)
    third.commit("INSERT INTO u VALUES (1)")
    assert first.rows("SELECT * FROM u") == [(1,)]


@pytest.mark.parametrize(
    ("owner", "step"),
    [
        (MonetDBSequencer, "hold"),
        (MonetDBSequencer, "snapshot"),
        (MonetDBSequencer, "folds"),
        (Database, "reload"),
    ],
)
def test_defined_between_a_joiners_steps(pair, process, monkeypatch, owner, step):
    """P9."""
    first, _ = pair
    original = getattr(owner, step)

    def defining(*arguments):
        monkeypatch.setattr(owner, step, original)
        first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY)")
        first.commit("INSERT INTO u VALUES (1)")
        return original(*arguments)

    first.database.timeline._stopping.set()
    first.database.timeline._thread.join()
    pair[1].close()
    monkeypatch.setattr(owner, step, defining)
    assert process().rows("SELECT * FROM u") == [(1,)]


def stop(process):
    """As SIGSTOP would: no beats, and the others give it up."""
    process.database.timeline._stopping.set()
    process.database.timeline._thread.join()
    process.database.engine.shared.leave()


def stopping_before_commit(monkeypatch, process, others_work):
    """Stop the process between its last statement and its COMMIT."""
    send = Connection._send
    stopped = []

    def held(connection, sql):
        if "; COMMIT;" in sql and not stopped:
            stopped.append(sql)
            stop(process)
            others_work()
        return send(connection, sql)

    monkeypatch.setattr(Connection, "_send", held)
    return stopped


@pytest.mark.parametrize(
    "definition",
    [
        "DROP TABLE t",
        "CREATE TABLE u (id INTEGER PRIMARY KEY)",
        "CREATE INDEX i ON t (v)",
    ],
)
def test_stopped_in_a_definition(pair, monkeypatch, definition):
    """P6: the others went on without it, so it does not happen any more."""
    first, second = pair
    stopped = stopping_before_commit(
        monkeypatch, first, lambda: second.commit("UPDATE t SET v = 4 WHERE id = 1")
    )
    with pytest.raises(tique.OperationalError, match="given up") as refusal:
        first.run(definition)
    assert stopped
    assert refusal.value.sqlstate == "08006"
    assert second.rows("SELECT v FROM t WHERE id = 1") == [(4,)]
    assert [table.name for table in second.database.catalog] == ["t"]
    session = second.database.engine.session()
    assert second.database.engine.user_tables(session) == [("sys", "t")]
    session.close()
    second.commit("DROP TABLE t")
    expect_nothing_unfinished(second)


def test_killed_after_a_definitions_commit(pair, monkeypatch):
    """P9: it is there, and the others know, though its timestamp is fenced."""
    first, second = pair
    finish = MonetDBSequencer.finish

    def killed(shared, stamps):
        if shared is first.database.engine.shared:
            stop(first)
        return finish(shared, stamps)

    monkeypatch.setattr(MonetDBSequencer, "finish", killed)
    with pytest.raises(tique.OperationalError, match="given up"):
        first.run("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    second.database.timeline._beat()
    second.commit("INSERT INTO u VALUES (1)")
    assert second.rows("SELECT * FROM u") == [(1,)]
    expect_nothing_unfinished(second)


def test_a_definition_that_is_refused_holds_up_nobody(pair):
    first, second = pair
    for statement in ("CREATE TABLE t (id INTEGER)", "DROP TABLE nothing"):
        with pytest.raises(tique.ProgrammingError):
            first.run(statement)
        first.connection.rollback()
        second.commit("UPDATE t SET v = v + 1 WHERE id = 1")
        expect_nothing_unfinished(first)


def test_interrupted_while_timestamps_are_taken(pair, monkeypatch):
    """P6: whoever may have one that it does not know of leaves."""
    first, second = pair

    def interrupted(*arguments):
        original(*arguments)
        raise KeyboardInterrupt

    for name, statement in (
        ("barrier", "CREATE TABLE u (id INTEGER PRIMARY KEY)"),
        ("certify", "UPDATE t SET v = 8 WHERE id = 2"),
    ):
        original = getattr(MonetDBSequencer, name)
        with monkeypatch.context() as patch:
            patch.setattr(MonetDBSequencer, name, interrupted)
            with pytest.raises((KeyboardInterrupt, tique.OperationalError)):
                first.commit(statement)
        second.commit("UPDATE t SET v = v + 1 WHERE id = 1")
        expect_nothing_unfinished(second)
        first.close()
        first = first.again()
    assert first.rows("SELECT v FROM t ORDER BY id") == [(2,), (0,)]


def test_adopt_and_detach_beside_others(pair, home):
    """P9."""
    first, second = pair
    native = home.native()
    native.cursor().execute("CREATE TABLE legacy (id INTEGER PRIMARY KEY, v INTEGER)")
    native.cursor().execute("INSERT INTO legacy VALUES (1, 1)")
    assert _definition.adopt(first.database, ["legacy"]) == ["sys.legacy"]
    second.commit("UPDATE legacy SET v = 2")
    assert first.rows("SELECT v FROM legacy") == [(2,)]
    assert _definition.detach(second.database, ["legacy"]) == ["sys.legacy"]
    with pytest.raises(tique.ProgrammingError):
        first.run("SELECT v FROM legacy")
    first.connection.rollback()
    cursor = native.cursor()
    cursor.execute("SELECT v FROM legacy")
    assert cursor.fetchall() == [(2,)]


def test_all_is_detached_by_who_is_alone(pair):
    first, second = pair
    with pytest.raises(EngineError, match="other processes") as refusal:
        _definition.detach(first.database)
    assert refusal.value.kind is ErrorKind.IN_USE
    assert first.rows("SELECT count(*) FROM t") == [(2,)]
    second.close()
    assert _definition.detach(first.database) == ["sys.t"]


# Bulk writes


def test_a_bulk_write_beside_others(filled):
    """P1, P2."""
    first, second = filled
    before = second.run("SELECT sum(v) FROM t").fetchall()
    first.commit("UPDATE t SET v = v + 1")
    assert second.run("SELECT sum(v) FROM t").fetchall() == before
    second.connection.rollback()
    assert second.rows("SELECT sum(v) FROM t") == [(ROWS + 2,)]
    assert second.rows("SELECT v FROM t WHERE id = 17") == [(1,)]
    second.commit("UPDATE t SET v = v + 1 WHERE id = 17")
    second.commit("UPDATE t SET v = v + 1")
    assert first.rows("SELECT v FROM t WHERE id = 17") == [(3,)]
    assert first.rows("SELECT sum(v) FROM t") == [(2 * (ROWS + 2) + 1,)]


@pytest.mark.parametrize("bulk_first", [True, False])
def test_bulk_against_small_in_another_process(filled, bulk_first):
    """P3."""
    first, second = filled
    first.run("UPDATE t SET v = v + 1")
    second.run("UPDATE t SET v = v + 10 WHERE id = 17")
    winner, loser = (first, second) if bulk_first else (second, first)
    winner.connection.commit()
    with pytest.raises(tique.SerializationError) as refusal:
        loser.connection.commit()
    assert refusal.value.table == "sys.t"
    for one in filled:
        assert one.rows("SELECT v FROM t WHERE id = 17") == [(1 if bulk_first else 10,)]
    expect_nothing_unfinished(first)


def test_a_commit_under_way_and_a_bulk_write(filled, pool, monkeypatch):
    """P3: the small one was certified before, and is finished after it began."""
    first, second = filled
    first.run("UPDATE t SET v = v + 1")
    second.run("UPDATE t SET v = v + 10 WHERE id = 17")
    with waiting(monkeypatch, second.database.engine.shared, "finish") as held:
        arrived, go_on = held
        small = pool.submit(second.connection.commit)
        assert arrived.wait(10)
        bulk = pool.submit(first.connection.commit)
        with pytest.raises(TimeoutError):
            bulk.result(0.5)
        go_on.set()
        small.result(10)
        with pytest.raises(tique.SerializationError):
            bulk.result(10)
    assert first.rows("SELECT sum(v) FROM t") == [(10,)]


def test_a_commit_during_a_bulk_write(filled, pool, monkeypatch):
    """P3: it was certified by its own process before it could know."""
    first, second = filled
    first.run("UPDATE t SET v = v + 1")
    second.run("UPDATE t SET v = v + 10 WHERE id = 17")
    with waiting(monkeypatch, MonetDBSequencer, "commit") as (arrived, go_on):
        bulk = pool.submit(first.connection.commit)
        assert arrived.wait(10)
        small = pool.submit(second.connection.commit)
        with pytest.raises(TimeoutError):
            small.result(0.5)
        go_on.set()
        bulk.result(10)
        with pytest.raises(tique.SerializationError):
            small.result(10)
    assert first.rows("SELECT sum(v) FROM t") == [(ROWS + 2,)]


def test_stopped_in_a_bulk_write(filled, monkeypatch):
    """P6: no row of it is ever visible, to whoever reads, joins or folds."""
    first, second = filled

    def work():
        second.commit("UPDATE t SET v = 4 WHERE id = 17")
        assert second.rows("SELECT sum(v) FROM t") == [(4,)]

    first.run("UPDATE t SET v = v + 1")
    assert stopping_before_commit(monkeypatch, first, work) is not None
    with pytest.raises(tique.OperationalError, match="given up"):
        first.connection.commit()
    assert second.rows("SELECT sum(v) FROM t") == [(4,)]
    second.database.timeline._beat()
    second.connection.checkpoint()
    assert second.rows("SELECT sum(v) FROM t") == [(4,)]
    third = first.again()
    assert third.rows("SELECT sum(v) FROM t WHERE id + 0 > 0") == [(4,)]
    expect_nothing_unfinished(third)


def test_a_fold_by_another_process_after_a_bulk_write(filled):
    """P7."""
    first, second = filled
    first.commit("UPDATE t SET v = v + 1")
    second.commit("UPDATE t SET v = v + 1 WHERE id = 17")
    deadline = time.monotonic() + 10
    while any(not v.is_empty for v in second.database.catalog.all_versions()):
        for one in filled:
            one.database.timeline._beat()
        second.connection.checkpoint()
        assert time.monotonic() < deadline
    for one in filled:
        assert one.rows("SELECT sum(v) FROM t") == [(ROWS + 3,)]
        assert one.rows("SELECT v FROM t WHERE id = 17") == [(2,)]


def test_a_fence_beside_a_drop(pair, home, monkeypatch):
    """P6: of a second barrier, whose owner died while the first one drops a table."""
    first, second = pair
    dying = second.database.engine.shared
    cts = dying.barrier()
    dying.leave()
    session = home.session(first.database.engine)
    (table,) = first.database.catalog
    send = Connection._send
    dropped = []

    def dropping(connection, sql):
        if sql.startswith("DELETE FROM tique.") and "_cts" in sql and not dropped:
            dropped.append(sql)
            session.transact(lambda: first.database.engine.unmanage(session, table))
        return send(connection, sql)

    monkeypatch.setattr(Connection, "_send", dropping)
    first.database.engine.shared.tend()
    assert dropped
    assert first.database.timeline.position().sts >= cts
