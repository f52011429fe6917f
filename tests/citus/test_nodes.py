"""Workers that are down, added, and to which shards move, beside writers."""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.citus.conftest import ROWS, one, run
from tests.citus.test_moves import settled

_SUM = "SELECT count(*), sum(balance) FROM account"


def test_a_worker_that_is_down(bank, connect):
    """Commits of small writes go on; what needs its shards says 08006, and works again."""
    connection = connect()
    # The rows that are written to are in this process's memory.
    for number in range(1, 42):
        run(connection, f"UPDATE account SET balance = 0 WHERE id = {number}")
    bank.kill(bank.workers[0], back=None)
    try:
        for number in range(1, 41):
            run(connection, f"UPDATE account SET balance = 1 WHERE id = {number}")
        with pytest.raises(tique.OperationalError) as failure:
            one(connection, _SUM)
        assert failure.value.sqlstate.startswith("08")
        started = time.monotonic()
        with pytest.raises(tique.OperationalError):
            connection.checkpoint()
        assert time.monotonic() - started < 30
        run(connection, "UPDATE account SET balance = 1 WHERE id = 41")
    finally:
        bank.start(bank.workers[0])
    assert settled(bank) == (ROWS, 41)
    assert one(connection, _SUM) == (ROWS, 41)
    connection.checkpoint()
    assert bank.ask(_SUM) == [(ROWS, 41)]


class Writer(threading.Thread):
    """Transfers; how many were acknowledged, and errors."""

    def __init__(self, url) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.is_over = False
        self.done = 0
        self.wrong = []

    def run(self) -> None:
        with tique.connect(self._url) as connection:
            number = 0
            while not self.is_over:
                number = number % 999 + 1
                try:
                    run(
                        connection,
                        f"UPDATE account SET balance = balance - 1 WHERE id = {number}",
                        f"UPDATE account SET balance = balance + 1 WHERE id = {number + 1}",
                    )
                    self.done += 1
                    if number % 50 == 0 and (seen := one(connection, _SUM)) != (
                        ROWS,
                        0,
                    ):
                        self.wrong.append(seen)
                    if number % 100 == 0:
                        connection.checkpoint()
                except tique.Error as error:
                    connection.rollback()
                    if not isinstance(error, tique.SerializationError):
                        self.wrong.append(error)


@pytest.mark.parametrize("mode", ["force_logical", "block_writes"])
def test_shards_that_move(bank, mode):
    writer = Writer(bank.url)
    writer.start()
    try:
        time.sleep(1)
        for _ in range(3):
            ((shard, port),) = bank.ask(
                "SELECT shardid, nodeport FROM citus_shards WHERE table_name = "
                "'account'::regclass ORDER BY random() LIMIT 1"
            )
            ((target,),) = bank.ask(
                f"SELECT nodeport FROM pg_dist_node WHERE nodeport <> {port} AND groupid > 0"
            )
            bank.ask(
                f"SELECT citus_move_shard_placement({shard}, '127.0.0.1', {port}, "
                f"'127.0.0.1', {target}, shard_transfer_mode => '{mode}')"
            )
            time.sleep(0.5)
    finally:
        writer.is_over = True
        writer.join(60)
    assert not writer.wrong
    assert writer.done > 20
    with tique.connect(bank.url) as connection:
        connection.checkpoint()
    assert bank.ask(_SUM) == [(ROWS, 0)]
