"""A process that goes on when the server comes back.

    python -m tests.processes.restarting_child URL NUMBER

It says ``begun`` and then ``committed`` or ``aborted`` (a transfer's number), after it
asked for the outcome if need be; ``again`` when it has connected once more.
"""

from __future__ import annotations

import random
import sys
import threading
import time
import traceback

import tique
from tests.processes.bank_child import say

ACCOUNTS = 20
START = 1000


def create(connection):
    connection.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance BIGINT)")
    connection.execute(
        "CREATE TABLE transfer (process INTEGER, number INTEGER, source INTEGER, "
        "target INTEGER, amount BIGINT, PRIMARY KEY (process, number))"
    )
    connection.cursor().executemany(
        "INSERT INTO account VALUES (%s, %s)", [(i, START) for i in range(ACCOUNTS)]
    )
    connection.commit()


def connected(url):
    deadline = time.monotonic() + 60
    while True:
        try:
            return tique.connect(url, checkpoint_age=0.3)
        except tique.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def transfer(connection, chance, process, number):
    source, target = chance.sample(range(ACCOUNTS), 2)
    amount = chance.randint(1, 10)
    for account, change in ((source, -amount), (target, amount)):
        connection.execute(
            "UPDATE account SET balance = balance + %s WHERE id = %s",
            (change, account),
        )
    connection.execute(
        "INSERT INTO transfer VALUES (%s, %s, %s, %s, %s)",
        (process, number, source, target, amount),
    )
    if chance.random() < 0.2:
        found = connection.execute("SELECT sum(balance) FROM account").fetchone()
        if found != (ACCOUNTS * START,):
            say("torn", *found)


def outcome(url, txid):
    """The outcome of a transaction whose commit ended with the connection."""
    with connected(url) as connection:
        return connection.outcome(txid)


def work(url, process, stop):
    chance = random.Random(process)
    connection = connected(url)
    number = 0
    while not stop.is_set():
        number += 1
        txid = None
        try:
            transfer(connection, chance, process, number)
            txid = connection.txid
            say("begun", number)
            connection.commit()
            say("committed", number)
        except tique.SerializationError:
            connection.rollback()
            say("aborted", number)
        except tique.OutcomeUnknown:
            connection.close()
            say("committed" if outcome(url, txid) == "committed" else "aborted", number)
            connection = connected(url)
            say("again")
        except tique.OperationalError:
            # A transaction that is neither acknowledged nor unknown is not there.
            connection.close()
            say("aborted", number)
            connection = connected(url)
            say("again")
    connection.close()


def main(url, process):
    stop = threading.Event()

    def guarded():
        try:
            work(url, process, stop)
        except BaseException:
            say("failed")
            traceback.print_exc()

    thread = threading.Thread(target=guarded)
    thread.start()
    sys.stdin.read()
    stop.set()
    thread.join()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
