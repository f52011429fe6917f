-- One statement per paragraph. Rows are compared in order where the statement ends
-- with ORDER BY, else as a multiset.

-- plain

SELECT * FROM item

SELECT * FROM sale

SELECT * FROM node

SELECT * FROM code

SELECT * FROM log

SELECT * FROM thing

SELECT 1

SELECT 1 AS one, 'a;b' AS two, NULL

SELECT count(*) FROM item

SELECT count(*), count(name), count(DISTINCT kind) FROM item

SELECT item.* FROM item WHERE item.id > 10

SELECT i.id, i.name FROM item AS i WHERE i.price > 10 ORDER BY i.id

SELECT i.id, i.name FROM item i WHERE i.active ORDER BY id DESC

SELECT id, name FROM main.item WHERE kind = 'tool' ORDER BY id

SELECT "id", "NAME" FROM "item" WHERE "KIND" = 'tool' ORDER BY "id"

SELECT ID, Name FROM ITEM WHERE Id BETWEEN 5 AND 9 ORDER BY ID

SELECT id FROM item WHERE name IS NULL ORDER BY id

SELECT id FROM item WHERE name LIKE '%o%' ORDER BY id

SELECT id FROM item WHERE kind IN ('tool', 'toy') AND price < 20 ORDER BY id

SELECT id FROM item WHERE NOT active OR active IS NULL ORDER BY id

SELECT DISTINCT kind FROM item

SELECT DISTINCT ON (kind) kind, id FROM item ORDER BY kind, id

SELECT id FROM item ORDER BY price DESC NULLS LAST, id LIMIT 5

SELECT id FROM item ORDER BY id LIMIT 5 OFFSET 7

SELECT id FROM item ORDER BY id OFFSET 30

-- points

SELECT * FROM item WHERE id = 1

SELECT * FROM item WHERE id = 7

SELECT name, price FROM item WHERE id = 12

SELECT name AS n, id FROM item WHERE id = 25

SELECT * FROM item WHERE id = 999

SELECT * FROM item WHERE id = NULL

SELECT * FROM item WHERE 7 = id

SELECT * FROM item WHERE id = 7 AND active

SELECT * FROM item WHERE id = 7.0

SELECT * FROM item WHERE id = '7'

SELECT * FROM item WHERE id = 7 AND id = 8

SELECT * FROM item WHERE id = 3 OR id = 7

SELECT * FROM item WHERE id IN (3, 7, 1000)

SELECT * FROM sale WHERE sold = DATE '2024-01-03' AND item = 3

SELECT * FROM sale WHERE sold = '2024-01-03' AND item = 3

SELECT * FROM sale WHERE item = 3

SELECT * FROM sale WHERE sold = DATE '2024-01-02'

SELECT * FROM code WHERE code = 'a'

SELECT * FROM code WHERE code = 'A'

SELECT * FROM code WHERE code = ''

SELECT * FROM code WHERE code = 'it''s'

SELECT * FROM code WHERE code = 'a '

SELECT * FROM node WHERE id = 4

SELECT count(*) FROM item WHERE id = 7

SELECT id + 1, upper(name) FROM item WHERE id = 7

SELECT max(price) FROM item WHERE id = 7

SELECT * FROM thing WHERE id = 2

SELECT pair.a, pair.b, list[1], list[-1] FROM thing WHERE id = 1

SELECT span + INTERVAL 1 DAY FROM thing WHERE id = 1

-- expressions

SELECT CASE WHEN price > 20 THEN 'dear' WHEN price > 5 THEN 'fair' ELSE 'cheap' END AS class, count(*) FROM item GROUP BY class

SELECT coalesce(name, 'none') || '/' || coalesce(kind, '?') FROM item

SELECT id, price * 2, price / 3, id % 4, -id, id // 3 FROM item ORDER BY id

SELECT id, added + 1, added - DATE '2024-01-01', date_trunc('month', added) FROM item ORDER BY id

