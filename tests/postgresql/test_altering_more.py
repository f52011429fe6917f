"""ALTER of schemas of tables, names of indexes and sequences, parameters, domains (P9)."""

from __future__ import annotations

import pytest

import tique

BEFORE = (
    "CREATE SCHEMA s",
    "CREATE SEQUENCE q",
    "CREATE DOMAIN d AS INTEGER DEFAULT 1 NOT NULL CONSTRAINT positive CHECK (VALUE > 0)",
    "CREATE TABLE p (id INTEGER PRIMARY KEY, u INTEGER CONSTRAINT single UNIQUE)",
    "CREATE TABLE x (id INTEGER PRIMARY KEY DEFAULT nextval('q'), p INTEGER REFERENCES p, "
    "x INTEGER REFERENCES x, v d)",
    "CREATE INDEX i ON x (p)",
    "INSERT INTO p VALUES (1, 1)",
    "INSERT INTO x (p, x) VALUES (1, NULL), (1, 1)",
)
AFTER = (
    "DROP TABLE IF EXISTS x, s.x, p, s.p CASCADE",
    "DROP DOMAIN d",
    "DROP SEQUENCE IF EXISTS q",
    "DROP SEQUENCE IF EXISTS r",
    "DROP SCHEMA s",
)


@pytest.fixture
def world(pair):
    for connection in (pair.native, pair.ours):
        for statement in BEFORE:
            connection.execute(statement)
        connection.commit()
    yield
    for connection in (pair.native, pair.ours):
        connection.rollback()
        for statement in AFTER:
            connection.execute(statement)
        connection.commit()


