"""Deadlocks of row locks, however transactions are spread over processes (P6).

Each transaction locks its row, and then wants the next one's: one of them is told that
it is a deadlock, long before ``lock_timeout``, and the others go on.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing

import pytest

import tique
from tests.effort import patience
from tests.sharing.test_rereading import wait_for_company

LAYOUTS = [
    # The process of each transaction.
    (0, 0),
    (0, 1),
    (0, 0, 0),
    (0, 0, 1),
    (0, 1, 2),
    (0, 0, 0, 0),
    (0, 0, 0, 1),
    (0, 0, 1, 1),
    (0, 1, 0, 1),
    (0, 0, 1, 2),
    (0, 1, 0, 2),
    (0, 1, 2, 3),
]
PATIENCE = 30.0
"""lock_timeout, which none of them may need."""

LOCKING = {
    "update": "UPDATE t SET v = v + 1 WHERE id = %s RETURNING v",
    "lock": "SELECT v FROM t WHERE id = %s FOR UPDATE",
}


@pytest.mark.every_engine
@pytest.mark.parametrize(
    "how", [("update",), ("lock",), ("update", "lock")], ids="-".join
)
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: "".join(map(str, each)))
def test_a_circle(process, layout, how):
    """P6: of any layout; exactly one is the victim."""
    count = len(layout)
    processes = [process(lock_timeout=PATIENCE) for _ in range(max(layout) + 1)]
    first = processes[0]
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    values = ", ".join(f"({n}, 0)" for n in range(count))
    first.commit(f"INSERT INTO t VALUES {values}")
    for each in processes[: len(processes) if len(processes) > 1 else 0]:
        wait_for_company(each)
    with ExitStack() as stack, ThreadPoolExecutor(count) as pool:
        connections = []
        for number in layout:
            connection = stack.enter_context(closing(processes[number].another()))
            connection.lock_timeout = PATIENCE
            connection.isolation_level = "READ COMMITTED"
            connections.append(connection)
        for n, connection in enumerate(connections):
            connection.execute(LOCKING[how[n % len(how)]], [n]).fetchall()

        def want(n):
            sql = LOCKING[how[n % len(how)]]
            try:
                connections[n].execute(sql, [(n + 1) % count]).fetchall()
                connections[n].commit()
            except tique.SerializationError as error:
                connections[n].rollback()
                return error.sqlstate
            return None

        started = time.monotonic()
        found = [pool.submit(want, n) for n in range(count)]
        outcomes = [each.result(PATIENCE + patience(30)) for each in found]
        assert time.monotonic() - started < patience(8)
    assert sorted(outcomes, key=str) == ["40P01", *[None] * (count - 1)]
