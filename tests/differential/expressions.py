"""Random expressions and conditions over the columns in scope.

No expression fails for a row that a condition excludes, since engines evaluate in an
order of their own: no division, no text made a number.
"""

from __future__ import annotations

from tests.differential import kinds

_PATTERNS = ("'a%'", "'%b'", "'_'", "'%'")
COMPARED = ("int", "num", "float", "text", "date", "stamp")
_LITERALS = {
    "int": ("0", "1", "2", "3", "5", "7", "1000"),
    "num": ("0.5", "1.50", "3.10", "7"),
    "float": ("0.5", "1.25"),
    "text": ("'a'", "'b'", "''", "'ab'", "'it''s'", "'é'"),
    "date": kinds.DATE.literals,
    "stamp": kinds.TIMESTAMP.literals,
}


class Expressions:
    """Expressions by a random generator, for one engine and its tables."""

    def __init__(self, engine, chance, schema):
        self.engine = engine
        self.chance = chance
        self.pick = chance.choice
        self.schema = schema
        self._aliases = 0

    def maybe(self, text, share=0.5):
        return text if self.chance.random() < share else ""

    def table(self):
        return self.pick(list(self.schema.tables.values()))

    def alias(self):
        self._aliases += 1
        return f"a{self._aliases}"

    def column(self, scope, *families, exact=False):
        """A column of one of these families in scope, or None."""
        found = [
            f"{alias}.{column.name}"
            for alias, table in scope
            for column in table.columns
            if (not families or column.kind.family in families)
            and (column.kind.exact or not exact)
        ]
        return self.pick(found) if found else None

    def value(self, scope, family, depth=0):
        """A scalar expression."""
        column = self.column(scope, family)
        literal = self.pick(_LITERALS[family])
        if depth >= 2 or self.chance.random() < 0.55:
            return column if column and self.chance.random() < 0.8 else literal
        inner = lambda: self.value(scope, family, depth + 1)  # noqa: E731
        forms = [
            lambda: f"coalesce({inner()}, {literal})",
            lambda: f"nullif({inner()}, {literal})",
            lambda: (
                f"CASE WHEN {self.condition(scope, depth + 1)} THEN {inner()} "
                f"ELSE {inner()} END"
            ),
        ]
        if family == "int":
            forms += [
                lambda: (
                    f"(CAST({inner()} AS DECIMAL(38,0)) + {self.pick(_LITERALS['int'])})"
                ),
                lambda: f"length({self.value(scope, 'text', depth + 1)})",
            ]
            if depth == 0:
                forms.append(lambda: self.scalar_query(scope))
        elif family == "text":
            forms += [
                lambda: f"({inner()} || {literal})",
                lambda: f"upper({inner()})",
                lambda: f"substring({inner()}, 1, 2)",
            ]
        return self.pick(forms)()

    def scalar_query(self, scope):
        """A subquery with one row, correlated or not."""
        table, alias = self.table(), self.alias()
        inner = [(alias, table)]
        what = self.pick(
            ("count(*)", f"max({alias}.i)", f"min({alias}.i)", f"sum({alias}.i)")
        )
        return f"(SELECT {what} FROM {table.name} AS {alias} WHERE {self.link(inner, scope)})"

    def link(self, inner, outer):
        """A condition between two scopes, and more."""
        family = self.pick(("int", "int", "text"))
        one = self.column(inner, family)
        other = self.column(outer, family) or self.pick(_LITERALS[family])
        text = f"{one} = {other}"
        if self.chance.random() < 0.3:
            text += f" AND {self.condition(inner, 2)}"
        return text

    def condition(self, scope, depth=0):
        family = self.pick((*COMPARED[:3], "int", "int", "text", "text"))
        if family != "int" and self.column(scope, family) is None:
            family = "int"
        one = self.value(scope, family, 1)
        literals = _LITERALS[family]
        column = self.column(scope) or one
        forms = [
            lambda: (
                f"{one} {self.pick(('=', '<', '>=', '<>', '='))} "
                f"{self.value(scope, family, 2)}"
            ),
            lambda: f"{one} BETWEEN {self.pick(literals)} AND {self.pick(literals)}",
            lambda: f"{one} IN ({', '.join(self.pick(literals) for _ in range(3))})",
            lambda: f"{column} IS {self.maybe('NOT ')}NULL",
            lambda: self.key_condition(scope),
            lambda: self.key_condition(scope),
        ]
        if family == "text":
            forms.append(
                lambda: f"{one} {self.maybe('NOT ')}LIKE {self.pick(_PATTERNS)}"
            )
        if self.engine != "monetdb":
            forms.append(
                lambda: (
                    f"{one} IS {self.maybe('NOT ')}DISTINCT FROM {self.pick(literals)}"
                )
            )
        if depth < 2:
            forms += [
                lambda: (
                    f"({self.condition(scope, depth + 1)} {self.pick(('AND', 'OR'))} "
                    f"{self.condition(scope, depth + 1)})"
                ),
                lambda: f"NOT ({self.condition(scope, depth + 1)})",
            ]
        if depth < 1:
            forms += [lambda: self.exists(scope), lambda: self.membership(scope)]
        return self.pick(forms)()

    def key_condition(self, scope):
        """Equality with a whole key, or another access path that caches answer."""
        alias, table = self.pick(scope)
        names = table.key or ("i",)
        parts = [
            f"{alias}.{name} = {self.pick(table[name].kind.literals)}" for name in names
        ]
        form = self.chance.random()
        if form < 0.2 and len(names) > 1:
            return parts[0]
        if form < 0.4:
            kind = table[names[0]].kind
            values = ", ".join(self.pick(kind.literals) for _ in range(3))
            return " AND ".join([f"{alias}.{names[0]} IN ({values})", *parts[1:]])
        if form < 0.5 and table[names[-1]].kind.family == "int":
            return " AND ".join([*parts[:-1], f"{alias}.{names[-1]} >= 2"])
        return " AND ".join(parts)

    def exists(self, scope):
        table, alias = self.table(), self.alias()
        return (
            f"{self.maybe('NOT ')}EXISTS (SELECT 1 FROM {table.name} AS {alias} "
            f"WHERE {self.link([(alias, table)], scope)})"
        )

    def membership(self, scope):
        table, alias = self.table(), self.alias()
        family = self.pick(("int", "text"))
        inner = [(alias, table)]
        one = self.column(scope, family) or self.pick(_LITERALS[family])
        what = (
            f"{alias}.{self.pick(table.of(family)).name}"
            if table.of(family)
            else "NULL"
        )
        where = self.condition(inner, 2)
        if self.chance.random() < 0.3:
            where = self.link(inner, scope)
        if self.engine == "monetdb":
            # It loses rows of a UNION ALL that a correlated NOT IN reads (docs/engines/monetdb.md).
            form = "IN"
            where = self.condition(inner, 2)
        else:
            form = self.pick(("IN", "NOT IN", "= ANY", "<> ALL", "> ALL"))
        return (
            f"{one} {form} (SELECT {what} FROM {table.name} AS {alias} WHERE {where})"
        )
