"""READ COMMITTED as PostgreSQL has it, among transactions of two processes (P3, P8, P12)."""

from __future__ import annotations

import pytest

import tique
from tests.isolation.pairs import cases, play, recorded
from tests.sharing.test_rereading import wait_for_company
from tests.sharing.test_row_locks import expect_waiting

LEVEL = "READ COMMITTED"


MERGING = (
    *("counter and change: commit", "counter and another column: commit"),
    *("counter and delete: commit", "counter and delete, turned: commit"),
    *("delete and upsert: commit", "delete and upsert, turned: commit"),
    *("out of the condition: commit", "FOR UPDATE and counter, turned: commit"),
)
"""An update that merges takes no lock that other processes see: it waits at its commit."""


CASES = [case for case in cases() if case.label not in MERGING]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.label)
def test_as_in_postgresql(process, case):
    first, second = process(isolation_level=LEVEL), process(isolation_level=LEVEL)
    wait_for_company(first)
    second.connection.lock_timeout = first.connection.lock_timeout = 5
    waits = second.database.locks._waits
    outcome = play(case, first.connection, second.connection, lambda: bool(waits))
    assert outcome == recorded()[case.label]


def test_one_that_merges_waits_at_its_commit(process, pool):
    """docs/isolation.md: it comes after the other one, and is lost if that deletes the row."""
    first, second = process(isolation_level=LEVEL), process(isolation_level=LEVEL)
    wait_for_company(first)
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    first.commit("INSERT INTO t VALUES (1, 0), (2, 0)")
    second.rows("SELECT * FROM t")
    first.run("UPDATE t SET n = n + 1 WHERE id = 1")
    second.run("UPDATE t SET n = abs(n) + 10 WHERE id = 1")
    committing = pool.submit(first.connection.commit)
    expect_waiting(first, committing)
    second.connection.commit()
    committing.result(20)
    assert first.rows("SELECT n FROM t WHERE id = 1") == [(11,)]
    first.run("UPDATE t SET n = n + 1 WHERE id = 1")
    second.commit("DELETE FROM t WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        first.connection.commit()
