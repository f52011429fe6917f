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

SELECT EXISTS (SELECT 1 FROM item WHERE id = 1), name ILIKE '%a/%' ESCAPE '/', id IS NOT DISTINCT FROM 1 FROM item

SELECT '{"a": 1}'::jsonb ? 'a', '{"a": 1}'::jsonb ?| ARRAY['a'], '{"a": [1]}'::jsonb @? '$.a[*]', jsonb_path_query('{"a": 1}', '$.a')

SELECT date_trunc('day', moment AT TIME ZONE 'UTC'), EXTRACT('isodow' FROM moment), date_part('week', moment) FROM sale

SELECT array_length(ARRAY[1, 2], 1), 1 = ALL (ARRAY[1]), array_position(ARRAY['a', 'b'], 'b'), ARRAY[[1], [2]]

SELECT string_agg(DISTINCT name, ',' ORDER BY name), count(DISTINCT kind), every(active) FROM item

SELECT regexp_match(name, '(a)(.)'), regexp_matches(name, 'a', 'g'), name !~* 'x', translate(name, 'a', 'b') FROM item

SELECT price::numeric(6, 1), id::text || '-', (price * 100)::bigint, CAST(made AS timestamptz) FROM item

SELECT pg_advisory_xact_lock(1)

SELECT txid_current() > 0

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

SELECT i.id, v.label FROM item i JOIN (VALUES (1, 'one'), (2, 'two')) AS v (id, label) ON v.id = i.id

SELECT e.value, e.n FROM jsonb_array_elements('[1, 2]') WITH ORDINALITY AS e (value, n)

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

SELECT kind, active, count(*) FROM item GROUP BY GROUPING SETS ((kind), (active), ())

SELECT id, lag(price, 1, 0) OVER w, lead(name) OVER w, first_value(id) OVER w FROM item WINDOW w AS (PARTITION BY kind ORDER BY id)

SELECT name FROM item ORDER BY price DESC NULLS LAST, id LIMIT 2 OFFSET 1

SELECT id FROM item ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED

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

WITH old AS (UPDATE item SET price = 0 WHERE id = 1 RETURNING id, name) INSERT INTO event (what, n) SELECT name, id FROM old

WITH x AS (SELECT 3 AS id) DELETE FROM sale USING x WHERE x.id = sale.id

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

INSERT INTO item (id, name) VALUES (3010, 'a'), (3011, 'b') RETURNING id

INSERT INTO item (id, name) SELECT id + 4000, name FROM item WHERE id < 3 ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name, price = item.price + 1

INSERT INTO event (moment, what) VALUES (now(), 'a') RETURNING moment <= now()

INSERT INTO item (id) OVERRIDING USER VALUE VALUES (3012)

--# UPDATE

UPDATE item SET name = 'x' WHERE id = 1 RETURNING *

UPDATE item SET price = s.amount FROM sale s WHERE s.item = item.id AND s.id = 1

UPDATE item SET (name, price) = ('y', 3) WHERE id = 2

UPDATE item SET (name, price) = (SELECT 'q', 4) WHERE id = 2

UPDATE item i SET price = 0 FROM (SELECT item FROM sale GROUP BY item) AS s WHERE s.item = i.id RETURNING i.id, s.item

WITH x AS (SELECT 1 AS id) UPDATE item SET price = 1 FROM x WHERE x.id = item.id

UPDATE item SET price = v.price FROM (VALUES (1, 3.5), (2, 4.5)) AS v (id, price) WHERE v.id = item.id

UPDATE item SET price = CASE WHEN id = 1 THEN 5 WHEN id = 2 THEN 6 ELSE price END WHERE id IN (1, 2)

UPDATE ONLY item SET price = DEFAULT WHERE id = 1

UPDATE item SET (name, price) = ROW ('y', 3) WHERE id = 2

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

START TRANSACTION READ ONLY;
SELECT 1;
ROLLBACK

BEGIN;
SET CONSTRAINTS ALL IMMEDIATE;
ROLLBACK AND CHAIN;
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

SELECT set_config('app.user', 'x', true), set_config('app.tenant', '5', true)

SET LOCAL lock_timeout = '2s'

RESET ALL

SHOW transaction_isolation

