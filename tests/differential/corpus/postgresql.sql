--# SELECT: the list, FROM, WHERE

SELECT price::text, name::varchar(3) FROM item

SELECT name ILIKE 'H%', name ~ '^h', name SIMILAR TO 'h%' FROM item

SELECT array_agg(name ORDER BY id), string_agg(name, ','), json_agg(id), jsonb_object_agg(id, name) FROM item

SELECT count(*) FILTER (WHERE active), percentile_cont(0.5) WITHIN GROUP (ORDER BY price) FROM item

SELECT (ARRAY[1, 2])[1], ARRAY[1, 2] || 3, ARRAY[1] @> ARRAY[1]

SELECT '{"a": 1}'::jsonb -> 'a', '{"a": 1}'::jsonb ->> 'a', '{"a": 1}'::jsonb @> '{}', '{"a": [1]}'::jsonb #> '{a,0}'

SELECT jsonb_build_object('a', 1), to_jsonb(name), jsonb_set('{}', '{a}', '1') FROM item

SELECT date_trunc('month', moment), extract(epoch FROM moment), to_char(moment, 'YYYY'), age(moment) FROM sale

SELECT now() - INTERVAL '1 day', make_date(2024, 1, 1), justify_days(INTERVAL '40 days')

SELECT regexp_replace(name, '[aeiou]', '*', 'g'), split_part(name, 'a', 1), lpad(name, 9, '*') FROM item

SELECT greatest(1, 2), least(1, 2), num_nonnulls(1, NULL), width_bucket(5, 0, 10, 5)

SELECT md5(name), encode(sha256('a'), 'hex'), gen_random_uuid() IS NOT NULL FROM item

SELECT generate_series(1, 3)

SELECT int4range(1, 5) @> 3, numrange(1, 2) && numrange(2, 3), upper(int4range(1, 5))

SELECT to_tsvector('english', 'a fat cat') @@ to_tsquery('english', 'cat')

SELECT (row(1, 'a')).f1

SELECT U&'d\0061t\+000061', E'a\nb', $$it's$$, B'101', X'1F'

SELECT name COLLATE "C" FROM item ORDER BY name COLLATE "C"

SELECT moment AT TIME ZONE 'UTC' FROM sale

SELECT overlay('abc' placing 'x' from 2 for 1), position('b' in 'abc'), substring('abc' from 2 for 1)

SELECT a IS DISTINCT FROM b, (a, b) = (b, a), (a, b) OVERLAPS (a, b) FROM (SELECT DATE '2024-01-01' AS a, DATE '2024-01-02' AS b) AS x

SELECT xmlelement(name foo, 'x'), xmlforest(1 AS a)

SELECT pg_typeof(1), version() IS NOT NULL, current_user IS NOT NULL, current_database() IS NOT NULL

SELECT format('%s %I', 'a', 'b'), quote_literal('x'), chr(65), ascii('A'), repeat('a', 3)

SELECT bool_and(active), bit_or(id), stddev(price), corr(id, price), mode() WITHIN GROUP (ORDER BY kind) FROM item

--# Joins

SELECT i.name, x.amount FROM item i CROSS JOIN LATERAL (SELECT amount FROM sale s WHERE s.item = i.id ORDER BY amount LIMIT 1) AS x

SELECT i.name, x.n FROM item i LEFT JOIN LATERAL (SELECT count(*) AS n FROM sale s WHERE s.item = i.id) AS x ON true

SELECT u.x, i.id FROM item i, unnest(ARRAY[i.id, 7]) AS u (x)

SELECT * FROM ROWS FROM (generate_series(1, 2), generate_series(1, 3)) AS r (a, b)

SELECT g FROM generate_series(1, 3) WITH ORDINALITY AS t (g, n)

SELECT * FROM json_to_recordset('[{"a": 1}]') AS x (a int)

SELECT * FROM jsonb_each('{"a": 1}'), jsonb_array_elements('[1, 2]') AS e

SELECT * FROM (item JOIN sale ON sale.item = item.id) AS j

SELECT * FROM ONLY item

--# Subqueries

SELECT ARRAY (SELECT id FROM item ORDER BY id)

SELECT name FROM item WHERE id = ANY (ARRAY[1, 2])

SELECT name FROM item WHERE (kind, active) IN (SELECT kind, active FROM item)

SELECT name FROM item WHERE price > ANY (SELECT amount FROM sale)

