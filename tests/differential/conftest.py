from __future__ import annotations

import pytest

from tests.differential import world
from tests.plugins.engine import ENGINES, label


@pytest.fixture(scope="session", params=ENGINES, ids=label)
def lasting(request, tmp_path_factory):
    """One engine's database for the whole session."""
    with request.param.lasting(tmp_path_factory) as opened:
        yield opened


@pytest.fixture(scope="session")
def native(lasting, tmp_path_factory):
    """The bare engine, with the world in it."""
    with type(lasting).lasting(tmp_path_factory) as bare:
        connection = bare.native()
        world.fill_natively(bare, connection)
        yield connection


@pytest.fixture(scope="session", params=world.STATES)
def through_tique(request, lasting):
    """The same world through tique, in each of its states.

    A savepoint ``start`` is set: a test goes back to it when it has changed anything.
    """
    lasting.begin_again()
    connection = lasting.connect(checkpoint="manual", paramstyle="qmark")
    world.fill(lasting, connection, request.param)
    connection.execute("SAVEPOINT start")
    return connection