SHOW standard_conforming_strings

SET search_path TO pg_catalog;
SET search_path TO public

SET ROLE NONE

SET idle_in_transaction_session_timeout = '1min'

VACUUM (ANALYZE) item

REINDEX INDEX item_pkey

SELECT pg_notify('c', 'x')

DISCARD ALL

--# The catalog

SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'

SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'item'

SELECT relname FROM pg_class WHERE relkind = 'r'

SELECT tablename FROM pg_tables WHERE schemaname = 'public'

SELECT 'item'::regclass::oid > 0

SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = 'item'::regclass

SELECT a.attname, format_type(a.atttypid, a.atttypmod) FROM pg_attribute a WHERE a.attrelid = 'item'::regclass AND a.attnum > 0

SELECT obj_description('item'::regclass), pg_total_relation_size('item') > 0

SELECT c.relname, pg_catalog.pg_get_userbyid(c.relowner) FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace WHERE pg_catalog.pg_table_is_visible(c.oid) AND c.relkind IN ('r', 'p', 'v') AND n.nspname <> 'pg_catalog'

SELECT i.indexrelid::regclass, i.indisunique FROM pg_index AS i WHERE i.indrelid = 'item'::regclass

SELECT t.typname FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace WHERE n.nspname = 'public'

SELECT constraint_name, constraint_type FROM information_schema.table_constraints WHERE table_name = 'item'

SELECT current_schema(), current_schemas(false), pg_is_in_recovery(), inet_server_addr()

SELECT count(*) FROM pg_stat_activity

--# CREATE TABLE

CREATE TABLE t@ AS SELECT * FROM item

CREATE TABLE t@ (a SERIAL PRIMARY KEY, b text)

CREATE TABLE t@ (a bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b text)

CREATE TABLE t@ (a integer GENERATED BY DEFAULT AS IDENTITY, b text)

CREATE TABLE t@ (a integer CHECK (a > 0), b integer, CHECK (a > b))

CREATE TABLE t@ (a integer, b integer GENERATED ALWAYS AS (a * 2) STORED)

CREATE TABLE t@ (a text, b tsvector GENERATED ALWAYS AS (to_tsvector('english', a)) STORED);
CREATE INDEX ON t@ USING gin (b);
INSERT INTO t@ VALUES ('some words');
SELECT a FROM t@ WHERE b @@ to_tsquery('english', 'word')

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

CREATE TABLE t@ (a integer GENERATED ALWAYS AS IDENTITY (START WITH 10), b text);
INSERT INTO t@ (b) VALUES ('x') RETURNING a

CREATE TABLE t@ (a text COLLATE "C", b varchar(10))

CREATE TABLE IF NOT EXISTS t@ (a uuid PRIMARY KEY DEFAULT gen_random_uuid(), b timestamptz NOT NULL DEFAULT now(), c jsonb NOT NULL DEFAULT '{}')

CREATE TABLE t@ (a integer PRIMARY KEY);
CREATE TABLE c@ (b integer REFERENCES t@ ON DELETE CASCADE ON UPDATE CASCADE, CONSTRAINT u@ UNIQUE (b))

CREATE TABLE t@ () INHERITS (item)

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

CREATE TABLE t@ (a text);
ALTER TABLE t@ ALTER COLUMN a SET DATA TYPE varchar(9) COLLATE "C"

CREATE SCHEMA s@;
CREATE TABLE t@ (a integer);
ALTER TABLE t@ SET SCHEMA s@

CREATE TABLE t@ (a integer);
ALTER TABLE t@ RENAME COLUMN a TO b

CREATE TABLE t@ (a integer, CONSTRAINT t@_u UNIQUE (a));
ALTER TABLE t@ RENAME CONSTRAINT t@_u TO u@;
ALTER TABLE ONLY t@ DROP CONSTRAINT IF EXISTS u@

CREATE TABLE t@ (a integer);
ALTER TABLE t@ ADD COLUMN b timestamptz NOT NULL DEFAULT now();
ALTER TABLE t@ ALTER COLUMN b DROP DEFAULT

CREATE TABLE t@ (a integer);
ALTER TABLE t@ ADD CONSTRAINT c@ CHECK (a > 0) NOT VALID;
ALTER TABLE t@ VALIDATE CONSTRAINT c@

