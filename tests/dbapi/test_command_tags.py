"""``statusmessage``: the command tags of PostgreSQL, on every engine."""

from __future__ import annotations

import pytest

import tique
from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter

COMMON = [
    ("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)", "CREATE TABLE"),
    ("INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", "INSERT 0 3"),
    ("/* one */ UPDATE t SET n = 5 -- two\nWHERE id > 1", "UPDATE 2"),
    ("SELECT * FROM t", "SELECT"),
    ("(SELECT 'UPDATE' FROM t) UNION ALL (SELECT 'x')", "SELECT"),
    ("WITH u AS (SELECT 1 AS a) SELECT * FROM u", "SELECT"),
    ("DELETE FROM t WHERE id = 1", "DELETE 1"),
    ("CREATE TABLE w AS SELECT * FROM t", "SELECT"),
    ('CREATE VIEW "update" AS SELECT * FROM t', "CREATE VIEW"),
    ('DROP VIEW "update"', "DROP VIEW"),
    ("CREATE INDEX t_n ON t (n)", "CREATE INDEX"),
    ("DROP INDEX t_n", "DROP INDEX"),
    ("ALTER TABLE t ADD COLUMN m INTEGER", "ALTER TABLE"),
    ("DROP TABLE w", "DROP TABLE"),
    ("START TRANSACTION", "START TRANSACTION"),
    ("SAVEPOINT a", "SAVEPOINT"),
    ("ROLLBACK TO SAVEPOINT a", "ROLLBACK"),
    ("RELEASE SAVEPOINT a", "RELEASE"),
    ("COMMIT", "COMMIT"),
]
POSTGRESQL = [
    "CREATE TABLE t (id SERIAL PRIMARY KEY, n INTEGER GENERATED ALWAYS AS (1) STORED)",
    "CREATE UNLOGGED TABLE u (a TEXT PRIMARY KEY)",
    "CREATE UNIQUE INDEX u_a ON u (a)",
    "CREATE OR REPLACE VIEW v AS SELECT * FROM u",
    "CREATE TABLE w AS (VALUES (1), (2))",
    "CREATE TABLE x AS SELECT 1 AS a WITH NO DATA",
    "CREATE SEQUENCE s",
    "CREATE SCHEMA c",
    "CREATE TYPE mood AS ENUM ('SELECT', 'AS')",
    "CREATE DOMAIN d AS INTEGER CHECK (VALUE > 0)",
    "BEGIN",
    "WITH i AS (INSERT INTO u VALUES ('(') RETURNING a) SELECT * FROM i",
    "WITH i AS (SELECT $$b--$$ AS a) INSERT INTO u SELECT * FROM i",
    "INSERT INTO u VALUES (E'c\\'') RETURNING a",
    "WITH i AS MATERIALIZED (SELECT 1) UPDATE u SET a = 'd' WHERE a = '('",
    "MERGE INTO u USING (VALUES ('x')) AS s (a) ON u.a = s.a "
    "WHEN NOT MATCHED THEN INSERT VALUES (s.a)",
    "TABLE u",
    "VALUES (1), (2)",
    "DECLARE k CURSOR FOR SELECT * FROM u",
    "FETCH 2 FROM k",
    "CLOSE k",
    "DECLARE k CURSOR FOR SELECT * FROM u",
    "CLOSE ALL",
    "SET CONSTRAINTS ALL IMMEDIATE",
    "END",
    "TRUNCATE u",
    "PREPARE p AS SELECT 1",
    "DEALLOCATE p",
    "DEALLOCATE ALL",
    "SET TIME ZONE 'UTC'",
    "RESET TIMEZONE",
    "SHOW TIMEZONE",
    "EXPLAIN SELECT 1",
    "COMMENT ON TABLE u IS 'x'",
    "GRANT SELECT ON u TO PUBLIC",
    "REVOKE SELECT ON u FROM PUBLIC",
    "ANALYZE u",
    "NOTIFY a",
    "DROP VIEW v",
    "DROP TABLE t, u",
    "DROP SEQUENCE s",
    "DROP TYPE mood",
    "DROP DOMAIN d",
    "DROP SCHEMA c",
]


