"""The sequencer in its forms, for test bodies that must hold for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.plugins.engine import PlainPostgreSQL, PostgreSQL, label
from tests.postgresql.privileges import Shop
from tests.postgresql.sequencers import INSTALLERS, OWNER, Form, Service

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tique_backends.postgresql.cluster import Cluster


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


@pytest.fixture(params=(PostgreSQL, PlainPostgreSQL), ids=label)
def shop(request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A database whose owner manages two tables; ``reader`` and ``writer`` may use it."""
    opened = Shop(request.param.fresh(request))
    yield opened
    opened.close()
