"""Queries of all shapes over a table of which any part is recent, any part stored.

Windows, set operations, recursion, joins of every kind, correlation, groups: shapes
that an engine's optimizer changes much. Each is run several times, through tique and by
the bare engine, whose answer is the right one. A table of a few rows has no order, so
the queries ask only for results that do not depend on one.
"""

from __future__ import annotations

import random

_ORDERED = (
    *("row_number()", "rank()", "dense_rank()", "percent_rank()", "cume_dist()"),
    *("ntile(3)", "lag(v)", "lag(v, 2, -1)", "lead(v)", "lead(v, 2, id)"),
    *("first_value(v)", "last_value(v)", "nth_value(v, 2)", "fill(v)"),
    *("first_value(v IGNORE NULLS)", "lead(v IGNORE NULLS)", "list(v)"),
    *("string_agg(v::VARCHAR, ',')", "first(v)", "any_value(v)", "arg_max(v, id)"),
)
_SETS = (
    *("sum(v)", "count(*)", "count(v)", "min(v)", "max(v)", "avg(v)", "median(v)"),
    *("sum(DISTINCT v)", "count(DISTINCT g)", "count(*) FILTER (WHERE v > 1)"),
    *("list(v ORDER BY id, v)", "bool_or(v > 2)", "max(v) FILTER (WHERE g = 1)"),
    *("string_agg(g::VARCHAR, ',' ORDER BY id, g)", "approx_count_distinct(g)"),
)
_WHOLE = ("rank()", "dense_rank()", "percent_rank()", "cume_dist()")
_FRAMES = (
    *(
        "",
        "",
        "",
        "ROWS UNBOUNDED PRECEDING",
        "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    ),
    *("ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "RANGE UNBOUNDED PRECEDING"),
    *(
        "RANGE BETWEEN 2 PRECEDING AND 1 FOLLOWING",
        "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    ),
    *("ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",),
    *("ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING", "RANGE CURRENT ROW EXCLUDE TIES"),
)
_TABLES = ("t", "u", "b")
_JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")


class Shapes:
    """Random queries over ``t`` and ``u``, which have a key, and ``b``, which has none."""

    def __init__(self, seed):
        self.chance = random.Random(seed)
        self.pick = self.chance.choice

    def maybe(self, text, share=0.5):
        return text if self.chance.random() < share else ""

    def query(self):
        return self.pick(
            (
                *[self.windows] * 5,
                *[self.whole] * 4,
                *[self.joined] * 4,
                *[self.correlated] * 4,
                *[self.combined] * 3,
                *[self.recursive] * 2,
                *[self.grouped] * 2,
                *[self.limited] * 2,
                *[self.qualified] * 2,
                *[self.lateral] * 2,
                self.asof,
                self.pivoted,
                self.unnested,
            )
        )()

    def where(self, alias):
        return self.maybe(
            " WHERE "
            + self.pick(
                (
                    f"{alias}.id > 2",
                    f"{alias}.v < 3",
                    f"{alias}.g = 1",
                    f"{alias}.id < 0",
                    f"{alias}.v IS NULL",
                    f"{alias}.id IN (1, 3, 5)",
                    f"{alias}.id = 4",
                )
            )
        )

    def source(self, alias="a", deep=True):
        table = self.pick(_TABLES)
        if not deep or self.chance.random() < 0.6:
            return f"{table} AS {alias}"
        return self.pick(
            (
                f"(SELECT * FROM {table} AS i{self.where('i')}) AS {alias}",
                f"(SELECT * FROM t UNION ALL SELECT * FROM u) AS {alias}",
                f"(SELECT DISTINCT * FROM {table}) AS {alias}",
                f"(SELECT i.* FROM t AS i JOIN u USING (id)) AS {alias}",
            )
        )

    def windows(self):
        # All columns are the order: equal rows are alike.
        function = self.pick((*_ORDERED, *_SETS))
        frame = self.pick(_FRAMES)
        order = "id, g, v"
        if "RANGE BETWEEN 2" in frame:
            order = "id"
            function = self.pick(_SETS[:7])
        over = f"{self.maybe('PARTITION BY g ')}ORDER BY {order} {frame}"
        return f"SELECT id, g, v, {function} OVER ({over}) AS w FROM {self.source()}{self.where('a')}"

    def whole(self):
        function = self.pick((*_WHOLE, *_SETS[:12]))
        # Over a UNION ALL of the query's own dense_rank() crashes the bare engine.
        source = self.source(deep=function != "dense_rank()")
        over = self.pick(("()", "(PARTITION BY g)", "w", "(RANGE UNBOUNDED PRECEDING)"))
        query = (
            f"SELECT {function} OVER {over} AS w, id, v FROM {source}{self.where('a')}"
            f"{' WINDOW w AS ()' if over == 'w' else ''}"
        )
        return self.pick(
            (
                query,
                f"SELECT count(*), sum(q.id), min(q.w) FROM ({query}) AS q",
                f"SELECT q.w, o.v FROM ({query}) AS q {self.pick(_JOINS[:4])} u AS o ON q.id = o.id",
                f"{query} UNION ALL {query}",
                f"SELECT DISTINCT w FROM ({query}) AS q",
            )
        )

    def joined(self):
        kind = self.pick(_JOINS)
        on = self.pick(
            (
                "a.id = c.id",
                "a.v = c.g",
                "a.id < c.v",
                "a.id = c.id AND a.v > 1",
                "TRUE",
            )
        )
        columns = "a.id, a.v" if kind in _JOINS[4:] else "a.id, a.v, c.id, c.v"
        more = ""
        if kind not in _JOINS[4:]:
            more = self.maybe(
                f" {self.pick(_JOINS[:4])} {self.source('d', False)} ON d.id = c.id"
            )
        return f"SELECT {columns} FROM {self.source()} {kind} {self.source('c')} ON {on}{more}{self.where('a')}"

    def correlated(self):
        inner = f"{self.source('i', False)} WHERE i.g = a.g"
        return "SELECT a.id FROM " + self.pick(
            (
                f"t AS a WHERE a.v > (SELECT avg(i.v) FROM {inner})",
                f"u AS a WHERE EXISTS (SELECT 1 FROM {inner} AND i.id <> a.id)",
                f"t AS a WHERE NOT EXISTS (SELECT 1 FROM {inner} AND i.v > a.v)",
                f"b AS a WHERE a.id NOT IN (SELECT i.v FROM {inner} AND i.v IS NOT NULL)",
                f"t AS a WHERE a.v >= ALL (SELECT i.v FROM {inner} AND i.v IS NOT NULL)",
                f"t AS a WHERE a.v = ANY (SELECT i.v FROM {inner})",
                f"(SELECT id, (SELECT count(*) FROM {inner}) AS n, v FROM t AS a) AS a WHERE a.n > 1",
                f"t AS a WHERE (SELECT max(x) FROM (SELECT dense_rank() OVER () AS x FROM {inner}) AS r) = 1",
                f"t AS a WHERE (SELECT i.v FROM {inner} ORDER BY i.id, i.v LIMIT 1) > 1",
            )
        )

    def combined(self):
        one = f"SELECT id, v FROM {self.source()}{self.where('a')}"
        other = f"SELECT id, v FROM {self.source()}{self.where('a')}"
        kind = self.pick(
            ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
        )
        return self.pick(
            (
                f"{one} {kind} {other}",
                f"SELECT v, count(*) FROM ({one} {kind} {other}) AS q GROUP BY v",
                f"SELECT id, {self.pick(('rank', 'percent_rank'))}() OVER () FROM ({one} {kind} {other}) AS q",
                f"SELECT id FROM ({one} {kind} {other}) AS q WHERE id > 2",
            )
        )

    def recursive(self):
        kind = self.pick(("UNION", "UNION ALL"))
        table = self.pick(_TABLES)
        return self.pick(
            (
                f"WITH RECURSIVE r(id, n) AS (SELECT id, 1 FROM {table} AS a{self.where('a')} {kind} "
                f"SELECT c.id, n + 1 FROM r JOIN t AS c ON c.v = r.id WHERE n < 4) SELECT * FROM r",
                f"WITH RECURSIVE r(n) AS (SELECT 1 {kind} SELECT n + 1 FROM r WHERE n < "
                f"(SELECT count(*) FROM {table})) SELECT n, (SELECT sum(v) FROM {table} WHERE id <= n) FROM r",
                f"WITH w AS {self.pick(('', 'MATERIALIZED ', 'NOT MATERIALIZED '))}(SELECT *, rank() OVER () AS k "
                f"FROM {table}) SELECT x.id, y.k FROM w AS x JOIN w AS y ON x.id = y.v",
            )
        )

    def grouped(self):
        sets = self.pick(
            (
                "ROLLUP (g, v)",
                "CUBE (g, v)",
                "GROUPING SETS ((g), (v), ())",
                "g",
                "g, v",
                "ALL",
            )
        )
        item = "g, v" if sets not in ("g", "ALL") else "g"
        return (
            f"SELECT {item}, count(*), {self.pick(_SETS)} AS x FROM {self.source()}"
            f"{self.where('a')} GROUP BY {sets}{self.maybe(' HAVING count(*) > 1')}"
        )

    def limited(self):
        limit = self.pick(
            (
                "LIMIT 2",
                "LIMIT 0",
                "LIMIT 50%",
                "LIMIT 3 OFFSET 2",
                "OFFSET 4",
                "LIMIT (SELECT 2)",
            )
        )
        return f"SELECT id, g, v FROM {self.source()}{self.where('a')} ORDER BY id, g, v {limit}"

    def qualified(self):
        which = self.pick(
            (
                "row_number() OVER (PARTITION BY g ORDER BY id, v)",
                "rank() OVER (ORDER BY v)",
                "dense_rank() OVER ()",
                "count(*) OVER ()",
            )
        )
        return f"SELECT id, g, v FROM {self.source(deep=False)}{self.where('a')} QUALIFY {which} {self.pick(('= 1', '<= 2', '> 1'))}"

    def lateral(self):
        kind = self.pick((", LATERAL", "JOIN LATERAL", "LEFT JOIN LATERAL"))
        on = "" if kind.startswith(",") else " ON TRUE"
        what = self.pick(
            (
                "SELECT i.v FROM u AS i WHERE i.g = a.g",
                "SELECT count(*), max(i.v) FROM b AS i WHERE i.id < a.id",
                "SELECT i.v FROM t AS i WHERE i.id > a.v ORDER BY i.id LIMIT 1",
                "SELECT dense_rank() OVER () FROM u AS i WHERE i.id = a.id",
            )
        )
        return f"SELECT a.id, l.* FROM {self.source()} {kind} ({what}) AS l{on}"

    def asof(self):
        return f"SELECT a.id, c.v FROM {self.source()} ASOF {self.pick(('', 'LEFT '))}JOIN t AS c ON a.id >= c.id"

    def pivoted(self):
        return f"SELECT * FROM (SELECT g, v, id FROM {self.pick(_TABLES)}) PIVOT (sum(v) FOR g IN (0, 1, 2) GROUP BY id)"

    def unnested(self):
        return f"SELECT a.id, unnest([a.v, a.g, NULL]) AS x FROM {self.source()}{self.where('a')}"
