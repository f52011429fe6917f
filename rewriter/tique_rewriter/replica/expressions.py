"""Expressions of PostgreSQL's in DuckDB's words, each with its type."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import expressions as exp

from tique_rewriter.replica import types
from tique_rewriter.replica.functions import (
    CALLS,
    aggregate,
    arithmetic,
    call,
    constant,
    in_range,
    negated,
    rounded,
)
from tique_rewriter.replica.types import Refusal, Type, Value, cast, quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

_ARITHMETIC = {"add": "+", "sub": "-", "mul": "*", "div": "/", "mod": "%"}
_ARGUMENTS = "this expressions expression start length"
_PARTS = (
    f"{_ARGUMENTS} query low high ifs default to is_string decimals unit table "
    "negate big_int typed safe coalesce ignore_nulls"
)
"""Parts of a node: arguments, those that are looked at, and those that say nothing."""
_INTERVAL = re.compile(r"-?\d{1,4} (YEAR|MONTH|WEEK|DAY|HOUR|MINUTE|SECOND)S?")
_NULL = Value("NULL", Type("null"), "0")


def check_parts(node: exp.Expr, allowed: str) -> None:
    """Refuse a node with other parts than these."""
    for key, part in node.args.items():
        if key not in allowed.split() and part not in (None, [], False):
            raise Refusal(f"{type(node).__name__} with {key}")


@dataclass
class Expressions(ABC):
    """Translates the expressions of one query: what is not in an entry has a method."""

    parameters: Sequence[Value | None]

    @abstractmethod
    def _on_column(self, node: exp.Expr) -> Value:
        """Return what a name stands for."""

    @abstractmethod
    def subquery(self, node: exp.Expr) -> tuple[str, list[Value]]:
        """Return the text of a query inside of this one, and its columns."""

    def value(self, node: exp.Expr) -> Value:
        """Return the value of an expression."""
        check_parts(node, _PARTS)
        visit = getattr(self, f"_on_{node.key}", None)
        if visit is None and node.key not in CALLS:
            is_named = isinstance(node, exp.Anonymous)
            raise Refusal(node.name if is_named else type(node).__name__)
        found: Value = visit(node) if visit else call(node.key, *self._arguments(node))
        return call("not", found) if node.args.get("negate") else found

    def condition(self, node: exp.Expr) -> str:
        """Return the text of a truth value."""
        value = self.value(node)
        is_untyped = value.type.name in types.UNTYPED
        return value.to(Type("boolean")).sql if is_untyped else value.sql

    def _arguments(self, node: exp.Expr) -> list[Value]:
        parts = [node.args.get(key) for key in _ARGUMENTS.split()]
        lists = [part if isinstance(part, list) else [part] for part in parts]
        return [self.value(part) for each in lists for part in each if part is not None]

    # Constants and brackets

    def _on_null(self, node: exp.Expr) -> Value:
        return _NULL

    def _on_boolean(self, node: exp.Expr) -> Value:
        return Value(str(node.this).upper(), Type("boolean"))

    def _on_literal(self, node: exp.Expr) -> Value:
        if node.is_string:
            return Value(quoted(node.name), Type("unknown"), literal=node.name)
        return types.number(node.name, may_be_integer=True)

    def _on_parameter(self, node: exp.Expr) -> Value:
        value = self.parameters[int(node.this.name) - 1]
        if value is None:
            raise Refusal(f"a value of the class of parameter {node.this.name}")
        return value

    def _on_paren(self, node: exp.Expr) -> Value:
        return self.value(node.this)

    # Operators

    def _on_neg(self, node: exp.Expr) -> Value:
        return negated(self.value(node.this))

    def _on_add(self, node: exp.Expr) -> Value:
        left, operator = self.value(node.this), _ARITHMETIC[node.key]
        if isinstance(node.expression, exp.Interval):
            text = f"{node.expression.name} {node.expression.text('unit')}"
            is_moment = left.type.name in ("date", "timestamp") and operator in "+-"
            if not _INTERVAL.fullmatch(text) or not is_moment:
                raise Refusal("an interval but of one unit beside a date or timestamp")
            moved = f"{in_range(left)} {operator} INTERVAL {quoted(text)}"
            return Value(cast(moved, Type("timestamp")), Type("timestamp"))
        right = self.value(node.expression)
        if left.type.name == "date" and right.type.name not in types.UNTYPED:
            return call(node.key, left, right)
        return arithmetic(operator, left, right)

    _on_sub = _on_mul = _on_div = _on_mod = _on_add

    def _on_is(self, node: exp.Expr) -> Value:
        if isinstance(node.expression, exp.Null):
            return Value(f"({self.value(node.this).sql} IS NULL)", Type("boolean"))
        return call("is", *self._arguments(node))

    def _on_between(self, node: exp.Expr) -> Value:
        value = self.value(node.this)
        low, high = (self.value(node.args[side]) for side in ("low", "high"))
        return call("and", call("gte", value, low), call("lte", value, high))

    def _on_in(self, node: exp.Expr) -> Value:
        value, query = self.value(node.this), node.args.get("query")
        if query is None:
            items = [self.value(item) for item in node.expressions]
            one, *others = [each.sql for each in types.common([value, *items])]
            return Value(f"({one} IN ({', '.join(others)}))", Type("boolean"))
        sql, columns = self.subquery(query)
        left, right = types.common([value, columns[0].seen("c1")])
        if right.sql != "c1":
            sql = f"SELECT {right.sql} FROM ({sql}) AS q(c1)"  # noqa: S608
        return Value(f"({left.sql} IN ({sql}))", Type("boolean"))

    def _on_exists(self, node: exp.Expr) -> Value:
        return Value(f"(EXISTS ({self.subquery(node.this)[0]}))", Type("boolean"))

    def _on_subquery(self, node: exp.Expr) -> Value:
        sql, columns = self.subquery(node)
        return columns[0].seen(f"({sql})")

    def _on_like(self, node: exp.Expr) -> Value:
        value, pattern = self._arguments(node)
        # (char(n) keeps its blanks here, and only here.)
        text = value.sql if value.type.name == "bpchar" else types.as_text(value).sql
        sql = f"{text} LIKE {types.as_text(pattern).sql}"
        if pattern.literal is None or "\\" in pattern.literal:
            sql += " ESCAPE '\\'"
        return Value(f"({sql})", Type("boolean"))

    # Choices

    def _on_case(self, node: exp.Expr) -> Value:
        ifs = node.args["ifs"]
        if node.this is None:
            tests = [self.condition(each.this) for each in ifs]
        else:
            value = self.value(node.this)
            tests = [call("eq", value, self.value(each.this)).sql for each in ifs]
        results = [self.value(each.args["true"]) for each in ifs]
        results.append(self.value(node.args.get("default") or exp.Null()))
        return _chosen(tests, results)

    def _on_coalesce(self, node: exp.Expr) -> Value:
        values = self._arguments(node)
        return _chosen([f"{value.sql} IS NOT NULL" for value in values[:-1]], values)

    def _on_nullif(self, node: exp.Expr) -> Value:
        value, other = self._arguments(node)
        names = {value.type.name, other.type.name} - types.UNTYPED
        if len(names) > 1 and not names <= {*types.INTEGERS}:
            raise Refusal("NULLIF of two types")
        return _chosen([call("eq", value, other).sql], [_NULL, value])

    # Functions with forms of their own

    def _on_extract(self, node: exp.Expr) -> Value:
        return call("extract", _unit(node.name), self.value(node.expression))

    def _on_timestamptrunc(self, node: exp.Expr) -> Value:
        return call("date_trunc", _unit(node.text("unit")), self.value(node.this))

    def _on_round(self, node: exp.Expr) -> Value:
        value, places = self.value(node.this), node.args.get("decimals")
        if value.type.name != "numeric":
            raise Refusal(f"round({value.type.name})")
        return rounded(value, constant(self.value(places), 0) if places else 0)

    def _on_cast(self, node: exp.Expr) -> Value:
        value = self.value(node.this)
        name = node.args["to"].sql("postgres").lower().replace(", ", ",")
        is_exact = value.type.name in types.EXACT
        if is_exact and name == "decimal":
            return types.as_numeric(value)
        type_ = types.named(name)
        if is_exact and type_.name == "numeric":
            return Value(cast(value.sql, type_), type_, str(type_.scale))
        if "(" in name:
            raise Refusal(f"a cast to {name}")
        if value.type.name in types.UNTYPED or value.type == type_:
            return value.to(type_)
        return call(f"::{type_.name.split()[0]}", value)

    # Aggregates

    def _on_count(self, node: exp.Expr) -> Value:
        argument, distinct = node.this, ""
        if isinstance(argument, exp.Star) and node.key == "count":
            return Value("count(*)", Type("bigint"))
        if isinstance(argument, exp.Distinct):
            check_parts(argument, "expressions")
            (argument, *others), distinct = argument.expressions, "DISTINCT "
            if others:
                raise Refusal("DISTINCT of several values")
        return aggregate(node.key, self.value(argument), distinct)

    _on_sum = _on_avg = _on_min = _on_max = _on_count


def _unit(name: str) -> Value:
    """A unit of time as an argument."""
    return Value(name.lower(), Type(name.lower()))


def _case(tests: Sequence[str], parts: Sequence[str]) -> str:
    pairs = zip(tests, parts, strict=False)
    whens = "".join(f"WHEN {test} THEN {part} " for test, part in pairs)
    return f"(CASE {whens}ELSE {parts[-1]} END)"


def _chosen(tests: Sequence[str], values: Sequence[Value]) -> Value:
    """The first value of which the test is true, or the last one."""
    same = types.common(values)
    if any(value.type.name == "bpchar" for value in values):
        raise Refusal("a choice of values of char(n)")
    pairs = zip(values, same, strict=True)
    digits = {new.shown for old, new in pairs if old.type.name != "null"}
    shown = min(digits, key=str, default=None)
    if len(digits) > 1:
        parts = [value.shown or "0" for value in same]
        shown = None if None in digits else _case(tests, parts)
    sql = _case(tests, [value.sql for value in same])
    return Value(sql, same[0].type, shown, types.collation_of(same))
