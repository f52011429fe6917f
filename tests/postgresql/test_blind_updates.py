"""P1, P2, P3: an update that begins without asking for a snapshot sees what is newest."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

import tique
from jepsen import mutations
from tests.sharing.playing import Process, expect_nothing_unfinished
from tique.timeline.shared import SharedTimeline

MOST = 2**31 - 1
ADD = "UPDATE t SET v = v + 1 WHERE id = 1"


@pytest.fixture
def pair(database):
    """Two processes that follow commits when they ask for them only."""
    with closing(Process(database.url)) as first:
        first.commit(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER NOT NULL, w INTEGER)"
        )
        first.commit("INSERT INTO t VALUES (1, 0, 0), (2, 0, 0)")
        with closing(Process(database.url)) as second:
            for process in (first, second):
                process.database.timeline._stopping.set()
                process.database.timeline._thread.join()
                process.connection.autocommit = True
            yield first, second
        expect_nothing_unfinished(first)


@pytest.fixture
def asked(monkeypatch):
    """A list that grows with each question for the snapshot."""
    questions = []
    ask = SharedTimeline.catch_up

    def noted(timeline):
        questions.append(timeline)
        ask(timeline)

    monkeypatch.setattr(SharedTimeline, "catch_up", noted)
    return questions


def keep_up(process, sql=ADD):
    """Let a process commit until it begins blindly."""
    for _ in range(10):
        process.run(sql)
    assert process.database.timeline.can_skip_snapshot


def values(process):
    return process.run("SELECT v FROM t ORDER BY id").fetchall()


def test_it_asks_nothing(pair, asked):
    first, second = pair
    keep_up(first)
    asked.clear()
    assert [first.run(ADD).rowcount for _ in range(3)] == [1, 1, 1]
    assert not asked
    assert values(second) == [(13,), (0,)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT v FROM t WHERE id = 1",
        "UPDATE t SET v = v + 1",
        "UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v",
        "UPDATE t SET v = (SELECT max(v) FROM t) WHERE id = 1",
        "DELETE FROM t WHERE id = 2",
        "INSERT INTO t VALUES (3, 0, 0)",
    ],
)
def test_others_ask(pair, asked, sql):
    first, _ = pair
    keep_up(first)
    asked.clear()
    first.run(sql)
    assert asked


@pytest.mark.parametrize(
    "begin", ["BEGIN", "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"]
)
def test_transactions_ask(pair, asked, begin):
    first, _ = pair
    keep_up(first)
    first.run(begin)
    asked.clear()
    first.run(ADD)
    assert asked
    first.connection.commit()


def test_another_process_was_first(pair):
    """The server refuses it; it is computed again."""
    first, second = pair
    keep_up(first)
    second.run("UPDATE t SET v = 100 WHERE id = 1")
    assert first.run(ADD).rowcount == 1
    assert values(second) == [(101,), (0,)]
    assert not first.database.timeline.can_skip_snapshot


MEANWHILE = [
    pytest.param("DELETE FROM t WHERE id = 1", ADD, 0, [(0,)], id="gone"),
    pytest.param(
        "INSERT INTO t VALUES (3, 7, 0)",
        "UPDATE t SET v = v + 1 WHERE id = 3",
        1,
        [(10,), (0,), (8,)],
        id="new",
    ),
    pytest.param(
        "UPDATE t SET v = 100 WHERE id = 1",
        f"{ADD} AND v >= 100",
        1,
        [(101,), (0,)],
        id="the condition is true now",
    ),
    pytest.param(
        "UPDATE t SET v = 100 WHERE id = 1",
        f"{ADD} AND v < 100",
        0,
        [(100,), (0,)],
        id="the condition is false now",
    ),
]


@pytest.mark.parametrize(("others", "sql", "rowcount", "rows"), MEANWHILE)
def test_what_is_not_committed_is_not_believed(pair, others, sql, rowcount, rows):
    """P2: the other process's commit was acknowledged before the statement."""
    first, second = pair
    keep_up(first)
    second.run(others)
    assert first.run(sql).rowcount == rowcount
    assert values(second) == values(first) == rows


