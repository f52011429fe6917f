"""The extension's functions: the promises of its own form of the sequencer."""

from contextlib import closing

import pytest
from psycopg import errors

from tests.plugins.postgresql import create_extension, in_database
from tests.udfs.postgresql.calls import (
    GONE,
    LONG,
    REFUSED,
    UNRECOVERED,
    A,
    B,
    C,
    ask,
    connect,
    refused,
)


def test_every_function_says_what_it_does_and_is_for_nobody(connection):
    """P11: no ordinary role may move a timestamp."""
    rows = connection.execute(
        """SELECT proname, obj_description(p.oid, 'pg_proc'), provolatile::text,
                  proparallel::text, proisstrict, proacl::text
           FROM pg_proc p WHERE pronamespace = 'tique'::regnamespace"""
    ).fetchall()
    assert {row[0] for row in rows} == {
        *("ready", "recover", "join_client", "renew_client", "leave_client"),
        *("begin_transaction", "advance_transaction", "end_transaction", "sts_for"),
        *("certify", "next_cts", "finish", "abort", "wait", "sts", "cts", "lambda"),
        *("clients", "active", "keys", "doubtful", "doubts", "fence", "forget_fences"),
        *("holds", "limit_transaction", "open_locker", "close_locker"),
        *("interrupt_locker", "lock", "unlock", "expect_free"),
    }
    for name, comment, *properties in rows:
        assert comment.endswith("."), name
        assert properties == ["v", "u", True, "{tique=X/tique}"], name


def test_an_ordinary_role_is_refused_until_it_is_granted(url, connection):
    """P11."""
    connection.execute("CREATE ROLE reader LOGIN")
    connection.execute("GRANT USAGE ON SCHEMA tique TO reader")
    connection.execute("SET ROLE reader")
    try:
        for call in ("sts()", "recover(1)", "join_client(1)", "fence(1)", "ready()"):
            with pytest.raises(errors.InsufficientPrivilege):
                connection.execute(f"SELECT tique.{call}")
        connection.execute("RESET ROLE")
        connection.execute("GRANT EXECUTE ON FUNCTION tique.sts() TO reader")
        connection.execute("SET ROLE reader")
        assert ask(connection, "sts") >= 100
    finally:
        connection.execute("RESET ROLE")
        connection.execute("DROP OWNED BY reader")
        connection.execute("DROP ROLE reader")


def test_snapshots_of_a_client(connection, client):
    """P7: lambda is behind every snapshot."""
    txid, sts = ask(connection, "begin_transaction", client)
    assert sts == ask(connection, "sts") == ask(connection, "lambda")
    assert ask(connection, "active") == 1
    cts = ask(connection, "certify", client, sts, A)
    assert ask(connection, "begin_transaction", client) == (txid + 1, cts)
    assert ask(connection, "lambda") == sts
    ask(connection, "advance_transaction", client, txid, cts)
    assert ask(connection, "lambda") == cts
    with refused(REFUSED, "tique.advance_transaction: it is not known"):
        ask(connection, "advance_transaction", client, txid, sts)
    ask(connection, "end_transaction", client, txid)
    ask(connection, "end_transaction", client, txid)
    ask(connection, "end_transaction", client, txid + 1)
    assert ask(connection, "active") == 0


def test_a_row_or_its_columns(connection, client):
    sts = ask(connection, "sts")
    assert connection.execute(
        "SELECT (tique.sts_for(%s)).sts", (client,)
    ).fetchone() == (sts,)
    (text,) = connection.execute("SELECT tique.sts_for(%s)", (client,)).fetchone()
    assert text[0] in (sts, str(sts))


def test_transaction_ids_go_on_behind_every_earlier_life(connection, client):
    txid, _ = ask(connection, "begin_transaction", client)
    (now,) = connection.execute(
        "SELECT extract(epoch FROM now() - timestamptz '2000-01-01 UTC') * 1000000"
    ).fetchone()
    assert now - 3_600_000_000 < txid < now
    ask(connection, "end_transaction", client, txid)


def test_the_first_to_certify_wins(connection, client):
    """P3."""
    after = ask(connection, "sts")
    cts = ask(connection, "certify", client, after, A + B)
    assert cts == after + 1 == ask(connection, "sts")
    assert ask(connection, "certify", client, after, C + B) == -cts
    assert ask(connection, "certify", client, after, C) == cts + 1
    assert ask(connection, "keys") >= 3


def test_a_barrier_outlives_its_transaction_and_becomes_doubtful(connection, client):
    """P6."""
    after = ask(connection, "sts")
    with connection.transaction(force_rollback=True):
        cts = ask(connection, "next_cts", client)
    assert ask(connection, "certify", client, after, A) == -cts
    assert ask(connection, "finish", client, cts) == cts
    second = ask(connection, "join_client", LONG)
    cts = ask(connection, "next_cts", second)
    assert ask(connection, "doubtful") == 0
    ask(connection, "leave_client", second)
    assert ask(connection, "doubtful") == cts
    assert ask(connection, "wait", cts, LONG) is False
    ask(connection, "fence", cts)
    ask(connection, "fence", cts)
    assert ask(connection, "doubtful") == 0
    sts, fences = ask(connection, "sts_for", client)
    assert (sts, fences[-1]) == (cts, cts)
    assert fences == sorted(fences)
    later = ask(connection, "next_cts", client)
    assert ask(connection, "abort", client, later) == later


def test_what_the_core_refuses_says_what_to_do(connection, client):
    with refused(REFUSED, "tique.recover: it is in use"):
        ask(connection, "recover", 10**9)
    with refused(REFUSED, "tique.recover: it is not known"):
        ask(connection, "recover", -1)
    with refused(REFUSED, "tique.certify: it is not known"):
        ask(connection, "certify", client, ask(connection, "sts") + 1, A)
    with refused(REFUSED, "tique.certify: a key has 16 bytes"):
        ask(connection, "certify", client, 0, b"short")
    with refused(REFUSED, "tique.fence: it is not known"):
        ask(connection, "fence", ask(connection, "cts") + 1)
    with refused(GONE, "tique.begin_transaction: fenced"):
        ask(connection, "begin_transaction", client ^ 1)
    assert ask(connection, "sts_for", None) == (None, None)


def test_two_databases_do_not_see_each_other(postgresql_cluster, connection, client):
    postgresql_cluster.run("createdb", "neighbour")
    neighbour = in_database(postgresql_cluster.url, "neighbour")
    create_extension(neighbour)
    with closing(connect(neighbour)) as there:
        assert ask(there, "ready") is False
        with refused(UNRECOVERED, "tique.sts: recovery has not run"):
            ask(there, "sts")
        ask(there, "recover", 5)
        with refused(GONE, "fenced"):
            ask(there, "sts_for", client)
        assert ask(there, "sts") == 5
        assert ask(there, "clients") == 0
    assert ask(connection, "sts") >= 100
