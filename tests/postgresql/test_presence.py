"""P6: what a process shows of itself in the server, and what goes with it."""

from __future__ import annotations

import signal
import time

import pytest

import tique
from tests.plugins.engine import PlainPostgreSQL, PostgreSQL, label
from tests.portable import numbers
from tests.processes.children import ChildProcess

LEASE = 0.8


@pytest.fixture(params=[PostgreSQL, PlainPostgreSQL], ids=label)
def database(request):
    opened = request.param.fresh(request)
    yield opened
    opened.close()


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
        # It waits for whoever folds.
        assert connection.checkpoint() == 1
        assert time.monotonic() - started < LEASE + 3
        child.kill()


def test_a_session_that_idles_in_a_transaction_is_ended(database):
    """Its locks would hold up everybody's folds and reads."""
    connection = database.connect()
    session = connection._session
    ((seconds,),) = session.execute(
        "SELECT extract(epoch FROM "
        "current_setting('idle_in_transaction_session_timeout')::interval)"
    ).fetch_all()
    assert 0 < seconds <= 10


def test_a_definition_does_not_wait_long_for_a_result_that_is_read_slowly(database):
    """Everybody's commits wait with it."""
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
    assert time.monotonic() - started < 15
    other.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    assert len(rows.fetchall()) == 4999
    other.execute("DROP TABLE t")
