"""Statements of the fixtures and of the differential generator, changed at random.

Most changes keep a statement readable for a parser: another literal, another name, a
subtree of another statement. A statement is a function of its seed and number alone.
"""

from __future__ import annotations

import random
import re
from datetime import date
from decimal import Decimal
from functools import cache

from tests.differential import generator, world
from tests.rewriter.fixture_files import (
    FOLDER,
    MONETDB_FOLDER,
    POSTGRESQL_FOLDER,
    read_cases,
)

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n]*\n?|/\*.*?\*/)
    | (?P<placeholder>%\(\w+\)s|%s)
    | (?P<text>'(?:[^']|'')*')
    | (?P<quoted>"(?:[^"]|"")*")
    | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
    | (?P<word>\w+)
    | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_FOLDERS = {"monetdb": MONETDB_FOLDER, "postgresql": POSTGRESQL_FOLDER}
_NEVER = re.compile(
    # A mutation that gives these another number asks for all numbers there are.
    r"\b(RECURSIVE|range|generate_series|repeat|rpad|lpad|space|read_\w+|sleep|COPY"
    r"|EXPORT|IMPORT|INSTALL|LOAD|ATTACH|getenv|glob)\b|'[^']*\.(csv|parquet|json)'",
    re.IGNORECASE,
)
_KEYWORDS = frozenset(
    [
        "SELECT",
        "FROM",
        "WHERE",
        "GROUP",
        "BY",
        "HAVING",
        "ORDER",
        "LIMIT",
        "OFFSET",
        "JOIN",
        "LEFT",
        "RIGHT",
        "FULL",
        "INNER",
        "CROSS",
        "ON",
        "USING",
        "AS",
        "AND",
        "OR",
        "NOT",
        "IN",
        "IS",
        "NULL",
        "EXISTS",
        "BETWEEN",
        "LIKE",
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "UNION",
        "ALL",
        "EXCEPT",
        "INTERSECT",
        "DISTINCT",
        "WITH",
        "VALUES",
        "INSERT",
        "INTO",
        "UPDATE",
        "SET",
        "DELETE",
        "RETURNING",
        "CONFLICT",
        "DO",
        "NOTHING",
        "DEFAULT",
        "CREATE",
        "TABLE",
        "DROP",
        "PRIMARY",
        "KEY",
        "OVER",
        "PARTITION",
        "WINDOW",
        "QUALIFY",
        "CAST",
        "INTERVAL",
    ]
)
_NAMES = (
    *("id", "balance", "account", "stock", "event", "item", "quantity", "warehouse"),
    *("note", "what", "member", "email", "team", "name", "price", "kind", "sale"),
    *("node", "parent", "label", "code", "log", "thing", "main.account", "a.id"),
    *('"Owner"', '"T x"', '"the id"', "other.account", "excluded.id", "rowid", "ctid"),
    *(
        '"select"',
        '""',
        '"a""b"',
        '"%s"',
        '"?"',
        '"$1"',
        "é",
        '"\u0130"',
        "\u0131",
        "\u017f",
    ),
    *('"' + "n" * 300 + '"', "_cts", "_deleted", "tique.log", '"_u"', "x.y.z.w"),
    *("current_date", "user", "order", "table", "null", "values", "all", "lateral"),
)
_LITERALS = (
    *("0", "1", "-1", "2", "3", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "170141183460469231731687303715884105728", "1e308"),
    *("1e999", "0.1", "1.", ".5", "1e", "0x1F", "00", "1_000", "NULL", "TRUE", "''"),
    *("'a'", "'it''s'", "'%'", "'%s'", "'?'", "'$1'", "'\\'", "'\\''", "E'\\''"),
    *("'" + "x" * 5000 + "'", "'\u202e\u200b'", "'\U0001f600'", "'e\u0301'", "$$x$$"),
    *("$tag$ ' $tag$", "U&'\\0061'", "X'00ff'", "B'101'", "'NaN'", "'infinity'"),
    *("DATE '2024-02-30'", "DATE '2024-02-29'", "TIMESTAMP '294277-01-01'"),
    *("INTERVAL 1 DAY", "INTERVAL '1 day'", "[1, NULL]", "{'a': 1}", "ARRAY[1]", "*"),
    *("CAST(NULL AS INTEGER)", "DEFAULT", "ROW(1, 2)", "(1, 2)", "()", "?", "%s", "%"),
)
_ODD = (
    "\u200b",
    "\u00a0",
    "\ufeff",
    "\u202e",
    "\x00",
    "\x1a",
    "\ud800",
    "\u2028",
    "\uff1b",
)
_SIGNS = (
    *(
        "+",
        "-",
        "*",
        "/",
        "%%",
        "||",
        "=",
        "<>",
        "<",
        ">=",
        "::",
        ".",
        ",",
        ";",
        "(",
        ")",
    ),
    *(
        "[",
        "]",
        "{",
        "}",
        ":",
        ":=",
        "=>",
        "->",
        "->>",
        "@",
        "#",
        "~",
        "!",
        "^",
        "\\",
        "`",
    ),
)
_VALUES = (
    *(
        None,
        0,
        1,
        -1,
        2,
        2**31,
        2**63,
        -(2**63),
        2**127,
        2**200,
        True,
        1.5,
        float("nan"),
    ),
    *(
        float("inf"),
        "",
        "a",
        "it's",
        "%s",
        "\x00",
        "\ud800",
        "x" * 3000,
        b"\xff\x00",
        (),
    ),
    *(Decimal("1.10"), Decimal("NaN"), date(2024, 2, 29), date.max, [1, 2], {"a": 1}),
    object(),
)


