"""Kills a process before each call of the engine that a kind of DDL makes, in turn.

    python -m tests.crash.killed_ddl ENGINE PLACE KIND WITHIN MOST

The place is DuckDB's folder or the URL of a server, which lives through all kills. ``MOST``
points are tried, of which the first is a COMMIT; 0 stands for all. A fork is used for each
step. Prints a JSON array per point: its number, the call, and what went wrong.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time

from tests.crash.definitions import BASE, KINDS, carry_out, define, definitions, use
from tests.crash.faults import watched_connect, watched_run
from tests.crash.kill_points import ENGINES, PATIENCE, forked
from tique_udfs.duckdb import Prepared

_WORKERS = ("MainThread", "tique-undisturbed")


class Calls:
    """The calls that threads of the application make; the nth one kills the process."""

    def __init__(self, point=0):
        self.point, self.seen, self.is_armed = point, [], False

    def __call__(self, when, text):
        named = threading.current_thread().name
        if not self.is_armed or when != "before" or named not in _WORKERS:
            return
        self.seen.append(text)
        if len(self.seen) == self.point:
            os.kill(os.getpid(), signal.SIGKILL)


def watch(engine, calls):
    engine.driver.connect = watched_connect(engine.driver, calls)
    Prepared.run = watched_run(calls)
    return calls


def opened(engine):
    return engine.connect(autocommit=True, checkpoint="manual")


def shown(engine, connection):
    return repr(definitions(engine, connection._database))


def counted(connection):
    return connection.execute("SELECT n FROM side WHERE id = 1").fetchone()[0]


def prepare(report, engine, kind, is_within):
    """Make the scene; report the definitions before and after it."""
    connection = opened(engine)
    for statement in BASE:
        connection.execute(statement)
    session = connection._database.engine.session()
    session.execute(
        f"CREATE TABLE {engine.schema}.strange (id INTEGER PRIMARY KEY, n INTEGER)"
    ).close()
    session.close()
    if kind.ddl == "detach":
        define(engine, connection, "adopt")
    for statement in kind.setup:
        connection.execute(statement)
    before = shown(engine, connection)
    carry_out(engine, connection, kind, is_within=is_within)
    after = shown(engine, connection)
    define(engine, connection, kind.undo)
    assert shown(engine, connection) == before
    connection.close()
    report(before, after)


def act(report, engine, kind, is_within, point):
    """Carry it out in a process that has just begun; killed before a call, or not at all."""
    calls = watch(engine, Calls(point))
    connection = opened(engine)
    calls.is_armed = True
    carry_out(engine, connection, kind, is_within=is_within)
    calls.is_armed = False
    connection.close()
    report(calls.seen)


def judge(report, engine, kind, is_within, before, after, count):
    """All of it is there or nothing, the table can be used, and it can be run again."""
    started = time.monotonic()
    connection = opened(engine)
    now = shown(engine, connection)
    assert now in (before, after), f"half done: {now}"
    is_done = now == after != before
    found = counted(connection)
    if is_within:
        assert found - count in ((is_done,) if before != after else (0, 1))
    use(connection, kind.after if is_done else kind.table)
    if not is_done:
        carry_out(engine, connection, kind, is_within=is_within)
        assert shown(engine, connection) == after
    define(engine, connection, kind.undo)
    assert shown(engine, connection) == before
    found = counted(connection)
    connection.close()
    engine.close()
    took = time.monotonic() - started
    assert took < PATIENCE, f"it took {took:.1f} s"
    report(found)


def main(engine_name, place, name, within, most):
    engine = ENGINES[engine_name](place)
    kind = next(kind for kind in KINDS if kind.name == name)
    is_within, most = within == "True", int(most)
    engine.begin_again()
    code, values = forked(prepare, engine, kind, is_within)
    assert code == 0, values
    ((before, after),) = values
    count = int(is_within)

    def end(failure):
        code, verdict = forked(judge, engine, kind, is_within, before, after, count)
        if code != 0:
            failure = f"afterwards: {verdict[-1] if verdict else code}"
        return failure, verdict[-1][0]

    code, values = forked(act, engine, kind, is_within, 0)
    assert code == 0, values
    ((calls,),) = values
    failure, count = end(None)
    assert failure is None, failure
    points = list(range(1, len(calls) + 1))
    if most:
        chance = random.Random(name)
        ending = [n for n in points if "COMMIT" in calls[n - 1]][-2:] or points[-1:]
        points = [chance.choice(ending), *chance.sample(points, most - 1)]
    for point in points:
        code, values = forked(act, engine, kind, is_within, point)
        failure = None if code in (0, -9) else f"it failed: {values[-1]}"
        failure, count = end(failure)
        print(json.dumps([point, calls[point - 1][:200], code, failure]), flush=True)
        if failure is not None:
            return


if __name__ == "__main__":
    main(*sys.argv[1:])
