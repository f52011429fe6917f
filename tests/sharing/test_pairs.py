"""READ COMMITTED as PostgreSQL has it, among transactions of two processes (P3, P8, P12)."""

from __future__ import annotations

import pytest

from tests.isolation.pairs import parameters, play, recorded
from tests.sharing.test_row_locks import expect_waiting

LEVEL = "READ COMMITTED"
PATIENCE = 20


@pytest.mark.parametrize("case", parameters())
def test_as_in_postgresql(process, case):
    """Both in their first moments, before either's heartbeat."""
    first, second = process(isolation_level=LEVEL), process(isolation_level=LEVEL)
    second.connection.lock_timeout = first.connection.lock_timeout = 5
    waits = second.database.locks._waits
    outcome = play(case, first.connection, second.connection, lambda: bool(waits))
    assert outcome == recorded()[case.label]


READ = "SELECT n FROM t WHERE id = 1"
ADD = "UPDATE t SET n = n + 1 WHERE id = 1"
"""It merges."""


@pytest.fixture
def both(process):
    first, second = process(isolation_level=LEVEL), process(isolation_level=LEVEL)
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    first.commit("INSERT INTO t VALUES (1, 0), (2, 0)")
    second.rows("SELECT * FROM t")
    return first, second


def test_those_that_merge_do_not_wait_for_one_another(both):
    """P6: each is open when the other one has changed the row."""
    for each in both:
        each.connection.lock_timeout = 1
        each.run(ADD)
    for each in both:
        each.connection.commit()
    assert both[0].rows(READ) == [(2,)]
    for each in both:
        assert not each.database.locks.server._held


def test_those_that_merge_and_look_wait_for_one_another(both, pool):
    """P3: beside a third transaction, which wants the row alone and waits for both."""
    first, second = both
    other = second.another()
    other.isolation_level = LEVEL
    for each in both:
        each.run(ADD)
    changing = pool.submit(other.execute, "UPDATE t SET n = abs(n) * 10 WHERE id = 1")
    expect_waiting(second, changing)
    assert first.run(READ).fetchall() == [(1,)]
    looking = pool.submit(lambda: second.run(READ).fetchall())
    first.connection.commit()
    assert looking.result(PATIENCE) == [(2,)]
    second.connection.commit()
    changing.result(PATIENCE)
    other.commit()
    assert first.rows(READ) == [(20,)]
    other.close()


@pytest.mark.parametrize("sql", [f"{READ} FOR SHARE", "DELETE FROM t"])
def test_what_waits_for_one_that_merges(both, pool, sql):
    """P3: one that shares the row, and a deletion in autocommit, which locks none."""
    first, second = both
    first.run(ADD)
    second.connection.autocommit = sql.startswith("DELETE")
    waiting = pool.submit(second.run, sql)
    expect_waiting(second, waiting)
    first.connection.commit()
    cursor = waiting.result(PATIENCE)
    if second.connection.autocommit:
        assert cursor.rowcount == 2
        assert first.rows("SELECT * FROM t") == []
    else:
        assert cursor.fetchall() == [(1,)]
