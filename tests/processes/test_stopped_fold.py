"""P6, P7: a process that is stopped while it holds an uncommitted fold holds nothing up.

Its engine transaction has written rows of storage, and has the lease by which folds take turns.
"""

from __future__ import annotations

import signal
import time
from contextlib import closing, suppress

import pytest

import tique
from tests.effort import patience
from tests.portable import numbers
from tests.processes.children import ChildProcess

LEASE = 1.0
ROWS = 1000
OPEN = (
    "SELECT count(*) FROM pg_stat_activity WHERE backend_xmin IS NOT NULL "
    "AND pid <> pg_backend_pid() AND datname = current_database()"
)
"""The query for engine transactions that keep PostgreSQL's VACUUM from removing rows."""


def ask(child):
    """What the process finds, and whether in the uncommitted fold."""
    child.write("ask\n")
    total, is_there = child.await_lines("answer", len(child.of_kind("answer")) + 1)
    return total, is_there == "True"


def fold_all(connection, deadline):
    """Checkpoints, until no version is left."""
    while any(v.rows for v in connection._database.catalog.all_versions()):
        with suppress(tique.OperationalError):
            connection.checkpoint()
        assert time.monotonic() < deadline


@pytest.mark.slow
@pytest.mark.crash
def test_others_go_on(shared_engine):
    connection = shared_engine.connect(checkpoint="manual", lease=LEASE)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(ROWS)}")
    connection.commit()
    connection.checkpoint()
    total = 0

    def add():
        """Change a row that the stopped process has written, and another one."""
        nonlocal total
        started = time.monotonic()
        for row in (1, 2 + total % (ROWS - 2)):
            connection.execute("UPDATE t SET v = v + 1 WHERE id = %s", [row])
        connection.commit()
        total += 2
        return time.monotonic() - started

    with ChildProcess(
        "tests.processes.folding_child", shared_engine.url, LEASE
    ) as child:
        child.await_lines("ready")
        rounds = 0
        for _ in range(6):
            add()
            while ask(child) != (str(total), True):
                # The lease may be with this process still.
                assert child.of_kind("answer")[-1][0] == str(total)
                time.sleep(0.1)
            child.signal(signal.SIGSTOP)
            stopped = time.monotonic()
            longest = 0.0
            while time.monotonic() < stopped + 2 * LEASE:
                longest = max(longest, add())
            assert longest < patience(1)
            if shared_engine.name == "postgresql":
                # Its sessions were ended when it was given up.
                fold_all(connection, stopped + patience(10))
                with closing(connection._database.engine.session()) as session:
                    assert session.execute(OPEN).fetch_all() == [(0,)]
                is_held = True
            else:
                # MonetDB ends no session that waits for its client: docs/engines/monetdb.md.
                is_held = False
                try:
                    connection.checkpoint()
                except tique.OperationalError as error:
                    is_held = "cannot be folded" in str(error)
                assert time.monotonic() < stopped + patience(20)
            assert connection.execute("SELECT sum(v) FROM t").fetchall() == [(total,)]
            connection.rollback()
            add()
            child.signal(signal.SIGCONT)
            found, _ = ask(child)
            # It learns that it was given up, or does not need to: never an old sum.
            assert found in (str(total), "08006")
            if found != str(total):
                assert ask(child)[0] == str(total)
            fold_all(connection, time.monotonic() + patience(20))
            # It may have let go of it just before it was stopped.
            rounds += is_held
            if rounds == 2:
                break
        assert rounds == 2
        child.end()
