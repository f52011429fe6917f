"""Servers that commands start: with the extension or without, in any installation."""

import os
import signal
from contextlib import contextmanager
from threading import Timer

import psycopg
import pytest

from benchmarks.targets.cluster import ClusterError
from jepsen.systems.postgresql import PostgreSQL
from tests.plugins.postgresql import private_cluster
from tique_udfs import BuildError, pgxs

pytestmark = pytest.mark.usefixtures("bare_postgresql")


@contextmanager
def jepsen(options, folder):
    system = PostgreSQL("postgresql:" + options, folder)
    system.start({})
    try:
        yield system.url.partition("&sequencer")[0]
    finally:
        system.stop()


def extensions(url):
    with psycopg.connect(url) as connection:
        return connection.execute(
            "SELECT name FROM pg_available_extensions WHERE name IN ('tique', 'plpgsql') "
            "ORDER BY name"
        ).fetchall()


@pytest.mark.parametrize(
    ("options", "expected"),
    [("", ["plpgsql", "tique"]), ("?sequencer=plain", ["plpgsql"])],
)
def test_jepsen_sets_up_what_its_server_needs(options, expected, tmp_path):
    with jepsen(options, tmp_path) as url:
        assert [name for (name,) in extensions(url)] == expected


@pytest.mark.slow
def test_nothing_is_written_where_the_server_is_installed(bare_postgresql):
    installed = bare_postgresql.parents[3]
    before = set(installed.rglob("*"))
    with private_cluster() as cluster:
        with psycopg.connect(cluster.url) as connection:
            connection.execute("CREATE EXTENSION tique SCHEMA public")
        cluster.kill()
        cluster.start()
        assert len(extensions(cluster.url)) == 2
    assert set(installed.rglob("*")) == before


@pytest.mark.slow
def test_a_killed_server_comes_back_where_its_clients_look_for_it():
    """Also while a session that outlived the postmaster keeps the shared memory."""
    with private_cluster() as cluster:
        url = cluster.url
        session = psycopg.connect(url)
        orphan = session.info.backend_pid
        os.kill(orphan, signal.SIGSTOP)
        os.kill(cluster.pid, signal.SIGKILL)
        cluster.kill()
        ending = Timer(1.0, os.kill, (orphan, signal.SIGKILL))
        ending.start()
        assert cluster.start() == url
        ending.join()
        assert "still in use" in cluster.log.read_text()
        with psycopg.connect(url) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        session.close()


def test_an_extension_that_cannot_be_compiled_is_told(monkeypatch):
    def fail(**_):
        raise BuildError("no make")

    monkeypatch.setattr(pgxs, "build", fail)
    with pytest.raises(ClusterError, match="no make"), private_cluster():
        pass
