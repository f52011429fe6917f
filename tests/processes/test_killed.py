"""P6: a killed process's locks and snapshots are free long before its lease ends."""

from __future__ import annotations

import time

import pytest

from tests.processes.children import ChildProcess

LEASE = 60
PATIENCE = 10


@pytest.mark.crash
def test_its_snapshot_holds_nothing_back(shared_engine):
    """P6, P7: the others see that its session is gone."""
    # A server's memory may have clients of an earlier test, until their leases end.
    shared_engine.restart()
    connection = shared_engine.connect(checkpoint="manual", lease=LEASE)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    with ChildProcess(
        "tests.processes.snapshot_child", shared_engine.url, LEASE
    ) as child:
        child.await_lines("reading")
        connection.execute("INSERT INTO t VALUES (2)")
        connection.commit()
        connection.checkpoint()
        held = connection.status()
        assert (held.processes, held.stable < held.sts) == (2, True)
        child.kill()
    deadline = time.monotonic() + PATIENCE
    while (status := connection.status()).processes > 1:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    while (status := connection.status()).stable < status.sts:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert connection.checkpoint() == 1
