"""Many clients of PostgreSQL's sequencer at the same time."""

import random
import threading
import time
from contextlib import suppress

import psycopg
import pytest

from tests.effort import effort
from tests.postgresql.sequencers import OWNER, Caller, certify, packed

SECONDS = effort(1.5, 20.0)
THREADS = 6
KEYS = 8


def together(work, count=THREADS):
    """Run it in so many threads; the first failure is raised."""
    failures = []

    def run(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failures:
        raise error


@pytest.fixture
def log(service):
    service.main.execute(
        "CREATE TABLE tique.log (cts bigint, after bigint, key bigint)"
    )
    yield
    service.main.execute("DROP TABLE tique.log")


@pytest.mark.crash
def test_commits_aborts_and_terminated_backends(service, log):
    """P2, P3, P5, P6."""
    deadline = time.monotonic() + SECONDS
    looks = []

    def commit(caller, client, chance):
        sts = caller.sts_for(client)
        found = caller.execute("SELECT count(*) FROM tique.log WHERE cts <= %s", sts)
        looks.append((sts, found.fetchone()[0]))
        after = max(service.base, sts - chance.choice([0, 0, 1, 3]))
        key = chance.randrange(KEYS)
        with suppress(psycopg.Rollback), caller.connection.transaction():
            cts = certify(caller, client, key, after=after)
            if cts < 0:
                assert after < -cts
                return
            caller.execute("INSERT INTO tique.log VALUES (%s, %s, %s)", cts, after, key)
            if chance.random() < 0.2:
                raise psycopg.Rollback
            if chance.random() < 0.05:
                caller.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    def work(number):
        chance = random.Random(number)
        caller = Caller(service.form.url(OWNER))
        client = caller.join_client(60_000)
        while time.monotonic() < deadline:
            try:
                commit(caller, client, chance)
            except psycopg.OperationalError:
                caller = Caller(service.form.url(OWNER))
        caller.leave_client(client)
        caller.connection.close()

    together(work)
    main = service.main
    assert main.sts() == main.cts()
    assert main.doubtful() == 0
    rows = main.execute("SELECT cts, after, key FROM tique.log ORDER BY cts").fetchall()
    stamps = [cts for cts, _, _ in rows]
    assert len(set(stamps)) == len(stamps) > 20
    last = {}
    for cts, after, key in rows:
        assert last.get(key, 0) <= after < cts
        last[key] = cts
    for sts, count in looks:
        assert sum(cts <= sts for cts in stamps) == count


@pytest.mark.crash
def test_barriers_among_commits(service, log):
    """P2, P3, P6: also those of clients that die."""
    deadline = time.monotonic() + SECONDS
    missed = []

    def work(number):
        chance = random.Random(number)
        caller = Caller(service.form.url(OWNER))
        client = caller.join_client(60_000)
        while time.monotonic() < deadline:
            kind = chance.random()
            sts = caller.sts_for(client)
            if kind < 0.8:
                with caller.connection.transaction():
                    cts = certify(caller, client, number, after=sts)
                    if cts > 0:
                        caller.execute("INSERT INTO tique.log VALUES (%s)", cts)
                if cts < 0 and not caller.wait(-cts, 10_000):
                    fence(caller)
                continue
            barrier = caller.next_cts(client)
            if kind < 0.9:
                while not caller.wait(barrier - 1, 10_000):
                    fence(caller)
                # All other clients have to wait for it.
                before = caller.execute("SELECT max(cts) FROM tique.log").fetchone()[0]
                time.sleep(0.005)
                after = caller.execute("SELECT max(cts) FROM tique.log").fetchone()[0]
                if before != after:
                    missed.append((barrier, before, after))
                caller.finish(client, barrier)
            else:
                caller.leave_client(client)
                client = caller.join_client(60_000)
        caller.leave_client(client)
        caller.connection.close()

    def fence(caller):
        if doubtful := caller.doubtful():
            # Another one may be faster.
            with suppress(psycopg.DatabaseError):
                caller.fence(doubtful)

    together(work)
    while service.main.doubtful():
        fence(service.main)
    assert missed == []
    assert service.main.sts() == service.main.cts() > service.base + 20


def test_no_snapshot_is_overtaken_by_lambda(service):
    """P7."""
    deadline = time.monotonic() + SECONDS / 2
    newest = [0]

    def work(number):
        caller = Caller(service.form.url(OWNER))
        client = caller.join_client(60_000)
        while time.monotonic() < deadline:
            if number == 0:
                stable = caller.stable()
                assert stable >= newest[0]
                newest[0] = stable
            elif number == 1:
                sts = caller.sts_for(client)
                assert caller.certify(client, sts, packed(number)) > 0
            else:
                txid, sts = caller.row("begin_transaction", client)
                for _ in range(random.Random(sts).randrange(3)):
                    assert newest[0] <= sts
                    sts = caller.sts_for(client)
                    caller.advance_transaction(client, txid, sts)
                assert newest[0] <= sts
                caller.end_transaction(client, txid)
        caller.leave_client(client)
        caller.connection.close()

    together(work)
    assert newest[0] > service.base