CREATE TABLE t@ (a integer);
ALTER TABLE t@ OWNER TO CURRENT_USER

CREATE TABLE t@ (a integer);
ALTER TABLE t@ SET (autovacuum_enabled = false)

CREATE TABLE t@ (a integer);
ALTER TABLE t@ ALTER COLUMN a SET STATISTICS 500

CREATE TABLE t@ (a integer);
ALTER TABLE t@ ENABLE ROW LEVEL SECURITY;
CREATE POLICY p@ ON t@ USING (a > 0)

--# Views

CREATE TEMP VIEW v@ AS SELECT * FROM item

CREATE MATERIALIZED VIEW v@ AS SELECT kind, count(*) FROM item GROUP BY kind;
REFRESH MATERIALIZED VIEW v@

CREATE VIEW v@ AS SELECT id FROM item WITH CHECK OPTION

CREATE VIEW v@ AS SELECT id FROM item;
ALTER VIEW v@ RENAME TO w@

CREATE VIEW v@ AS SELECT id, name FROM item;
SELECT * FROM v@ WHERE id = 1

CREATE OR REPLACE VIEW v@ (a) AS SELECT id FROM ONLY item;
DROP VIEW IF EXISTS v@ CASCADE

CREATE VIEW v@ AS SELECT id, name FROM item;
UPDATE v@ SET name = 'x' WHERE id = 77

CREATE TABLE t@ (a integer PRIMARY KEY, b text);
CREATE VIEW v@ AS SELECT a, b FROM t@ WHERE a > 0;
INSERT INTO v@ (a, b) VALUES (1, 'x') RETURNING *;
DELETE FROM v@ WHERE b = 'x'

--# Types, functions, comments, privileges

CREATE TYPE e@ AS ENUM ('a', 'b')

CREATE TYPE c@ AS (a integer, b text)

CREATE DOMAIN d@ AS integer CHECK (VALUE > 0)

ALTER TYPE colour_of_corpus ADD VALUE IF NOT EXISTS 'blue'

CREATE TYPE e@ AS ENUM ('a', 'b');
ALTER TYPE e@ RENAME VALUE 'a' TO 'c'

CREATE TYPE e@ AS ENUM ('a', 'b');
CREATE TABLE t@ (a e@);
ALTER TYPE e@ RENAME TO f@;
SELECT a FROM t@ WHERE a = 'a'::f@

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

CREATE TYPE c@ AS (a integer, b text);
CREATE TABLE t@ (a integer PRIMARY KEY, b c@);
INSERT INTO t@ VALUES (1, ROW (1, 'x'));
SELECT (b).a FROM t@

CREATE TYPE e@ AS ENUM ('a');
CREATE TABLE t@ (a e@ PRIMARY KEY, b e@[]);
INSERT INTO t@ VALUES ('a', '{a}');
SELECT * FROM t@ WHERE a = 'a'

CREATE TYPE r@ AS RANGE (subtype = float8)

CREATE DOMAIN d@ AS text DEFAULT 'x';
ALTER DOMAIN d@ DROP DEFAULT

CREATE OR REPLACE FUNCTION f@ (a text) RETURNS text LANGUAGE sql AS $$ SELECT lower(a) || '!' $$;
SELECT f@(name) FROM item

CREATE FUNCTION f@ (a integer) RETURNS integer LANGUAGE plpgsql STABLE AS 'BEGIN RETURN a + 1; END';
SELECT f@(id) FROM item

CREATE FUNCTION f@ () RETURNS integer LANGUAGE sql AS 'SELECT 1';
DROP FUNCTION IF EXISTS f@()

CREATE EXTENSION IF NOT EXISTS pg_trgm;
SELECT similarity(name, 'hamer') FROM item

GRANT SELECT (id, name), UPDATE (name) ON item TO PUBLIC

GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO PUBLIC

ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC;
ALTER DEFAULT PRIVILEGES REVOKE SELECT ON TABLES FROM PUBLIC

CREATE AGGREGATE a@ (integer) (sfunc = int4pl, stype = integer)

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

CREATE TABLE t@ (a integer);
CREATE INDEX i@ ON t@ (a);
ALTER INDEX i@ RENAME TO j@;
DROP INDEX IF EXISTS j@