@cache
def corpus(engine):
    """The statements that are changed, by their kind."""
    cases = read_cases(folder=_FOLDERS[engine]) if engine in _FOLDERS else []
    fixtures = [case.sql for case in (cases or read_cases(folder=FOLDER))]
    if engine in _FOLDERS:
        fixtures += [case.sql for case in read_cases("select", "change", folder=FOLDER)]
    return {
        "fixture": [sql for sql in fixtures if not _is_definition(sql)],
        "definition": [sql for sql in fixtures if _is_definition(sql)],
        "query": [
            *world.statements("queries.sql"),
            *generator.queries(seed=1, count=300),
        ],
        "change": [
            *world.statements("changes.sql"),
            *generator.changes(seed=1, count=200),
        ],
    }


def _is_definition(sql):
    return sql.lstrip().upper().startswith(("CREATE", "DROP", "ALTER"))


def statement(engine, seed, number):
    """Statement ``number`` of a seed: its text, and its parameters or None."""
    chance = random.Random(f"{seed}:{number}")
    mutator = _Mutator(chance, corpus(engine))
    text = mutator.statement()
    return text, mutator.parameters(text)


class _Mutator:
    def __init__(self, chance, statements):
        self.chance = chance
        self.pick = chance.choice
        self.statements = statements

    def base(self):
        kinds = ("fixture", "query", "change", "definition")
        kind = self.chance.choices(kinds, (45, 28, 24, 3))[0]
        return self.pick(self.statements[kind])

    def statement(self):
        text = self.base()
        changes = (
            *[self.literal] * 5,
            *[self.name] * 5,
            *[self.graft] * 4,
            *[self.wrap] * 3,
            *[self.letters] * 2,
            *[self.sign, self.placeholder, self.delete, self.repeat, self.swap],
            *[self.odd, self.comment, self.nest, self.lengthen],
        )
        for _ in range(self.chance.choices((1, 2, 3), (6, 3, 1))[0]):
            fitting = (self.wrap, self.letters) if _NEVER.search(text) else changes
            text = self.pick(fitting)(text)
        return text

    def parameters(self, text):
        named = re.findall(r"%\((\w+)\)s", text)
        if named and self.chance.random() < 0.95:
            return {name: self.value() for name in named}
        count = len(re.findall(r"(?<!%)%s", text))
        if self.chance.random() < 0.03:
            count += self.pick((-1, 1))
        if not count and self.chance.random() < 0.5:
            return None
        return [self.value() for _ in range(count)]

    def value(self):
        if self.chance.random() < 0.6:
            return self.pick((1, 2, 3, "a", "x"))
        return self.pick(_VALUES)

    # Each takes a text and gives another one.

    def literal(self, text):
        return self._replaced(text, ("number", "text", "placeholder"), _LITERALS)

    def name(self, text):
        return self._replaced(text, ("quoted", "word"), _NAMES)

    def sign(self, text):
        return self._replaced(text, ("sign",), _SIGNS)

    def placeholder(self, text):
        kinds = ("number", "text", "quoted", "word")
        return self._replaced(text, kinds, ("%s", "%s", "%(a)s", "?", "%%", "$1", ":a"))

    def letters(self, text):
        tokens = _tokens(text)
        number = self.chance.randrange(len(tokens))
        kind, token = tokens[number]
        if kind in ("word", "quoted"):
            tokens[number] = kind, self.pick((str.upper, str.lower, str.title))(token)
        return _joined(tokens)

    def delete(self, text):
        tokens = _tokens(text)
        start = self.chance.randrange(len(tokens))
        del tokens[start : start + self.pick((1, 1, 2, 5))]
        return _joined(tokens)

    def repeat(self, text):
        tokens = _tokens(text)
        start = self.chance.randrange(len(tokens))
        piece = tokens[start : start + self.pick((1, 2, 4, 9))]
        tokens[start:start] = [*piece, ("space", " ")]
        return _joined(tokens)

    def swap(self, text):
        tokens = _tokens(text)
        one, other = (self.chance.randrange(len(tokens)) for _ in range(2))
        tokens[one], tokens[other] = tokens[other], tokens[one]
        return _joined(tokens)

    def odd(self, text):
        place = self.chance.randrange(len(text) + 1)
        return text[:place] + self.pick(_ODD) + text[place:]

    def comment(self, text):
        tokens = _tokens(text)
        place = self.chance.randrange(len(tokens) + 1)
        piece = self.pick(
            ("/* ' */", '-- "\n', "/* /* */", "--", "/*%s*/", "/**/", ";")
        )
        tokens.insert(place, ("space", f" {piece} "))
        return _joined(tokens)

    def graft(self, text):
        """Something in brackets gives way to something in another one's brackets."""
        mine, others = _brackets(text), self.base()
        theirs = _brackets(others)
        if not mine:
            return self.literal(text)
        start, end = self.pick(mine)
        if theirs and self.chance.random() < 0.6:
            first, last = self.pick(theirs)
            piece = others[first:last]
        else:
            piece = f"({others})"
        return text[:start] + piece + text[end:]

    def wrap(self, text):
        other = self.base()
        return self.pick(
            (
                f"SELECT * FROM ({text}) AS q",
                f"WITH account AS ({other}) {text}",
                f"WITH w AS ({text}) SELECT * FROM w",
                f"{text} UNION ALL {text}",
                f"({text}) EXCEPT ({other})",
                f"EXPLAIN {text}",
                f"INSERT INTO event {text}",
                f"SELECT ({text}), id FROM account",
                f"SELECT id FROM account WHERE id IN ({text})",
                f"SELECT id FROM account AS o WHERE EXISTS ({text})",
                f"UPDATE account SET balance = ({text})",
                f"DELETE FROM stock WHERE item = ({text})",
                f"{text} ORDER BY 1 LIMIT 2",
                f"{text} RETURNING *",
                f"{text};",
                f"SELECT q.*, dense_rank() OVER () FROM ({text}) AS q",
            )
        )

    def nest(self, text):
        depth = self.pick((2, 5, 20, 60, 200, 800))
        begin, end = self.pick(
            (
                ("(", ")"),
                ("(SELECT ", ")"),
                ("NOT ", ""),
                ("- ", ""),
                ("coalesce(", ", 1)"),
                ("CASE WHEN TRUE THEN ", " END"),
                ("[", "]"),
            )
        )
        return self._around(text, begin * depth, end * depth)

    def lengthen(self, text):
        # DuckDB 1.5 itself takes a minute for some of 500.
        count = self.pick((10, 60))
        piece = self.pick((", 1", " OR id = 1", " || 'a'", " + 1", " AND TRUE"))
        return self._around(text, "", piece * count)

    def _around(self, text, begin, end):
        tokens = _tokens(text)
        places = [
            i for i, (kind, _) in enumerate(tokens) if kind in ("number", "text")
        ] or range(len(tokens))
        number = self.pick(places)
        kind, token = tokens[number]
        tokens[number] = kind, begin + token + end
        return _joined(tokens)

    def _replaced(self, text, kinds, candidates):
        tokens = _tokens(text)
        places = [
            i
            for i, (kind, token) in enumerate(tokens)
            if kind in kinds and token.upper() not in _KEYWORDS
        ]
        if places:
            number = self.pick(places)
            tokens[number] = tokens[number][0], self.pick(candidates)
        return _joined(tokens)


def _tokens(text):
    return [(m.lastgroup, m.group()) for m in _TOKEN.finditer(text)] or [("space", " ")]


def _joined(tokens):
    return "".join(token for _, token in tokens) or " "


def _brackets(text):
    """Where something in round brackets begins and ends."""
    found, opened, at = [], [], 0
    for _, token in _tokens(text):
        if token == "(":
            opened.append(at)
        elif token == ")" and opened:
            found.append((opened.pop(), at + 1))
        at += len(token)
    return found
