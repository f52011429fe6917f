"""Kinds of DDL, each with a table that it is about, and the definitions as the engine has them."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

import pytest

import tique

ALL = ("duckdb", "monetdb", "postgresql")
WITH_CHECKS = ("duckdb", "postgresql")

BASE = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER NOT NULL, m INTEGER)",
    "INSERT INTO t VALUES (1, 10, NULL), (2, 20, NULL), (3, 30, NULL)",
    "CREATE TABLE child (id INTEGER PRIMARY KEY, t_id INTEGER)",
    "INSERT INTO child VALUES (1, 1), (2, NULL)",
    "CREATE TABLE side (id INTEGER PRIMARY KEY, n INTEGER)",
    "INSERT INTO side VALUES (1, 0)",
)


@dataclass(frozen=True)
class Kind:
    """A kind of DDL: the statements before it, the statement, and its reversal."""

    name: str
    ddl: str
    undo: str
    setup: tuple[str, ...] = ()
    engines: tuple[str, ...] = ALL
    table: str = "t"
    """The table to use afterwards, if the statement is not done,"""
    after: str = "t"
    """and if it is."""
    within: bool = True
    """Whether it is part of a transaction."""


def adopted(schema):
    """Adopt one table that was made natively, and let it go again."""
    name = f"{schema}.strange"
    return f"adopt {name}", f"detach {name}"


KINDS = (
    Kind(
        "CREATE TABLE",
        "CREATE TABLE made (id INTEGER PRIMARY KEY, v INTEGER, t_id INTEGER REFERENCES t)",
        "DROP TABLE made",
    ),
    Kind("CREATE TABLE AS", "CREATE TABLE made AS SELECT * FROM t", "DROP TABLE made"),
    Kind(
        "DROP TABLE",
        "DROP TABLE extra",
        "CREATE TABLE extra (id INTEGER PRIMARY KEY, n INTEGER)",
        ("CREATE TABLE extra (id INTEGER PRIMARY KEY, n INTEGER)",),
    ),
    Kind(
        "DROP TABLE CASCADE",
        "DROP TABLE extra CASCADE",
        "CREATE TABLE extra (id INTEGER PRIMARY KEY, n INTEGER);"
        "INSERT INTO extra VALUES (1, 1);"
        "ALTER TABLE child ADD CONSTRAINT f FOREIGN KEY (t_id) REFERENCES extra (id)",
        (
            "CREATE TABLE extra (id INTEGER PRIMARY KEY, n INTEGER)",
            "INSERT INTO extra VALUES (1, 1)",
            "ALTER TABLE child ADD CONSTRAINT f FOREIGN KEY (t_id) REFERENCES extra (id)",
        ),
        engines=("postgresql",),
    ),
    Kind(
        "ADD COLUMN",
        "ALTER TABLE t ADD COLUMN e INTEGER DEFAULT 7",
        "ALTER TABLE t DROP COLUMN e",
    ),
    Kind(
        "DROP COLUMN",
        "ALTER TABLE t DROP COLUMN m",
        "ALTER TABLE t ADD COLUMN m INTEGER",
    ),
    Kind(
        "RENAME COLUMN",
        "ALTER TABLE t RENAME COLUMN m TO o",
        "ALTER TABLE t RENAME COLUMN o TO m",
    ),
    Kind(
        "RENAME TO",
        "ALTER TABLE t RENAME TO u",
        "ALTER TABLE u RENAME TO t",
        after="u",
    ),
    Kind(
        "ALTER TYPE",
        "ALTER TABLE t ALTER COLUMN m TYPE BIGINT",
        "ALTER TABLE t ALTER COLUMN m TYPE INTEGER",
        engines=WITH_CHECKS,
    ),
    Kind(
        "SET DEFAULT",
        "ALTER TABLE child ALTER COLUMN id SET DEFAULT 9",
        "ALTER TABLE child ALTER COLUMN id DROP DEFAULT",
        engines=WITH_CHECKS,
    ),
    Kind(
        "ADD UNIQUE",
        "ALTER TABLE t ADD CONSTRAINT sole UNIQUE (n)",
        "ALTER TABLE t DROP CONSTRAINT sole",
        engines=("postgresql",),
    ),
    Kind(
        "DROP CHECK",
        "ALTER TABLE t DROP CONSTRAINT low",
        "ALTER TABLE t ADD CONSTRAINT low CHECK (n < 1000)",
        ("ALTER TABLE t ADD CONSTRAINT low CHECK (n < 1000)",),
        engines=("postgresql",),
    ),
    Kind(
        "ADD FOREIGN KEY",
        "ALTER TABLE child ADD CONSTRAINT f FOREIGN KEY (t_id) REFERENCES t (id)",
        "ALTER TABLE child DROP CONSTRAINT f",
    ),
    Kind(
        "DROP FOREIGN KEY",
        "ALTER TABLE child DROP CONSTRAINT f",
        "ALTER TABLE child ADD CONSTRAINT f FOREIGN KEY (t_id) REFERENCES t (id)",
        ("ALTER TABLE child ADD CONSTRAINT f FOREIGN KEY (t_id) REFERENCES t (id)",),
    ),
    Kind("CREATE INDEX", "CREATE INDEX by_n ON t (n)", "DROP INDEX by_n"),
    Kind(
        "CREATE UNIQUE INDEX",
        "CREATE UNIQUE INDEX sole ON t (n)",
        "DROP INDEX sole",
        engines=WITH_CHECKS,
    ),
    Kind(
        "DROP UNIQUE INDEX",
        "DROP INDEX sole",
        "CREATE UNIQUE INDEX sole ON t (n)",
        ("CREATE UNIQUE INDEX sole ON t (n)",),
        engines=WITH_CHECKS,
    ),
    Kind(
        "CREATE INDEX of an expression",
        "CREATE INDEX by_sum ON t ((n + id))",
        "DROP INDEX by_sum",
        engines=WITH_CHECKS,
    ),
    Kind("CREATE VIEW", "CREATE VIEW w AS SELECT id FROM t", "DROP VIEW w"),
    Kind(
        "DROP VIEW",
        "DROP VIEW w",
        "CREATE VIEW w AS SELECT id FROM t",
        ("CREATE VIEW w AS SELECT id FROM t",),
    ),
    Kind(
        "CREATE MATERIALIZED VIEW",
        "CREATE MATERIALIZED VIEW w AS SELECT id FROM t",
        "DROP MATERIALIZED VIEW w",
        engines=("postgresql",),
    ),
    Kind(
        "REFRESH MATERIALIZED VIEW",
        "REFRESH MATERIALIZED VIEW w",
        "REFRESH MATERIALIZED VIEW w",
        ("CREATE MATERIALIZED VIEW w AS SELECT id FROM child",),
        engines=("postgresql",),
    ),
    Kind("CREATE SEQUENCE", "CREATE SEQUENCE s", "DROP SEQUENCE s"),
    Kind("CREATE SCHEMA", "CREATE SCHEMA apart", "DROP SCHEMA apart"),
    Kind(
        "DROP SCHEMA CASCADE",
        "DROP SCHEMA apart CASCADE",
        "CREATE SCHEMA apart;CREATE TABLE apart.x (id INTEGER PRIMARY KEY)",
        ("CREATE SCHEMA apart", "CREATE TABLE apart.x (id INTEGER PRIMARY KEY)"),
    ),
    Kind(
        "RENAME SCHEMA",
        "ALTER SCHEMA apart RENAME TO away",
        "ALTER SCHEMA away RENAME TO apart",
        (
            "CREATE SCHEMA apart",
            "CREATE TABLE apart.t AS SELECT * FROM t",
        ),
        engines=("postgresql",),
        table="apart.t",
        after="away.t",
    ),
    Kind(
        "RENAME VALUE of a type",
        "ALTER TYPE mood RENAME VALUE 'low' TO 'flat'",
        "ALTER TYPE mood RENAME VALUE 'flat' TO 'low'",
        (
            "CREATE TYPE mood AS ENUM ('low', 'high')",
            "CREATE TABLE felt (id INTEGER PRIMARY KEY, n INTEGER, m mood)",
            "INSERT INTO felt VALUES (1, 1, 'low')",
        ),
        engines=("postgresql",),
        table="felt",
        after="felt",
    ),
    Kind("TRUNCATE", "TRUNCATE child", "INSERT INTO child VALUES (1, 1)"),
    Kind(
        "TRUNCATE RESTART IDENTITY",
        "TRUNCATE numbered RESTART IDENTITY",
        "INSERT INTO numbered (n) VALUES (1)",
        ("CREATE TABLE numbered (id SERIAL PRIMARY KEY, n INTEGER, m INTEGER)",),
        engines=("postgresql",),
        table="numbered",
        after="numbered",
    ),
    Kind("adopt", "adopt", "detach", within=False),
    Kind("detach", "detach", "adopt", within=False),
)

_PLACES = {
    "duckdb": "schema_name <> 'tique' AND database_name = current_database() "
    "AND NOT internal",
    "monetdb": "NOT s.system AND s.name <> 'tique' OR s.name = 'sys'",
    "postgresql": "n.nspname NOT IN ('tique', 'pg_catalog', 'information_schema') "
    "AND n.nspname !~ '^pg_'",
}

_DEFINITIONS = {
    "duckdb": (
        "SELECT schema_name, table_name, column_name, data_type, is_nullable, "
        f"column_default FROM duckdb_columns() WHERE {_PLACES['duckdb']}",
        "SELECT schema_name, table_name, constraint_text FROM duckdb_constraints() "
        "WHERE schema_name <> 'tique' AND database_name = current_database()",
        "SELECT schema_name, index_name, sql FROM duckdb_indexes() "
        "WHERE schema_name <> 'tique' AND database_name = current_database()",
        f"SELECT schema_name, view_name FROM duckdb_views() WHERE {_PLACES['duckdb']}",
        "SELECT schema_name, sequence_name FROM duckdb_sequences() "
        "WHERE schema_name <> 'tique' AND database_name = current_database()",
        f"SELECT schema_name FROM duckdb_schemas() WHERE {_PLACES['duckdb']}",
    ),
    "monetdb": (
        'SELECT s.name, t.name, c.name, c.type, c."null", c."default" '
        "FROM sys.columns AS c JOIN sys.tables AS t ON t.id = c.table_id "
        "JOIN sys.schemas AS s ON s.id = t.schema_id "
        "WHERE NOT t.system AND t.temporary = 0 AND s.name <> 'tique'",
        "SELECT t.name, k.name, k.type FROM sys.keys AS k JOIN sys.tables AS t "
        "ON t.id = k.table_id JOIN sys.schemas AS s ON s.id = t.schema_id "
        "WHERE NOT t.system AND s.name <> 'tique'",
        "SELECT t.name, i.name FROM sys.idxs AS i JOIN sys.tables AS t "
        "ON t.id = i.table_id JOIN sys.schemas AS s ON s.id = t.schema_id "
        "WHERE NOT t.system AND s.name <> 'tique'",
        "SELECT s.name, q.name FROM sys.sequences AS q JOIN sys.schemas AS s "
        "ON s.id = q.schema_id WHERE s.name <> 'tique'",
        "SELECT name FROM sys.schemas WHERE NOT system AND name <> 'tique'",
    ),
    "postgresql": (
        "SELECT n.nspname::TEXT, c.relname::TEXT, c.relkind::TEXT, a.attname::TEXT, "
        "format_type(a.atttypid, a.atttypmod), a.attnotnull, "
        "pg_get_expr(d.adbin, d.adrelid) FROM pg_attribute AS a "
        "JOIN pg_class AS c ON c.oid = a.attrelid "
        "JOIN pg_namespace AS n ON n.oid = c.relnamespace LEFT JOIN pg_attrdef AS d "
        "ON d.adrelid = a.attrelid AND d.adnum = a.attnum "
        f"WHERE a.attnum > 0 AND NOT a.attisdropped AND {_PLACES['postgresql']}",
        "SELECT n.nspname::TEXT, k.conrelid::regclass::TEXT, k.conname::TEXT, "
        "pg_get_constraintdef(k.oid) FROM pg_constraint AS k "
        f"JOIN pg_namespace AS n ON n.oid = k.connamespace WHERE {_PLACES['postgresql']}",
        "SELECT n.nspname::TEXT, pg_get_indexdef(c.oid) FROM pg_class AS c JOIN "
        "pg_namespace AS n ON n.oid = c.relnamespace WHERE c.relkind = 'i' "
        f"AND {_PLACES['postgresql']}",
        "SELECT schemaname::TEXT, viewname::TEXT, definition FROM pg_views "
        "WHERE schemaname = 'public'",
        "SELECT t.typname::TEXT, e.enumlabel::TEXT FROM pg_enum AS e "
        "JOIN pg_type AS t ON t.oid = e.enumtypid",
        f"SELECT nspname::TEXT FROM pg_namespace AS n WHERE {_PLACES['postgresql']}",
    ),
}

_CACHES = {
    "duckdb": "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'tique' "
    "AND database_name = current_database() AND table_name LIKE 'tique_cache_%'",
    "monetdb": "SELECT t.name FROM sys.tables AS t JOIN sys.schemas AS s "
    "ON s.id = t.schema_id WHERE s.name = 'tique' AND t.name LIKE 'tique_cache_%'",
    "postgresql": "SELECT tablename::TEXT FROM pg_tables WHERE schemaname = 'tique' "
    "AND tablename LIKE 'tique_cache_%'",
}


def cases(stride=1):
    """Every kind, by itself and in a transaction, as parameters of a test; or every nth."""
    found = []
    for kind in KINDS:
        for is_within in (False, True)[: 1 + kind.within]:
            marks = ()
            if len(kind.engines) < 3:
                reason = "the others refuse it"
                marks = (pytest.mark.written_for(list(kind.engines), reason=reason),)
            name = f"{kind.name}{' within' * is_within}"
            found.append(pytest.param(kind, is_within, id=name, marks=marks))
    return found[::stride]


def definitions(engine, database):
    """All that the engine has in its catalog, and what tique's schema says of that."""
    with closing(database.engine.session()) as session:

        def ask(sql):
            return sorted(session.execute(sql).fetch_all(), key=repr)

        found = [ask(sql) for sql in _DEFINITIONS[engine.name]]
        managed = session.execute(
            'SELECT id, schema_name, table_name FROM tique."tables"'
        ).fetch_all()
        caches = {f"tique_cache_{number}" for number, _, _ in managed}
        assert caches == {name for (name,) in ask(_CACHES[engine.name])}
        names = {number: (schema, name) for number, schema, name in managed}
        keys = []
        if database.catalog.find(None, "child") is not None or names:
            try:
                kept = session.execute(
                    "SELECT id, definition FROM tique.foreign_keys"
                ).fetch_all()
            except Exception:
                # Nothing has made one yet.
                kept = []
            keys = sorted((names[number], text) for number, text in kept)
        return [*found, sorted(names.values()), keys]


