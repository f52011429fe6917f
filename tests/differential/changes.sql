-- One change per paragraph; afterwards every table's content is compared.

INSERT INTO item VALUES (100, 'lamp', 12.50, 'tool', DATE '2024-05-01', 0.5, true)

INSERT INTO item VALUES (100, 'lamp', 12.50, 'tool', '2024-05-01', 0.5, true), (101, NULL, NULL, NULL, NULL, NULL, NULL)

INSERT INTO item (id, name) VALUES (102, 'chair')

INSERT INTO item (name, id) VALUES ('chair', 102), ('table', 103)

INSERT INTO item (id, price) VALUES (104, 1.005), (105, 7), (106, '3.14')

INSERT INTO item (id, weight, active) VALUES (107, 1, 'true'), (108, '2.5', 0)

INSERT INTO item (id, added) VALUES (109, current_date - current_date + DATE '2024-01-01')

INSERT INTO item (id) VALUES (200 + 10), (abs(-211))

INSERT INTO item (id, name) VALUES ((SELECT max(id) + 1 FROM item), (SELECT name FROM item WHERE id = 7))

INSERT INTO item (id, name) SELECT id + 1000, name FROM item

INSERT INTO item SELECT * REPLACE (id + 500 AS id) FROM item WHERE active

INSERT INTO item (id) SELECT range + 2000 FROM range(100)

INSERT INTO item (id, name) WITH x AS (SELECT 3000 AS id) SELECT id, 'x' FROM x

WITH x AS (SELECT id FROM item) INSERT INTO item (id) SELECT id + 4000 FROM x

INSERT INTO item SELECT id + 6000, name FROM item

INSERT INTO log SELECT * FROM (SELECT item, text FROM log) AS x

INSERT INTO item (id, name) SELECT 5000, count(*) FROM item

INSERT INTO item FROM item WHERE id < 0

INSERT INTO sale VALUES ('2024-03-01', 1, 5, 'new'), (DATE '2024-03-01', 2, 6, NULL)

INSERT INTO sale (item, sold, quantity) SELECT id, DATE '2024-04-01', id + 0 FROM item

INSERT INTO node (id) VALUES (50)

INSERT INTO node (id, label) VALUES (51, DEFAULT)

INSERT INTO node VALUES (52, 1, DEFAULT), (53, 1, 'twig')

INSERT INTO node (id) SELECT id + 100 FROM node

INSERT INTO code (code) VALUES ('n1'), ('n2')

INSERT INTO code VALUES ('n3', NULL, NULL), ('n4', NULL, 3)

INSERT INTO code (code, meaning) VALUES ('q''uote', 'se;mi -- colon')

INSERT INTO log VALUES (1, 'again', '2024-01-01 10:00:00'), (1, 'again', '2024-01-01 10:00:00'), (NULL, NULL, NULL)

INSERT INTO log SELECT * FROM log

INSERT INTO log (text) SELECT name FROM item

INSERT INTO log DEFAULT VALUES

INSERT INTO log VALUES (1, 'far', TIMESTAMP 'infinity'), (2, 'long ago', TIMESTAMP '-infinity'), (3, 'bc', '0044-03-15 (BC) 00:00:00')

INSERT INTO log SELECT 1, 'far', TIMESTAMP 'infinity'

INSERT INTO item (id, added) VALUES (120, 'infinity'), (121, '-infinity'), (122, '9999-12-31'), (123, '0001-01-01')

INSERT INTO item (id, weight) VALUES (124, 'nan'), (125, 'infinity'), (126, -0.0)

INSERT INTO thing (id, list, pair) VALUES (50, [1, NULL, 3], {'a': 1, 'b': 'x'})

INSERT INTO thing (id, span, huge, clock, ratio, tag) VALUES (51, INTERVAL 3 MONTH, 170141183460469231731687303715884105727, '12:34:56.789', 0.1, '00000000-0000-0000-0000-000000000001')

INSERT INTO thing SELECT * REPLACE (id + 100 AS id) FROM thing

UPDATE item SET name = 'hammer!' WHERE id = 7

UPDATE item SET price = price + 1.50 WHERE id = 7

UPDATE item SET price = price - 1, active = NOT active WHERE id = 12

UPDATE item SET price = price * 1.1 WHERE id = 7

