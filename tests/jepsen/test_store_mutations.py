"""The store without one of its invariants answers wrongly: P1 and P7, each by a schedule.

A short random workload meets these moments too rarely. Each schedule runs twice: with
the store as it is, and with a mutation, which alone makes it see another snapshot's row.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest

from jepsen import mutations
from tests.portable import numbers
from tests.sharing.playing import Process, cached
from tests.staging import stage_above
from tique.checkpoint import uncommitted
from tique.query.transaction.transaction import Transaction

pytestmark = pytest.mark.one_duckdb

ROWS = 150
"""Rows of the group."""
OLD, NEW = ROWS, ROWS + 6
"""The sum of ``v`` before and after the update."""
SUM = "SELECT SUM(v) FROM t WHERE g = 1"
SCAN = "SELECT SUM(v) FROM t WHERE g > 0 OR n < 0"
POINT = "SELECT v FROM t WHERE g = 1 AND n = 1"
UPDATE = "UPDATE t SET v = 7 WHERE g = 1 AND n = 1"
ENOUGH = 5
"""So many queries bring a group to memory."""
PATIENCE = 30
"""Seconds until a schedule that does not come about is given up."""


@pytest.fixture
def filled(engine):
    """A connection, and others, to a table whose rows are all in storage."""

    def fill():
        connection = engine.connect(checkpoint="manual")
        connection.execute(
            "CREATE TABLE t (g INTEGER, n INTEGER, v INTEGER, PRIMARY KEY (g, n))"
        )
        connection.execute(f"INSERT INTO t SELECT 1, number, 1 FROM {numbers(ROWS)}")
        connection.commit()
        connection.checkpoint()
        return connection, lambda: engine.connect(checkpoint="manual")

    return fill


@pytest.fixture
def scanned(engine):
    """Such a connection whose wide queries read an uncommitted fold, and another one."""

    def fill():
        options = {"checkpoint": "manual", "uncommitted_fold_rows": 0}
        connection = engine.connect(**options)
        connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)")
        connection.execute("CREATE TABLE t (g INTEGER PRIMARY KEY, v INTEGER)")
        connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(ROWS)}")
        connection.commit()
        connection.checkpoint()
        return connection, engine.connect(**options)

    return fill


@pytest.fixture
def mutate(monkeypatch):
    """Apply a mutation until the test is over."""

    def replace(owner, function, name=""):
        monkeypatch.setattr(owner, name or function.__name__, function)

    monkeypatch.setattr(mutations, "_replace", replace)
    return lambda name: mutations.MUTATIONS[name]()


def answer(connection, sql):
    ((found,),) = connection.execute(sql).fetchall()
    connection.rollback()
    return int(found)


@contextmanager
def once(owner, name, before=None, after=None):
    """Do the work before or after a method's first call, in the caller's thread."""
    genuine, is_first = getattr(owner, name), True

    def called(*arguments, **options):
        nonlocal is_first
        mine, is_first = is_first, False
        if mine and before is not None:
            before()
        found = genuine(*arguments, **options)
        if mine and after is not None:
            after()
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, called)
        yield


def scan_amid_a_fold(connect):
    """A scan begins when the fold's rows are known and the engine has none of them."""
    connection, another = connect()
    reader, seen = another(), []
    connection.execute(UPDATE)
    connection.commit()
    # The cache table has the version then: the scan waits for no drain.
    assert answer(reader, SCAN) == NEW
    engine = type(connection._database.engine)
    with once(engine, "store", before=lambda: seen.append(answer(reader, SCAN))):
        connection.checkpoint()
    (found,) = seen
    return found


def read_across_a_fold(connect):
    """A group is read from the engine before a fold's commit, and kept after the fold."""
    connection, another = connect()
    reader = another()
    connection.execute(UPDATE)
    connection.commit()
    is_read, is_folded = threading.Event(), threading.Event()

    def pause():
        is_read.set()
        assert is_folded.wait(PATIENCE)

    def read():
        answers.extend(answer(reader, SUM) for _ in range(ENOUGH))

    def start():
        thread.start()
        assert is_read.wait(PATIENCE)

    answers = []
    thread = threading.Thread(target=read)
    session, engine = type(reader._execution.session), type(connection._database.engine)
    with once(session, "read_range", after=pause), once(engine, "store", before=start):
        try:
            connection.checkpoint()
        finally:
            is_folded.set()
            thread.join(PATIENCE)
    # The reader had the version, before the fold and during it.
    assert answers[:1] == [NEW]
    return answer(reader, SUM)


def point_read_across_a_fold(connect):
    """A fold takes place between the two looks of a point read."""
    connection, another = connect()
    reader = another()
    connection.execute(UPDATE)
    connection.commit()
    with once(Transaction, "_stored_row", after=connection.checkpoint):
        return answer(reader, POINT)


