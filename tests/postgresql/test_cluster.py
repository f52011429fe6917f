"""Servers that commands start: with the extension or without, whatever is installed."""

from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from jepsen.systems.postgresql import PostgreSQL
from tests.plugins.postgresql import private_cluster
from tique_backends.postgresql.cluster import ClusterError
from tique_udfs import BuildError, pgxs

pytestmark = pytest.mark.usefixtures("bare_postgresql")


@contextmanager
def jepsen(options):
    system = PostgreSQL("postgresql:" + options, Path("unused"))
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
def test_jepsen_sets_up_what_its_server_needs(options, expected):
    with jepsen(options) as url:
        assert [name for (name,) in extensions(url)] == expected


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


def test_an_extension_that_cannot_be_compiled_is_told(monkeypatch):
    def fail(**_):
        raise BuildError("no make")

    monkeypatch.setattr(pgxs, "build", fail)
    with pytest.raises(ClusterError, match="no make"), private_cluster():
        pass
