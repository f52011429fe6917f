"""Views through tique and through the bare engine: the same names, rows and errors (P1)."""

from __future__ import annotations

import pytest

from tests.differential import scripts

COMMON = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(20), price DECIMAL(10,2), shop INTEGER)

CREATE TABLE shop (id INTEGER PRIMARY KEY, town VARCHAR(20))

CREATE TABLE note (item INTEGER, words VARCHAR(20))

INSERT INTO shop VALUES (1, 'Ulm'), (2, 'Rom')

INSERT INTO item VALUES (1, 'tea', 2.50, 1), (2, 'nut', 1.00, 1), (3, 'fig', 4.00, 2)

INSERT INTO note VALUES (1, 'hot'), (1, 'hot'), (3, NULL)

CREATE VIEW cheap AS SELECT * FROM item WHERE price < 3

CREATE VIEW named (number, title) AS SELECT id, upper(name) AS n FROM item

CREATE VIEW totals AS SELECT s.town, count(*) AS items, sum(i.price) AS total
FROM item i JOIN shop s ON i.shop = s.id GROUP BY s.town

CREATE VIEW above AS SELECT c.id, c.name, t.total FROM cheap c, shop s, totals t
WHERE c.shop = s.id AND t.town = s.town

CREATE VIEW "Q q" AS WITH item AS (SELECT id AS a FROM shop) SELECT a FROM item

CREATE VIEW both_ways AS SELECT id FROM item UNION ALL SELECT item FROM note

CREATE VIEW noted AS SELECT id, name FROM item WHERE id IN (SELECT item FROM note)
AND NOT EXISTS (SELECT 1 FROM shop WHERE shop.id = item.id AND town LIKE 'R%')

CREATE VIEW lonely AS SELECT id FROM item i WHERE name NOT LIKE 'n%'
AND (SELECT count(*) FROM note n WHERE n.item = i.id) = 0

CREATE VIEW cases AS SELECT id, CASE WHEN price > 2 THEN 'dear' ELSE 'cheap' END AS kind,
coalesce(name, '?') AS known, CAST(price AS INTEGER) AS rounded, price * 2 AS twice FROM item

CREATE VIEW twice AS SELECT a.id AS one, b.id AS other FROM cheap a LEFT JOIN cheap b
ON a.id = b.id + 1

SELECT * FROM cheap

SELECT * FROM named WHERE number > 1

SELECT title FROM named AS n (number, title) ORDER BY 1

SELECT * FROM totals

SELECT * FROM above

SELECT * FROM "Q q"

SELECT id, count(*) AS n FROM both_ways GROUP BY id

SELECT * FROM noted

SELECT * FROM lonely

SELECT * FROM cases

SELECT * FROM twice

SELECT cheap.name, i.name FROM cheap JOIN item i ON i.id = cheap.id WHERE i.id = 1

SELECT (SELECT max(price) FROM cheap) AS most, id FROM shop

SELECT id FROM item WHERE id IN (SELECT id FROM cheap) AND EXISTS (SELECT 1 FROM totals)

UPDATE item SET price = price - 1 WHERE id IN (SELECT id FROM above)

INSERT INTO item SELECT id + 10, name, price + 10, shop FROM cheap

DELETE FROM item WHERE id = 2

SELECT * FROM cheap

SELECT * FROM totals

SELECT * FROM above

SELECT * FROM noted

CREATE VIEW cheap AS SELECT 1 AS a

CREATE VIEW item AS SELECT 1 AS a

CREATE TABLE cheap (a INTEGER)

CREATE VIEW wrong AS SELECT nothing FROM item

CREATE VIEW wrong AS SELECT * FROM nothing

CREATE VIEW wrong (a, b, c) AS SELECT id FROM item

SELECT * FROM wrong

SELECT nothing FROM cheap

INSERT INTO item SELECT 20, 'x', 1, 1 FROM totals WHERE town = 'Rom'

DELETE FROM item WHERE id IN (SELECT id FROM cheap WHERE id > 19)

