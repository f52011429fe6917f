"""Enumerations, domains and comments through tique and through the bare engine."""

from __future__ import annotations

import pytest

import tique
from tests.differential import scripts

DUCKDB = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s')

CREATE TYPE mood AS ENUM ('x')

CREATE TABLE item (id INTEGER PRIMARY KEY, m mood, n mood DEFAULT 'ok')

INSERT INTO item (id, m) VALUES (1, 'sad'), (2, 'it''s'), (3, NULL)

INSERT INTO item VALUES (4, 'nothing', 'sad')

UPDATE item SET m = 'ok' WHERE id = 1

SELECT * FROM item WHERE m > 'sad'

SELECT id, m, n FROM item

SELECT enum_range(NULL::mood) AS r

SELECT type_name, labels FROM duckdb_types() WHERE NOT internal AND type_name = 'mood'

SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = 'item'

COMMENT ON TABLE item IS 'It''s; a % thing'

COMMENT ON COLUMN item.m IS 'how'

COMMENT ON COLUMN item.nothing IS 'how'

COMMENT ON TYPE mood IS NULL

SELECT comment FROM duckdb_tables() WHERE table_name = 'item'

SELECT column_name, comment FROM duckdb_columns() WHERE table_name = 'item'

DROP TABLE item

DROP TYPE mood

DROP TYPE IF EXISTS mood

DROP TYPE mood
"""

ALIASES = """
CREATE TYPE point AS STRUCT(x INTEGER, y INTEGER)

CREATE TYPE IF NOT EXISTS point AS VARCHAR

CREATE TYPE points AS point[]

CREATE TYPE money AS DECIMAL(12, 2)

CREATE TYPE wrong AS nothing

CREATE TABLE item (id INTEGER PRIMARY KEY, p point, q points, m money DEFAULT 1.5)

INSERT INTO item VALUES (1, {'x': 1, 'y': 2}, [{'x': 3, 'y': NULL}], 2.25), (2, NULL, [], NULL)

INSERT INTO item (id) VALUES (3)

INSERT INTO item VALUES (4, {'x': 'a', 'y': 2}, NULL, 1)

UPDATE item SET p = {'x': id, 'y': 0}, m = m + 1 WHERE id < 3

SELECT id, p, q, m, typeof(p), typeof(m) FROM item

SELECT '1.555'::money AS m, p.x FROM item WHERE p.y = 0

SELECT type_name, logical_type FROM duckdb_types() WHERE NOT internal

DROP TABLE item

DROP TYPE points

DROP TYPE point
"""

POSTGRESQL = """
CREATE TYPE mood AS ENUM ('sad', 'ok', 'it''s')

CREATE TYPE mood AS ENUM ('x')

CREATE TABLE item (id INTEGER PRIMARY KEY, m mood, n mood DEFAULT 'ok')

INSERT INTO item (id, m) VALUES (1, 'sad'), (2, 'it''s'), (3, NULL)

INSERT INTO item VALUES (4, 'nothing', 'sad')

INSERT INTO item SELECT id + 10, m, n FROM item

UPDATE item SET m = 'ok' WHERE id = 1

SELECT * FROM item WHERE m > 'sad'

SELECT id, m, n FROM item

ALTER TYPE mood ADD VALUE 'gay' AFTER 'sad'

ALTER TYPE mood ADD VALUE IF NOT EXISTS 'ok'

INSERT INTO item (id, m) VALUES (20, 'gay')

SELECT id, m FROM item WHERE m < 'ok'

SELECT enum_range(NULL::mood) AS r

COMMENT ON TABLE item IS 'It''s; a % thing'

COMMENT ON COLUMN public.item.m IS 'how'

COMMENT ON COLUMN item.nothing IS 'how'

COMMENT ON TYPE mood IS NULL

SELECT obj_description('item'::regclass, 'pg_class') AS d, col_description('item'::regclass, 2) AS c

DROP TYPE mood

DROP TABLE item

DROP TYPE mood

DROP TYPE IF EXISTS mood

DROP TYPE mood
"""

DOMAINS = """
CREATE DOMAIN small AS INTEGER DEFAULT 7 CONSTRAINT positive CHECK (VALUE > 0 AND VALUE < 100) NOT NULL

CREATE DOMAIN code TEXT CHECK (VALUE ~ '^[a-z]+$') CHECK (length(VALUE) < 6)

CREATE DOMAIN tiny AS small CHECK (VALUE < 10)

CREATE DOMAIN wrong AS nothing

CREATE TABLE item (id INTEGER PRIMARY KEY, s small, c code, t tiny, u small DEFAULT 3)

INSERT INTO item (id) VALUES (1), (2)

INSERT INTO item VALUES (4, 0, 'a')

INSERT INTO item VALUES (4, NULL, 'a')

INSERT INTO item VALUES (4, 1, 'A')

INSERT INTO item VALUES (4, 1, 'abcdefg')

INSERT INTO item VALUES (4, 1, 'abc', 10)

INSERT INTO item VALUES (4, 1, 'abc', 9, DEFAULT)

INSERT INTO item SELECT id + 10, id, 'b', id FROM item

UPDATE item SET s = 50, c = NULL WHERE id = 1

UPDATE item SET s = s * 2

UPDATE item SET s = DEFAULT WHERE id = 4

SELECT * FROM item

SELECT domain_name, data_type, domain_default FROM information_schema.domains WHERE domain_schema = 'public'

DROP DOMAIN code

ALTER TABLE item DROP COLUMN c

DROP DOMAIN code

SELECT * FROM item

DROP TABLE item

DROP DOMAIN tiny, small

DROP DOMAIN IF EXISTS tiny
"""

MONETDB = """
CREATE TABLE item (id INTEGER PRIMARY KEY, m VARCHAR(5))

INSERT INTO item VALUES (1, 'a')

COMMENT ON TABLE item IS 'It''s; a % thing'

COMMENT ON COLUMN sys.item.m IS 'how'

COMMENT ON COLUMN item.nothing IS 'how'

SELECT remark FROM sys.comments

SELECT * FROM item
"""


@pytest.mark.parametrize("mode", scripts.MODES)
def test_defined_types(engine, mode):
    script = {"duckdb": DUCKDB, "postgresql": POSTGRESQL, "monetdb": MONETDB}
    scripts.check(engine, script[engine.name], mode)


@pytest.mark.written_for(["duckdb"], reason="the others' types are no names of others")
@pytest.mark.parametrize("mode", scripts.MODES)
def test_names_of_types(engine, mode):
    scripts.check(engine, ALIASES, mode)


@pytest.mark.written_for(["postgresql"], reason="the others have no domains")
@pytest.mark.parametrize("mode", scripts.MODES)
def test_domains(engine, mode):
    scripts.check(engine, DOMAINS, mode)


@pytest.mark.written_for(["postgresql"], reason="the others have no domains")
@pytest.mark.parametrize(
    "base", ["VARCHAR(3)", "CHAR(3)", "BIT(3)", "VARBIT(3)", "VARCHAR(3)[]", "short"]
)
def test_a_domain_whose_casts_cut_is_refused(engine, base):
    """P10: a cast to it would cut a value that an assignment refuses."""
    connection = engine.connect(autocommit=True)
    connection.execute("CREATE DOMAIN short AS VARCHAR(3)")
    connection.execute(f"CREATE DOMAIN d AS {base}")
    with pytest.raises(tique.NotSupportedError, match="a domain with a length"):
        connection.execute("CREATE TABLE t (a d)")
    connection.execute("CREATE TABLE t (a INTEGER)")
