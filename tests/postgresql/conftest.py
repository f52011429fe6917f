"""The sequencer in its forms, roles, and a database beside one of psycopg alone."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import psycopg
import pytest

import tique
from tests.plugins.engine import PlainPostgreSQL, PostgreSQL, label
from tests.plugins.postgresql import in_database
from tests.postgresql.pairs import ROWS, TABLES, Pair
from tests.postgresql.privileges import Shop
from tests.postgresql.sequencers import INSTALLERS, OWNER, Form, Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.targets.cluster import Cluster


def _form(name: str, cluster: Cluster) -> Form:
    form = Form(name, cluster)
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        for sql, found in (
            (
                f"CREATE DATABASE {form.database}",
                "SELECT 1 FROM pg_database WHERE datname = %s",
            ),
            (
                f"CREATE ROLE {OWNER} LOGIN PASSWORD '{cluster.password}'",
                "SELECT 1 FROM pg_roles WHERE rolname = %s",
            ),
        ):
            name = sql.split()[2]
            if connection.execute(found, [name]).fetchone() is None:
                connection.execute(sql)
    form.install()
    return form


@pytest.fixture(scope="session")
def plain(postgresql_cluster: Cluster) -> Form:
    return _form("plain", postgresql_cluster)


@pytest.fixture(scope="session", params=INSTALLERS)
def installed(request: pytest.FixtureRequest, postgresql_cluster: Cluster) -> Form:
    if request.param == "plain":
        return request.getfixturevalue("plain")
    return _form(request.param, postgresql_cluster)


@pytest.fixture
def service(installed: Form) -> Iterator[Service]:
    opened = Service(installed)
    yield opened
    opened.close()


@pytest.fixture(params=[PostgreSQL, PlainPostgreSQL], ids=label)
def database(request):
    """An empty database, with either form of the sequencer."""
    opened = request.param.fresh(request)
    yield opened
    opened.close()


@pytest.fixture(params=(PostgreSQL, PlainPostgreSQL), ids=label)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A database whose owner manages two tables; ``reader`` and ``writer`` may use it."""
    opened = Shop(request.param.fresh(request))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def _pair(postgresql_cluster: Cluster) -> Iterator[Pair]:
    twins = "native_twin", "tique_twin"
    urls = [in_database(postgresql_cluster.url, name) for name in twins]
    for name in twins:
        postgresql_cluster.run("createdb", name)
    with (
        closing(psycopg.connect(urls[0])) as native,
        closing(tique.connect(urls[1])) as ours,
    ):
        for connection in (native, ours):
            for statement in (*TABLES, *ROWS):
                connection.execute(statement)
            connection.commit()
        yield Pair(native, ours)
    for name in twins:
        postgresql_cluster.run("dropdb", name)


@pytest.fixture
def pair(_pair: Pair) -> Pair:
    return _pair