UPDATE item SET name = NULL, kind = NULL WHERE id = 25

UPDATE item SET name = 'nobody' WHERE id = 999

UPDATE item SET name = upper(name) WHERE id = 7.0

UPDATE item SET name = name || '+' WHERE kind = 'toy'

UPDATE item SET price = 1

UPDATE item SET weight = weight * 2, price = price + id WHERE id > 5 AND active

UPDATE item AS i SET name = i.kind WHERE i.id < 10

UPDATE item SET price = (SELECT sum(quantity) FROM sale WHERE sale.item = item.id)

UPDATE item SET price = (SELECT avg(price) FROM item)

UPDATE item SET name = (SELECT label FROM node n WHERE n.id = item.id) WHERE id IN (SELECT id FROM node)

UPDATE item SET active = false WHERE NOT EXISTS (SELECT 1 FROM sale WHERE sale.item = item.id)

UPDATE item SET id = 500 WHERE id = 5

UPDATE item SET id = id + 1

UPDATE item SET id = id - 1

UPDATE item SET id = -id

UPDATE item SET id = CASE id WHEN 3 THEN 4 WHEN 4 THEN 3 ELSE id END WHERE id IN (3, 4)

UPDATE item SET id = 41 - id WHERE id BETWEEN 1 AND 40

UPDATE item SET id = id WHERE id = 7

UPDATE item SET id = 7, name = 'same' WHERE id = 7

UPDATE sale SET quantity = quantity + 1

UPDATE sale SET sold = sold + 100

UPDATE sale SET sold = sold + 1 WHERE item = 3

UPDATE sale SET item = item + 1000, note = 'moved' WHERE sold = DATE '2024-01-02'

UPDATE sale SET note = note || sold::VARCHAR WHERE quantity > 3

UPDATE node SET label = DEFAULT WHERE id = 4

UPDATE node SET parent = NULL

UPDATE node SET parent = id, id = id + 1000

UPDATE code SET meaning = meaning || '!'

UPDATE code SET meaning = 'unique now' WHERE code = 'a'

UPDATE code SET code = upper(code) || '_'

UPDATE code SET rank = DEFAULT

UPDATE code SET meaning = CASE code WHEN 'a' THEN 'second' WHEN 'b' THEN 'first' ELSE meaning END

UPDATE log SET text = 'same'

UPDATE log SET item = item + 1 WHERE item IS NOT NULL

UPDATE log SET moment = moment + INTERVAL 1 DAY WHERE text = 'again'

UPDATE log SET text = NULL WHERE item IS NULL

UPDATE thing SET list = list_append(list, 9)

UPDATE thing SET pair = {'a': 5, 'b': 'five'}, huge = huge - 1, ratio = ratio * 2 WHERE id = 1

UPDATE thing SET id = id + 1

UPDATE thing SET span = INTERVAL 1 YEAR WHERE id = 2

DELETE FROM item WHERE id = 7

DELETE FROM item WHERE id = 999

DELETE FROM item WHERE kind = 'toy'

DELETE FROM item

DELETE FROM item WHERE id IN (SELECT item FROM sale)

DELETE FROM item AS i WHERE i.price > 20

DELETE FROM item WHERE price > (SELECT avg(price) FROM item)

DELETE FROM sale WHERE sold = '2024-01-03' AND item = 3

DELETE FROM sale WHERE sold < '2024-01-03'

DELETE FROM node WHERE parent IS NOT NULL

DELETE FROM code WHERE code >= 'b'

DELETE FROM log

DELETE FROM log WHERE text = 'again'

DELETE FROM log WHERE item IS NULL

DELETE FROM log WHERE text IN (SELECT text FROM log GROUP BY text HAVING count(*) > 1)

DELETE FROM thing WHERE id = 1

DELETE FROM thing WHERE len(list) > 1

-- statements that must fail in both, and leave no trace

INSERT INTO item (id) VALUES (7)

INSERT INTO item (id) VALUES (600), (7)

INSERT INTO item (id) VALUES (600), (600)

INSERT INTO item (id) VALUES (NULL)

INSERT INTO item (name) VALUES ('no key')

INSERT INTO item (id) VALUES ('seven')

INSERT INTO item (id, price) VALUES (600, 123456789.00)

INSERT INTO item (id, added) VALUES (600, '2024-02-30')

