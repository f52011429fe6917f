"""The coordinator and the workers come back (P4)."""

from __future__ import annotations

import time
from threading import Event, Thread

import pytest

import tique
from jepsen.systems.postgresql import kill_all
from tests.citus.conftest import ROWS, one, run
from tique_backends.names import cache_name
from tique_backends.postgresql.citus import moves

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


def test_that_a_drain_that_was_undone_meanwhile_is_not_noted(
    bank, connect, monkeypatch
):
    """Its client was taken for dead when all but the last step was done."""
    connection = connect(checkpoint_age=1000.0)
    run(connection, "UPDATE account SET balance = 1 WHERE id <= 100")
    database = connection._database
    engine = database.engine
    (table,) = [t for t in database.catalog if t.name == "account"]
    sessions = [engine.session(), engine.session()]
    is_settled, is_undone = Event(), Event()
    owner = Thread(target=engine.replay, args=(sessions[0], table), daemon=True)
    genuine, settled = moves.settle_in, []

    def settle_in(session):
        genuine(session)
        if session is sessions[0] and not is_settled.is_set():
            is_settled.set()
            assert is_undone.wait(60)
        elif session is sessions[1]:
            settled.append(session)
            if len(settled) == 2:
                is_undone.set()
                owner.join(30)

    monkeypatch.setattr(moves, "settle_in", settle_in)
    monkeypatch.setattr(moves.Moves, "_is_live", lambda *_: False)
    owner.start()
    assert is_settled.wait(30)
    engine._moves.complete(sessions[1], table)
    for session in sessions:
        session.close()
    assert is_undone.is_set()
    assert not owner.is_alive()
    assert bank.ask(f"SELECT count(*) FROM {cache_name(table)}") == [(100,)]
