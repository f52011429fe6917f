"""P4, P5, P6: what happens to a replica when its source, its log or its folds fail."""

from __future__ import annotations

import time
from contextlib import closing

import duckdb
import pytest

from tests.replica.test_replication import caught_up, rows
from tique.store.versions import TableVersions


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.written_for(
    ["postgresql"], reason="the test's MonetDB server gets another port"
)
def test_the_source_is_restarted(shared_engine, source, replicate, reading):
    """P6: it is opened again, and nothing is left out; reads go on meanwhile."""
    replication = replicate()
    source.execute("UPDATE account SET balance = 1 WHERE id = 1")
    caught_up(replication, source)
    shared_engine.restart()
    copy, table = reading(), f"{shared_engine.schema}.account"
    assert rows(copy, f"SELECT count(*) FROM {table}") == [(2,)]
    again = shared_engine.connect()
    again.execute("UPDATE account SET balance = 2 WHERE id = 2")
    caught_up(replication, again)
    query = f"SELECT balance FROM {table} ORDER BY id"
    assert rows(copy, query) == [(1,), (2,)]
    assert not replication.status().notes


@pytest.mark.slow
def test_the_log_was_given_up(shared_engine, source, replicate, reading):
    """P4: after ``keep`` all is copied anew, and the status says so."""
    replicate(keep=1.0).stop()
    time.sleep(1.5)
    for balance in range(3):
        source.execute("UPDATE account SET balance = %s", [balance])
        source.commit()
        source.checkpoint()
    replication = replicate()
    assert "copied anew" in replication.status().notes[0]
    source.execute("UPDATE account SET balance = 5 WHERE id = 1")
    caught_up(replication, source)
    query = f"SELECT balance FROM {shared_engine.schema}.account ORDER BY id"
    assert rows(reading(), query) == [(5,), (2,)]


@pytest.mark.slow
@pytest.mark.parametrize("cut", ["before", "after"])
def test_a_fold_that_is_cut_short(
    shared_engine, source, replicate, reading, target, monkeypatch, cut
):
    """P5: before COMMIT, or between it and what memory learns: nothing twice, nothing lost."""
    source.execute("CREATE TABLE bag (v INTEGER)")
    source.commit()
    replication = replicate()
    copy, schema = reading(), shared_engine.schema
    source.execute("UPDATE account SET balance = 1 WHERE id = 1")
    source.execute("INSERT INTO bag VALUES (1), (1)")
    caught_up(replication, source)
    place = "changes" if cut == "before" else "folded"

    def fail(*_, **__):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TableVersions, place, fail)
        with pytest.raises(KeyboardInterrupt):
            replication.fold()
    everything = (
        f"SELECT id, balance, v FROM {schema}.account, {schema}.bag ORDER BY id"
    )
    assert rows(copy, everything) == [(1, 1, 1), (1, 1, 1), (2, 20, 1), (2, 20, 1)]
    source.execute("UPDATE account SET balance = 2 WHERE id = 1")
    source.execute("DELETE FROM bag WHERE v = 1")
    source.execute("INSERT INTO bag VALUES (3)")
    version = caught_up(replication, source)
    assert rows(copy, everything) == [(1, 2, 3), (2, 20, 3)]
    assert replication.fold() >= version
    assert rows(copy, everything) == [(1, 2, 3), (2, 20, 3)]
    copy.close()
    replication.stop()
    with closing(duckdb.connect(target.removeprefix("duckdb:///"))) as connection:
        assert connection.execute(everything).fetchall() == [(1, 2, 3), (2, 20, 3)]