CREATE TABLE t@ (a integer);
CREATE INDEX IF NOT EXISTS i@ ON t@ USING btree (a DESC NULLS LAST)

CREATE SEQUENCE q@;
ALTER SEQUENCE q@ RENAME TO r@;
SELECT setval('r@', 5), nextval('r@')

CREATE TABLE t@ (a integer);
CREATE SEQUENCE q@ OWNED BY t@.a;
DROP TABLE t@

CREATE SCHEMA s@;
CREATE TABLE s@.t (a integer);
CREATE VIEW s@.v AS SELECT * FROM s@.t;
DROP SCHEMA s@ CASCADE

--# Functions and operators

SELECT NOT active AND true OR false, active IS UNKNOWN, num_nulls(1, NULL), 2 BETWEEN SYMMETRIC 3 AND 1 FROM item

SELECT 5 % 3, 2 ^ 3, |/ 25.0, ||/ 27.0, 91 & 15, 32 | 3, 17 # 5, ~ 1, 1 << 4, div(9, 4), mod(9, 4), gcd(12, 8), factorial(5)

SELECT ceil(1.2), trunc(42.4382, 2), round(42.4382, 2), sign(-8.4), ln(2.0), log(2.0, 64.0), exp(1.0), radians(45.0), sind(30), atan2(1, 0), scale(8.41), width_bucket(5.35, 0.024, 10.06, 5)

SELECT @ -5

SELECT setseed(0.5), random() < 1

SELECT 'a' || 1, bit_length('x'), initcap('hi'), octet_length('x'), trim(BOTH 'x' FROM 'xax'), rpad('a', 3, 'b'), reverse('ab'), starts_with('ab', 'a'), to_hex(255), string_to_array('a,b', ','), concat_ws('-', 'a', 'b')

SELECT '\xab'::bytea || '\xcd', get_byte('\xab', 0), encode('\xab', 'base64'), decode('qw==', 'base64'), convert_to('a', 'UTF8'), substring('\xabcd'::bytea, 1, 1)

SELECT B'101' & B'110', B'1' || B'0', bit_count(B'101'), 5::bit(4), get_bit(B'101', 0)

SELECT 'abc' LIKE '_b%', 'abc' ~ 'b|d', regexp_count('aba', 'a'), regexp_instr('ab', 'b'), regexp_substr('ab', 'b'), regexp_split_to_array('a b', ' '), 'a' ~~ 'a'

SELECT to_char(125.8, '999D9'), to_date('2024-01-05', 'YYYY-MM-DD'), to_number('12', '99'), to_timestamp('2024', 'YYYY'), to_char(INTERVAL '15h', 'HH24')

SELECT clock_timestamp() IS NOT NULL, statement_timestamp() IS NOT NULL, localtime IS NOT NULL, make_timestamp(2024, 1, 1, 1, 1, 1), date_bin('15 minutes', moment, TIMESTAMP '2001-01-01'), justify_hours('30h'), isfinite(moment), moment + '1 day'::interval FROM sale

SELECT point '(1,2)' <-> point '(4,6)', box '(1,1),(0,0)' @> point '(0.5,0.5)', area(circle '<(0,0),2>'), center(box '(1,1),(0,0)')

SELECT polygon '((0,0),(1,1))' ~= polygon '((0,0),(1,1))'

SELECT inet '192.168.1.5' << inet '192.168.1/24', host('192.168.1.5/24'), network('192.168.1.5/24'), masklen('192.168.1.5/24'), abbrev(cidr '10.1.0.0/16'), macaddr '08:00:2b:01:02:03'

SELECT ts_rank(to_tsvector('a cat'), plainto_tsquery('cat')), ts_headline('a cat', to_tsquery('cat')), websearch_to_tsquery('english', 'cat or dog'), setweight(to_tsvector('cat'), 'A'), strip(to_tsvector('a cat'))

SELECT xpath('/a/text()', '<a>1</a>'), xmlagg(xmlelement(name x, name)), xml_is_well_formed('<a/>'), xmlconcat('<a/>', '<b/>')::text FROM item

