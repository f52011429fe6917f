"""A commit that fails half-way (P2, P4-P6) has a definite outcome, and nothing hangs."""

from __future__ import annotations

import ctypes
import threading
import time

import pytest

import tique
from tests.portable import numbers
from tique.store.versions import TableVersions

OUTCOMES = "tique.outcomes"


@pytest.fixture
def bank(engine, faults):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(3000)}")
    connection.commit()
    connection.execute("CREATE TABLE b (x INTEGER)")
    connection.execute("INSERT INTO b VALUES (1)")
    connection.commit()
    connection.checkpoint()
    return connection


def small(connection):
    connection.execute("UPDATE t SET v = 7 WHERE id = 1")
    connection.execute("INSERT INTO b VALUES (2)")


def large(connection):
    connection.execute("UPDATE t SET v = 7")
    connection.execute("INSERT INTO b VALUES (2)")


def seen(connection):
    """A row by key, the same row by a scan, and the keyless table."""
    connection.rollback()
    found = (
        connection.execute("SELECT v FROM t WHERE id = 1").fetchone()[0],
        connection.execute("SELECT v FROM t WHERE id + 0 = 1").fetchone()[0],
        sorted(connection.execute("SELECT x FROM b").fetchall()),
    )
    connection.rollback()
    return found


def record(engine, write):
    """The beginning of the call that makes the record of a commit."""
    # A large one is a transaction of many statements on every engine.
    return engine.commit_call if write is small else "INSERT INTO tique.log"


BEFORE = (0, 0, [(1,)])
AFTER = (7, 7, [(1,), (2,)])


def is_healthy(engine, connection, expected):
    """No hole in sts, commits work, the checkpoint folds, reopening agrees."""
    sequencer = connection._database.sequencer
    assert sequencer.sts() == sequencer.cts()
    assert seen(connection) == expected
    assert seen(engine.connect()) == expected
    connection.execute("UPDATE t SET v = v + 1 WHERE id = 2")
    connection.commit()
    assert sequencer.sts() == sequencer.cts()
    connection.checkpoint()
    assert all(v.is_empty for v in connection._database.catalog.all_versions())
    assert seen(connection) == expected
    engine.close()
    assert seen(engine.connect()) == expected


@pytest.mark.parametrize("write", [small, large])
def test_error_before_the_commit_record(engine, bank, faults, write):
    write(bank)
    txid = bank.txid
    faults.plan("before", record(engine, write), engine.failure())
    with pytest.raises(tique.OperationalError, match="disk went away"):
        bank.commit()
    assert bank.outcome(txid) == "aborted"
    is_healthy(engine, bank, BEFORE)


@pytest.mark.parametrize("write", [small, large])
def test_a_timestamp_is_not_used_again(engine, bank, faults, write):
    """P4, P5: a table was folded up to the last one, which was aborted; then a restart."""
    bank.execute("UPDATE t SET v = 1 WHERE id = 2")
    bank.commit()
    write(bank)
    faults.plan("before", record(engine, write), engine.failure())
    with pytest.raises(tique.OperationalError, match="disk went away"):
        bank.commit()
    bank.checkpoint()
    engine.restart()
    again = engine.connect(checkpoint="manual")
    assert seen(again) == BEFORE
    small(again)
    again.commit()
    assert seen(again) == AFTER
    engine.restart()
    assert seen(engine.connect()) == AFTER


def deciding(engine, write):
    """A part of the text of the call that decides."""
    return engine.commit_call if write is small else "COMMIT"


@pytest.mark.parametrize("write", [small, large])
@pytest.mark.parametrize("when", ["before", "after"])
def test_error_inside_commit_is_decided_by_the_record(
    engine, bank, faults, write, when
):
    write(bank)
    txid = bank.txid
    faults.plan(when, deciding(engine, write), engine.failure())
    if when == "after":
        bank.commit()
        assert bank.outcome(txid) == "committed"
        is_healthy(engine, bank, AFTER)
    else:
        with pytest.raises(tique.OperationalError, match="disk went away"):
            bank.commit()
        assert bank.outcome(txid) == "aborted"
        is_healthy(engine, bank, BEFORE)


