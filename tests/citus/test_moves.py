"""A worker that dies between PREPARE and COMMIT PREPARED (P1, P2, P4)."""

from __future__ import annotations

import threading
import time
from contextlib import suppress

import pytest

import tique
from tests.citus.conftest import ROWS, one, run
from tests.effort import LONG
from tique_backends.postgresql.citus.sequencer import CitusSequencer

TIMES = 50 if LONG else 4
_SUM = "SELECT count(*), sum(balance) FROM account"
_JOIN = (
    "SELECT count(*), sum(a.balance) FROM account AS a JOIN account AS b "
    "ON a.id = b.balance + a.id - a.balance"
)


class Reader(threading.Thread):
    """Reads all the time; notes what it saw that no committed state has."""

    def __init__(self, url, states) -> None:
        super().__init__(daemon=True)
        self._url, self._states = url, states
        self.wrong = []
        self.reads = 0
        self._is_over = False

    def run(self) -> None:
        connection = None
        while not self._is_over:
            try:
                connection = connection or tique.connect(self._url)
                seen = one(connection, _SUM)
            except tique.Error:
                with suppress(tique.Error):
                    if connection is not None:
                        connection.close()
                connection = None
                time.sleep(0.05)
                continue
            self.reads += 1
            if seen not in self._states:
                self.wrong.append(seen)
        if connection is not None:
            with suppress(tique.Error):
                connection.close()

    def end(self) -> None:
        self._is_over = True
        self.join()


def changing(connection, change) -> bool | None:
    """Whether it is committed; None if that is not known."""
    try:
        change(connection)
    except tique.OutcomeUnknown:
        return None
    except tique.Error:
        with suppress(tique.Error):
            connection.rollback()
        return False
    return True


def bulk(connection):
    run(connection, "UPDATE account SET balance = balance + 1")


def drain(connection):
    run(connection, "UPDATE account SET balance = balance + 1 WHERE id <= 3000")
    with suppress(tique.Error):
        one(connection, _JOIN)


def fold(connection):
    run(connection, "UPDATE account SET balance = balance + 1 WHERE id <= 3000")
    with suppress(tique.Error):
        connection.checkpoint()


def hammer(servers, change, grown, times):
    """Change all the time while workers die; return what a reader saw wrongly, and reads."""
    total = 0
    states = {(ROWS, 0)}
    reader = Reader(servers.url, states)
    reader.start()
    fired = 0
    try:
        for number in range(times):
            worker = servers.workers[number % 2]
            proxy = servers.proxies[worker]
            back = (0.1, 1.0, 3.0)[number % 3]
            connection = tique.connect(servers.url)
            states.add((ROWS, total + grown))
            proxy.arm(
                b"COMMIT PREPARED",
                lambda worker=worker, back=back: servers.kill(worker, back),
                skips=number // 2 % 2,
            )
            done = changing(connection, change)
            proxy.disarm()
            fired += proxy.fired.is_set()
            servers.await_restarts()
            with suppress(tique.Error):
                connection.close()
            seen = settled(servers)
            expected = {True: {total + grown}, False: {total}}.get(
                done, {total, total + grown}
            )
            if seen != (ROWS, seen[1]) or seen[1] not in expected:
                reader.wrong.append((number, done, seen, total))
            total = seen[1]
    finally:
        reader.end()
    assert fired >= times / 2
    return reader.wrong, reader.reads


def settled(servers):
    """What a new process reads, when it can."""
    for _ in range(100):
        try:
            with tique.connect(servers.url) as connection:
                return one(connection, _SUM)
        except tique.Error:
            time.sleep(0.1)
    raise AssertionError("no process can read")


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    ("change", "grown"), [(bulk, ROWS), (drain, 3000), (fold, 3000)]
)
def test_a_worker_that_dies_in_its_commit(bank, change, grown):
    wrong, reads = hammer(bank, change, grown, TIMES)
    assert not wrong
    assert reads > TIMES
    # And all of it reaches storage.
    with tique.connect(bank.url) as connection:
        seen = one(connection, _SUM)
        connection.checkpoint()
    assert bank.ask(_SUM) == [seen]
    assert bank.ask("SELECT * FROM tique.moves") == []


def test_that_the_log_row_must_not_be_committed_with_the_shards(bank, monkeypatch):
    """It is seen where it is."""
    monkeypatch.setattr(CitusSequencer, "part", lambda *_: None)
    wrong, _ = hammer(bank, bulk, ROWS, 4)
    assert wrong
