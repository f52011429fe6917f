"""P5, P4: a migration is committed from its COMMIT on, though its process dies right after."""

from __future__ import annotations

import time
from contextlib import closing

import pytest

import tique
from tests.portable import numbers
from tests.processes.children import ChildProcess
from tests.sharing.playing import ROWS, Process, cached

PATIENCE = 10
MIGRATION = (
    "BEGIN",
    "CREATE TABLE u (id INTEGER PRIMARY KEY, v INTEGER)",
    "INSERT INTO u VALUES (1, 7)",
    "UPDATE t SET v = 5 WHERE id = 1",
)
IN_BULK = f"INSERT INTO u SELECT number + 10, 0 FROM {numbers(ROWS)}"


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.every_engine
@pytest.mark.both_sequencers
@pytest.mark.parametrize(
    ("in_bulk", "is_restarted"),
    [((), False), ((IN_BULK,), False), ((IN_BULK,), True)],
    ids=["buffered", "bulk", "restarted"],
)
def test_a_migration_counts_from_its_commit(shared_engine, in_bulk, is_restarted):
    """P3, P4, P5: for each reader of the log, whoever ends its timestamp."""
    survivor = Process(shared_engine.url, certifier="query")
    survivor.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    survivor.commit("INSERT INTO t VALUES (1, 0), (2, 0)")
    with (
        survivor.another() as older,
        ChildProcess(
            "tests.crash.migrating_child", shared_engine.url, *MIGRATION, *in_bulk
        ) as child,
    ):
        assert older.execute("SELECT sum(v) FROM t").fetchall() == [(0,)]
        older.execute("UPDATE t SET v = v + 9 WHERE id = 1")
        (txid,) = map(int, child.await_lines("committing"))
        child.end()
        if not is_restarted:
            with pytest.raises(tique.SerializationError):
                older.commit()
        older.rollback()
    if is_restarted:
        survivor.close()
        shared_engine.restart()
        survivor = Process(shared_engine.url, certifier="query")
    expected = {
        "SELECT v FROM t ORDER BY id": [(5,), (0,)],
        "SELECT count(*), sum(v) FROM u": [(1 + ROWS * len(in_bulk), 7)],
    }

    def expect(process):
        assert process.connection.outcome(txid) == "committed"
        for query, rows in expected.items():
            assert process.rows(query) == rows

    expect(survivor)
    engine = survivor.database.engine
    with closing(engine.session()) as session:
        for versions in survivor.database.catalog.all_versions():
            versions.drain(session)
            assert engine.remove_orphans(session, versions.table) == 0
    joiner = survivor.again()
    expect(joiner)
    joiner.close()
    deadline = time.monotonic() + PATIENCE
    while cached(survivor):
        assert time.monotonic() < deadline
        survivor.connection.checkpoint()
    with closing(engine.session()) as session:
        engine.prune_log(session, survivor.database.timeline.stable(), 3600)
    expect(survivor)
    survivor.close()
    for query, rows in expected.items():
        assert shared_engine.native().execute(query).fetchall() == rows
