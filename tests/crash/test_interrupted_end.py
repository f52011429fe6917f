"""P12, P6: a transaction that is interrupted in its end leaves nothing that holds others up.

Interrupted by Ctrl-C at each call of the engine from COMMIT or ROLLBACK on, before it and when it
has taken effect: no lock of its rows is left, and its snapshot does not hold up a fold.
"""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

import tique
from tests.crash.interrupting import signalled
from tests.effort import patience

AT_ONCE = 5.0
"""Seconds; a lock is waited for during 30."""

RENAME = "ALTER TABLE t RENAME COLUMN m TO k", "ALTER TABLE t RENAME COLUMN k TO m"


def begin(connection, change):
    """Write, with a lock that the server knows, or with DDL."""
    connection.rollback()
    connection.execute("BEGIN")
    connection.execute("SELECT n FROM side WHERE id = 1 FOR UPDATE")
    connection.execute("UPDATE side SET n = n + 1 WHERE id = 1")
    if change is not None:
        connection.execute(change)


@pytest.mark.crash
@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
@pytest.mark.parametrize("defines", [False, True], ids=["rows", "ddl"])
def test_nothing_holds_others_up(engine, interrupt, ending, defines):
    mine, other = (
        engine.connect(checkpoint="manual", autocommit=True) for _ in range(2)
    )
    other.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, m INTEGER)")
    other.execute("CREATE TABLE side (id INTEGER PRIMARY KEY, n INTEGER)")
    other.execute("INSERT INTO side VALUES (1, 0)")

    def end(point=0, when="before"):
        # A column is renamed forth and back, by attempts that commit.
        columns = other.execute("SELECT * FROM t").description
        begin(mine, RENAME[columns[1][0] == "k"] if defines else None)
        interrupt.arm(point, when, signalled)
        with suppress(KeyboardInterrupt, tique.Error):
            mine.execute(ending)
        interrupt.disarm()
        with suppress(tique.Error):
            mine.rollback()
        return len(interrupt.seen)

    for _ in range(2):
        # What is prepared once is not among the calls any more.
        calls = end()
    for point in range(1, calls + 1):
        for when in ("before", "after"):
            end(point, when)
            started = time.monotonic()
            other.execute("UPDATE side SET n = n + 1 WHERE id = 1")
            begin(mine, None)
            mine.commit()
            took = time.monotonic() - started
            call = interrupt.seen[point - 1 : point]
            assert took < patience(AT_ONCE), f"{when} call {point}, {call}"
    # Its snapshots hold nothing back.
    mine.rollback()
    other.checkpoint()
    assert all(each.is_empty for each in mine._database.catalog.all_versions())
