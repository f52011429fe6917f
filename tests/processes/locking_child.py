"""A process that locks rows and is then stopped: ``URL LEASE``.

It reads a state per line (of :data:`STATES`), brings itself into it, says ``stopping``, and waits
for a line. Then it tries to commit what it has changed under its locks, and says ``outcome``.
"""

from __future__ import annotations

import sys
import threading
from contextlib import closing

import tique
from tests.processes.bank_child import say

LOCK = "SELECT v FROM t WHERE id = %s FOR UPDATE"
CHANGE = "UPDATE t SET v = v + 1 WHERE id IN (1, 9)"


class Child:
    """A process with a connection, and one that other transactions have had before."""

    def __init__(self, url, lease):
        self._url, self._lease = url, lease
        self.connection = self.connect()

    def connect(self):
        return tique.connect(self._url, lease=self._lease)

    def lock(self, row=1):
        self.connection.execute(LOCK, [row]).fetchall()

    def change(self):
        self.lock()
        self.connection.execute(CHANGE)

    def lock_earlier(self, row=2):
        self.lock(row)
        self.connection.commit()

    def reconnect(self):
        self.connection.close()
        self.connection = self.connect()

    def wait(self):
        """Wait for row 3, which another process has locked, with row 1."""
        self.change()
        self.waits = threading.Thread(target=self._wait)
        self.waits.start()
        while not self.connection._database.locks._waits:
            self.waits.join(0.005)

    def _wait(self):
        try:
            self.lock(3)
        except tique.Error:
            return

    waits = None


def idle(child):
    child.lock_earlier(1)


def idle_in_transaction(child):
    child.lock_earlier(1)
    child.connection.execute("SELECT v FROM t").fetchall()


def inside(child):
    child.change()


def after_one(child):
    child.lock_earlier()
    child.change()


def after_the_same(child):
    child.lock_earlier(1)
    child.change()


def after_many(child):
    for _ in range(20):
        child.lock_earlier()
        child.lock_earlier(1)
    child.lock(2)
    child.connection.rollback()
    child.change()


def reconnected(child):
    child.lock_earlier()
    child.reconnect()
    child.change()


def pooled(child):
    child.lock_earlier()
    with closing(child.connect()) as other:
        other.execute(LOCK, [1]).fetchall()
        other.commit()
    child.change()


def read_committed(child):
    child.lock_earlier()
    child.connection.isolation_level = "READ COMMITTED"
    child.connection.execute(CHANGE)
    child.lock()


def waiting(child):
    child.lock_earlier()
    child.wait()


STATES = {
    state.__name__: state
    for state in (
        idle,
        idle_in_transaction,
        inside,
        after_one,
        after_the_same,
        after_many,
        reconnected,
        pooled,
        read_committed,
        waiting,
    )
}

if __name__ == "__main__":
    child = Child(sys.argv[1], float(sys.argv[2]))
    say("ready")
    for line in sys.stdin:
        STATES[line.strip()](child)
        say("stopping")
        sys.stdin.readline()
        if child.waits is not None:
            child.waits.join()
        try:
            child.connection.commit()
            say("outcome", "committed")
        except tique.Error as error:
            say("outcome", error.sqlstate)
        child.reconnect()
        say(
            "again",
            *child.connection.execute("SELECT v FROM t WHERE id = 9").fetchone(),
        )
        child.connection.commit()
