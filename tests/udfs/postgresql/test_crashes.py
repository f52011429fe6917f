"""The extension when its server crashes, and when many backends use it at once."""

import os
import random
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import chain
from threading import Event

import psycopg
import pytest

from tests.plugins.postgresql import create_extension, private_cluster
from tests.udfs.postgresql.calls import (
    LONG,
    UNRECOVERED,
    ask,
    connect,
    refused,
    wait_until,
)

KEY = bytes(16)
WRITERS, READERS, ROUNDS = 6, 2, 150
BURST = 8000


@pytest.fixture(scope="module")
def server():
    # WAL that the commit itself does not flush is lost in a crash.
    with private_cluster(wal_writer_delay="10s") as cluster:
        create_extension(cluster.url)
        with closing(connect(cluster.url)) as connection:
            connection.execute("CREATE TABLE log (cts bigint PRIMARY KEY, key int)")
        yield cluster


@pytest.fixture
def cluster(server):
    """A server whose sequencer is not in service yet."""
    with closing(connect(server.url)) as connection:
        connection.execute("DELETE FROM log")
        is_ready = ask(connection, "ready")
    if is_ready:
        server.stop()
        server.start()
    return server


def recovered(url, sts):
    """A client of a sequencer that is in service behind sts."""
    with closing(connect(url)) as connection:
        ask(connection, "recover", sts)
        return ask(connection, "join_client", LONG)


def is_served(url):
    try:
        connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def assert_unrecovered(url, client):
    with closing(connect(url)) as connection:
        assert ask(connection, "ready") is False
        for function, *arguments in (
            ("sts",),
            ("certify", client, 0, KEY),
            ("join_client", LONG),
            ("wait", 1, 0),
        ):
            with refused(UNRECOVERED, f"tique.{function}: recovery has not run"):
                ask(connection, function, *arguments)


@pytest.mark.crash
def test_a_crash_of_the_server(cluster):
    """P8: nothing is served from before the crash; P1: and the commit is there."""
    client = recovered(cluster.url, 10)
    with closing(connect(cluster.url)) as connection:
        connection.execute("SET synchronous_commit = off")
        with connection.transaction():
            cts = ask(connection, "certify", client, 10, KEY)
            connection.execute("INSERT INTO log VALUES (%s, 0)", (cts,))
        assert ask(connection, "sts") == cts
        cluster.kill()
    cluster.start()
    assert_unrecovered(cluster.url, client)
    with closing(connect(cluster.url)) as connection:
        assert connection.execute("SELECT cts FROM log").fetchall() == [(cts,)]


@pytest.mark.crash
def test_a_crash_of_one_backend(cluster):
    """P8: the server begins anew, and so does the sequencer, though none restarted it."""
    client = recovered(cluster.url, 20)
    log = cluster.log.stat().st_size
    with closing(connect(cluster.url)) as victim:
        victim.execute("BEGIN")
        ask(victim, "certify", client, 20, KEY)
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        wait_until(lambda: "ready to accept" in cluster.log.read_text()[log:])
    wait_until(lambda: is_served(cluster.url))
    assert_unrecovered(cluster.url, client)
    with closing(connect(cluster.url)) as connection:
        ask(connection, "recover", 20)
        assert ask(connection, "sts") == ask(connection, "cts") == 20
        assert ask(connection, "clients") == 0


def test_a_standby_is_not_recovered(cluster):
    """P8: a standby may not have all commits yet."""
    cluster.stop()
    standby = cluster.folder / "data" / "standby.signal"
    standby.touch()
    cluster.start()
    with closing(connect(cluster.url)) as connection:
        with refused("TQ003", "tique.recover: the server is a standby"):
            ask(connection, "recover", 1)
        assert ask(connection, "ready") is False
    cluster.stop()
    standby.unlink()
    cluster.start()


def test_only_one_recovers(cluster):
    def recover(sts):
        with closing(connect(cluster.url)) as connection:
            try:
                ask(connection, "recover", sts)
            except psycopg.Error as error:
                return error.sqlstate
            return sts

    with ThreadPoolExecutor(8) as pool:
        done = set(pool.map(recover, range(8)))
    with closing(connect(cluster.url)) as connection:
        sts = ask(connection, "sts")
        assert ask(connection, "cts") == sts
    assert done == {sts, "TQ003"}


def write(url, client, number):
    """Certify again and again; the committed and the aborted timestamps."""
    chance = random.Random(number)
    committed, aborted = [], []
    with closing(connect(url)) as connection:
        for _ in range(ROUNDS):
            key = chance.randrange(20)
            commits = chance.random() < 0.7
            with connection.transaction(force_rollback=not commits):
                after = ask(connection, "sts")
                keys = key.to_bytes(16, "big")
                cts = ask(connection, "certify", client, after, keys)
                if cts > 0:
                    (committed if commits else aborted).append(cts)
                    connection.execute("INSERT INTO log VALUES (%s, %s)", (cts, key))
            if cts < 0:
                assert ask(connection, "wait", -cts, LONG) is True
    return committed, aborted


def read(url, stop):
    """Look again and again; by sts, the timestamps up to it whose rows are there."""
    seen = {}
    with closing(connect(url)) as connection:
        while not stop.is_set():
            sts = ask(connection, "sts")
            rows = connection.execute("SELECT cts FROM log WHERE cts <= %s", (sts,))
            seen[sts] = {cts for (cts,) in rows}
    return seen


def test_many_backends_certify_at_once(cluster):
    """P2, P3: no timestamp twice, none lost; all commits up to sts are visible."""
    client = recovered(cluster.url, 0)
    stop = Event()
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        readers = [pool.submit(read, cluster.url, stop) for _ in range(READERS)]
        try:
            done = list(pool.map(partial(write, cluster.url, client), range(WRITERS)))
        finally:
            stop.set()
        seen = [reader.result() for reader in readers]
    committed, aborted = (sorted(chain(*lists)) for lists in zip(*done, strict=True))
    with closing(connect(cluster.url)) as connection:
        last = ask(connection, "sts")
        assert last == ask(connection, "cts")
        rows = connection.execute("SELECT cts FROM log ORDER BY cts").fetchall()
    assert sorted(committed + aborted) == list(range(1, last + 1))
    assert aborted
    assert [cts for (cts,) in rows] == committed
    for snapshots in seen:
        assert len(snapshots) > 1
        for sts, visible in snapshots.items():
            assert visible == {cts for cts in committed if cts <= sts}


def test_many_backends_are_in_the_sequencer_at_once(cluster):
    """P3: the same without a pause between two calls, so that they truly meet."""
    client = recovered(cluster.url, 0)

    def take(number):
        with closing(connect(cluster.url)) as connection:
            rows = connection.execute(
                """SELECT tique.certify(%s, 0, decode(md5(%s || ' ' || i), 'hex'))
                   FROM generate_series(1, %s) AS i""",
                (client, str(number), BURST),
            )
            return [cts for (cts,) in rows]

    with ThreadPoolExecutor(WRITERS) as pool:
        taken = sorted(chain(*pool.map(take, range(WRITERS))))
    assert taken == list(range(1, WRITERS * BURST + 1))
    with closing(connect(cluster.url)) as connection:
        assert ask(connection, "sts") == ask(connection, "cts") == len(taken)
        assert ask(connection, "keys") == len(taken)
