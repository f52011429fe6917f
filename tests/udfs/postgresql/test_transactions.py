"""Timestamps that end with the PostgreSQL transaction in which they were taken."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest
from psycopg import errors

from tests.udfs.postgresql.calls import (
    GONE,
    REFUSED,
    A,
    B,
    C,
    ask,
    refused,
    wait_until,
)


def test_what_is_under_way_stops_sts_and_wins(connection, other, client):
    after = ask(connection, "sts")
    with connection.transaction():
        cts = ask(connection, "certify", client, after, A)
        assert ask(other, "sts") == after
        assert ask(other, "certify", client, after, A) == -cts
        assert ask(other, "certify", client, after, B) == cts + 1
        assert ask(other, "wait", cts, 0) is False
        for function in ("finish", "abort"):
            with refused(REFUSED, "it is not known"):
                ask(other, function, client, cts)
        with refused(REFUSED, "it is in use"):
            ask(other, "fence", cts)
    assert ask(other, "sts") == cts + 1
    assert ask(other, "wait", cts, 0) is True


def test_several_commits_in_one_transaction(connection, other, client):
    after = ask(connection, "sts")
    with connection.transaction():
        taken = [
            ask(connection, "certify", client, after, bytes([number]) * 16)
            for number in range(40)
        ]
        assert ask(other, "sts") == after
    assert taken == list(range(after + 1, after + 41))
    assert ask(other, "sts") == taken[-1]


def test_a_rollback_takes_the_keys_back(connection, client):
    after = ask(connection, "sts")
    with connection.transaction(force_rollback=True):
        cts = ask(connection, "certify", client, after, A)
    assert ask(connection, "sts") == cts
    assert ask(connection, "certify", client, after, A) == cts + 1


def test_a_savepoint_that_is_rolled_back_takes_its_own_back(connection, other, client):
    after = ask(connection, "sts")
    with connection.transaction():
        first = ask(connection, "certify", client, after, A)
        with connection.transaction(force_rollback=True):
            with connection.transaction():
                second = ask(connection, "certify", client, after, B)
            assert ask(other, "certify", client, after, B) == -second
        assert ask(other, "certify", client, after, B) == second + 1
        with connection.transaction():
            third = ask(connection, "certify", client, after, C)
        with connection.transaction(force_rollback=True):
            ask(connection, "sts")
        assert ask(other, "certify", client, after, A) == -first
        assert ask(other, "certify", client, after, C) == -third
        assert ask(other, "sts") == after
    assert ask(other, "sts") == third
    assert ask(other, "certify", client, after, A + C) == -first


def test_an_error_that_a_function_catches(connection, client):
    after = ask(connection, "sts")
    connection.execute(
        f"""DO $$ BEGIN
            PERFORM tique.certify({client}, {after}, '\\x{A.hex()}');
            BEGIN
                PERFORM tique.certify({client}, {after}, '\\x{B.hex()}');
                RAISE division_by_zero;
            EXCEPTION WHEN division_by_zero THEN END;
        END $$"""
    )
    assert ask(connection, "sts") == after + 2
    assert ask(connection, "certify", client, after, A) == -(after + 1)
    assert ask(connection, "certify", client, after, B) == after + 3


def test_a_commit_that_fails_is_an_abort(connection, client):
    connection.execute(
        "CREATE TEMP TABLE late (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)"
    )
    after = ask(connection, "sts")
    connection.execute("BEGIN")
    ask(connection, "certify", client, after, A)
    connection.execute("INSERT INTO late VALUES (1), (1)")
    with pytest.raises(errors.UniqueViolation):
        connection.execute("COMMIT")
    assert ask(connection, "certify", client, after, A) == after + 2


@pytest.mark.parametrize("how", ["terminate", "disconnect", "cancel", "time limit"])
def test_a_transaction_that_is_ended_from_outside(connection, url, client, how):
    """No client is left waiting for it, and its keys are free."""
    after = ask(connection, "sts")
    with closing(psycopg.connect(url)) as doomed:
        ask(doomed, "certify", client, after, A)
        assert ask(connection, "sts") == after
        if how == "terminate":
            connection.execute(
                "SELECT pg_terminate_backend(%s)", (doomed.info.backend_pid,)
            )
        elif how == "disconnect":
            doomed.close()
        elif how == "time limit":
            doomed.execute("SET statement_timeout = 50")
            with pytest.raises(errors.QueryCanceled):
                doomed.execute("SELECT pg_sleep(60)")
        else:
            with ThreadPoolExecutor(1) as pool:
                asleep = pool.submit(doomed.execute, "SELECT pg_sleep(60)")
                time.sleep(0.1)
                doomed.cancel_safe()
                with pytest.raises(errors.QueryCanceled):
                    asleep.result()
        wait_until(lambda: ask(connection, "sts") == after + 1)
    assert ask(connection, "certify", client, after, A) == after + 2


def test_a_transaction_with_a_timestamp_cannot_be_prepared(connection, client):
    after = ask(connection, "sts")
    connection.execute("BEGIN")
    ask(connection, "certify", client, after, A)
    with pytest.raises(errors.FeatureNotSupported, match=r"tique\.certify"):
        connection.execute("PREPARE TRANSACTION 'x'")
    assert ask(connection, "sts") == after + 1
    connection.execute("BEGIN")
    connection.execute("PREPARE TRANSACTION 'x'")
    connection.execute("ROLLBACK PREPARED 'x'")


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_the_end_of_a_lease_does_not_touch_what_postgresql_ends(
    connection, other, client, ending
):
    """P6: neither lost nor doubtful, with any fate of its client."""
    after = ask(connection, "sts")
    brief = ask(connection, "join_client", 100)
    connection.execute("BEGIN")
    cts = ask(connection, "certify", brief, after, A)
    connection.execute("INSERT INTO log VALUES (%s)", (cts,))
    time.sleep(0.15)
    assert ask(other, "doubtful") == 0
    with refused(GONE, "tique.sts_for: fenced: the client's lease ran out"):
        ask(other, "sts_for", brief)
    assert ask(other, "sts") == after
    connection.execute(ending)
    assert ask(other, "sts") == cts
    rows = other.execute("SELECT cts FROM log WHERE cts = %s", (cts,)).fetchall()
    assert rows == ([(cts,)] if ending == "COMMIT" else [])
    again = ask(other, "certify", client, after, A)
    assert again == (-cts if ending == "COMMIT" else cts + 1)
    with refused(GONE, "tique.certify: fenced"):
        ask(connection, "certify", brief, cts, B)
