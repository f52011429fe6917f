"""Transfers between hot accounts: the sum is constant in every snapshot (P1-P3, P7)."""

from __future__ import annotations

import random
import threading
import time

import pytest

import tique
from tests.effort import effort, patience

pytestmark = pytest.mark.one_duckdb

ACCOUNTS = 20
START = 1000


def create_accounts(connection):
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)")
    connection.execute(
        "CREATE TABLE transfer (thread INTEGER, number INTEGER, amount BIGINT, "
        "PRIMARY KEY (thread, number))"
    )
    connection.cursor().executemany(
        "INSERT INTO account VALUES (%s, %s)", [(i, START) for i in range(ACCOUNTS)]
    )
    connection.commit()


class Bank:
    """Writers, readers and checkpoints on one database for some seconds."""

    def __init__(self, engine, **options):
        self.engine = engine
        self.options = options
        self.errors = []
        self.committed = []
        self.conflicts = 0
        self.reads = 0
        self.checkpoints = 0
        self.longest = 0.0
        self.stop = threading.Event()

    def guarded(self, body, *arguments):
        try:
            body(*arguments)
        except BaseException as error:
            self.errors.append(error)
            self.stop.set()

    def writer(self, thread):
        chance = random.Random(thread)
        connection = self.engine.connect(**self.options)
        number = 0
        while not self.stop.is_set():
            number += 1
            source, target = chance.sample(range(ACCOUNTS), 2)
            amount = chance.randint(1, 10)
            started = time.monotonic()
            try:
                self.transfer(connection, source, target, amount)
                connection.execute(
                    "INSERT INTO transfer VALUES (%s, %s, %s)", (thread, number, amount)
                )
                connection.commit()
                self.committed.append((thread, number))
            except tique.SerializationError:
                self.conflicts += 1
            self.longest = max(self.longest, time.monotonic() - started)

    def transfer(self, connection, source, target, amount):
        for account, change in ((source, -amount), (target, amount)):
            (balance,) = connection.execute(
                "SELECT balance FROM account WHERE id = %s", (account,)
            ).fetchone()
            connection.execute(
                "UPDATE account SET balance = %s WHERE id = %s",
                (balance + change, account),
            )

    def reader(self):
        connection = self.engine.connect(**self.options)
        while not self.stop.is_set():
            by_scan = connection.execute("SELECT sum(balance) FROM account").fetchone()
            by_key = sum(
                connection.execute(
                    "SELECT balance FROM account WHERE id = %s", (i,)
                ).fetchone()[0]
                for i in range(ACCOUNTS)
            )
            again = connection.execute(
                "SELECT count(*), sum(balance) FROM account WHERE balance IS NOT NULL"
            ).fetchone()
            connection.commit()
            assert by_scan == (ACCOUNTS * START,)
            assert by_key == ACCOUNTS * START
            assert again == (ACCOUNTS, ACCOUNTS * START)
            self.reads += 1

    def checkpointer(self, interval):
        connection = self.engine.connect(**self.options)
        while not self.stop.wait(interval):
            connection.checkpoint()
            self.checkpoints += 1

    def run(self, *, seconds, writers, readers=2, interval=1.0, until=lambda: True):
        create_accounts(self.engine.connect(**self.options))
        threads = [
            threading.Thread(target=self.guarded, args=(self.writer, number))
            for number in range(writers)
        ]
        threads += [
            threading.Thread(target=self.guarded, args=(self.reader,))
            for _ in range(readers)
        ]
        threads.append(
            threading.Thread(target=self.guarded, args=(self.checkpointer, interval))
        )
        for thread in threads:
            thread.start()
        self.stop.wait(seconds)
        deadline = time.monotonic() + patience(10)
        while not until() and time.monotonic() < deadline and not self.errors:
            self.stop.wait(0.1)
        self.stop.set()
        for thread in threads:
            thread.join(patience(30))
            assert not thread.is_alive(), "a thread is stuck"
        if self.errors:
            raise self.errors[0]

    def check(self):
        connection = self.engine.connect(**self.options)
        rows = connection.execute("SELECT thread, number FROM transfer").fetchall()
        assert sorted(rows) == sorted(self.committed), "lost or duplicated transfers"
        total = connection.execute("SELECT sum(balance) FROM account").fetchone()
        assert total == (ACCOUNTS * START,)


@pytest.mark.parametrize("certifier", ["memory", "query"])
def test_bank(engine, certifier):
    bank = Bank(engine, certifier=certifier)

    def has_met_all():
        return len(bank.committed) > 10 and bank.reads > 5 and bank.checkpoints > 3

    bank.run(
        seconds=effort(2.5, 6),
        writers=8,
        interval=effort(0.2, 0.5),
        until=has_met_all,
    )
    bank.check()
    assert has_met_all()


@pytest.mark.slow
def test_bank_16_threads_for_long(engine):
    """Nothing lost, nothing doubled, no thread stuck, sums constant."""
    bank = Bank(engine)
    # Servers have banks of several processes besides.
    seconds = 25 if engine.name == "duckdb" else 12
    bank.run(seconds=effort(5, seconds), writers=16, interval=1.0)
    bank.check()
    assert bank.longest < patience(10)


def test_closed_and_collected_connections_do_not_hold_back_lambda(engine):
    """P6: a transaction that cannot end any more does not keep versions alive."""
    import gc

    keeper = engine.connect()
    create_accounts(keeper)
    sequencer = keeper._database.sequencer
    for forget in (lambda connection: connection.close(), lambda connection: None):
        connection = tique.connect(engine.url)
        connection.execute("SELECT * FROM account").fetchall()
        connection.execute("UPDATE account SET balance = 0 WHERE id = 1")
        keeper.execute("UPDATE account SET balance = balance WHERE id = 2")
        keeper.commit()
        keeper._database.timeline.catch_up()
        assert sequencer.stable() < sequencer.sts()
        forget(connection)
        del connection
        gc.collect()
        assert sequencer.stable() == sequencer.sts()
    keeper.checkpoint()
    assert all(v.is_empty for v in keeper._database.catalog.all_versions())
    deadline = time.monotonic() + 10
    while keeper._database.connections > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert keeper._database.connections == 1


def test_an_old_snapshot_reads_its_state_while_commits_and_checkpoints_pass(engine):
    """P1, P7: an open snapshot is untouched by commits and checkpoints after it."""
    writer = engine.connect()
    create_accounts(writer)
    old = engine.connect()
    before = old.execute("SELECT * FROM account ORDER BY id").fetchall()
    for round_number in range(20):
        for account in range(ACCOUNTS):
            writer.execute(
                "UPDATE account SET balance = %s WHERE id = %s",
                (round_number, account),
            )
        writer.execute("DELETE FROM account WHERE id = %s", (round_number,))
        writer.execute("INSERT INTO account VALUES (%s, 0)", (100 + round_number,))
        writer.commit()
        if round_number % 4 == 0:
            writer.checkpoint()
        assert old.execute("SELECT * FROM account ORDER BY id").fetchall() == before
        assert old.execute(
            "SELECT balance FROM account WHERE id = %s", (round_number,)
        ).fetchone() == (START,)
    assert old.execute("SELECT count(*) FROM account WHERE id >= 100").fetchone() == (
        0,
    )
    old.commit()
    assert old.execute("SELECT count(*) FROM account").fetchone() == (ACCOUNTS,)
