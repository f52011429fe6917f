"""P6: a process that is stopped in its commit for longer than its lease is fenced.

A small commit is stopped six times over all steps, fifty times in a long run.
"""

from __future__ import annotations

import signal
import time

import pytest

import tique
from tests.effort import effort, patience
from tests.processes.children import ChildProcess

ROUNDS = effort(6, 50)
LEASE = 0.8


def marks(connection):
    return {number for (number,) in connection.execute("SELECT number FROM mark")}


def filled(connection):
    return {n for (n,) in connection.execute("SELECT DISTINCT number FROM filler")}


_DEFINITIONS = 8


def defined(connection):
    found = set()
    for number in range(_DEFINITIONS):
        try:
            connection.execute(f"SELECT id FROM mark_{number}")
        except tique.ProgrammingError:
            continue
        found.add(number)
    return found


CASES = {
    "small": (
        marks,
        ROUNDS,
        {
            # Before and after: certify, append, finish.
            "monetdb": (6, 5),
            # Before and after the one request that is all of it: it is refused when it
            # comes too late, and done when the reply is there.
            "postgresql": (2, 1),
        },
    ),
    # Before and after: barrier, append, COMMIT, finish.
    "bulk": (filled, 8, {"any": (8, 7)}),
    # A schema change is there with its COMMIT, though the process, which was given up,
    # is not told so.
    "definition": (defined, _DEFINITIONS, {"any": (8, 5)}),
}
"""The reader of the result, the rounds, and by engine: the half steps of the stopped
operation, and from which of them on it is there."""


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("kind", CASES)
def test_others_go_on_and_nothing_of_it_is_ever_seen(shared_engine, kind):
    look, rounds, cases = CASES[kind]
    steps, there = cases.get(shared_engine.name) or cases["any"]
    connection = shared_engine.connect()
    connection.execute("CREATE TABLE counter (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("CREATE TABLE mark (number INTEGER PRIMARY KEY)")
    connection.execute("CREATE TABLE filler (number INTEGER)")
    connection.execute("INSERT INTO counter VALUES (1, 0), (2, 0)")
    connection.commit()
    visible = set()
    increments = 0
    with ChildProcess(
        "tests.processes.stopped_child", shared_engine.url, LEASE
    ) as child:
        child.await_lines("ready")
        for number in range(rounds):
            step = number % steps
            before = len(child.of_kind("stopping"))
            child.write(f"{kind} {step}\n")
            child.await_lines("stopping", before + 1)
            stopped = time.monotonic()
            longest = 0.0
            while time.monotonic() < stopped + 2 * LEASE:
                started = time.monotonic()
                # The row that the stopped one writes too: once it is fenced, or done.
                for row in (2, 1):
                    connection.execute(
                        "UPDATE counter SET v = v + 1 WHERE id = %s", (row,)
                    )
                    increments += row == 1
                    connection.commit()
                longest = max(longest, time.monotonic() - started)
            if step >= there:
                visible.add(number)
            seen = look(connection)
            connection.commit()
            child.signal(signal.SIGCONT)
            outcome = child.await_lines("outcome", number + 1)
            # Only a commit that was finished before it stopped can be committed.
            is_committed = step == steps - 1 and kind != "definition"
            assert outcome == [str(number), "committed" if is_committed else "aborted"]
            increments += is_committed
            assert longest < LEASE + patience(2)
            assert seen == visible
            assert look(connection) == visible
            found = connection.execute("SELECT v FROM counter WHERE id = 1").fetchone()
            assert found == (increments,)
            connection.commit()
        child.end()
    connection.checkpoint()
    assert look(connection) == visible
    connection.close()
    with shared_engine.connect() as again:
        assert look(again) == visible
