"""The functions and casts of the subset, a line each, and the aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_rewriter.replica import types
from tique_rewriter.replica.numbers import checked, quotient
from tique_rewriter.replica.types import Refusal, Type, Value, cast, numeric

if TYPE_CHECKING:
    from collections.abc import Sequence

_ENTRIES = """
Length        text                   integer   length({0})
Ascii         text                   integer   ascii({0})
StrPosition   text,text              integer   strpos({0}, {1})
StartsWith    text,text              boolean   starts_with({0}, {1})
MD5           text                   text      md5({0})
Replace       text,text,text         text      replace({0}, {1}, {2})
Lower|Upper   ascii                  text      {name}({0})
Left|Right    text,number            text      {name}({0}, {1})
Substring     text,place             text      substring({0}, {1})
Substring     text,place,length      text      substring({0}, {1}, {2})
Trim          text                   text      trim({0}, ' ')
Trim          text,text              text      trim({0}, {1})
TrimLEADING   text                   text      ltrim({0}, ' ')
TrimTRAILING  text                   text      rtrim({0}, ' ')
DPipe         text,text              text      ({0} || {1})
Add|Sub       date,integer           date      {0} {operator} {1}
Sub           date,date              integer   {0} - {1}
year|quarter|month|week|day|dow|isodow|doy date|timestamp field extract({name} FROM {0})
hour|minute   time|timestamp         field     extract({name} FROM {0})
toYEAR|toQUARTER|toMONTH|toWEEK|toDAY|toHOUR|toMINUTE timestamp timestamp date_trunc('{name}', {0})
::text        text                   text      {0}
::text        smallint|integer|bigint|boolean|uuid text CAST({0} AS VARCHAR)
::smallint|::integer|::bigint smallint|integer|bigint|numeric same {0}
::integer     boolean                integer   {0}
::double      smallint|integer|bigint double   {0}
::date        timestamp              date      {0}
::timestamp   date                   timestamp {0}
"""
"""The calls, their arguments' types, the result's, and DuckDB's form."""

_Entry = tuple[list[str], str, str]


def _entries() -> dict[str, list[_Entry]]:
    found: dict[str, list[_Entry]] = {}
    for line in _ENTRIES.strip().splitlines():
        names, kinds, result, form = line.split(maxsplit=3)
        for name in names.split("|"):
            kind = name.removeprefix("::") if result == "same" else result
            found.setdefault(name, []).append((kinds.split(","), kind, form))
    return found


ENTRIES = _entries()
_CONSTANTS = {"number": -9999, "place": 1, "length": 0}
"""Arguments that must be constant integers, and the least one."""
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
    return f"({checked(f'{value.sql} BETWEEN {between}', value.sql)})"


def constant(value: Value, least: int) -> int:
    """Return an argument that must be a constant integer."""
    number = value.literal if value.type.name == "integer" else None
    if number is None or int(number) < least:
        raise Refusal(f"an argument that is no constant from {least} on")
    return int(number)


def call(name: str, values: Sequence[Value]) -> Value:
    """Return the value of a function of the subset."""
    for kinds, result, form in ENTRIES.get(name, ()):
        given = [*map(_argument, values, kinds)]
        if len(kinds) != len(values) or None in given:
            continue
        word = name.lower().removeprefix("to")
        sql = form.format(*given, name=word, operator="+" if name == "Add" else "-")
        if result == "text":
            return Value(sql, Type("text"), None, types.collation_of(values))
        if result == "field":
            return Value(cast(sql, numeric(10, 0)), numeric(10, 0), "0")
        type_ = types.named(result)
        return Value(cast(sql, type_), type_)
    raise Refusal(f"{name} of {' and '.join(value.type.name for value in values)}")


def _argument(value: Value, kind: str) -> str | None:
    """An argument as the entry's form takes it; None if it is of another type."""
    name = value.type.name
    if kind in _CONSTANTS:
        return str(constant(value, _CONSTANTS[kind]))
    if kind == "ascii":
        # Of letters beyond ASCII the engines know others.
        text = types.as_text(value)
        if text.collation not in types.C_COLLATIONS:
            raise Refusal("lower() or upper() of a text whose collation is not C")
        return f"({checked(f'strlen({text.sql}) = length({text.sql})', text.sql)})"
    if kind == "text" and name in types.TEXTS:
        return types.as_text(value).sql
    if name == "unknown" and "|" not in kind:
        return in_range(types.known(value, kind))
    if name == "smallint" and kind == "integer":
        return value.to(Type("integer")).sql
    return in_range(value) if name in kind.split("|") else None


def aggregate(name: str, value: Value, distinct: str, behind: str) -> Value:
    """Return an aggregate of a value; FILTER comes behind each call."""
    kind, shown = value.type.name, value.shown if value.is_fixed else None

    def made(function: str, argument: str = value.sql) -> str:
        return f"{function}({distinct}{argument}){behind}"

    if name == "count" and (not distinct or kind != "bpchar"):
        return Value(made(name), Type("bigint"))
    if name.startswith("bool") and kind == "boolean":
        return Value(made(name), value.type)
    if name in ("min", "max") and kind not in ("boolean", "bpchar", "unknown"):
        types.check_order(value)
        return Value(made(name), value.type, shown, value.collation)
    if name not in ("sum", "avg") or kind not in types.EXACT:
        raise Refusal(f"{name}({distinct.lower()}) of values of {kind}")
    if name == "sum" and kind in ("smallint", "integer"):
        return Value(cast(made("sum"), Type("bigint")), Type("bigint"))
    if not value.is_fixed:
        if distinct or value.shown is None:
            raise Refusal(f"{name}() of numbers whose digits are not known")
        digits = f"CASE WHEN {value.sql} IS NOT NULL THEN {value.shown} END"
        shown = made("max", digits)
    type_ = numeric(types.MOST_DIGITS, value.type.scale)
    total = Value(cast(made("sum"), type_), type_, shown or "0")
    if name == "sum":
        return total
    return quotient(total, types.as_numeric(Value(made("count"), Type("bigint"))))
