"""The exchange among processes that share a database (P1, P3, P6, P7).

Each process is played by an engine and a database of its own within this one.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, suppress

import pytest

import tique
from tests.sharing.playing import cached, waiting
from tique.store.versions import TableVersions
from tique.timeline import shared as shared_timeline
from tique_backends.records import CommitRecord
from tique_backends.sharing import FoldedMeanwhileError


def test_a_commit_is_seen_by_whoever_begins_afterwards(pair):
    """P2."""
    first, second = pair
    for number in range(5):
        first.commit("UPDATE t SET v = %s WHERE id = 1", (number,))
        assert second.rows("SELECT v FROM t WHERE id = 1") == [(number,)]
        second.commit("UPDATE t SET v = %s WHERE id = 2", (number,))
        assert first.rows("SELECT sum(v) FROM t") == [(2 * number,)]


def holding_first_answer(monkeypatch, process):
    """Hold back the first answer of the shared sts; its questions, and two events."""
    process.database.timeline._stopping.set()
    process.database.timeline._thread.join()
    shared = process.database.engine.shared
    answered, go_on = threading.Event(), threading.Event()
    ask, questions = shared.snapshot, []

    def held(after):
        questions.append(after)
        is_first = len(questions) == 1
        answer = ask(after)
        if is_first:
            answered.set()
            assert go_on.wait(20)
        return answer

    monkeypatch.setattr(shared, "snapshot", held)
    return questions, answered, go_on


def test_threads_share_an_answer_that_was_asked_for_after_them(pair, monkeypatch):
    """P2: an older answer, though still under way, is not for later transactions."""
    first, second = pair
    monkeypatch.setattr(shared_timeline, "_SLICE", 20)
    others = [second.another() for _ in range(3)]
    questions, answered, go_on = holding_first_answer(monkeypatch, second)
    query = "SELECT v FROM t WHERE id = 1"
    with ThreadPoolExecutor(4) as pool:
        early = pool.submit(second.rows, query)
        assert answered.wait(10)
        first.commit("UPDATE t SET v = 7 WHERE id = 1")
        late = [pool.submit(one.execute, query) for one in others]
        # Time to get in line; a later question is answered all the same.
        time.sleep(0.5)
        go_on.set()
        assert early.result(10) == [(0,)]
        assert [one.result(10).fetchall() for one in late] == [[(7,)]] * 3
    assert len(questions) == 2
    for one in others:
        one.close()


def test_nobody_waits_for_anothers_answer_that_does_not_come(pair, pool, monkeypatch):
    """P6: one dead connection holds up its own thread only."""
    first, second = pair
    other = second.another()
    _, answered, go_on = holding_first_answer(monkeypatch, second)
    query = "SELECT v FROM t WHERE id = 1"
    early = pool.submit(second.rows, query)
    try:
        assert answered.wait(10)
        first.commit("UPDATE t SET v = 7 WHERE id = 1")
        assert pool.submit(other.execute, query).result(5).fetchall() == [(7,)]
    finally:
        go_on.set()
    assert early.result(10) == [(7,)]
    other.close()


def test_a_snapshot_stays(pair):
    """P1: beside any commits and folds of other processes."""
    first, second = pair
    before = second.run("SELECT * FROM t ORDER BY id").fetchall()
    first.commit("UPDATE t SET v = 9 WHERE id = 1")
    first.commit("DELETE FROM t WHERE id = 2")
    for _ in range(2):
        second.database.timeline._beat()
        first.connection.checkpoint()
    assert second.run("SELECT * FROM t ORDER BY id").fetchall() == before
    assert second.run("SELECT v FROM t WHERE id = 2").fetchall() == [(0,)]
    second.connection.rollback()
    assert second.rows("SELECT id, v FROM t") == [(1, 9)]


def test_the_first_committer_wins(shared_engine, pair):
    """P3."""
    first, second = pair
    second.run("SELECT v FROM t WHERE id = 1").fetchall()
    first.run("UPDATE t SET v = v + 1 WHERE id = 1")
    second.run("UPDATE t SET v = v + 1 WHERE id = 1")
    first.connection.commit()
    with pytest.raises(tique.SerializationError) as refusal:
        second.connection.commit()
    assert (refusal.value.table, refusal.value.key) == (
        f"{shared_engine.schema}.t",
        (1,),
    )
    assert refusal.value.winner == first.database.timeline.position().sts
    assert second.rows("SELECT v FROM t WHERE id = 1") == [(1,)]


def test_an_update_is_computed_again(pair):
    """P3: on the other process's row, whether this one has followed that commit or not."""
    first, second = pair
    for each in pair:
        each.run("UPDATE t SET v = v + 1 WHERE id = 1")
    first.connection.commit()
    second.connection.commit()
    first.run("UPDATE t SET v = v + 10 WHERE id = 1")
    second.run("UPDATE t SET v = v + 10 WHERE id = 1")
    second.connection.commit()
    first.database.timeline.catch_up()
    first.connection.commit()
    assert second.rows("SELECT v FROM t WHERE id = 1") == [(22,)]


