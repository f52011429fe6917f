"""A process that stops itself in the middle of a commit or a schema change.

    python -m tests.processes.stopped_child URL LEASE

It reads a kind (of :data:`KINDS`) and a number per line: before which statement of the
next commit, counted in half steps (an odd one: after its reply), it stops. It says
``stopping`` then, and ``outcome`` with the commit's outcome when it runs again.
"""

from __future__ import annotations

import signal
import sys
import threading

import tique
from tests.portable import numbers
from tests.processes.bank_child import BULK, say
from tique_backends.monetdb.sessions.connection import Connection as MonetDBConnection
from tique_backends.postgresql.sessions.connection import (
    Connection as PostgreSQLConnection,
)
from tique_backends.postgresql.sessions.session import PostgreSQLSession

_STATEMENTS = (
    "tique.append",
    "tique.certify",
    "tique.next_cts",
    "INSERT INTO tique.log",
    "; COMMIT;",
    "tique.finish",
)

_CALLS = (
    (MonetDBConnection, "ask_text"),
    (MonetDBConnection, "ask_prepared"),
    (PostgreSQLConnection, "ask"),
    (PostgreSQLSession, "_run"),
)
"""The methods that send statements and wait for the reply."""


class Brake:
    """Stops the process at one half step of one thread's statements."""

    def __init__(self):
        self.left = None
        for owner, name in _CALLS:
            setattr(owner, name, self.stopping(getattr(owner, name)))

    def stopping(self, ask):
        def braked(connection, sql, *arguments, **options):
            is_commit = any(word in sql for word in _STATEMENTS)
            if is_commit:
                self.step()
            reply = ask(connection, sql, *arguments, **options)
            if is_commit:
                self.step()
            return reply

        return braked

    def step(self):
        if self.left is not None:
            if self.left == 0:
                self.left = None
                say("stopping")
                # Sent to the process it may reach another thread first.
                signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)
            else:
                self.left -= 1


def small(connection, number):
    connection.execute("UPDATE counter SET v = v + 1 WHERE id = 1")
    connection.execute("INSERT INTO mark VALUES (%s)", (number,))
    return connection.commit


def bulk(connection, number):
    connection.execute("UPDATE counter SET v = v + 1 WHERE id = 1")
    connection.execute(f"INSERT INTO filler SELECT {number} FROM {numbers(BULK)}")
    return connection.commit


def definition(connection, number):
    return lambda: connection.execute(f"CREATE TABLE mark_{number} (id INTEGER)")


KINDS = {"small": small, "bulk": bulk, "definition": definition}


def commit(url, lease, kind, step, number, brake):
    connection = tique.connect(url, lease=lease)
    finish = KINDS[kind](connection, number)
    brake.left = step
    try:
        finish()
        say("outcome", number, "committed")
    except tique.OperationalError as error:
        say("outcome", number, "aborted" if error.sqlstate == "08006" else error)
    brake.left = None
    connection.close()


if __name__ == "__main__":
    brake = Brake()
    say("ready")
    for number, line in enumerate(sys.stdin):
        kind, step = line.split()
        commit(sys.argv[1], float(sys.argv[2]), kind, int(step), number, brake)
