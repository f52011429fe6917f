"""A source on each server, and replicas of it."""

from __future__ import annotations

import pytest

import tique


@pytest.fixture
def target(tmp_path):
    """The URL of a file that is not there yet."""
    return f"duckdb:///{tmp_path / 'copy.duckdb'}"


@pytest.fixture
def replicate(shared_engine, target):
    """Replicate the source; every replication is stopped at the end."""
    started = []

    def start(**options):
        source = options.pop("source", shared_engine.url)
        place = options.pop("target", target)
        started.append(tique.replicate(source, place, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()


@pytest.fixture
def reading(target):
    """Connect to the replica; every connection is closed at the end."""
    opened = []

    def connect(**options):
        opened.append(tique.connect(target, autocommit=True, **options))
        return opened[-1]

    yield connect
    for one in opened:
        one.close()


@pytest.fixture
def source(shared_engine):
    """A connection to the source, which has a table of accounts."""
    connection = shared_engine.connect()
    connection.execute(
        "CREATE TABLE account (id INTEGER PRIMARY KEY, owner VARCHAR(20), balance INTEGER)"
    )
    connection.execute("INSERT INTO account VALUES (1, 'ada', 10), (2, 'bob', 20)")
    connection.commit()
    return connection