def test_two_that_insert_the_same_key(pair):
    """P3, P9."""
    first, second = pair
    first.run("INSERT INTO t VALUES (7, 1, 'first')")
    second.run("INSERT INTO t VALUES (7, 2, 'second')")
    second.connection.commit()
    with pytest.raises(tique.SerializationError):
        first.connection.commit()
    assert first.rows("SELECT note FROM t WHERE id = 7") == [("second",)]


def test_versions_reach_the_cache_table_once(shared_engine, pair):
    """P1: both fill it, and each row is there once."""
    first, second = pair
    for number in range(3):
        first.commit("UPDATE t SET v = v + 1 WHERE id = 1")
        second.commit("UPDATE t SET note = %s WHERE id = 2", (str(number),))
    for one in (first, second, first):
        one.run("SELECT 1 FROM t WHERE id = 1")
        for versions in one.database.catalog.all_versions():
            versions.drain(one.connection._execution.session)
        one.connection.rollback()
    session = first.database.engine.session()
    stamps = session.execute("SELECT _cts, id FROM tique.tique_cache_1").fetch_all()
    session.close()
    assert len(stamps) == len(set(stamps)) == 8


def fill(process):
    (versions,) = process.database.catalog.all_versions()
    with closing(process.database.engine.session()) as session:
        versions.drain(session)


def test_two_that_fill_a_cache_table_at_once(shared_engine, pair, pool, monkeypatch):
    """P1: the second one waits, or begins anew, and finds the rows there."""
    first, second = pair
    first.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    second.rows("SELECT 1 FROM t WHERE id = 1")

    with waiting(monkeypatch, TableVersions, "_append") as (arrived, go_on):
        filling = pool.submit(fill, first)
        assert arrived.wait(10)
        other = pool.submit(fill, second)
        with pytest.raises(TimeoutError):
            other.result(0.5)
        go_on.set()
        filling.result(10)
        other.result(10)
    with closing(first.database.engine.session()) as session:
        stamps = session.execute("SELECT _cts, id FROM tique.tique_cache_1").fetch_all()
    assert len(stamps) == len(set(stamps)) == 3


def test_one_fills_a_cache_table_that_the_other_folds(pair, pool, monkeypatch):
    """P4: no version is left there that a recovery would take for the newest one."""
    first, second = pair
    first.commit("UPDATE t SET v = 3 WHERE id = 1")
    second.rows("SELECT 1 FROM t WHERE id = 1")
    first.database.timeline.advance()
    folding = first.database.engine._folding
    with waiting(monkeypatch, folding, "store_rows") as (arrived, go_on):
        folded = pool.submit(first.connection.checkpoint)
        assert arrived.wait(10)
        filling = pool.submit(fill, second)
        wait([filling], 0.5)
        go_on.set()
        folded.result(10)
        filling.result(10)
    with closing(first.database.engine.session()) as session:
        ((until,),) = session.execute('SELECT folded FROM tique."tables"').fetch_all()
        left = session.execute("SELECT _cts, id FROM tique.tique_cache_1").fetch_all()
    assert until > 0
    assert [row for row in left if row[0] <= until] == []


def fold(pair):
    """Have the first process fold until both have nothing left in memory."""
    deadline = time.monotonic() + 10
    while any(one.database.catalog.by_id() and cached(one) for one in pair):
        pair[0].connection.checkpoint()
        assert time.monotonic() < deadline, [cached(one) for one in pair]
        time.sleep(0.05)


def test_one_folds_and_the_other_forgets(pair):
    """P7."""
    first, second = pair
    second.commit("UPDATE t SET v = 3 WHERE id = 1")
    first.rows("SELECT 1 FROM t")
    fold(pair)
    assert second.rows("SELECT * FROM t ORDER BY id") == [(1, 3, "a"), (2, 0, "b")]
    second.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(4,)]


