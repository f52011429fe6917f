--# SELECT: the list, FROM, WHERE

SELECT * FROM item

SELECT id, name FROM item WHERE price > 10

SELECT i.name AS label, i.price * 2 AS twice FROM item AS i WHERE i.active

SELECT DISTINCT kind FROM item

SELECT count(*), sum(price), avg(price), min(made), max(made) FROM item

SELECT name FROM item WHERE kind IN ('tool', 'toy') AND price BETWEEN 1 AND 50

SELECT name FROM item WHERE name LIKE 'h%' OR name IS NULL

SELECT CASE WHEN price > 10 THEN 'dear' ELSE 'cheap' END, coalesce(kind, '-') FROM item

SELECT upper(name), substring(name, 1, 3), length(name), trim(name) || '!' FROM item

SELECT extract(year FROM made), made + INTERVAL '1' DAY FROM item

SELECT CAST(price AS INTEGER), CAST(id AS VARCHAR(10)) FROM item

SELECT abs(-1), round(2.5, 0), floor(1.5), power(2, 3), sqrt(16.0)

SELECT nullif(kind, 'toy'), NOT active FROM item

SELECT current_date, current_timestamp

SELECT item.* FROM item WHERE id = 3

SELECT 1 + 1 AS two

--# Joins

SELECT i.name, s.amount FROM item i JOIN sale s ON s.item = i.id

SELECT i.name, s.amount FROM item i LEFT JOIN sale s ON s.item = i.id AND s.amount > 1

SELECT i.name, s.amount FROM sale s RIGHT OUTER JOIN item i ON s.item = i.id

SELECT i.name, s.amount FROM item i FULL JOIN sale s ON s.item = i.id

SELECT a.name, b.name FROM item a CROSS JOIN item b

SELECT a.name, b.name FROM person a, person b WHERE a.boss = b.id

SELECT * FROM item JOIN sale USING (id)

SELECT name, amount FROM item NATURAL JOIN sale

SELECT i.name, x.total FROM item i JOIN (SELECT item, sum(amount) AS total FROM sale GROUP BY item) AS x ON x.item = i.id

SELECT a.id FROM item a JOIN sale b ON a.id = b.item JOIN person c ON c.id = b.id WHERE c.age > 20

--# Subqueries

SELECT name FROM item WHERE id IN (SELECT item FROM sale)

SELECT name FROM item i WHERE EXISTS (SELECT 1 FROM sale s WHERE s.item = i.id AND s.amount > 2)

SELECT name FROM item WHERE price > (SELECT avg(price) FROM item)

SELECT name, (SELECT sum(amount) FROM sale s WHERE s.item = i.id) AS sold FROM item i

SELECT name FROM item WHERE id NOT IN (SELECT item FROM sale WHERE item IS NOT NULL)

SELECT name FROM item WHERE price >= ALL (SELECT price FROM item WHERE price IS NOT NULL)

SELECT x.n FROM (SELECT count(*) AS n FROM sale) AS x

--# Grouping, windows, order

SELECT kind, count(*) FROM item GROUP BY kind HAVING count(*) > 1 ORDER BY kind

SELECT kind, active, sum(price) FROM item GROUP BY ROLLUP (kind, active)

SELECT kind, active, sum(price) FROM item GROUP BY CUBE (kind, active)

SELECT kind, active, sum(price) FROM item GROUP BY GROUPING SETS ((kind), (active), ())

SELECT count(DISTINCT kind) FROM item

SELECT name FROM item ORDER BY price DESC NULLS LAST, name LIMIT 3 OFFSET 1

SELECT name FROM item ORDER BY 1 LIMIT 2

SELECT name, row_number() OVER (ORDER BY id) FROM item

SELECT name, rank() OVER (PARTITION BY kind ORDER BY price) FROM item

SELECT id, sum(amount) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM sale

SELECT id, lag(amount) OVER (ORDER BY id), lead(amount, 2) OVER (ORDER BY id) FROM sale

SELECT id, first_value(amount) OVER w, ntile(2) OVER w FROM sale WINDOW w AS (ORDER BY id)

SELECT kind, max(price) FROM item WHERE active GROUP BY kind

--# WITH

WITH dear AS (SELECT * FROM item WHERE price > 10) SELECT count(*) FROM dear

WITH a AS (SELECT id FROM item), b AS (SELECT item FROM sale) SELECT * FROM a JOIN b ON a.id = b.item

WITH item AS (SELECT 1 AS id) SELECT id FROM item

WITH t (x) AS (SELECT amount FROM sale) SELECT sum(x) FROM t

WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT sum(i) FROM n

WITH RECURSIVE under (id) AS (SELECT id FROM person WHERE boss IS NULL UNION ALL SELECT p.id FROM person p JOIN under u ON p.boss = u.id) SELECT count(*) FROM under

--# Set operations and VALUES

SELECT id FROM item UNION SELECT item FROM sale

SELECT id FROM item UNION ALL SELECT item FROM sale

SELECT id FROM item INTERSECT SELECT item FROM sale

SELECT id FROM item EXCEPT SELECT item FROM sale

(SELECT id FROM item ORDER BY id LIMIT 1) UNION ALL (SELECT id FROM sale ORDER BY id LIMIT 1)

VALUES (1, 'a'), (2, 'b')

SELECT * FROM (VALUES (1, 'a'), (2, 'b')) AS v (n, t)

--# INSERT