SELECT extract(year FROM added) AS year, count(*) FROM item GROUP BY year

SELECT CAST(price AS INTEGER), price::VARCHAR, TRY_CAST(name AS INTEGER) FROM item

SELECT id, name SIMILAR TO '[a-h].*' FROM item ORDER BY id

SELECT regexp_replace(name, '[aeiou]', '*', 'g') FROM item

SELECT median(price), quantile_cont(weight, 0.25), stddev_pop(weight) FROM item

SELECT list(id ORDER BY id) FROM item GROUP BY kind

SELECT string_agg(name, ',' ORDER BY id) FROM item

SELECT list_transform(list, x -> x + 1) FROM thing

SELECT [x * 2 FOR x IN list IF x > 1] FROM thing

SELECT unnest(list) AS element, id FROM thing

SELECT {'id': id, 'name': name} FROM item

SELECT row(id, kind) FROM item WHERE id < 4

SELECT struct_pack(a := id, b := name) FROM item WHERE id < 3

SELECT map([id], [name]) FROM item WHERE id < 3

SELECT id FROM item WHERE struct_pack(k := kind).k = 'toy'

SELECT arg_max(name, price), arg_min(name, price) FROM item WHERE price IS NOT NULL AND id <> 9

SELECT sum(price) FILTER (WHERE active), sum(price) FILTER (WHERE NOT active) FROM item

SELECT bool_and(active), bool_or(active) FROM item

SELECT greatest(1, min(id)), least(max(id), 10) FROM item

SELECT hash(1) = hash(1), typeof(price) FROM item LIMIT 1

SELECT $$it's; -- not a comment$$ AS text, count(*) FROM item

SELECT /* item */ count(*) -- FROM sale
FROM item

SELECT 'FROM sale' AS text FROM item WHERE name <> 'item'

SELECT id AS "FROM", name AS "a ""b""" FROM item ORDER BY "FROM"

-- joins

SELECT i.name, s.quantity FROM item i JOIN sale s ON s.item = i.id

SELECT i.name, s.quantity FROM item AS i INNER JOIN sale AS s ON s.item = i.id WHERE i.id = 3

SELECT i.id, s.sold FROM item i LEFT JOIN sale s ON s.item = i.id

SELECT i.id, s.sold FROM item i LEFT JOIN sale s ON s.item = i.id AND s.quantity > 3 WHERE s.sold IS NULL

SELECT i.id, s.item FROM sale s RIGHT JOIN item i ON s.item = i.id

SELECT i.id, s.item FROM sale s FULL OUTER JOIN item i ON s.item = i.id

SELECT count(*) FROM item, sale

SELECT count(*) FROM item CROSS JOIN code

SELECT i.name, s.note FROM item i, sale s WHERE s.item = i.id AND s.quantity > 2

SELECT a.id, b.id FROM item a JOIN item b ON a.kind = b.kind AND a.id < b.id

SELECT item.id, other.id FROM item, item AS other WHERE item.id = other.id + 1

SELECT * FROM node n JOIN node p ON n.parent = p.id

SELECT child.label, parent.label FROM node child LEFT JOIN node parent ON child.parent = parent.id

SELECT id, label, quantity FROM node JOIN (SELECT item AS id, quantity FROM sale) AS s USING (id)

SELECT * FROM item NATURAL JOIN (SELECT id, label FROM node) AS n

SELECT * FROM item SEMI JOIN sale ON sale.item = item.id

SELECT * FROM item ANTI JOIN sale ON sale.item = item.id

SELECT i.id, s.sold FROM (SELECT * FROM item WHERE added IS NOT NULL) i ASOF JOIN sale s ON i.id = s.item AND i.added >= s.sold WHERE i.added IS NOT NULL

SELECT * FROM item POSITIONAL JOIN (SELECT 1 AS first) AS p WHERE p.first = 1 AND false

