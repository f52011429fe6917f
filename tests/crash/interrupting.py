"""Real interruptions of a statement that runs: at the nth call of the engine, before or after.

A call that comes ``after`` has taken effect in the engine, and its reply is lost.
"""

from __future__ import annotations

import signal
import socket
import threading

import psycopg

from tests.crash.faults import HERE

_WORKERS = ("MainThread", "tique-undisturbed")


class Interrupt:
    """Interrupts the nth call that a thread of the application makes."""

    def __init__(self, engine):
        self.engine = engine
        self.seen = []
        self.point, self.when, self.how = 0, "before", None
        self.is_armed = False
        self.has_fired = False

    def arm(self, point=0, when="before", how=None):
        """Count calls from here on, and interrupt one of them."""
        self.seen.clear()
        self.point, self.when, self.how = point, when, how
        self.has_fired = False
        self.is_armed = True

    def disarm(self):
        """Let everything pass."""
        self.is_armed = False

    def __call__(self, when, text):
        if not self.is_armed or threading.current_thread().name not in _WORKERS:
            return
        if when == "before":
            self.seen.append(text)
        if len(self.seen) == self.point and when == self.when and not self.has_fired:
            self.has_fired = True
            self.how(self.engine, HERE.target)


def cancelled(engine, target):
    """The engine's own error of a statement that was stopped."""
    if engine.name == "postgresql":
        _wire(target).execute("SELECT pg_cancel_backend(pg_backend_pid()), pg_sleep(9)")
    elif engine.name == "duckdb" and hasattr(target, "interrupt"):
        stopped = threading.Event()

        def stop():
            while not stopped.wait(0.002):
                target.interrupt()

        stopper = threading.Thread(target=stop)
        stopper.start()
        try:
            target.execute("SELECT sum(hash(r)) FROM range(100000000000) AS _(r)")
        finally:
            stopped.set()
            stopper.join()
    elif engine.name == "monetdb":
        _abort(engine, target)
    raise engine.interruption()


def full(engine, target):
    """The engine's error of a full disk."""
    if engine.name == "postgresql":
        _wire(target).execute("DO $$BEGIN RAISE disk_full; END$$")
    if engine.name == "monetdb":
        _abort(engine, target)
    raise engine.driver.OperationalError("No space left on device")


def lost(engine, target):
    """The end of the connection."""
    if engine.name == "postgresql":
        _wire(target).execute("SELECT pg_terminate_backend(pg_backend_pid())")
    else:
        target.mapi.sock.shutdown(socket.SHUT_RDWR)
        target.execute("SELECT 1")


def signalled(engine, target):
    """Ctrl-C."""
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


def _wire(target):
    return target if isinstance(target, psycopg.Connection) else target.connection


def _abort(engine, target):
    """Have a statement fail, which ends a transaction."""
    try:
        target.execute("SELECT no_such_column FROM sys.tables")
    except engine.driver.Error:
        return
    raise AssertionError("the statement was to fail")


INTERRUPTIONS = {
    "duckdb": (cancelled, signalled),
    "monetdb": (cancelled, full, lost, signalled),
    "postgresql": (cancelled, full, lost, signalled),
}

STRIDES = {"duckdb": 1, "monetdb": 24, "postgresql": 12}
"""A server has ten times as many moments, and each takes longer."""


def moments(calls, engine):
    """Each call before which a statement can be interrupted, or behind it, in each way."""
    return [
        (point, when, how)
        for point in range(1, len(calls) + 1)
        for when in ("before", "after")
        for how in INTERRUPTIONS[engine.name]
        if when == "before" or how is not full
    ]


def many(calls, engine):
    """The moments of a long run: all of an embedded engine, and a share of a server's."""
    every = moments(calls, engine)
    stride = STRIDES[engine.name]
    return every[len(every) % stride :: stride]
