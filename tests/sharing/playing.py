"""Processes that are played within this one, and ways to stop them."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager, suppress

import pytest

import tique
from tique.database import database as databases
from tique_backends.monetdb.sessions.connection import Connection as MonetDBConnection
from tique_backends.postgresql.sessions.session import PostgreSQLSession

ROWS = 3000
"""More than a transaction keeps in memory: such a write is a bulk write."""


class Process:
    """A process, played by an engine and a database of its own within this one."""

    def __init__(self, url, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(databases, "_registry", {})
            self.connection = tique.connect(url, checkpoint="manual", **options)
        self.database = self.connection._database
        self._start = lambda: Process(url, **options)

    def again(self):
        """Another process, as it would be after this one was restarted."""
        return self._start()

    def another(self):
        """Another connection of this process."""
        with pytest.MonkeyPatch.context() as patch:
            registry = {self.database.name: self.database}
            patch.setattr(databases, "_registry", registry)
            return tique.connect(self.database.url)

    def run(self, sql, parameters=()):
        return self.connection.execute(sql, parameters)

    def rows(self, sql, parameters=()):
        found = self.run(sql, parameters).fetchall()
        self.connection.rollback()
        return found

    def commit(self, sql, parameters=()):
        self.run(sql, parameters)
        self.connection.commit()

    def close(self):
        with suppress(tique.Error):
            self.connection.close()


@contextmanager
def waiting(monkeypatch, owner, method):
    """Hold callers of the method back; yields two events: one is there, go on."""
    arrived, go_on = threading.Event(), threading.Event()
    original = getattr(owner, method)

    def held(*arguments, **options):
        arrived.set()
        assert go_on.wait(20)
        return original(*arguments, **options)

    monkeypatch.setattr(owner, method, held)
    try:
        yield arrived, go_on
    finally:
        go_on.set()


def sequencer_of(process):
    """The class of the process's client of the shared sequencer."""
    return type(process.database.engine.shared)


def before_sending(monkeypatch, hook):
    """Call the hook with each statement that a session sends."""
    for owner, name in ((MonetDBConnection, "_send"), (PostgreSQLSession, "_run")):
        monkeypatch.setattr(owner, name, hooked(getattr(owner, name), hook))


def hooked(send, hook):
    """A method that calls the hook with its statement first."""

    def held(sender, sql, *arguments, **options):
        hook(sql)
        return send(sender, sql, *arguments, **options)

    return held


def stop(process):
    """As SIGSTOP would: no beats, and the others give it up."""
    process.database.timeline._stopping.set()
    process.database.timeline._thread.join()
    client = process.database.engine.shared._client
    with closing(process.database.engine.session()) as session:
        session.execute(f"SELECT tique.leave_client({client})")


def stopping_before_commit(monkeypatch, process, others_work):
    """Stop the process between its last statement and its COMMIT."""
    stopped = []

    def hook(sql):
        if "; COMMIT;" in sql and not stopped:
            stopped.append(sql)
            stop(process)
            others_work()

    before_sending(monkeypatch, hook)
    return stopped


def cached(process):
    return sum(v.rows for v in process.database.catalog.all_versions())


def expect_nothing_unfinished(process):
    position = process.database.timeline.position()
    assert position.sts == position.cts