--# Grouping, windows, order

SELECT DISTINCT ON (kind) kind, name FROM item ORDER BY kind, price

SELECT kind, grouping(kind), count(*) FROM item GROUP BY DISTINCT ROLLUP (kind)

SELECT name FROM item ORDER BY id FETCH FIRST 3 ROWS ONLY

SELECT kind, price FROM item ORDER BY price FETCH FIRST 1 ROW WITH TIES

SELECT name FROM item ORDER BY price USING >

SELECT sum(amount) OVER (ORDER BY moment RANGE BETWEEN '1 day' PRECEDING AND CURRENT ROW) FROM sale

SELECT id, sum(amount) OVER (ORDER BY id GROUPS 1 PRECEDING EXCLUDE TIES) FROM sale

SELECT percent_rank() OVER (ORDER BY price), cume_dist() OVER (ORDER BY price), nth_value(name, 2) OVER (ORDER BY id) FROM item

SELECT name FROM item FOR UPDATE

SELECT name FROM item WHERE id = 1 FOR SHARE

--# Samples

SELECT * FROM item TABLESAMPLE BERNOULLI (50)

SELECT * FROM item TABLESAMPLE SYSTEM (50) REPEATABLE (7)

--# WITH

WITH a AS MATERIALIZED (SELECT * FROM item) SELECT count(*) FROM a

WITH RECURSIVE t (n) AS (SELECT 1 UNION SELECT n % 5 + 1 FROM t) SELECT * FROM t ORDER BY n

WITH RECURSIVE t (id, boss) AS (SELECT id, boss FROM person WHERE boss IS NULL UNION ALL SELECT p.id, p.boss FROM person p, t WHERE p.boss = t.id) SEARCH DEPTH FIRST BY id SET place SELECT * FROM t ORDER BY place

WITH RECURSIVE t (id, boss) AS (SELECT id, boss FROM person UNION ALL SELECT p.id, p.boss FROM person p, t WHERE p.boss = t.id) CYCLE id SET is_cycle USING path SELECT * FROM t

WITH gone AS (DELETE FROM sale WHERE id = 1 RETURNING *) SELECT count(*) FROM gone

WITH made AS (INSERT INTO item (id) VALUES (5001) RETURNING id) INSERT INTO sale (id, item) SELECT 5001, id FROM made

WITH RECURSIVE t AS (SELECT id, boss, ARRAY[id] AS path FROM person UNION ALL SELECT t.id, p.boss, path || p.id FROM t JOIN person p ON p.id = t.boss WHERE NOT p.id = ANY (path)) SELECT max(cardinality(path)) FROM t

--# Set operations and VALUES

SELECT id FROM item EXCEPT ALL SELECT item FROM sale

TABLE item

TABLE item ORDER BY id LIMIT 2

--# INSERT

INSERT INTO item (id) VALUES (3001) RETURNING id, name

INSERT INTO item (id, name) VALUES (1, 'z') ON CONFLICT DO NOTHING

INSERT INTO item (id, name) VALUES (1, 'z') ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name

INSERT INTO item AS i (id, price) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET price = i.price + EXCLUDED.price WHERE i.active RETURNING *

INSERT INTO item (id, name) VALUES (1, 'z') ON CONFLICT ON CONSTRAINT item_pkey DO NOTHING

INSERT INTO event DEFAULT VALUES

WITH x AS (SELECT 3003 AS id) INSERT INTO item (id) SELECT id FROM x

INSERT INTO item (id, name) OVERRIDING SYSTEM VALUE VALUES (3004, 'o')

INSERT INTO item (id, price) VALUES (3005, DEFAULT)

--# UPDATE

UPDATE item SET name = 'x' WHERE id = 1 RETURNING *

UPDATE item SET price = s.amount FROM sale s WHERE s.item = item.id AND s.id = 1

UPDATE item SET (name, price) = ('y', 3) WHERE id = 2

UPDATE item SET (name, price) = (SELECT 'q', 4) WHERE id = 2

UPDATE item i SET price = 0 FROM (SELECT item FROM sale GROUP BY item) AS s WHERE s.item = i.id RETURNING i.id, s.item

WITH x AS (SELECT 1 AS id) UPDATE item SET price = 1 FROM x WHERE x.id = item.id

--# DELETE

