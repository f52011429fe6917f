"""A process that forks two children while its connections are in use: ``URL WAY END``.

Its threads write, and one waits for a row lock, with its connection's lock, at the moment of
the fork. ``WAY`` is ``driver`` or ``sqlalchemy``; each child tries all that it has inherited, connects
in that way, and ends by ``_exit`` or ``exit``. ``orphan`` is another program.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from typing import Any

import sqlalchemy as sa

import tique
from tests.processes.bank_child import say

LEASE = 3.0
_PATIENCE = 20.0
_ADD = "INSERT INTO t VALUES ({}, 0)"


def refusal(use: Any) -> str:
    """The message of the error that a use of an inherited connection must raise."""
    try:
        use()
    except tique.InterfaceError as error:
        return str(error)
    raise AssertionError(f"{use} was not refused")


class Driver:
    """The driver alone."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.preloaded = tique.connect(url, lease=LEASE)
        self.preloaded.execute("SELECT count(*) FROM t").fetchall()

    def add(self, number: int) -> None:
        refusal(lambda: self.preloaded.execute("SELECT 1"))
        connection = tique.connect(self._url, lease=LEASE)
        connection.execute(_ADD.format(number))
        connection.commit()
        assert connection.execute(f"SELECT n FROM t WHERE id = {number}").fetchone()
        # Left open: the interpreter's end closes it.


class SQLAlchemy:
    """An engine that was used before the fork, as gunicorn's ``--preload`` leaves it."""

    def __init__(self, url: str) -> None:
        system, _, place = url.partition("://")
        self.engine = sa.create_engine(f"{system}+tique://{place}")
        with self.engine.connect() as connection:
            connection.execute(sa.text("SELECT count(*) FROM t"))

    def add(self, number: int) -> None:
        self.engine.dispose(close=False)
        with self.engine.begin() as connection:
            connection.execute(sa.text(_ADD.format(number)))


class Parent:
    """The connections that the children inherit."""

    def __init__(self, url: str, way: str) -> None:
        self.url = url
        self.holder = self._connect()
        self.holder.execute("SELECT n FROM t WHERE id = 1 FOR UPDATE")
        self.holder.execute("UPDATE t SET n = 1 WHERE id = 1")
        self.reader = self._connect()
        self.named = self.reader.cursor("rows")
        self.named.execute("SELECT id FROM t WHERE id < 1000 ORDER BY id")
        self.first = self.named.fetchmany(3)
        self.waiter = self._connect()
        self.written = 0
        self._stopping = threading.Event()
        self._faults: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,))
            for work in (self._wait, self._write)
        ]
        self.way = {"driver": Driver, "sqlalchemy": SQLAlchemy}[way](url)

    def _connect(self, **options: Any) -> tique.Connection:
        return tique.connect(self.url, lease=LEASE, lock_timeout=None, **options)

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except BaseException as error:
            self._faults.append(error)

    def _wait(self) -> None:
        # It loses when the lock's owner has committed, and has waited until then.
        with suppress(tique.SerializationError):
            self.waiter.execute("SELECT n FROM t WHERE id = 1 FOR UPDATE")

    def _write(self) -> None:
        connection = self._connect(autocommit=True)
        while not self._stopping.is_set():
            connection.execute(_ADD.format(10_000 + self.written))
            self.written += 1

    def start(self) -> None:
        for thread in self._threads:
            thread.start()
        while not self.written or self.waiter.txid is None:
            time.sleep(0.01)

    def in_child(self, number: int) -> None:
        """All that a child does; the parent's threads are not here."""
        for use in (
            lambda: self.holder.execute("SELECT 1"),
            self.holder.commit,
            self.holder.rollback,
            self.named.fetchone,
            self.reader.cursor,
            self.waiter.commit,
            lambda: self.waiter.execute("SELECT 1"),
            self.waiter.cursor,
        ):
            assert "fork" in refusal(use)
        self.named.close()
        self.waiter.close()
        self.holder.close()
        del self.named, self.waiter, self.holder, self.reader
        gc.collect()
        try:
            self.way.add(number)
        except (tique.InterfaceError, sa.exc.InterfaceError) as error:
            say("refused", str(error).replace("\n", " "))
        else:
            say("added", number)
        del self.way
        gc.collect()

    def finish(self) -> None:
        """Everything goes on as if there had been no fork."""
        self.holder.commit()
        written = self.written
        deadline = time.monotonic() + _PATIENCE
        while self.written < written + 5 and time.monotonic() < deadline:
            time.sleep(0.01)
        self._stopping.set()
        for thread in self._threads:
            thread.join(_PATIENCE)
        if self._faults:
            raise self._faults[0]
        rows = self.first + self.named.fetchall()
        assert [id for (id,) in rows] == list(range(1, 501)), rows
        with self._connect() as connection:
            (count,) = connection.execute(
                "SELECT count(*) FROM t WHERE id >= 10000"
            ).fetchone()
            assert count == self.written, (count, self.written)
            say("rows", *sorted(
                id for (id,) in connection.execute("SELECT id FROM t WHERE id < 0")
            ))  # fmt: skip
            while (processes := connection.status().processes) > 1:
                assert time.monotonic() < deadline, processes
                time.sleep(0.05)


def fork(parent: Parent, number: int, end: str) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    status = 1
    try:
        parent.in_child(number)
        sys.stdout.flush()
        status = 0
    finally:
        if end == "_exit":
            os._exit(status)
    sys.exit(status)


def leave_a_child(url: str, lease: str) -> None:
    """Wait to be killed; the child waits for the end of its standard input."""
    connection = tique.connect(url, lease=float(lease))
    connection.execute("SELECT * FROM t").fetchall()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        signal.pause()
    say("forked")
    sys.stdin.read()
    os._exit(0)


def main() -> None:
    url, way, end = sys.argv[1:]
    if way == "orphan":
        leave_a_child(url, end)
    parent = Parent(url, way)
    parent.start()
    children = [fork(parent, -number, end) for number in (1, 2)]
    deadline = time.monotonic() + _PATIENCE
    for child in children:
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
            if time.monotonic() > deadline:
                os.kill(child, 9)
            time.sleep(0.01)
        say("status", ended[1])
    parent.finish()
    say("finished")


if __name__ == "__main__":
    main()
