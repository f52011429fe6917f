"""P1: a table is gone and another one has its name, beside an older snapshot.

Of another process, which has planned with the first one, or has its rows in memory.
"""

from __future__ import annotations

import re

import pytest

import tique

CREATE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note TEXT)"
INSERT = "INSERT INTO t VALUES (1, 7, 'n'), (2, 7, 'n'), (3, 7, 'n')"
MAKERS = {
    "empty": ["DROP TABLE t", CREATE, INSERT],
    "from a query": ["DROP TABLE t", "CREATE TABLE t AS SELECT * FROM other"],
    "twice": ["DROP TABLE t", CREATE, "DROP TABLE t", CREATE, INSERT],
    "renamed": ["DROP TABLE t", "ALTER TABLE other RENAME TO t"],
    "swapped": ["ALTER TABLE t RENAME TO u", "ALTER TABLE other RENAME TO t"],
    "in one transaction": ["BEGIN", "DROP TABLE t", CREATE, INSERT, "COMMIT"],
}
QUERIES = {
    "all": ("SELECT id, v FROM t", {(1, 5), (2, 0)}),
    "a key": ("SELECT id, v FROM t WHERE id = 2", {(2, 0)}),
    "a changed key": ("SELECT id, v FROM t WHERE id = 1", {(1, 5)}),
    "keys": ("SELECT id, v FROM t WHERE id IN (1, 2, 3)", {(1, 5), (2, 0)}),
    "a join": (
        "SELECT a.id, b.v FROM t AS a, t AS b WHERE a.id = b.id",
        {(1, 5), (2, 0)},
    ),
    "inside": (
        "SELECT id, v FROM t AS a WHERE v IN (SELECT v FROM t)",
        {(1, 5), (2, 0)},
    ),
}
REFUSALS = r"(changed|dropped) meanwhile|after this transaction began|unknown table"


@pytest.fixture
def others(pair):
    """Two processes; the second one knows the tables, and has read them all."""
    first, second = pair
    first.commit(CREATE.replace("TABLE t", "TABLE other"))
    first.commit(INSERT.replace("INTO t", "INTO other"))
    first.commit("CREATE TABLE beside (id INTEGER PRIMARY KEY)")
    first.connection.checkpoint()
    return first, second


def make(first, maker):
    for statement in MAKERS[maker]:
        first.run(statement)
        if "BEGIN" not in MAKERS[maker]:
            first.connection.commit()
    first.connection.checkpoint()


def found(process, query):
    """The rows of a query; those that it should have if it was refused rightly."""
    sql, expected = QUERIES[query]
    try:
        return set(process.run(sql).fetchall())
    except (tique.SerializationError, tique.ProgrammingError) as error:
        refusal = str(error)
    assert re.search(REFUSALS, refusal), refusal
    return expected


@pytest.mark.parametrize("follows", [False, True])
@pytest.mark.parametrize("maker", MAKERS)
def test_storage(others, maker, follows):
    """P1: of one whose rows are all in storage, and were read before or not."""
    first, second = others
    first.commit("UPDATE t SET v = 5 WHERE id = 1")
    first.connection.checkpoint()
    for sql, _ in QUERIES.values():
        for _ in range(7):
            # The engine has the statement prepared by now.
            second.rows(sql)
    assert second.run("SELECT * FROM beside").fetchall() == []
    make(first, maker)
    if follows:
        second.database.timeline.catch_up()
    for query, (_, expected) in QUERIES.items():
        assert found(second, query) == expected, query
    second.connection.rollback()
    rows = [(1, 7, "n"), (2, 7, "n"), (3, 7, "n")]
    assert sorted(second.rows("SELECT * FROM t")) == rows
    for sql, _ in QUERIES.values():
        assert {v for _, v in second.rows(sql)} == {7}


@pytest.mark.parametrize("maker", ["empty", "from a query"])
def test_recent_versions(others, maker):
    """P1: of one with versions that are in memory only, and own writes."""
    first, second = others
    first.commit("UPDATE t SET v = 4 WHERE id = 1")
    second.run("UPDATE t SET v = 5 WHERE id = 1")
    make(first, maker)
    for query, (_, expected) in QUERIES.items():
        assert found(second, query) == expected, query


def test_a_released_table_is_made_again_by_another_program(others, shared_engine):
    """P1: neither is that one the table that the snapshot has."""
    _, second = others
    assert second.rows("SELECT count(*) FROM t") == [(2,)]
    assert second.run("SELECT * FROM beside").fetchall() == []
    tique.detach(shared_engine.url, ["t"])
    native, place = shared_engine.native(), f"{shared_engine.schema}.t"
    for statement in ("DROP TABLE t", CREATE, INSERT):
        native.execute(statement.replace(" t", f" {place}", 1))
    getattr(native, "commit", lambda: None)()
    with pytest.raises(tique.ProgrammingError, match=REFUSALS) as refusal:
        second.run("SELECT count(*) FROM t")
    assert refusal.value.sqlstate == "42P01"