INSERT INTO item (id) VALUES (3000000000)

INSERT INTO item (id, nothing) VALUES (600, 1)

INSERT INTO item (id) VALUES (600, 1)

INSERT INTO item (id) SELECT id, name FROM item

INSERT INTO item (id) SELECT id FROM item

INSERT INTO item (id) SELECT 600 FROM item

INSERT INTO item SELECT id FROM item

INSERT INTO nowhere VALUES (1)

INSERT INTO sale VALUES ('2024-05-05', 1, -1, NULL)

INSERT INTO sale VALUES ('2024-05-05', 1, NULL, NULL)

INSERT INTO sale VALUES ('2024-05-05', NULL, 1, NULL)

INSERT INTO sale VALUES ('2024-05-05', 1, 1, NULL), ('2024-05-06', 2, -2, NULL)

INSERT INTO node VALUES (60, 1, NULL)

INSERT INTO code VALUES ('m1', 'first', 1)

INSERT INTO code VALUES ('m1', 'dup', 1), ('m2', 'dup', 1)

INSERT INTO code (code, rank) VALUES ('m3', 40000)

INSERT INTO thing (id, tag) VALUES (70, 'no uuid')

INSERT INTO thing (id) SELECT 1

UPDATE item SET id = 7

UPDATE item SET id = 8 WHERE id = 7

UPDATE item SET id = NULL WHERE id = 7

UPDATE item SET id = id + 1 WHERE id < 10

UPDATE item SET price = 'much' WHERE id = 7

UPDATE item SET price = 99999999999 WHERE id = 7

UPDATE item SET id = id + 2147483647

UPDATE item SET added = name::DATE

UPDATE item SET nothing = 1

UPDATE sale SET quantity = quantity - 1000

UPDATE sale SET quantity = -1 WHERE sold = '2024-01-03' AND item = 3

UPDATE sale SET quantity = NULL WHERE sold = '2024-01-03' AND item = 3

UPDATE sale SET quantity = NULL

UPDATE sale SET item = 1

UPDATE code SET meaning = 'one for all'

UPDATE code SET meaning = 'second' WHERE code = 'a'

UPDATE node SET label = NULL WHERE id = 4

UPDATE thing SET id = 1

UPDATE nowhere SET a = 1

DELETE FROM item WHERE nothing = 1

DELETE FROM item WHERE CAST(coalesce(name, 'none') AS INTEGER) = 1

DELETE FROM nowhere

INSERT INTO item (id, name) VALUES (1, 'new'), (300, 'new') ON CONFLICT DO NOTHING

INSERT INTO item (id, name, price) VALUES (1, 'new', 1), (300, 'new', 2) ON CONFLICT (id) DO UPDATE SET name = excluded.name, price = item.price + excluded.price

INSERT INTO item (id, name) VALUES (2, 'new') ON CONFLICT (id) DO UPDATE SET name = item.name || '-' || EXCLUDED.name, weight = weight * 2, added = NULL

INSERT INTO item (id, price) SELECT id + 20, id FROM item WHERE id <= 40 ON CONFLICT (id) DO UPDATE SET price = excluded.price WHERE item.price > excluded.price

INSERT INTO item AS i (id, active) VALUES (3, true), (4, false) ON CONFLICT (id) DO UPDATE SET active = NOT i.active AND excluded.active, kind = DEFAULT

INSERT INTO item (id) VALUES (1) ON CONFLICT (id) DO UPDATE SET name = NULL WHERE price IS NULL

INSERT INTO sale VALUES ('2024-01-01', 3, 5, 'a'), ('2024-01-01', 999, 6, 'b') ON CONFLICT (item, sold) DO UPDATE SET quantity = quantity + excluded.quantity, note = excluded.note

INSERT INTO sale (sold, item, quantity) SELECT sold, item, 1 FROM sale ON CONFLICT DO NOTHING

INSERT INTO sale (sold, item, quantity) SELECT sold, item + 1, 1 FROM sale WHERE item < 10 ON CONFLICT (sold, item) DO UPDATE SET quantity = 0

INSERT INTO sale VALUES ('2024-01-01', 3, 5, 'a') ON CONFLICT DO UPDATE SET quantity = -1