DROP VIEW nothing

DROP VIEW IF EXISTS nothing

DROP VIEW item

DROP TABLE totals

DROP VIEW lonely

SELECT * FROM lonely

CREATE VIEW lonely AS SELECT id AS alone FROM shop

SELECT * FROM lonely

CREATE OR REPLACE VIEW lonely AS SELECT id AS alone, town FROM shop

SELECT * FROM lonely
"""

RENAMED = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(20))

INSERT INTO item VALUES (1, 'tea'), (2, 'nut')

CREATE VIEW few AS SELECT * FROM item WHERE id < 2

CREATE VIEW "Q q" (n) AS SELECT id FROM item

ALTER VIEW few RENAME TO "no many"

SELECT * FROM few

INSERT INTO item VALUES (0, 'new')

SELECT * FROM "no many"

ALTER VIEW "Q q" RENAME TO item

ALTER VIEW item RENAME TO other

ALTER VIEW IF EXISTS nothing RENAME TO other

ALTER VIEW nothing RENAME TO other

ALTER VIEW "Q q" RENAME TO few

SELECT n FROM few

CREATE VIEW "Q q" AS SELECT 1 AS a

SELECT * FROM "Q q"

DROP VIEW few

DROP VIEW "no many"
"""

RENAMED_COLUMNS = """
CREATE SCHEMA aside

CREATE VIEW few AS SELECT id, name FROM item WHERE id > 0

CREATE VIEW above AS SELECT name FROM few

ALTER VIEW few RENAME COLUMN id TO number

ALTER VIEW few RENAME name TO label

ALTER VIEW few RENAME nothing TO label

SELECT number, label FROM few

SELECT * FROM above

ALTER VIEW few SET SCHEMA aside

UPDATE item SET name = 'x' WHERE id = 1

SELECT * FROM aside.few

SELECT * FROM few

SELECT * FROM above
"""

SCOPES = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(20))

CREATE TABLE shop (id INTEGER PRIMARY KEY)

INSERT INTO item VALUES (1, 'tea'), (2, 'nut')

INSERT INTO shop VALUES (5)

CREATE VIEW few AS SELECT * FROM item WHERE id < 2

WITH item AS (SELECT 7 AS id) SELECT i.id, f.id FROM item i, few f

WITH shop AS (SELECT * FROM few) SELECT s.id, f.* FROM shop s, few AS f (a, b)

WITH few AS (SELECT 3 AS id) SELECT * FROM few

SELECT * FROM item WHERE EXISTS (WITH item AS (SELECT 1) SELECT * FROM few, item)

SELECT name FROM few f, LATERAL (SELECT f.id + few.id AS sum FROM few) AS l

UPDATE item SET name = f.name FROM few f WHERE item.id = f.id + 1

