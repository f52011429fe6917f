"""Expressions of PostgreSQL's in DuckDB's words, each with its type."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.replica import functions, types
from tique_rewriter.replica.numbers import arithmetic, negated, rounded
from tique_rewriter.replica.types import Refusal, Type, Value, cast, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
_COMPARISONS = {"eq": "=", "neq": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">="}
_COMPARISONS["nullsafeeq"] = "IS NOT DISTINCT FROM"
_COMPARISONS["nullsafeneq"] = "IS DISTINCT FROM"
_AGGREGATES = {"count": "count", "sum": "sum", "avg": "avg", "min": "min", "max": "max"}
_AGGREGATES |= {"logicaland": "bool_and", "logicalor": "bool_or"}
_LEVELS = (
    "or|and|not|is|{}|between in like escape|dpipe|add sub|mul div mod|neg|collate"
)
_LEVELS = _LEVELS.format(" ".join(_COMPARISONS))
_STRENGTHS = {
    key: n for n, level in enumerate(_LEVELS.split("|")) for key in level.split()
}
"""How strongly PostgreSQL's operators bind; on others brackets have no effect."""
_CHAINS = re.compile("or|and|not|dpipe|add|sub|mul|div|mod|escape")
"""Those of which the left side may be another one of the same strength."""
_ARGUMENTS = "this expressions expression substr replacement start length"
_PARTS = (
    f"{_ARGUMENTS} query low high ifs default to is_string decimals unit table "
    "negate position big_int typed safe coalesce ignore_nulls"
)
"""Parts of a node: arguments, those that are looked at, and those that say nothing."""
_INTERVAL = re.compile(r"-?\d{1,4} (YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND)S?")
_BOOLEAN, _TIMESTAMP = Type("boolean"), Type("timestamp")


def check_parts(node: exp.Expr, allowed: str) -> None:
    """Refuse a node with other parts than these."""
    for key, part in node.args.items():
        if key not in allowed.split() and part not in (None, [], False):
            raise Refusal(f"{type(node).__name__} with {key}")


def _check_binding(node: exp.Expr) -> None:
    """Refuse operators that the parser may have bound otherwise than PostgreSQL does."""
    own = _STRENGTHS.get(node.key, -1)
    for place, part in node.args.items():
        strength = _STRENGTHS.get(getattr(part, "key", ""), len(_STRENGTHS))
        is_chain = place == "this" or own < 2
        if strength < own or (
            strength == own and not (is_chain and _CHAINS.fullmatch(node.key))
        ):
            raise Refusal("operators that bind in another order: put brackets")


def _truth(sql: str) -> Value:
    return Value(f"({sql})", _BOOLEAN)


def _compared(operator: str, left: Value, right: Value) -> Value:
    is_ordering = operator in ("<", "<=", ">", ">=")
    one, other = types.comparable(left, right, is_ordering=is_ordering)
    return _truth(f"{one} {operator} {other}")