INSERT INTO item (id, name) VALUES (1000, 'new')

INSERT INTO item VALUES (1001, 'full', 1.5, 'toy', DATE '2024-01-01', true)

INSERT INTO item (id, name) VALUES (1002, 'a'), (1003, 'b'), (1004, NULL)

INSERT INTO sale (id, item, amount) SELECT id + 5000, id, 1 FROM item WHERE active

INSERT INTO event VALUES (NULL, 'x', DEFAULT)

INSERT INTO item (id, made) VALUES (1005, current_date)

INSERT INTO person (id, name, boss) VALUES (1006, 'p', (SELECT max(id) FROM person WHERE id < 100))

INSERT INTO event (what) WITH x AS (SELECT name FROM item) SELECT name FROM x

--# UPDATE

UPDATE item SET price = 2 WHERE id = 1

UPDATE item SET price = price * 1.1, name = upper(name) WHERE kind = 'toy'

UPDATE item SET active = false

UPDATE item SET price = (SELECT max(amount) FROM sale WHERE sale.item = item.id) WHERE id < 3

UPDATE item SET price = DEFAULT WHERE id = 2

UPDATE item SET kind = CASE kind WHEN 'toy' THEN 'tool' ELSE kind END

UPDATE event SET n = n + 1 WHERE what IS NOT NULL

UPDATE person SET id = id + 10000 WHERE id = 5

--# DELETE

DELETE FROM sale WHERE id = 1

DELETE FROM sale

DELETE FROM sale WHERE item IN (SELECT id FROM item WHERE kind = 'toy')

DELETE FROM event WHERE what = 'a'

DELETE FROM sale WHERE amount > 1 AND moment IS NOT NULL

--# Transactions

START TRANSACTION;
INSERT INTO item (id) VALUES (2000);
ROLLBACK

START TRANSACTION;
SELECT count(*) FROM item;
COMMIT

START TRANSACTION READ ONLY;
SELECT 1;
COMMIT

--# CREATE TABLE

CREATE TABLE t@ (a INTEGER)

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b VARCHAR(20) NOT NULL)

CREATE TABLE t@ (a INTEGER, b INTEGER, PRIMARY KEY (a, b))

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER UNIQUE, c INTEGER DEFAULT 5)

CREATE TABLE t@ (a INTEGER CONSTRAINT t@_pk PRIMARY KEY, b INTEGER, CONSTRAINT t@_u UNIQUE (b))

CREATE TABLE IF NOT EXISTS t@ (a INTEGER)

CREATE TABLE t@ (a SMALLINT, b BIGINT, c DECIMAL(10, 2), d DOUBLE PRECISION, e REAL, f DATE, g TIME, h TIMESTAMP, i BOOLEAN)

CREATE TABLE t@ (a INTEGER PRIMARY KEY);
CREATE TABLE c@ (b INTEGER REFERENCES t@ (a))

CREATE TABLE t@ (a INTEGER PRIMARY KEY);
CREATE TABLE c@ (b INTEGER, FOREIGN KEY (b) REFERENCES t@ (a) ON DELETE CASCADE)

CREATE TABLE t@ (a INTEGER PRIMARY KEY, parent INTEGER REFERENCES t@ (a) ON DELETE SET NULL)

CREATE TABLE t@ AS SELECT * FROM item WITH DATA

CREATE TABLE t@ AS (SELECT kind, count(*) AS n FROM item GROUP BY kind) WITH DATA

CREATE TABLE t@ (a UUID PRIMARY KEY, b INTEGER)

--# ALTER TABLE

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER);
ALTER TABLE t@ ADD COLUMN c INTEGER

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER);
ALTER TABLE t@ DROP COLUMN b

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER);
ALTER TABLE t@ RENAME COLUMN b TO c

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER);
ALTER TABLE t@ RENAME TO u@

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER);
ALTER TABLE t@ ALTER COLUMN b SET DEFAULT 7

CREATE TABLE t@ (a INTEGER PRIMARY KEY, b INTEGER DEFAULT 1);
ALTER TABLE t@ ALTER COLUMN b DROP DEFAULT

--# DROP, indexes

CREATE TABLE t@ (a INTEGER);
DROP TABLE t@

DROP TABLE IF EXISTS t@

CREATE TABLE t@ (a INTEGER, b INTEGER);
CREATE INDEX i@ ON t@ (b)

CREATE TABLE t@ (a INTEGER, b INTEGER);
CREATE INDEX i@ ON t@ (a, b);
DROP INDEX i@

--# Views

CREATE VIEW v@ AS SELECT * FROM item WHERE active

CREATE VIEW v@ (label, amount) AS SELECT i.name, s.amount FROM item i JOIN sale s ON s.item = i.id;
SELECT * FROM v@

CREATE VIEW v@ AS SELECT id FROM item;
DROP VIEW v@

CREATE OR REPLACE VIEW v@ AS SELECT kind, count(*) AS n FROM item GROUP BY kind

--# Schemas and sequences

CREATE SCHEMA s@

CREATE SCHEMA s@;
CREATE TABLE s@.t (a INTEGER PRIMARY KEY);
INSERT INTO s@.t VALUES (1);
SELECT * FROM s@.t

CREATE SCHEMA s@;
DROP SCHEMA s@

CREATE SEQUENCE q@ START WITH 10 INCREMENT BY 2

CREATE SEQUENCE q@;
DROP SEQUENCE q@