SELECT i.id, l.text FROM item i JOIN log l ON l.item = i.id

SELECT i.id, l.text, s.quantity FROM item i JOIN log l ON l.item = i.id JOIN sale s ON s.item = i.id

SELECT i.id, t.tag FROM item i LEFT JOIN thing t ON t.id = i.id

SELECT * FROM (item i JOIN sale s ON i.id = s.item) WHERE quantity > 4

SELECT c.code, i.id FROM code c JOIN item i ON i.kind = c.meaning

SELECT i.id, s.n FROM item i LEFT JOIN (SELECT item, count(*) AS n FROM sale GROUP BY item) s ON s.item = i.id

SELECT i.id FROM item i JOIN sale s ON i.id = s.item AND s.sold = DATE '2024-01-02' WHERE i.id = 2

SELECT i.id, s.sold FROM item i LEFT JOIN sale s ON i.id = 3 AND s.item = i.id

SELECT i.id, s.sold FROM item i LEFT JOIN sale s ON s.item = i.id WHERE i.id = 3

SELECT a.id, b.id FROM item a LEFT JOIN item b ON b.id = 3

SELECT a.id, b.id FROM item a FULL JOIN item b ON a.id = 3 AND b.id = 4

SELECT a.id, b.id FROM item a RIGHT JOIN item b ON a.id = 3 WHERE b.id = 5

-- subqueries

SELECT id FROM item WHERE id IN (SELECT item FROM sale)

SELECT id FROM item WHERE id NOT IN (SELECT item FROM sale WHERE item IS NOT NULL)

SELECT id FROM item WHERE id NOT IN (SELECT item FROM log)

SELECT id FROM item WHERE EXISTS (SELECT 1 FROM sale WHERE sale.item = item.id)

SELECT id FROM item i WHERE NOT EXISTS (SELECT 1 FROM sale s WHERE s.item = i.id)

SELECT id, (SELECT count(*) FROM sale s WHERE s.item = i.id) AS sales FROM item i

SELECT id, (SELECT sum(quantity) FROM sale WHERE item = id) FROM item

SELECT id FROM item WHERE price > (SELECT avg(price) FROM item)

SELECT id FROM item i WHERE price > (SELECT avg(price) FROM item j WHERE j.kind = i.kind)

SELECT id FROM item WHERE price >= ALL (SELECT price FROM item WHERE price IS NOT NULL)

SELECT id FROM item WHERE id = ANY (SELECT item FROM sale)

SELECT (SELECT max(id) FROM item), (SELECT count(*) FROM log)

SELECT (SELECT name FROM item WHERE id = 7)

SELECT (SELECT (SELECT (SELECT count(*) FROM node)))

SELECT * FROM (SELECT * FROM (SELECT id, kind FROM item) WHERE id > 3) AS x WHERE kind = 'toy'

SELECT * FROM (SELECT kind, count(*) FROM item GROUP BY kind) AS g(k, n) WHERE n > 2

SELECT ARRAY(SELECT id FROM item WHERE id < 5 ORDER BY id)

SELECT i.id, x.quantity FROM item i, LATERAL (SELECT quantity FROM sale s WHERE s.item = i.id ORDER BY sold LIMIT 1) AS x

SELECT i.id, x.q FROM item i LEFT JOIN LATERAL (SELECT max(quantity) AS q FROM sale s WHERE s.item = i.id) AS x ON true

SELECT i.id, x.q FROM item i, (SELECT max(quantity) AS q FROM sale s WHERE s.item = i.id) AS x

SELECT * FROM item WHERE (id, kind) IN (SELECT id, kind FROM item WHERE active)

SELECT * FROM item WHERE id = (SELECT min(item) FROM sale)

SELECT id FROM item WHERE CASE WHEN EXISTS (SELECT * FROM log) THEN id < 5 ELSE id > 5 END

SELECT id FROM item ORDER BY (SELECT count(*) FROM sale WHERE sale.item = item.id) DESC, id

