--# SELECT: the list, FROM, WHERE

FROM item

FROM item SELECT name WHERE price > 3

SELECT * EXCLUDE (made) FROM item

SELECT * REPLACE (price / 2 AS price) FROM item

SELECT * RENAME (name AS label) FROM item

SELECT COLUMNS('n.*') FROM item

SELECT max(COLUMNS(*)) FROM item

SELECT name[1:3], name.upper() FROM item

SELECT list_value(1, 2, 3), [1, 2][1], {'a': 1}.a

SELECT struct_pack(n := name, p := price) FROM item

SELECT map(['a'], [1])['a']

SELECT price::VARCHAR, TRY_CAST(name AS INTEGER) FROM item

SELECT name ILIKE 'H%', name SIMILAR TO 'h.*', name GLOB 'h*' FROM item

SELECT regexp_replace(name, '[aeiou]', '*', 'g') FROM item

SELECT list_transform([1, 2], lambda x : x + 1)

SELECT [x * 2 FOR x IN [1, 2, 3] IF x > 1]

SELECT strftime(made, '%Y'), date_trunc('month', made), date_diff('day', made, DATE '2025-01-01') FROM item

SELECT any_value(name), arg_max(name, price), string_agg(name, ','), list(name), median(price) FROM item

SELECT count(*) FILTER (WHERE active), quantile_cont(price, 0.5) FROM item

SELECT 'a' || NULL, concat('a', NULL), 5 // 2, 5 % 2, 2 ** 3, 1 << 2

SELECT hash(name), md5(name), uuid() IS NOT NULL FROM item

SELECT json_extract('{"a": [1, 2]}', '$.a[0]'), '{"a": 1}'::JSON ->> 'a'

SELECT alias: name, p: price FROM item

SELECT epoch(TIMESTAMP '2024-01-01'), make_date(2024, 1, 1), age(TIMESTAMP '2024-01-01', TIMESTAMP '2023-01-01')

SELECT 1_000_000, 0x1F, 1e3

--# Joins

SELECT i.name, s.moment FROM item i ASOF JOIN sale s ON s.item = i.id AND s.moment >= i.made

SELECT s.id, e.what FROM sale s ASOF LEFT JOIN event e ON e.n = s.item AND e.moment <= s.moment

SELECT name FROM item SEMI JOIN sale ON sale.item = item.id

SELECT name FROM item ANTI JOIN sale ON sale.item = item.id

SELECT * FROM item POSITIONAL JOIN sale

SELECT i.name, x.amount FROM item i, LATERAL (SELECT amount FROM sale s WHERE s.item = i.id ORDER BY amount LIMIT 1) AS x

SELECT i.name, x.n FROM item i LEFT JOIN LATERAL (SELECT count(*) AS n FROM sale s WHERE s.item = i.id) AS x ON true

SELECT t.n FROM item, (SELECT unnest([1, 2]) AS n) AS t

SELECT i.id, u.x FROM item i, unnest([i.id, i.id + 1]) AS u (x)

--# Table functions and files

SELECT * FROM range(3)

SELECT * FROM generate_series(1, 3) AS g (n)

SELECT unnest([1, 2, 3])

SELECT * FROM unnest([1, 2]) WITH ORDINALITY AS u (x, n)

COPY (SELECT 1 AS a) TO '/tmp/tique-corpus@.csv';
SELECT * FROM '/tmp/tique-corpus@.csv'

COPY (SELECT 1 AS a) TO '/tmp/tique-corpus@.parquet' (FORMAT parquet);
SELECT * FROM read_parquet('/tmp/tique-corpus@.parquet')

COPY (SELECT 1 AS a) TO '/tmp/tique-corpus@.json';
SELECT * FROM read_json('/tmp/tique-corpus@.json')

SELECT * FROM duckdb_tables()

SELECT table_name FROM information_schema.tables

SELECT * FROM duckdb_settings() WHERE name = 'threads'

SELECT * FROM pragma_version()

SELECT * FROM glob('/tmp/tique-corpus*')

--# Subqueries

SELECT name FROM item WHERE (kind, active) IN (SELECT kind, active FROM item)

SELECT ARRAY (SELECT id FROM item ORDER BY id)

SELECT name FROM item WHERE id = ANY ([1, 2])

SELECT name FROM item WHERE price > ANY (SELECT amount FROM sale)

--# Grouping, windows, order

SELECT kind, sum(price) FROM item GROUP BY ALL

SELECT * FROM item ORDER BY ALL

SELECT name FROM item QUALIFY row_number() OVER (PARTITION BY kind ORDER BY price) = 1

SELECT name FROM item ORDER BY price LIMIT 50%

SELECT DISTINCT ON (kind) kind, name FROM item ORDER BY kind, price

SELECT kind, GROUPING(kind), count(*) FROM item GROUP BY ROLLUP (kind)

SELECT sum(amount) OVER (ORDER BY moment RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW) FROM sale

SELECT id, sum(amount) OVER (ORDER BY id ROWS 2 PRECEDING EXCLUDE CURRENT ROW) FROM sale