@pytest.mark.parametrize("write", [small, large])
@pytest.mark.parametrize("when", ["before", "after"])
def test_outcome_unknown_until_somebody_can_ask(engine, bank, faults, write, when):
    """P4: acknowledged or unknown, never lost."""
    other = engine.connect()
    write(bank)
    txid = bank.txid
    faults.plan(when, deciding(engine, write), engine.failure())
    faults.plan("before", OUTCOMES, engine.failure(), times=3 * engine.questions)
    with pytest.raises(tique.OutcomeUnknown, match=str(txid)) as caught:
        bank.commit()
    assert caught.value.txid == txid
    assert caught.value.sqlstate == "08007"
    happened = when == "after"
    # No snapshot sees a commit in doubt, and no other commit may overtake it. A commit
    # that the server settles by itself is there, for every reader, though its own
    # process cannot know.
    is_settled = happened and write is small and engine.settles_commits
    found = AFTER if is_settled else BEFORE
    assert seen(other) == found
    other.execute("UPDATE t SET v = 9 WHERE id = 5")
    with pytest.raises(tique.OperationalError, match="disk went away"):
        other.commit()
    assert seen(other) == found
    assert other.outcome(txid) == ("committed" if happened else "aborted")
    is_healthy(engine, other, AFTER if happened else BEFORE)


def test_outcome_unknown_is_known_after_reopening(engine, bank, faults):
    small(bank)
    txid = bank.txid
    faults.plan("after", engine.commit_call, engine.failure())
    faults.plan("before", OUTCOMES, engine.failure(), times=engine.questions)
    with pytest.raises(tique.OutcomeUnknown):
        bank.commit()
    engine.close()
    again = engine.connect(checkpoint="manual")
    expected = "aborted" if engine.leaving_aborts else "committed"
    assert again.outcome(txid) == expected
    assert again.outcome(txid + 10**15) == "unknown"
    is_healthy(engine, again, BEFORE if engine.leaving_aborts else AFTER)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("write", [small, large])
def test_interrupted_leader(engine, bank, faults, write, when):
    """Ctrl-C inside commit() ends it, but leaves nothing half done."""
    write(bank)
    txid = bank.txid
    faults.plan(when, record(engine, write), KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        bank.commit()
    happened = when == "after" and write is small
    assert bank.outcome(txid) == ("committed" if happened else "aborted")
    is_healthy(engine, bank, AFTER if happened else BEFORE)


@pytest.mark.written_for(
    ["duckdb"], reason="processes publish what they follow; test_sharing has that"
)
def test_interrupted_while_publishing(engine, bank, monkeypatch):
    """The engine has it, memory only some of it: SQL answers until the fold."""
    versions = bank._database.catalog.all_versions()
    bag = next(v for v in versions if v.table.name == "b")
    publish = type(bag).publish

    def interrupted(self, *arguments, **options):
        if self is bag:
            monkeypatch.undo()
            raise KeyboardInterrupt
        publish(self, *arguments, **options)

    monkeypatch.setattr(type(bag), "publish", interrupted)
    small(bank)
    with pytest.raises(KeyboardInterrupt):
        bank.commit()
    is_healthy(engine, bank, AFTER)


@pytest.mark.slow
def test_interrupted_follower_withdraws(engine, bank):
    """Its connection drops the writes: no later commit may contain half of them."""
    follower = engine.connect()
    small(follower)
    outcome = []

    def commit():
        try:
            follower.commit()
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=commit)
    with bank._database.committer.paused(1):
        thread.start()
        time.sleep(0.2)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(KeyboardInterrupt)
        )
        time.sleep(1.5)
    thread.join(10)
    assert [type(error) for error in outcome] == [KeyboardInterrupt]
    is_healthy(engine, bank, BEFORE)


