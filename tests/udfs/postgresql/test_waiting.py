"""Waiting for a timestamp, inside the server."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from psycopg import errors

from tests.effort import patience
from tests.udfs.postgresql.calls import (
    LONG,
    A,
    ask,
    wait_until,
)


def test_waiting_ends_when_the_transaction_does(connection, other, client):
    connection.execute("BEGIN")
    cts = ask(connection, "certify", client, ask(connection, "sts"), A)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, other, "wait", cts, LONG)
        wait_until(lambda: _is_waiting(connection, other))
        connection.execute("COMMIT")
        assert waiting.result(timeout=20) is True


def test_waiting_ends_when_a_lease_does(connection, other, client):
    brief = ask(connection, "join_client", 300)
    cts = ask(connection, "next_cts", brief)
    started = time.monotonic()
    assert ask(other, "wait", cts, LONG) is False
    assert time.monotonic() - started < patience(10)
    assert ask(other, "doubtful") == cts


def test_waiting_is_bounded(connection, client):
    cts = ask(connection, "cts") + 1
    started = time.monotonic()
    assert ask(connection, "wait", cts, 120) is False
    assert 0.12 <= time.monotonic() - started < patience(10)
    assert ask(connection, "wait", cts, -1) is False


@pytest.mark.parametrize("how", ["time limit", "cancel", "terminate"])
def test_waiting_can_be_interrupted(connection, other, client, how):
    cts = ask(connection, "cts") + 1
    pid = other.info.backend_pid
    if how == "time limit":
        other.execute("SET statement_timeout = 100")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(ask, other, "wait", cts, LONG)
        if how != "time limit":
            wait_until(lambda: _is_waiting(connection, other))
            stop = {"cancel": "pg_cancel_backend", "terminate": "pg_terminate_backend"}
            connection.execute(f"SELECT {stop[how]}(%s)", (pid,))
        expected = errors.AdminShutdown if how == "terminate" else errors.QueryCanceled
        with pytest.raises(expected):
            waiting.result(timeout=20)
    # A backend that left no longer sleeps there: the next commit must not need it.
    after = ask(connection, "sts")
    assert ask(connection, "certify", client, after, A) == after + 1


def _is_waiting(connection, other):
    return connection.execute(
        "SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = %s",
        (other.info.backend_pid,),
    ).fetchone()[0]
