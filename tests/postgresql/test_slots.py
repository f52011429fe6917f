"""P6: a stranger that fills the server's connections, or a role's, stops nothing for good.

What needs another session fails at once and says who has them; what needs none goes on.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, closing, contextmanager, suppress

import psycopg
import pytest

import tique
from tests.effort import patience
from tests.plugins.postgresql import in_database, private_cluster
from tests.portable import numbers
from tests.sharing.playing import ROWS, Process
from tique_backends.errors import EngineError, ErrorKind

LONGEST = 15.0
LEASE = 6.0


@pytest.fixture(scope="module")
def crowded():
    """The URLs of the owner of schema tique and of a stranger, by the role's name."""
    with private_cluster(
        max_connections="16",
        superuser_reserved_connections="3",
        dynamic_shared_memory_type="mmap",
    ) as cluster:
        with closing(psycopg.connect(cluster.url, autocommit=True)) as connection:
            for role in ("keeper", "stranger"):
                connection.execute(
                    f"CREATE ROLE {role} LOGIN PASSWORD '{cluster.password}'"
                )
            connection.execute("CREATE DATABASE slots OWNER keeper")
        url = in_database(cluster.url, "slots")
        yield lambda role: url.replace("//tique:", f"//{role}:")


@contextmanager
def filled(url):
    """Sessions of a role, as many as it gets."""
    with ExitStack() as sessions:
        with suppress(psycopg.OperationalError):
            while True:
                session = psycopg.connect(url, application_name="crowd")
                sessions.enter_context(closing(session))
        yield


@pytest.fixture
def both(crowded):
    """Two processes of the owner's."""
    with ExitStack() as processes:
        found = []
        for _ in range(2):
            found.append(Process(crowded("keeper") + "?sequencer=plain"))
            processes.callback(found[-1].close)
        yield found


def expect_named(error, crowd):
    """The processes' own role may have all of its sessions before a crowd gets one."""
    assert error.sqlstate == "53300", error
    application = "crowd" if crowd == "stranger" else ""
    assert f"of role {crowd}, application '{application}" in str(error)


def small(process):
    process.commit("UPDATE t SET v = v + 1 WHERE id = 1")


def bulk(process):
    process.commit(f"UPDATE t SET v = v + 1 WHERE id <= {ROWS}")


def locking(process):
    process.run("SELECT v FROM t WHERE id = 1 FOR UPDATE")
    process.commit("UPDATE t SET v = v + 1 WHERE id = 1")


def another(process):
    with closing(process.another()) as connection:
        connection.execute("UPDATE t SET v = v + 1 WHERE id = 1")
        connection.commit()


WORK = {each.__name__: each for each in (small, bulk, locking, another)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["server", "role"])
def test_sessions_are_taken(crowded, both, kind):
    """Two processes live on, commit what needs no more sessions, and lose nothing."""
    process, second = both
    process.commit("DROP TABLE IF EXISTS t")
    process.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    process.commit(f"INSERT INTO t SELECT number, 0 FROM {numbers(ROWS + 100)}")
    by_hand = psycopg.connect(crowded("tique"), autocommit=True)
    with closing(by_hand):
        limit = 8 if kind == "role" else -1
        by_hand.execute(f"ALTER ROLE keeper CONNECTION LIMIT {limit}")
        crowd = "stranger" if kind == "server" else "keeper"
        done = refused = 0
        with filled(crowded(crowd)):
            for work in WORK.values():
                for each in both:
                    started = time.monotonic()
                    try:
                        work(each)
                        done += 1
                    except tique.OperationalError as error:
                        expect_named(error, crowd)
                        refused += 1
                        each.connection.rollback()
                    assert time.monotonic() - started < patience(LONGEST)
            assert refused > 0
            # It has no connection over which it could ask.
            with pytest.raises(tique.OperationalError, match="cannot connect"):
                Process(crowded("keeper") + "?sequencer=plain")
            # Their beats go on meanwhile.
            end = time.monotonic() + LEASE + 1
            while time.monotonic() < end:
                for each in both:
                    assert not each.database.timeline.is_lost
                time.sleep(0.1)
        by_hand.execute("ALTER ROLE keeper CONNECTION LIMIT -1")
    for each in both:
        assert each.rows("SELECT v FROM t WHERE id = 1") == [(done,)]
    for work in WORK.values():
        work(process)
    assert second.rows("SELECT v FROM t WHERE id = 1") == [(done + len(WORK),)]


def test_a_commit_that_was_never_sent_is_not_in_doubt(crowded, monkeypatch):
    """P4: its outcome is known, although nothing can be asked."""
    process = Process(crowded("keeper") + "?sequencer=plain")
    with closing(process):
        process.commit("DROP TABLE IF EXISTS t")
        process.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
        process.run("INSERT INTO t VALUES (1, 1)")

        def refuse(*_, **__):
            raise EngineError(ErrorKind.OPERATIONAL, "cannot connect")

        engine = process.database.engine
        with monkeypatch.context() as patch:
            patch.setattr(engine.shared, "append", refuse)
            patch.setattr(process.database.committer, "_recorded", refuse)
            with pytest.raises(tique.OperationalError) as caught:
                process.connection.commit()
        assert not isinstance(caught.value, tique.OutcomeUnknown)
        process.connection.rollback()
        process.commit("INSERT INTO t VALUES (1, 2)")
        assert process.rows("SELECT v FROM t") == [(2,)]