SELECT kind, count(*) FROM item GROUP BY kind HAVING count(*) > (SELECT 1 FROM node WHERE id = 1)

SELECT id FROM item LIMIT (SELECT 0)

VALUES (1, (SELECT count(*) FROM item)), (2, (SELECT count(*) FROM sale))

-- common table expressions

WITH dear AS (SELECT * FROM item WHERE price > 20) SELECT count(*), min(id) FROM dear

WITH a AS (SELECT id FROM item), b AS (SELECT id FROM a WHERE id > 5) SELECT count(*) FROM a, b

WITH item AS (SELECT 1 AS id) SELECT * FROM item

WITH item AS (SELECT * FROM item WHERE id < 4) SELECT * FROM item

WITH ITEM AS (SELECT * FROM item WHERE id < 4) SELECT * FROM Item

WITH item AS (SELECT * FROM sale) SELECT * FROM item WHERE item = 3

WITH item AS (SELECT 1 AS id) SELECT * FROM main.item WHERE id < 3

WITH sale AS (SELECT id AS item FROM item) SELECT i.id FROM item i JOIN sale s ON s.item = i.id

SELECT * FROM (WITH item AS (SELECT 5 AS id) SELECT id FROM item) AS x, item WHERE item.id = x.id

WITH x(a, b) AS (SELECT id, kind FROM item) SELECT b, sum(a) FROM x GROUP BY b

WITH x AS MATERIALIZED (SELECT * FROM item) SELECT count(*) FROM x a JOIN x b USING (id)

WITH x AS NOT MATERIALIZED (SELECT * FROM item) SELECT count(*) FROM x

WITH RECURSIVE path(id, depth) AS (SELECT id, 0 FROM node WHERE parent IS NULL UNION ALL SELECT n.id, p.depth + 1 FROM node n JOIN path p ON n.parent = p.id) SELECT * FROM path

WITH RECURSIVE count(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 5) SELECT n, (SELECT count(*) FROM item WHERE id <= n) FROM count

WITH RECURSIVE node AS (SELECT 1 AS id UNION ALL SELECT id + 1 FROM node WHERE id < 4) SELECT * FROM node

WITH x AS (SELECT id FROM item WHERE id IN (WITH y AS (SELECT item FROM sale) SELECT item FROM y)) SELECT count(*) FROM x

WITH x AS (VALUES (1), (2)) SELECT item.id FROM item, x WHERE item.id = x.col0

WITH one AS (SELECT 1 AS k) (WITH two AS (SELECT 2 AS k) SELECT * FROM one, two)

-- set operations

SELECT id FROM item UNION SELECT id FROM node

SELECT id FROM item UNION ALL SELECT item FROM sale

SELECT id FROM item INTERSECT SELECT item FROM sale

SELECT id FROM item EXCEPT SELECT item FROM sale

SELECT kind FROM item INTERSECT ALL SELECT kind FROM item WHERE active

SELECT kind FROM item EXCEPT ALL SELECT kind FROM item WHERE active

(SELECT id FROM item WHERE id < 3) UNION ALL (SELECT id FROM node WHERE id < 3) ORDER BY id

SELECT id FROM item UNION SELECT id FROM node ORDER BY 1 LIMIT 10

SELECT id, name FROM item UNION ALL BY NAME SELECT label AS name, id FROM node

(SELECT id FROM item ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM item ORDER BY id DESC LIMIT 2)

SELECT 1 UNION SELECT 2 UNION ALL SELECT count(*) FROM item EXCEPT SELECT 2

SELECT * FROM (SELECT id FROM item UNION SELECT item FROM sale) AS u WHERE id > 4

-- grouping

SELECT kind, count(*), sum(price), avg(weight), min(added), max(name) FROM item GROUP BY kind

SELECT kind, active, count(*) FROM item GROUP BY ALL