SELECT * FROM item
"""

DUCKDB = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR, tags VARCHAR[])

INSERT INTO item VALUES (1, 'tea', ['a', 'b']), (2, 'nut', []), (3, NULL, NULL)

CREATE VIEW unnamed AS SELECT id + 1, upper(name), count(*) OVER (), (SELECT max(id) FROM item) FROM item

CREATE VIEW stars AS FROM item

CREATE VIEW part (a) AS SELECT id, name FROM item

CREATE VIEW doubled AS SELECT i.id, j.id, unnest(i.tags) AS tag FROM item i JOIN item j USING (id)

CREATE VIEW IF NOT EXISTS stars AS SELECT 1

CREATE VIEW IF NOT EXISTS item AS SELECT 1

CREATE TABLE IF NOT EXISTS stars (a INTEGER)

CREATE VIEW counted AS SELECT schema_name, table_name, estimated_size FROM duckdb_tables()

CREATE VIEW ranged AS SELECT r.range AS r, list_transform(i.tags, x -> x || 'z') AS l
FROM range(2) r, item i ORDER BY ALL

CREATE VIEW pivoted AS PIVOT item ON name IN ('tea', 'nut') USING count(*) GROUP BY id

CREATE VIEW told AS SELECT CASE WHEN name LIKE 't%' THEN 1 ELSE 2 END, name NOT LIKE 'x', name IS NOT NULL,
id BETWEEN 1 AND 2, id NOT IN (1, 5), name::BLOB AS b, {'a': id}, [id, 2], tags[1], INTERVAL 1 DAY AS i, DATE '2020-01-01' AS d,
id::DECIMAL(5,2) AS c, -id, NOT (id = 1), id // 2, id ** 2, name SIMILAR TO 't.*', count(*) FILTER (WHERE id > 1) OVER w,
lag(name) OVER (PARTITION BY id ORDER BY name DESC NULLS LAST ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
FROM item WINDOW w AS (PARTITION BY name)

SELECT * FROM unnamed

SELECT (SELECT max(id) FROM stars), (SELECT max("(id + 1)") FROM unnamed), count(*) FROM stars

FROM stars

SELECT a FROM part

SELECT * FROM part

SELECT tag, * FROM doubled

SELECT * FROM ranged

SELECT * FROM pivoted

SELECT * FROM told

SELECT * FROM counted WHERE table_name = 'nothing'

SELECT DISTINCT schema_name FROM counted

SELECT view_name, column_count FROM duckdb_views() WHERE NOT internal

SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal

SELECT table_name, table_type FROM information_schema.tables

DESCRIBE part

DESCRIBE SELECT * FROM unnamed

SHOW TABLES

SUMMARIZE part

PRAGMA table_info('part')

SELECT column0 FROM (VALUES (1)) WHERE EXISTS (FROM stars SELECT id WHERE id > column0)

CREATE VIEW turned AS SELECT * FROM part

SELECT * FROM turned

CREATE OR REPLACE VIEW part AS SELECT id FROM item

SELECT * FROM turned

UPDATE part SET id = 1

INSERT INTO part VALUES (1)

DELETE FROM part

ALTER TABLE item ADD COLUMN later INTEGER DEFAULT 7

SELECT * FROM stars

ALTER TABLE item RENAME COLUMN name TO title

SELECT * FROM stars

SELECT * FROM unnamed

DROP TABLE item

SELECT * FROM stars

SELECT * FROM turned

CREATE TABLE item (id INTEGER, more INTEGER)

INSERT INTO item VALUES (8, 9)

SELECT * FROM stars

SELECT * FROM turned

DROP VIEW stars CASCADE

SELECT table_name FROM information_schema.tables
"""

POSTGRESQL = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(20), at TIMESTAMPTZ, j JSONB, n NUMERIC(8,2))

CREATE TABLE shop (id INTEGER PRIMARY KEY, town TEXT)

INSERT INTO item VALUES (1, 'tea', '2020-01-01 00:00+00', '{"a": [1, 2]}', 1.5), (2, 'nut', NULL, NULL, NULL)

CREATE VIEW told AS SELECT id, id + 1 AS more, extract(year FROM at) AS y, position('a' IN name) AS p,
substring(name FROM 2 FOR 2) AS s, trim(both 't' FROM name) AS t, name NOT LIKE 't%' AS nl, name ILIKE 'T%' AS il,
id BETWEEN 1 AND 2 AS b, name IN ('tea', 'x') AS i, date_trunc('month', at) AS m, at AT TIME ZONE 'UTC' AS z,
row_number() OVER (PARTITION BY name ORDER BY id DESC) AS r, count(*) FILTER (WHERE id > 1) OVER () AS f,
j ->> 'a' AS j1, j @> '{}' AS j2, ARRAY[id, 2] AS a, (ARRAY[1, 2])[1] AS a1, name COLLATE "C" AS c,
CAST(n AS TEXT) AS n, nullif(id, 1) AS nu, greatest(id, 2) AS g, id = ANY (ARRAY[1, 7]) AS an,
CASE name WHEN 'tea' THEN 1 END AS ca, name SIMILAR TO 't%' AS si, name ~ '^t' AS re, name !~ 'u' AS nre,
id::BIGINT AS big, at - INTERVAL '1 day' AS before, (j -> 'a') -> 0 AS j3, coalesce(name, '?') || 'x' AS co
FROM item

