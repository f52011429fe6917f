"""P12, P5: DDL is all or nothing at every moment at which it can be interrupted.

Each kind of DDL is interrupted at its nth call of the engine: before it, and when it has
taken effect and its reply is lost. Afterwards every connection of this process and of
others finds the definitions of before or of after, and can use the table at once; the
statement's error tells the truth about which. A short run has one moment per kind, every other
about COMMIT; a long run has all of them on DuckDB, and many on the servers.
"""

from __future__ import annotations

import random
import time
from contextlib import closing, contextmanager, suppress

import pytest

import tique
from tests.crash.definitions import BASE, carry_out, cases, define, definitions, use
from tests.crash.interrupting import cancelled, lost, many, moments, signalled
from tests.effort import LONG, effort, patience
from tests.sharing.playing import Process

AT_ONCE = 6.0
"""Seconds; a statement that meets definitions of before waits for ten."""


class Scene:
    """A database with a kind of DDL in it, to be interrupted again and again."""

    def __init__(self, engine, kind, *, is_within):
        self.engine, self.kind, self.is_within = engine, kind, is_within
        self.process = None
        self.mine, self.other = self.connect(), self.connect()
        for statement in BASE:
            self.mine.execute(statement)
        with closing(self.mine._database.engine.session()) as session:
            session.execute(
                f"CREATE TABLE {engine.schema}.strange (id INTEGER PRIMARY KEY, n INTEGER)"
            ).close()
        if kind.ddl == "detach":
            define(engine, self.mine, "adopt")
        for statement in kind.setup:
            self.mine.execute(statement)
        if self.mine._database.engine.shared is not None:
            self.process = Process(engine.url, lease=60.0)
        self.counted = 0
        self.before = self.definitions()
        self.after = None

    def connect(self):
        return self.engine.connect(autocommit=True, checkpoint="manual", lease=60.0)

    def definitions(self):
        return definitions(self.engine, self.other._database)

    def close(self):
        if self.process is not None:
            self.process.close()
        self.engine.close()

    def run(self):
        """The statement, or a transaction with it."""
        carry_out(self.engine, self.mine, self.kind, is_within=self.is_within)

    def revive(self, how):
        """Go on with the same connections, or with others if theirs are lost."""
        with suppress(tique.Error):
            self.mine.rollback()
        for name in ("mine", "other"):
            connection = getattr(self, name)
            try:
                connection.execute("SELECT 1").fetchone()
            except tique.OperationalError as error:
                if how not in (
                    lost,
                    cancelled,
                    signalled,
                ) or not error.sqlstate.startswith("08"):
                    raise
                connection.close()
                setattr(self, name, self.connect())

    def use(self, connection, *, is_done):
        """Read, write, commit and checkpoint the table."""
        table = self.kind.after if is_done else self.kind.table
        with self.at_once():
            use(connection, table)
            (counted,) = connection.execute(
                "SELECT n FROM side WHERE id = 1"
            ).fetchone()
            assert counted == self.counted

    @contextmanager
    def at_once(self):
        started = time.monotonic()
        yield
        took = time.monotonic() - started
        assert took < patience(AT_ONCE), f"it took {took:.1f} s"

    def everyone(self, *, is_done):
        """All that may use the database, in this process and in others, do so."""
        self.use(self.mine, is_done=is_done)
        self.use(self.other, is_done=is_done)
        if self.process is not None:
            self.process.connection.autocommit = True
            self.use(self.process.connection, is_done=is_done)

    def finish(self):
        """The statement is run, and taken back."""
        with self.at_once():
            self.run()
        self.counted += self.is_within
        assert self.definitions() == self.after
        self.take_back()

    def take_back(self):
        with self.at_once():
            define(self.engine, self.mine, self.kind.undo)
        assert self.definitions() == self.before

    def calls(self, interrupt):
        """The calls of the engine that it takes."""
        interrupt.arm()
        self.run()
        interrupt.disarm()
        self.counted += self.is_within
        self.after = self.definitions()
        self.everyone(is_done=True)
        self.take_back()
        return list(interrupt.seen)

    def interrupted(self, interrupt, point, when, how):
        """Interrupt it at a moment, and judge; False if it was over before."""
        failure = None
        interrupt.arm(point, when, how)
        started = time.monotonic()
        try:
            self.run()
        except (tique.Error, KeyboardInterrupt) as error:
            failure = error
        finally:
            interrupt.disarm()
        took = time.monotonic() - started
        self.revive(how)
        now = self.definitions()
        assert now in (self.before, self.after), f"half done ({failure!r})"
        if self.before != self.after:
            is_done = now == self.after
            if failure is None:
                assert is_done, "it was acknowledged"
            elif not isinstance(failure, tique.OutcomeUnknown | KeyboardInterrupt):
                assert not is_done, f"its error says otherwise: {failure!r}"
        else:
            is_done = failure is None
        (counted,) = self.other.execute("SELECT n FROM side WHERE id = 1").fetchone()
        if self.is_within and self.before != self.after:
            assert counted == self.counted + is_done
        self.counted = counted
        try:
            self.everyone(is_done=is_done)
        except tique.OperationalError as error:
            # The others may need a moment to give up a process without its sessions.
            if how is not lost or not error.sqlstate.startswith("08"):
                raise
            self.revive(how)
            self.everyone(is_done=is_done)
        assert took < patience(AT_ONCE), f"it ended after {took:.1f} s"
        if is_done:
            self.take_back()
        else:
            self.finish()
        return interrupt.has_fired


def some_moments(calls, engine, kind):
    """One moment, every other about COMMIT; in a long run many."""
    if LONG:
        return many(calls, engine)
    every = moments(calls, engine)
    late = max((n for n, c in enumerate(calls, 1) if "COMMIT" in c), default=0)
    ending = [each for each in every if each[0] in (late, late + 1)]
    chance = random.Random(kind.name)
    return [chance.choice(chance.choice((ending, every)) or every)]


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(effort(300, 850))
@pytest.mark.parametrize(("kind", "is_within"), cases())
def test_interrupted_at_a_call(engine, interrupt, kind, is_within):
    scene = Scene(engine, kind, is_within=is_within)
    try:
        calls = scene.calls(interrupt)
        for point, when, how in some_moments(calls, engine, kind):
            moment = f"{how.__name__} {when} call {point}: {calls[point - 1][:200]}"
            try:
                scene.interrupted(interrupt, point, when, how)
            except BaseException as error:
                error.add_note(moment)
                raise
    finally:
        interrupt.disarm()
        scene.close()
    with engine.connect() as connection:
        assert definitions(engine, connection._database) == scene.before
