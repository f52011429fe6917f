"""DESCRIBE, SHOW and SUMMARIZE in FROM: definitions are storage's, rows the snapshot's (P1)."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.written_for(["duckdb"], reason="the others have no such verbs")

COUNTED = "SELECT count, max FROM (SUMMARIZE t) WHERE column_name = 'n'"


@pytest.fixture
def conn(engine):
    opened = engine.connect(checkpoint="manual", autocommit=True)
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER DEFAULT 3)")
    opened.execute("INSERT INTO t VALUES (1, 10), (2, 20)")
    return opened


def test_rows_are_the_snapshots_and_ones_own(engine, conn):
    reader = engine.connect(checkpoint="manual")
    assert reader.execute(COUNTED).fetchall() == [(2, "20")]
    conn.execute("INSERT INTO t VALUES (3, 30)")
    conn.checkpoint()
    assert reader.execute(COUNTED).fetchall() == [(2, "20")]
    reader.execute("UPDATE t SET n = 25 WHERE id = 2")
    assert reader.execute(COUNTED).fetchall() == [(2, "25")]
    reader.rollback()
    assert reader.execute(COUNTED).fetchall() == [(3, "30")]


def test_a_query_has_parameters(conn):
    found = conn.execute(
        "SELECT min FROM (SUMMARIZE SELECT n FROM t WHERE id > %s)", (1,)
    )
    assert found.fetchall() == [("20",)]


def test_changes_read_them(conn):
    conn.execute("CREATE TABLE d AS FROM (DESCRIBE t)")
    conn.execute("INSERT INTO d FROM (DESCRIBE t)")
    conn.execute(
        "DELETE FROM d WHERE column_name IN (SELECT column_name FROM (SHOW t))"
    )
    assert conn.execute("FROM d").fetchall() == []


def test_they_see_ones_own_ddl(conn):
    with conn.transaction():
        conn.execute("ALTER TABLE t ADD COLUMN m INTEGER")
        found = conn.execute("SELECT column_name FROM (DESCRIBE t)").fetchall()
    assert found == [("id",), ("n",), ("m",)]


def test_a_temporary_table_is_summarized_and_not_described(conn):
    conn.execute("CREATE TEMP TABLE mine (z INTEGER)")
    conn.execute("INSERT INTO mine VALUES (5)")
    found = conn.execute("SELECT min FROM (SUMMARIZE mine)").fetchall()
    assert found == [("5",)]
    for sql in ("DESCRIBE mine", "PRAGMA table_info('mine')", "FROM (DESCRIBE mine)"):
        with pytest.raises(tique.NotSupportedError, match="which is temporary"):
            conn.execute(sql)


def test_tables_of_tique_are_not_listed(conn):
    for sql in ("FROM (SHOW TABLES)", "SELECT name FROM (SHOW ALL TABLES)"):
        assert conn.execute(sql).fetchall() == [("t",)]


def test_python_variables_and_attached_tables_are_described(engine, conn, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(tmp_path / "far.duckdb") as native:
        native.execute("CREATE TABLE t (far INTEGER)")
    conn.execute(f"ATTACH '{tmp_path / 'far.duckdb'}' AS far (READ_ONLY)")
    for name in ("far.t", "far.main.t"):
        found = conn.execute(f"SELECT column_name FROM (DESCRIBE {name})")
        assert found.fetchall() == [("far",)]
        found = conn.execute(f"SELECT column_name FROM (SUMMARIZE {name})")
        assert found.fetchall() == [("far",)]
    frame = pytest.importorskip("pyarrow").table({"v": [1]})
    assert frame.num_rows == 1
    found = conn.execute("SELECT column_name FROM (DESCRIBE frame)").fetchall()
    assert found == [("v",)]
