"""P7: a fold moves versions that every snapshot sees, nothing else, unnoticed."""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.portable import numbers
from tique.checkpoint import checkpointer

pytestmark = pytest.mark.fresh_tables


@pytest.fixture
def connection(engine):
    opened = engine.connect(checkpoint="manual", retention=0.0)
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    opened.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(100)}")
    opened.execute("SELECT 1 FROM t").fetchall()
    opened.commit()
    return opened


def contents(connection, table="t"):
    return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


def versions(connection, table="t"):
    catalog = connection._database.catalog
    return next(v for v in catalog.all_versions() if v.table.name == table)


def in_storage(engine, sql):
    engine.close()
    return engine.native().execute(sql).fetchall()


def test_only_what_every_snapshot_sees_is_moved(engine, connection):
    old = engine.connect()
    before = contents(old)
    connection.execute("UPDATE t SET v = 1 WHERE id < 50")
    connection.execute("DELETE FROM t WHERE id = 99")
    connection.commit()
    middle = engine.connect()
    between = contents(middle)
    connection.execute("UPDATE t SET v = 2 WHERE id < 10")
    connection.execute("INSERT INTO t VALUES (99, 9), (100, 0)")
    connection.commit()
    after = contents(connection)
    connection.rollback()
    connection.checkpoint()
    assert contents(old) == before
    assert contents(middle) == between
    assert not versions(connection).is_empty
    old.rollback()
    connection.checkpoint()
    left = versions(connection)
    assert left.rows == 12
    assert left.oldest > middle._execution.transaction.sts
    assert contents(middle) == between
    assert contents(connection) == after
    connection.rollback()
    middle.rollback()
    connection.checkpoint()
    assert versions(connection).is_empty
    assert contents(middle) == contents(connection) == after
    assert sorted(in_storage(engine, "SELECT * FROM t"), key=repr) == after


def test_a_snapshot_that_begins_while_lambda_is_read(engine, connection, monkeypatch):
    """The fold's λ is older than the snapshot in either order of the two."""
    late = engine.connect()
    fold = checkpointer.Checkpointer._fold
    seen = []

    def fold_after_a_begin(*arguments):
        if not seen:
            connection.execute("UPDATE t SET v = v + 1 WHERE id = 1")
            connection.commit()
            seen.append(contents(late))
            connection.execute("UPDATE t SET v = v + 1 WHERE id = 1")
            connection.commit()
        return fold(*arguments)

    connection.execute("UPDATE t SET v = 5 WHERE id = 1")
    connection.commit()
    monkeypatch.setattr(checkpointer.Checkpointer, "_fold", fold_after_a_begin)
    connection.checkpoint()
    monkeypatch.undo()
    connection.checkpoint()
    assert contents(late) == seen[0]
    assert dict(seen[0])[1] == 6
    assert dict(contents(connection))[1] == 7


def test_small_batches_give_the_same(engine, connection, monkeypatch):
    monkeypatch.setattr(checkpointer, "_BATCH_ROWS", 3)
    connection.execute("CREATE TABLE b (x INTEGER, y TEXT)")
    for number in range(40):
        connection.execute("UPDATE t SET v = v + 1 WHERE id = %s", (number % 7,))
        connection.execute("INSERT INTO b VALUES (%s, NULL), (1, 'x')", (number,))
        if number % 5 == 4:
            connection.execute("DELETE FROM b WHERE x = %s", (number - 1,))
            connection.execute("DELETE FROM t WHERE id = %s", (50 + number,))
            connection.execute("INSERT INTO t VALUES (%s, 1)", (200 + number,))
        connection.commit()
    expected = contents(connection), contents(connection, "b")
    connection.rollback()
    assert connection.checkpoint() > 100
    assert versions(connection).is_empty
    assert versions(connection, "b").is_empty
    assert (contents(connection), contents(connection, "b")) == expected
    assert sorted(in_storage(engine, "SELECT * FROM b"), key=repr) == expected[1]


def test_tables_without_a_key_keep_duplicates_and_nulls(engine, connection):
    """A fold of a keyless table removes one copy per deleted copy; NULLs are equal."""
    connection.execute("CREATE TABLE b (x INTEGER, y TEXT)")
    connection.execute(
        "INSERT INTO b VALUES (1, 'a'), (1, 'a'), (1, 'a'), (NULL, NULL), (NULL, NULL), "
        "(NULL, 'a'), (2, NULL)"
    )
    connection.commit()
    old = engine.connect()
    expected = [contents(old, "b")]
    for statement in (
        "DELETE FROM b WHERE x IS NULL AND y IS NULL",
        "INSERT INTO b VALUES (NULL, NULL), (1, 'a')",
        "UPDATE b SET y = 'b' WHERE x = 1",
        f"INSERT INTO b SELECT 1, 'b' FROM {numbers(3)}",
        "DELETE FROM b WHERE y = 'b'",
        "INSERT INTO b VALUES (1, 'b')",
    ):
        connection.execute(statement)
        connection.commit()
        expected.append(contents(connection, "b"))
        connection.rollback()
        connection.checkpoint()
        assert contents(connection, "b") == expected[-1]
        connection.rollback()
        assert contents(old, "b") == expected[0]
    old.rollback()
    connection.checkpoint()
    assert contents(connection, "b") == expected[-1]
    assert expected[-1] == [(1, "b"), (2, None), (None, "a"), (None, None)]
    found = in_storage(engine, "SELECT * FROM b")
    assert sorted(found, key=repr) == expected[-1]