INSERT INTO sale VALUES ('2024-01-01', 3, NULL, 'a') ON CONFLICT DO UPDATE SET quantity = excluded.quantity

INSERT INTO sale VALUES ('2024-01-01', 999, NULL, 'a') ON CONFLICT DO NOTHING

INSERT INTO sale VALUES ('2024-01-01', 3, -1, 'a') ON CONFLICT DO NOTHING

INSERT INTO sale VALUES ('2024-01-01', 3, -1, 'a') ON CONFLICT (item, sold) DO UPDATE SET note = excluded.note

INSERT INTO sale (sold, item, quantity) SELECT sold, item, NULL FROM sale ON CONFLICT DO NOTHING

INSERT INTO code VALUES ('a', 'x', 1), ('n5', 'first', 1), ('n6', 'fresh', 1) ON CONFLICT DO NOTHING

INSERT INTO code VALUES ('n5', 'first', 1) ON CONFLICT (meaning) DO UPDATE SET rank = excluded.rank + code.rank

INSERT INTO code VALUES ('n5', 'first', 1), ('n6', 'toy', 9) ON CONFLICT (meaning) DO UPDATE SET rank = excluded.rank

INSERT INTO code VALUES ('a', 'toy', 1) ON CONFLICT (code) DO UPDATE SET meaning = excluded.meaning

INSERT INTO code VALUES ('a', 'toy', 1) ON CONFLICT (meaning) DO UPDATE SET rank = 99

INSERT INTO code VALUES ('zz', NULL, 1) ON CONFLICT (meaning) DO UPDATE SET rank = 99

INSERT INTO code VALUES ('zz', NULL, 1) ON CONFLICT (rank) DO NOTHING

INSERT INTO code VALUES ('zz', NULL, 1) ON CONFLICT DO UPDATE SET rank = 99

INSERT INTO log VALUES (1, 'x', NULL) ON CONFLICT DO NOTHING

INSERT OR REPLACE INTO node VALUES (1, 2, 'new'), (70, 1, 'other')

INSERT OR REPLACE INTO node (id, label) VALUES (2, 'new'), (71, DEFAULT)

INSERT OR IGNORE INTO node (id) SELECT parent FROM node WHERE parent IS NOT NULL AND id < 4

INSERT INTO node (id) SELECT id + 7 FROM node ON CONFLICT (id) DO UPDATE SET parent = excluded.id + node.id, label = upper(node.label)

INSERT INTO item (id, name) VALUES (300, 'new'), (301, NULL) RETURNING *

INSERT INTO item (ID, price) VALUES ('302', 1) RETURNING Id, price * 2 AS twice, price AS "the price", upper(name) AS upper

INSERT INTO item (id) SELECT id + 500 FROM item RETURNING item.id % 7 AS rest, active IS NULL AS unknown

INSERT INTO item (id, price) VALUES (1, 1), (303, 2) ON CONFLICT (id) DO UPDATE SET price = excluded.price RETURNING id, name, price

INSERT INTO item (id, price) VALUES (1, 1), (303, 2) ON CONFLICT (id) DO NOTHING RETURNING id

INSERT INTO log DEFAULT VALUES RETURNING *

INSERT INTO thing (id, list) VALUES (400, [1, 2]) RETURNING list, id, len(list) AS length

UPDATE item SET price = price * 2, name = id || 'x' WHERE id BETWEEN 3 AND 9 RETURNING *

UPDATE item AS i SET active = NOT active WHERE id = 5 RETURNING i.id, i.active, i.*

UPDATE item SET price = 0 WHERE id < 0 RETURNING id, price + 1 AS next

UPDATE sale SET item = item + 1000 WHERE quantity = 2 RETURNING sold, item, quantity

UPDATE log SET item = 3 WHERE text IS NULL RETURNING *

UPDATE thing SET ratio = 2 RETURNING id, span, list, pair, huge, clock, tag

DELETE FROM item WHERE id % 2 = 0 RETURNING id, price + 1 AS more, name

DELETE FROM sale WHERE item = 3 AND sold = '2024-01-02' RETURNING *

DELETE FROM log RETURNING coalesce(text, 'none') AS text, moment

DELETE FROM item WHERE id = 1 RETURNING CAST(name AS INTEGER)

DELETE FROM item RETURNING nothing

