"""Random steps of an episode: queries, changes, DDL, and the events around them."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, replace
from decimal import Decimal

from tests.differential import kinds
from tests.differential.decision_support import templates
from tests.differential.grammar import Queries
from tests.differential.schemas import Column, Designer, Schema, Table

STEPS = 50
"""Statements of an episode, if nothing else is asked for."""
_MANY_TABLES = 6
_MANY_ROWS = 40
"""Rows that a table is given before some, or all, are deleted: joins multiply them."""


@dataclass(frozen=True)
class Step:
    """A statement, or an event: ``commit``, ``rollback``, ``savepoint``, ``rollback to``,
    ``checkpoint``, ``reopen``, ``other`` (connection), ``check`` (all tables).

    Only a statement has ``sql``. ``before`` and ``after`` are the table that DDL replaces or makes.
    """

    kind: str
    sql: str = ""
    parameters: tuple | None = None
    ordered: bool = False
    moves: str = ""
    """The table whose keys an UPDATE may exchange among its rows."""
    before: Table | None = None
    after: Table | None = None

    @property
    def is_statement(self):
        return bool(self.sql)


class Episode:
    """A schema and the steps on it: a function of engine, seed, number and length.

    And of which statements were accepted, since later ones name the tables that there are.
    """

    def __init__(self, engine, seed, number, length=STEPS):
        self.engine = engine
        self.length = length
        self.chance = random.Random(f"{engine}:{seed}:{number}")
        self.pick = self.chance.choice
        self.is_family = self.chance.random() < 0.15
        self.buffered = self.pick((2000, 2000, 3))
        """Rows by one statement from which writes are staged."""
        self.certifier = self.pick(("memory", "query"))
        self.schema = Schema()
        usable = None
        if self.chance.random() < 0.2:
            # Mostly ordinary columns: the paths that caches serve.
            usable = [
                k for k in kinds.KINDS[engine] if k.family in ("int", "text", "num")
            ]
        self.designer = Designer(engine, self.chance, usable)
        self.queries = Queries(engine, self.chance, self.schema)
        self.on = self.queries.on
        self.is_open = False
        self.savepoints = 0
        self.views = 0
        self.given = Counter()
        self.doubled = Counter()

    @property
    def oracle(self):
        """The engine that gives the right answers.

        For FOREIGN KEY it is PostgreSQL: DuckDB refuses too much (duckdb#20246, #13819,
        #4214), and MonetDB aborts.
        """
        return "postgresql" if self.is_family else self.engine

    def steps(self):
        """Generate steps; the caller sends whether each was accepted by both."""
        if self.is_family:
            made = self.designer.family()
        else:
            made = [self.designer.table() for _ in range(self.pick((2, 3, 3, 4)))]
        for table in made:
            yield Step("ddl", table.sql, after=table)
        for table in made:
            for _ in range(self.pick((1, 2, 4))):
                yield self.insert(table, rows=self.pick((1, 3, 5)))
            yield from self._boundary()
        for _ in range(self.length):
            if not self.schema.tables:
                return
            yield from self._event()
            step = self.statement()
            accepted = yield step
            if accepted and step.kind == "ddl":
                self._learn(step)
            if step.kind == "change" and self.chance.random() < 0.25:
                yield Step("check")

    def _learn(self, step):
        if step.before is not None:
            self.schema.drop(step.before.name)
        if step.after is not None:
            self.schema.put(step.after)

    def note(self, step):
        """Take note of the first tables."""
        self._learn(step)

    def _boundary(self):
        draw = self.chance.random()
        if draw < 0.5:
            yield self._end("commit")
            if draw < 0.2:
                yield Step("checkpoint")
        elif draw < 0.55:
            yield self._end("commit")
            yield Step("reopen")

    def _end(self, kind):
        self.is_open = False
        self.savepoints = 0
        return Step(kind)

    def _event(self):
        draw = self.chance.random()
        if draw < 0.16:
            yield self._end("commit")
            if self.chance.random() < 0.3:
                yield Step("checkpoint")
            if self.chance.random() < 0.4:
                yield Step("other")
            elif self.chance.random() < 0.06:
                yield Step("reopen")
        elif draw < 0.20:
            yield self._end("rollback")
        elif draw < 0.25:
            self.savepoints += 1
            yield Step("savepoint")
        elif draw < 0.28 and self.savepoints:
            yield Step("rollback to")
        elif draw < 0.31:
            # While a transaction is open.
            yield Step("checkpoint")

    def statement(self):
        draw = self.chance.random()
        table = self.on.table()
        if self.is_family:
            if draw < 0.25:
                names = ", ".join(table.names)
                return Step(
                    "query", f"SELECT {names} FROM {table.name} ORDER BY {names}"
                )
            return self.change(table)
        if draw < 0.02:
            return self.definition(table)
        if draw < 0.10:
            tables = list(self.schema.tables)
            names = {letter: self.pick(tables) for letter in "abcd"}
            sql = self.pick(templates(self.engine)).format(**names)
            return Step("query", sql, ordered="LIMIT" in sql)
        if draw < 0.6:
            return self.query(table)
        return self.change(table)

    def query(self, table):
        if self.chance.random() < 0.2:
            where, parameters = self.bound(table)
            what = self.pick(("*", ", ".join(table.names), "count(*)"))
            return Step(
                "query", f"SELECT {what} FROM {table.name} WHERE {where}", parameters
            )
        sql = self.queries.query()
        return Step("query", sql, ordered=" ORDER BY " in sql and "LIMIT" in sql)

    def bound(self, table):
        """A condition with parameters, by key if its types are simple."""
        names = [n for n in table.key if table[n].kind.family in _VALUES] or ["i"]
        kinds_ = [table[name].kind for name in names]
        if len(names) == 1 and self.chance.random() < 0.3:
            values = tuple(self.pick(_VALUES[kinds_[0].family]) for _ in range(3))
            return f"{names[0]} IN (%s, %s, %s)", values
        values = tuple(self.pick(_VALUES[kind.family]) for kind in kinds_)
        return " AND ".join(f"{name} = %s" for name in names), values

    # -- changes

    def change(self, table):
        if self.given[table.name] > _MANY_ROWS:
            self.given[table.name] = self.doubled[table.name] = 0
            return self.thin_out(table)
        forms = [
            *[self.update] * 6,
            *[self.insert] * 5,
            *[self.delete] * 3,
            self.insert_query,
            self.insert_bound,
        ]
        if not self.is_family:
            forms += [self.update_bound, self.delete_bound]
            if self.engine != "monetdb":
                forms += [*[self.upsert] * 2, self.returning]
            forms += [
                self.update_from,
                *([self.delete_using] if self.engine != "monetdb" else []),
            ]
        return self.pick(forms)(table)

    def literal(self, column, *, nulls=True):
        if nulls and self.chance.random() < 0.15:
            return "NULL"
        return self.pick(column.kind.literals)

    def row(self, table, names):
        return ", ".join(
            self.literal(
                table[name], nulls=name not in table.key or self.chance.random() < 0.03
            )
            for name in names
        )

    def insert(self, table, rows=None):
        names = list(table.names)
        listed = ""
        if self.chance.random() < 0.35:
            names = [
                n for n in names if n in table.key or self.chance.random() < 0.6
            ] or names
            self.chance.shuffle(names)
            listed = f" ({', '.join(names)})"
        elif self.chance.random() < 0.02:
            return Step("change", f"INSERT INTO {table.name} DEFAULT VALUES")
        count = rows or self.pick((1, 1, 1, 2, 4))
        self.given[table.name] += count
        values = ", ".join(f"({self.row(table, names)})" for _ in range(count))
        return Step("change", f"INSERT INTO {table.name}{listed} VALUES {values}")

    def insert_bound(self, table):
        names = [n for n in table.names if table[n].kind.family in _VALUES]
        if not names or any(n not in names for n in table.key):
            return self.insert(table)
        values = tuple(self.pick(_VALUES[table[n].kind.family]) for n in names)
        marks = ", ".join(["%s"] * len(names))
        return Step(
            "change",
            f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks})",
            values,
        )

    def insert_query(self, table):
        """Rows of the table again, under other keys; so it grows, but not for ever."""
        self.doubled[table.name] += 1
        if self.doubled[table.name] > 3:
            return self.delete(table)
        alias = self.on.alias()
        items = []
        for column in table.columns:
            if (
                column.name in table.keyed
                and column.kind.family == "int"
                and self.chance.random() < 0.9
            ):
                items.append(f"{alias}.{column.name} + {self.pick((8, 20, 100))}")
            elif self.engine == "monetdb" and column.kind.name == "BLOB":
                # Rows would share one, until a change of either spoils it (its README).
                items.append(self.literal(column))
            else:
                items.append(f"{alias}.{column.name}")
        where = self.condition(table, alias)
        return Step(
            "change",
            f"INSERT INTO {table.name} ({', '.join(table.names)}) SELECT {', '.join(items)} "
            f"FROM {table.name} AS {alias}{where}",
        )

    def condition(self, table, alias=None, share=0.9):
        """A WHERE clause, mostly by key."""
        scope = [(alias or table.name, table)]
        if self.is_family:
            name = self.pick(table.columns).name
            column = table[name]
            return f" WHERE {scope[0][0]}.{name} = {self.pick(column.kind.literals)}"
        if self.chance.random() > share:
            # MonetDB leaves the last row of an UPDATE of all as it is (its README), also
            # beside a condition on a column that it knows to have no NULL.
            if self.engine != "monetdb":
                return ""
            names = [
                f"{scope[0][0]}.{c.name}"
                for c in table.columns
                if not c.not_null and c.name not in table.keyed
            ]
            if names:
                name = self.pick(names)
                return f" WHERE {name} IS NULL OR {name} IS NOT NULL"
        made = (
            self.on.key_condition(scope)
            if self.chance.random() < 0.5
            else self.on.condition(scope)
        )
        return f" WHERE {made}"

    def assignments(self, table, alias=None, *, keys=0.12):
        """SET's assignments, and whether they may move keys."""
        columns = [
            c
            for c in table.columns
            if c.name not in table.keyed or self.chance.random() < keys
        ] or list(table.columns)
        chosen = self.chance.sample(columns, min(len(columns), self.pick((1, 1, 2, 3))))
        seen = table
        if self.engine == "monetdb":
            # It takes the new value of a column that is set before, and refuses keys that stay
            # as they are after other rows were deleted.
            others = tuple(c for c in table.columns if c not in chosen)
            seen = replace(table, columns=others)
        scope = [(alias or table.name, seen)]
        made = [f"{c.name} = {self._assigned(c, seen, scope)}" for c in chosen]
        return ", ".join(made), bool({c.name for c in chosen} & table.keyed)

    def _assigned(self, column, table, scope):
        family = column.kind.family
        forms = [lambda: self.literal(column), lambda: self.literal(column)]
        same = [c.name for c in table.columns if c.kind == column.kind]
        if same:
            forms.append(lambda: f"{scope[0][0]}.{self.pick(same)}")
        # Where there is none MonetDB has an error in place of NULL.
        if column.default or not self.is_family:
            forms.append(lambda: "DEFAULT")
        own = f"{scope[0][0]}.{column.name}"
        if family == "int":
            forms += [lambda: f"{own} + 1", lambda: f"{own} - {self.pick((1, 2, 10))}"]
        if family in ("num", "float"):
            forms.append(lambda: f"{own} * 2")
        if family == "text" and not self.is_family:
            forms += [lambda: f"{own} || '!'", lambda: f"upper({own})"]
        if family == "int" and column.kind.name == "BIGINT" and not self.is_family:
            forms.append(lambda: self.on.scalar_query(scope))
        return self.pick(forms)()

    def update(self, table):
        text, moves = self.assignments(table)
        return Step(
            "change",
            f"UPDATE {table.name} SET {text}{self.condition(table)}",
            moves=table.name if moves else "",
        )

    def update_bound(self, table):
        where, parameters = self.bound(table)
        names = [
            n
            for n in table.names
            if table[n].kind.family in _VALUES and n not in table.keyed
        ]
        if not names:
            return self.update(table)
        name = self.pick(names)
        value = self.pick(_VALUES[table[name].kind.family])
        return Step(
            "change",
            f"UPDATE {table.name} SET {name} = %s WHERE {where}",
            (value, *parameters),
        )

    def delete(self, table):
        return Step(
            "change", f"DELETE FROM {table.name}{self.condition(table, share=0.96)}"
        )

    def thin_out(self, table):
        where = self.pick(("", " WHERE i > 1", " WHERE i < 5", " WHERE s <> 'a'"))
        return Step("change", f"DELETE FROM {table.name}{where}")

    def delete_bound(self, table):
        where, parameters = self.bound(table)
        return Step("change", f"DELETE FROM {table.name} WHERE {where}", parameters)

    def _partner(self):
        """A table with one row for each value of its first column, or None."""
        found = [t for t in self.schema.tables.values() if t.key == ("id",)]
        found = [t for t in found if t["id"].kind.family == "int"]
        return self.pick(found) if found else None

    def update_from(self, table):
        other = self._partner()
        if other is None:
            return self.update(table)
        names = [
            c.name
            for c in table.of("int")
            if c.name not in table.keyed and c.kind.name == "INTEGER"
        ]
        texts = [c.name for c in table.of("text") if c.name not in table.keyed]
        sets = [f"{self.pick(texts)} = f.s"] if texts and "s" in other.names else []
        if names and "i" in other.names:
            sets.append(f"{self.pick(names)} = f.i")
        if not sets or "i" not in table.names:
            return self.update(table)
        more = self.on.maybe(" AND " + self.on.condition([("f", other)], 2))
        return Step(
            "change",
            f"UPDATE {table.name} SET {', '.join(sets)} FROM {other.name} AS f "
            f"WHERE f.id = {table.name}.i{more}",
        )

    def delete_using(self, table):
        other = self._partner()
        if other is None or "i" not in table.names:
            return self.delete(table)
        return Step(
            "change",
            f"DELETE FROM {table.name} USING {other.name} AS f WHERE f.id = {table.name}.i",
        )

    def upsert(self, table):
        """One row: DuckDB updates a row twice that a statement meets twice (docs/sql/rows.md)."""
        if not table.key:
            return self.insert(table)
        names = list(table.names)
        values = ", ".join(
            self.literal(table[n], nulls=n not in table.key) for n in names
        )
        rest = [c for c in table.columns if c.name not in table.keyed]
        text = f"INSERT INTO {table.name} AS o VALUES ({values}) ON CONFLICT"
        if not rest or self.chance.random() < 0.3:
            return Step("change", f"{text} ({', '.join(table.key)}) DO NOTHING")
        column = self.pick(rest)
        value = self.pick(
            (
                f"excluded.{column.name}",
                self.literal(column),
                f"o.{column.name}",
            )
        )
        where = (
            self.on.maybe(" WHERE o.i IS NOT NULL", 0.2) if "i" in table.names else ""
        )
        return Step(
            "change",
            f"{text} ({', '.join(table.key)}) DO UPDATE SET {column.name} = {value}{where}",
        )

    def returning(self, table):
        what = self.pick(("*", ", ".join(table.names[:2]), f"{table.names[0]} AS x"))
        form = self.pick((self.insert, self.update, self.delete))
        step = form(table)
        if "DEFAULT VALUES" in step.sql:
            return step
        return replace(step, sql=f"{step.sql} RETURNING {what}")

    # -- DDL

    def definition(self, table):
        draw = self.chance.random()
        are_many = len(self.schema.tables) >= _MANY_TABLES
        if draw < 0.3 and not are_many:
            made = self.designer.table()
            return Step("ddl", made.sql, after=made)
        if are_many or (draw < 0.4 and len(self.schema.tables) > 2):
            return Step("ddl", f"DROP TABLE {table.name}", before=table)
        if draw < 0.6:
            name = self.pick(table.of("int", "text")).name
            self.views += 1
            return Step("ddl", f"CREATE INDEX x{self.views} ON {table.name} ({name})")
        if draw < 0.75:
            return self.alteration(table)
        self.views += 1
        if draw < 0.9:
            alias = self.on.alias()
            where = self.on.condition([(alias, table)], 1)
            return Step(
                "ddl",
                f"CREATE VIEW v{self.views} AS SELECT i, n, s FROM {table.name} AS {alias} WHERE {where}",
            )
        made = Table(f"t{next(self.designer.numbers)}", table.columns)
        return Step(
            "ddl",
            f"CREATE TABLE {made.name} AS SELECT * FROM {table.name}",
            after=replace(
                made, columns=tuple(Column(c.name, c.kind) for c in table.columns)
            ),
        )

    def alteration(self, table):
        """ALTER TABLE: of columns that no key, CHECK or other statement needs."""
        self.views += 1
        draw = self.chance.random()
        checks = " ".join(column.check or "" for column in table.columns)
        free = [
            column
            for column in table.columns
            if column.name not in {*table.keyed, "i", "n", "s"}
            and column.name not in checks
        ]
        if draw < 0.3 or not free:
            kind = self.pick(kinds.PORTABLE)
            made = Column(f"z{self.views}", kind, default=self.pick(kind.literals))
            return self._altered(table, f"ADD COLUMN {made.sql}", table.columns, made)
        column = self.pick(free)
        others = tuple(each for each in table.columns if each is not column)
        if draw < 0.55:
            return self._altered(table, f"DROP COLUMN {column.name}", others)
        if draw < 0.75:
            new = replace(column, name=f"z{self.views}")
            change = f"RENAME COLUMN {column.name} TO {new.name}"
        elif draw < 0.9:
            new = replace(column, default=self.pick(column.kind.literals))
            change = f"ALTER COLUMN {column.name} SET DEFAULT {new.default}"
        else:
            new = replace(column, default=None)
            change = f"ALTER COLUMN {column.name} DROP DEFAULT"
        columns = (new if each is column else each for each in table.columns)
        return self._altered(table, change, columns)

    def _altered(self, table, change, columns, *more):
        return Step(
            "ddl",
            f"ALTER TABLE {table.name} {change}",
            before=table,
            after=replace(table, columns=(*columns, *more)),
        )


_VALUES = {
    "int": tuple(range(8)),
    "num": (Decimal("1.50"), Decimal("-2.25"), Decimal(7), 3),
    "text": ("a", "b", "", "it's", "é", "100%", "%s", None),
    "bool": (True, False, None),
}
