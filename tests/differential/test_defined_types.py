"""Enumerations and comments through tique and through the bare engine."""

from __future__ import annotations

import pytest

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
