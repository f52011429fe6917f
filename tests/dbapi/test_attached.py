"""DuckDB's ATTACH: other files, read beside managed tables (P1, P10)."""

from __future__ import annotations

import duckdb
import pytest

import tique

pytestmark = pytest.mark.written_for(["duckdb"], reason="DuckDB attaches files")


@pytest.fixture
def far(tmp_path):
    """A file with a table that is called as a managed one."""
    path = tmp_path / "far.duckdb"
    with duckdb.connect(path) as native:
        native.execute("CREATE TABLE t (id INTEGER, s VARCHAR)")
        native.execute("INSERT INTO t VALUES (1, 'far'), (9, 'away')")
        native.execute("CREATE SCHEMA s; CREATE TABLE s.q AS SELECT 7 AS n")
        native.execute("CREATE VIEW v AS SELECT * FROM t")
    return path


@pytest.fixture
def conn(engine, far):
    opened = engine.connect(checkpoint="manual", autocommit=True)
    opened.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR)")
    opened.execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    opened.execute(f"ATTACH '{far}' AS far (READ_ONLY)")
    return opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT s FROM far.t ORDER BY id", [("far",), ("away",)]),
        ("FROM far.main.t WHERE id = 9", [(9, "away")]),
        ("FROM FAR.S.q", [(7,)]),
        ("SELECT t.s, f.s FROM t JOIN far.t AS f USING (id)", [("a", "far")]),
        ("SELECT id FROM t WHERE id IN (SELECT id FROM far.t)", [(1,)]),
        ("WITH t AS (SELECT 5 AS id) SELECT count(*) FROM far.t, t", [(2,)]),
        ("SELECT count(*) FROM (FROM far.t UNION ALL FROM t)", [(4,)]),
        ("SELECT max(far.t.id) FROM far.t", [(9,)]),
    ],
)
def test_a_query_reads_it_beside_recent_rows(conn, query, expected):
    assert conn.execute(query).fetchall() == expected


def test_changes_of_managed_tables_read_it(conn):
    conn.execute("INSERT INTO t SELECT * FROM far.t WHERE id = 9")
    conn.execute("UPDATE t SET s = f.s FROM far.t AS f WHERE f.id = t.id AND t.id = 1")
    conn.execute("CREATE TABLE copy AS SELECT * FROM far.t")
    with conn.transaction():
        conn.execute("DELETE FROM t WHERE id NOT IN (SELECT id FROM far.t)")
        assert conn.execute("FROM t ORDER BY id").fetchall() == [
            (1, "far"),
            (9, "away"),
        ]
    conn.checkpoint()
    assert conn.execute("FROM t ORDER BY id").fetchall() == [(1, "far"), (9, "away")]
    assert conn.execute("SELECT count(*) FROM copy").fetchall() == [(2,)]


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO far.t VALUES (1, 'x')",
        "INSERT INTO far.main.t VALUES (1, 'x')",
        "UPDATE far.t SET s = 'x'",
        "DELETE FROM far.t",
        "MERGE INTO far.t USING t ON far.t.id = t.id WHEN MATCHED THEN DELETE",
        "TRUNCATE far.t",
        "COPY far.t FROM 'rows.csv'",
        "CREATE TABLE far.n (id INTEGER)",
        "CREATE TABLE far.n AS SELECT 1 AS id",
        "CREATE VIEW far.n AS SELECT 1 AS id",
        "CREATE SEQUENCE far.n",
        "CREATE TYPE far.n AS ENUM ('a')",
        "CREATE SCHEMA far",
        "DROP SCHEMA far CASCADE",
        "ALTER TABLE far.t ADD COLUMN n INTEGER",
        "CREATE INDEX i ON far.t (id)",
        "DROP TABLE far.t",
        "DROP TABLE far.main.t",
        "DROP VIEW far.v",
        "COMMENT ON TABLE far.t IS 'x'",
        "SELECT * FROM far.v",
        "CREATE VIEW v AS SELECT * FROM far.t",
        "CREATE TEMPORARY VIEW v AS SELECT * FROM far.t",
        "CREATE MACRO far.n(a) AS a + 1",
    ],
)
def test_it_is_only_read(conn, statement):
    with pytest.raises(tique.NotSupportedError, match="far"):
        conn.execute(statement)
    assert conn.execute("SELECT count(*) FROM far.t").fetchall() == [(2,)]