SELECT list(name ORDER BY price DESC) FROM item

--# Samples

SELECT * FROM item USING SAMPLE 50%

SELECT * FROM item TABLESAMPLE reservoir(2 ROWS)

SELECT * FROM item USING SAMPLE 10% (bernoulli)

--# WITH

WITH a AS MATERIALIZED (SELECT * FROM item) SELECT count(*) FROM a

WITH a AS NOT MATERIALIZED (SELECT * FROM item) SELECT count(*) FROM a

WITH RECURSIVE t (n, s) USING KEY (n) AS (SELECT 1, 0 UNION SELECT n, s + 1 FROM t WHERE s < 3) SELECT * FROM t

WITH RECURSIVE up AS (SELECT id, boss, 1 AS depth FROM person UNION SELECT u.id, p.boss, depth + 1 FROM up u JOIN person p ON p.id = u.boss) SELECT max(depth) FROM up

--# Set operations and VALUES

SELECT id FROM item UNION BY NAME SELECT item AS id, amount FROM sale

SELECT id FROM item EXCEPT ALL SELECT item FROM sale

SELECT id FROM item INTERSECT ALL SELECT item FROM sale

TABLE item

--# PIVOT and UNPIVOT

PIVOT item ON kind USING sum(price)

PIVOT sale ON item IN (1, 2) USING count(*) GROUP BY amount

SELECT * FROM (PIVOT item ON active USING count(*) GROUP BY kind)

UNPIVOT (SELECT id, amount, item FROM sale) ON amount, item INTO NAME what VALUE n

SELECT * FROM item PIVOT (sum(price) FOR kind IN ('toy', 'tool') GROUP BY active)

--# INSERT

INSERT INTO item BY NAME SELECT 3000 AS id, 'x' AS name

INSERT INTO item (id) VALUES (3001) RETURNING id, name

INSERT OR IGNORE INTO item (id, name) VALUES (1, 'again')

INSERT OR REPLACE INTO item (id, name) VALUES (1, 'again')

INSERT INTO item (id, name) VALUES (1, 'z') ON CONFLICT DO NOTHING

INSERT INTO item (id, name) VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name

INSERT INTO item (id, price) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET price = item.price + EXCLUDED.price WHERE item.active

INSERT INTO event DEFAULT VALUES

INSERT INTO item (id, name) FROM (SELECT 3002, 'q')

WITH x AS (SELECT 3003 AS id) INSERT INTO item (id) SELECT id FROM x

--# UPDATE

UPDATE item SET name = 'x' WHERE id = 1 RETURNING *

UPDATE item SET price = s.amount FROM sale s WHERE s.item = item.id AND s.id = 1

UPDATE item AS i SET price = 0 FROM (SELECT item FROM sale GROUP BY item) AS s WHERE s.item = i.id

--# DELETE

DELETE FROM sale USING item WHERE item.id = sale.item AND item.kind = 'toy'

DELETE FROM sale WHERE id = 2 RETURNING id

TRUNCATE event

--# MERGE

MERGE INTO item USING (SELECT 1 AS id, 9 AS price) AS n ON item.id = n.id WHEN MATCHED THEN UPDATE SET price = n.price WHEN NOT MATCHED THEN INSERT (id, price) VALUES (n.id, n.price)

MERGE INTO item USING sale AS s ON item.id = s.item AND s.id = 1 WHEN MATCHED THEN DELETE

MERGE INTO item USING (SELECT 4000 AS id) AS n USING (id) WHEN NOT MATCHED THEN INSERT BY NAME

--# COPY

COPY item TO '/tmp/tique-corpus@.csv' (HEADER)

COPY (SELECT * FROM item WHERE active) TO '/tmp/tique-corpus@.parquet' (FORMAT parquet)

COPY event TO '/tmp/tique-corpus@.csv' (HEADER);
COPY event FROM '/tmp/tique-corpus@.csv' (HEADER)

EXPORT DATABASE '/tmp/tique-corpus@'

--# Transactions

BEGIN;
SELECT 1;
COMMIT

BEGIN TRANSACTION;
UPDATE item SET price = 1;
ABORT

--# Settings and sessions

SET threads = 2

SET memory_limit = '1GB'

RESET threads

SET TimeZone = 'UTC'

SET VARIABLE x = 5;
SELECT getvariable('x')

SELECT current_setting('threads')

SHOW TABLES

SHOW ALL TABLES

DESCRIBE item

DESCRIBE SELECT * FROM item

SUMMARIZE item

PRAGMA table_info('item')

PRAGMA database_list

PRAGMA version

CALL pragma_version()

USE main

SET schema = 'main'

EXPLAIN SELECT * FROM item

EXPLAIN ANALYZE SELECT * FROM item

PREPARE p@ AS SELECT * FROM item WHERE id = $1;
EXECUTE p@(1);
DEALLOCATE p@

SET search_path = 'main'

