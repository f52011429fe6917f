"""A commit waits for locks of rows that it writes, and of no other rows (P6).

Rows that are staged have no keys in memory: those of a few are asked for.
"""

from __future__ import annotations

import threading

import pytest

import tique
from tests.sharing.test_rereading import wait_for_company
from tests.sharing.test_row_locks import SKIP, expect_waiting
from tique.query.write import change, changes, insert

TYPES = {
    "enumeration": ("CREATE TYPE x AS ENUM ('a', 'b')", "'b'"),
    "domain": ("CREATE DOMAIN x AS INTEGER CHECK (VALUE > 0)", "5"),
    "range": ("CREATE TYPE x AS RANGE (subtype = float8)", "'[1,2]'"),
    "composite": ("CREATE TYPE x AS (a INTEGER, b TEXT)", "'(1,b)'"),
    "array": ("CREATE TYPE y AS ENUM ('a', 'b'); CREATE DOMAIN x AS y[]", "'{b}'"),
}


@pytest.fixture(params=[False, True], ids=["one process", "two processes"])
def staging(request, process, monkeypatch):
    """Two connections whose writes are all staged, on any engine."""
    for module in (changes, change, insert):
        if hasattr(module, "BUFFERED_ROWS"):
            monkeypatch.setattr(module, "BUFFERED_ROWS", 0)

    def start(first, **options):
        if request.param:
            second = process(lock_timeout=0.5, **options).connection
        else:
            second = first.another()
            second.lock_timeout = 0.5
            for name, value in options.items():
                setattr(second, name, value)
        return second

    return start


@pytest.fixture
def filled(process):
    first = process()
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    first.commit("INSERT INTO t SELECT 1, 0 UNION ALL SELECT 2, 0")
    return first


def test_other_rows_are_written(filled, staging):
    """An INSERT and an UPDATE commit while another row is locked, and both ways round."""
    second = staging(filled)
    filled.run("SELECT v FROM t WHERE id = 1 FOR UPDATE")
    second.execute("UPDATE t SET v = abs(v) + 1 WHERE id > 1")
    second.commit()
    second.execute("INSERT INTO t SELECT 3, 0")
    second.commit()
    filled.run("UPDATE t SET v = abs(v) + 1 WHERE id < 2")
    second.execute("SELECT v FROM t WHERE id = 2 FOR UPDATE")
    filled.connection.commit()
    second.rollback()
    assert filled.rows("SELECT * FROM t ORDER BY id") == [(1, 1), (2, 1), (3, 0)]


def test_the_row_itself_is_not(filled, staging):
    """P3: its commit waits, and fails when lock_timeout is over."""
    second = staging(filled)
    filled.run("SELECT v FROM t WHERE id = 1 FOR UPDATE")
    second.execute("UPDATE t SET v = abs(v) + 1 WHERE id < 3")
    with pytest.raises(tique.OperationalError) as refused:
        second.commit()
    assert refused.value.sqlstate == "55P03"
    second.rollback()
    filled.connection.commit()
    assert filled.rows("SELECT sum(v) FROM t") == [(0,)]


@pytest.mark.slow
@pytest.mark.written_for(["postgresql"], reason="the types are its own")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("is_apart", [False, True], ids=["one process", "two"])
def test_workers_of_a_queue(process, kind, is_apart):
    """Two that have a job each, with a column of the application's type, both finish."""
    types, value = TYPES[kind]
    first = process()
    for statement in types.split("; "):
        first.commit(statement)
    first.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v x)")
    first.commit(f"INSERT INTO t SELECT n, {value} FROM generate_series(1, 9) AS n")
    second = process().connection if is_apart else first.another()
    for place, each in enumerate((first.connection, second)):
        each.lock_timeout = 5
        assert each.execute(SKIP).fetchall() == [(place + 1,)]
        each.execute("UPDATE t SET v = NULL WHERE id = %s", (place + 1,))
    outcomes = []

    def commit():
        outcomes.append(first.connection.commit())

    thread = threading.Thread(target=commit)
    thread.start()
    second.execute(f"INSERT INTO t VALUES (10, {value})")
    second.commit()
    thread.join(20)
    assert outcomes == [None]
    assert first.rows("SELECT count(*), count(v) FROM t") == [(10, 8)]


def test_read_committed_waits_for_staged_rows(filled, staging, pool):
    """P3: the second of two changes of a row is made of the first one's row."""
    second = staging(filled, isolation_level="READ COMMITTED")
    filled.connection.isolation_level = "READ COMMITTED"
    if second._database is not filled.database:
        wait_for_company(filled)
    second.lock_timeout = 20
    filled.run("UPDATE t SET v = abs(v) + 1 WHERE id < 2")
    second.execute("SELECT 1").fetchall()
    waiting = pool.submit(second.execute, "UPDATE t SET v = abs(v) + 1 WHERE v = 0")
    owner = type("Owner", (), {"database": second._database})
    expect_waiting(owner, waiting)
    filled.connection.commit()
    assert waiting.result(20).rowcount == 1
    second.commit()
    assert filled.rows("SELECT v FROM t ORDER BY id") == [(1,), (1,)]