@pytest.mark.parametrize("when", ["before", "after"])
def test_followers_get_an_outcome_when_their_leader_fails(engine, bank, faults, when):
    """P6: each commit of the batch is acknowledged or refused, and that is true."""
    results = {}

    def work(number):
        connection = engine.connect()
        connection.execute("INSERT INTO b VALUES (%s)", (number,))
        try:
            connection.commit()
            results[number] = True
        except tique.OperationalError:
            results[number] = False

    threads = [threading.Thread(target=work, args=(n,)) for n in range(100, 112)]
    faults.plan(when, engine.commit_call, engine.failure())
    faults.plan(when, engine.commit_call, engine.failure())
    with bank._database.committer.paused(1):
        for thread in threads:
            thread.start()
        time.sleep(0.3)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "a follower is stuck"
    assert len(results) == len(threads)
    assert all(results.values()) == (when == "after")
    present = {x for (x,) in bank.execute("SELECT x FROM b").fetchall()} - {1}
    assert present == {number for number, happened in results.items() if happened}
    sequencer = bank._database.sequencer
    assert sequencer.sts() == sequencer.cts()


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("when", ["before", "after"])
def test_followers_commit_when_their_leader_is_interrupted(
    engine, bank, faults, when, again
):
    """P4, P6: Ctrl-C in the leader does not affect the followers of its batch.

    It may come ``again``, while the leader finds out the outcome of the batch.
    """
    results, txids = {}, {}

    def work(number):
        connection = engine.connect()
        connection.execute("INSERT INTO b VALUES (%s)", (number,))
        txids[number] = connection.txid
        try:
            connection.commit()
            results[number] = None
        except BaseException as error:
            results[number] = type(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(100, 112)]
    faults.plan(when, engine.commit_call, KeyboardInterrupt())
    if again:
        faults.plan("before", OUTCOMES, KeyboardInterrupt())
    committer = bank._database.committer
    with committer.paused(1):
        for thread in threads:
            thread.start()
        while len(committer._queue) < len(threads):
            time.sleep(0.01)
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive(), "a follower is stuck"
    interrupted = [number for number, error in results.items() if error is not None]
    assert len(interrupted) == 1
    assert results.pop(interrupted[0]) is KeyboardInterrupt
    happened = bank.outcome(txids[interrupted[0]])
    assert happened == ("committed" if when == "after" else "aborted")
    # It has no key: a row that were committed twice would be there twice.
    expected = sorted([1, *results, *(interrupted if when == "after" else ())])
    assert seen(bank)[2] == [(x,) for x in expected]
    is_healthy(engine, bank, (0, 0, [(x,) for x in expected]))


def test_a_drain_that_was_cut_short_is_not_repeated(engine, bank, faults):
    """A keyless table's versions reach the cache table once in spite of any error."""
    for when in ("before", "after"):
        for error in (engine.failure(), KeyboardInterrupt()):
            bank.execute("INSERT INTO b VALUES (5)")
            bank.commit()
            faults.plan(when, engine.cache_append, error)
            with pytest.raises((tique.OperationalError, KeyboardInterrupt)):
                bank.execute("SELECT x FROM b").fetchall()
            faults.clear()
            bank.rollback()
    assert bank.execute("SELECT count(*) FROM b").fetchone() == (5,)
    bank.rollback()
    bank.checkpoint()
    assert bank.execute("SELECT count(*) FROM b").fetchone() == (5,)


def test_a_long_drain_goes_in_pieces(engine, bank, monkeypatch):
    """P1, P2: all versions reach the cache table, and those of a commit together."""
    pieces = []
    append = TableVersions._append

    def noting(versions, session, entries):
        pieces.append({cts for cts, _, _ in entries})
        append(versions, session, entries)

    monkeypatch.setattr("tique.store.versions._PIECE", 4)
    monkeypatch.setattr(TableVersions, "_append", noting)
    for first in range(100, 130, 3):
        rows = [(number,) for number in range(first, first + 3)]
        bank.cursor().executemany("INSERT INTO b VALUES (%s)", rows)
        bank.commit()
    found = bank.execute("SELECT x FROM b ORDER BY x").fetchall()
    assert found == [(1,), *((number,) for number in range(100, 130))]
    assert [len(stamps) for stamps in pieces] == [2] * 5
    assert len(set.union(*pieces)) == 10


@pytest.mark.written_for(["duckdb"], reason="it copies a database that is one file")
def test_a_batch_that_was_read_half_published_is_replayed_once(engine, bank, tmp_path):
    """P5: a crash after half of a group's versions reached the cache table."""
    import shutil

    database = bank._database
    bag = next(v for v in database.catalog.all_versions() if v.table.name == "b")
    publish = bag.publish
    copied = tmp_path / "copy"
    copied.mkdir()

    def half(*arguments, **options):
        publish(*arguments, **options)
        if not list(copied.iterdir()):
            reader = database.engine.session()
            bag.drain(reader)
            reader.close()
            for file in tmp_path.glob("test.duckdb*"):
                shutil.copy(file, copied)

    bag.publish = half
    threads = []
    with database.committer.paused(1):
        for number in range(100, 104):
            connection = engine.connect()
            connection.execute("INSERT INTO b VALUES (%s)", (number,))
            threads.append(threading.Thread(target=connection.commit))
            threads[-1].start()
        time.sleep(0.3)
    for thread in threads:
        thread.join(10)
    with tique.connect(f"duckdb:///{copied}/test.duckdb") as after:
        rows = sorted(after.execute("SELECT x FROM b").fetchall())
    assert rows == [(1,), (100,), (101,), (102,), (103,)]


