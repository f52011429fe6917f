"""The operators, functions and casts of the subset, a line each; arithmetic and aggregates.

Sums and products of DECIMAL are exact, or an error where they do not fit. A quotient has
as many digits as PostgreSQL computes, which depends on its size: integers of 128 bits
divide what both sides are without their points.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tique_rewriter.replica import types
from tique_rewriter.replica.types import Refusal, Type, Value, cast, checked, numeric

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENTRIES = """
eq           same,same        boolean   {0} = {1}
neq          same,same        boolean   {0} <> {1}
lt           sorted,sorted    boolean   {0} < {1}
lte          sorted,sorted    boolean   {0} <= {1}
gt           sorted,sorted    boolean   {0} > {1}
gte          sorted,sorted    boolean   {0} >= {1}
nullsafeeq   same,same        boolean   {0} IS NOT DISTINCT FROM {1}
nullsafeneq  same,same        boolean   {0} IS DISTINCT FROM {1}
is           boolean,boolean  boolean   {0} IS NOT DISTINCT FROM {1}
and          boolean,boolean  boolean   {0} AND {1}
or           boolean,boolean  boolean   {0} OR {1}
not          boolean          boolean   NOT {0}
length       text             integer   length({0})
ascii        text             integer   ascii({0})
substring    text,place       text      substring({0}, {1})
substring    text,place,size  text      substring({0}, {1}, {2})
dpipe        text,text        text      ({0} || {1})
add          date,integer     date      {0} + {1}
sub          date,integer     date      {0} - {1}
sub          date,date        integer   {0} - {1}
extract      year|quarter|month|week|day|dow|isodow|doy,date|timestamp numeric(10,0) extract({0} FROM {1})
extract      hour|minute,time|timestamp numeric(10,0) extract({0} FROM {1})
date_trunc   year|quarter|month|week|day|hour|minute,timestamp timestamp date_trunc('{0}', {1})
::text       smallint|integer|bigint|boolean|uuid text CAST({0} AS VARCHAR)
::text       text             text      {0}
::smallint   smallint|integer|bigint|numeric smallint {0}
::integer    smallint|integer|bigint|numeric|boolean integer {0}
::bigint     smallint|integer|bigint|numeric bigint {0}
::double     smallint|integer|bigint double {0}
::date       timestamp        date      {0}
::timestamp  date             timestamp {0}
"""
"""The calls, their arguments' types, the result's, and DuckDB's form. Arguments of the
``same`` type are converted to their common one, of which DuckDB has the order if they are
``sorted``. A ``place`` and a ``size`` are constant integers.
"""

_Entry = tuple[list[str], str, str]


def _entries() -> dict[str, list[_Entry]]:
    found: dict[str, list[_Entry]] = {}
    for line in _ENTRIES.strip().splitlines():
        name, kinds, result, form = line.split(maxsplit=3)
        found.setdefault(name, []).append((kinds.split(","), result, form))
    return found


CALLS = _entries()
_LEAST = {"place": 1, "size": 0}
_RANGES = {
    "date": "DATE '0001-01-01' AND DATE '9999-12-31'",
    "time": "TIME '00:00:00' AND TIME '23:59:59.999999'",
    "timestamp": "TIMESTAMP '0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999'",
    "timestamptz": "CAST('0001-01-02 00:00:00+00' AS TIMESTAMPTZ) "
    "AND CAST('9999-12-30 00:00:00+00' AS TIMESTAMPTZ)",
}
"""Values that Python has: infinity and the years before Christ are others in DuckDB."""


def in_range(value: Value) -> str:
    """Return an expression that is an error for a date or time out of range."""
    between = _RANGES.get(value.type.name)
    if between is None:
        return value.sql
    return checked(f"{value.sql} BETWEEN {between}", value.sql)


def constant(value: Value, least: int) -> int:
    """Return an argument that must be a constant integer."""
    number = value.literal if value.type.name == "integer" else None
    if number is None or int(number) < least:
        raise Refusal(f"an argument that is no constant from {least} on")
    return int(number)


def call(name: str, *values: Value) -> Value:
    """Return the value of an operator, function or cast of the subset."""
    for kinds, result, form in CALLS.get(name, ()):
        given = _arguments(values, kinds)
        if None in given:
            continue
        sql = form.format(*given)
        if result == "text":
            return Value(sql, Type("text"), None, types.collation_of(values))
        type_ = types.named(result)
        sql = f"({sql})" if result == "boolean" else cast(sql, type_)
        return Value(sql, type_, str(type_.scale))
    raise Refusal(f"{name}({', '.join(value.type.name for value in values)})")


def _arguments(values: Sequence[Value], kinds: Sequence[str]) -> list[str | None]:
    """The arguments as an entry's form takes them; None for one of another type."""
    if len(values) != len(kinds):
        return [None]
    if kinds[0] in ("same", "sorted"):
        values = types.common(values)
        collation = types.collation_of(values)
        if kinds[0] == "sorted":
            types.check_order(replace(values[0], collation=collation))
        return [value.sql for value in values]
    return [*map(_argument, values, kinds)]