SCRIPTS = {
    "a table moves": [
        "ALTER TABLE x SET SCHEMA s",
        "INSERT INTO s.x (p, x) VALUES (1, 2)",
        "SELECT * FROM s.x ORDER BY id",
        "SELECT * FROM x",
    ],
    "its references hold": [
        "ALTER TABLE x SET SCHEMA s",
        "INSERT INTO s.x (x) VALUES (77)",
    ],
    "a referenced one moves": [
        "ALTER TABLE p SET SCHEMA s",
        "DELETE FROM s.p",
    ],
    "and is deleted from": [
        "ALTER TABLE p SET SCHEMA s",
        "DELETE FROM x",
        "DELETE FROM s.p RETURNING *",
    ],
    "a place is taken": [
        "CREATE TABLE s.x (a INTEGER)",
        "ALTER TABLE x SET SCHEMA s",
    ],
    "a schema is not there": ["ALTER TABLE x SET SCHEMA nowhere"],
    "an index is renamed": [
        "ALTER INDEX single RENAME TO other",
        "INSERT INTO p VALUES (2, 1) ON CONFLICT ON CONSTRAINT other DO NOTHING RETURNING id",
        "INSERT INTO p VALUES (2, 1) ON CONFLICT ON CONSTRAINT single DO NOTHING",
    ],
    "a unique index": [
        "CREATE UNIQUE INDEX ON p (u DESC) INCLUDE (id)",
        "CREATE UNIQUE INDEX pair ON x (p, v)",
        "UPDATE x SET p = 1",
        "UPDATE x SET v = id",
        "CREATE UNIQUE INDEX pair ON x (v, p)",
        "CREATE UNIQUE INDEX IF NOT EXISTS pair ON x (v, p)",
        "CREATE UNIQUE INDEX IF NOT EXISTS p ON x (v)",
        "UPDATE x SET v = 1",
        "CREATE UNIQUE INDEX twin ON p (u, id)",
        "INSERT INTO p VALUES (1, 1) ON CONFLICT (id, u) DO UPDATE SET u = 5 RETURNING *",
        "INSERT INTO p VALUES (1, 5) ON CONFLICT ON CONSTRAINT twin DO NOTHING",
        "INSERT INTO p VALUES (2, 5), (3, 8) ON CONFLICT DO NOTHING RETURNING id",
        "DROP INDEX twin",
        "INSERT INTO p VALUES (1, 5) ON CONFLICT (id, u) DO NOTHING",
        "ALTER INDEX pair RENAME TO couple",
        "DROP INDEX pair",
        "DROP INDEX IF EXISTS pair",
        "DROP INDEX couple",
        "UPDATE x SET v = 1",
        "DROP INDEX single",
    ],
    "a unique index becomes a constraint": [
        "CREATE UNIQUE INDEX twin ON p (u, id)",
        "ALTER TABLE p ADD CONSTRAINT pair UNIQUE USING INDEX twin",
        "INSERT INTO p VALUES (1, 1)",
        "INSERT INTO p VALUES (1, 1) ON CONFLICT ON CONSTRAINT pair DO NOTHING",
        "ALTER TABLE p ADD CONSTRAINT other UNIQUE USING INDEX pair",
        "ALTER TABLE p ADD UNIQUE USING INDEX nothing",
        "CREATE UNIQUE INDEX lowered ON p (abs(u))",
        "ALTER TABLE p ADD UNIQUE USING INDEX lowered",
        "DROP INDEX lowered",
        "DROP INDEX pair",
        "ALTER TABLE p DROP CONSTRAINT pair",
        "SELECT conname FROM pg_constraint WHERE conrelid = 'p'::regclass ORDER BY 1",
    ],
    "a table with a unique index changes": [
        "CREATE UNIQUE INDEX pair ON x (v, p)",
        "CREATE UNIQUE INDEX pair ON x (id, p)",
        "ALTER TABLE x RENAME COLUMN p TO parent",
        "ALTER TABLE x ADD COLUMN w INTEGER DEFAULT 3",
        "CREATE UNIQUE INDEX more ON x (w, id)",
        "INSERT INTO x (parent) VALUES (1) RETURNING w",
        "ALTER TABLE x ALTER COLUMN w TYPE BIGINT",
        "UPDATE x SET w = 4, id = 1",
        "CREATE TABLE copied (LIKE x INCLUDING ALL)",
        "INSERT INTO copied SELECT * FROM x",
        "UPDATE copied SET id = 1, w = 1",
        "SELECT count(*) FROM pg_index WHERE indrelid = 'copied'::regclass",
        "DROP TABLE copied",
        "ALTER TABLE x DROP COLUMN w",
        "DROP INDEX more",
        "DROP INDEX i",
        "TRUNCATE x",
    ],
    "a key that is referenced": [
        "CREATE UNIQUE INDEX more ON p (u, id)",
        "CREATE TABLE c (u INTEGER, id INTEGER, FOREIGN KEY (u, id) REFERENCES p (u, id))",
        "INSERT INTO c VALUES (1, 1)",
        "INSERT INTO c VALUES (1, 2)",
        "DELETE FROM p",
        "DROP INDEX more",
        "DROP TABLE c",
        "DROP INDEX more",
    ],
    "an index is not there": [
        "ALTER INDEX IF EXISTS nope RENAME TO i",
        "ALTER INDEX nope RENAME TO i",
    ],
    "a sequence is renamed": [
        "ALTER SEQUENCE q RENAME TO r",
        "INSERT INTO x (p) VALUES (1) RETURNING id",
        "SELECT currval('r')",
    ],
    "parameters": [
        "ALTER TABLE x SET (fillfactor = 50, autovacuum_enabled = false)",
        "ALTER TABLE x SET (fillfactor='50')",
        "ALTER TABLE x RESET (fillfactor)",
        "CREATE TABLE s.w (id INTEGER NOT NULL, v TEXT) WITH (fillfactor='70')",
        "INSERT INTO s.w VALUES (1, repeat('a', 9000))",
        "ALTER TABLE ONLY s.w ALTER COLUMN v SET STORAGE EXTERNAL",
        "ALTER TABLE s.w ALTER COLUMN id SET STORAGE EXTERNAL",
        "INSERT INTO s.w VALUES (2, repeat('b', 9000))",
        "SELECT attstorage, reloptions FROM pg_attribute JOIN pg_class ON attrelid = "
        "pg_class.oid WHERE relname = 'w' AND attname = 'v'",
        "SELECT id, length(v) FROM s.w ORDER BY id",
        "DROP TABLE s.w",
        "ALTER TABLE x OWNER TO CURRENT_USER",
        "ALTER TABLE x ALTER COLUMN p SET STATISTICS 50, ALTER id SET STATISTICS -1",
        "SELECT reloptions FROM pg_class WHERE relname = 'x'",
        "INSERT INTO x (p) VALUES (1) RETURNING id",
    ],
    "constraints that need not hold yet": [
        "ALTER TABLE x ADD CONSTRAINT c CHECK (p > 0) NOT VALID",
        "ALTER TABLE x ADD CONSTRAINT k FOREIGN KEY (p) REFERENCES p (u) NOT VALID",
        "INSERT INTO x (p) VALUES (-1)",
        "INSERT INTO x (p) VALUES (9)",
        "ALTER TABLE x VALIDATE CONSTRAINT c",
        "ALTER TABLE x VALIDATE CONSTRAINT k",
        "ALTER TABLE x VALIDATE CONSTRAINT nope",
        "INSERT INTO x (p) VALUES (-1)",
        "INSERT INTO x (p) VALUES (1) RETURNING p",
    ],
    "a domain's default": [
        "ALTER DOMAIN d SET DEFAULT 5 + 4",
        "INSERT INTO x (p) VALUES (1) RETURNING v",
        "ALTER DOMAIN d DROP DEFAULT",
        "INSERT INTO x (p) VALUES (1) RETURNING v",
    ],
    "a dump begins": [
        "SET xmloption = content",
        "SET check_function_bodies = false",
        "SET default_table_access_method = heap",
        "CREATE EXTENSION IF NOT EXISTS plpgsql WITH SCHEMA pg_catalog",
        "COMMENT ON EXTENSION plpgsql IS 'PL/pgSQL''s; % own'",
        "SELECT obj_description(oid, 'pg_extension') FROM pg_catalog.pg_extension "
        "WHERE extname = 'plpgsql'",
        "COMMENT ON EXTENSION missing IS 'x'",
        "CREATE FUNCTION f(a INTEGER, b d) RETURNS INTEGER LANGUAGE SQL AS 'SELECT 1'",
        "COMMENT ON FUNCTION public.f(a integer, b d) IS 'one'",
        "SELECT obj_description('f(integer, d)'::regprocedure, 'pg_proc')",
        "COMMENT ON FUNCTION f(text) IS 'x'",
        "DROP FUNCTION f(INTEGER, d)",
        "SELECT pg_catalog.setval('public.q', 30, true)",
        "INSERT INTO x (p) VALUES (1) RETURNING id",
    ],
    "a domain is loosened": [
        "ALTER DOMAIN d RENAME CONSTRAINT positive TO above",
        "ALTER DOMAIN d DROP CONSTRAINT above",
        "ALTER DOMAIN d DROP CONSTRAINT IF EXISTS above",
        "ALTER DOMAIN d DROP NOT NULL",
        "INSERT INTO x (v) VALUES (-1), (NULL) RETURNING v",
    ],
}


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_as_natively(pair, script):
    def body(connection):
        results = []
        for statement in script:
            try:
                cursor = connection.execute(statement)
            except Exception as error:
                connection.rollback()
                results.append(error.sqlstate)
                continue
            results.append(cursor.fetchall() if cursor.description else None)
            connection.commit()
        return results

    pair.same(body)


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    "sql",
    [
        "ALTER TABLE x SET SCHEMA tique",
        "ALTER TABLE x OWNER TO SESSION_USER",
        "ALTER TABLE x OWNER TO pg_monitor",
        "ALTER TABLE x OWNER TO CURRENT_USER, ADD COLUMN w INTEGER",
        "ALTER SCHEMA public OWNER TO pg_database_owner",
        "ALTER SCHEMA pg_catalog OWNER TO pg_monitor",
        "ALTER SEQUENCE q OWNER TO nobody_known",
        "ALTER SEQUENCE tique.nothing OWNER TO CURRENT_USER",
        "ALTER TABLE x SET (user_catalog_table = true)",
        "ALTER DOMAIN d ADD CONSTRAINT c CHECK (VALUE < 9)",
        "ALTER DOMAIN d SET NOT NULL",
        "ALTER INDEX i SET (fillfactor = 50)",
        "CREATE UNIQUE INDEX bits ON x (CAST(id AS BIT(9)))",
        "ALTER INDEX tique.log RENAME TO i",
    ],
)
def test_what_is_refused(pair, sql):
    with pytest.raises(tique.NotSupportedError):
        pair.ours.execute(sql)
    pair.ours.rollback()