def uncounted(tags):
    """Without the numbers of rows that only a fetch would tell tique."""
    return {
        sql: "SELECT" if tag.startswith("SELECT") else tag for sql, tag in tags.items()
    }


@pytest.mark.slow
def test_tags(engine):
    cursor = engine.connect(autocommit=True).cursor()
    assert cursor.statusmessage is None
    found = {sql: cursor.execute(sql).statusmessage for sql, _ in COMMON}
    assert uncounted(found) == dict(COMMON)
    cursor.executemany("INSERT INTO t (id) VALUES (%s)", [(7,), (8,)])
    assert cursor.statusmessage == "INSERT 0 2"
    with pytest.raises(tique.Error):
        cursor.execute("SELECT nothing FROM t")
    assert cursor.statusmessage is None


@pytest.mark.slow
@pytest.mark.written_for(["postgresql"], reason="psycopg has them")
def test_tags_are_those_of_psycopg(engine):
    native = engine.native()
    wanted = {sql: native.execute(sql).statusmessage for sql in POSTGRESQL}
    engine.begin_again()
    cursor = engine.connect(autocommit=True).cursor()
    found = {}
    for sql in POSTGRESQL:
        if cursor.execute(sql).description is not None:
            cursor.fetchall()
        found[sql] = cursor.statusmessage
    assert found == wanted


def test_rows_are_counted_when_their_end_is_met(engine):
    cursor = engine.connect(autocommit=True).cursor()
    cursor.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    cursor.executemany("INSERT INTO t VALUES (%s)", [(n,) for n in range(2500)])
    query = "SELECT id FROM t WHERE id < 5"
    for take in (cursor.fetchone, cursor.fetch_arrow_table, cursor.fetchall):
        cursor.execute(query)
        take()
        assert (cursor.statusmessage, cursor.rowcount) == ("SELECT 5", 5)
    cursor.execute("SELECT id FROM t")
    for size, number in ((1, 1), (1500, 1500), (1500, 999)):
        assert len(cursor.fetchmany(size)) == number
    assert (cursor.statusmessage, cursor.rowcount) == ("SELECT 2500", 2500)
    cursor.execute("SELECT id FROM t")
    cursor.fetchone()
    cursor.fetch_arrow_table()
    assert (cursor.statusmessage, cursor.rowcount) == ("SELECT 2500", 2500)


def test_rows_of_a_new_table_are_counted(engine):
    cursor = engine.connect(autocommit=True).cursor()
    cursor.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    cursor.execute("INSERT INTO t VALUES (1), (2), (3)")
    query = "SELECT id FROM t WHERE id > 1"
    for made, count in (
        (f"TABLE a AS {query} WITH DATA", 2),
        (f"TABLE b AS {query} WITH NO DATA", -1),
        (f"TEMPORARY TABLE c AS {query} WITH DATA", 2),
        (f"TEMPORARY TABLE d AS {query} WITH NO DATA", -1),
        ("TABLE e AS SELECT id FROM t WHERE id > 5 WITH DATA", 0),
        (f"TABLE IF NOT EXISTS a AS {query} WITH DATA", -1),
    ):
        assert (cursor.execute(f"CREATE {made}").rowcount, made) == (count, made)
    assert cursor.statusmessage == "SELECT"


@pytest.mark.written_for(["duckdb"], reason="the others replace no table")
def test_rows_of_a_replacing_table_are_counted(engine):
    cursor = engine.connect(autocommit=True).cursor()
    cursor.execute("CREATE TABLE t AS SELECT 1 AS id")
    cursor.execute("CREATE OR REPLACE TABLE t AS SELECT id FROM t, range(3)")
    assert cursor.rowcount == 3


@pytest.mark.engine_free
def test_a_text_without_a_statement_has_none():
    assert Rewriter(Tables()).command_tag("-- nothing", False, -1) == ""
