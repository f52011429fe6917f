from __future__ import annotations

import pytest

from tests.differential import world
from tests.plugins.engine import DuckDB


@pytest.fixture(scope="session", params=[DuckDB], ids=lambda engine: engine.name)
def databases(request, tmp_path_factory):
    """Opens databases of one engine, each in a folder of its own."""
    opened = []

    def open_database():
        opened.append(request.param(tmp_path_factory.mktemp("differential")))
        return opened[-1]

    yield open_database
    for database in opened:
        database.close()


@pytest.fixture(scope="session")
def native(databases):
    """The bare engine, with the world in it."""
    connection = databases().native()
    world.fill_natively(connection)
    return connection


@pytest.fixture(scope="session", params=world.STATES)
def through_tique(request, databases):
    """The same world through tique, in each of its states.

    A savepoint ``start`` is set: a test goes back to it when it has changed anything.
    """
    connection = databases().connect(checkpoint="manual", paramstyle="qmark")
    world.fill(connection, request.param)
    connection.execute("SAVEPOINT start")
    return connection