SELECT json_build_object('a', json_build_array(1)), row_to_json(row(1, 2)), jsonb_pretty('[1]'), jsonb_strip_nulls('{"a": null}'), '[1, 2]'::jsonb - 0, '{"a": {"b": 1}}'::jsonb #>> '{a,b}', jsonb_path_exists('[1]', '$[*] ? (@ > 0)'), jsonb_typeof('1'), json_object('{a, 1}')

SELECT * FROM jsonb_to_recordset('[{"a": 1, "b": "x"}]') AS x (a integer, b text)

SELECT * FROM json_object_keys('{"a": 1}'), jsonb_array_elements_text('["x"]') AS y, jsonb_each_text('{"a": 1}') AS z

SELECT coalesce(NULL, 1), nullif(1, 1), greatest(1, 2, NULL), CASE id WHEN 1 THEN 'a' ELSE 'b' END FROM item

SELECT array_append(ARRAY[1], 2), array_cat(ARRAY[1], ARRAY[2]), array_remove(ARRAY[1, 2], 1), array_to_string(ARRAY[1, 2], ','), cardinality(ARRAY[1]), ARRAY[1, 2] && ARRAY[2], (ARRAY[1, 2, 3])[2:3], array_fill(0, ARRAY[2])

SELECT int4range(1, 5) * int4range(3, 9), range_merge(int4range(1, 2), int4range(5, 6)), lower_inc(int4range(1, 2)), isempty(numrange(1, 1)), int4multirange(int4range(1, 2)), tstzrange(now(), NULL) @> now(), daterange('2024-01-01', '2024-02-01') -|- daterange('2024-02-01', '2024-03-01')

SELECT array_agg(id), bool_or(active), max(name), json_object_agg(id, name), xmlagg(NULL::xml), var_samp(price), regr_slope(price, id), percentile_disc(0.5) WITHIN GROUP (ORDER BY price), range_agg(int4range(id, id + 1)) FROM item

SELECT rank() OVER (ORDER BY price), dense_rank() OVER (ORDER BY kind), ntile(2) OVER (ORDER BY id), last_value(id) OVER (PARTITION BY kind), sum(price) FILTER (WHERE active) OVER () FROM item

SELECT row(1, 2) < row(1, 3), row(1, NULL) IS NULL, (1, 2) IS DISTINCT FROM (1, 3), id = SOME (SELECT item FROM sale) FROM item

SELECT generate_subscripts(ARRAY[1, 2], 1), generate_series(now(), now() + '1 day', '12 hours') IS NOT NULL

SELECT current_catalog, session_user, pg_backend_pid() > 0, pg_typeof(name), format_type(23, NULL), col_description('item'::regclass, 1), has_table_privilege('item', 'SELECT'), to_regclass('item'), pg_get_viewdef('pg_views'::regclass) <> '' FROM item

SELECT pg_size_pretty(10::bigint), pg_column_size(1), pg_relation_size('item') >= 0, pg_encoding_to_char(6), obj_description('item'::regclass), pg_sleep(0)

SELECT enum_first(NULL::colour_of_corpus), enum_range(NULL::colour_of_corpus)

SELECT gen_random_uuid() <> gen_random_uuid(), '00000000-0000-0000-0000-000000000001'::uuid

SELECT unnest(ARRAY[1, 2]), unnest(ARRAY['a', 'b'])

--# Types

CREATE TABLE t@ (id integer PRIMARY KEY, a smallint, b bigint, c numeric(38, 10), d real, e double precision);
INSERT INTO t@ VALUES (1, 1, 2, 3.5, 'NaN', '-Infinity');
SELECT * FROM t@

CREATE TABLE t@ (id integer PRIMARY KEY, a money);
INSERT INTO t@ VALUES (1, 12.5);
UPDATE t@ SET a = a * 2;
SELECT a FROM t@

CREATE TABLE t@ (id integer PRIMARY KEY, a char(4), b varchar(3), c text, d "char", e name);
INSERT INTO t@ VALUES (1, 'a', 'abc', 'x', 'c', 'n');
SELECT * FROM t@ WHERE a = 'a'

CREATE TABLE t@ (id integer PRIMARY KEY, a bytea);
INSERT INTO t@ VALUES (1, '\x00ff');
SELECT a FROM t@

