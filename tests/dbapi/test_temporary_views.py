"""Temporary views: of one connection, a part of its transactions."""

from __future__ import annotations

import pytest

import tique

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.written_for(["duckdb", "postgresql"], reason="MonetDB has none"),
]

CREATE = "CREATE TEMPORARY VIEW v AS SELECT id, upper(name) AS name FROM t WHERE id < 3"
ROWS = [(1, "A"), (2, "B")]


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20))")
    opened.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    opened.commit()
    return opened


def rows(connection, query="SELECT * FROM v ORDER BY id"):
    return connection.execute(query).fetchall()


def refused(connection, sql, match, kind=tique.NotSupportedError):
    with pytest.raises(kind, match=match):
        connection.execute(sql)


def test_it_reads_the_snapshot(engine, one):
    """P1: own writes, and no other transaction's."""
    one.execute(CREATE)
    two = engine.connect()
    two.execute("UPDATE t SET name = 'x' WHERE id = 1")
    two.commit()
    assert rows(one) == ROWS
    one.execute("UPDATE t SET name = 'z' WHERE id = 2")
    assert rows(one) == [(1, "A"), (2, "Z")]
    assert rows(one, "SELECT w.name FROM t JOIN v AS w USING (id) WHERE id = 2") == [
        ("Z",)
    ]
    one.commit()
    one.checkpoint()
    assert rows(one) == [(1, "X"), (2, "Z")]
    assert rows(one, "SELECT count(*) FROM (SELECT name FROM v) AS q") == [(2,)]


def test_it_is_of_one_connection(engine, one):
    one.execute(CREATE)
    one.commit()
    two = engine.connect()
    refused(two, "SELECT * FROM v", "unknown table", tique.ProgrammingError)
    two.rollback()
    two.execute("CREATE TEMP VIEW v AS SELECT 7 AS id")
    assert rows(two) == [(7,)]
    assert rows(one) == ROWS
    one.close()
    assert rows(two) == [(7,)]


def test_it_is_a_part_of_the_transaction(one):
    """P8: a rollback, one to a savepoint, and a statement that fails."""
    one.execute(CREATE)
    assert rows(one) == ROWS
    one.rollback()
    refused(one, "SELECT * FROM v", "unknown table", tique.ProgrammingError)
    one.rollback()
    one.execute(CREATE)
    one.commit()
    one.execute("SAVEPOINT s")
    one.execute("DROP VIEW v")
    refused(one, "SELECT * FROM v", "unknown table", tique.ProgrammingError)
    one.execute("CREATE TEMP VIEW v AS SELECT 8 AS id")
    assert rows(one) == [(8,)]
    one.execute("ROLLBACK TO s")
    assert rows(one) == ROWS
    one.execute("CREATE OR REPLACE TEMP VIEW v AS SELECT 9 AS id")
    assert rows(one) == [(9,)]
    one.rollback()
    assert rows(one) == ROWS
    one.execute("DROP VIEW IF EXISTS v")
    one.commit()
    refused(one, "SELECT * FROM v", "unknown table", tique.ProgrammingError)


def test_names(engine, one):
    """P10: a name means one thing, to tique and to the engine."""
    one.execute(CREATE)
    one.commit()
    schema = {"duckdb": "temp", "postgresql": "pg_temp"}[engine.name]
    assert rows(one, f"SELECT * FROM {schema}.v ORDER BY id") == ROWS
    assert rows(one, 'SELECT "v".id FROM V WHERE v.id = 1') == [(1,)]
    refused(one, f"SELECT * FROM {engine.schema}.v", "unknown table", tique.Error)
    refused(one, CREATE, "already", tique.ProgrammingError)
    refused(one, "CREATE TEMP TABLE v (a INTEGER)", "already", tique.ProgrammingError)
    refused(one, "CREATE TEMP VIEW t AS SELECT 1", "name")
    refused(one, "CREATE TEMP VIEW app.w AS SELECT 1", "schema")
    refused(one, "CREATE VIEW w AS SELECT * FROM v", "unknown table", tique.Error)
    refused(one, "CREATE TEMP VIEW w AS SELECT * FROM v", "temporary view")
    refused(one, "CREATE TABLE v (a INTEGER)", "temporary view")
    refused(one, "ALTER VIEW v RENAME TO w", "temporary view|ALTER VIEW")
    two = engine.connect()
    two.execute("CREATE TABLE v (id INTEGER PRIMARY KEY)")
    two.execute("CREATE VIEW other AS SELECT id FROM v")
    two.commit()
    assert rows(one) == ROWS
    assert rows(one, f"SELECT * FROM {engine.schema}.v") == []
    assert rows(one, "SELECT * FROM other") == []
    refused(one, "DROP VIEW v, other", "temporary and of other")
    one.execute("DROP VIEW v")
    assert rows(one) == []


def test_a_star_and_the_columns_names(one):
    one.execute("CREATE TEMP VIEW v (a, b) AS SELECT * FROM t")
    cursor = one.execute("SELECT * FROM v ORDER BY a")
    assert [column[0] for column in cursor.description] == ["a", "b"]
    assert cursor.fetchall() == [(1, "a"), (2, "b"), (3, "c")]
    one.execute("CREATE TABLE c AS SELECT * FROM v WHERE a = 1")
    assert rows(one, "SELECT b FROM c") == [("a",)]


@pytest.mark.written_for(["duckdb"], reason="PostgreSQL has no obsolete views")
def test_beside_an_obsolete_view(one):
    """P10: the engine's error about another view is not the statement's."""
    one.execute("CREATE TABLE gone (id INTEGER)")
    one.execute("CREATE VIEW obsolete AS SELECT * FROM gone")
    one.execute("DROP TABLE gone")
    one.execute("CREATE TEMP VIEW v AS SELECT id FROM t WHERE id > 2")
    assert rows(one) == [(3,)]
    one.commit()
    one.execute("BEGIN")
    one.execute("CREATE VIEW beside AS SELECT id FROM t WHERE id > 1")
    assert rows(one, "SELECT * FROM beside ORDER BY id") == [(2,), (3,)]
    one.commit()
    with pytest.raises(tique.ProgrammingError, match="gone"):
        one.execute("SELECT * FROM obsolete")


def test_over_temporary_tables(one):
    one.execute("CREATE TEMP TABLE s (id INTEGER)")
    refused(one, "CREATE TEMP VIEW v AS SELECT * FROM s", "temporary table")
    refused(one, "CREATE TEMP VIEW s AS SELECT 1", "already", tique.ProgrammingError)


def test_queries_that_are_refused(one):
    refused(one, "CREATE TEMP VIEW v AS SELECT nothing(id) FROM t", ".", tique.Error)
    refused(one, "CREATE TEMP VIEW v AS SELECT * FROM tique.log", "tique", tique.Error)
    refused(one, "CREATE TEMP VIEW v AS SELECT id FROM nowhere", "unknown", tique.Error)
    refused(one, "SELECT * FROM v", "unknown table", tique.ProgrammingError)


@pytest.mark.written_for(["postgresql"], reason="DuckDB changes no view")
def test_changes_through_it(one):
    """P8, P9: as through any view of one table."""
    one.execute("CREATE TEMP VIEW v AS SELECT id, name FROM t WHERE id < 3")
    one.execute("UPDATE v SET name = 'q' WHERE id >= 2")
    one.execute("INSERT INTO v VALUES (5, 'e')")
    one.execute("DELETE FROM v WHERE id = 1")
    one.commit()
    assert rows(one, "SELECT * FROM t ORDER BY id") == [(2, "q"), (3, "c"), (5, "e")]
