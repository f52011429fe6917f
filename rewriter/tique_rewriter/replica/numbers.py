"""Arithmetic of integers and numerics, with PostgreSQL's digits and errors.

Sums and products of DECIMAL are exact, or an error where they do not fit. A quotient has
as many digits as PostgreSQL computes, which depends on its size: integers of 128 bits
divide what both sides are without their points.
"""

from __future__ import annotations

from tique_rewriter.replica import types
from tique_rewriter.replica.types import INTEGERS, Refusal, Value, cast, numeric


def checked(condition: str, sql: str) -> str:
    """Return an expression: an error where a condition is false, NULL where it is NULL."""
    otherwise = f"WHEN NOT ({condition}) THEN {types.ERROR} END"
    return f"CASE WHEN {condition} THEN {sql} {otherwise}"


def negated(value: Value) -> Value:
    """Return a number with the other sign."""
    if value.type.name not in types.EXACT:
        raise Refusal(f"the negative of a {value.type.name}")
    if value.literal is not None and not value.literal.startswith("-"):
        text = f"-{value.literal}"
        if value.type.name == "numeric":
            return types.number(text)
        return Value(cast(text, value.type), value.type, literal=text)
    return Value(f"({cast('0', value.type)} - {value.sql})", value.type, value.shown)


def arithmetic(operator: str, left: Value, right: Value) -> Value:
    """Return the result of ``+``, ``-``, ``*``, ``/`` or ``%`` of exact numbers."""
    names = {left.type.name, right.type.name}
    if not names <= types.EXACT or (operator == "%" and "numeric" in names):
        raise Refusal(f"{operator} with {' and '.join(sorted(names))}")
    if operator in "/%" and right.literal and not float(right.literal):
        # (Of constants it is an error wherever it stands.)
        raise Refusal("a division by the constant zero")
    if names <= set(INTEGERS):
        return _of_integers(operator, left, right)
    left, right = types.as_numeric(left), types.as_numeric(right)
    if operator == "/":
        return quotient(left, right)
    (_, digits, scale), (_, others, other) = left.type, right.type
    type_, form = numeric(digits + others, scale + other), "({} + {})"
    if operator != "*":
        behind, form = max(scale, other), "greatest({}, {})"
        type_ = numeric(max(digits - scale, others - other) + 1 + behind, behind)
    if type_.digits > 18:
        # (DuckDB would keep to 64 bits, in which the result may not fit.)
        left = left.to(numeric(types.MOST_DIGITS, scale))
    shown = None
    if left.shown is not None and right.shown is not None:
        are_fixed = left.is_fixed and right.is_fixed
        shown = str(type_.scale) if are_fixed else form.format(left.shown, right.shown)
    return Value(f"({left.sql} {operator} {right.sql})", type_, shown)


def _of_integers(operator: str, left: Value, right: Value) -> Value:
    type_ = max(left.type, right.type, key=lambda each: INTEGERS[each.name])
    one, other = left.to(type_).sql, right.to(type_).sql
    sql = f"({one} {'//' if operator == '/' else operator} {other})"
    if operator in "/%" and right.literal is None:
        sql = checked(f"{other} <> 0 OR {one} IS NULL", sql)
    return Value(sql, type_)


_STEPS = (
    "'a': CAST(abs(q['n']) * {pad} AS VARCHAR), 'b': CAST(abs(q['d']) * {pads} AS VARCHAR)",
    """'s': 16 - 4 * (
    CASE WHEN q['n'] = 0 THEN 0 ELSE (length(q['a']) - 1) // 4 - {places} END
    - ((length(q['b']) - 1) // 4 - {others})
    - CASE WHEN CAST(left(q['a'], (length(q['a']) - 1) % 4 + 1) AS INTEGER)
    <= CAST(left(q['b'], (length(q['b']) - 1) % 4 + 1) AS INTEGER) THEN 1 ELSE 0 END)""",
    "'s': {digits}",
    """'s': q['s'], 'v': CAST(sign(q['n']) * sign(q['d']) * (
    (2 * abs(q['n']) * CAST(rpad('1', CAST(q['s'] + {shift} AS INTEGER), '0') AS HUGEINT)
    + abs(q['d'])) // (2 * abs(q['d'])))
    * CAST(rpad('1', CAST(25 - q['s'] AS INTEGER), '0') AS HUGEINT) AS DECIMAL(38,0))
    * CAST('0.000000000000000000000001' AS DECIMAL(24,24))""",
)
"""The way from sides without points to a quotient ``v`` that shows ``s`` digits."""


def quotient(left: Value, right: Value) -> Value:
    """Return the quotient of two numerics, rounded to the digits that PostgreSQL selects.

    They are 16 significant ones at least: ``select_div_scale()`` estimates by the first
    digit of base 10,000 of either side. A DECIMAL holds 24 behind the point.
    """
    scale, other = left.type.scale, right.type.scale
    least = max(scale, other)
    if least > 10 or left.shown is None or right.shown is None:
        raise Refusal("a quotient of quotients")
    is_fixed = left.is_fixed and right.is_fixed
    enough = "" if is_fixed else f" AND q['s'] >= {least}"
    condition = f"q['n'] IS NULL OR (q['d'] <> 0 AND q['s'] <= 24{enough})"
    filled = {
        "pad": f"1{'0' * (-scale % 4)}",
        "pads": f"1{'0' * (-other % 4)}",
        "places": -(-scale // 4),
        "others": -(-other // 4),
        "digits": checked(condition, f"greatest(q['s'], {least})"),
        "shift": other - scale + 1,
    }
    sql = f"[{{'n': {_whole(left)}, 'd': {_whole(right)}}}]"
    for step in _STEPS:
        sides = "" if "'v'" in step else "'n': q['n'], 'd': q['d'], "
        row = " ".join(step.format(**filled).split())
        sql = f"list_transform({sql}, lambda q: {{{sides}{row}}})"
    return Value(f"{sql}[1]['v']", numeric(types.MOST_DIGITS, 24), f"{sql}[1]['s']")


def _whole(value: Value) -> str:
    """A numeric without its point."""
    factor = cast(f"1{'0' * value.type.scale}", numeric(value.type.scale + 1, 0))
    return f"CAST({value.sql} * {factor} AS HUGEINT)"


def rounded(value: Value, places: int) -> Value:
    """Return a numeric with so many digits behind the point, half rounded up in size."""
    type_ = numeric(value.type.digits - value.type.scale + 1 + places, places)
    return Value(cast(value.sql, type_), type_, str(places))
