"""SELECT … FOR UPDATE: rows that one transaction at a time has (P3, P6, P8)."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from contextlib import closing, suppress

import pytest

import tique
from tique.commit import turns
from tique.query.transaction import lock_checks
from tique_backends.servers.leased_locks import LeasedLocks

LOCK = "SELECT n FROM t WHERE id = 1 FOR UPDATE"
LEVELS = pytest.mark.parametrize("level", ["SNAPSHOT", "READ COMMITTED"])
PATIENCE = 20


@pytest.fixture
def table(engine):
    """Three rows."""
    with engine.connect() as connection:
        connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
        connection.execute("INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)")
        connection.commit()
        yield connection
        connection.rollback()


class Background(threading.Thread):
    """A call in another thread, and its outcome."""

    def __init__(self, call):
        super().__init__(daemon=True)
        self._call = call
        self.result = self.error = None
        self.start()

    def run(self):
        try:
            self.result = self._call()
        except tique.Error as error:
            self.error = error

    def expect_waiting(self, connection):
        """Wait until it waits for a lock."""
        locks = connection._database.locks
        end = time.monotonic() + PATIENCE
        while not locks._waits and self.is_alive() and time.monotonic() < end:
            time.sleep(0.001)
        assert self.is_alive()

    def outcome(self):
        self.join(PATIENCE)
        assert not self.is_alive()
        return self.result


def ids(connection, query):
    return [id_ for (id_,) in connection.execute(query).fetchall()]


def test_answers_as_without_the_clause(engine, table):
    cursor = table.execute(
        "SELECT n + 1 AS more, t.* FROM t WHERE id < %s ORDER BY 2 DESC FOR UPDATE",
        [3],
    )
    assert [column[0] for column in cursor.description] == ["more", "id", "n"]
    assert cursor.fetchall() == [(1, 2, 0), (1, 1, 0)]


def test_unnamed_results_are_called_as_without_the_clause(engine, table):
    query = "SELECT n + 1, (SELECT max(id) FROM t) FROM t WHERE id = 1"
    plain = [column[0] for column in table.execute(query).description]
    locking = table.execute(f"{query} FOR UPDATE")
    assert [column[0] for column in locking.description] == plain
    assert locking.fetchall() == [(1, 3)]


@pytest.mark.parametrize("strength", ["FOR UPDATE", "FOR NO KEY UPDATE OF t"])
@pytest.mark.parametrize("end", ["commit", "rollback", "close"])
def test_excludes_others_until_the_end(engine, table, strength, end):
    query = f"SELECT n FROM t WHERE id = 1 {strength}"
    holder, other = engine.connect(), engine.connect()
    holder.execute(query)
    waiting = Background(lambda: other.execute(query).fetchall())
    waiting.expect_waiting(table)
    getattr(holder, end)()
    assert waiting.outcome() == [(0,)]


def test_an_abandoned_connection_releases(engine, table):
    holder = tique.connect(engine.url)
    holder.execute(LOCK)
    with engine.connect() as other:
        waiting = Background(lambda: other.execute(LOCK).fetchall())
        waiting.expect_waiting(table)
        del holder
        gc.collect()
        assert waiting.outcome() == [(0,)]


def test_nowait(engine, table):
    with engine.connect() as holder, engine.connect() as other:
        holder.execute(LOCK)
        with pytest.raises(tique.OperationalError) as refused:
            other.execute("SELECT n FROM t ORDER BY id DESC FOR UPDATE NOWAIT")
        assert refused.value.sqlstate == "55P03"
        # A statement that failed keeps no lock (P8).
        assert ids(
            holder, "SELECT id FROM t WHERE id > 1 ORDER BY id FOR UPDATE NOWAIT"
        ) == [2, 3]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t ORDER BY id LIMIT {} FOR UPDATE SKIP LOCKED",
        "SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED LIMIT {}",
        "SELECT id FROM t ORDER BY id FETCH FIRST {} ROWS ONLY FOR UPDATE SKIP LOCKED",
    ],
)
def test_skip_locked(engine, table, query):
    with engine.connect() as one, engine.connect() as two, engine.connect() as three:
        assert ids(one, query.format(1)) == [1]
        assert ids(two, query.format(1)) == [2]
        assert ids(two, query.format(2)) == [2, 3]
        assert ids(three, "SELECT id FROM t FOR UPDATE SKIP LOCKED") == []
        one.rollback()
        assert ids(three, "SELECT id FROM t FOR UPDATE SKIP LOCKED") == [1]


def test_a_limit_that_is_a_parameter(engine, table):
    query = "SELECT id FROM t WHERE id > %s ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED"
    assert table.execute(query, [1, 1]).fetchall() == [(2,)]
    with pytest.raises(tique.DataError):
        table.execute(query, [1, "1"])


def test_many_locked_rows_before_the_free_one(engine, table):
    """The limit counts rows that were taken, however many are asked for."""
    rows = [(number, 0) for number in range(4, 60)]
    table.cursor().executemany("INSERT INTO t VALUES (%s, %s)", rows)
    table.commit()
    with engine.connect() as one, engine.connect() as two:
        one.execute("SELECT id FROM t WHERE id < 59 FOR UPDATE").fetchall()
        assert ids(
            two, "SELECT id FROM t ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
        ) == [59]


@LEVELS
def test_a_queue_hands_out_each_job_once(engine, table, level):
    jobs = [(number, 0) for number in range(4, 41)]
    table.cursor().executemany("INSERT INTO t VALUES (%s, %s)", jobs)
    table.commit()
    done, failures = [], []

    def take(connection):
        found = ids(
            connection,
            "SELECT id FROM t WHERE n = 0 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED",
        )
        for job in found:
            connection.execute("UPDATE t SET n = 1 WHERE id = %s", [job])
        return found

    def work():
        try:
            with engine.connect(isolation_level=level) as connection:
                while found := tique.run_transaction(connection, take, attempts=200):
                    done.extend(found)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(done) == list(range(1, 41))


def test_lock_timeout(engine, table):
    with engine.connect() as holder, engine.connect(lock_timeout=0.02) as other:
        holder.execute(LOCK)
        with pytest.raises(tique.OperationalError) as refused:
            other.execute(LOCK)
        assert refused.value.sqlstate == "55P03"
        other.execute("UPDATE t SET n = 5 WHERE id = 1")
        with pytest.raises(tique.OperationalError) as refused:
            other.commit()
        assert refused.value.sqlstate == "55P03"
        assert not other.in_transaction


def test_lock_timeout_by_statement(engine, table):
    """On PostgreSQL, as natively; a rollback takes the setting back."""
    if engine.name != "postgresql":
        with pytest.raises(tique.Error):
            table.execute("SET lock_timeout = '2s'")
        return
    for text, seconds in (("'2s'", 2), ("20", 0.02), ("0", None), ("'1min'", 60)):
        table.execute(f"SET lock_timeout = {text}")
        assert table.lock_timeout == seconds
    table.rollback()
    assert table.lock_timeout == 30


def test_one_victim_of_a_deadlock(engine, table):
    with engine.connect() as one, engine.connect() as two:
        one.execute(LOCK)
        two.execute("SELECT n FROM t WHERE id = 2 FOR UPDATE")
        waiting = Background(
            lambda: one.execute("SELECT id FROM t WHERE id = 2 FOR UPDATE").fetchall()
        )
        waiting.expect_waiting(table)
        with pytest.raises(tique.SerializationError) as victim:
            two.execute(LOCK)
        assert victim.value.sqlstate == "40P01"
        two.rollback()
        assert waiting.outcome() == [(2,)]


def test_a_deadlock_of_a_commit(engine, table):
    """A writer that waits for a lock is in the circle, too."""
    with engine.connect() as one, engine.connect() as two:
        one.execute(LOCK)
        two.execute("SELECT n FROM t WHERE id = 2 FOR UPDATE")
        two.execute("UPDATE t SET n = 7 WHERE id = 1")
        waiting = Background(two.commit)
        waiting.expect_waiting(table)
        with pytest.raises(tique.SerializationError) as victim:
            one.execute("SELECT id FROM t WHERE id = 2 FOR UPDATE")
        assert victim.value.sqlstate == "40P01"
        one.rollback()
        waiting.outcome()
        assert waiting.error is None
    assert table.execute("SELECT n FROM t WHERE id = 1").fetchall() == [(7,)]


def test_rollback_to_a_savepoint_releases_later_locks(engine, table):
    with engine.connect() as holder, engine.connect() as other:
        holder.execute(LOCK)
        holder.execute("SAVEPOINT s")
        holder.execute("SELECT id FROM t FOR UPDATE")
        assert ids(other, "SELECT id FROM t FOR UPDATE SKIP LOCKED") == []
        holder.execute("ROLLBACK TO SAVEPOINT s")
        assert ids(other, "SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED") == [
            2,
            3,
        ]


def test_a_changed_row_is_a_conflict_at_once_under_snapshot(engine, table):
    with engine.connect() as one:
        one.execute("SELECT id FROM t").fetchall()
        table.execute("UPDATE t SET n = 1 WHERE id = 1")
        table.commit()
        with pytest.raises(tique.SerializationError) as conflict:
            one.execute(LOCK)
        assert conflict.value.sqlstate == "40001"
        assert conflict.value.key == (1,)
        # The statement that failed keeps no lock.
        assert table.execute(f"{LOCK} NOWAIT").fetchall() == [(1,)]


def test_a_changed_row_is_read_again_under_read_committed(engine, table):
    with (
        engine.connect() as holder,
        engine.connect(isolation_level="READ COMMITTED") as other,
    ):
        holder.execute("SELECT id FROM t WHERE id < 3 FOR UPDATE")
        waiting = Background(
            lambda: other.execute(
                "SELECT id, n FROM t WHERE n = 0 ORDER BY id FOR UPDATE"
            ).fetchall()
        )
        waiting.expect_waiting(table)
        holder.execute("UPDATE t SET n = 1 WHERE id = 1")
        holder.commit()
        assert waiting.outcome() == [(2, 0), (3, 0)]
        # The row that is not in the result is locked no more.
        assert ids(table, "SELECT id FROM t FOR UPDATE SKIP LOCKED") == [1]
        other.execute("UPDATE t SET n = n + 1 WHERE id = 2")
        other.commit()


def test_a_row_by_its_key_is_locked_without_a_query(engine, table):
    """Where it is in memory, as with no FOR UPDATE: with it, only the lock costs."""

    def cost(condition):
        costs = set()
        for _ in range(3):
            before = table.info.engine_statements
            rows = table.execute(f"SELECT n FROM t WHERE {condition} FOR UPDATE")
            assert rows.fetchall() == [(0,)]
            costs.add(table.info.engine_statements - before)
            table.rollback()
        return min(costs)

    assert cost("id = 1") == cost("id + 0 = 1") - 1


_BY_KEY = [
    "SELECT a, b, note FROM pair WHERE a = %s AND b = 2",
    "SELECT note AS b FROM pair p WHERE b = 2 AND p.a = %s",
    "SELECT * FROM pair WHERE a = %s ORDER BY b DESC",
    "SELECT b, note FROM pair WHERE a = %s ORDER BY b LIMIT 1",
    "SELECT note, seen FROM pair WHERE a = %s AND b > 1 ORDER BY b",
]


@LEVELS
@pytest.mark.parametrize("query", _BY_KEY)
@pytest.mark.parametrize("end", ["FOR UPDATE", "FOR SHARE", "FOR UPDATE SKIP LOCKED"])
def test_rows_by_key_answer_as_without_the_clause(engine, query, end, level):
    """Rows of storage, of others' commits, and of the transaction's own changes."""
    changes = (
        "UPDATE pair SET note = 'x' WHERE a = 1 AND b = 2",
        "DELETE FROM pair WHERE a = 1 AND b IN (0, 2)",
        "INSERT INTO pair VALUES (1, 0, 'y', NULL), (1, 2, 'z', NULL)",
    )
    with engine.connect(isolation_level=level) as one, engine.connect() as two:
        two.execute(
            "CREATE TABLE pair (a INTEGER, b INTEGER, note VARCHAR(9), "
            "seen TIMESTAMP WITH TIME ZONE, PRIMARY KEY (a, b))"
        )
        two.cursor().executemany(
            "INSERT INTO pair VALUES (%s, %s, %s, TIMESTAMP '2026-01-02 03:04:05')",
            [(a, b, f"{a}{b}") for a in range(3) for b in range(4)],
        )
        two.commit()

        def expect_the_same():
            for a in (1, 1, 7):
                expected = one.execute(query, [a]).fetchall()
                assert one.execute(f"{query} {end}", [a]).fetchall() == expected

        for change in changes:
            expect_the_same()
            one.rollback()
            two.execute(change)
            two.commit()
        for change in changes:
            expect_the_same()
            one.execute(change)
        expect_the_same()
        one.rollback()


@pytest.mark.parametrize("condition", ["id = 1", "id < 3"])
def test_locks_that_were_waited_for_are_kept_for_the_next_look(
    engine, table, condition, monkeypatch
):
    """READ COMMITTED: a row that many wait for goes from one to the next at once."""
    query = f"SELECT n FROM t WHERE {condition} ORDER BY id FOR UPDATE"
    with (
        engine.connect() as holder,
        engine.connect(isolation_level="READ COMMITTED") as other,
    ):
        holder.execute("UPDATE t SET n = 1 WHERE id = 1")
        holder.execute(LOCK)
        waiting = Background(lambda: other.execute(query).fetchall())
        waiting.expect_waiting(table)
        released = []
        locks = table._database.locks
        release = locks.release_keys

        def release_keys(owner, keys):
            released.extend(keys)
            release(owner, keys)

        monkeypatch.setattr(locks, "release_keys", release_keys)
        holder.commit()
        assert waiting.outcome()[0] == (1,)
        assert released == []
        other.rollback()


@LEVELS
def test_read_compute_and_write_back_loses_nothing(engine, table, level):
    """With the lock no attempt is lost under READ COMMITTED."""
    losses, failures = [], []

    def add(connection):
        try:
            ((n,),) = connection.execute(LOCK).fetchall()
            connection.execute("UPDATE t SET n = %s WHERE id = 1", [n + 1])
            connection.commit()
        except tique.SerializationError as error:
            connection.rollback()
            losses.append(error)
            return 0
        return 1

    def work():
        try:
            with engine.connect(isolation_level=level) as connection:
                done = 0
                while done < 8:
                    done += add(connection)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert table.execute("SELECT n FROM t WHERE id = 1").fetchall() == [(32,)]
    if level == "READ COMMITTED":
        assert losses == []


def test_a_writer_waits_for_the_holder(engine, table):
    """Then certification decides: the holder wrote nothing, so the writer commits."""
    with engine.connect() as holder, engine.connect() as writer:
        holder.execute(LOCK)
        writer.execute("UPDATE t SET n = 5 WHERE id = 1")
        waiting = Background(writer.commit)
        waiting.expect_waiting(table)
        assert holder.execute("SELECT n FROM t WHERE id = 1").fetchall() == [(0,)]
        holder.commit()
        waiting.outcome()
        assert waiting.error is None
        assert holder.execute("SELECT n FROM t WHERE id = 1").fetchall() == [(5,)]


def test_a_statement_in_autocommit_waits(engine, table):
    with engine.connect() as holder, engine.connect(autocommit=True) as writer:
        ((n,),) = holder.execute(LOCK).fetchall()
        waiting = Background(
            lambda: writer.execute("UPDATE t SET n = n + 10 WHERE id = 1")
        )
        waiting.expect_waiting(table)
        holder.execute("UPDATE t SET n = %s WHERE id = 1", [n + 1])
        holder.commit()
        waiting.outcome()
        assert waiting.error is None
        assert holder.execute("SELECT n FROM t WHERE id = 1").fetchall() == [(11,)]


@pytest.mark.parametrize("most", [500, 1], ids=["its rows", "too many rows"])
def test_a_bulk_writer_waits(engine, table, most, monkeypatch):
    """Too many staged rows to lock one by one wait for all locks on the table."""
    monkeypatch.setattr(lock_checks, "_MOST_STAGED", most)
    with engine.connect() as holder, engine.connect() as writer:
        holder.execute(LOCK)
        writer.execute("SELECT id FROM t").fetchall()
        change = "UPDATE t SET n = n + id" if most > 1 else None
        writer.execute(change or "INSERT INTO t SELECT id + 100, n FROM t WHERE id > 1")
        transaction = writer._execution.transaction
        for writes in transaction.writes.values():
            writes.switch_to_stage(transaction.session)
        waiting = Background(writer.commit)
        waiting.expect_waiting(table)
        holder.rollback()
        waiting.outcome()
        assert waiting.error is None


def test_a_commit_under_way_is_waited_for(engine, table, monkeypatch):
    """A lock that comes when its row is being committed finds that commit."""
    committer = table._database.committer
    began, goes_on = threading.Event(), threading.Event()
    commit = committer.commit

    def slow(transaction, **options):
        began.set()
        assert goes_on.wait(PATIENCE)
        return commit(transaction, **options)

    with (
        engine.connect() as writer,
        engine.connect(isolation_level="READ COMMITTED") as other,
    ):
        writer.execute("UPDATE t SET n = 5 WHERE id = 1")
        monkeypatch.setattr(committer, "commit", slow)
        committing = Background(writer.commit)
        assert began.wait(PATIENCE)
        with pytest.raises(tique.OperationalError):
            other.execute(f"{LOCK} NOWAIT")
        assert ids(other, "SELECT id FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED") == []
        locking = Background(lambda: other.execute(LOCK).fetchall())
        time.sleep(0.02)
        assert locking.is_alive()
        goes_on.set()
        # A commit that is not at the server yet finds the lock there, and steps back.
        steps_back = table._database.locks.server is not None
        assert locking.outcome() == [(0 if steps_back else 5,)]
        other.rollback()
        committing.outcome()
        assert other.execute(LOCK).fetchall() == [(5,)]


def test_two_tables(engine, table):
    table.execute(
        "CREATE TABLE u (k VARCHAR(9), m INTEGER, t INTEGER, PRIMARY KEY (k, m))"
    )
    table.execute("INSERT INTO u VALUES ('a', 1, 1), ('a', 2, 2)")
    table.commit()
    joined = "SELECT u.m FROM t JOIN u ON u.t = t.id WHERE t.id = 1 FOR UPDATE"
    free = "SELECT m FROM u ORDER BY m FOR UPDATE SKIP LOCKED"
    with engine.connect() as holder, engine.connect() as other:
        assert ids(holder, joined) == [1]
        assert ids(other, free) == [2]
        assert ids(other, "SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED") == [
            2,
            3,
        ]
        holder.rollback()
        other.rollback()
        assert ids(holder, f"{joined} OF t") == [1]
        assert ids(other, free) == [1, 2]


def test_cancel_ends_a_wait(engine, table):
    with engine.connect() as holder, engine.connect() as other:
        holder.execute(LOCK)
        waiting = Background(lambda: other.execute(LOCK))
        waiting.expect_waiting(table)
        other.cancel()
        waiting.outcome()
        assert waiting.error.sqlstate == "57014"
        holder.rollback()
        assert other.execute(LOCK).fetchall() == [(0,)]


@pytest.mark.written_for(["postgresql", "monetdb"], reason="its server keeps the locks")
def test_a_wait_is_cancelled_before_the_server_hears_of_it(engine, table, monkeypatch):
    cancelled = threading.Event()
    kind = LeasedLocks
    lock, interrupt = kind.lock, kind.interrupt

    def late(self, *arguments, **options):
        assert cancelled.wait(PATIENCE)
        lock(self, *arguments, **options)

    def early(self):
        interrupt(self)
        cancelled.set()

    monkeypatch.setattr(kind, "lock", late)
    monkeypatch.setattr(kind, "interrupt", early)
    with engine.connect() as holder, engine.connect() as other:
        holder.execute(LOCK)
        waiting = Background(lambda: other.execute(LOCK))
        waiting.expect_waiting(table)
        other.cancel()
        waiting.outcome()
        assert waiting.error.sqlstate == "57014"


def test_a_read_only_transaction_locks_nothing(engine, table):
    table.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(tique.OperationalError) as refused:
        table.execute(LOCK)
    assert refused.value.sqlstate == "25006"


SHARE = "SELECT n FROM t WHERE id = 1 FOR SHARE"


def test_locks_are_shared(engine, table):
    with engine.connect() as one, engine.connect() as two, engine.connect() as three:
        assert one.execute(SHARE).fetchall() == [(0,)]
        assert two.execute(f"{SHARE} NOWAIT").fetchall() == [(0,)]
        assert ids(two, "SELECT id FROM t FOR KEY SHARE SKIP LOCKED") == [1, 2, 3]
        assert ids(three, "SELECT id FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED") == []
        waiting = Background(lambda: three.execute(LOCK).fetchall())
        waiting.expect_waiting(table)
        one.rollback()
        time.sleep(0.01)
        assert waiting.is_alive()
        two.rollback()
        assert waiting.outcome() == [(0,)]
        with pytest.raises(tique.OperationalError):
            one.execute(f"{SHARE} NOWAIT")


def test_a_writer_waits_for_all_that_share_its_row(engine, table):
    with engine.connect() as holder, engine.connect() as writer:
        holder.execute(SHARE)
        writer.execute(SHARE)
        writer.execute("UPDATE t SET n = 5 WHERE id = 1")
        waiting = Background(writer.commit)
        waiting.expect_waiting(table)
        holder.commit()
        waiting.outcome()
        assert waiting.error is None
        assert holder.execute(SHARE).fetchall() == [(5,)]


def test_two_that_share_a_row_and_write_it_are_a_deadlock(engine, table):
    with engine.connect() as one, engine.connect() as two:
        for each in (one, two):
            each.execute(SHARE)
        waiting = Background(lambda: one.execute(LOCK).fetchall())
        waiting.expect_waiting(table)
        with pytest.raises(tique.SerializationError) as victim:
            two.execute(LOCK)
        assert victim.value.sqlstate == "40P01"
        two.rollback()
        assert waiting.outcome() == [(0,)]


def test_a_lock_stays_when_a_stronger_one_is_refused(engine, table):
    """P8: a statement that fails leaves what was locked before it."""
    with engine.connect() as one, engine.connect() as two:
        one.execute(SHARE)
        two.execute(SHARE)
        with pytest.raises(tique.OperationalError):
            one.execute(f"{LOCK} NOWAIT")
        two.rollback()
        with pytest.raises(tique.OperationalError):
            two.execute(f"{LOCK} NOWAIT")
        one.rollback()
        assert two.execute(f"{LOCK} NOWAIT").fetchall() == [(0,)]


def test_no_lock_is_left(engine, table):
    with closing(engine.connect(autocommit=True)) as connection:
        connection.execute(LOCK)
        assert not table._database.locks.are_held


@pytest.mark.parametrize("at", ["statement", "commit"])
def test_a_holder_waits_for_no_turn(engine, table, monkeypatch, at):
    """P6: the transaction that has the turn may wait for its lock."""
    monkeypatch.setattr(turns, "_SHORTEST_TURN", 20.0)
    monkeypatch.setattr(turns, "_LONGEST_TURN", 20.0)
    winner, loser, holder = (engine.connect() for _ in range(3))
    for connection in (winner, loser):
        connection.execute("SELECT n FROM t WHERE id = 1").fetchall()
        connection.execute("UPDATE t SET n = %s WHERE id = 1", (1,))
    winner.commit()
    with pytest.raises(tique.SerializationError):
        loser.commit()
    started = time.monotonic()
    holder.execute("SELECT n FROM t WHERE id = 2 FOR UPDATE").fetchall()
    if at == "statement":
        holder.execute("SELECT n FROM t WHERE id = 1").fetchall()
    else:
        holder.execute("UPDATE t SET n = n + 1 WHERE id = 1")
    holder.commit()
    assert time.monotonic() - started < 4


def test_a_commit_of_unknown_outcome_holds_nobody_up(engine, table, monkeypatch):
    """P6: its locks go, and it is no commit under way for those that lock later."""

    def fail(transaction, **_options):
        raise tique.OutcomeUnknown("the reply is lost", txid=transaction.txid)

    with engine.connect() as holder, engine.connect() as other:
        holder.execute(LOCK)
        holder.execute("UPDATE t SET n = 5 WHERE id = 1")
        with monkeypatch.context() as patch:
            patch.setattr(table._database.committer, "commit", fail)
            with pytest.raises(tique.OutcomeUnknown):
                holder.commit()
        assert not table._database.locks._committing
        assert other.execute(f"{LOCK} NOWAIT").fetchall() == [(0,)]


def test_a_fork_leaves_the_locks_to_its_parent(engine, table):
    with engine.connect() as holder, engine.connect() as other:
        holder.execute(LOCK)
        reading, writing = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            refused = 0
            for use in (lambda: other.execute(f"{LOCK} NOWAIT"), holder.rollback):
                try:
                    use()
                except tique.InterfaceError:
                    refused += 1
                except BaseException:
                    pass
            with suppress(BaseException):
                holder.close()
            os.write(writing, bytes([refused]))
            os._exit(0)
        os.close(writing)
        with open(reading, "rb") as answer:
            assert answer.read() == bytes([2])
        os.waitpid(child, 0)
        with pytest.raises(tique.OperationalError):
            other.execute(f"{LOCK} NOWAIT")
        holder.commit()
        assert other.execute(f"{LOCK} NOWAIT").fetchall() == [(0,)]


def test_no_bound_and_no_wait_at_all(engine, table):
    """lock_timeout is None or 0."""
    with (
        engine.connect() as holder,
        engine.connect(lock_timeout=0) as hasty,
        engine.connect(lock_timeout=None) as patient,
    ):
        holder.execute(LOCK)
        with pytest.raises(tique.OperationalError) as refused:
            hasty.execute(LOCK)
        assert refused.value.sqlstate == "55P03"
        waiting = Background(lambda: patient.execute(LOCK).fetchall())
        waiting.expect_waiting(table)
        holder.rollback()
        assert waiting.outcome() == [(0,)]


def test_a_temporary_table_is_refused(engine, table):
    table.execute("CREATE TEMPORARY TABLE own (id INTEGER PRIMARY KEY)")
    with pytest.raises(tique.NotSupportedError, match="temporary"):
        table.execute("SELECT id FROM own FOR UPDATE")


IDIOM = (
    "UPDATE t SET n = n + 1 WHERE id = (SELECT id FROM t WHERE n < %s ORDER BY id "
    "LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id, n"
)


@LEVELS
def test_an_update_takes_the_next_job(engine, table, level):
    with (
        engine.connect(isolation_level=level) as one,
        engine.connect(isolation_level=level) as two,
    ):
        assert one.execute(IDIOM, [1]).fetchall() == [(1, 1)]
        assert two.execute(IDIOM, [1]).fetchall() == [(2, 1)]
        one.rollback()
        assert two.execute(IDIOM, [1]).fetchall() == [(1, 1)]
        assert two.execute(IDIOM, [1]).fetchall() == [(3, 1)]
        assert two.execute(IDIOM, [1]).fetchall() == []
        two.commit()
    assert table.execute("SELECT sum(n) FROM t").fetchall() == [(3,)]


def test_a_batch_of_jobs_is_deleted(engine, table):
    query = (
        "DELETE FROM t WHERE id IN (SELECT id FROM t ORDER BY id LIMIT %s "
        "FOR UPDATE SKIP LOCKED) AND n = %s RETURNING id"
    )
    with engine.connect() as one, engine.connect() as two:
        one.execute(f"{LOCK}")
        assert sorted(two.execute(query, [5, 0]).fetchall()) == [(2,), (3,)]
        two.commit()
    assert ids(table, "SELECT id FROM t") == [1]


def test_a_locking_member_of_with(engine, table):
    update = (
        "WITH job AS (SELECT id, n AS was FROM t WHERE id > %s ORDER BY id LIMIT 1 "
        "FOR NO KEY UPDATE SKIP LOCKED) UPDATE t SET n = %s + job.was "
        "FROM job WHERE t.id = job.id"
    )
    with engine.connect() as one, engine.connect() as two:
        one.execute(update, [1, 5])
        two.execute(update, [1, 7])
        assert ids(two, "SELECT id FROM t ORDER BY id FOR UPDATE SKIP LOCKED") == [1, 3]
        two.commit()
        one.commit()
        found = "WITH x AS (SELECT * FROM t WHERE n > 0 FOR SHARE) SELECT n FROM x"
        assert sorted(ids(one, found)) == [5, 7]
        with pytest.raises(tique.OperationalError):
            two.execute("SELECT id FROM t WHERE n = 7 FOR UPDATE NOWAIT")


def test_a_subquery_locks_what_the_statement_around_it_reads(engine, table):
    table.execute("CREATE TABLE log (id INTEGER PRIMARY KEY, n INTEGER)")
    table.commit()
    with engine.connect() as one, engine.connect() as two:
        one.execute(
            "INSERT INTO log SELECT q.id, q.n FROM (SELECT n, id FROM t WHERE id < 3 "
            "FOR UPDATE) AS q WHERE q.id <> 2"
        )
        assert ids(two, "SELECT id FROM t FOR UPDATE SKIP LOCKED") == [3]
        one.commit()
    assert table.execute("SELECT * FROM log").fetchall() == [(1, 0)]


def test_a_statement_that_fails_keeps_no_lock_of_its_subquery(engine, table):
    """P8."""
    with engine.connect() as one, engine.connect() as two:
        with pytest.raises(tique.Error):
            one.execute(
                "UPDATE t SET id = 3 WHERE id = (SELECT id FROM t WHERE id = 1 "
                "FOR UPDATE)"
            )
        assert two.execute(f"{LOCK} NOWAIT").fetchall() == [(0,)]


def test_a_queue_of_updates_hands_out_each_job_once(engine, table):
    jobs = [(number, 0) for number in range(4, 31)]
    table.cursor().executemany("INSERT INTO t VALUES (%s, %s)", jobs)
    table.commit()
    done, failures = [], []

    def work():
        try:
            with engine.connect(autocommit=True) as connection:
                while found := connection.execute(IDIOM, [1]).fetchall():
                    done.extend(found)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(done) == [(number, 1) for number in range(1, 31)]


def test_a_wait_that_is_over_names_its_holder(engine, table):
    """P6: the transaction of this process, and the thread that has it."""
    with engine.connect() as holder, engine.connect(lock_timeout=0.05) as other:
        thread = threading.Thread(target=holder.execute, args=[LOCK], name="worker 7")
        thread.start()
        thread.join()
        txid = holder.txid
        with pytest.raises(tique.OperationalError) as refused:
            other.execute(LOCK)
        assert refused.value.sqlstate == "55P03"
        assert f"transaction {txid} of this process" in str(refused.value)
        stays = threading.Event()
        holder.rollback()
        thread = threading.Thread(
            target=lambda: (holder.execute(LOCK), stays.wait()), name="worker 8"
        )
        thread.start()
        try:
            end = time.monotonic() + 20
            while not table._database.locks.count and time.monotonic() < end:
                time.sleep(0.001)
            other.rollback()
            with pytest.raises(tique.OperationalError, match="thread 'worker 8'"):
                other.execute(LOCK)
        finally:
            stays.set()
            thread.join()
