"""P5: a replicator that is killed at any point goes on where its last fold ended."""

from __future__ import annotations

from contextlib import closing

import duckdb
import pytest

import tique
from tests.processes.children import ChildProcess
from tests.replica.test_replication import caught_up, rows

POINTS = (2, 10, 18, 26, 40, 70)


def commit_some(source, number):
    """Transfers, new rows and, now and then, a change of definitions."""
    source.execute("UPDATE account SET balance = balance - 1 WHERE id = 1")
    source.execute("UPDATE account SET balance = balance + 1 WHERE id = 2")
    new = "INSERT INTO account (id, owner, balance) VALUES (%s, 'x', 0)"
    source.execute(new, [number + 10])
    source.execute("INSERT INTO bag VALUES (%s)", [number % 3])
    source.commit()


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills(shared_engine, source, target, replicate):
    """At calls of the engine one after the other, in copies, folds and openings."""
    source.execute("CREATE TABLE bag (v INTEGER)")
    source.commit()
    number = 0
    for point in POINTS:
        with ChildProcess(
            "tests.replica.replicating_child", shared_engine.url, target, point
        ) as child:
            while child._process.poll() is None:
                commit_some(source, number)
                number += 1
            child.kill()
        assert child._process.returncode == -9, child.errors
        if point == POINTS[len(POINTS) // 2]:
            source.execute("ALTER TABLE account ADD COLUMN note VARCHAR(10)")
            source.commit()
        expect_a_state(target, shared_engine.schema)
    replication = replicate()
    caught_up(replication, source)
    replication.stop()
    with closing(tique.connect(target)) as copy:
        for name, order in (("account", "id"), ("bag", "v")):
            query = f"SELECT * FROM {{}} ORDER BY {order}"
            expected = rows(source, query.format(name))
            assert (
                rows(copy, query.format(f"{shared_engine.schema}.{name}")) == expected
            )


def expect_a_state(target, schema):
    """The file is a state of the source, if it says that it is ready."""
    with closing(duckdb.connect(target.removeprefix("duckdb:///"))) as connection:
        there = connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE table_name IN ('replica', 'account')"
        ).fetchall()
        if len(there) < 2:
            return
        ((position, ready_at),) = connection.execute(
            "SELECT position, ready_at FROM tique.replica"
        ).fetchall()
        if position < ready_at:
            return
        ((total, count),) = connection.execute(
            f"SELECT sum(balance), count(*) FROM {schema}.account"
        ).fetchall()
        ((bagged,),) = connection.execute(
            f"SELECT count(*) FROM {schema}.bag"
        ).fetchall()
    assert total == 30
    assert count - 2 == bagged