DELETE FROM sale USING item WHERE item.id = sale.item AND item.kind = 'toy'

DELETE FROM sale WHERE id = 2 RETURNING id

DELETE FROM ONLY sale WHERE id = 3

TRUNCATE event

TRUNCATE TABLE event, sale

--# MERGE

MERGE INTO item USING (SELECT 1 AS id, 9 AS price) AS n ON item.id = n.id WHEN MATCHED THEN UPDATE SET price = n.price WHEN NOT MATCHED THEN INSERT (id, price) VALUES (n.id, n.price)

MERGE INTO item AS i USING sale AS s ON i.id = s.item AND s.id = 1 WHEN MATCHED AND i.active THEN DELETE WHEN MATCHED THEN DO NOTHING

--# Transactions

BEGIN;
SELECT 1;
COMMIT

BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT 1;
END

BEGIN;
SAVEPOINT a;
UPDATE item SET price = 1;
ROLLBACK TO SAVEPOINT a;
RELEASE a;
COMMIT

BEGIN;
SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
SELECT 1;
COMMIT

BEGIN;
SET CONSTRAINTS ALL DEFERRED;
COMMIT

BEGIN;
SELECT 1;
COMMIT AND CHAIN;
ROLLBACK

BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT 1;
COMMIT

BEGIN;
LOCK TABLE item IN SHARE MODE;
COMMIT

--# Settings and sessions

SET work_mem = '8MB'

SET LOCAL work_mem = '8MB'

RESET work_mem

SET TIME ZONE 'UTC'

SHOW work_mem

SHOW server_version

SHOW ALL

SET statement_timeout = '5s'

SET search_path TO public

SELECT current_setting('work_mem')

SELECT set_config('app.tenant', '5', false)

PREPARE p@ (int) AS SELECT * FROM item WHERE id = $1;
EXECUTE p@ (1);
DEALLOCATE p@

EXPLAIN SELECT * FROM item

EXPLAIN (ANALYZE, BUFFERS) SELECT * FROM item

EXPLAIN (FORMAT JSON, COSTS OFF) SELECT * FROM item

DISCARD PLANS

ANALYZE item

VACUUM item

DO $$ BEGIN END $$

SET datestyle = 'ISO'

SET client_min_messages = 'warning'

SET application_name = 'corpus'

LISTEN c@

NOTIFY c@

DECLARE d@ CURSOR WITH HOLD FOR SELECT * FROM item;
FETCH 1 FROM d@;
CLOSE d@

--# The catalog

SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'

SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'item'

SELECT relname FROM pg_class WHERE relkind = 'r'

SELECT tablename FROM pg_tables WHERE schemaname = 'public'

SELECT 'item'::regclass::oid > 0

SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'item'::regclass

SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = 'item'::regclass AND a.attnum > 0

SELECT obj_description('item'::regclass), pg_total_relation_size('item') > 0

--# CREATE TABLE

CREATE TABLE t@ AS SELECT * FROM item

CREATE TABLE t@ (a SERIAL PRIMARY KEY, b text)

CREATE TABLE t@ (a bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b text)

CREATE TABLE t@ (a integer GENERATED BY DEFAULT AS IDENTITY, b text)

CREATE TABLE t@ (a integer CHECK (a > 0), b integer, CHECK (a > b))

CREATE TABLE t@ (a integer, b integer GENERATED ALWAYS AS (a * 2) STORED)

CREATE TABLE t@ (LIKE item INCLUDING ALL)

CREATE TABLE t@ (a integer[], b jsonb, c int4range, d inet, e interval, f timestamptz, g bytea, h numeric, i money, j xml)

CREATE TEMP TABLE t@ (a integer);
INSERT INTO t@ VALUES (1);
SELECT * FROM t@

CREATE TEMPORARY TABLE t@ ON COMMIT DROP AS SELECT * FROM item

CREATE UNLOGGED TABLE t@ (a integer)

CREATE TABLE t@ (a integer) PARTITION BY RANGE (a)

CREATE TABLE t@ (a integer DEFAULT (1 + 2), b timestamptz DEFAULT now(), c uuid DEFAULT gen_random_uuid())

CREATE TABLE t@ (a integer PRIMARY KEY);
CREATE TABLE c@ (b integer REFERENCES t@ DEFERRABLE INITIALLY DEFERRED)

CREATE TABLE t@ (a integer, EXCLUDE USING gist (int4range(a, a + 1) WITH &&))

