"""The source of a replica: its commits in order, its content, and its slots (P1, P2, P4, P6)."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from contextlib import closing

import pytest

import tique
from tests.effort import effort, patience
from tests.portable import numbers
from tests.sharing.playing import ROWS, Process, stopping_before_commit
from tique.database import database as databases
from tique.replica.source import LogLostError, Source, SourceLostError
from tique_backends.records import MISSING

ACCOUNTS = 8
START = 100
COMMITS = effort(60, 2000)


@pytest.fixture
def process(shared_engine):
    started = []

    def start(**options):
        started.append(Process(shared_engine.url, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def writer(process):
    writer = process()
    writer.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)")
    writer.commit("INSERT INTO t VALUES (1, 0, 'a'), (2, 0, 'b')")
    return writer


@pytest.fixture
def opened(shared_engine):
    sources = []

    def open_source(name="replica", keep=600.0):
        sources.append(Source(shared_engine.url, name, keep=keep))
        return sources[-1]

    yield open_source
    for one in sources:
        one.close()


class Copy:
    """What a replica would have: the rows of each table by key, after each epoch."""

    def __init__(self, source):
        self.source = source
        self.position = 0
        self.sts = 0
        self.txids = []
        self.tables = {}

    def fill(self):
        """As a snapshot of the source has it, from which the source goes on."""
        with self.source.snapshot() as snapshot:
            for table in snapshot.tables:
                rows = [
                    tuple(row.values())
                    for part in snapshot.rows(table)
                    for row in part.to_pylist()
                ]
                keys = [tuple(row[i] for i in table.primary_key) for row in rows]
                self.tables[table.id] = dict(zip(keys, rows, strict=True))
            self.position = self.sts = snapshot.sts
        self.source.resume(self.position)
        return self

    def poll(self):
        epoch = self.source.poll()
        assert epoch.sts >= self.sts
        for commit in epoch.commits:
            assert self.position < commit.cts <= epoch.sts
            self.position = commit.cts
            self.txids.append(commit.txid)
            for number, writes in commit.writes.items():
                rows = self.tables.setdefault(number, {})
                for key, row, deleted in writes:
                    if deleted:
                        del rows[key]
                    elif MISSING in row:
                        pairs = zip(row, rows[key], strict=True)
                        rows[key] = tuple(o if n is MISSING else n for n, o in pairs)
                    else:
                        rows[key] = row
        self.sts = epoch.sts
        return epoch

    def rows(self, name="t"):
        (number,) = [t.id for t in self.source.tables() if t.name == name]
        return sorted(self.tables[number].values())


def rows(process, name="t"):
    return sorted(process.rows(f"SELECT * FROM {name}"))


def log(process):
    """The newest cts in the log, and the oldest."""
    with closing(process.database.engine.session()) as session:
        found = session.execute("SELECT max(cts), min(cts) FROM tique.log").fetch_all()
    return found[0]


def fold(*processes):
    """Fold everything, and prune the log."""
    for one in processes:
        one.database.timeline._beat()
    for one in processes:
        one.connection.checkpoint()


# Commits


@pytest.mark.slow
def test_every_commit_comes_once_and_in_order(shared_engine, process, opened):
    """P1, P2: of several processes, this one too; at each epoch the bank is whole."""
    first = process()
    first.commit("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER)")
    first.commit(f"INSERT INTO account SELECT number, {START} FROM {numbers(ACCOUNTS)}")
    copy = Copy(opened()).fill()
    txids, failures = [], []

    def transfers(connection, seed):
        chance = random.Random(seed)
        try:
            for _ in range(COMMITS):
                source, target = chance.sample(range(ACCOUNTS), 2)
                for account, change in ((source, -1), (target, 1)):
                    connection.execute(
                        "UPDATE account SET balance = balance + %s WHERE id = %s",
                        (change, account),
                    )
                txid = connection.txid
                try:
                    connection.commit()
                except tique.SerializationError:
                    continue
                txids.append(txid)
        except BaseException as error:
            failures.append(error)

    with tique.connect(shared_engine.url) as own:
        assert own._database is copy.source._database
        threads = [
            threading.Thread(target=transfers, args=(connection, seed))
            for seed, connection in enumerate(
                (first.connection, process().connection, own)
            )
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            copy.poll()
            assert sum(b for _, b in copy.rows("account")) == ACCOUNTS * START
    copy.poll()
    assert not failures
    assert sorted(copy.txids) == sorted(txids)
    assert copy.rows("account") == rows(first, "account")


def test_what_was_acknowledged_before_a_poll_is_in_it(writer, opened):
    """P2."""
    copy = Copy(opened()).fill()
    for number in range(5):
        writer.commit("UPDATE t SET v = %s WHERE id = 1", (number,))
        before = time.monotonic()
        epoch = copy.poll()
        assert before <= epoch.asked <= time.monotonic()
        assert copy.rows() == [(1, number, "a"), (2, 0, "b")]


def test_what_was_aborted_never_comes(writer, process, opened, monkeypatch):
    """P5, P6: an aborted timestamp, a fenced bulk commit, a transaction rolled back."""
    writer.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    copy = Copy(opened()).fill()
    second = process()
    second.database.timeline.bar()
    second.database.timeline.abort([second.database.timeline._barrier])
    writer.run("UPDATE t SET v = 5")
    writer.connection.rollback()
    writer.run("UPDATE t SET v = v + 1")

    def work():
        second.commit("UPDATE t SET v = 4 WHERE id = 17")

    assert stopping_before_commit(monkeypatch, writer, work) is not None
    with pytest.raises(tique.OperationalError, match="given up"):
        writer.connection.commit()
    epoch = copy.poll()
    assert len(epoch.commits) == 1
    assert copy.rows() == rows(second)


def test_an_idle_poll_asks_one_question(writer, opened, monkeypatch):
    """And reads no log."""
    source = opened()
    source.poll()
    asked = []
    shared, mine = source._database.engine.shared, threading.get_ident()

    def noting(name):
        ask = getattr(shared, name)

        def noted(*arguments):
            if threading.get_ident() == mine:
                asked.append(name)
            return ask(*arguments)

        monkeypatch.setattr(shared, name, noted)

    for name in ("snapshot", "logged", "position", "folds", "replicated"):
        noting(name)
    monkeypatch.setattr(source, "_session", None)
    for _ in range(10):
        assert source.poll().commits == []
    assert asked == ["snapshot"] * 10
    monkeypatch.undo()


# Bulk commits


@pytest.mark.slow
def test_rows_of_bulk_commits_come_too(writer, process, opened):
    """P1: though another process would have folded them before they are polled."""
    copy = Copy(opened()).fill()
    writer.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)")
    copy.poll()
    for sql in (
        f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}",
        "UPDATE t SET v = v + 1",
        "UPDATE t SET v = 7 WHERE id = 17",
        "DELETE FROM t WHERE id > 100",
        f"INSERT INTO t SELECT number + 200, 0, '' FROM {numbers(ROWS)}",
    ):
        writer.commit(sql)
        fold(writer)
    # One that is in bulk for one table only.
    writer.run("INSERT INTO u VALUES (1, 1)")
    writer.run("UPDATE t SET v = v + 1")
    writer.connection.commit()
    copy.poll()
    assert copy.rows() == rows(writer)
    assert copy.rows("u") == [(1, 1)]
    writer.commit("TRUNCATE TABLE t")
    copy.poll()
    assert copy.rows() == []


def test_rows_stay_while_they_are_read(writer, opened, monkeypatch):
    """P7: a fold that comes between the question for commits and the rows."""
    copy = Copy(opened()).fill()
    writer.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    read = copy.source._bulk_rows

    def late(number, cts):
        copy.source._timeline._beat()
        fold(writer)
        return read(number, cts)

    monkeypatch.setattr(copy.source, "_bulk_rows", late)
    copy.poll()
    assert copy.rows() == rows(writer)


def test_polled_bulk_commits_are_folded(writer, opened):
    """P7: a replica holds folds up no longer than until it has polled."""
    source = opened()
    writer.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    versions = writer.database.catalog.all_versions()
    fold(writer)
    assert any(not each.is_empty for each in versions)
    source.poll()
    deadline = time.monotonic() + patience(10)
    while any(not each.is_empty for each in versions):
        source._timeline._beat()
        fold(writer)
        assert time.monotonic() < deadline


def test_bulk_commits_of_this_process(shared_engine, writer, opened):
    """P1."""
    copy = Copy(opened()).fill()
    with tique.connect(shared_engine.url) as own:
        own.execute(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
        own.commit()
        own.execute("UPDATE t SET v = 1 WHERE id = 17")
        own.commit()
    copy.poll()
    assert copy.rows() == rows(writer)


def test_bulk_commits_while_the_replica_was_away(writer, opened):
    """P4: there as long as they are not folded; after that it is copied anew."""
    copy = Copy(opened()).fill()
    copy.source.close()
    writer.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    copy.source = opened()
    copy.source.resume(copy.sts)
    copy.poll()
    assert copy.rows() == rows(writer)
    position = copy.sts
    copy.source.close()
    writer.commit("UPDATE t SET v = v + 1")
    fold(writer)
    source = opened()
    with pytest.raises(LogLostError, match="copied anew") as caught:
        source.resume(position)
    assert [caught.value.table_id] == [table.id for table in source.tables()]


# Definitions


def names(source):
    return {table.name: table.id for table in source.tables()}


@pytest.mark.slow
def test_tables_are_those_of_the_poll(shared_engine, writer, opened):
    """P1: another number is another table, and one that is gone is not there."""
    source = opened()
    assert source.poll().defines
    assert not source.poll().defines
    before = names(source)
    assert set(before) == {"t"}
    writer.commit("CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)")
    writer.commit("INSERT INTO u VALUES (1, 1)")
    # This process knows it by now.
    source._timeline.catch_up()
    assert names(source) == before
    epoch = source.poll()
    assert epoch.defines
    assert names(source) == {**before, **names(source)} != before
    assert [list(commit.writes) for commit in epoch.commits] == [[names(source)["u"]]]
    writer.commit("ALTER TABLE t ADD COLUMN w INTEGER")
    assert source.poll().defines
    assert names(source)["t"] != before["t"]
    with tique.connect(shared_engine.url) as own:
        own.execute("DROP TABLE u")
        own.commit()
    assert source.poll().defines
    assert set(names(source)) == {"t"}


def test_a_table_that_was_dropped_before_its_commits_are_polled(writer, opened):
    """P1: neither its rows nor those that were written in bulk are looked for."""
    copy = Copy(opened()).fill()
    writer.commit("UPDATE t SET v = 1 WHERE id = 1")
    writer.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    copy.source._timeline.catch_up()
    with closing(writer.database.engine.session()) as session:
        (table,) = writer.database.catalog
        session.execute(f"DROP TABLE tique.tique_cache_{table.id}")
        session.execute('DELETE FROM tique."tables"')
    epoch = copy.source.poll()
    assert [list(commit.writes.values()) for commit in epoch.commits][1:] == [[()]]


# Snapshots


@pytest.mark.slow
def test_a_snapshot_of_the_source(writer, opened):
    """P1: all of its tables at its sts, whatever is committed meanwhile."""
    writer.commit("CREATE TABLE keyless (v INTEGER)")
    writer.commit("INSERT INTO keyless VALUES (1), (1), (2)")
    writer.commit(f"INSERT INTO t SELECT number + 10, 0, '' FROM {numbers(ROWS)}")
    source = opened()
    source.poll()
    before, keyless = rows(writer), rows(writer, "keyless")
    with source.snapshot() as snapshot:
        assert snapshot.sts >= source.newest()
        writer.commit("UPDATE t SET v = v + 1")
        writer.commit("DELETE FROM keyless WHERE v = 1")
        found = {
            table.name: [
                tuple(row.values())
                for part in snapshot.rows(table)
                for row in part.to_pylist()
            ]
            for table in snapshot.tables
        }
        for table in snapshot.tables:
            assert snapshot.count(table) >= 0
    assert sorted(found["t"]) == before
    assert sorted(found["keyless"]) == keyless
    assert source.newest() >= snapshot.sts + 2


# Slots


@pytest.mark.slow
def test_a_slot_keeps_the_log(writer, process, opened):
    """P4: beside checkpoints, for a replica that is away; other processes need it not."""
    copy = Copy(opened()).fill()
    copy.source.note_durable(copy.sts)
    copy.source.close()
    for number in range(5):
        writer.commit("UPDATE t SET v = %s WHERE id = 1", (number,))
        fold(writer)
    newest, oldest = log(writer)
    assert oldest <= copy.sts + 1
    least, folded = writer.database.engine.shared.replicated()
    assert least == copy.sts
    assert folded == newest
    third = process()
    assert third.rows("SELECT v FROM t WHERE id = 1") == [(4,)]
    copy.source = opened()
    copy.source.resume(copy.sts)
    assert len(copy.poll().commits) == 5
    assert copy.rows() == rows(writer)
    copy.source.note_durable(copy.sts)
    source = copy.source
    deadline = time.monotonic() + patience(10)
    while log(writer)[0] is not None:
        source.poll()
        source._timeline._beat()
        fold(writer)
        assert time.monotonic() < deadline
    source.drop()
    assert writer.database.engine.shared.replicated() == (None, 0)


def test_a_slot_that_expired(writer, opened):
    """P6: a replica that stays away does not keep the log for ever, and learns it."""
    copy = Copy(opened(keep=0.0)).fill()
    copy.source.close()
    writer.commit("UPDATE t SET v = 1 WHERE id = 1")
    time.sleep(0.01)
    fold(writer)
    source = opened()
    with pytest.raises(LogLostError, match="copied anew"):
        source.resume(copy.sts)
    copy = Copy(source).fill()
    assert copy.rows() == rows(writer)


def test_a_slot_that_expires_under_its_replication(writer, opened):
    """P6: it is told, and what it resumes with then is a new slot."""
    source = opened(keep=0.0)
    position = source.poll().sts
    writer.commit("UPDATE t SET v = 1 WHERE id = 1")
    time.sleep(0.01)
    fold(writer)
    with pytest.raises(SourceLostError, match="given up"):
        source.note_durable(position)
    source.close()
    with pytest.raises(LogLostError):
        opened().resume(position)


def test_a_position_that_the_source_has_not_reached(opened, writer):
    """P1: the source is an older one, restored, or another one."""
    source = opened()
    with pytest.raises(LogLostError):
        source.resume(source.newest() + 1)


CHILD = """
import sys
from tique.replica.source import Source
source = Source(sys.argv[1], "replica", keep=600.0)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_one_replication_has_the_slot(shared_engine, writer, opened):
    """P6: until its process has ended, however that was."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, shared_engine.url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        try:
            assert child.stdout.readline() == b"open\n"
            with pytest.raises(
                tique.OperationalError, match="another process"
            ) as refusal:
                opened()
            assert refusal.value.sqlstate == "55006"
            opened("another").close()
        finally:
            child.kill()
    deadline = time.monotonic() + patience(10)
    while True:
        try:
            source = opened()
            break
        except tique.OperationalError:
            # The server has to notice it.
            assert time.monotonic() < deadline
    source.note_durable(source.newest())


def test_a_slot_that_another_process_has_taken(writer, opened, monkeypatch):
    """P6: the one that had it before moves it no more."""
    first = opened()
    first._release()
    with monkeypatch.context() as patch:
        patch.setattr(databases, "_registry", {})
        second = opened()
    with pytest.raises(SourceLostError, match="taken"):
        first.note_durable(first.newest())
    first.close()
    second.note_durable(second.newest())


@pytest.mark.slow
@pytest.mark.crash
def test_the_server_is_restarted(shared_engine, process, writer, opened):
    """P4: all that was acknowledged comes, before the crash and after it, once."""
    copy = Copy(opened()).fill()
    copy.source.note_durable(copy.sts)
    writer.commit("UPDATE t SET v = 1 WHERE id = 1")
    copy.poll()
    writer.commit("UPDATE t SET v = 2 WHERE id = 2")
    shared_engine.restart()
    with pytest.raises(SourceLostError):
        copy.poll()
    copy.source.close()
    writer.close()
    again = process()
    again.commit("UPDATE t SET v = 3 WHERE id = 2")
    fold(again)
    copy.source = opened()
    copy.source.resume(copy.sts)
    assert len(copy.poll().commits) == 2
    assert copy.rows() == rows(again)


def test_a_part_of_the_log_that_cannot_be_read(writer, opened):
    """P10: it is not left out in silence."""
    source = opened()
    position = source.poll().sts
    writer.commit("UPDATE t SET v = 1 WHERE id = 1")
    (table,) = source.tables()
    source._database.engine.shared.aside.note(position + 1, table.id, "it is no row")
    with pytest.raises(LogLostError, match="it is no row") as caught:
        source.poll()
    assert caught.value.table_id == table.id
    with pytest.raises(LogLostError, match="it is no row"):
        source.resume(position)
    with source.snapshot() as snapshot:
        source.resume(snapshot.sts)
    assert source.poll().commits == []


# COMMIT that waits


def test_a_commit_waits_for_the_replica(writer, opened):
    """P4: it returns when all replicas have said that they have it durably."""
    source = opened()
    writer.run("UPDATE t SET v = 1 WHERE id = 1")
    done = threading.Event()

    def replicate():
        time.sleep(0.2)
        done.set()
        source.note_durable(source.poll().sts)

    thread = threading.Thread(target=replicate)
    thread.start()
    writer.connection.commit(wait_for="replica", timeout=patience(20))
    assert done.is_set()
    thread.join()
    # Nothing was written since.
    writer.connection.commit(wait_for="replica", timeout=0)


def test_a_commit_that_has_waited_for_too_long(writer, opened):
    """P4: it says that it is done."""
    opened()
    writer.run("UPDATE t SET v = 1 WHERE id = 1")
    with pytest.raises(tique.OperationalError, match="is committed") as caught:
        writer.connection.commit(wait_for="replica", timeout=0.1)
    assert caught.value.sqlstate == "57014"
    assert writer.rows("SELECT v FROM t WHERE id = 1") == [(1,)]


def test_a_commit_without_a_replica(writer):
    """P4: nothing is committed that cannot be waited for."""
    writer.run("UPDATE t SET v = 1 WHERE id = 1")
    with pytest.raises(tique.OperationalError, match="no replica") as caught:
        writer.connection.commit(wait_for="replica")
    assert caught.value.sqlstate == "55000"
    writer.connection.rollback()
    assert writer.rows("SELECT v FROM t WHERE id = 1") == [(0,)]


def test_only_a_shared_database_is_a_source(tmp_path):
    """P10."""
    with pytest.raises(tique.NotSupportedError, match="PostgreSQL"):
        Source(f"duckdb:///{tmp_path / 'one.duckdb'}", "replica", keep=1.0)


def test_a_timestamp_that_was_aborted_before(writer, opened):
    """P4: a server that was restarted hands it out again; the replica has passed it."""
    source = opened()
    for value in (1, 2, 3):
        writer.commit(f"UPDATE t SET v = {value} WHERE id = 1")
    newest = source.newest()
    source.resume(newest, newest)
    with pytest.raises(LogLostError, match="aborted"):
        source.resume(newest, newest - 1)


def test_a_restart_begins_behind_what_replicas_have(writer, opened):
    """P4: no commit gets a timestamp that a replica has durably as an aborted one."""
    source = opened()
    beyond = source.newest() + 5
    source.note_durable(beyond)
    engine = writer.database.engine
    with closing(engine.session()) as session:
        assert engine.last_commit(session) == beyond