CREATE VIEW mixed AS SELECT DISTINCT ON (i.name) i.*, g FROM item i CROSS JOIN LATERAL (SELECT i.id AS q) l,
generate_series(1, 2) AS g ORDER BY i.name, g DESC

CREATE VIEW united AS SELECT id FROM item EXCEPT SELECT id FROM shop ORDER BY 1 LIMIT 3

CREATE VIEW walked AS WITH RECURSIVE w(n) AS (SELECT min(id) FROM item UNION ALL SELECT n + 1 FROM w WHERE n < 4)
SELECT * FROM w

SELECT * FROM told

SELECT * FROM mixed

SELECT * FROM united

SELECT * FROM walked

SELECT viewname, definition FROM pg_views WHERE schemaname = 'public'

SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = 'public'

SELECT count(*) AS n, max(m.id) FROM told t JOIN mixed m ON m.id = t.id

CREATE OR REPLACE VIEW united AS SELECT 1 AS other

CREATE OR REPLACE VIEW united AS SELECT id, 1 AS more FROM item

SELECT * FROM united

DROP VIEW united, walked

DROP TABLE item

CREATE VIEW kept AS SELECT id FROM shop WHERE id > 1 WITH LOCAL CHECK OPTION

SELECT * FROM kept

CREATE VIEW over AS SELECT id FROM told

DROP VIEW told

DROP VIEW told CASCADE

SELECT * FROM over

DROP TABLE item CASCADE

SELECT * FROM mixed

SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'
"""

MONETDB = """
CREATE TABLE item (id INTEGER PRIMARY KEY, name VARCHAR(20))

INSERT INTO item VALUES (1, 'tea'), (2, 'nut')

CREATE VIEW unnamed AS SELECT count(*) FROM item

CREATE VIEW noted AS SELECT id, 'a' || name AS n /* not ; the end */ FROM item WHERE name <> R'x\'; -- the end

CREATE VIEW checked AS SELECT id FROM item WHERE id > 1 WITH CHECK OPTION

CREATE VIEW "Both" ("One", two) AS (SELECT id, name FROM item) UNION ALL SELECT 9, 'z'

SELECT * FROM unnamed

SELECT * FROM noted

SELECT * FROM checked

SELECT "One" FROM "Both" WHERE two = 'z'

SELECT * FROM item WHERE id IN (SELECT id FROM checked)

SELECT name FROM sys.tables WHERE type = 1 AND NOT system

INSERT INTO checked VALUES (4)

DROP TABLE item

CREATE OR REPLACE VIEW checked AS SELECT id, name FROM item

SELECT * FROM checked

DROP TABLE item CASCADE

SELECT * FROM noted

SELECT name FROM sys.tables WHERE NOT system
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", scripts.MODES)
def test_views(engine, mode):
    scripts.check(engine, COMMON, mode)


@pytest.mark.written_for(
    ["duckdb", "postgresql"],
    reason="MonetDB's views read the common table expressions of the statement around",
)
@pytest.mark.parametrize("mode", scripts.MODES)
def test_names_of_a_statement_and_of_its_views(engine, mode):
    scripts.check(engine, SCOPES, mode)


@pytest.mark.slow
@pytest.mark.written_for(["duckdb", "postgresql"], reason="MonetDB renames no view")
@pytest.mark.parametrize("mode", scripts.MODES)
def test_views_are_renamed(engine, mode):
    more = {"duckdb": "", "postgresql": RENAMED_COLUMNS}[engine.name]
    scripts.check(engine, RENAMED + more, mode)


@pytest.mark.parametrize("mode", scripts.MODES)
def test_an_engines_own_views(engine, mode):
    script = {"duckdb": DUCKDB, "postgresql": POSTGRESQL, "monetdb": MONETDB}
    scripts.check(engine, script[engine.name], mode)
