--# SELECT: the list, FROM, WHERE

SELECT name || '!' AS shout, char_length(name), locate('a', name), replace(name, 'a', 'b') FROM item

SELECT greatest(1, 2), least(1, 2), sql_min(1, 2), mod(7, 3), sign(-2)

SELECT "year"(made), "month"(made), dayofweek(made), "quarter"(made) FROM item

SELECT str_to_date('2024-01-01', '%Y-%m-%d'), date_to_str(made, '%Y') FROM item

SELECT median(price), quantile(price, 0.5), stddev_pop(price), var_samp(price), corr(id, price) FROM item

SELECT group_concat(name), listagg(name, ';') FROM item

SELECT json.filter('{"a": 1}', '$.a'), json.text('{"a": "x"}')

SELECT name FROM item WHERE name ILIKE 'H%'

SELECT CAST(INTERVAL '1' DAY AS INTERVAL SECOND), moment + INTERVAL '2' HOUR FROM sale

SELECT now(), localtimestamp, current_time

SELECT uuid() IS NOT NULL, rand() >= 0, isauuid('x')

SELECT editdistance('a', 'b'), soundex(name) FROM item

SELECT bit_and(1, 3), 5 & 3, 5 | 3, 1 << 2

SELECT name FROM item WHERE price IS NOT NULL AND price NOT BETWEEN 1 AND 2

SELECT extract(hour FROM moment), extract(epoch FROM moment) FROM sale

SELECT ascii('a'), space(2), lpad(name, 8), splitpart('a-b', '-', 1) FROM item

SELECT R'raw\n', E'esc\n', X'4142', U&'d\0061t'

SELECT current_user, current_schema

SELECT ifthenelse(active, 1, 2), nullif(1, 1) FROM item

--# Joins

SELECT i.name, x.n FROM item i, LATERAL (SELECT count(*) AS n FROM sale s WHERE s.item = i.id) AS x

SELECT a.name FROM item a INNER JOIN sale b ON a.id = b.item LEFT OUTER JOIN event e ON e.n = a.id

--# Subqueries

SELECT name FROM item WHERE (kind, active) IN (SELECT kind, active FROM item)

SELECT name FROM item WHERE price > ANY (SELECT amount FROM sale)

--# Grouping, windows, order

SELECT kind, grouping(kind), count(*) FROM item GROUP BY ROLLUP (kind)

SELECT name FROM item ORDER BY id LIMIT 2

SELECT name FROM item SAMPLE 3