def test_who_was_given_up_folds_no_more_than_it_knows(pair, monkeypatch):
    """P4, P7: stopped in a checkpoint, while λ passes the commits that it followed."""
    first, second = pair
    timeline = second.database.timeline
    timeline._stopping.set()
    timeline._thread.join()
    stable = timeline.stable

    def stopped():
        second.database.engine.shared.leave()
        first.commit("UPDATE t SET v = 77 WHERE id = 1")
        first.database.timeline._beat()
        return stable()

    monkeypatch.setattr(timeline, "stable", stopped)
    with suppress(tique.Error):
        second.connection.checkpoint()
    assert first.database.timeline.position().stable > second.database.sequencer.sts()
    first.database.timeline._beat()
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(77,)]
    first.connection.checkpoint()
    assert first.rows("SELECT v FROM t") == [(77,), (0,)]


def test_a_fold_from_an_older_state_is_refused(pair):
    """P7: it would bring back rows that a newer one replaced."""
    first, _ = pair
    engine = first.database.engine
    (table,) = first.database.catalog
    session = engine.session()
    known = first.database.catalog.versions(table).folded_until
    engine.store(session, table, {(1,): (1, 10, "x")}, known + 1, since=known)
    with pytest.raises(FoldedMeanwhileError):
        engine.store(session, table, {(1,): (1, 11, "y")}, known + 2, since=known)
    with pytest.raises(FoldedMeanwhileError):
        engine.fold(session, table, known + 2, since=known)
    found = session.execute("SELECT v FROM t WHERE id = 1").fetch_all()
    session.close()
    assert found == [(10,)]


def test_a_later_process_knows_what_is_not_folded(pair, process):
    """P1: from the log, with gaps and tombstones."""
    first, second = pair
    first.commit("UPDATE t SET v = 8 WHERE id = 1")
    second.commit("DELETE FROM t WHERE id = 2")
    third = process()
    assert third.rows("SELECT * FROM t") == [(1, 8, "a")]
    assert third.rows("SELECT * FROM t WHERE id = 2") == []
    third.commit("INSERT INTO t VALUES (2, 5, 'again')")
    assert first.rows("SELECT note FROM t WHERE id = 2") == [("again",)]


def test_what_a_commit_has_set_is_known_to_the_others(pair):
    """P1, P7: which columns, so that a fold leaves out the rest, and that all rows are new."""
    first, second = pair
    first.rows("SELECT 1 FROM t")
    second.rows("SELECT 1 FROM t")
    fold(pair)

    def known():
        query = "SELECT * FROM t ORDER BY id"
        rows = second.rows(query)
        assert rows == first.rows(query)
        (table,) = second.database.catalog
        versions = second.database.catalog.versions(table)
        return versions.is_appended, versions.columns_set

    first.run("SELECT * FROM t WHERE id = 1").fetchall()
    first.commit("UPDATE t SET v = v + 1 WHERE id = 1")
    assert known() == (False, {1})
    second.commit("UPDATE t SET note = 'n' WHERE id = 2")
    assert known() == (False, {1, 2})
    fold(pair)
    assert known() == (True, set())
    first.commit("INSERT INTO t VALUES (3, 0, 'c')")
    assert known() == (True, None)
    first.run("INSERT INTO t VALUES (4, 0, 'd')")
    first.commit("UPDATE t SET v = 9 WHERE id = 1")
    assert known() == (False, None)
    fold(pair)
    first.commit("DELETE FROM t WHERE id = 2")
    assert known() == (False, None)
    fold(pair)
    assert first.rows("SELECT * FROM t ORDER BY id") == [
        (1, 9, "a"),
        (3, 0, "c"),
        (4, 0, "d"),
    ]


def test_a_client_whose_lease_ended_reads_and_writes_no_more(pair):
    """P6: its reads might not be of its snapshot any more."""
    first, second = pair
    second.run("SELECT * FROM t").fetchall()
    second.database.timeline._stopping.set()
    second.database.timeline._thread.join()
    second.database.engine.shared.leave()
    with pytest.raises(tique.OperationalError, match="given up") as refusal:
        second.commit("UPDATE t SET v = 1 WHERE id = 1")
    assert refusal.value.sqlstate == "08006"
    second.connection.rollback()
    with pytest.raises(tique.OperationalError, match="given up"):
        second.run("SELECT 1 FROM t")
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(0,)]


def test_a_silent_process_knows_that_it_was_given_up(pair):
    """P6: by its own clock, without asking."""
    _, second = pair
    timeline = second.database.timeline
    timeline._stopping.set()
    timeline._thread.join()
    second.run("SELECT * FROM t").fetchall()
    timeline._expires = time.monotonic()
    with pytest.raises(tique.OperationalError, match="given up"):
        second.run("SELECT 1 FROM t WHERE id = 1").fetchall()


