"""Queries with the shapes of TPC-H's and TPC-DS', over any tables with ``i``, ``n``, ``s``.

``{a}`` to ``{d}`` are tables. Shapes are what matters to a rewriter: which subquery is
correlated with what, which aggregate is compared with which, what is joined with itself.
"""

from __future__ import annotations

PORTABLE = (
    # TPC-H 1: many aggregates of one scan.
    "SELECT s, i, sum(n) AS a, sum(n * (1 - i)) AS b, avg(n) AS c, count(*) AS d FROM {a} "
    "WHERE i <= 7 GROUP BY s, i ORDER BY s, i",
    # 2: the least of a correlated join.
    "SELECT x.i, y.s FROM {a} AS x JOIN {b} AS y ON x.i = y.i WHERE y.n = "
    "(SELECT min(z.n) FROM {b} AS z JOIN {c} AS w ON z.i = w.i WHERE z.i = x.i)",
    # 3: top of a three-way join.
    "SELECT x.i, sum(y.n) AS r, z.s FROM {a} AS x, {b} AS y, {c} AS z "
    "WHERE x.i = y.i AND y.i = z.i AND x.s <> 'b' GROUP BY x.i, z.s ORDER BY r DESC, 1, 3 LIMIT 5",
    # 4: EXISTS below a group.
    "SELECT x.s, count(*) AS c FROM {a} AS x WHERE EXISTS "
    "(SELECT * FROM {b} AS y WHERE y.i = x.i AND y.n > 1) GROUP BY x.s ORDER BY x.s",
    # 5 and 7: a cycle of joins; pairs by OR.
    "SELECT z.s, sum(x.n) AS r FROM {a} AS x, {b} AS y, {c} AS z WHERE x.i = y.i "
    "AND y.s = z.s AND ((x.s = 'a' AND z.s = 'b') OR (x.s = 'b' AND z.s = 'a')) GROUP BY z.s",
    # 8 and 14: a share by CASE.
    "SELECT sum(CASE WHEN y.s = 'a' THEN x.n ELSE 0 END) AS p, sum(x.n) AS q, q.i "
    "FROM {a} AS x JOIN {b} AS y ON x.i = y.i JOIN (SELECT i FROM {c} GROUP BY i) AS q ON q.i = y.i "
    "GROUP BY q.i",
    # 6: one filtered scan.
    "SELECT sum(n * i) AS r FROM {a} WHERE n BETWEEN 0.5 AND 5 AND i < 6 AND s IS NOT NULL",
    # 11: HAVING against a subquery.
    "SELECT i, sum(n) AS v FROM {a} GROUP BY i HAVING sum(n) > "
    "(SELECT sum(n) * 0.1 FROM {a}) ORDER BY v DESC, i",
    # 12: two counts by CASE.
    "SELECT x.s, sum(CASE WHEN y.i IN (1, 2) THEN 1 ELSE 0 END) AS h, "
    "sum(CASE WHEN y.i NOT IN (1, 2) THEN 1 ELSE 0 END) AS l FROM {a} AS x, {b} AS y "
    "WHERE x.i = y.i AND x.n < y.n GROUP BY x.s",
    # 13: a distribution of counts over an outer join.
    "SELECT c, count(*) AS d FROM (SELECT x.i AS k, count(y.i) AS c FROM {a} AS x "
    "LEFT JOIN {b} AS y ON x.i = y.i AND y.s NOT LIKE '%a%' GROUP BY x.i) AS q GROUP BY c",
    # 15: the greatest of a view.
    "WITH r(k, t) AS (SELECT i, sum(n) FROM {a} GROUP BY i) SELECT x.i, x.s, r.t FROM {b} AS x, r "
    "WHERE x.i = r.k AND r.t = (SELECT max(t) FROM r)",
    # 16: distinct counts, NOT IN.
    "SELECT x.s, count(DISTINCT y.i) AS c FROM {a} AS x, {b} AS y WHERE x.i = y.i AND x.s <> 'b' "
    "AND y.i NOT IN (SELECT i FROM {c} WHERE s LIKE 'a%' AND i IS NOT NULL) GROUP BY x.s",
    # 17: against a correlated average.
    "SELECT sum(x.n) AS r FROM {a} AS x JOIN {b} AS y ON x.i = y.i "
    "WHERE x.n < (SELECT 0.9 * avg(z.n) FROM {a} AS z WHERE z.i = y.i)",
    # 18: IN of a group with HAVING.
    "SELECT x.s, y.i, sum(y.n) AS r FROM {a} AS x, {b} AS y WHERE x.i = y.i AND y.i IN "
    "(SELECT i FROM {b} GROUP BY i HAVING count(*) > 1) GROUP BY x.s, y.i",
    # 19: alternatives of conjunctions.
    "SELECT count(*) AS c FROM {a} AS x, {b} AS y WHERE (x.i = y.i AND x.s = 'a' AND y.n < 2) "
    "OR (x.i = y.i AND x.s = 'b' AND y.n BETWEEN 1 AND 4)",
    # 20: IN within IN.
    "SELECT s FROM {a} WHERE i IN (SELECT i FROM {b} WHERE n IN (SELECT n FROM {c} WHERE i > 0) "
    "AND i > (SELECT 0.5 * min(i) FROM {d}))",
    # 21: EXISTS and NOT EXISTS of the table itself.
    "SELECT x.s, count(*) AS c FROM {a} AS x WHERE EXISTS (SELECT * FROM {a} AS y "
    "WHERE y.i = x.i AND y.n <> x.n) AND NOT EXISTS (SELECT * FROM {a} AS z WHERE z.i = x.i "
    "AND z.n > x.n) GROUP BY x.s",
    # 22: an anti join beside a scalar average.
    "SELECT c, count(*) AS d, sum(m) AS e FROM (SELECT substring(s, 1, 1) AS c, n AS m FROM {a} "
    "WHERE n > (SELECT avg(n) FROM {a} WHERE n > 0) AND NOT EXISTS "
    "(SELECT * FROM {b} WHERE {b}.i = {a}.i)) AS q GROUP BY c",
    # TPC-DS 1, 30, 81: above the average of one's own group.
    "WITH t AS (SELECT i AS k, s AS g, sum(n) AS r FROM {a} GROUP BY i, s) SELECT x.k, x.g FROM t AS x "
    "WHERE x.r > (SELECT avg(y.r) FROM t AS y WHERE y.g = x.g)",
    # 4, 11, 74: a year against another one.
    "WITH y AS (SELECT i, s, sum(n) AS t FROM {a} GROUP BY i, s UNION ALL "
    "SELECT i, s, sum(n) AS t FROM {b} GROUP BY i, s) SELECT p.i, q.t FROM y AS p, y AS q "
    "WHERE p.i = q.i AND p.s = 'a' AND q.s = 'b'",
    # 8, 14, 38, 87: sets of customers.
    "SELECT count(*) AS c FROM (SELECT i, s FROM {a} INTERSECT SELECT i, s FROM {b} "
    "EXCEPT SELECT i, s FROM {c}) AS q",
    # 10, 35: EXISTS of one channel or another.
    "SELECT x.s, count(*) AS c FROM {a} AS x WHERE EXISTS (SELECT * FROM {b} AS y WHERE y.i = x.i) "
    "AND x.i IN (SELECT i FROM {c} UNION ALL SELECT i FROM {d}) GROUP BY x.s",
    # 33, 56, 60, 71: the same over three channels.
    "SELECT s, sum(v) AS t FROM (SELECT s, n AS v FROM {a} WHERE i IN (SELECT i FROM {d}) UNION ALL "
    "SELECT s, n FROM {b} WHERE i IN (SELECT i FROM {d}) UNION ALL SELECT s, n FROM {c}) AS q GROUP BY s",
    # 9, 28, 88: subqueries side by side.
    "SELECT p.c AS x, q.c AS y, r.c AS z FROM (SELECT count(*) AS c FROM {a} WHERE i > 1) AS p, "
    "(SELECT count(DISTINCT s) AS c FROM {b}) AS q, (SELECT avg(n) AS c FROM {c}) AS r",
    # 44, 67, 70: ranks of aggregates.
    "SELECT * FROM (SELECT i, sum(n) AS t, rank() OVER (ORDER BY sum(n) DESC) AS k FROM {a} "
    "GROUP BY i) AS q WHERE k <= 3",
    # 47, 57, 89: a group's share of its average, by windows over aggregates.
    "WITH v AS (SELECT s, i, sum(n) AS t, avg(sum(n)) OVER (PARTITION BY s) AS m FROM {a} GROUP BY s, i) "
    "SELECT x.s, x.i, x.t, y.t AS u FROM v AS x, v AS y WHERE x.s = y.s AND x.i = y.i + 1 AND x.t <> x.m",
    # 51: a full join of running sums.
    "SELECT coalesce(x.i, y.i) AS k, x.t AS p, y.t AS q FROM (SELECT i, sum(sum(n)) OVER (ORDER BY i) AS t "
    "FROM {a} GROUP BY i) AS x FULL JOIN (SELECT i, sum(sum(n)) OVER (ORDER BY i) AS t FROM {b} GROUP BY i) "
    "AS y ON x.i = y.i",
    # 49, 75, 78: an outer join that keeps rows without a partner.
    "SELECT x.i, sum(x.n) AS a, sum(y.n) AS b FROM {a} AS x LEFT JOIN {b} AS y ON x.i = y.i AND x.s = y.s "
    "WHERE y.i IS NULL GROUP BY x.i",
    # 23, 54: frequent ones, against a share of the greatest.
    "WITH f AS (SELECT i, count(*) AS c FROM {a} GROUP BY i HAVING count(*) > 1), m AS "
    "(SELECT max(t) AS t FROM (SELECT sum(n) AS t FROM {b} GROUP BY i) AS q) SELECT sum(x.n) AS r "
    "FROM {c} AS x WHERE x.i IN (SELECT i FROM f) AND x.n < (SELECT t FROM m)",
    # 16, 94, 95: several shipments, none returned.
    "SELECT count(DISTINCT x.i) AS c, sum(x.n) AS t FROM {a} AS x WHERE EXISTS (SELECT * FROM {a} AS y "
    "WHERE y.i = x.i AND y.s <> x.s) AND NOT EXISTS (SELECT * FROM {b} AS z WHERE z.i = x.i)",
)

GROUPING_SETS = (
    # TPC-DS 5, 18, 22, 27, 36, 77, 80, 86.
    "SELECT s, i, sum(n) AS t, grouping(s) + grouping(i) AS g, rank() OVER (PARTITION BY "
    "grouping(s) + grouping(i) ORDER BY sum(n) DESC) AS k FROM {a} GROUP BY ROLLUP (s, i)",
    "SELECT c, s, sum(v) AS t FROM (SELECT 'x' AS c, s, n AS v FROM {a} UNION ALL SELECT 'y' AS c, s, n "
    "FROM {b} UNION ALL SELECT 'z' AS c, s, i FROM {c}) AS q GROUP BY ROLLUP (c, s)",
    "SELECT x.s, y.s AS u, avg(x.n) AS m FROM {a} AS x JOIN {b} AS y ON x.i = y.i GROUP BY CUBE (x.s, y.s)",
)


def templates(engine):
    return PORTABLE if engine == "monetdb" else PORTABLE + GROUPING_SETS
