-- Statements that an engine may refuse, one per paragraph: tique refuses the same ones,
-- on PostgreSQL with the same SQLSTATE. Statements after "-- not supported" tique refuses
-- with NotSupportedError where the engine takes them, and as the engine where it does not.

SELECT * FROM nope

SELECT nope FROM t

SELECT * FROM nope.t

SELECT x.a FROM t

SELECT a FROM t JOIN u ON t.a > 0

SELECT CAST(1 AS nope)

SELECT * FROM t, t

SELECT a FROM t GROUP BY f

SELECT a FROM t GROUP BY nope

SELECT a FROM t ORDER BY 7

SELECT a FROM t WHERE a = 'x'

SELECT max(max(a)) FROM t

SELECT a FROM t WHERE max(a) > 1

SELECT 1 UNION SELECT 1, 2

SELECT (SELECT a, f FROM t)

SELECT FROM WHERE

SELECT sum(a) FILTER WHERE a > 1 FROM t

SELECT a FROM t WHERE (a = 1

SELECT a FROM t WHERE a = = 1

SELEC 1

BOGUS

INSERT INTO nope VALUES (1)

INSERT INTO t (nope) VALUES (1)

INSERT INTO t (a) VALUES (1, 2)

INSERT INTO t (a, a) VALUES (1, 2)

INSERT INTO t

INSERT INTO t VALUES

UPDATE nope SET a = 1

UPDATE t SET nope = 1

UPDATE t SET a = 1, a = 2

UPDATE t SET f = nope

UPDATE t

UPDATE t AS q

UPDATE t AS x SET f = t.f

DELETE FROM

DELETE FROM nope

DELETE FROM t WHERE

DELETE FROM t AS x WHERE t.f = 0

DROP TABLE nope

DROP INDEX nope

DROP TABLE

CREATE TABLE

CREATE TABLE t (a INTEGER)

CREATE TABLE z (a nope)

CREATE TABLE z (a INTEGER, a INTEGER)

CREATE TABLE z (a INTEGER PRIMARY KEY, b INTEGER PRIMARY KEY)

CREATE TABLE z (a INTEGER, PRIMARY KEY (b))

CREATE TABLE z (a INTEGER CHECK (a IN (SELECT 1)))

CREATE TABLE nope.z (a INTEGER)

CREATE INDEX i ON nope (a)

-- only some engines refuse these

CREATE TABLE comma (a INTEGER, b INTEGER,)

CREATE TABLE comma2 (a INTEGER, PRIMARY KEY (a),)

CREATE TABLE folded (a INTEGER NOT NULL, PRIMARY KEY (A))

WITH RECURSIVE x AS (SELECT * FROM later), later AS (SELECT a FROM t) SELECT * FROM x

-- the same, of engines that have ON CONFLICT

INSERT INTO t AS x VALUES (1, 2) ON CONFLICT (a) DO UPDATE SET f = t.f

INSERT INTO t AS x VALUES (9, 2) ON CONFLICT (a) DO UPDATE SET f = t.f

INSERT INTO t AS x VALUES (9, 2) ON CONFLICT (a) DO UPDATE SET f = x.f WHERE t.f > 0

INSERT INTO t VALUES (9, 2) ON CONFLICT (a) DO UPDATE SET f = nope

INSERT INTO t VALUES (9, 2) ON CONFLICT (a) DO UPDATE SET f = u.f

INSERT INTO t VALUES (1, 2) ON CONFLICT (f) DO NOTHING

INSERT INTO t VALUES (1, 2) ON CONFLICT (nope) DO NOTHING

INSERT INTO u VALUES (1, 2) ON CONFLICT DO NOTHING

INSERT INTO t VALUES (1, 2) ON CONFLICT ON CONSTRAINT nope DO NOTHING

SELECT nope(a) FROM t

SELECT nope.nope(a) FROM t

SELECT a FROM t WHERE nope(a, f) > 1

SELECT nope() OVER (ORDER BY a) FROM t

UPDATE t SET f = nope(f)

SELECT * FROM nope(1)

-- not supported

SELECT a FROM t ORDER BY a USING OPERATOR(pg_catalog.<)

WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3) SEARCH DEPTH FIRST BY n SET s CYCLE n SET c USING p SELECT n FROM r

LISTEN x

SELECT * FROM ROWS FROM (json_to_recordset('[]') AS (a integer)) AS r
