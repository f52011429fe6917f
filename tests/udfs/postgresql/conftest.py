"""A database with the extension, and clients of its sequencer."""

from contextlib import closing

import pytest

from tests.plugins.postgresql import create_extension, in_database
from tests.udfs.postgresql.calls import LONG, ask, connect


@pytest.fixture(scope="session")
def url(postgresql_cluster):
    """A database whose sequencer is in service."""
    postgresql_cluster.run("createdb", "extension")
    url = in_database(postgresql_cluster.url, "extension")
    create_extension(url)
    with closing(connect(url)) as connection:
        ask(connection, "recover", 100)
        connection.execute("CREATE TABLE log (cts bigint PRIMARY KEY)")
    return url


@pytest.fixture
def connection(url):
    """A connection that no other part of the test uses."""
    with closing(connect(url)) as connection:
        yield connection


@pytest.fixture
def other(url):
    with closing(connect(url)) as connection:
        yield connection


@pytest.fixture
def client(url):
    with closing(connect(url)) as connection:
        client = ask(connection, "join_client", LONG)
        yield client
        while cts := ask(connection, "doubtful"):
            ask(connection, "fence", cts)
        assert ask(connection, "sts") == ask(connection, "cts")
        ask(connection, "leave_client", client)
