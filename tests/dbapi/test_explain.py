"""EXPLAIN: the rewritten statement and the engine's plan; ANALYZE runs the statement."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.fresh_tables

ANALYZING = pytest.mark.notimpl(
    ["monetdb"], raises=tique.NotSupportedError, reason="it has TRACE, and no ANALYZE"
)


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)")
    connection.commit()
    return connection


def explained(connection, sql, parameters=None):
    rows = connection.execute(sql, parameters).fetchall()
    (name, text), *others = rows
    assert name == "rewritten statement"
    plans = [row for row in others if not row[0].startswith(("form of", "no uncomm"))]
    assert plans != others
    assert plans
    return text, "\n".join(str(plan) for _, plan in plans)


def rows(connection):
    return sorted(connection.execute("SELECT id, v FROM t").fetchall())


@pytest.mark.parametrize(
    "sql", ["SELECT * FROM t", "DELETE FROM t", "UPDATE t SET v = 0"]
)
def test_explain_runs_nothing(connection, sql):
    explained(connection, f"EXPLAIN {sql}")
    assert rows(connection) == [(1, 1), (2, 2), (3, 3)]


@ANALYZING
@pytest.mark.parametrize(
    ("sql", "left"),
    [
        ("SELECT * FROM t WHERE id > %s", [(1, 1), (2, 2), (3, 3)]),
        ("DELETE FROM t WHERE id > %s", [(1, 1)]),
        ("UPDATE t SET v = v + 10 WHERE id > %s", [(1, 1), (2, 12), (3, 13)]),
        (
            "INSERT INTO t SELECT id + 10, v FROM t WHERE id > %s",
            [(1, 1), (2, 2), (3, 3), (12, 2), (13, 3)],
        ),
    ],
)
def test_analyze_runs_the_statement_once(connection, sql, left):
    """P8: as the engine does."""
    explained(connection, f"EXPLAIN ANALYZE {sql}", (1,))
    assert rows(connection) == left
    connection.rollback()
    assert rows(connection) == [(1, 1), (2, 2), (3, 3)]


@ANALYZING
def test_analyze_of_a_statement_that_fails_leaves_no_trace(connection):
    """P8."""
    with pytest.raises(tique.IntegrityError):
        connection.execute(
            "EXPLAIN ANALYZE INSERT INTO t SELECT 1, v FROM t WHERE id = 2"
        )
    assert rows(connection) == [(1, 1), (2, 2), (3, 3)]
    connection.commit()
    connection.execute("SET TRANSACTION READ ONLY")
    with pytest.raises(tique.OperationalError, match="read-only"):
        connection.execute("EXPLAIN ANALYZE DELETE FROM t")


@pytest.mark.written_for(["duckdb", "postgresql"], reason="MonetDB has no options")
def test_options_are_the_engines(connection):
    _, plan = explained(connection, "EXPLAIN (FORMAT JSON) SELECT * FROM t")
    assert plan.lstrip().startswith(("[", "{"))
    explained(connection, "EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM t")
    with pytest.raises(tique.NotSupportedError, match="NONSENSE"):
        connection.execute("EXPLAIN (NONSENSE) SELECT * FROM t")


@pytest.mark.parametrize(
    "sql",
    ["EXPLAIN COMMIT", "EXPLAIN", "EXPLAIN EXPLAIN SELECT 1", "EXPLAIN DROP TABLE t"],
)
def test_what_is_refused(connection, sql):
    with pytest.raises(tique.Error):
        connection.execute(sql)
    assert rows(connection) == [(1, 1), (2, 2), (3, 3)]
