"""Random queries, composed of what the entries have."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COLUMNS = {
    "integer": ["a.id", "a.s", "a.i", "a.b", "x.id"],
    "numeric": ["a.n", "a.m", "a.n", "a.w"],
    "double": ["a.d"],
    "boolean": ["a.f"],
    "text": ["x.t", "x.v", "x.c"],
    "date": ["y.d"],
    "timestamp": ["y.ts"],
}
_CONSTANTS = {
    "integer": ["0", "1", "-1", "2", "5", "7", "100", "-32768", "2147483647", "NULL"],
    "numeric": ["0.5", "-2.50", "1.00", "0.0001", "100.00", "3.14159"],
    "double": ["0.5", "0"],
    "boolean": ["TRUE", "FALSE", "NULL"],
    "text": ["'a'", "''", "'ab '", "'é'", "'%b'"],
    "date": ["DATE '2024-02-29'", "DATE '1969-12-31'"],
    "timestamp": ["TIMESTAMP '2024-01-31 10:00:00'"],
}
_FORMS = {
    "integer": [
        "({integer} + {integer})",
        "({integer} - {integer})",
        "({integer} * {integer})",
        "({integer} / {integer})",
        "({integer} % {integer})",
        "-({integer})",
        "coalesce({integer}, {integer})",
        "nullif({integer}, {integer})",
        "length({text})",
        "CASE WHEN {boolean} THEN {integer} ELSE {integer} END",
        "({date} - {date})",
        "({integer})::bigint",
        "({numeric})::integer",
        "CASE {integer} WHEN {integer} THEN {integer} END",
    ],
    "numeric": [
        "({numeric} + {numeric})",
        "({numeric} - {integer})",
        "({numeric} * {numeric})",
        "({numeric} / {numeric})",
        "({numeric} / {integer})",
        "({integer} / {numeric})",
        "round({numeric}, 2)",
        "round({numeric})",
        "-({numeric})",
        "({integer} * {numeric})",
        "coalesce({numeric}, {numeric})",
        "coalesce({numeric}, 0)",
        "CASE WHEN {boolean} THEN {numeric} ELSE 0 END",
        "({numeric})::numeric(12,3)",
        "CASE WHEN {boolean} THEN {numeric} ELSE {numeric} END",
        "extract(year FROM {timestamp})",
        "extract(dow FROM {date})",
        "({integer})::numeric",
    ],
    "double": ["({integer})::double precision"],
    "boolean": [
        "({integer} = {integer})",
        "({integer} < {numeric})",
        "({numeric} >= {numeric})",
        "({text} = {text})",
        "({text} < {text})",
        "({text} LIKE {text})",
        "({boolean} AND {boolean})",
        "({boolean} OR {boolean})",
        "(NOT {boolean})",
        "({integer} IS NULL)",
        "({boolean} IS TRUE)",
        "({integer} IS DISTINCT FROM {integer})",
        "({integer} BETWEEN {integer} AND {integer})",
        "({integer} IN ({integer}, {integer}))",
        "({numeric} NOT IN ({numeric}, {integer}))",
        "({date} > {date})",
        "({timestamp} <= {timestamp})",
        "({date} < {timestamp})",
        "({double} > {double})",
        "({double} <= {integer})",
        "({text} NOT LIKE 'a%')",
    ],
    "text": [
        "({text} || {text})",
        "substring({text}, 1, 2)",
        "substring({text}, 2)",
        "coalesce({text}, {text})",
        "CASE WHEN {boolean} THEN {text} ELSE {text} END",
        "({integer})::text",
        "nullif({text}, {text})",
    ],
    "date": ["({date} + {integer})", "({timestamp})::date", "coalesce({date}, {date})"],
    "timestamp": [
        "({timestamp} + INTERVAL '1 month')",
        "({date} - INTERVAL '3 days')",
        "date_trunc('month', {timestamp})",
        "({date})::timestamp",
    ],
}
_AGGREGATES = [
    "count(*)",
    "count({integer})",
    "count(DISTINCT {integer})",
    "sum({integer})",
    "sum({numeric})",
    "avg({integer})",
    "avg({numeric})",
    "min({integer})",
    "max({numeric})",
    "min({text})",
    "max({date})",
    "round(avg({numeric}), 2)",
    "sum({numeric}) / count(*)",
    "coalesce(sum({numeric}), 0)",
    "sum(CASE WHEN {boolean} THEN {numeric} ELSE 0 END)",
    "1 + sum({numeric})",
    "100.0 * sum(CASE WHEN {boolean} THEN {numeric} ELSE 0 END) / sum({numeric})",
]
_FROM = (
    "FROM numbers AS a LEFT JOIN texts AS x ON a.id = x.id "
    "LEFT JOIN moments AS y ON a.id = y.id"
)


class _Maker:
    def __init__(self, random: Random) -> None:
        self.random = random

    def of(self, kind: str, depth: int) -> str:
        """Return an expression of a type."""
        chance = self.random.random()
        if depth <= 0 or chance < 0.3:
            return self.random.choice(_COLUMNS[kind])
        if chance < 0.4:
            return self.random.choice(_CONSTANTS[kind])
        return self.filled(self.random.choice(_FORMS[kind]), depth - 1)

    def filled(self, form: str, depth: int) -> str:
        """Return a form with expressions in its places."""
        for kind in _COLUMNS:
            while "{" + kind + "}" in form:
                form = form.replace("{" + kind + "}", self.of(kind, depth), 1)
        return form

    def query(self) -> str:
        """Return a query."""
        where = f"WHERE a.id NOT IN (7, 8, 10) AND {self.of('boolean', 2)}"
        if self.random.random() < 0.2:
            where = ""
        kinds = [self.random.choice([*_COLUMNS]) for _ in range(3)]
        if self.random.random() < 0.5:
            items = ", ".join(f"{self.of(k, 3)} AS c{n}" for n, k in enumerate(kinds))
            return f"SELECT a.id, {items} {_FROM} {where} ORDER BY {self.of(kinds[0], 1)}, a.id, x.id, y.id"
        made = [self.filled(self.random.choice(_AGGREGATES), 2) for _ in range(3)]
        items = ", ".join(f"{item} AS c{n}" for n, item in enumerate(made))
        if self.random.random() < 0.5:
            return f"SELECT {items} {_FROM} {where}"
        key = self.of(self.random.choice(["boolean", "integer", "text"]), 1)
        return f"SELECT {key} AS k, {items} {_FROM} {where} GROUP BY {key}"


def some(seed: int, number: int) -> Iterator[str]:
    """Yield so many queries."""
    maker = _Maker(Random(seed))
    for _ in range(number):
        yield maker.query()