CREATE SCHEMA s@;
USE s@;
CREATE TABLE t@ (a INTEGER);
SELECT * FROM s@.t@;
DROP TABLE t@;
USE main;
DROP SCHEMA s@

CREATE SCHEMA s@;
SET search_path = 's@,main';
SELECT count(*) FROM item;
RESET search_path;
DROP SCHEMA s@

SET preserve_insertion_order = true

SET enable_progress_bar = false

PRAGMA enable_object_cache

LOAD json

CHECKPOINT

ANALYZE

VACUUM

--# CREATE TABLE

CREATE TABLE t@ AS SELECT * FROM item

CREATE OR REPLACE TABLE t@ (a INTEGER)

CREATE TABLE t@ AS FROM item

CREATE TABLE t@ (a INTEGER CHECK (a > 0), b INTEGER)

CREATE TABLE t@ (a INTEGER, b INTEGER GENERATED ALWAYS AS (a * 2) VIRTUAL)

CREATE TABLE t@ (a INTEGER, b AS (a * 2));
INSERT INTO t@ VALUES (1);
SELECT * FROM t@

CREATE TABLE t@ (a INTEGER[], b STRUCT(x INTEGER, y VARCHAR), c MAP(VARCHAR, INTEGER), d UNION(n INTEGER, t VARCHAR))

CREATE TABLE t@ (a ENUM('x', 'y'), b HUGEINT, c BLOB, d INTERVAL, e JSON, f TIMESTAMPTZ, g BIT)

CREATE TEMP TABLE t@ (a INTEGER);
INSERT INTO t@ VALUES (1);
SELECT * FROM t@

CREATE TEMPORARY TABLE t@ AS SELECT * FROM item

CREATE TABLE t@ (a INTEGER DEFAULT (1 + 2), b TIMESTAMP DEFAULT current_timestamp)

CREATE TABLE t@ (a VARCHAR COLLATE NOCASE)

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b VARCHAR COLLATE NOCASE);
INSERT INTO t@ VALUES (1, 'x'), (2, 'X');
SELECT a FROM t@ WHERE b = 'X' ORDER BY a

SELECT name FROM item WHERE name COLLATE NOCASE = 'HAMMER' ORDER BY name COLLATE NOCASE

CREATE SEQUENCE q@;
CREATE TABLE t@ (a INTEGER DEFAULT nextval('q@'), b INTEGER)

--# ALTER TABLE

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER);
ALTER TABLE t@ ALTER COLUMN b TYPE VARCHAR

CREATE TABLE t@ (a INTEGER, b INTEGER);
ALTER TABLE t@ ALTER b SET NOT NULL

CREATE TABLE t@ (a INTEGER, b INTEGER NOT NULL);
ALTER TABLE t@ ALTER COLUMN b DROP NOT NULL

CREATE TABLE t@ (a INTEGER);
ALTER TABLE t@ ADD COLUMN IF NOT EXISTS b INTEGER DEFAULT 3

CREATE TABLE t@ (a INTEGER, b INTEGER);
ALTER TABLE t@ ADD PRIMARY KEY (a)

CREATE TABLE t@ (a INTEGER);
ALTER TABLE t@ ALTER a SET DATA TYPE BIGINT USING a + 1

--# Views

CREATE VIEW IF NOT EXISTS v@ AS SELECT 1 AS x

CREATE TEMP VIEW v@ AS SELECT * FROM item

CREATE VIEW v@ AS SELECT id FROM item;
ALTER VIEW v@ RENAME TO w@

--# Macros, types, comments

CREATE MACRO m@(a, b) AS a + b;
SELECT m@(1, 2)

CREATE MACRO m@(n) AS TABLE SELECT * FROM range(n)

CREATE TYPE e@ AS ENUM ('a', 'b')

CREATE TYPE s@ AS STRUCT(a INTEGER)

COMMENT ON TABLE item IS 'goods'

COMMENT ON COLUMN item.name IS 'label'

--# Schemas and sequences

CREATE SEQUENCE q@ START 5;
SELECT nextval('q@')

CREATE SEQUENCE q@ INCREMENT BY 2 MINVALUE 1 MAXVALUE 99 CYCLE

CREATE SCHEMA IF NOT EXISTS s@

CREATE SCHEMA s@;
CREATE TABLE s@.t (a INTEGER);
DROP SCHEMA s@ CASCADE

ATTACH ':memory:' AS m@;
CREATE TABLE m@.t (a INTEGER);
DETACH m@

CREATE TABLE t@ (a INTEGER);
CREATE UNIQUE INDEX i@ ON t@ (a)

CREATE TABLE t@ (a INTEGER, b INTEGER);
CREATE INDEX i@ ON t@ ((a + b))

CREATE TABLE t@ (a VARCHAR);
CREATE INDEX i@ ON t@ (lower(a))

CREATE TABLE t@ (a VARCHAR, b INTEGER);
CREATE UNIQUE INDEX i@ ON t@ (b, lower(a));
INSERT INTO t@ VALUES ('x', 1), ('X', 2), (NULL, 1);
SELECT * FROM t@ ORDER BY ALL