UPDATE item SET price = s.total FROM (SELECT item AS sold, sum(quantity) AS total FROM sale GROUP BY item) AS s WHERE s.sold = item.id

UPDATE item AS i SET name = n.label FROM node AS n WHERE n.id = i.id AND i.active

UPDATE item SET kind = 'sold' FROM sale WHERE sale.item = item.id

UPDATE item SET price = price + 1 FROM sale JOIN node ON node.id = sale.item WHERE sale.item = item.id AND sale.quantity > 0

UPDATE item SET name = 'none' FROM node WHERE node.id = item.id AND node.id > 1000

UPDATE node SET label = 'up ' || p.label FROM node AS p WHERE p.id = node.parent

UPDATE node SET parent = NULL FROM node AS p LEFT JOIN item ON item.id = p.id WHERE p.id = node.parent AND item.id IS NULL

UPDATE item SET id = item.id + 1000 FROM sale WHERE sale.item = item.id

UPDATE code SET meaning = 'm' || i.least, rank = i.least FROM (SELECT name, min(id) AS least FROM item GROUP BY name) AS i WHERE i.name = code.code

UPDATE sale SET quantity = quantity + 1 FROM item AS i, node AS n WHERE i.id = sale.item AND n.id = i.id AND sale.quantity IS DISTINCT FROM 3

UPDATE thing SET ratio = 2 FROM item WHERE item.id = thing.id

DELETE FROM item USING sale WHERE sale.item = item.id

DELETE FROM item AS i USING sale AS s, node AS n WHERE s.item = i.id AND n.id = i.id

DELETE FROM item USING sale JOIN node ON node.id = sale.item WHERE sale.item = item.id

DELETE FROM node USING node AS p WHERE p.parent = node.id

DELETE FROM sale USING (SELECT id FROM item WHERE active) AS a WHERE a.id = sale.item

INSERT INTO item BY NAME SELECT 'by name' AS name, 100 AS id

INSERT INTO item BY NAME SELECT id + 100 AS id, * EXCLUDE (id) FROM item WHERE id < 4

INSERT INTO item BY NAME SELECT id + 100 AS id, name AS "NAME", upper(kind) AS kind FROM item ORDER BY price

INSERT INTO item BY NAME SELECT 100 AS id, 1 AS nothing

INSERT INTO item BY NAME SELECT 100 AS id, 101 AS Id

INSERT INTO item BY NAME SELECT 100 AS id, 1 + 1

INSERT INTO item BY NAME VALUES (100, 'x')

INSERT INTO item (id) BY NAME SELECT 100 AS id

INSERT INTO item BY NAME WITH q AS (SELECT 100 AS id) SELECT * FROM q

INSERT OR REPLACE INTO node BY NAME SELECT 4 AS id, 'new' AS label

INSERT INTO node BY NAME FROM range(100, 103) AS r(id)

INSERT INTO node BY POSITION SELECT 100, 1, 'x'

INSERT INTO node (id, label) BY POSITION SELECT 100, 'x'

UPDATE item SET (name, price) = ('x', 1 + 1) WHERE id = 7

UPDATE item SET (name, kind) = ROW(kind, name), active = true WHERE id < 9

UPDATE node SET (label, parent) = (DEFAULT, DEFAULT) WHERE id = 4

UPDATE item SET (name, name) = ('x', 'y') WHERE id = 7

UPDATE item SET (name) = ('x') WHERE id = 7

UPDATE item SET name = node.label FROM node WHERE node.id = item.id RETURNING item.id, name

UPDATE item SET price = s.n FROM (SELECT item, sum(quantity) AS n FROM sale GROUP BY item) AS s WHERE s.item = item.id RETURNING item.*

UPDATE item SET price = s.n FROM (SELECT item, sum(quantity) AS n FROM sale GROUP BY item) AS s WHERE s.item = item.id RETURNING *

UPDATE item AS i SET id = i.id + 100 FROM node AS n WHERE n.id = i.id AND n.parent = 2 RETURNING i.id, i.name

DELETE FROM node AS n USING item AS i WHERE i.id = n.id AND i.kind = 'toy' RETURNING n.id, n.label

DELETE FROM node AS n USING item AS i WHERE i.id = n.id AND i.kind = 'toy' RETURNING *

DELETE FROM node USING item WHERE item.id = node.id RETURNING name, label

