"""Random CASE and COALESCE, as an update may assign them."""

from __future__ import annotations

from decimal import Decimal

COLUMNS = {
    "i": "INTEGER",
    "j": "INTEGER",
    "s": "SMALLINT",
    "b": "BIGINT",
    "d": "DECIMAL(9, 2)",
    "e": "DECIMAL(9, 2)",
    "f": "DECIMAL(18, 18)",
    "w": "VARCHAR(8)",
    "v": "VARCHAR(8)",
    "k": "BOOLEAN",
    "l": "BOOLEAN",
}
ALIKE = {"i": "ij", "s": "s", "b": "b", "d": "de", "f": "f", "w": "wv", "k": "kl"}
"""The columns of each type, by the first of them."""
FAMILY = {name: family for family, names in ALIKE.items() for name in names}
ORDERED = "isbdf"
ADDED = "isbd"
WORDS = ["", "a", "b ", "it's", "long one"]


class Cases:
    """Expressions and rows; the generator of random numbers decides."""

    def __init__(self, random):
        self._random = random
        self._parameters = []

    def row(self):
        """A value or NULL for each column."""
        return [self._value(name) if self._may(0.75) else None for name in COLUMNS]

    def assignment(self):
        """The column, the text of its new value, and the parameters in it."""
        self._parameters = []
        target = self._random.choice(sorted(ALIKE))
        text = self._chosen(target, self._random.choice([1, 1, 2]))
        if target in ADDED and self._may(0.2):
            text = f"{text} {self._sign()} {self._simple(target)}"
        return target, text, self._parameters

    def _may(self, probability):
        return self._random.random() < probability

    def _sign(self):
        return self._random.choice("+-")

    def _value(self, name):
        pick = self._random.choice
        match FAMILY[name]:
            case "w":
                return pick(WORDS)
            case "k":
                return pick([True, False])
            case "d":
                number = pick([-9, -1, 0, 1, 4, -500, 25, 499])
                return number if self._may(0.3) else Decimal(number).scaleb(-2)
            case "f":
                return pick([Decimal(0), Decimal("0.5"), Decimal("0.125")])
            case family:
                wide = [2**40] if family == "b" else []
                return pick([*range(-3, 4), 300, 32767, -32767, *wide])

    def _given(self, name):
        """A literal or a placeholder."""
        value = self._value(name)
        if self._may(0.4):
            self._parameters.append(value)
            return "%s"
        if isinstance(value, str):
            return "'" + value.replace("'", "''") + "'"
        return str(value).upper()

    def _column(self, family):
        return self._random.choice(ALIKE[family])

    def _simple(self, family):
        if self._may(0.45):
            return self._column(family)
        if self._may(0.15):
            return self._random.choice(sorted(COLUMNS))
        if self._may(0.15):
            return "NULL"
        if family in ADDED and self._may(0.4):
            return f"({self._column(family)} {self._sign()} {self._given(family)})"
        return self._given(family)

    def _chosen(self, family, depth):
        inner = self._chosen if depth > 1 and self._may(0.7) else self._simple_value
        if self._may(0.35):
            return f"COALESCE({self._column(family)}, {inner(family, depth - 1)})"
        if self._may(0.2):
            name = self._random.choice(sorted(COLUMNS))
            first, second = self._given(name), self._column(family)
            return (
                f"CASE {name} WHEN {first} THEN {second} "
                f"ELSE {inner(family, depth - 1)} END"
            )
        if self._may(0.15):
            return f"CASE WHEN {self._condition(2)} THEN {self._column(family)} END"
        text = f"CASE WHEN {self._condition(2)} THEN {inner(family, depth - 1)}"
        if self._may(0.4):
            text += f" WHEN {self._condition(1)} THEN {self._simple(family)}"
        return text + f" ELSE {self._column(family)} END"

    def _simple_value(self, family, _):
        return self._simple(family)

    def _condition(self, depth):
        if depth and self._may(0.5):
            kind = self._random.choice(["NOT", "AND", "OR"])
            left = self._condition(depth - 1)
            if kind == "NOT":
                return f"NOT ({left})"
            return f"({left} {kind} {self._condition(depth - 1)})"
        name = self._random.choice(sorted(COLUMNS))
        if self._may(0.25):
            return f"{name} IS {self._random.choice(['', 'NOT '])}NULL"
        if self._may(0.25):
            return f"{name} IN ({self._given(name)}, {self._given(name)})"
        is_ordered = FAMILY[name] in ORDERED
        if is_ordered and self._may(0.15):
            return f"{name} BETWEEN {self._given(name)} AND {self._given(name)}"
        sign = self._random.choice(["=", "<>", *(["<", ">="] if is_ordered else [])])
        return f"{name} {sign} {self._given(name)}"
