"""Issue 2: one UPDATE over many rows, in little memory; bulk beside small (P3).

A million of them in a long run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import tique
from tests.effort import effort
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

ROWS = effort(300_000, 1_000_000)
MEGABYTES = 300 * ROWS / 1_000_000
"""The growth that a process may have."""


@pytest.mark.slow
@pytest.mark.one_duckdb
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="measures by /proc")
def test_update_of_many_rows(engine):
    with engine.connect(checkpoint="manual") as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)"
        )
    native = engine.native()
    native.execute(
        f"INSERT INTO t SELECT number, 0, 'note ' || number FROM {numbers(ROWS)}"
    )
    native.close()
    finished = subprocess.run(
        [sys.executable, "-m", "tests.isolation.bulk_child", engine.url, str(ROWS)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    figures = json.loads(finished.stdout)
    print(figures)
    grown = figures["grown"]
    assert max(grown["update"], grown["read own"], grown["commit"]) < MEGABYTES, figures


@pytest.fixture(params=["memory", "query"])
def many(engine, request):
    """Connections to a database with 5000 rows: enough for writes to be staged."""
    options = {"certifier": request.param, "checkpoint": "manual"}
    first = engine.connect(**options)
    first.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT UNIQUE, v INTEGER)"
    )
    first.execute(f"INSERT INTO t SELECT number, 'n' || number, 0 FROM {numbers(5000)}")
    first.commit()
    return first, engine.connect(**options), engine.connect(**options)


def both_ways(connection, key):
    """A row's value by key and by a scan: the two must agree."""
    by_key = connection.execute("SELECT v FROM t WHERE id = %s", (key,)).fetchone()
    by_scan = connection.execute("SELECT v FROM t WHERE id + 0 = %s", (key,)).fetchone()
    assert by_key == by_scan
    return by_key and by_key[0]


def test_a_bulk_commit_after_a_small_one_of_the_same_row(many):
    one, two, _ = many
    one.checkpoint()
    one.execute("UPDATE t SET v = 1 WHERE id = 1")
    one.commit()
    assert both_ways(two, 1) == 1
    two.rollback()
    one.execute("UPDATE t SET v = 2")
    one.commit()
    assert both_ways(two, 1) == 2
    two.rollback()
    one.execute("UPDATE t SET v = v + 1 WHERE id = 1")
    one.commit()
    assert both_ways(two, 1) == 3
    assert both_ways(two, 2) == 2
    two.rollback()
    one.checkpoint()
    assert both_ways(two, 1) == 3


def test_an_old_snapshot_beside_bulk_commits_and_folds(many):
    one, old, new = many
    one.execute("UPDATE t SET v = 1 WHERE id = 1")
    one.commit()
    assert both_ways(old, 1) == 1
    one.execute("UPDATE t SET v = 20")
    one.commit()
    one.execute("DELETE FROM t WHERE id < 2500")
    one.commit()
    one.execute("UPDATE t SET v = 30 WHERE id = 4000")
    one.commit()
    one.checkpoint()
    assert both_ways(old, 1) == 1
    assert both_ways(old, 4000) == 0
    assert old.execute("SELECT sum(v), count(*) FROM t").fetchone() == (1, 5000)
    assert both_ways(new, 1) is None
    assert both_ways(new, 4000) == 30
    assert new.execute("SELECT sum(v), count(*) FROM t").fetchone() == (
        2500 * 20 + 10,
        2500,
    )
    old.rollback()
    new.rollback()
    one.checkpoint()
    assert all(v.is_empty for v in one._database.catalog.all_versions())
    assert both_ways(old, 4000) == 30


@pytest.mark.parametrize("bulk_first", [True, False])
def test_bulk_against_small_first_committer_wins(many, bulk_first):
    bulk, small, check = many
    bulk.execute("UPDATE t SET v = v + 1")
    small.execute("UPDATE t SET v = v + 10 WHERE id = 7")
    first, second = (bulk, small) if bulk_first else (small, bulk)
    first.commit()
    with pytest.raises(tique.SerializationError) as caught:
        second.commit()
    assert caught.value.key == (7,)
    assert both_ways(check, 7) == (1 if bulk_first else 10)


@pytest.mark.parametrize("bulk_first", [True, False])
def test_bulk_against_small_on_a_unique_key(many, bulk_first):
    bulk, small, check = many
    bulk.execute(
        f"INSERT INTO t SELECT number + 5000, 'm' || number, 0 FROM {numbers(3000)}"
    )
    small.execute("INSERT INTO t VALUES (-1, 'm7', 0)")
    first, second = (bulk, small) if bulk_first else (small, bulk)
    first.commit()
    with pytest.raises(tique.SerializationError):
        second.commit()
    assert check.execute("SELECT count(*) FROM t WHERE name = 'm7'").fetchone() == (1,)
    check.rollback()
    check.checkpoint()


def test_two_bulk_updates(many):
    one, two, check = many
    one.execute("UPDATE t SET v = v + 1 WHERE id < 3000")
    two.execute("UPDATE t SET v = v + 1 WHERE id >= 2500")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    two.execute("UPDATE t SET v = v + 1 WHERE id >= 2500")
    two.commit()
    assert check.execute("SELECT sum(v) FROM t").fetchone() == (5500,)


@pytest.mark.parametrize("bulk", [True, False])
def test_unique_key_of_a_table_without_primary_key(engine, bulk):
    one, two = engine.connect(checkpoint="manual"), engine.connect()
    one.execute("CREATE TABLE u (x INTEGER, name TEXT UNIQUE)")
    one.commit()
    one.execute("INSERT INTO u VALUES (1, 'same'), (1, NULL)")
    if bulk:
        two.execute(
            "INSERT INTO u SELECT number, CASE number WHEN 5 THEN 'same' END "
            f"FROM {numbers(3000)}"
        )
    else:
        two.execute("INSERT INTO u VALUES (2, 'same'), (2, NULL)")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    two.execute("INSERT INTO u VALUES (2, 'other'), (2, NULL)")
    two.commit()
    one.checkpoint()
    assert one.execute("SELECT count(*), count(name) FROM u").fetchone() == (4, 2)
