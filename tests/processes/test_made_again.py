"""P1: a table is dropped and made again, and a snapshot of another process is older."""

from __future__ import annotations

import pytest

from tests.processes.children import ChildProcess

COUNT = "SELECT count(*) FROM t\n"
MAKERS = {
    "from a query": ["CREATE TABLE t AS SELECT * FROM source"],
    "empty": [
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        "INSERT INTO t VALUES (1), (2)",
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS.keys())
def test_an_older_snapshot_has_no_rows_of_the_new_table(shared_engine, maker):
    connection = shared_engine.connect(checkpoint="manual")
    for statement in (
        "CREATE TABLE source (id INTEGER PRIMARY KEY)",
        "INSERT INTO source VALUES (1), (2)",
        "CREATE TABLE t (id INTEGER PRIMARY KEY)",
        "INSERT INTO t VALUES (1)",
    ):
        connection.execute(statement)
        connection.commit()
    connection.checkpoint()
    with ChildProcess("tests.processes.asking_child", shared_engine.url) as child:
        child.await_lines("ready")
        child.write(COUNT)
        assert child.await_lines("answer") == ["1"]
        for statement in ("DROP TABLE t", *maker):
            connection.execute(statement)
            connection.commit()
        connection.checkpoint()
        child.write(COUNT)
        # The rows that it saw before are gone: it can only be told to run again.
        assert not child.await_lines("answer", 2)[0].isdigit()