SELECT kind, active, count(*) FROM item GROUP BY ALL ORDER BY ALL

SELECT kind, active, count(*) FROM item GROUP BY ROLLUP (kind, active)

SELECT kind, active, count(*) FROM item GROUP BY CUBE (kind, active)

SELECT kind, active, count(*), grouping(kind) FROM item GROUP BY GROUPING SETS ((kind), (active), ())

SELECT kind, count(*) AS n FROM item GROUP BY 1 HAVING n > 3

SELECT i.kind, sum(s.quantity) FROM item i JOIN sale s ON s.item = i.id GROUP BY i.kind

SELECT count(*) FROM log GROUP BY item, text

SELECT item, text, count(*) FROM log GROUP BY item, text

-- window functions

SELECT id, row_number() OVER (ORDER BY id) FROM item

SELECT id, rank() OVER (PARTITION BY kind ORDER BY price DESC, id) FROM item

SELECT id, sum(price) OVER (ORDER BY id ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM item

SELECT id, lag(name) OVER w, lead(name, 2) OVER w FROM item WINDOW w AS (ORDER BY id)

SELECT id, kind FROM item QUALIFY row_number() OVER (PARTITION BY kind ORDER BY id) = 1

SELECT kind, sum(count(*)) OVER () FROM item GROUP BY kind

SELECT id, ntile(4) OVER (ORDER BY id), first_value(id) OVER (PARTITION BY kind ORDER BY id) FROM item

-- the engine's own dialect

FROM item

FROM item SELECT id, kind WHERE id < 5

FROM item i JOIN sale s ON s.item = i.id SELECT i.id, s.quantity

SELECT * EXCLUDE (weight, added) FROM item

SELECT * REPLACE (upper(name) AS name) FROM item

SELECT i.* EXCLUDE (id), s.* FROM item i JOIN sale s ON s.item = i.id

SELECT COLUMNS('n.*') FROM item

SELECT min(COLUMNS(* EXCLUDE (active))) FROM item

SELECT * FROM range(3) AS r(n), item WHERE item.id = r.n

SELECT n, i.name FROM generate_series(1, 5) AS g(n) LEFT JOIN item i ON i.id = n

SELECT i.id, u.element FROM thing i, unnest(i.list) AS u(element)

SELECT id, id + 1 AS next, next * 2 AS twice FROM item WHERE next < 5

SELECT sum(price) AS total, total / count(*) FROM item

SELECT i.id.abs() FROM item i

SELECT id FROM item WHERE name ILIKE 'H%'

SELECT id FROM item WHERE name GLOB 'h*'

SELECT 1_000 + count(*) FROM item

SELECT count(*) FROM item WHERE kind IS DISTINCT FROM 'toy'

SELECT item FROM item WHERE id = 3

SELECT s FROM sale AS s WHERE s.item = 3

SELECT item.name FROM item WHERE item.id = 7

SELECT count() FROM item

SELECT any_value(kind) FROM item WHERE id = 7

-- queries that must fail in both

SELECT nothing FROM item

SELECT * FROM nowhere

SELECT id FROM item WHERE

SELECT CAST(name AS INTEGER) FROM item

SELECT id FROM item GROUP BY kind

SELECT * FROM item WHERE id = 'seven'

SELECT sum(name) FROM item

SELECT id FROM item, node

SELECT (SELECT id FROM item)

SELECT 1 / 0, id::TINYINT * 1000 FROM item

SELECT error('no') FROM item

SELECT x.id FROM item

SELECT item.id FROM item AS i

SELECT _cts FROM item

SELECT _deleted FROM item

SELECT item._cts FROM item

SELECT unknown_function(id) FROM item

-- names of results without an alias

SELECT (SELECT   max( id ) FROM item)+ 1 /* c */, EXISTS (SELECT * FROM sale), 1 IN (SELECT id FROM item), 2 -- d

SELECT ARRAY(SELECT id FROM item ORDER BY id), (SELECT name FROM main.item i WHERE i.id = 3), (SELECT max(name) FROM item)::text

SELECT coalesce((SELECT max(id) FROM item), 1), CASE WHEN id > 5 THEN 1 ELSE (SELECT min(id) FROM item) END, upper((SELECT name FROM item i WHERE i.id = 3)) FROM item

SELECT DISTINCT (SELECT max(id) FROM item) FROM sale ORDER BY 1

SELECT DISTINCT ON (kind, (SELECT max(id) FROM item)) (SELECT max(id) FROM item), kind FROM item ORDER BY kind

SELECT * FROM (SELECT (SELECT max(id) FROM item), (SELECT max(id) FROM item), count(*) FROM sale) AS q

SELECT "(SELECT max(id) FROM item)" FROM (SELECT (select MAX(id) from item)) AS q

SELECT max FROM (SELECT (SELECT max(id) FROM item)) AS q

SELECT q FROM (SELECT (SELECT max(id) FROM item)) AS q

SELECT * EXCLUDE ("(SELECT max(id) FROM item)") FROM (SELECT (SELECT max(id) FROM item), 1 AS a)

SELECT COLUMNS('.*SELECT.*') FROM (SELECT (SELECT max(id) FROM item), 1 AS a)

WITH x AS (SELECT (SELECT max(id) FROM item), id + 1 FROM item WHERE id = 3) SELECT * FROM x

SELECT (SELECT max(id) FROM item) UNION ALL SELECT 1 ORDER BY "(SELECT max(id) FROM item)"

SELECT (SELECT max(id) FROM item) UNION BY NAME SELECT (SELECT max(id) FROM sale s, item)

FROM item SELECT (SELECT max(id) FROM item), id ORDER BY id LIMIT 1

SELECT id IN (SELECT id FROM item WHERE id < 3), count(*) FROM item GROUP BY id IN (SELECT id FROM item WHERE id < 3)

SELECT max(id) FILTER (WHERE id IN (SELECT item FROM sale)), count(*) FROM item

SELECT (SELECT max(id) FROM item) IS DISTINCT FROM 1, 2 IS NOT DISTINCT FROM (SELECT max(id) FROM item)

SELECT (WITH q AS (SELECT * FROM item) SELECT max(id) FROM q), (SELECT max(id) FROM (SELECT id FROM item UNION ALL SELECT id FROM item) AS u)

SELECT {'a': (SELECT max(id) FROM item)}, (SELECT {'b': max(id)} FROM item).b, [(SELECT max(id) FROM item)]

SELECT 'a''b' || (SELECT max(name) FROM item WHERE name = 'it''s'), (SELECT max("id") FROM "item" AS "i")

SELECT lag((SELECT max(id) FROM item)) OVER w, rank() OVER w FROM item WINDOW w AS (ORDER BY id)

SELECT id = ANY (SELECT id FROM item), id >= ALL (SELECT id FROM item) FROM item

SELECT i.id + s.quantity, count(*) FROM item i JOIN sale s ON i.id = s.item GROUP BY i.id + s.quantity

SELECT id + 1 FROM item UNION SELECT quantity * 2 FROM sale

-- joins in brackets with a name, where the columns may have other names

SELECT a, b FROM (item i JOIN sale s ON i.id = s.item) AS j(a, b) WHERE a = 3

SELECT to_json(j) FROM (item i JOIN sale s ON i.id = s.item) AS j WHERE id = 3

SELECT count(j) FROM (item i JOIN sale s ON i.id = s.item) AS j(a, b)

-- visibility among members of WITH RECURSIVE

WITH RECURSIVE x AS (SELECT * FROM node), node AS (SELECT 7 AS id) SELECT * FROM x

WITH RECURSIVE x AS (SELECT * FROM later), later AS (SELECT id FROM node) SELECT * FROM x

WITH RECURSIVE node AS (SELECT * FROM node) SELECT count(*) FROM node

-- recursion of other shapes

WITH RECURSIVE r(n) AS ((SELECT 1) UNION ALL (SELECT n + 1 FROM r WHERE n < 5)) SELECT * FROM r

WITH RECURSIVE r AS (SELECT id, parent FROM node WHERE id = 1 UNION SELECT n.id, n.parent FROM node n JOIN r ON n.parent = r.id) SELECT * FROM r

WITH RECURSIVE r(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM r WHERE n < (SELECT count(*) FROM code)) SELECT * FROM r

WITH RECURSIVE a(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM a WHERE n < 3), b(m) AS (SELECT n FROM a UNION ALL SELECT m + 10 FROM b WHERE m < 20) SELECT * FROM b

WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM (SELECT * FROM r) AS x WHERE n < 4) SELECT * FROM r