@dataclass
class Expressions:
    """Translates the expressions of one query.

    ``column`` and ``subquery`` translate names, and queries inside of this one.
    """

    parameters: Sequence[Value | None]
    column: Callable[[exp.Expr], Value]
    subquery: Callable[[exp.Expr], tuple[str, list[Value]]]

    def value(self, node: exp.Expr, behind: str = "") -> Value:
        """Return the value of an expression; FILTER comes ``behind`` an aggregate."""
        check_parts(node, _PARTS)
        _check_binding(node)
        if node.key in _AGGREGATES:
            found = self._aggregate(node, behind)
        elif behind:
            raise Refusal("FILTER behind another function")
        elif node.key in _COMPARISONS:
            both = self.value(node.this), self.value(node.expression)
            found = _compared(_COMPARISONS[node.key], *both)
        elif node.key in _HANDLERS:
            found = _HANDLERS[node.key](self, node)
        else:
            side = (node.args.get("position") or "") if node.key == "trim" else ""
            name = type(node).__name__ + side.replace("BOTH", "")
            if name not in functions.ENTRIES:
                raise Refusal(node.name if node.key == "anonymous" else name)
            found = functions.call(name, self._arguments(node))
        return _truth(f"NOT {found.sql}") if node.args.get("negate") else found

    def condition(self, node: exp.Expr) -> str:
        """Return the text of a truth value."""
        value = types.known(self.value(node), "boolean")
        if value.type != _BOOLEAN:
            raise Refusal(f"a {value.type.name} as a condition")
        return value.sql

    def _conditions(self, node: exp.Expr, word: str) -> Value:
        both = self.condition(node.this), self.condition(node.expression)
        return _truth(f" {word} ".join(both))

    def _arguments(self, node: exp.Expr) -> list[Value]:
        parts = [node.args.get(key) for key in _ARGUMENTS.split()]
        lists = [part if isinstance(part, list) else [part] for part in parts]
        return [self.value(part) for each in lists for part in each if part is not None]

    def _arithmetic(self, node: exp.Expr) -> Value:
        left, operator = self.value(node.this), _ARITHMETIC[node.key]
        if isinstance(node.expression, exp.Interval):
            text = f"{node.expression.name} {node.expression.text('unit')}"
            is_moment = left.type.name in ("date", "timestamp") and operator in "+-"
            if not _INTERVAL.fullmatch(text) or not is_moment:
                raise Refusal("an interval but of one unit beside a date or timestamp")
            moved = f"{functions.in_range(left)} {operator} INTERVAL {quoted(text)}"
            return Value(cast(moved, _TIMESTAMP), _TIMESTAMP)
        right = self.value(node.expression)
        if left.type.name == "date" and right.type.name != "unknown":
            return functions.call(type(node).__name__, [left, right])
        return arithmetic(operator, left, right)

    def _literal(self, node: exp.Expr) -> Value:
        if node.is_string:
            return Value(quoted(node.name), Type("unknown"), literal=node.name)
        return types.number(node.name, may_be_integer=True)

    def _parameter(self, node: exp.Expr) -> Value:
        value = self.parameters[int(node.this.name) - 1]
        if value is None:
            raise Refusal(f"a value of the class of parameter {node.this.name}")
        return value

    def _is(self, node: exp.Expr) -> Value:
        if isinstance(node.expression, exp.Null):
            return _truth(f"{self.value(node.this).sql} IS NULL")
        return self._conditions(node, "IS NOT DISTINCT FROM")

    def _between(self, node: exp.Expr) -> Value:
        value = self.value(node.this)
        low = _compared(">=", value, self.value(node.args["low"]))
        high = _compared("<=", value, self.value(node.args["high"]))
        return _truth(f"{low.sql} AND {high.sql}")

    def _in(self, node: exp.Expr) -> Value:
        value, query = self.value(node.this), node.args.get("query")
        listed, items = self.subquery(query) if query else ("", [])
        items = items or [self.value(item) for item in node.expressions]
        equal = [types.comparable(value, item, is_ordering=False) for item in items]
        listed = listed or ", ".join(item for _, item in equal)
        is_changed = query and (len(items) != 1 or equal[0][1] != items[0].sql)
        if is_changed or len({left for left, _ in equal}) != 1:
            raise Refusal("IN with values or columns of other types, or with several")
        return _truth(f"{equal[0][0]} IN ({listed})")

    def _subquery(self, node: exp.Expr) -> Value:
        sql, columns = self.subquery(node)
        if len(columns) != 1:
            raise Refusal("a subquery for several columns as a value")
        return columns[0].seen(f"({sql})")

    def _like(self, node: exp.Expr) -> Value:
        escape, like = "\\", node
        if node.key == "escape":
            escape, like = node.expression.name, node.this
            check_parts(like, _PARTS)
            _check_binding(like)
        if like.key != "like" or len(escape) != 1:
            raise Refusal("ESCAPE without LIKE and one character")
        value, pattern = self.value(like.this), self.value(like.expression)
        # (char(n) keeps its blanks here, and only here.)
        text = value.sql if value.type.name == "bpchar" else types.as_text(value).sql
        sql = f"({text} LIKE {types.as_text(pattern).sql}"
        if pattern.literal is None or escape in pattern.literal:
            sql += f" ESCAPE {quoted(escape)}"
        is_negated = like is not node and like.args.get("negate")
        return _truth(f"NOT {sql})" if is_negated else f"{sql})")

    def _collate(self, node: exp.Expr) -> Value:
        if node.expression.name != "C":
            raise Refusal(f"COLLATE {node.expression.name}")
        return replace(types.as_text(self.value(node.this)), collation="C")

    def _case(self, node: exp.Expr) -> Value:
        ifs, tests = node.args["ifs"], []
        for each in ifs:
            if node.this is None:
                tests.append(self.condition(each.this))
            else:
                value = types.known(self.value(node.this), "text")
                tests.append(_compared("=", value, self.value(each.this)).sql)
        results = [self.value(each.args["true"]) for each in ifs]
        results.append(self.value(node.args.get("default") or exp.Null()))
        same = types.common(results)
        return _chosen(same, tests, _case(tests, [value.sql for value in same]))

    def _choice(self, node: exp.Expr) -> Value:
        same = types.common(self._arguments(node))
        sql = f"{node.key}({', '.join(value.sql for value in same)})"
        if node.key == "coalesce":
            return _chosen(
                same, [f"{value.sql} IS NOT NULL" for value in same[:-1]], sql
            )
        found = _chosen(same, (), sql)
        types.check_order(found)
        return found

    def _nullif(self, node: exp.Expr) -> Value:
        value, other = self._arguments(node)
        are_integers = {value.type.name, other.type.name} <= {*types.INTEGERS}
        if other.type.name not in (value.type.name, "unknown") and not are_integers:
            raise Refusal("NULLIF of two types")
        equal = _compared("=", value, other)
        sql = f"(CASE WHEN {equal.sql} THEN NULL ELSE {value.sql} END)"
        return replace(value, sql=sql, literal=None)

    def _round(self, node: exp.Expr) -> Value:
        value, places = self.value(node.this), node.args.get("decimals")
        if value.type.name != "numeric":
            raise Refusal(f"round() of a {value.type.name}")
        return rounded(
            value, functions.constant(self.value(places), 0) if places else 0
        )

    def _cast(self, node: exp.Expr) -> Value:
        value, to = self.value(node.this), node.args["to"]
        name = getattr(to.this, "value", "").lower()
        sizes = ",".join(size.name for size in to.expressions)
        if name == "decimal" and value.type.name in types.EXACT and not sizes:
            return types.as_numeric(value)
        type_ = types.named(f"{name}({sizes})" if sizes else name)
        if type_.name == "numeric" and value.type.name in types.EXACT:
            return Value(cast(value.sql, type_), type_, str(type_.scale))
        if sizes or type_.name == "bpchar":
            raise Refusal(f"a cast to {name}({sizes})")
        value = types.known(value, type_.name)
        if value.type == type_:
            return value
        return functions.call(f"::{type_.name.split()[0]}", [value])

    def _aggregate(self, node: exp.Expr, behind: str) -> Value:
        argument, distinct = node.this, ""
        if isinstance(argument, exp.Star) and node.key == "count":
            return Value(f"count(*){behind}", Type("bigint"))
        if isinstance(argument, exp.Distinct):
            check_parts(argument, "expressions")
            (argument, *others), distinct = argument.expressions, "DISTINCT "
            if others:
                raise Refusal("DISTINCT of several values")
        value = self.value(argument)
        return functions.aggregate(_AGGREGATES[node.key], value, distinct, behind)