def test_interrupted_while_following(process, monkeypatch):
    """P1: versions that are in memory by then are not added once more."""
    one, other = process(), process()
    one.commit("CREATE TABLE bag (x INTEGER)")
    one.database.timeline._stopping.set()
    one.database.timeline._thread.join()
    other.commit("INSERT INTO bag VALUES (1)")
    publish = TableVersions.publish

    def interrupted(*arguments):
        publish(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(TableVersions, "publish", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.rows("SELECT x FROM bag")
    monkeypatch.undo()
    with pytest.raises(tique.OperationalError, match="interrupted") as caught:
        one.rows("SELECT x FROM bag")
    assert caught.value.sqlstate == "08006"
    assert process().rows("SELECT x FROM bag") == [(1,)]


def test_a_new_connection_opens_a_lost_database_afresh(shared_engine):
    first = tique.connect(shared_engine.url)
    first.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    first.commit()
    first._database.engine.shared.leave()
    with pytest.raises(tique.OperationalError, match="given up"):
        first.execute("SELECT * FROM t")
    with tique.connect(shared_engine.url) as second:
        second.execute("INSERT INTO t VALUES (1)")
        assert second._database is not first._database
    first.close()


def test_the_checkpointers_lease_is_one_processs(process):
    one, other = process(), process()
    first, second = one.database.engine.shared, other.database.engine.shared
    assert first.may_checkpoint(60)
    assert not second.may_checkpoint(60)
    first.end_checkpoint()
    assert second.may_checkpoint(60)


def test_outcomes_of_other_processes(pair):
    """P4."""
    first, second = pair
    second.run("UPDATE t SET v = 1 WHERE id = 1")
    txid = second.connection.txid
    assert first.connection.outcome(txid) == "active"
    second.connection.commit()
    assert first.connection.outcome(txid) == "committed"
    second.run("UPDATE t SET v = 2 WHERE id = 1")
    txid = second.connection.txid
    second.close()
    assert first.connection.outcome(txid) == "aborted"


@pytest.mark.parametrize("days", [-2, 2])
def test_outcomes_are_kept_by_the_servers_clock(pair, monkeypatch, days):
    """P4: for an hour, however wrong the clock of some process is."""
    first, second = pair
    clock = {name: getattr(time, name)() for name in ("time", "time_ns")}
    txids = []
    for process, shift in ((first, 0), (second, days * 86_400), (first, 0)):
        monkeypatch.setattr(time, "time", lambda by=shift: clock["time"] + by)
        monkeypatch.setattr(
            time, "time_ns", lambda by=shift: clock["time_ns"] + by * 1_000_000_000
        )
        for _ in range(2):
            process.run("UPDATE t SET v = v + 1 WHERE id = 1")
            txids.append(process.connection.txid)
            process.connection.commit()
        process.connection.checkpoint()
        monkeypatch.undo()
    assert {first.connection.outcome(txid) for txid in txids} == {"committed"}


def test_status(pair):
    first, _ = pair
    status = first.connection.status()
    assert (status.sequencer.split()[0], status.processes) == ("server", 2)
    assert status.stable <= status.sts <= status.cts


def test_the_outcome_of_what_a_process_left(pair):
    """P4: an answer stands, though the log has the commit until it is fenced."""
    first, second = pair
    second.run("UPDATE t SET v = 66 WHERE id = 1")
    txid = second.connection.txid
    shared = second.database.engine.shared
    cts = shared.barrier()
    (table,) = second.database.catalog
    with closing(second.database.engine.session()) as session:
        session.log([CommitRecord(cts, txid, {table.id: [((1, 66, "a"), False)]})])
    shared.leave()
    assert first.connection.outcome(txid) == "aborted"
    assert first.rows("SELECT v FROM t WHERE id = 1") == [(0,)]


def test_a_checkpoint_that_was_asked_for_waits_for_another_processs(pair):
    """The checkpoint folds then; it does not return as if it had folded.

    The owner's process is the other one: an ordinary role's would keep it from nothing.
    """
    second, first = pair
    first.rows("SELECT v FROM t WHERE id = 1")
    second.database.timeline._beat()
    shared = second.database.engine.shared
    assert shared.may_checkpoint(60)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(first.connection.checkpoint)
        with pytest.raises(TimeoutError):
            asked.result(0.5)
        shared.end_checkpoint()
        asked.result(10)
    assert cached(first) == 0
    assert second.database.engine.shared.may_checkpoint(60)
    assert first.connection.checkpoint() == 0
    second.commit("UPDATE t SET v = 1 WHERE id = 1")
    first.rows("SELECT v FROM t WHERE id = 1")
    second.database.timeline._beat()
    with pytest.raises(
        tique.OperationalError, match=r"a checkpoint, .* has been running"
    ) as refusal:
        first.database.checkpointer.checkpoint_now(0.1)
    assert refusal.value.sqlstate == "55P03"