def range_after_a_fold(connect):
    """A group is in memory when a fold changes one of its rows."""
    connection, _ = connect()
    assert [answer(connection, SUM) for _ in range(ENOUGH)] == [OLD] * ENOUGH
    connection.execute(UPDATE)
    connection.commit()
    connection.checkpoint()
    return answer(connection, SUM)


SCHEDULES = {
    "forgets-before-the-fold": (scan_amid_a_fold, NEW, OLD),
    "early-epoch": (read_across_a_fold, NEW, OLD),
    "storage-first": (point_read_across_a_fold, 7, 1),
    "stale-ranges": (range_after_a_fold, NEW, OLD),
}
"""By mutation: what happens, then the snapshot's answer and the mutation's."""


@pytest.mark.parametrize("mutation", SCHEDULES)
def test_a_schedule_finds_it(engine, filled, mutate, mutation):
    schedule, right, wrong = SCHEDULES[mutation]
    assert schedule(filled) == right
    engine.begin_again()
    mutate(mutation)
    assert schedule(filled) == wrong


BOTH = "SELECT (SELECT SUM(v + 0) FROM t) + (SELECT COUNT(*) FROM u)"


def change(connection, sql):
    connection.execute(sql)
    connection.commit()


def fold_beside_an_uncommitted_one(connect):
    """A row gets to storage after the uncommitted fold has begun."""
    connection, _ = connect()
    change(connection, "INSERT INTO u VALUES (1, 0)")
    assert answer(connection, "SELECT COUNT(*) FROM t, u WHERE t.v + u.v < 9") == ROWS
    change(connection, "INSERT INTO u VALUES (2, 0)")
    connection.checkpoint()
    change(connection, "UPDATE t SET v = 7 WHERE g = 1")
    return answer(connection, BOTH)


def older_snapshot(connect):
    """A transaction asks again when the uncommitted fold has newer rows."""
    connection, other = connect()
    change(connection, "UPDATE t SET v = 7 WHERE g = 1")
    connection.execute("SELECT 1 FROM u").fetchall()
    change(other, "UPDATE t SET v = 9 WHERE g = 1")
    assert answer(other, BOTH) == 9
    return answer(connection, BOTH)


def newer_snapshot(connect):
    """A row is changed when the uncommitted fold has an older version."""
    connection, _ = connect()
    change(connection, "UPDATE t SET v = 7 WHERE g = 1")
    assert answer(connection, BOTH) == 7
    change(connection, "UPDATE t SET v = 9 WHERE g = 1")
    return answer(connection, BOTH)


def commit_after_the_snapshot(connect):
    """A transaction asks for the first time when there is a newer version."""
    connection, other = connect()
    change(connection, "UPDATE t SET v = 7 WHERE g = 1")
    connection.execute("SELECT 1 FROM u").fetchall()
    change(other, "UPDATE t SET v = 9 WHERE g = 1")
    # The index has it then.
    connection._database.timeline.advance()
    return answer(connection, BOTH)


def two_rows(connect):
    """Two versions are written at once."""
    connection, _ = connect()
    change(connection, "UPDATE t SET v = 7 WHERE g IN (1, 2)")
    return answer(connection, BOTH)


def one_after_the_other(connect):
    """The uncommitted fold ends, and another one begins; storage is what it was."""
    connection, _ = connect()
    change(connection, "UPDATE t SET v = 7 WHERE g = 1")
    assert answer(connection, BOTH) == 7
    with connection._database.uncommitted.suspended():
        pass
    return answer(connection, BOTH)


BULK = "UPDATE t SET v = v + 1 WHERE g + 0 >= 0"
"""It changes all rows: more than the driver buffers in these schedules."""


def later_bulk_commit(connect):
    """A bulk commit follows one that the uncommitted fold has."""
    connection, _ = connect()
    change(connection, BULK)
    assert answer(connection, BOTH) == ROWS
    change(connection, BULK)
    return answer(connection, BOTH)


def bulk_commit_beside_a_small_one(connect):
    """A bulk commit to one table, when the index alone has a version of another."""
    connection, _ = connect()
    change(connection, BULK)
    change(connection, "UPDATE t SET v = 7 WHERE g = 1")
    return answer(connection, BOTH)


def newer_bulk_commit(connect):
    """A transaction asks for the first time when there is a newer bulk commit."""
    connection, other = connect()
    change(connection, BULK)
    connection.execute("SELECT 1 FROM u").fetchall()
    change(other, BULK)
    return answer(connection, BOTH)


def bulk_commit(connect):
    """Versions are in the cache table alone."""
    connection, _ = connect()
    change(connection, "UPDATE t SET v = 7 WHERE g = 1")
    change(connection, BULK)
    return answer(connection, BOTH)


