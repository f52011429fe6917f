"""EXPLAIN names the form that each table got, and why."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique.checkpoint import uncommitted

ROWS = 6000
"""More than a statement has as constants, and than the driver buffers."""
FOLD = "no uncommitted fold"


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual", uncommitted_fold_rows=None)
    fill(connection)
    return connection


def fill(connection):
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("CREATE TABLE u (a INTEGER, b INTEGER, PRIMARY KEY (a, b))")
    connection.execute("CREATE TABLE k (v INTEGER)")
    connection.execute(f"INSERT INTO t SELECT number, 0 FROM {numbers(ROWS)}")
    connection.execute("INSERT INTO u VALUES (1, 1), (1, 2), (2, 1)")
    connection.execute("INSERT INTO k VALUES (1)")
    connection.commit()
    connection.checkpoint()


def change(connection, *statements):
    for statement in statements:
        connection.execute(statement)
    connection.commit()


def forms(connection, sql, parameters=None):
    """The forms and reasons by table, and the row about uncommitted folds, if any."""
    rows = connection.execute(f"EXPLAIN {sql}", parameters).fetchall()
    found = {}
    for name, text in rows:
        if name.startswith("form of "):
            _, table = name.removeprefix("form of ").split(".")
            found.setdefault(table, []).append(text)
        elif name == FOLD:
            found[FOLD] = text
    return found


def form(connection, sql, table="t", parameters=None):
    (text,) = forms(connection, sql, parameters)[table]
    name, _, why = text.partition(": ")
    assert why
    return name, why


def test_storage_only(connection):
    name, why = form(connection, "SELECT sum(v + 0) FROM t")
    assert (name, why) == ("storage only", "its snapshot has no recent version")
    assert forms(connection, "SELECT 1 + 1") == {}


def test_versions_that_are_newer_do_not_count(engine, connection):
    connection.execute("SELECT 1 FROM k").fetchall()
    with engine.connect(checkpoint="manual", uncommitted_fold_rows=None) as other:
        change(other, "UPDATE t SET v = 1 WHERE id = 1")
        assert form(connection, "SELECT sum(v + 0) FROM t")[0] == "storage only"
        assert form(other, "SELECT sum(v + 0) FROM t")[0] == "overlay"


def test_recent_versions_that_cannot_matter(connection):
    change(connection, "UPDATE t SET v = 1 WHERE id = 1")
    name, why = form(connection, "SELECT v FROM t WHERE id = %s", "t", [2])
    assert name == "storage only"
    assert why == "no recent version has the values that are asked for"


def test_a_row_by_its_key(connection):
    change(connection, "UPDATE t SET v = 1 WHERE id = 1")
    assert form(connection, "SELECT v FROM t WHERE id = %s", "t", [1])[0] == (
        "constant row"
    )


def test_a_few_recent_rows(connection):
    change(connection, "UPDATE t SET v = 1 WHERE id = 1")
    name, why = form(connection, "SELECT sum(v + 0) FROM t")
    assert name == "overlay"
    assert "(1)" in why
    connection.execute("UPDATE t SET v = 1 WHERE id = 2")
    assert "(2)" in form(connection, "SELECT sum(v + 0) FROM t")[1]


def test_a_large_statement(connection):
    change(connection, "UPDATE t SET v = v + 1")
    name, why = form(connection, "SELECT sum(v + 0) FROM t")
    assert name == "anti-join"
    assert f"({ROWS:,}), some of which are in the cache table alone" in why


def test_own_rows_of_a_large_statement(connection):
    connection.execute("UPDATE t SET v = v + 1")
    name, why = form(connection, "SELECT sum(v + 0) FROM t")
    assert name == "anti-join"
    assert "staging table" in why


def test_more_rows_than_a_statement_has(connection):
    for first in range(0, ROWS, 1500):
        many = [(1, i) for i in range(first, first + 1500)]
        connection.cursor().executemany("UPDATE t SET v = %s WHERE id = %s", many)
        connection.commit()
    assert "too many" in form(connection, "SELECT sum(v + 0) FROM t")[1]


def test_a_table_without_a_key(connection):
    change(connection, "INSERT INTO k VALUES (2)")
    name, why = form(connection, "SELECT sum(v + 0) FROM k", "k")
    assert name == "union"
    assert "without a primary key" in why


def test_each_table_has_its_own(connection):
    change(connection, "UPDATE t SET v = 1 WHERE id = 1")
    query = "SELECT count(*) FROM t, u, t AS other WHERE t.v = u.a AND t.id = other.v"
    found = forms(connection, query)
    assert [text.split(":")[0] for text in found["u"]] == ["storage only"]
    assert [text.split(":")[0] for text in found["t"]] == ["overlay"]


def test_tables_of_views_are_named(connection):
    connection.execute("CREATE VIEW w AS SELECT v FROM t WHERE v >= 0")
    change(connection, "UPDATE t SET v = 1 WHERE id = 1")
    found = forms(connection, "SELECT sum(v) FROM w")
    assert "w" not in found
    assert found["t"][0].startswith("overlay: ")


@pytest.mark.parametrize(
    "statement",
    ["UPDATE t SET v = 1", "DELETE FROM t", "INSERT INTO k SELECT v FROM t"],
)
def test_changes_name_what_they_read(connection, statement):
    change(connection, "UPDATE t SET v = 1 WHERE id = 1")
    found = forms(connection, statement)
    assert found["t"][0].startswith("overlay: ")
    assert FOLD not in found


def test_a_statement_that_fails_leaves_nothing(connection):
    with pytest.raises(tique.Error):
        connection.execute("EXPLAIN SELECT nothing FROM t")
    connection.rollback()
    assert connection.execute("SELECT count(*) FROM t").fetchone() == (ROWS,)
    assert form(connection, "SELECT sum(v + 0) FROM t")[0] == "storage only"


# Uncommitted folds

DUCKDB = pytest.mark.written_for(["duckdb"], reason="other engines have none")
SUM = "SELECT sum(v + 0) FROM t"


@pytest.fixture
def folding(engine):
    connection = engine.connect(checkpoint="manual", uncommitted_fold_rows=0)
    fill(connection)
    change(connection, "UPDATE t SET v = 7 WHERE id = 1")
    return connection


def why_not(connection, sql=SUM, parameters=None):
    found = forms(connection, sql, parameters)
    assert not found["t"][0].startswith("uncommitted fold")
    return found[FOLD]


@DUCKDB
def test_an_uncommitted_fold(engine, folding):
    (statement, *_) = folding.execute(f"EXPLAIN {SUM}").fetchall()
    assert "UNION ALL" not in statement[1]
    found = forms(folding, "SELECT count(*) FROM t, u")
    assert found["t"][0].startswith("uncommitted fold: ")
    assert found["u"][0].startswith("storage only: ")
    assert FOLD not in found


@DUCKDB
def test_analyze_counts_the_snapshot_s_rows(engine, folding):
    change(folding, "DELETE FROM t WHERE id < 1000")
    rows = folding.execute(f"EXPLAIN ANALYZE {SUM}").fetchall()
    assert "5,000 rows" in str(rows) or "5000" in str(rows)
    assert folding.execute(SUM).fetchone() == (0,)


@DUCKDB
@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT count(*), random() FROM t", "does not depend on rows"),
        ("SELECT count(*) FROM t, duckdb_tables() AS d", "more than tables"),
        ("SELECT v FROM t WHERE id = 1", "column of the key is bound"),
    ],
)
def test_what_no_uncommitted_fold_serves(engine, folding, sql, why):
    assert why in why_not(folding, sql)


@DUCKDB
def test_own_writes_are_named(engine, folding):
    folding.execute("UPDATE t SET v = 1 WHERE id = 2")
    assert "has changed a table" in why_not(folding)


@DUCKDB
def test_small_tables_are_named(engine):
    options = {"checkpoint": "manual", "uncommitted_fold_rows": 50_000}
    with engine.connect(**options) as connection:
        fill(connection)
        change(connection, "UPDATE t SET v = 7 WHERE id = 1")
        fold = connection._database.uncommitted
        fold._quiet = 10_000.0
        assert "written to in the last 10000.0 s" in why_not(connection)
        fold._quiet = 0.0
        assert "fewer than 50,000 rows" in why_not(connection)


@DUCKDB
def test_large_results_are_named(engine, folding, monkeypatch):
    monkeypatch.setattr(uncommitted, "_MOST_RESULTS", 10)
    query = "SELECT v FROM t WHERE v >= %s"
    assert form(folding, query, "t", [0])[0] == "uncommitted fold"
    assert len(folding.execute(query, [0]).fetchall()) == ROWS
    assert "more rows, or other types," in why_not(folding, query, [0])
    assert form(folding, SUM)[0] == "uncommitted fold"


@DUCKDB
def test_a_table_that_cannot_be_brought_there(engine, folding):
    change(folding, "INSERT INTO k VALUES (2)")
    assert "without a key" in why_not(folding, "SELECT count(*) FROM t, k")


@DUCKDB
def test_it_can_be_switched_off(engine, connection):
    change(connection, "UPDATE t SET v = 7 WHERE id = 1")
    assert "switched off" in why_not(connection)


@DUCKDB
def test_another_query_is_under_way(engine, folding):
    fold = folding._database.uncommitted
    fold._query = uncommitted._Query(0)
    try:
        assert "another query was under way" in why_not(folding)
    finally:
        fold._query = None
    assert form(folding, SUM)[0] == "uncommitted fold"