WITH RECURSIVE r(id, lvl) AS (SELECT id, 0 FROM node UNION ALL SELECT r.id, lvl + 1 FROM r WHERE lvl < (SELECT count(*) FROM sale s WHERE s.item = r.id)) SELECT * FROM r

WITH RECURSIVE r(n) USING KEY (n) AS (SELECT 1 UNION SELECT id FROM node, r WHERE parent = n) SELECT * FROM r

SELECT id FROM node WHERE id IN (WITH RECURSIVE r(n) AS (SELECT 3 UNION ALL SELECT parent FROM node JOIN r ON id = n) SELECT n FROM r)

-- LATERAL

SELECT i.id, l.n FROM item i CROSS JOIN LATERAL (SELECT count(*) AS n FROM sale s WHERE s.item = i.id AND s.quantity > 2) l

SELECT i.id, l.x FROM item i, LATERAL (SELECT i.price * 2 AS x) l WHERE l.x > 40

-- PIVOT and UNPIVOT

PIVOT sale ON item IN (1, 2, 3) USING sum(quantity)

PIVOT sale ON item IN (1, 2, 3) USING sum(quantity) GROUP BY sold

PIVOT sale ON item USING sum(quantity) GROUP BY sold

PIVOT (SELECT kind, active, price FROM item) ON active USING sum(price) AS total, count(*) AS n GROUP BY kind

