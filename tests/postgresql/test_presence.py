"""P6: a process's presence in the server, and the locks that go with it."""

from __future__ import annotations

import signal
import time
from contextlib import closing

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.portable import numbers
from tests.processes.children import ChildProcess
from tique_backends.postgresql.sessions.connection import Connection

pytestmark = pytest.mark.both_sequencers

LEASE = 0.8


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_nobody_waits_long_for_a_process_that_was_about_to_fold(database, number):
    connection = database.connect(lease=LEASE, checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    with ChildProcess("tests.postgresql.holding_child", database.url, LEASE) as child:
        child.await_lines("holding")
        child.signal(number)
        started = time.monotonic()
        # It waits for the process that folds.
        assert connection.checkpoint() == 1
        assert time.monotonic() - started < LEASE + patience(3)
        child.kill()


def test_a_session_that_idles_in_a_transaction_is_ended(database):
    """Its locks would hold up all processes' folds and reads."""
    connection = database.connect()
    session = connection._execution.session
    ((seconds,),) = session.execute(
        "SELECT extract(epoch FROM "
        "current_setting('idle_in_transaction_session_timeout')::interval)"
    ).fetch_all()
    assert 0 < seconds <= 10


@pytest.mark.slow
def test_a_definition_does_not_wait_long_for_a_result_that_is_read_slowly(database):
    """All processes' commits wait with it."""
    reader = database.connect(autocommit=True)
    reader.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    reader.execute(f"INSERT INTO t SELECT number FROM {numbers(5000)}")
    reader.checkpoint()
    rows = reader.execute("SELECT id, repeat('x', 2000) FROM t")
    assert rows.fetchone() is not None
    other = database.connect()
    started = time.monotonic()
    with pytest.raises(tique.OperationalError) as refused:
        other.execute("DROP TABLE t")
    assert refused.value.sqlstate == "55P03"
    assert time.monotonic() - started < patience(15)
    other.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    assert len(rows.fetchall()) == 4999
    other.execute("DROP TABLE t")


def test_a_connection_that_is_ended_again_and_again_is_replaced(monkeypatch, database):
    """P4, P6: a process is given up until none of its sessions is left."""
    presence = database.connect()._database.engine._presence
    ended, ask = [], Connection.ask

    def asked_when_ended(connection, sql, *arguments, **options):
        if sql == "SELECT 1" and len(ended) < 2:
            ended.append(connection.pid)
            with closing(psycopg.connect(database.place)) as other:
                other.execute(
                    "SELECT pg_terminate_backend(%s, 5000)", (connection.pid,)
                )
        return ask(connection, sql, *arguments, **options)

    monkeypatch.setattr(Connection, "ask", asked_when_ended)
    assert presence.ask("SELECT 1") == [(1,)]
    assert len(set(ended)) == 2
