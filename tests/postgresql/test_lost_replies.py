"""P4, P5, P6: a connection is lost, or its process stops, while the server commits.

A trigger lets the server wait inside COMMIT, as a slow disk or a standby would.
"""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.portable import numbers
from tests.postgresql.committing_child import bulk, definition, small
from tests.processes.children import ChildProcess
from tests.sharing.playing import ROWS, Process, expect_nothing_unfinished
from tests.sharing.test_roles import let_in, natively
from tique_backends.errors import ConnectionLostError, ErrorKind
from tique_backends.postgresql.engine import PostgreSQLEngine
from tique_backends.postgresql.sessions.connection import Connection
from tique_backends.postgresql.sessions.presence import Presence, sessions

GATE = 4711
LEASE = 1.2


@pytest.fixture
def wires(monkeypatch):
    """Every connection that is made."""
    made, connect = [], psycopg.connect

    def remembered(*arguments, **options):
        made.append(connect(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(psycopg, "connect", remembered)
    return made


@pytest.fixture
def process(database, wires):
    started = []

    def start(role="tique"):
        url = database.url.replace("//tique:", f"//{role}:")
        started.append(Process(url, lease=LEASE))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def pair(process):
    first, second = process(), process()
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit(f"INSERT INTO t SELECT number, 0 FROM {numbers(ROWS)}")
    first.connection.checkpoint()
    return first, second


class Gate:
    """A transaction that commits an entry of the log waits here while it is closed."""

    def __init__(self, connection):
        self._connection = connection
        connection.execute(
            "CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"PERFORM pg_advisory_xact_lock_shared({GATE}); RETURN NULL; END $$"
        )
        connection.execute(
            "CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON tique.log "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait()"
        )
        connection.execute("SELECT pg_advisory_lock(%s)", (GATE,))

    def _pid(self, condition):
        query = f"SELECT pid FROM pg_locks WHERE {condition}"
        found = self._connection.execute(query).fetchone()
        return found and found[0]

    def arrival(self):
        """Wait for a transaction; the number of its backend."""
        return until(
            lambda: self._pid(
                f"objid = {GATE} AND locktype = 'advisory' AND NOT granted"
            )
        )

    def open(self):
        self._connection.execute("SELECT pg_advisory_unlock(%s)", (GATE,))

    def await_end(self, pid):
        until(lambda: not self._pid(f"pid = {pid}"))


def until(condition):
    deadline = time.monotonic() + 20
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return found


@pytest.fixture
def gate(database, pair):
    with closing(psycopg.connect(database.place, autocommit=True)) as connection:
        yield Gate(connection)


def cut(wires, pid):
    """As if the network were gone: neither side hears of the other."""
    (wire,) = [w for w in wires if not w.closed and w.info.backend_pid == pid]
    with socket.socket(fileno=os.dup(wire.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)


def seen(process):
    """The rows that were changed, and whether the table was made."""
    try:
        process.rows("SELECT id FROM mark")
        is_defined = True
    except tique.ProgrammingError:
        process.connection.rollback()
        is_defined = False
    return process.rows("SELECT sum(v) FROM t"), is_defined


NOTHING = [(0,)], False


@pytest.mark.parametrize("change", [small, bulk, definition])
def test_what_is_said_of_a_lost_commit_stays_true(process, pair, gate, wires, change):
    """P4, P5: nothing of it comes after it was called aborted."""
    first, second = pair
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(change, first)
        pid = gate.arrival()
        cut(wires, pid)
        with pytest.raises(tique.OperationalError):
            committing.result(20)
        gate.open()
        gate.await_end(pid)
    first.connection.rollback()
    for one in (first, second, process()):
        assert seen(one) == NOTHING
    second.commit("UPDATE t SET v = 5 WHERE id = 1")
    expect_nothing_unfinished(second)


def test_a_barrier_whose_reply_was_lost(process, pair, monkeypatch):
    """P6: it is not asked for again: no client would finish the first one."""
    first, second = pair
    ask, lost = Connection.ask, []

    def lossy(connection, sql, *arguments, **options):
        reply = ask(connection, sql, *arguments, **options)
        if "next_cts" in sql and not lost:
            lost.append(sql)
            connection.lose()
            raise ConnectionLostError(ErrorKind.OPERATIONAL, "gone")
        return reply

    monkeypatch.setattr(Connection, "ask", lossy)
    with pytest.raises(tique.OperationalError, match="connect again"):
        bulk(first)
    assert lost
    started = time.monotonic()
    second.commit("UPDATE t SET v = 5 WHERE id = 1")
    assert time.monotonic() - started < patience(3)
    expect_nothing_unfinished(second)
    assert seen(process()) == ([(5,)], False)


@pytest.mark.slow
@pytest.mark.parametrize("change", [bulk, definition])
def test_nobody_is_fenced_while_the_server_commits_for_him(process, pair, gate, change):
    """P5, P6: the client's versions would come after their removal."""
    first, second = pair
    first.database.timeline._stopping.set()
    first.database.timeline._thread.join()
    with ThreadPoolExecutor(2) as pool:
        committing = pool.submit(change, first)
        gate.arrival()
        other = pool.submit(second.commit, "INSERT INTO t VALUES (-1, 5)")
        with pytest.raises(TimeoutError):
            other.result(2 * LEASE)
        gate.open()
        other.result(20)
        with suppress(tique.Error):
            committing.result(20)
    expected = ([(ROWS + 5,)], False) if change is bulk else ([(5,)], True)
    for one in (second, process()):
        assert seen(one) == expected
    expect_nothing_unfinished(second)


@pytest.mark.slow
@pytest.mark.crash
def test_what_the_server_still_commits_is_not_aborted(
    monkeypatch, database, process, pair, gate
):
    """P4: no answer about a killed process's transaction becomes wrong later."""
    looking = pair[1]
    # A backend that waits for the disk cannot be ended.
    monkeypatch.setattr(Presence, "end", lambda *_: None)
    with ChildProcess(
        "tests.postgresql.committing_child", database.url, "small"
    ) as child:
        txid = int(child.await_lines("txid")[0])
        pid = gate.arrival()
        child.kill()
    # Long enough for the process to be missed.
    deadline = time.monotonic() + 2 * LEASE
    while time.monotonic() < deadline:
        assert looking.connection.outcome(txid) == "active"
    gate.open()
    gate.await_end(pid)
    assert looking.connection.outcome(txid) == "committed"
    assert seen(looking) == seen(process()) == ([(1,)], False)
    expect_nothing_unfinished(looking)


@pytest.fixture
def ordinary(database, process, pair):
    """A process that may end no session of the others."""
    let_in(database)
    natively(database, "GRANT ALL ON t TO ordinary")
    yield process("ordinary")
    database.begin_again()
    natively(database, "DROP OWNED BY ordinary", "DROP ROLE ordinary")


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("change", [bulk, definition])
@pytest.mark.parametrize("other", ["owner", "patient", "ordinary"])
def test_nobody_is_fenced_before_his_commit_is_over(
    request, monkeypatch, database, process, pair, gate, change, other
):
    """P5, P6: every reader sees all of a killed process's transaction, or nothing."""
    looking = pair[1]
    if other == "patient":
        # A backend that waits for the disk cannot be ended.
        monkeypatch.setattr(Presence, "end", lambda *_: None)
    elif other == "ordinary":
        looking = request.getfixturevalue("ordinary")
        for owners in pair:
            owners.close()
    with ChildProcess(
        "tests.postgresql.committing_child", database.url, change.__name__
    ) as child:
        pid = gate.arrival()
        child.kill()
    if other == "owner":
        gate.await_end(pid)
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(looking.commit, "INSERT INTO t VALUES (-1, 5)")
        with pytest.raises(TimeoutError):
            # It comes to the gate itself, or waits for the transaction that is there.
            committing.result(2 * LEASE)
        gate.open()
        gate.await_end(pid)
        committing.result(20)
    found = seen(looking)
    assert found[0] == [(5,)]
    assert seen(process()) == found
    expect_nothing_unfinished(looking)


@pytest.mark.parametrize("times", [1, 2])
def test_who_asks_what_became_of_its_commit_is_ended_too(
    monkeypatch, database, pair, gate, wires, times
):
    """P4, P6: others that give a process up end its sessions, also the latest ones."""
    first, second = pair
    asked, find = [], PostgreSQLEngine.find_commit

    def ended(engine, session, txid):
        asked.append(txid)
        if engine is first.database.engine and len(asked) <= times:
            mark = engine._presence.mark
            with closing(psycopg.connect(database.place)) as other:
                other.execute(
                    "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks "
                    f"WHERE pid IN ({sessions(mark)})"
                )
        return find(engine, session, txid)

    monkeypatch.setattr(PostgreSQLEngine, "find_commit", ended)
    # The second process would end one more, if its beat comes just then.
    monkeypatch.setattr(second.database.engine._presence, "end", lambda *_: None)
    with ThreadPoolExecutor(1) as pool:
        committing = pool.submit(small, first)
        cut(wires, gate.arrival())
        with pytest.raises(tique.OperationalError) as failed:
            committing.result(20)
        gate.open()
    assert len(asked) == times + 1
    assert failed.value.sqlstate == "08006"
    assert seen(second) == NOTHING
