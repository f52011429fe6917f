"""A process that works on a bank until it is killed.

    python -m tests.crash.bank_child URL SEED ROUND THREADS

Every acknowledged commit is one line on standard output: kind, thread, number, txid.
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

ACCOUNTS = 20
START = 1000
BIG = 2500


def create(connection):
    for statement in (
        "CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)",
        "CREATE TABLE transfer (round INTEGER, thread INTEGER, number INTEGER, "
        "source INTEGER, target INTEGER, amount BIGINT, undone BOOLEAN, "
        "PRIMARY KEY (round, thread, number))",
        "CREATE TABLE entry (round INTEGER, thread INTEGER, number INTEGER)",
        "CREATE TABLE big (id INTEGER PRIMARY KEY, v INTEGER)",
        "CREATE TABLE bump (round INTEGER, thread INTEGER, number INTEGER)",
        f"INSERT INTO account SELECT number, {START} FROM {numbers(ACCOUNTS)}",
        f"INSERT INTO big SELECT number, 0 FROM {numbers(BIG)}",
    ):
        connection.execute(statement)
        connection.commit()


class Worker:
    """One thread and its connection."""

    def __init__(self, url, seed, round_number, thread):
        self.connection = tique.connect(url, checkpoint_age=0.2)
        self.chance = random.Random(f"{seed} {round_number} {thread}")
        self.round = round_number
        self.thread = thread
        self.number = 0
        self.last = None

    def run(self):
        while True:
            self.number += 1
            kind = self.chance.choices(
                ["transfer", "undo", "bump", "define", "look", "checkpoint"],
                [80, 8, 2, 1, 6, 3],
            )[0]
            try:
                getattr(self, kind)()
            except tique.SerializationError:
                self.connection.rollback()

    def acknowledged(self, kind, number):
        txid = self.connection.txid
        self.connection.commit()
        line = f"{kind} {self.thread} {number} {txid}\n"
        os.write(1, line.encode())

    def move(self, source, target, amount):
        for account, change in ((source, -amount), (target, amount)):
            self.connection.execute(
                "UPDATE account SET balance = balance + %s WHERE id = %s",
                (change, account),
            )

    def transfer(self):
        source, target = self.chance.sample(range(ACCOUNTS), 2)
        amount = self.chance.randint(1, 10)
        key = (self.round, self.thread, self.number)
        self.move(source, target, amount)
        self.connection.execute(
            "INSERT INTO transfer VALUES (%s, %s, %s, %s, %s, %s, FALSE)",
            (*key, source, target, amount),
        )
        self.connection.execute("INSERT INTO entry VALUES (%s, %s, %s)", key)
        self.acknowledged("transfer", self.number)
        self.last = (self.number, source, target, amount)

    def undo(self):
        if self.last is None:
            return
        number, source, target, amount = self.last
        key = (self.round, self.thread, number)
        self.move(target, source, amount)
        self.connection.execute(
            "UPDATE transfer SET undone = TRUE "
            "WHERE round = %s AND thread = %s AND number = %s",
            key,
        )
        self.connection.execute(
            "DELETE FROM entry WHERE round = %s AND thread = %s AND number = %s", key
        )
        self.acknowledged("undo", number)
        self.last = None

    def bump(self):
        key = (self.round, self.thread, self.number)
        self.connection.execute("INSERT INTO bump VALUES (%s, %s, %s)", key)
        self.connection.execute("UPDATE big SET v = v + 1")
        self.acknowledged("bump", self.number)

    def define(self):
        name = f"made_{self.thread}"
        self.connection.execute(f"DROP TABLE IF EXISTS {name}")
        self.connection.execute(f"CREATE TABLE {name} (id INTEGER PRIMARY KEY)")
        self.connection.execute(f"INSERT INTO {name} VALUES (1), (2)")
        self.connection.commit()

    def look(self):
        total = self.connection.execute("SELECT sum(balance) FROM account").fetchone()
        if total != (ACCOUNTS * START,):
            os.write(1, f"torn {self.thread} {total[0]} 0\n".encode())
        self.connection.commit()

    def checkpoint(self):
        self.connection.checkpoint()


def guarded(worker):
    try:
        worker.run()
    except BaseException as error:
        text = f"{type(error).__name__}: {error}".replace("\n", " ")
        os.write(1, f"failed {worker.thread} 0 {text}\n".encode())
        traceback.print_exc()


def main(url, seed, round_number, threads):
    started = time.monotonic()
    tique.connect(url, checkpoint_age=0.2).close()
    os.write(1, f"ready 0 0 {time.monotonic() - started:.3f}\n".encode())
    for thread in range(threads):
        worker = Worker(url, seed, round_number, thread)
        threading.Thread(target=guarded, args=(worker,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