def test_options_of_a_file_reach_the_engine(conn, tmp_path):
    path = tmp_path / "small.duckdb"
    with duckdb.connect() as native:
        # Without an extension DuckDB writes no encrypted file that is safe.
        native.execute("SET force_mbedtls_unsafe = 'true'")
        key = "BLOCK_SIZE 16384, ENCRYPTION_KEY 'it''s, a key'"
        native.execute(f"ATTACH '{path}' AS small ({key})")
        native.execute("CREATE TABLE small.t AS SELECT 5 AS id")
    conn.execute(f"ATTACH '{path}' AS small (READONLY, {key})")
    assert conn.execute("SELECT id FROM small.t").fetchall() == [(5,)]
    with pytest.raises(tique.NotSupportedError):
        conn.execute("INSERT INTO small.t VALUES (1)")
    conn.execute("DETACH small")
    for wrong in ("BLOCK_SIZE 262144", "ENCRYPTION_KEY 'another'"):
        with pytest.raises(tique.Error) as caught:
            conn.execute(f"ATTACH '{path}' AS small (READ_ONLY, {wrong})")
        assert "another" not in str(caught.value)
    assert "small" not in str(conn.execute("SHOW DATABASES").fetchall())


def test_a_table_that_it_does_not_have(conn):
    with pytest.raises(tique.ProgrammingError, match=r'unknown table "far\.q"'):
        conn.execute("SELECT * FROM far.q")
    with pytest.raises(tique.NotSupportedError, match="a database in it"):
        conn.execute("SELECT * FROM other.main.t")


def test_detach_and_another_file(conn, tmp_path):
    assert conn.execute("SELECT id FROM far.t ORDER BY 1").fetchall() == [(1,), (9,)]
    conn.execute("DETACH far")
    with pytest.raises(tique.ProgrammingError, match="unknown table"):
        conn.execute("SELECT id FROM far.t ORDER BY 1")
    with duckdb.connect(tmp_path / "next.duckdb") as native:
        native.execute("CREATE TABLE t (id VARCHAR)")
        native.execute("INSERT INTO t VALUES ('next')")
    conn.execute(f"ATTACH '{tmp_path / 'next.duckdb'}' AS far (READ_ONLY)")
    assert conn.execute("SELECT id FROM far.t ORDER BY 1").fetchall() == [("next",)]
    conn.execute("DETACH DATABASE IF EXISTS far")
    conn.execute("DETACH DATABASE IF EXISTS far")
    with pytest.raises(tique.ProgrammingError, match="no database is attached"):
        conn.execute("DETACH far")


def test_all_connections_see_it_at_once(conn, engine, far):
    with engine.connect() as other:
        assert other.execute("SELECT count(*) FROM far.t").fetchall() == [(2,)]
        conn.execute("DETACH far")
        with pytest.raises(tique.ProgrammingError, match="unknown table"):
            other.execute("SELECT count(*) FROM far.t")
        conn.execute(f"ATTACH IF NOT EXISTS '{far}' AS far (READ_ONLY)")
        conn.execute(f"ATTACH IF NOT EXISTS '{far}' AS far (READ_ONLY)")
        other.rollback()
        assert other.execute("SELECT count(*) FROM far.t").fetchall() == [(2,)]


@pytest.mark.parametrize("name", ["main", "tique", "app", "temp", "information_schema"])
def test_a_name_that_would_be_ambiguous(conn, far, name):
    conn.execute("DETACH far")
    conn.execute("CREATE SCHEMA app")
    with pytest.raises(tique.Error, match=name):
        conn.execute(f"ATTACH '{far}' AS {name} (READ_ONLY)")
    conn.execute(f"ATTACH '{far}' AS far (READ_ONLY)")


def test_a_database_that_tique_manages_is_refused(conn, tmp_path):
    path = tmp_path / "managed.duckdb"
    with tique.connect(f"duckdb:///{path}") as other:
        other.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
        other.commit()
    with pytest.raises(tique.NotSupportedError, match="tique manages"):
        conn.execute(f"ATTACH '{path}' AS managed (READ_ONLY)")
    assert "managed" not in str(conn.execute("SHOW DATABASES").fetchall())


def test_a_database_with_a_macro_is_refused(conn, tmp_path):
    path = tmp_path / "macros.duckdb"
    with duckdb.connect(path) as native:
        native.execute("CREATE MACRO peek() AS 1")
    with pytest.raises(tique.NotSupportedError, match=r"macro main.peek\(\)"):
        conn.execute(f"ATTACH '{path}' AS macros (READ_ONLY)")


def test_no_listing_of_the_database_takes_its_tables_for_managed_ones(conn, engine):
    assert conn.execute("SHOW TABLES").fetchall() == [("t",)]
    conn.execute("CREATE TABLE u (id INTEGER PRIMARY KEY)")
    conn.execute("CREATE VIEW w AS SELECT id FROM t")
    with engine.connect() as other:
        assert other.execute("SELECT * FROM w ORDER BY 1").fetchall() == [(1,), (2,)]
        with pytest.raises(tique.ProgrammingError, match="unknown table"):
            other.execute("SELECT * FROM q")