CREATE TABLE t@ (a integer PRIMARY KEY) WITH (fillfactor = 70)

SELECT * INTO t@ FROM item

--# ALTER TABLE

CREATE TABLE t@ (a integer PRIMARY KEY, b integer);
ALTER TABLE t@ ALTER COLUMN b TYPE text

CREATE TABLE t@ (a integer, b integer);
ALTER TABLE t@ ALTER b SET NOT NULL

CREATE TABLE t@ (a integer, b integer NOT NULL);
ALTER TABLE t@ ALTER COLUMN b DROP NOT NULL

CREATE TABLE t@ (a integer);
ALTER TABLE t@ ADD COLUMN IF NOT EXISTS b integer DEFAULT 3, ADD COLUMN c text

CREATE TABLE t@ (a integer, b integer);
ALTER TABLE t@ ADD PRIMARY KEY (a)

CREATE TABLE t@ (a integer, b integer);
ALTER TABLE t@ ADD CONSTRAINT t@_u UNIQUE (b)

CREATE TABLE t@ (a integer, b integer);
ALTER TABLE t@ ADD CONSTRAINT t@_c CHECK (a > b)

CREATE TABLE t@ (a integer PRIMARY KEY);
CREATE TABLE c@ (b integer);
ALTER TABLE c@ ADD CONSTRAINT c@_f FOREIGN KEY (b) REFERENCES t@ (a)

CREATE TABLE t@ (a integer, CONSTRAINT t@_c CHECK (a > 0));
ALTER TABLE t@ DROP CONSTRAINT t@_c

CREATE TABLE t@ (a integer);
ALTER TABLE t@ ALTER a TYPE bigint USING a + 1

CREATE SCHEMA s@;
CREATE TABLE t@ (a integer);
ALTER TABLE t@ SET SCHEMA s@

--# Views

CREATE TEMP VIEW v@ AS SELECT * FROM item

CREATE MATERIALIZED VIEW v@ AS SELECT kind, count(*) FROM item GROUP BY kind;
REFRESH MATERIALIZED VIEW v@

CREATE VIEW v@ AS SELECT id FROM item WITH CHECK OPTION

CREATE VIEW v@ AS SELECT id FROM item;
ALTER VIEW v@ RENAME TO w@

--# Types, functions, comments, privileges

CREATE TYPE e@ AS ENUM ('a', 'b')

CREATE TYPE c@ AS (a integer, b text)

CREATE DOMAIN d@ AS integer CHECK (VALUE > 0)

ALTER TYPE colour_of_corpus ADD VALUE IF NOT EXISTS 'blue'

COMMENT ON TABLE item IS 'goods'

COMMENT ON COLUMN item.name IS 'label'

CREATE FUNCTION f@ (a integer) RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT a + 1'

SELECT twice_of_corpus(id) FROM item

GRANT SELECT ON item TO PUBLIC

REVOKE SELECT ON item FROM PUBLIC

CREATE EXTENSION IF NOT EXISTS citext

CREATE TABLE t@ (a integer);
CREATE FUNCTION f@ () RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER g@ BEFORE INSERT ON t@ FOR EACH ROW EXECUTE FUNCTION f@ ()

--# Schemas, sequences, indexes

CREATE SEQUENCE q@;
SELECT nextval('q@'), currval('q@')

CREATE SEQUENCE q@ INCREMENT BY 2 MINVALUE 1 MAXVALUE 99 CYCLE

CREATE SEQUENCE q@;
ALTER SEQUENCE q@ RESTART WITH 5

CREATE SCHEMA IF NOT EXISTS s@

CREATE SCHEMA s@;
CREATE TABLE s@.t (a integer);
DROP SCHEMA s@ CASCADE

CREATE TABLE t@ (a integer);
CREATE UNIQUE INDEX i@ ON t@ (a)

CREATE TABLE t@ (a text);
CREATE INDEX i@ ON t@ (lower(a))

CREATE TABLE t@ (a integer, b integer);
CREATE INDEX i@ ON t@ (a) WHERE b > 0

CREATE TABLE t@ (a jsonb);
CREATE INDEX i@ ON t@ USING gin (a)

CREATE TABLE t@ (a integer, b integer);
CREATE INDEX CONCURRENTLY i@ ON t@ (a) INCLUDE (b)

REINDEX TABLE item
