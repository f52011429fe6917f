"""Commits of several processes in steps, of which each is a request (P3, P6, P9)."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

import tique
from tests.portable import numbers
from tests.sharing.playing import ROWS, expect_nothing_unfinished, waiting
from tique.timeline.recovery import restore
from tique_backends.errors import ConflictError, EngineError, ErrorKind
from tique_backends.monetdb import sequencer
from tique_backends.monetdb.log import drop_fenced
from tique_backends.monetdb.sequencer import MonetDBSequencer
from tique_backends.monetdb.sessions.connection import Connection
from tique_backends.records import CommitRecord
from tique_backends.sharing import FencedError


@pytest.fixture
def filled(pair):
    first, second = pair
    first.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    return first, second


@pytest.fixture
def pool():
    with ThreadPoolExecutor(2) as pool:
        yield pool


def test_who_waits_for_an_aborted_commit_commits(pair, monkeypatch):
    """P6: a refusal by a commit that came to nothing is no conflict."""
    first, second = pair
    ask = Connection._send

    def broken(connection, sql, **options):
        if sql.startswith("INSERT INTO tique.log"):
            raise EngineError(ErrorKind.FULL, "the disk is full")
        return ask(connection, sql, **options)

    first.run("UPDATE t SET v = 5 WHERE id = 1")
    second.run("UPDATE t SET v = 6 WHERE id = 1")
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "_send", broken)
        with pytest.raises(tique.OperationalError, match="disk is full"):
            first.connection.commit()
    second.connection.commit()
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(6,)]
    position = first.database.timeline.position()
    assert position.sts == position.cts, "a timestamp was left open"


def test_fenced_is_fenced(home, engine, process):
    """P6: an appended commit of a client that left counts for nothing."""
    # The first one since the server's start recovers.
    process().close()
    shared = engine.shared
    shared.join(60)
    shared.introduce(1)
    anchor = shared.hold()
    (cts,) = shared.certify(anchor.sts, [[b"k" * 16]], [0])
    session = home.session(engine)
    session.log([CommitRecord(cts, 77, {})])
    shared.leave()
    with pytest.raises(FencedError):
        shared.finish([cts])
    shared.tend()
    assert session.execute("SELECT * FROM tique.fences").fetch_all() == [(cts,)]
    assert engine.find_commit(session, 77) is None
    engine.prune_log(session, cts, 3600)
    assert engine.find_commit(session, 77) is None
    shared.join(60)
    assert cts in shared.snapshot(0).fences
    shared.leave()


def test_a_fence_goes_with_its_part_of_an_entry(home, engine, process):
    """P1, P4: the other commits of the group stay."""
    process().close()
    session = home.session(engine)
    session.log([CommitRecord(cts, 70 + cts, {}) for cts in (900, 901, 902)])
    session.change("INSERT INTO tique.fences VALUES (901)")
    session.transact(lambda: drop_fenced(session))
    assert session.execute("SELECT * FROM tique.fences").fetch_all() == []
    found = [engine.find_commit(session, 70 + cts) for cts in (900, 901, 902)]
    assert found == [900, None, 902]


def test_an_appended_commit_of_a_fenced_process_is_nobodys(pair, process, monkeypatch):
    """P6: processes that follow skip it, and so do those that join later or fold."""
    first, second = pair
    shared = second.database.engine.shared
    finish = shared.finish

    def too_late(stamps):
        shared.leave()
        return finish(stamps)

    monkeypatch.setattr(shared, "finish", too_late)
    second.run("UPDATE t SET v = 66 WHERE id = 1")
    txid = second.connection.txid
    with pytest.raises(tique.OperationalError, match="given up") as refusal:
        second.connection.commit()
    assert refusal.value.sqlstate == "08006"
    third = process()
    for one in (first, third):
        assert one.rows("SELECT v FROM t WHERE id = 1") == [(0,)]
        assert one.rows("SELECT sum(v) FROM t") == [(0,)]
        assert one.connection.outcome(txid) == "aborted"
    first.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    third.connection.checkpoint()
    assert process().rows("SELECT v FROM t WHERE id = 1") == [(1,)]


@pytest.mark.parametrize(
    "change", ["INSERT INTO tique.clients", "UPDATE tique.checkpointer SET expires = 0"]
)
def test_what_a_process_says_of_itself_is_said_again(
    pair, process, monkeypatch, change
):
    """After a conflict with another process's DDL; nothing was done then."""
    first, _ = pair
    send = Connection._send
    refused = []

    def conflicting(connection, sql, **options):
        if sql.startswith(change) and len(refused) < 3:
            refused.append(sql)
            raise ConflictError(ErrorKind.OPERATIONAL, "COMMIT: transaction is aborted")
        return send(connection, sql, **options)

    monkeypatch.setattr(Connection, "_send", conflicting)
    third = process()
    assert third.rows("SELECT count(*) FROM t") == [(2,)]
    third.connection.checkpoint()
    assert len(refused) == 3
    first.connection.checkpoint()
    assert first.database.timeline.position().clients == 3


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


def test_interrupted_while_timestamps_are_taken(pair, monkeypatch):
    """P6: a process that may have one without knowing of it leaves."""
    first, second = pair
    certify = MonetDBSequencer.certify

    def interrupted(*arguments):
        certify(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(MonetDBSequencer, "certify", interrupted)
        with pytest.raises((KeyboardInterrupt, tique.OperationalError)):
            first.commit("UPDATE t SET v = 8 WHERE id = 2")
    second.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    expect_nothing_unfinished(second)
    first.close()
    assert first.again().rows("SELECT v FROM t ORDER BY id") == [(1,), (0,)]


def test_the_checkpointers_lease_ends(process):
    """P9: of a process that does not come back."""
    first, second = (process().database.engine.shared for _ in range(2))
    assert first.may_checkpoint(0.0)
    time.sleep(0.01)
    assert second.may_checkpoint(60)


def test_a_database_of_an_earlier_release(home, process):
    """It gets the functions that it lacks when it is opened."""
    process().close()
    cursor = home.native().cursor()
    for name in ("locks", "certify_as"):
        cursor.execute(f"DROP FUNCTION tique.{name}")
    later = process()
    later.commit("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    later.commit("INSERT INTO t VALUES (1)")
    cursor.execute("SELECT tique.locks()")
    assert cursor.fetchall() == [(0,)]


def test_a_module_of_an_earlier_release(process, monkeypatch):
    """P10: it is told what to do."""
    monkeypatch.setattr(sequencer, "_NEWEST", "that_came_later")
    with pytest.raises(tique.NotSupportedError, match="tique udf build monetdb"):
        process()


def test_versions_that_a_fold_has_moved_do_not_come_back(pair):
    """P4: of a database that an earlier release has left with them."""
    first, second = pair
    second.close()
    engine = first.database.engine
    first.commit("UPDATE t SET v = 9 WHERE id = 1")
    first.connection.checkpoint()
    (table,) = first.database.catalog
    with closing(engine.session()) as session:
        folded = engine.folded_until(session, table)
        assert folded > 0
        session.execute(
            "INSERT INTO tique.tique_cache_1 (id, v, note, _cts, _deleted) "
            f"VALUES (1, 4, 'old', {folded}, FALSE)"
        )
        restored = restore(engine, session, [table], folded)
        assert restored.failures == []
        found = session.execute("SELECT v FROM t WHERE id = 1").fetch_all()
    assert found == [(9,)]