def test_cancelled_inside_a_bulk_commit(engine, bank):
    """Another thread's cancel() aborts it whole, or comes too late."""
    for pause in (0.0, 0.002, 0.005, 0.01, 0.02):
        bank.execute("UPDATE t SET v = v + 1")
        txid = bank.txid
        timer = threading.Timer(pause, bank.cancel)
        timer.start()
        try:
            bank.commit()
            expected = "committed"
        except tique.OperationalError as error:
            expected = type(error) is tique.OperationalError and "aborted"
        timer.join()
        assert bank.outcome(txid) == expected
        low, high = bank.execute("SELECT min(v), max(v) FROM t").fetchone()
        assert low == high
        bank.rollback()


def test_a_rollback_that_is_interrupted(engine, bank, faults):
    """P5: a request to stop a statement reaches the ROLLBACK after it."""
    session = bank._database.engine.session()
    session.execute("CREATE TABLE plain (x INTEGER)").close()
    for _ in range(2):
        session.begin()
        session.execute("INSERT INTO plain VALUES (1)").close()
        faults.plan("before", "ROLLBACK", engine.interruption())
        session.rollback()
    assert session.execute("SELECT count(*) FROM plain").fetch_all() == [(0,)]
    session.close()


def test_an_error_after_the_commit_is_not_the_commits(engine, bank, faults):
    """P4: the outcome stands if the staging table cannot be dropped (yet)."""
    for expected in (1, 2):
        bank.execute("UPDATE t SET v = v + 1")
        faults.plan("before", "DROP TABLE", engine.interruption())
        bank.commit()
        assert bank.execute("SELECT min(v), max(v) FROM t").fetchall() == [
            (expected, expected)
        ]
        bank.rollback()
    is_healthy(engine, bank, (2, 2, [(1,)]))


def test_versions_without_a_commit_record_are_removed(engine, caplog):
    """P5: recovery decides by the commit records, with any content of cache tables."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1)")
    connection.commit()
    native = engine.native()
    (cts,) = native.execute("SELECT max(cts) FROM tique.log").fetchone()
    native.execute(
        f"INSERT INTO tique.tique_cache_1 VALUES (1, -1, {cts + 5}, FALSE), "
        f"(2, -2, {cts + 6}, FALSE), (1, 1, {cts + 7}, TRUE)"
    )
    native.close()
    engine.restart()
    connection = engine.connect(checkpoint="manual")
    assert f"removed 3 versions of {engine.schema}.t" in caplog.text
    for value in range(10):
        connection.execute("UPDATE t SET v = %s WHERE id = 1", (value,))
        connection.commit()
        assert connection.execute("SELECT * FROM t").fetchall() == [(1, value)]


@pytest.mark.written_for(["monetdb"], reason="an embedded engine is not connected to")
def test_an_uncommitted_fold_whose_connection_is_lost(engine, faults):
    """P6: the application's own connection answers its query, and a checkpoint goes on."""
    connection = engine.connect(checkpoint="manual", uncommitted_fold_rows=0)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 7)")
    connection.commit()
    faults.plan("before", "max(v) FROM", ConnectionResetError("gone"))
    assert connection.execute("SELECT max(v) FROM t").fetchall() == [(7,)]
    connection.commit()
    connection.checkpoint()
    assert connection.execute("SELECT max(v) FROM t").fetchall() == [(7,)]


@pytest.mark.written_for(["monetdb"], reason="an embedded engine is not connected to")
def test_a_lost_connection_is_replaced(engine, faults):
    """P6, P8: the call under way fails; the next transaction, commit and fold work."""
    connection = engine.connect(
        checkpoint="manual", certifier="query", uncommitted_fold_rows=None
    )
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 0)")
    connection.commit()

    def work(connection):
        connection.execute("SELECT max(v) FROM t").fetchall()
        connection.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        connection.commit()
        connection.checkpoint()

    for text in ("max(v) FROM", "SELECT _k._ordinal", "DELETE FROM tique.log"):
        faults.plan("before", text, ConnectionResetError("gone"))
        with pytest.raises(tique.OperationalError, match="gone"):
            work(connection)
        connection.rollback()
    work(connection)
    assert all(v.is_empty for v in connection._database.catalog.all_versions())
    assert connection.execute("SELECT max(v) FROM t").fetchall() == [(2,)]
