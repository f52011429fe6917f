"""Random statements over the world's tables, the same ones for the same seed."""

from __future__ import annotations

import random

_NUMBERS = {
    "item": ("id", "price", "weight"),
    "sale": ("item", "quantity"),
    "node": ("id", "parent"),
    "log": ("item",),
    "thing": ("id", "huge"),
}
_TEXTS = {
    "item": ("name", "kind"),
    "sale": ("note",),
    "node": ("label",),
    "code": ("code", "meaning"),
    "log": ("text",),
}
_TABLES = ("item", "sale", "node", "code", "log", "thing")
_WORDS = ("'toy'", "'a'", "''", "'again'", "'leaf'", "'n3'", "NULL", "'it''s'")


class _Grammar:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.pick = self.random.choice

    def maybe(self, text, chance=0.5):
        return text if self.random.random() < chance else ""

    def number(self, table, alias):
        if table not in _NUMBERS or self.random.random() < 0.2:
            return str(self.random.randint(0, 20))
        return f"{alias}.{self.pick(_NUMBERS[table])}"

    def text(self, table, alias):
        if table not in _TEXTS:
            return self.pick(_WORDS)
        return f"{alias}.{self.pick(_TEXTS[table])}"

    def condition(self, table, alias, depth=0):
        one, other = self.number(table, alias), self.number(table, alias)
        forms = [
            f"{one} {self.pick(('=', '<', '>=', '<>'))} {other}",
            f"{one} BETWEEN {self.random.randint(0, 9)} AND {self.random.randint(5, 30)}",
            f"{self.text(table, alias)} = {self.pick(_WORDS)}",
            f"{self.text(table, alias)} IS {self.maybe('NOT ')}NULL",
            f"{one} IN (1, 2, 3, 5, 8, 13)",
        ]
        if depth < 2:
            forms += [
                f"({self.condition(table, alias, depth + 1)} "
                f"{self.pick(('AND', 'OR'))} {self.condition(table, alias, depth + 1)})",
                f"NOT ({self.condition(table, alias, depth + 1)})",
                self.exists(table, alias, depth),
                f"{one} {self.maybe('NOT ')}IN (SELECT id FROM node WHERE id > 3)",
            ]
        return self.pick(forms)

    def exists(self, table, alias, depth):
        inner = self.pick(("item", "sale", "log"))
        name = f"q{depth}"
        return (
            f"EXISTS (SELECT 1 FROM {inner} AS {name} WHERE "
            f"{self.number(inner, name)} = {self.number(table, alias)} AND "
            f"{self.condition(inner, name, 2)})"
        )

    def source(self):
        """A FROM clause and the tables in it, by alias."""
        tables = [self.pick(_TABLES) for _ in range(self.pick((1, 1, 2, 2, 3)))]
        text, aliases = f"{tables[0]} AS a", [(tables[0], "a")]
        for number, table in enumerate(tables[1:]):
            alias = "bc"[number]
            kind = self.pick(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
            left = self.number(*aliases[-1])
            aliases.append((table, alias))
            what = table
            if self.random.random() < 0.25:
                what = f"(SELECT * FROM {table} AS i WHERE {self.condition(table, 'i', 2)})"
            text += f" {kind} {what} AS {alias} ON {left} = {self.number(table, alias)}"
        return text, aliases

    def query(self):
        source, aliases = self.source()
        table, alias = self.pick(aliases)
        where = self.maybe(f" WHERE {self.condition(*self.pick(aliases))}", 0.7)
        number, text = self.number(table, alias), self.text(table, alias)
        form = self.random.randrange(6)
        if form == 0:
            return f"SELECT count(*), min({number}), max({text}) FROM {source}{where}"
        if form == 1:
            return (
                f"SELECT {text} AS g, count(*), sum({number}) FROM {source}{where} "
                f"GROUP BY g{self.maybe(' HAVING count(*) > 1')}"
            )
        if form == 2:
            return f"SELECT DISTINCT {number}, {text} FROM {source}{where}"
        if form == 3:
            operation = self.pick(("UNION", "UNION ALL", "EXCEPT", "INTERSECT"))
            return (
                f"SELECT {number} AS n FROM {source}{where} {operation} "
                f"SELECT id FROM item WHERE {self.condition('item', 'item')}"
            )
        if form == 4:
            return (
                f"WITH c AS (SELECT {number} AS n, {text} AS t FROM {source}{where}) "
                "SELECT n, count(*), count(t) FROM c GROUP BY n"
            )
        return f"SELECT {number}, {text}, a.* FROM {source}{where}"

    def change(self):
        table = self.pick(_TABLES)
        where = self.maybe(f" WHERE {self.condition(table, table)}", 0.9)
        form = self.random.randrange(3)
        if form == 0:
            return f"DELETE FROM {table}{where}"
        if form == 1 and table in ("item", "node", "thing"):
            return (
                f"INSERT INTO {table} SELECT * REPLACE (id + 1000 AS id) "
                f"FROM {table}{where}"
            )
        if table in ("code", "thing"):
            column = {"code": "rank", "thing": "huge"}[table]
            return f"UPDATE {table} SET {column} = {column} + 1{where}"
        column = self.pick(_TEXTS[table])
        value = self.pick(("'new'", f"{column} || '?'", f"upper({column})"))
        return f"UPDATE {table} SET {column} = {value}{where}"


def queries(seed, count):
    """Random queries."""
    grammar = _Grammar(seed)
    for _ in range(count):
        yield grammar.query()


def changes(seed, count):
    """Random changes."""
    grammar = _Grammar(seed)
    for _ in range(count):
        yield grammar.change()
