"""The coordinator and the workers come back (P4)."""

from __future__ import annotations

import time

import pytest

import tique
from jepsen.systems.postgresql import kill_all
from tests.citus.conftest import ROWS, one, run

_SUM = "SELECT count(*), sum(balance) FROM account"


@pytest.mark.crash
@pytest.mark.parametrize("folds", [False, True])
def test_that_recovery_waits_for_no_client_of_before(bank, connect, folds):
    """It has left a move, and its row is there until recovery ends."""
    run(connect(), "UPDATE account SET balance = 1 WHERE id = 1")
    bank.ask(
        "INSERT INTO tique.moves SELECT t.id, 1, (SELECT max(client) FROM tique.clients), "
        f"t.folded, {folds} FROM tique.tables AS t "
        "JOIN pg_dist_partition ON logicalrelid = tique.guest_cache(t.id)::regclass"
    )
    coordinator = bank.cluster.coordinator
    kill_all(coordinator.pid)
    coordinator.kill()
    bank.start(coordinator)
    began = time.monotonic()
    with tique.connect(bank.url) as connection:
        assert time.monotonic() - began < 8
        assert one(connection, _SUM) == (ROWS, 1)
    assert bank.ask("SELECT * FROM tique.moves") == []


@pytest.mark.crash
def test_that_a_worker_that_dies_amid_a_statement_is_an_operational_error(
    bank, connect
):
    connection = connect()
    # The session is connected to the worker, and learns of its death by a statement.
    assert one(connection, _SUM) == (ROWS, 0)
    cursor = connection.cursor()
    cursor.execute(_SUM)
    worker = bank.workers[0]
    kill_all(worker.pid)
    worker.kill()
    with pytest.raises(tique.OperationalError):
        cursor.execute(_SUM)
    connection.rollback()
    bank.start(worker)
    assert one(connection, _SUM) == (ROWS, 0)
