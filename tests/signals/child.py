"""A process whose main thread is interrupted while it works.

    python -m tests.signals.child URL SCENARIO TIMES

Signals come TIMES in a row, each while it may still be busy with the one before. It
prints ``done`` with the number of interruptions if all was as it should be. Errors of
other threads go to standard error, and so does every error but KeyboardInterrupt in the
main thread.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress

import tique
from tests.portable import numbers

ROWS = 400
HEAVY = (
    "SELECT count(*) FROM t AS a CROSS JOIN t AS b WHERE mod(a.id * b.id, 7) = %s "
    "AND a.v <> b.id"
)
LOST = "08006"


def connect(url, **options):
    """With a lease that a busy machine leaves alone."""
    return tique.connect(url, lease=60.0, **options)


class Interrupter:
    """Sends SIGINT while the main thread works, until it arrives."""

    def __init__(self, seed, times):
        self.chance = random.Random(seed)
        self.times = times
        self.count = 0

    def until_interrupted(self, work):
        arrived = threading.Event()

        def send():
            time.sleep(self.chance.uniform(0.01, 0.15))
            for _ in range(self.times - 1):
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(self.chance.uniform(0, 0.005))
            while not arrived.is_set():
                os.kill(os.getpid(), signal.SIGINT)
                # One that arrives in a finalizer is lost.
                arrived.wait(5)

        sender = threading.Thread(target=send)
        with suppress(KeyboardInterrupt):
            sender.start()
            while True:
                work()
        self.count += 1
        while sender.is_alive():
            with suppress(KeyboardInterrupt):
                arrived.set()
                sender.join()


class Others:
    """Threads that go on meanwhile; any error that reaches them is a fault."""

    def __init__(self, url, work, count=2):
        self.stop = threading.Event()
        self.faults = []
        self.rounds = 0
        self.threads = [
            threading.Thread(target=self.run, args=(url, work, number))
            for number in range(count)
        ]

    def run(self, url, work, number):
        try:
            with connect(url) as connection:
                turn = 0
                while not self.stop.is_set():
                    turn += 1
                    work(connection, number, turn)
                    self.rounds += 1
        except BaseException:
            self.faults.append(traceback.format_exc())

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.faults, "\n".join(self.faults)
        assert self.rounds


def expect_lost(error):
    if error.sqlstate != LOST:
        raise error


def usable(connection):
    """P8: after an interruption the connection goes on, or says that it cannot."""
    try:
        connection.execute("SELECT count(*) FROM t").fetchone()
    except tique.OperationalError as error:
        expect_lost(error)
        connection.rollback()
    assert connection.execute("SELECT count(*) FROM t WHERE id >= 0").fetchone() == (
        ROWS,
    )


def ask(connection, number, turn):
    found = connection.execute("SELECT sum(id), count(*) FROM t WHERE id >= 0")
    assert found.fetchone()[1] == ROWS
    connection.commit()


def statements(url, interrupter):
    """A query, with writes of its own before it."""
    with connect(url) as connection, Others(url, ask):
        for turn in range(6):
            connection.execute("UPDATE t SET v = %s WHERE id = 1", (turn,))
            interrupter.until_interrupted(
                lambda: connection.execute(HEAVY, (3,)).fetchall()
            )
            try:
                found = connection.execute("SELECT v FROM t WHERE id = 1").fetchone()
                assert found == (turn,)
                connection.execute(HEAVY, (2,)).fetchall()
            except tique.OperationalError as error:
                expect_lost(error)
            connection.rollback()
            usable(connection)
            connection.rollback()


def fetching(url, interrupter):
    with connect(url, autocommit=True) as connection, Others(url, ask):
        for _ in range(6):
            interrupter.until_interrupted(
                lambda: connection.execute(
                    "SELECT a.id, b.v FROM t AS a CROSS JOIN t AS b"
                ).fetchall()
            )
            usable(connection)


def writes(url, interrupter):
    """P8: a write that is interrupted leaves no trace."""
    with connect(url) as connection, Others(url, ask):
        for _ in range(6):
            connection.rollback()
            connection.execute("UPDATE t SET v = 5 WHERE id = 5")

            def work():
                connection.execute("UPDATE t SET v = v + 1000 WHERE id >= 0")
                connection.execute(
                    "INSERT INTO t SELECT -1 - number, 0 "
                    f"FROM {numbers(3000)} WHERE number >= 0"
                )
                connection.execute("DELETE FROM t WHERE id < 0")
                connection.execute("UPDATE t SET v = v - 1000 WHERE id >= 0")

            interrupter.until_interrupted(work)
            try:
                counted = connection.execute(
                    "SELECT count(*), min(v), max(v) FROM t WHERE id >= 0"
                ).fetchone()
                added = connection.execute(
                    "SELECT count(*) FROM t WHERE id < 0"
                ).fetchone()
            except tique.OperationalError as error:
                expect_lost(error)
                connection.rollback()
            else:
                assert counted in ((ROWS, 0, 5), (ROWS, 1000, 1005)), counted
                assert added in ((0,), (3000,)), added


def commits(url, interrupter):
    """P4, P6: others' commits go on; the interrupted one's outcome can be asked for."""
    told = {}

    def add(connection, number, turn):
        key = 1_000_000 * (number + 1) + turn
        connection.execute("INSERT INTO log VALUES (%s)", (key,))
        connection.commit()
        told[key] = "committed"

    with connect(url) as connection, Others(url, add, 4):
        key = 0
        asked = {}

        def work():
            nonlocal key
            key += 1
            connection.execute("INSERT INTO log VALUES (%s)", (key,))
            asked[key] = connection.txid
            connection.commit()
            told[key] = "committed"

        for _ in range(12):
            interrupter.until_interrupted(work)
            connection.rollback()
            if key in asked and key not in told:
                told[key] = connection.outcome(asked[key])
                assert told[key] in ("committed", "aborted"), told[key]
    with connect(url) as connection:
        there = {k for (k,) in connection.execute("SELECT id FROM log").fetchall()}
    assert there == {k for k, outcome in told.items() if outcome == "committed"}


def folds(url, interrupter):
    with connect(url) as connection, Others(url, ask):

        def work():
            connection.execute("UPDATE t SET v = v + 1 WHERE id >= 0")
            connection.commit()
            connection.checkpoint()

        for _ in range(8):
            interrupter.until_interrupted(work)
            connection.rollback()
            usable(connection)
        connection.commit()
        connection.checkpoint()
        # All were raised alike, in storage and out of it.
        spread = "SELECT max(v) - min(v) FROM t WHERE id >= 0"
        assert connection.execute(spread).fetchone() == (0,)


def connecting(url, interrupter):
    for _ in range(8):
        interrupter.until_interrupted(lambda: connect(url).close())
    with connect(url) as connection:
        usable(connection)


def locks(url, interrupter):
    """While another thread has the connection."""
    with connect(url) as connection:
        stop, faults = threading.Event(), []

        def ask(sql, parameters):
            """The main thread may have been interrupted in its own statement."""
            with connection._execution.lock:
                try:
                    connection.execute(sql, parameters).fetchall()
                except tique.OperationalError as error:
                    expect_lost(error)
                    connection.rollback()

        def hold():
            try:
                while not stop.is_set():
                    ask(HEAVY, (1,))
            except BaseException:
                faults.append(traceback.format_exc())

        holder = threading.Thread(target=hold)
        holder.start()
        for _ in range(4):
            interrupter.until_interrupted(
                lambda: ask("SELECT v FROM t WHERE id = %s", (1,))
            )
        stop.set()
        holder.join()
        assert not faults, faults[0]
        usable(connection)


def prepare(url):
    with connect(url) as connection:
        connection.execute("CREATE TABLE t (id BIGINT PRIMARY KEY, v BIGINT)")
        connection.execute("CREATE TABLE log (id BIGINT PRIMARY KEY)")
        connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(ROWS)}")
        connection.commit()


SCENARIOS = (statements, fetching, writes, commits, folds, connecting, locks)


def main(url, scenario, times):
    # The process that started the tests may have had it ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupter = Interrupter(scenario, int(times))
    (work,) = (each for each in SCENARIOS if each.__name__ == scenario)
    work(url, interrupter)
    # One more may be on its way.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("done", interrupter.count, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