CREATE TABLE t@ (a timestamptz PRIMARY KEY, b timestamp(3), c date, d time, e timetz, f interval, g interval day to second);
INSERT INTO t@ VALUES (now(), '2024-01-01', 'infinity', '10:00', '10:00+02', '1 mon 2 days', '1 day');
SELECT * FROM t@

CREATE TABLE t@ (id integer PRIMARY KEY, a boolean NOT NULL DEFAULT false);
INSERT INTO t@ VALUES (1), (2);
SELECT * FROM t@ WHERE NOT a

CREATE TABLE t@ (id integer PRIMARY KEY, a point, b line, c lseg, d box, e path, f polygon, g circle);
INSERT INTO t@ VALUES (1, '(1,2)', '{1,2,3}', '[(0,0),(1,1)]', '(1,1),(0,0)', '((0,0),(1,1))', '((0,0),(1,1))', '<(0,0),1>');
UPDATE t@ SET a = '(3,4)';
SELECT * FROM t@

CREATE TABLE t@ (a inet PRIMARY KEY, b cidr, c macaddr, d macaddr8);
INSERT INTO t@ VALUES ('10.0.0.1', '10.0.0.0/8', '08:00:2b:01:02:03', '08:00:2b:01:02:03:04:05');
SELECT * FROM t@

CREATE TABLE t@ (a bit(3) PRIMARY KEY, b bit varying(5));
INSERT INTO t@ VALUES (B'101', B'1');
SELECT * FROM t@

CREATE TABLE t@ (id integer PRIMARY KEY, a tsvector, b tsquery);
INSERT INTO t@ VALUES (1, to_tsvector('a cat'), to_tsquery('cat'));
SELECT * FROM t@ WHERE a @@ b

CREATE TABLE t@ (a uuid PRIMARY KEY);
INSERT INTO t@ VALUES (gen_random_uuid()) RETURNING a

CREATE TABLE t@ (id integer PRIMARY KEY, a xml);
INSERT INTO t@ VALUES (1, '<a>1</a>');
SELECT a FROM t@

CREATE TABLE t@ (id integer PRIMARY KEY, a json, b jsonb DEFAULT '{}');
INSERT INTO t@ VALUES (1, '{"a": 1}', '[1]');
UPDATE t@ SET b = b || '{"c": 2}' WHERE b @> '[1]';
SELECT * FROM t@

CREATE TABLE t@ (id integer PRIMARY KEY, a integer[], b text[][], c numeric(5, 2)[]);
INSERT INTO t@ VALUES (1, '{1,2}', '{{a},{b}}', ARRAY[1.5]);
UPDATE t@ SET a = a || 3;
SELECT a[1], b[2][1], c FROM t@

CREATE TABLE t@ (a int4range PRIMARY KEY, b numrange, c tsrange, d tstzrange, e daterange, f int8range, g datemultirange);
INSERT INTO t@ VALUES ('[1,5)', '[1,2]', '[2024-01-01,)', 'empty', '[2024-01-01,2024-02-01)', '(,1)', '{[2024-01-01,2024-02-01)}');
SELECT * FROM t@ WHERE a @> 3

CREATE DOMAIN d@ AS integer CHECK (VALUE > 0);
CREATE TABLE t@ (id integer PRIMARY KEY, a d@);
INSERT INTO t@ VALUES (1, 5);
SELECT a + 1 FROM t@

CREATE TABLE t@ (id oid PRIMARY KEY, a regclass, b pg_lsn, c regtype);
INSERT INTO t@ VALUES (1, 'item', '0/1', 'integer');
SELECT * FROM t@

CREATE EXTENSION IF NOT EXISTS citext;
CREATE TABLE t@ (a citext PRIMARY KEY);
INSERT INTO t@ VALUES ('Ada');
SELECT * FROM t@ WHERE a = 'ADA'

CREATE EXTENSION IF NOT EXISTS hstore;
CREATE TABLE t@ (id integer PRIMARY KEY, a hstore);
INSERT INTO t@ VALUES (1, 'k=>v');
SELECT a -> 'k' FROM t@

CREATE TABLE t@ (id integer PRIMARY KEY, a integer[]);
INSERT INTO t@ VALUES (1, '{1}');
UPDATE t@ SET a[2] = 5