SELECT id, avg(amount) OVER (PARTITION BY item ORDER BY id RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM sale

SELECT percent_rank() OVER (ORDER BY price), cume_dist() OVER (ORDER BY price), dense_rank() OVER (ORDER BY price) FROM item

SELECT id, sum(amount) OVER (ORDER BY id GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM sale

--# Set operations and VALUES

SELECT id FROM item EXCEPT ALL SELECT item FROM sale

SELECT id FROM item INTERSECT ALL SELECT item FROM sale

--# INSERT

INSERT INTO item (id, name) VALUES (3001, 'x' || 'y')

INSERT INTO event SELECT moment, note, amount FROM sale

WITH x AS (SELECT 3003 AS id) INSERT INTO item (id) SELECT id FROM x

--# UPDATE

UPDATE item SET price = s.amount FROM sale s WHERE s.item = item.id AND s.id = 1

WITH x AS (SELECT 1 AS id) UPDATE item SET price = 1 WHERE id IN (SELECT id FROM x)

--# DELETE

TRUNCATE event

DELETE FROM item AS i WHERE i.id = 7

--# MERGE

MERGE INTO item AS i USING (SELECT 1 AS id, 9 AS price) AS n ON i.id = n.id WHEN MATCHED THEN UPDATE SET price = n.price

MERGE INTO item AS i USING (SELECT 1 AS id, 9 AS price) AS n ON i.id = n.id WHEN MATCHED THEN UPDATE SET price = n.price WHEN NOT MATCHED THEN INSERT (id, price) VALUES (n.id, n.price)

MERGE INTO item AS i USING (SELECT item FROM sale WHERE id = 1) AS n ON i.id = n.item WHEN MATCHED THEN DELETE

--# Transactions

START TRANSACTION;
SAVEPOINT a;
UPDATE item SET price = 1;
ROLLBACK TO SAVEPOINT a;
COMMIT

--# Settings and sessions

SET SCHEMA sys

CREATE SCHEMA s@;
SET SCHEMA s@;
CREATE TABLE t@ (a INTEGER);
SELECT * FROM s@.t@;
DROP TABLE t@;
SET SCHEMA sys;
DROP SCHEMA s@

EXPLAIN SELECT * FROM item

PLAN SELECT * FROM item

TRACE SELECT * FROM item

SET OPTIMIZER = 'default_pipe'

PREPARE SELECT * FROM item WHERE id = ?

ANALYZE sys.item

CALL sys.setquerytimeout(0)

SET ROLE monetdb

--# The catalog

SELECT name FROM sys.tables WHERE NOT system

SELECT c.name, c.type FROM sys.columns c JOIN sys.tables t ON t.id = c.table_id WHERE t.name = 'item'

SELECT * FROM sys.schemas

SELECT * FROM sys.keys

SELECT name, value FROM sys.env() WHERE name = 'monet_release'

SELECT * FROM sys.types

--# CREATE TABLE

CREATE TABLE t@ (a SERIAL, b VARCHAR(10))

CREATE TABLE t@ (a INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY, b VARCHAR(10))

CREATE TABLE t@ (a INTEGER AUTO_INCREMENT, b INTEGER)

CREATE TABLE t@ (a CLOB, b BLOB, c HUGEINT, d JSON, e INET, f URL, g INTERVAL SECOND, h TIMESTAMP WITH TIME ZONE)

CREATE TABLE t@ (a BLOB(4), b URL(20), c INTERVAL DAY TO SECOND, d INTERVAL YEAR TO MONTH, e TIME(3) WITH TIME ZONE)

CREATE TABLE t@ (LIKE item)

CREATE TEMPORARY TABLE t@ (a INTEGER) ON COMMIT PRESERVE ROWS;
INSERT INTO t@ VALUES (1);
SELECT * FROM t@

CREATE LOCAL TEMPORARY TABLE t@ AS SELECT * FROM item WITH DATA ON COMMIT PRESERVE ROWS

CREATE TABLE t@ AS SELECT * FROM item

CREATE MERGE TABLE t@ (a INTEGER)

--# ALTER TABLE

CREATE TABLE t@ (a INTEGER, b INTEGER);
ALTER TABLE t@ ALTER COLUMN b SET NOT NULL

CREATE TABLE t@ (a INTEGER, b INTEGER NOT NULL);
ALTER TABLE t@ ALTER COLUMN b SET NULL

CREATE TABLE t@ (a INTEGER, b INTEGER);
ALTER TABLE t@ ADD PRIMARY KEY (a)

CREATE TABLE t@ (a INTEGER, b INTEGER);
ALTER TABLE t@ ADD CONSTRAINT t@_u UNIQUE (b)

CREATE TABLE t@ (a INTEGER);
ALTER TABLE t@ SET READ ONLY

--# Functions, comments, privileges

CREATE FUNCTION f@ (a INTEGER) RETURNS INTEGER BEGIN RETURN a + 1; END

CREATE PROCEDURE p@ () BEGIN DELETE FROM event; END

COMMENT ON TABLE item IS 'goods'

GRANT SELECT ON item TO PUBLIC

CREATE TABLE t@ (a INTEGER);
CREATE TRIGGER g@ AFTER INSERT ON t@ FOR EACH STATEMENT INSERT INTO event VALUES (NULL, 'x', 1)

--# Schemas and sequences

CREATE SEQUENCE q@ AS INTEGER START WITH 5;
SELECT NEXT VALUE FOR q@

CREATE SEQUENCE q@;
ALTER SEQUENCE q@ RESTART WITH 9

CREATE SCHEMA IF NOT EXISTS s@

CREATE SCHEMA s@;
CREATE TABLE s@.t (a INTEGER);
DROP SCHEMA s@ CASCADE