def _argument(value: Value, kind: str) -> str | None:
    name = value.type.name
    if kind in _LEAST:
        return str(constant(value, _LEAST[kind]))
    if kind == "text" and name in types.TEXTS | types.UNTYPED:
        return types.as_text(value).sql
    is_converted = name in types.UNTYPED or (name, kind) == ("smallint", "integer")
    if is_converted and "|" not in kind:
        value = value.to(Type(kind))
    return in_range(value) if value.type.name in kind.split("|") else None


def aggregate(name: str, value: Value, distinct: str = "") -> Value:
    """Return an aggregate of a value."""
    kind, shown = value.type.name, value.shown if value.is_fixed else None

    def made(function: str, argument: str = value.sql) -> str:
        return f"{function}({distinct}{argument})"

    if distinct:
        types.check_distinct(value)
    if name == "count":
        return Value(made(name), Type("bigint"))
    if name in ("min", "max") and kind not in ("boolean", "bpchar"):
        types.check_order(value)
        return Value(made(name), value.type, shown, value.collation)
    if name not in ("sum", "avg") or kind not in types.EXACT:
        raise Refusal(f"{name}({distinct.lower()}{kind})")
    if name == "sum" and kind in ("smallint", "integer"):
        return Value(cast(made("sum"), Type("bigint")), Type("bigint"))
    if not value.is_fixed:
        if value.shown is None:
            raise Refusal(f"{name}() of numbers whose digits are not known")
        digits = f"CASE WHEN {value.sql} IS NOT NULL THEN {value.shown} END"
        shown = made("max", digits)
    type_ = numeric(types.MOST_DIGITS, value.type.scale)
    total = Value(cast(made("sum"), type_), type_, shown or "0")
    if name == "sum":
        return total
    return quotient(total, types.as_numeric(Value(made("count"), Type("bigint"))))


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
    if "numeric" not in names:
        one, other = types.common([left, right])
        sign = "//" if operator == "/" else operator
        sql = f"({one.sql} {sign} {other.sql})"
        if operator in "/%" and not float(right.literal or 0):
            sql = checked(f"{other.sql} <> 0 OR {one.sql} IS NULL", sql)
        return Value(sql, one.type)
    left, right = types.as_numeric(left), types.as_numeric(right)
    if operator == "/":
        return quotient(left, right)
    (_, digits, scale), (_, digits_, scale_) = left.type, right.type
    type_, form = numeric(digits + digits_, scale + scale_), "({} + {})"
    if operator != "*":
        behind, form = max(scale, scale_), "greatest({}, {})"
        type_ = numeric(max(digits - scale, digits_ - scale_) + 1 + behind, behind)
    if type_.digits > 18:
        # (DuckDB would keep to 64 bits, in which the result may not fit.)
        left = left.to(numeric(types.MOST_DIGITS, scale))
    shown = None
    if left.shown is not None and right.shown is not None:
        are_fixed = left.is_fixed and right.is_fixed
        shown = str(type_.scale) if are_fixed else form.format(left.shown, right.shown)
    return Value(f"({left.sql} {operator} {right.sql})", type_, shown)


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