@pytest.mark.usefixtures("world")
def test_the_owner_may_be_named(pair):
    """As dumps do for each object; natively, too, nothing changes."""
    ((role,),) = pair.native.execute("SELECT current_user").fetchall()
    pair.native.rollback()

    def body(connection):
        results = []
        for statement in (
            "CREATE VIEW w AS SELECT id FROM x",
            "CREATE FUNCTION f(a INTEGER, OUT b TEXT[]) LANGUAGE SQL AS 'SELECT NULL::TEXT[]'",
            "CREATE FUNCTION f(d) RETURNS d LANGUAGE SQL AS 'SELECT $1'",
            "CREATE AGGREGATE s.joined(TEXT) (sfunc = textcat, stype = text)",
            "ALTER TABLE x OWNER TO {}",
            "ALTER TABLE IF EXISTS ONLY public.x OWNER TO {}",
            "ALTER TABLE IF EXISTS missing OWNER TO {}",
            "ALTER TABLE missing OWNER TO {}",
            "ALTER TABLE s.x OWNER TO {}",
            "ALTER TABLE w OWNER TO {}",
            "ALTER VIEW w OWNER TO {}",
            "ALTER TABLE q OWNER TO {}",
            "ALTER SEQUENCE public.q OWNER TO {}",
            "ALTER SEQUENCE missing OWNER TO {}",
            "ALTER SCHEMA s OWNER TO {}",
            "ALTER TYPE d OWNER TO {}",
            "ALTER DOMAIN d OWNER TO {}",
            "ALTER FUNCTION f(a integer, OUT b text[]) OWNER TO {}",
            "ALTER FUNCTION public.f(d) OWNER TO {}",
            "ALTER AGGREGATE s.joined(text) OWNER TO {}",
            "SELECT count(*) FROM x",
            "DROP AGGREGATE s.joined(TEXT)",
            "DROP FUNCTION f(INTEGER), f(d)",
            "DROP VIEW w",
        ):
            for named in ("CURRENT_USER", f'"{role}"') if "{}" in statement else [""]:
                try:
                    cursor = connection.execute(statement.format(named))
                except Exception as error:
                    connection.rollback()
                    results.append((statement, error.sqlstate))
                    continue
                results.append(cursor.fetchall() if cursor.description else None)
                connection.commit()
        return results

    pair.same(body)


def test_another_role_may_own_it(shop):
    """P11: a member of the owner's role may not take an object for itself unseen."""
    shop.natively(
        "CREATE SEQUENCE public.theirs", "ALTER SEQUENCE public.theirs OWNER TO writer"
    )
    connection = shop.owner.connection
    for role in ("writer", "CURRENT_USER"):
        with pytest.raises(
            tique.NotSupportedError, match="owner of sequence theirs is"
        ):
            connection.execute(f"ALTER SEQUENCE theirs OWNER TO {role}")
        connection.rollback()


@pytest.mark.usefixtures("world")
@pytest.mark.parametrize(
    "constraint",
    ["CHECK (p > 5)", "FOREIGN KEY (id) REFERENCES p", "CONSTRAINT c CHECK (v > 5)"],
)
def test_rows_that_are_there_are_checked(pair, constraint):
    """NOT VALID or not: a constraint of tique's holds for all rows (P9)."""
    with pytest.raises(tique.IntegrityError):
        pair.ours.execute(f"ALTER TABLE x ADD {constraint} NOT VALID")
    pair.ours.rollback()
    assert len(pair.ours.execute("SELECT * FROM x").fetchall()) == 2
    pair.ours.rollback()
