"""P1, P3, P6, P12: values of an application's types are held as any others.

A commit of a row with such a value is no bulk commit: it is in the log, in memory, and
in the way of nobody who does not write that row.
"""

from __future__ import annotations

import threading

import pytest

import tique
from tests.sharing.test_row_locks import SKIP

pytestmark = pytest.mark.written_for(["postgresql"], reason="the types are its own")

KINDS = {
    "enumeration": ("CREATE TYPE x AS ENUM ('b', 'a', 'c')", ["b", "a", "c"], "z"),
    "domain": ("CREATE DOMAIN x AS INTEGER CHECK (VALUE > 0)", [1, 2, 30], "-1"),
    "domain of numbers": (
        "CREATE DOMAIN x AS NUMERIC(8,2) CHECK (VALUE > 0)",
        ["1.50", "2.25", "30.00"],
        "-1",
    ),
    "domain of documents": (
        "CREATE DOMAIN x AS JSONB CHECK (VALUE ? 'k')",
        ['{"k": 1}', '{"k": 1.50}', '{"k": [1]}'],
        "{}",
    ),
    "domain of texts": (
        "CREATE DOMAIN x AS TEXT CHECK (VALUE LIKE '%@%')",
        ["a@b", "b@c", "c'@\"d"],
        "a",
    ),
    "domain of an enumeration": (
        "CREATE TYPE y AS ENUM ('b', 'a', 'c'); CREATE DOMAIN x AS y CHECK (VALUE < 'c')",
        ["b", "a", "a"],
        "c",
    ),
    "range": (
        "CREATE TYPE x AS RANGE (subtype = float8)",
        ["[1,2]", "[1.5,2)", "empty"],
        "[2,1]",
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def define(process, kind):
    types, values, _ = kind
    for statement in types.split("; "):
        process.commit(statement)
    process.commit("CREATE TABLE t (id INTEGER PRIMARY KEY, v x, n INTEGER)")
    for number, value in enumerate(values):
        process.run("INSERT INTO t VALUES (%s, %s::x, 0)", [number, str(value)])
    process.connection.commit()


EVERY = "SELECT id, v, n, v::TEXT FROM t ORDER BY id"
SORTED = "SELECT id FROM t ORDER BY v, id"


def everywhere(*processes):
    """The same rows, in the same order, for all of them."""
    found = [(each.rows(EVERY), each.rows(SORTED)) for each in processes]
    assert all(one == found[0] for one in found)
    return found[0][0]


def test_a_commit_is_none_in_bulk(process, kind):
    owner = process()
    define(owner, kind)
    table = owner.database.catalog.find(None, "t")
    assert owner.database.catalog.buffers(table)


def test_rows_of_every_state(process, kind):
    """Inserted, updated, upserted, deleted; recent, folded, and after reopening."""
    _, values, wrong = kind
    first, second = process(), process()
    define(first, kind)
    texts = [row[3] for row in everywhere(first, second)]
    second.run("UPDATE t SET v = (SELECT v FROM t WHERE id = 1) WHERE id = 0")
    ((back, number),) = second.run(
        "INSERT INTO t VALUES (2, %s::x, 5) ON CONFLICT (id) DO UPDATE "
        "SET v = excluded.v, n = t.n + excluded.n RETURNING v::TEXT, n",
        [str(values[0])],
    ).fetchall()
    assert (back, number) == (texts[0], 5)
    second.run("INSERT INTO t SELECT id + 10, v, n FROM t WHERE id = 1")
    assert [row[3] for row in second.run(EVERY).fetchall()] == [
        texts[1],
        texts[1],
        texts[0],
        texts[1],
    ]
    second.connection.commit()
    shown = everywhere(first, second)
    first.run("DELETE FROM t WHERE v = (SELECT v FROM t WHERE id = 11)")
    first.connection.rollback()
    first.connection.checkpoint()
    assert everywhere(first, second) == shown
    second.run("UPDATE t SET n = n + 1, v = NULL WHERE id = 1")
    second.connection.commit()
    first.run("UPDATE t SET v = %s::x WHERE id = 1", [str(values[1])])
    first.connection.commit()
    assert [row[3] for row in everywhere(first, second)] == [row[3] for row in shown]
    for sql in (
        f"INSERT INTO t VALUES (7, '{wrong}', 0)",
        f"UPDATE t SET v = '{wrong}' WHERE id = 1",
        f"UPDATE t SET v = '{wrong}'",
        f"INSERT INTO t VALUES (1, '{wrong}', 0) ON CONFLICT (id) DO UPDATE SET n = 1",
        f"INSERT INTO t SELECT 8, '{wrong}', 0",
    ):
        with pytest.raises(tique.DatabaseError) as refused:
            first.run(sql)
        assert refused.value.sqlstate in ("22P02", "23514", "22000")
        first.connection.rollback()
    left = everywhere(first, second)
    first.close()
    second.close()
    assert everywhere(process()) == left


def test_workers_of_a_queue(process, kind):
    """Two that have a job each commit beside each other, and beside a new row."""
    first, second = process(), process()
    define(first, kind)
    for place, each in enumerate((first, second)):
        each.connection.lock_timeout = 5
        assert each.run(SKIP).fetchall() == [(place,)]
        each.run("UPDATE t SET v = NULL WHERE id = %s", [place])
    third = process(lock_timeout=0.5)
    third.commit("INSERT INTO t SELECT 10, v, 1 FROM t WHERE id = 2")
    thread = threading.Thread(target=first.connection.commit)
    thread.start()
    second.connection.commit()
    thread.join(20)
    assert first.rows("SELECT count(*), count(v) FROM t") == [(4, 2)]