SELECT sold FROM sale PIVOT (sum(quantity) FOR item IN (1, 2))

SELECT * FROM sale PIVOT (max(note) FOR item IN (1, 3) GROUP BY sold) AS p WHERE sold > DATE '2024-01-02'

SELECT p.* FROM (SELECT item, quantity, sold FROM sale) AS s PIVOT (sum(quantity) FOR item IN (1, 3)) AS p

SELECT i.id, p."1" FROM item i JOIN (PIVOT sale ON item IN (1) USING sum(quantity) GROUP BY quantity) p ON p.quantity = i.id

WITH c AS (SELECT * FROM sale WHERE quantity > 1) PIVOT c ON item USING count(*) GROUP BY quantity

UNPIVOT node ON id, parent INTO NAME n VALUE v

SELECT * FROM node UNPIVOT (v FOR n IN (id, parent)) WHERE label = 'leaf'

SELECT * FROM node UNPIVOT INCLUDE NULLS (v FOR n IN (id, parent))

SELECT n, sum(v) FROM (UNPIVOT sale ON item, quantity INTO NAME n VALUE v) GROUP BY n

-- samples: of as many rows as there are, or of a number of them

SELECT count(*) FROM item TABLESAMPLE reservoir(5 ROWS)

SELECT count(*) FROM item TABLESAMPLE reservoir(1000 ROWS) WHERE id > 20

SELECT * FROM sale TABLESAMPLE 100 PERCENT WHERE item = 3

SELECT count(*) FROM item i JOIN sale s ON i.id = s.item USING SAMPLE 7 ROWS

SELECT count(*), max(id) <= 40 FROM (SELECT * FROM item USING SAMPLE 3) x