UPDATE sale SET (sold, item) = (sold + 1, item + 1), note = DEFAULT

MERGE INTO item AS i USING sale AS s ON i.id = s.item AND s.sold = DATE '2024-01-02' WHEN MATCHED AND s.quantity > 3 THEN DELETE WHEN MATCHED THEN UPDATE SET price = price + quantity, name = s.note WHEN NOT MATCHED THEN DO NOTHING

MERGE INTO item USING (SELECT item + 30 AS k, sum(quantity) AS n FROM sale GROUP BY item) AS s ON id = k WHEN MATCHED THEN UPDATE SET price = n WHEN NOT MATCHED THEN INSERT (id, price, name) VALUES (k, n, 'merged')

MERGE INTO node AS n USING (SELECT id * 2 AS id, label FROM node) AS s ON n.id = s.id WHEN MATCHED THEN UPDATE SET label = s.label, parent = DEFAULT WHEN NOT MATCHED THEN INSERT VALUES (s.id, DEFAULT, label)

MERGE INTO node AS n USING (SELECT id * 2 AS id FROM node) AS s ON n.id = s.id WHEN NOT MATCHED BY SOURCE AND n.parent > 2 THEN DELETE WHEN NOT MATCHED BY SOURCE THEN UPDATE SET parent = id WHEN NOT MATCHED BY TARGET AND id > 20 THEN INSERT (id) VALUES (id)

MERGE INTO node AS n USING (SELECT rank FROM code WHERE rank < 7) AS c ON n.id = c.rank WHEN MATCHED THEN DELETE

MERGE INTO code USING (VALUES ('a', 'b'), ('b', 'c')) AS v(k, m) ON code.code = v.k WHEN MATCHED THEN UPDATE SET code = m

MERGE INTO code USING (VALUES ('a', 'second'), ('A', 'first')) AS v(k, m) ON code.code = v.k WHEN MATCHED THEN UPDATE SET meaning = m

MERGE INTO code USING (VALUES ('z')) AS v(k) ON code.code = v.k WHEN NOT MATCHED THEN INSERT (code, meaning) VALUES (k, 'first')

MERGE INTO sale AS s USING item AS i ON s.item = i.id AND i.kind = 'toy' WHEN MATCHED THEN UPDATE SET sold = sold + 100, note = name WHEN NOT MATCHED AND i.id < 3 THEN INSERT VALUES (DATE '2025-01-01', i.id, 1, kind)

MERGE INTO sale AS s USING item AS i ON s.item = i.id WHEN MATCHED THEN UPDATE SET quantity = NULL

MERGE INTO item AS i USING (SELECT 7 AS id) AS s ON i.id = s.id WHEN MATCHED THEN UPDATE SET name = s.nothing

WITH s AS (SELECT id FROM node WHERE parent = 3) MERGE INTO item AS i USING s ON i.id = s.id WHEN MATCHED THEN UPDATE SET price = (SELECT max(quantity) FROM sale WHERE sale.item = i.id)

MERGE INTO item AS i USING (SELECT 7 AS k UNION ALL SELECT 77) AS s ON i.id = s.k WHEN MATCHED THEN UPDATE SET name = 'seven' WHEN NOT MATCHED THEN INSERT (id) VALUES (k) RETURNING i.id, i.name

WITH gone AS (DELETE FROM item WHERE id % 5 = 0 RETURNING id, name) SELECT count(*), max(name), (SELECT count(*) FROM item) AS before FROM gone

WITH x AS (UPDATE item SET price = 1 WHERE id < 4 RETURNING *) SELECT x.id, x.price, i.price AS old FROM x JOIN item AS i ON i.id = x.id

WITH x AS (INSERT INTO item (id, name) VALUES (100, 'new') RETURNING id, name), y AS (SELECT code FROM code WHERE rank < 3) SELECT x.id, y.code FROM x, y

WITH a AS (SELECT id / id + 1 AS parent FROM item WHERE id = 4), b AS (UPDATE node SET label = 'x' WHERE id IN (SELECT parent FROM a) RETURNING id) DELETE FROM node WHERE parent = (SELECT id + 2 FROM b)

WITH x AS (DELETE FROM code WHERE rank = 7 RETURNING code, meaning) INSERT INTO code SELECT code || '!', meaning, 8 FROM x