def test_a_unique_key_of_a_table_without_a_primary_key(engine, connection):
    """A fold never has an old row and its successor in storage at once."""
    connection.execute("CREATE TABLE b (x INTEGER UNIQUE, y INTEGER)")
    connection.execute("INSERT INTO b VALUES (1, 0), (2, 0), (NULL, 0)")
    connection.commit()
    for _ in range(2):
        for number in range(3):
            connection.execute("UPDATE b SET y = y + 1")
            connection.commit()
            connection.execute("INSERT INTO b VALUES (%s, 0)", (10 + number,))
            connection.commit()
            connection.execute("DELETE FROM b WHERE x >= 10")
            connection.commit()
        expected = contents(connection, "b")
        connection.rollback()
        connection.checkpoint()
        assert versions(connection, "b").is_empty
        assert contents(connection, "b") == expected
        connection.rollback()
    assert sorted(in_storage(engine, "SELECT * FROM b"), key=repr) == expected


def test_a_key_that_moves_and_comes_back(engine, connection):
    for statement in (
        "UPDATE t SET id = id + 1000 WHERE id < 5",
        "INSERT INTO t VALUES (0, 77)",
        "UPDATE t SET id = id - 1000 WHERE id IN (1001, 1002)",
        "DELETE FROM t WHERE id = 1",
    ):
        connection.execute(statement)
        connection.commit()
    expected = contents(connection)
    connection.rollback()
    connection.checkpoint()
    assert contents(connection) == expected
    assert sorted(in_storage(engine, "SELECT * FROM t"), key=repr) == expected


def test_swapped_unique_values_can_be_folded(engine, connection):
    connection.execute("CREATE TABLE u (id INTEGER PRIMARY KEY, name TEXT UNIQUE)")
    connection.execute("INSERT INTO u VALUES (1, 'a'), (2, 'b'), (3, NULL), (4, NULL)")
    connection.commit()
    connection.checkpoint()
    connection.execute(
        "UPDATE u SET name = CASE name WHEN 'a' THEN 'b' ELSE 'a' END "
        "WHERE id IN (1, 2)"
    )
    connection.commit()
    connection.execute("DELETE FROM u WHERE id = 1")
    connection.execute("INSERT INTO u VALUES (5, 'b')")
    connection.commit()
    expected = contents(connection, "u")
    connection.rollback()
    connection.checkpoint()
    assert contents(connection, "u") == expected
    assert sorted(in_storage(engine, "SELECT * FROM u"), key=repr) == expected


def test_folds_while_a_result_is_half_read(engine, connection):
    reader = engine.connect()
    cursor = reader.cursor()
    cursor.execute(f"SELECT id, v FROM t, {numbers(200)} ORDER BY id")
    first = cursor.fetchmany(100)
    for number in range(1, 4):
        connection.execute("UPDATE t SET v = %s", (number,))
        connection.commit()
        connection.checkpoint()
    rows = first + cursor.fetchall()
    assert rows == [(i, 0) for i in range(100) for _ in range(200)]
    assert contents(reader) == [
        (i, 0) for i in sorted(range(100), key=lambda i: repr((i, 0)))
    ]


@pytest.mark.slow
def test_scans_see_one_state_while_folds_run(engine, connection, monkeypatch):
    """P1, P7: tombstones, moved keys, a keyless table, checkpoints without a pause."""
    monkeypatch.setattr(checkpointer, "_BATCH_ROWS", 5)
    connection.execute("CREATE TABLE b (x INTEGER)")
    connection.execute(f"INSERT INTO b SELECT number FROM {numbers(100)}")
    connection.commit()
    stop = threading.Event()
    errors = []
    rounds = [0, 0]

    def guarded(body):
        def run():
            try:
                with tique.connect(engine.url) as mine:
                    while not stop.is_set():
                        body(mine)
            except BaseException as error:
                errors.append(error)
                stop.set()

        return threading.Thread(target=run)

    def write(mine):
        """Keep count(t) = 100, and the rows of b equal to those of t."""
        number = rounds[0] = rounds[0] + 1
        mine.execute("DELETE FROM t WHERE id = %s", (number - 1,))
        mine.execute("INSERT INTO t VALUES (%s, 0)", (number + 99,))
        mine.execute("DELETE FROM b WHERE x = %s", (number - 1,))
        mine.execute("INSERT INTO b VALUES (%s)", (number + 99,))
        mine.commit()

    def read(mine):
        low, high, count = mine.execute(
            "SELECT min(id), max(id), count(*) FROM t"
        ).fetchone()
        assert (high - low, count) == (99, 100)
        assert mine.execute("SELECT min(x), max(x), count(*) FROM b").fetchone() == (
            low,
            high,
            count,
        )
        joined = mine.execute("SELECT count(*) FROM t JOIN b ON t.id = b.x").fetchone()
        assert joined == (100,)
        assert mine.execute("SELECT id FROM t WHERE id = %s", (low,)).fetchone() == (
            low,
        )
        assert (
            mine.execute("SELECT id FROM t WHERE id = %s", (low - 1,)).fetchone()
            is None
        )
        mine.commit()
        rounds[1] += 1

    threads = [
        guarded(body) for body in (write, read, read, tique.Connection.checkpoint)
    ]
    for thread in threads:
        thread.start()
    stop.wait(4)
    stop.set()
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()
    if errors:
        raise errors[0]
    assert rounds[0] > 3
    assert rounds[1] > 3