UNCOMMITTED = {
    "answers-older-snapshots": (older_snapshot, 7, 9),
    "marks-what-is-not-written": (newer_snapshot, 9, 7),
    "takes-newer-versions": (commit_after_the_snapshot, 7, 9),
    "lacks-a-version": (two_rows, 14, 7),
    "marks-outlive-their-transaction": (one_after_the_other, 7, 0),
}
BULK_UNCOMMITTED = {
    "misses-later-bulk-commits": (later_bulk_commit, 2 * ROWS, ROWS),
    "begins-undrained": (bulk_commit_beside_a_small_one, ROWS + 6, ROWS),
    "takes-newer-bulk-commits": (newer_bulk_commit, ROWS, 2 * ROWS),
    "lacks-bulk-commits": (bulk_commit, ROWS + 7, 7),
}


def finds(engine, scanned, mutate, mutation, found):
    schedule, right, wrong = found
    assert schedule(scanned) == right
    engine.begin_again()
    mutate(mutation)
    assert schedule(scanned) == wrong


@pytest.mark.every_engine
@pytest.mark.parametrize("mutation", UNCOMMITTED)
def test_a_schedule_finds_it_in_an_uncommitted_fold(engine, scanned, mutate, mutation):
    finds(engine, scanned, mutate, mutation, UNCOMMITTED[mutation])


@pytest.mark.every_engine
@pytest.mark.parametrize("mutation", BULK_UNCOMMITTED)
def test_a_schedule_finds_it_in_an_uncommitted_fold_of_bulk_commits(
    engine, scanned, mutate, mutation, monkeypatch
):
    stage_above(ROWS - 1, monkeypatch.setattr)
    monkeypatch.setattr(uncommitted, "_MOST_UNDONE", 1000)
    finds(engine, scanned, mutate, mutation, BULK_UNCOMMITTED[mutation])


@pytest.mark.written_for(["duckdb"], reason="a server's locks keep the two apart")
def test_a_fold_finds_it_in_an_uncommitted_fold(engine, scanned, mutate):
    found = fold_beside_an_uncommitted_one, 9, 8
    finds(engine, scanned, mutate, "survives-folds", found)


def another_process_beside_an_uncommitted_fold(url):
    """Another process folds a table that the uncommitted fold has not read yet, if it may."""
    first, second = Process(url, uncommitted_fold_rows=0), Process(url)
    try:
        first.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)")
        first.commit("CREATE TABLE t (g INTEGER PRIMARY KEY, v INTEGER)")
        first.commit(f"INSERT INTO t SELECT number, 0 FROM {numbers(ROWS)}")
        first.connection.checkpoint()
        first.commit("UPDATE t SET v = 7 WHERE g = 1")
        assert first.rows("SELECT SUM(v + 0) FROM t") == [(7,)]
        first.commit("INSERT INTO u VALUES (1, 0)")
        second.rows("SELECT 1 FROM u")
        for process in (first, second):
            process.database.timeline.advance()
        with second.database.timeline.checkpointing() as is_mine:
            if is_mine:
                (versions,) = [
                    each
                    for each in second.database.catalog.all_versions()
                    if each.table.name == "u"
                ]
                second.database.checkpointer.fold_stable(versions)
        first.database.timeline.note_folds()
        ((found,),) = first.rows(BOTH)
        assert first.database.uncommitted.queries == 2
        return found
    finally:
        second.close()
        first.close()


def test_another_process_finds_it_in_an_uncommitted_fold(shared_engine, mutate):
    url = shared_engine.url
    assert another_process_beside_an_uncommitted_fold(url) == 8
    shared_engine.begin_again()
    mutate("folds-beside-others")
    assert another_process_beside_an_uncommitted_fold(url) == 7


def fold_of_another_process(url, sql):
    """What a process that remembers a row sees when another has replaced and folded it."""
    first, second = Process(url), Process(url)
    try:
        first.commit("CREATE TABLE r (id INTEGER PRIMARY KEY, v INTEGER)")
        for statement in (
            "INSERT INTO r VALUES (1, 0)",
            "UPDATE r SET v = 1 WHERE id = 1",
        ):
            first.commit(statement)
            second.database.timeline.advance()
            first.connection.checkpoint()
            second.database.timeline.note_folds()
            assert not cached(second)
            ((found,),) = second.rows(sql)
        return found
    finally:
        second.close()
        first.close()


def test_a_fold_of_another_process_finds_it(shared_engine, mutate):
    sql = "SELECT v FROM r WHERE id = 1"
    assert fold_of_another_process(shared_engine.url, sql) == 1
    shared_engine.begin_again()
    mutate("outlives-folds")
    assert fold_of_another_process(shared_engine.url, sql) == 0


def test_each_mutation_of_the_store_has_a_schedule():
    assert {*SCHEDULES, "outlives-folds"} == mutations.STORE.keys()
    assert UNCOMMITTED.keys() == mutations.UNCOMMITTED.keys()
    assert BULK_UNCOMMITTED.keys() == mutations.BULK_UNCOMMITTED.keys()
    assert {"survives-folds"} == mutations.DUCKDB_UNCOMMITTED.keys()
    assert {"folds-beside-others"} == mutations.SHARED_UNCOMMITTED.keys()
