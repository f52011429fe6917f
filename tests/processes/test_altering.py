"""P1, P3, P9: a table is altered again and again while other processes write to it."""

from __future__ import annotations

import time

import pytest

import tique
from tests.effort import effort
from tests.processes.children import ChildProcess

ROUNDS = effort(4, 60)
PATIENCE = 60.0


def altered(connection, change):
    """Run a change until no snapshot is in its way; how often it was refused."""
    refused = 0
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute(f"ALTER TABLE counter {change}")
        except tique.OperationalError:
            connection.rollback()
            refused += 1
            assert time.monotonic() < deadline, change
        else:
            connection.commit()
            return refused


@pytest.mark.slow
@pytest.mark.crash
def test_no_increment_is_lost(shared_engine):
    connection = shared_engine.connect(checkpoint_age=0.2)
    connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO counter VALUES (1, 0), (2, 0)")
    connection.commit()
    children = [
        ChildProcess("tests.processes.altering_child", shared_engine.url, row)
        for row in (1, 2)
    ]
    try:
        for child in children:
            child.await_lines("counting")
        for number in range(ROUNDS):
            altered(connection, f"ADD COLUMN x{number} INTEGER DEFAULT {number}")
            found = connection.execute(f"SELECT x{number} FROM counter").fetchall()
            connection.commit()
            assert found == [(number,)] * 2
            time.sleep(0.1)
            altered(connection, f"RENAME COLUMN x{number} TO y")
            altered(connection, "DROP COLUMN y")
    finally:
        for child in children:
            child.end()
    assert [child.of_kind("unexpected") for child in children] == [[], []]
    counted = [int(child.of_kind("counted")[0][0]) for child in children]
    query = "SELECT v FROM counter ORDER BY id"
    assert [v for (v,) in connection.execute(query).fetchall()] == counted
    connection.commit()
    connection.checkpoint()
    shared_engine.close()
    assert [v for (v,) in shared_engine.native().execute(query).fetchall()] == counted