def test_thresholds_start_a_checkpoint(engine):
    connection = engine.connect(checkpoint_rows=50, checkpoint_age=1000.0)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.executemany = connection.cursor().executemany
    connection.executemany("INSERT INTO t VALUES (%s)", [(i,) for i in range(40)])
    connection.commit()
    time.sleep(0.6)
    assert versions(connection).rows == 40
    connection.executemany("INSERT INTO t VALUES (%s)", [(i,) for i in range(40, 60)])
    connection.commit()
    assert eventually(lambda: versions(connection).is_empty)


def test_age_starts_a_checkpoint(engine):
    connection = engine.connect(checkpoint_rows=10**9, checkpoint_age=0.3)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    assert eventually(lambda: versions(connection).is_empty)


def eventually(condition):
    deadline = time.monotonic() + 10
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_cache_tables_stay_small_under_load(engine):
    """Cached versions are of the last few rounds, however many commits there are.

    A round leaves versions after its λ. While a transaction lasts, λ is its snapshot
    or that of one that began before it, and no round begins unless λ has moved: with n
    writers, at most n rounds begin after the snapshot that λ is at the last one, and
    every commit before the end of the round before these is in that snapshot.
    """
    writers, rounds_apart = 4, 4 + 1
    connection = engine.connect(checkpoint_rows=500, checkpoint_age=1000.0)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(100)}")
    connection.commit()
    connection.checkpoint()
    checkpointer = connection._database.checkpointer
    first = checkpointer.rounds
    stop = threading.Event()
    commits = [0] * writers

    def work(number):
        with tique.connect(engine.url) as mine:
            many = mine.cursor()
            while not stop.is_set():
                many.executemany(
                    "UPDATE t SET v = v + 1 WHERE id = %s",
                    [(number * 25 + i,) for i in range(25)],
                )
                mine.commit()
                commits[number] += 1

    threads = [
        threading.Thread(target=work, args=(number,)) for number in range(writers)
    ]
    for thread in threads:
        thread.start()
    # By round: no more than the rows that had been written when it ended.
    ends = {first: 0}
    written = largest = 0
    too_many = []
    deadline = time.monotonic() + 60
    while checkpointer.rounds < first + 10 and time.monotonic() < deadline:
        now = checkpointer.rounds
        for number in range(max(ends) + 1, now + 1):
            ends[number] = written
        cached = versions(connection).rows
        written = sum(commits) * 25
        # Each of them may have committed and not counted it yet.
        bound = written + writers * 25 - ends[max(first, now - rounds_apart)]
        if cached > bound:
            too_many.append((now, cached, bound))
        largest = max(largest, cached)
        time.sleep(0.002)
    stop.set()
    for thread in threads:
        thread.join(20)
    written = sum(commits) * 25
    print(f"{written} versions written, at most {largest} cached")
    assert too_many == []
    assert checkpointer.rounds >= first + 10
    assert written > 9 * 500
    total = connection.execute("SELECT sum(v) FROM t").fetchone()
    assert total == (written,)


def test_commit_records_are_forgotten_but_never_what_is_needed(engine, monkeypatch):
    monkeypatch.setattr(checkpointer, "_PRUNE_INTERVAL", 0.0)
    connection = engine.connect(checkpoint="manual", retention=0.0)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 0)")
    connection.commit()
    txids = []
    for number in range(5):
        connection.execute("UPDATE t SET v = %s WHERE id = 1", (number,))
        txids.append(connection.txid)
        connection.commit()
    old = engine.connect()
    old.execute("SELECT * FROM t").fetchall()
    connection.execute("UPDATE t SET v = 99 WHERE id = 1")
    needed = connection.txid
    connection.commit()
    time.sleep(0.01)
    connection.checkpoint()
    connection.checkpoint()
    assert connection.outcome(txids[0]) == "unknown"
    assert connection.outcome(needed) == "committed"
    sts = connection._database.sequencer.sts()
    engine.close()
    for _ in range(2):
        again = engine.connect(checkpoint="manual", retention=0.0)
        assert again._database.sequencer.sts() == sts, "a cts would be used twice"
        assert again.execute("SELECT v FROM t").fetchall() == [(99,)]
        again.rollback()
        again.checkpoint()
        engine.close()