@pytest.mark.parametrize(
    ("old", "new", "sql", "value"),
    [
        ("NULL", "3", "UPDATE t SET v = w WHERE id = 2", 3),
        ("1", "0", f"UPDATE t SET v = w + {MOST} WHERE id = 2", MOST),
        ("0", "2", "UPDATE t SET v = 6 / w WHERE id = 2", 3),
    ],
    ids=["missing", "too great", "divided by zero"],
)
def test_values_that_can_be_computed_now(pair, old, new, sql, value):
    first, second = pair
    first.run(f"UPDATE t SET w = {old} WHERE id = 2")
    keep_up(first)
    second.run(f"UPDATE t SET w = {new} WHERE id = 2")
    assert first.run(sql).rowcount == 1
    assert values(second) == [(10,), (value,)]


@pytest.mark.parametrize("is_broken", [False, True])
def test_the_tests_see_it(pair, is_broken, monkeypatch):
    """A mutation: any answer of a blind transaction is believed."""

    def replace(owner, made, name):
        monkeypatch.setattr(owner, name, made)

    if is_broken:
        monkeypatch.setattr(mutations, "_replace", replace)
        mutations.BLIND["believes-blind-answers"]()
    first, second = pair
    keep_up(first)
    second.run("UPDATE t SET v = 100 WHERE id = 1")
    assert first.run(f"{ADD} AND v >= 100").rowcount == (0 if is_broken else 1)


@pytest.mark.parametrize(
    ("others", "outcome"),
    [
        (("DROP TABLE t", "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)",
          "INSERT INTO t VALUES (1, 50)"), [(51,)]),
        (("ALTER TABLE t RENAME TO u", "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)",
          "INSERT INTO t VALUES (1, 50)"), [(51,)]),
        (("ALTER TABLE t ADD CHECK (v <= 10)",), tique.IntegrityError),
        (("DROP TABLE t",), tique.ProgrammingError),
    ],
    ids=["made again", "another of its name", "checked", "gone"],
)  # fmt: skip
def test_definitions(pair, others, outcome):
    """P2, P9: it is planned by those that were acknowledged before."""
    first, second = pair
    keep_up(first)
    # A change of a table waits until every process's snapshots have its rows.
    first.database.timeline.advance()
    for sql in others:
        second.run(sql)
    if isinstance(outcome, list):
        assert first.run(ADD).rowcount == 1
        assert values(second) == outcome
    else:
        with pytest.raises(outcome):
            first.run(ADD)


def test_definitions_that_were_followed_meanwhile(pair, monkeypatch):
    """A name may lead to another table now: the statement is planned again."""
    first, second = pair
    keep_up(first)
    commit, begun = type(first.database.committer).commit, []

    def delayed(committer, transaction, **options):
        if committer is first.database.committer:
            begun.append(transaction.planned_at is not None)
            if len(begun) == 1:
                second.run("CREATE TABLE u (id INTEGER PRIMARY KEY)")
                first.database.timeline.catch_up()
        return commit(committer, transaction, **options)

    monkeypatch.setattr(type(first.database.committer), "commit", delayed)
    assert first.run(ADD).rowcount == 1
    assert begun == [True, False]
    assert values(second) == [(11,), (0,)]


def test_threads_of_two_processes(pair):
    """P3: no increment is lost."""
    each, threads = 20, []

    def add(connection):
        for _ in range(each):
            connection.execute(ADD)

    for process in pair * 2:
        connection = process.another()
        connection.autocommit = True
        threads.append(threading.Thread(target=add, args=(connection,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values(pair[0]) == [(each * len(threads),), (0,)]


def test_a_role_with_grants_asks(shop):
    """P11: it learns with each snapshot what it may do."""
    writer = shop.process("writer")
    writer.connection.autocommit = True
    for _ in range(10):
        writer.run("UPDATE open SET note = 'b' WHERE id = 1")
    assert not writer.database.timeline.can_skip_snapshot