def define(engine, connection, text):
    """Run a statement of DDL, or adopt or detach a table."""
    if text in ("adopt", "detach"):
        getattr(tique, text)(engine.url, [f"{engine.schema}.strange"])
        return
    for statement in text.split(";"):
        connection.execute(statement)


def carry_out(engine, connection, kind, *, is_within):
    """The statement, or a transaction with it."""
    if not is_within:
        define(engine, connection, kind.ddl)
        return
    connection.execute("BEGIN")
    connection.execute("UPDATE side SET n = n + 1 WHERE id = 1")
    define(engine, connection, kind.ddl)
    connection.execute("INSERT INTO side VALUES (2, 2)")
    connection.execute("DELETE FROM side WHERE id = 2")
    connection.execute("COMMIT")


def use(connection, table):
    """Read, write, commit and checkpoint it."""
    connection.execute(f"DELETE FROM {table} WHERE id = 1000")
    (count,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    connection.execute(f"INSERT INTO {table} (id, n) VALUES (1000, 900)")
    connection.execute(f"UPDATE {table} SET n = n + 1 WHERE id = 1000")
    found = connection.execute(f"SELECT n FROM {table} WHERE id = 1000")
    assert found.fetchall() == [(901,)]
    connection.checkpoint()
    connection.execute(f"DELETE FROM {table} WHERE id = 1000")
    found = connection.execute(f"SELECT count(*) FROM {table}")
    assert found.fetchone() == (count,)