def _case(tests: Sequence[str], parts: Sequence[str]) -> str:
    pairs = zip(tests, parts, strict=False)
    whens = "".join(f"WHEN {test} THEN {part} " for test, part in pairs)
    return f"(CASE {whens}ELSE {parts[-1]} END)"


def _chosen(values: Sequence[Value], tests: Sequence[str], sql: str) -> Value:
    """One of some values of a type, each behind its test; without tests any of them."""
    given = [v for v in values if not v.sql.replace("CAST(", "").startswith("NULL ")]
    shown = {value.shown for value in given}
    digits = shown.pop() if len(shown) == 1 else None
    if tests and shown and None not in shown:
        digits = _case(tests, [value.shown or "0" for value in values])
    return Value(sql, values[0].type, digits, types.collation_of(values))


_HANDLERS: dict[str, Callable[[Expressions, exp.Expr], Value]] = {
    **dict.fromkeys(_ARITHMETIC, Expressions._arithmetic),
    **dict.fromkeys(["coalesce", "greatest", "least"], Expressions._choice),
    "like": Expressions._like,
    "escape": Expressions._like,
    "and": lambda self, node: self._conditions(node, "AND"),
    "or": lambda self, node: self._conditions(node, "OR"),
    "not": lambda self, node: _truth(f"NOT {self.condition(node.this)}"),
    "exists": lambda self, node: _truth(f"EXISTS ({self.subquery(node.this)[0]})"),
    "boolean": lambda self, node: Value(str(node.this).upper(), _BOOLEAN),
    "null": lambda self, node: Value("NULL", Type("unknown"), "0"),
    "column": lambda self, node: self.column(node),
    "paren": lambda self, node: self.value(node.this),
    "neg": lambda self, node: negated(self.value(node.this)),
    "filter": lambda self, node: self.value(
        node.this, f" FILTER (WHERE {self.condition(node.expression.this)})"
    ),
    "extract": lambda self, node: functions.call(
        node.name.lower(), [self.value(node.expression)]
    ),
    "timestamptrunc": lambda self, node: functions.call(
        f"to{node.text('unit')}", [self.value(node.this)]
    ),
}
for _name in [
    "literal",
    "parameter",
    "is",
    "between",
    "in",
    "subquery",
    "collate",
    "case",
    "nullif",
]:
    _HANDLERS[_name] = getattr(Expressions, f"_{_name}")
_HANDLERS |= {"round": Expressions._round, "cast": Expressions._cast}
