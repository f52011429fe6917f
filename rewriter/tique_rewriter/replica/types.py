"""PostgreSQL's types of expressions, and DuckDB's expressions with their values.

A numeric of PostgreSQL shows as many digits as it was computed with, a DECIMAL those of
its type. So an expression also has the number of digits shown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tique_rewriter.schema import Column


class Refusal(Exception):
    """A statement may not mean the same in the replica; its text is the reason."""


class Type(NamedTuple):
    """A type by PostgreSQL's name; a numeric has the digits and scale of its DECIMAL.

    ``unknown`` is that of a string without a type, of NULL and of such parameters; NULL
    shows 0 digits, the others none.
    """

    name: str
    digits: int = 0
    scale: int = 0

    @property
    def duckdb(self) -> str:
        """DuckDB's name of the type that holds its values."""
        if self.name == "numeric":
            return f"DECIMAL({self.digits},{self.scale})"
        return _DUCKDB.get(self.name, self.name.upper())


_DUCKDB = {"double precision": "DOUBLE", "bytea": "BLOB"}
_DUCKDB |= dict.fromkeys(["text", "bpchar", "unknown"], "VARCHAR")
MOST_DIGITS, _MOST_SCALE = 38, 30
INTEGERS = {"smallint": 5, "integer": 10, "bigint": 19}
"""Their digits, narrow ones first."""
EXACT = frozenset({*INTEGERS, "numeric"})
TEXTS = frozenset({"text", "bpchar", "unknown"})
ORDERED = EXACT | TEXTS | {"double precision", "boolean", "date", "time", "timestamp"}
ORDERED |= {"timestamptz"}
C_COLLATIONS = frozenset({"C", "POSIX", "the default, which is C"})
"""Collations by which texts are in the order of their code points."""
ERROR = "error('another answer than PostgreSQL''s: ask the source')"
"""An expression that has no value in the replica."""
_SPELLINGS = {
    **dict.fromkeys(["varchar", "character varying"], "text"),
    "int": "integer",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "bool": "boolean",
    "float8": "double precision",
    "double": "double precision",
    "pg_catalog.bpchar": "bpchar",
    "time without time zone": "time",
    "timestamp with time zone": "timestamptz",
}
_SIZED = re.compile(r"(varchar|pg_catalog\.bpchar|timestamp)\(\d+\)")
_NUMERIC = re.compile(r"(?:numeric|decimal)\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Value:
    """A DuckDB expression that has the value of a PostgreSQL expression in every row.

    ``shown`` is how many digits behind the point a numeric shows: DuckDB's text of an
    integer; None where nothing tells. ``collation`` sorts a text; None for one that takes
    its neighbours'. ``literal`` is a constant's text as it was written.
    """

    sql: str
    type: Type
    shown: str | None = None
    collation: str | None = None
    literal: str | None = None

    @property
    def is_fixed(self) -> bool:
        """Whether all values show the digits of the type's scale."""
        return self.type.name != "numeric" or self.shown == str(self.type.scale)

    def to(self, type_: Type) -> Value:
        """Return the value with another type that DuckDB converts it to exactly."""
        if self.type == type_:
            return self
        return replace(self, sql=cast(self.sql, type_), type=type_)

    def seen(self, sql: str) -> Value:
        """Return what a query around it sees, which knows nothing of single digits."""
        shown = self.shown if self.is_fixed else None
        return Value(sql, self.type, shown, self.collation)


def cast(sql: str, type_: Type) -> str:
    """Return an expression with a type of DuckDB's."""
    return f"CAST({sql} AS {type_.duckdb})"


def quoted(text: str, quote: str = "'") -> str:
    """Return a text as a literal, or as a name."""
    return quote + text.replace(quote, quote * 2) + quote


def numeric(digits: int, scale: int) -> Type:
    """Return a type of numerics; what has more digits than a DECIMAL is an error."""
    if scale > _MOST_SCALE:
        raise Refusal(f"a number with {scale} digits behind the point")
    return Type("numeric", min(max(digits, scale + 1), MOST_DIGITS), scale)


def named(name: str) -> Type:
    """Return the type of a name of PostgreSQL's."""
    lower = name.lower()
    if (found := _NUMERIC.fullmatch(lower)) and int(found[1]) <= MOST_DIGITS:
        return Type("numeric", int(found[1]), int(found[2]))
    lower = _SIZED.sub(r"\1", lower)
    lower = _SPELLINGS.get(lower, lower)
    if lower not in ORDERED - {"numeric", "unknown"} | {"uuid", "bytea"}:
        raise Refusal(f"the type {name}")
    return Type(lower)


_EQUALITIES = frozenset({"=", "OPERATOR(pg_catalog.=)"})


def column_value(sql: str, column: Column, default: str) -> Value:
    """Return a table's column as an expression, given the default collation."""
    is_own = column.is_opaque or column.is_named or column.equality not in _EQUALITIES
    if column.domain or is_own:
        raise Refusal(f"the type of column {column.name}")
    type_ = named(column.type)
    if type_.name not in TEXTS:
        return Value(sql, type_, str(type_.scale))
    collation = (column.collation or default).replace('"', "")
    return Value(sql, type_, None, collation.removeprefix("pg_catalog."))


_TIME, _DATE = r"\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?", r"(?!0000)\d{4}-\d\d-\d\d"
_LITERALS = {
    "date": _DATE,
    "timestamp": f"{_DATE}(?: {_TIME})?",
    "time": f"(?!24){_TIME}",
    "boolean": "true|false|t|f",
    "numeric": r"-?\d{1,20}(?:\.\d{1,15})?",
    "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    **dict.fromkeys(INTEGERS, r"-?\d{1,19}"),
    "double precision": r"-?\d{1,15}(?:\.\d{1,15})?",
}
"""The strings of a type that both engines read as the same value."""


def known(value: Value, name: str) -> Value:
    """Return a constant of unknown type as one of the type with that name."""
    if value.type.name != "unknown":
        return value
    if name in TEXTS:
        return replace(value, type=Type("text"))
    if value.shown is not None:
        type_ = numeric(MOST_DIGITS, 0) if name == "numeric" else Type(name)
        return replace(value.to(type_), shown="0")
    if value.literal is None:
        raise Refusal(f"a str given for a {name}: give a value of its type")
    if not re.fullmatch(_LITERALS.get(name, "(?!)"), value.literal):
        raise Refusal(f"{value.sql} as a {name}")
    return number(value.literal) if name == "numeric" else value.to(Type(name))


def number(text: str, *, may_be_integer: bool = False) -> Value:
    """Return a constant; an integer is of the first integer type that it fits."""
    for name, bits in (("integer", 31), ("bigint", 63)):
        if may_be_integer and text.isdigit() and int(text) < 1 << bits:
            return Value(cast(text, Type(name)), Type(name), literal=text)
    if not re.fullmatch(r"-?\d+(\.\d+)?", text):
        raise Refusal(f"the number {text}")
    digits, _, behind = text.lstrip("-").partition(".")
    type_ = numeric(len(digits) + len(behind), len(behind))
    return Value(cast(quoted(text), type_), type_, str(len(behind)), literal=text)


def as_numeric(value: Value) -> Value:
    """Return an exact number as a numeric."""
    if value.type.name == "numeric":
        return value
    return replace(value.to(numeric(INTEGERS[value.type.name], 0)), shown="0")


def as_text(value: Value) -> Value:
    """Return what PostgreSQL converts to text without being asked, as text."""
    if value.type.name == "bpchar":
        return replace(value, sql=f"rtrim({value.sql}, ' ')", type=Type("text"))
    value = known(value, "text")
    if value.type.name != "text":
        raise Refusal(f"a {value.type.name} where a text is expected")
    return value


def collation_of(values: Iterable[Value]) -> str | None:
    """Return the collation of what is made of some texts."""
    names = {value.collation for value in values} - {None}
    if len(names) > 1:
        raise Refusal("texts of two collations in one expression")
    return names.pop() if names else None


def common(values: Sequence[Value]) -> list[Value]:
    """Return values converted to the one type that PostgreSQL chooses for all of them."""
    names = {value.type.name for value in values} - {"unknown"}
    if not names or names == {"text"}:
        return [as_text(value) for value in values]
    name = max(names, key=lambda each: INTEGERS.get(each, MOST_DIGITS))
    if "bpchar" in names or not (len(names) == 1 or names <= EXACT):
        raise Refusal(f"a choice among values of {' and '.join(sorted(names))}")
    if name != "numeric":
        return [known(value, name).to(Type(name)) for value in values]
    numbers = [as_numeric(known(value, name)) for value in values]
    scale = max(value.type.scale for value in numbers)
    whole = max(value.type.digits - value.type.scale for value in numbers)
    return [value.to(numeric(whole + scale, scale)) for value in numbers]


def comparable(left: Value, right: Value, *, is_ordering: bool) -> tuple[str, str]:
    """Return two expressions that DuckDB compares as PostgreSQL does the values."""
    both = [left, right]
    names = {value.type.name for value in both} - {"unknown"}
    if names == {"bpchar"}:
        # Blanks at the end of char(n) do not count, nor of a constant beside one.
        both = [replace(value, type=Type("bpchar")) for value in both]
    if not names or names & TEXTS:
        both = [as_text(value) for value in both]
    elif "double precision" in names:
        both = [_as_double(value) for value in both]
    elif names != {"date", "timestamp"} and not (len(names) == 2 and names <= EXACT):
        both = common(both)
    if is_ordering:
        check_order(replace(both[0], collation=collation_of(both)))
    return both[0].sql, both[1].sql


def _as_double(value: Value) -> Value:
    value, double = known(value, "double precision"), Type("double precision")
    if value.type.name == "numeric" and value.literal is not None:
        return Value(cast(quoted(value.literal), double), double)
    if value.type.name not in INTEGERS and value.type != double:
        raise Refusal(f"a {value.type.name} compared with a double precision")
    return value.to(double)


def check_order(value: Value) -> None:
    """Refuse a value that DuckDB sorts otherwise, or for which it is not known."""
    if value.type.name in TEXTS and value.collation not in C_COLLATIONS:
        raise Refusal("the order of a text whose collation is not C")
    if value.type.name not in ORDERED:
        raise Refusal(f"the order of values of {value.type.name}")
