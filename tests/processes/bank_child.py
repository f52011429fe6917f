"""One of several processes that work on a bank, until told to stop or killed.

    python -m tests.processes.bank_child URL NUMBER

Each line of standard output is a kind and its values: ``begun``, ``committed`` (a
transfer's number), ``again`` (a thread lost its connection, and goes on with another
one), ``slow`` (seconds), ``torn``, ``failed``. It ends when standard input does.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import traceback

import tique
from tests.portable import numbers

ACCOUNTS = 40
START = 1000
BULK = 3000
LOST = ("08006", tique.OutcomeUnknown.sqlstate)
"""The SQLSTATEs when a connection is lost, or the process was given up."""


def create(connection):
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)")
    connection.execute(
        "CREATE TABLE transfer (process INTEGER, number INTEGER, amount BIGINT, "
        "PRIMARY KEY (process, number))"
    )
    connection.cursor().executemany(
        "INSERT INTO account VALUES (%s, %s)", [(i, START) for i in range(ACCOUNTS)]
    )
    connection.commit()


def say(*words):
    # One write, so that a kill leaves no half of a line that counts.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Child:
    def __init__(self, url, process):
        self.url = url
        self.process = process
        self.chance = random.Random(process)
        self.stop = threading.Event()
        self.number = 0
        self.ended = None

    def connected(self):
        return tique.connect(self.url, checkpoint_age=0.5)

    def transfers(self, connection):
        while not self.stop.is_set():
            self.number += 1
            source, target = self.chance.sample(range(ACCOUNTS), 2)
            amount = self.chance.randint(1, 10)
            try:
                for account, change in ((source, -amount), (target, amount)):
                    connection.execute(
                        "UPDATE account SET balance = balance + %s WHERE id = %s",
                        (change, account),
                    )
                connection.execute(
                    "INSERT INTO transfer VALUES (%s, %s, %s)",
                    (self.process, self.number, amount),
                )
                say("begun", self.number)
                connection.commit()
                say("committed", self.number)
            except tique.SerializationError:
                connection.rollback()
            except tique.OutcomeUnknown as error:
                with self.connected() as another:
                    if another.outcome(error.txid) == "committed":
                        say("committed", self.number)
                raise
            self.note_time()

    def note_time(self):
        """Say how long a transfer took, with all that went wrong before it."""
        now = time.monotonic()
        if self.ended is not None and now - self.ended > 1:
            say("slow", round(now - self.ended, 2))
        self.ended = now

    def audits(self, connection):
        while not self.stop.is_set():
            found = [
                connection.execute("SELECT sum(balance) FROM account").fetchone()[0],
                sum(
                    connection.execute(
                        "SELECT balance FROM account WHERE id = %s", (i,)
                    ).fetchone()[0]
                    for i in range(ACCOUNTS)
                ),
            ]
            connection.commit()
            if found != [ACCOUNTS * START] * 2:
                say("torn", *found)
            self.stop.wait(0.05)

    def checkpoints(self, connection):
        while not self.stop.wait(self.chance.uniform(0.2, 1.0)):
            connection.checkpoint()

    def definitions(self, connection):
        """A table comes, is filled in bulk and by row, and goes."""
        name = f"scratch_{self.process}"
        # It may be there from before the last connection was lost.
        connection.execute(f"DROP TABLE IF EXISTS {name}")
        connection.rollback()
        while not self.stop.wait(self.chance.uniform(2.0, 6.0)):
            connection.execute(
                f"CREATE TABLE {name} (id INTEGER PRIMARY KEY, v INTEGER)"
            )
            connection.execute(
                f"INSERT INTO {name} SELECT number, 0 FROM {numbers(BULK)}"
            )
            connection.commit()
            connection.execute(f"UPDATE {name} SET v = 1 WHERE id = 7")
            connection.commit()
            found = connection.execute(
                f"SELECT count(*), sum(v) FROM {name}"
            ).fetchone()
            if found != (BULK, 1):
                say("torn", *found)
            connection.rollback()
            connection.execute(f"DROP TABLE {name}")
            connection.rollback()
            say("defined", name)

    def persistently(self, body):
        """Run a body, and again with another connection when it loses its own."""
        while not self.stop.is_set():
            try:
                with self.connected() as connection:
                    body(connection)
            except tique.OperationalError as error:
                if error.sqlstate not in LOST:
                    raise
                say("again", body.__name__)

    def guarded(self, body):
        try:
            self.persistently(body)
        except BaseException:
            say("failed", body.__name__)
            traceback.print_exc()
            self.stop.set()

    def run(self):
        threads = [
            threading.Thread(target=self.guarded, args=(body,))
            for body in (
                self.transfers,
                self.audits,
                self.checkpoints,
                *([self.definitions] if self.process % 4 == 1 else []),
            )
        ]
        for thread in threads:
            thread.start()
        say("ready")
        sys.stdin.read()
        self.stop.set()
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    Child(sys.argv[1], int(sys.argv[2])).run()
