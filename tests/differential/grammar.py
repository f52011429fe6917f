"""Random queries: joins, groups, windows, set operations, WITH, correlation, recursion."""

from __future__ import annotations

from tests.differential.expressions import Expressions

_AGGREGATES = (
    *("count(*)", "count({i})", "sum({i})", "min({i})", "max({s})", "avg({i})"),
    *("sum({n})", "min({n})", "count(DISTINCT {i})", "count(DISTINCT {s})"),
)
_WINDOWS = (
    "row_number()",
    "rank()",
    "dense_rank()",
    "count(*)",
    "sum({i})",
    "max({i})",
    "lag({i})",
)
_FRAMES = (
    "",
    "",
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " ROWS UNBOUNDED PRECEDING",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
)


class Queries:
    """Queries by a random generator.

    A result has no order, or one of all of its columns, which are then of types whose
    equal values are the same. So no result depends on the order in which rows are read.
    """

    def __init__(self, engine, chance, schema):
        self.engine = engine
        self.chance = chance
        self.pick = chance.choice
        self.schema = schema
        self.on = Expressions(engine, chance, schema)
        self.maybe = self.on.maybe

    def query(self):
        forms = [
            *[self.point] * 5,
            *[self.plain] * 4,
            *[self.joined] * 4,
            *[self.grouped] * 4,
            *[self.windows] * 3,
            *[self.combined] * 3,
            *[self.with_] * 3,
            *[self.limited] * 2,
            self.recursive,
            self.distinct,
            self.listed,
        ]
        if self.engine != "monetdb":
            forms += [self.lateral, self.grouping_sets, self.filtered]
        if self.engine == "duckdb":
            forms += [self.qualified, self.asof, self.pivoted, self.from_first]
        return self.pick(forms)()

    def where(self, scope, share=0.7):
        return self.maybe(f" WHERE {self.on.condition(scope)}", share)

    def source(self, most=3):
        """A FROM clause and its scope."""
        scope = [(self.on.alias(), self.on.table())]
        text = self._relation(*scope[0])
        for _ in range(self.pick(range(most))):
            alias, table = self.on.alias(), self.on.table()
            kind = self.pick(
                ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "CROSS JOIN")
            )
            new = [(alias, table)]
            text += f" {kind} {self._relation(alias, table)}"
            if kind != "CROSS JOIN":
                text += f" ON {self._join(kind, new, scope)}"
            scope += new
        return text, scope

    def _join(self, kind, new, scope):
        family = self.pick(("int", "int", "text"))
        one, other = self.on.column(new, family), self.on.column(scope, family)
        text = f"{other} = {one}"
        # PostgreSQL has only mergeable conditions there, and MonetDB errs beside others.
        if kind in ("JOIN", "LEFT JOIN") and self.engine != "monetdb":
            text += self.maybe(f" AND {self.on.condition(new, 2)}", 0.3)
        return text

    def _relation(self, alias, table):
        if self.chance.random() < 0.8:
            return f"{table.name} AS {alias}"
        inner = self.on.alias()
        return (
            f"(SELECT * FROM {table.name} AS {inner} "
            f"WHERE {self.on.condition([(inner, table)], 1)}) AS {alias}"
        )

    def filled(self, text, scope):
        """An aggregate or window function, with columns in scope."""
        i = self.on.column(scope, "int") or "1"
        return text.format(
            i=i,
            n=self.on.column(scope, "num") or i,
            s=self.on.column(scope, "text") or "'x'",
        )

    def items(self, scope, count=None):
        """Some results, each with a name."""
        found = []
        for number in range(count or self.pick((1, 2, 3))):
            family = self.pick(("int", "text", "num", "int"))
            found.append(f"{self.on.value(scope, family)} AS x{number}")
        return ", ".join(found)

    def exact(self, scope, count):
        """Columns to group or sort by."""
        found = [
            self.on.column(scope, "int", "text", "date", exact=True)
            for _ in range(count)
        ]
        return list(dict.fromkeys(column for column in found if column)) or ["1"]

    def point(self):
        table, alias = self.on.table(), self.on.alias()
        what = self.pick(("*", f"{alias}.*", ", ".join(table.names[:2]), "count(*)"))
        return (
            f"SELECT {what} FROM {table.name} AS {alias} "
            f"WHERE {self.on.key_condition([(alias, table)])}"
        )

    def plain(self):
        source, scope = self.source(1)
        what = self.pick(("*", self.items(scope)))
        return f"SELECT {what} FROM {source}{self.where(scope)}"

    def joined(self):
        source, scope = self.source()
        what = self.pick((self.items(scope), f"{scope[-1][0]}.*", self.items(scope, 4)))
        return f"SELECT {what} FROM {source}{self.where(scope)}"

    def listed(self):
        """A join in the old style."""
        one, other = self.on.table(), self.on.table()
        scope = [(self.on.alias(), one), (self.on.alias(), other)]
        text = ", ".join(f"{table.name} AS {alias}" for alias, table in scope)
        return (
            f"SELECT {self.items(scope)} FROM {text} "
            f"WHERE {self.on.link(scope[:1], scope[1:])}{self.maybe(f' AND {self.on.condition(scope)}')}"
        )

    def grouped(self):
        source, scope = self.source()
        by = self.exact(scope, self.pick((1, 1, 2)))
        made = [
            self.filled(self.pick(_AGGREGATES), scope)
            for _ in range(self.pick((1, 2, 3)))
        ]
        items = [f"{name} AS g{i}" for i, name in enumerate(by)]
        items += [f"{text} AS m{i}" for i, text in enumerate(made)]
        if self.chance.random() < 0.3:
            items = items[len(by) :]
            return f"SELECT {', '.join(items)} FROM {source}{self.where(scope)}"
        having = self.maybe(
            f" HAVING {self.pick(('count(*) > 1', made[0] + ' IS NOT NULL'))}", 0.3
        )
        return (
            f"SELECT {', '.join(items)} FROM {source}{self.where(scope)} "
            f"GROUP BY {', '.join(by)}{having}"
        )

    def filtered(self):
        source, scope = self.source(2)
        text = self.filled(self.pick(_AGGREGATES), scope)
        return (
            f"SELECT {text} FILTER (WHERE {self.on.condition(scope, 1)}), count(*) "
            f"FROM {source}{self.where(scope)}"
        )

    def grouping_sets(self):
        source, scope = self.source(2)
        by = self.exact(scope, 2)
        names = ", ".join(by)
        sets = self.pick(
            (f"ROLLUP ({names})", f"CUBE ({names})", f"GROUPING SETS (({names}), ())")
        )
        if by == ["1"]:
            return self.grouped()
        text = self.filled(self.pick(_AGGREGATES), scope)
        return f"SELECT {names}, grouping({by[0]}), {text} FROM {source}{self.where(scope)} GROUP BY {sets}"

    def windows(self):
        source, scope = self.source(2)
        function = self.pick(_WINDOWS)
        order = self._total(scope)
        partition = self.maybe(f"PARTITION BY {self.exact(scope, 1)[0]} ")
        frame = (
            self.pick(_FRAMES) if function.startswith(("count", "sum", "max")) else ""
        )
        if order is None:
            # Peers get the same value whatever their order is.
            function = self.pick(("rank()", "dense_rank()", "count(*)", "sum({i})"))
            order, frame = ", ".join(self.exact(scope, 2)), ""
        text = self.filled(function, scope)
        return (
            f"SELECT {self.items(scope, 1)}, {text} OVER ({partition}ORDER BY {order}{frame}) AS w "
            f"FROM {source}{self.where(scope)}"
        )

    def _total(self, scope):
        """The keys of all tables, if they have one of exact types: an order of all rows."""
        names = []
        for alias, table in scope:
            if not table.key or not all(
                table[name].kind.family in ("int", "text", "date") for name in table.key
            ):
                return None
            names += [f"{alias}.{name}" for name in table.key]
        return ", ".join(names) if len(scope) == 1 else None

    def distinct(self):
        source, scope = self.source(2)
        return f"SELECT DISTINCT {', '.join(self.exact(scope, 2))} FROM {source}{self.where(scope)}"

    def combined(self):
        parts = []
        # Of all of the engine's integers: whether one that does not fit is converted, although
        # the other side is empty, is a matter of DuckDB's plan.
        widest = "HUGEINT" if self.engine == "duckdb" else "BIGINT"
        operations = ("UNION", "UNION ALL", "EXCEPT", "INTERSECT")
        if self.engine != "monetdb":
            operations += ("EXCEPT ALL", "INTERSECT ALL")
        for _ in range(self.pick((2, 2, 3))):
            source, scope = self.source(1)
            i = self.on.column(scope, "int") or "1"
            s = self.on.column(scope, "text") or "'x'"
            parts.append(
                f"SELECT CAST({i} AS {widest}) AS i, {s} AS s FROM {source}{self.where(scope)}"
            )
        text = parts[0]
        for part in parts[1:]:
            text = f"{text} {self.pick(operations)} {part}"
        if self.chance.random() < 0.4:
            text = f"SELECT i, count(*) AS n FROM ({text}) AS q GROUP BY i"
        return text

    def with_(self):
        source, scope = self.source(2)
        other = self.on.table()
        name = self.pick(("w", other.name))
        hint = (
            self.pick(("", "", "MATERIALIZED ", "NOT MATERIALIZED "))
            if self.engine != "monetdb"
            else ""
        )
        body = f"SELECT {self.on.value(scope, 'int')} AS n, {self.on.value(scope, 'text')} AS t FROM {source}{self.where(scope)}"
        use = self.pick(
            (
                f"SELECT n AS n, count(*) AS c, count(t) AS d FROM {name} GROUP BY n",
                f"SELECT x.n, y.t FROM {name} AS x JOIN {name} AS y ON x.n = y.n",
                f"SELECT n, t FROM {name} WHERE n IN (SELECT n FROM {name} WHERE t IS NOT NULL)",
            )
        )
        if name == "w":
            table, alias = other, self.on.alias()
            use = self.pick(
                (
                    use,
                    f"SELECT w.t, {alias}.* FROM w JOIN {table.name} AS {alias} ON w.n = {alias}.i",
                )
            )
        return f"WITH {name} AS {hint}({body}) {use}"

    def limited(self):
        source, scope = self.source(2)
        columns = self.exact(scope, 3)
        direction = self.maybe(" DESC")
        order = ", ".join(f"{name}{direction}" for name in columns)
        limit = self.pick(("LIMIT 1", "LIMIT 3", "LIMIT 2 OFFSET 1", "LIMIT 0", ""))
        return f"SELECT {', '.join(columns)} FROM {source}{self.where(scope)} ORDER BY {order} {limit}".strip()

    def recursive(self):
        table, other = self.on.table(), self.on.table()
        kind = self.pick(("UNION", "UNION ALL"))
        return (
            f"WITH RECURSIVE r(i, d) AS (SELECT CAST(a.i AS BIGINT), 1 FROM {table.name} AS a"
            f"{self.where([('a', table)])} {kind} SELECT CAST(b.i + 1 AS BIGINT), r.d + 1 "
            f"FROM r JOIN {other.name} AS b ON b.i = r.i WHERE r.d < 3) "
            "SELECT d, count(*) AS c, sum(i) AS s FROM r GROUP BY d"
        )

    def lateral(self):
        source, scope = self.source(1)
        table, alias = self.on.table(), self.on.alias()
        kind = self.pick((", LATERAL", "JOIN LATERAL", "LEFT JOIN LATERAL"))
        what = self.pick(("count(*) AS c", f"max({alias}.i) AS c", f"{alias}.i AS c"))
        return (
            f"SELECT {self.items(scope, 2)}, l.c FROM {source} {kind} (SELECT {what} "
            f"FROM {table.name} AS {alias} WHERE {self.on.link([(alias, table)], scope)}) AS l"
            f"{'' if kind.startswith(',') else ' ON TRUE'}"
        )

    def qualified(self):
        source, scope = self.source(1)
        order = self._total(scope)
        function = "row_number()" if order else "rank()"
        return (
            f"SELECT {self.items(scope, 2)} FROM {source}{self.where(scope)} QUALIFY {function} OVER "
            f"({self.maybe(f'PARTITION BY {self.exact(scope, 1)[0]} ')}ORDER BY "
            f"{order or self.exact(scope, 1)[0]}) <= 2"
        )

    def asof(self):
        table, other = self.on.table(), self.on.table()
        return (
            f"SELECT a.i, b.i FROM {table.name} AS a ASOF {self.maybe('LEFT ')}JOIN "
            f"(SELECT DISTINCT i FROM {other.name}) AS b ON a.i >= b.i"
        )

    def pivoted(self):
        table = self.on.table()
        return (
            f"SELECT * FROM (SELECT i, s, n FROM {table.name}) "
            "PIVOT (sum(n) FOR s IN ('a', 'b') GROUP BY i)"
        )

    def from_first(self):
        source, scope = self.source(2)
        return self.pick(
            (
                f"FROM {source}{self.where(scope)}",
                f"FROM {source} SELECT {self.items(scope)}",
            )
        )
