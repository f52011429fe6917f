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

    ``unknown`` is that of a string without a type and of such parameters, ``null`` of NULL.
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
_DUCKDB |= dict.fromkeys(["text", "bpchar", "unknown", "null"], "VARCHAR")
MOST_DIGITS, _MOST_SCALE = 38, 30
INTEGERS = {"smallint": 5, "integer": 10, "bigint": 19}
"""Their digits, narrow ones first."""
EXACT = frozenset({*INTEGERS, "numeric"})
TEXTS = frozenset({"text", "bpchar"})
UNTYPED = frozenset({"unknown", "null"})
ORDERED = EXACT | TEXTS | {"double precision", "boolean", "date", "time", "timestamp"}
ORDERED |= {"timestamptz"}
_WIDER = (*INTEGERS, "numeric", "double precision"), ("date", "timestamp")
"""The lattice: types of which each converts to those behind it; others to none."""
C_COLLATIONS = frozenset({"C", "POSIX", "the default, which is C"})
"""Collations by which texts are in the order of their code points."""
_SPELLINGS = {
    **dict.fromkeys(["varchar", "character varying"], "text"),
    "int": "integer",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "bool": "boolean",
    "float8": "double precision",
    "double": "double precision",
    **dict.fromkeys(["character", "pg_catalog.bpchar"], "bpchar"),
    "time without time zone": "time",
    "timestamp with time zone": "timestamptz",
}
_NUMERIC = re.compile(r"(?:numeric|decimal)\((\d+),(\d+)\)")
_DATE, _NUMBER = r"(?!0000)\d{4}-\d\d-\d\d", r"-?\d{1,20}(?:\.\d{1,15})?"
_LITERALS = {
    "date": _DATE,
    "timestamp": rf"{_DATE}(?: \d\d:\d\d(?::\d\d(?:\.\d{{1,6}})?)?)?",
    "time": r"(?!24)\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?",
    "boolean": "true|false|t|f",
    **dict.fromkeys(INTEGERS, r"-?\d{1,19}"),
}
"""The strings of a type that both engines read as the same value."""


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
        """Return the value with a wider type, or a string with the type that it stands for."""
        sql, name = self.sql, self.type.name
        if self.type == type_:
            return self
        if name == "unknown" and type_.name not in TEXTS:
            pattern = _LITERALS.get(type_.name, "(?!)")
            if not re.fullmatch(pattern, self.literal or ""):
                raise Refusal(
                    f"the string {sql} as a {type_.name}: give one of that type"
                )
        if type_.name == "double precision" and name == "numeric":
            if self.literal is None:
                raise Refusal("a numeric as a double precision")
            sql = quoted(self.literal)
        shown = self.shown if name == "numeric" else "0"
        return replace(self, sql=cast(sql, type_), type=type_, shown=shown)

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


def checked(condition: str, sql: str) -> str:
    """Return an expression: an error where a condition is false, NULL where it is NULL."""
    error = "error('another answer than PostgreSQL''s: ask the source')"
    return f"(CASE WHEN {condition} THEN {sql} WHEN NOT ({condition}) THEN {error} END)"


def numeric(digits: int, scale: int) -> Type:
    """Return a type of numerics; what has more digits than a DECIMAL is an error."""
    if scale > _MOST_SCALE:
        raise Refusal(f"a number with {scale} digits behind the point")
    return Type("numeric", min(max(digits, scale + 1), MOST_DIGITS), scale)


def family(name: str) -> str:
    """Return PostgreSQL's usual name of a type, without its sizes."""
    lower = re.sub(r"\(.*\)", "", name.lower())
    return _SPELLINGS.get(lower, lower)


def named(name: str) -> Type:
    """Return the type of a name of PostgreSQL's."""
    found = _NUMERIC.fullmatch(name.lower())
    if found and int(found[1]) <= MOST_DIGITS:
        return Type("numeric", int(found[1]), int(found[2]))
    if family(name) not in ORDERED - {"numeric"} | {"uuid", "bytea"}:
        raise Refusal(f"the type {name}")
    return Type(family(name))


_EQUALITIES = frozenset({"=", "OPERATOR(pg_catalog.=)"})


def column_value(column: Column, default: str) -> Value:
    """Return what a table's column has, given the default collation."""
    is_own = column.is_opaque or column.is_named or column.equality not in _EQUALITIES
    if column.domain or is_own:
        raise Refusal(f"the type of column {column.name}")
    type_ = named(column.type)
    if type_.name not in TEXTS:
        return Value("", type_, str(type_.scale))
    collation = (column.collation or default).replace('"', "")
    return Value("", type_, None, collation.removeprefix("pg_catalog."))


def number(text: str, *, may_be_integer: bool = False) -> Value:
    """Return a constant; an integer is of the first integer type that it fits."""
    for name, bits in (("integer", 31), ("bigint", 63)):
        if may_be_integer and text.isdigit() and int(text) < 1 << bits:
            return Value(cast(text, Type(name)), Type(name), literal=text)
    if not re.fullmatch(_NUMBER, text):
        raise Refusal(f"the number {text}")
    digits, _, behind = text.lstrip("-").partition(".")
    type_ = numeric(len(digits) + len(behind), len(behind))
    return Value(cast(quoted(text), type_), type_, str(len(behind)), literal=text)


def as_numeric(value: Value) -> Value:
    """Return an exact number as a numeric."""
    if value.type.name == "unknown" and value.literal is not None:
        return number(value.literal)
    if value.type.name == "numeric":
        return value
    digits = len(value.literal or "") or INTEGERS.get(value.type.name, 1)
    return value.to(numeric(digits, 0))


def as_text(value: Value) -> Value:
    """Return what PostgreSQL converts to text without being asked, as text."""
    if value.type.name == "bpchar":
        return replace(value, sql=f"rtrim({value.sql}, ' ')", type=Type("text"))
    if value.type.name not in UNTYPED | {"text"}:
        raise Refusal(f"a {value.type.name} where a text is expected")
    return replace(value, type=Type("text"))


def collation_of(values: Iterable[Value]) -> str | None:
    """Return the collation of what is made of some texts."""
    names = {value.collation for value in values} - {None}
    if len(names) > 1:
        raise Refusal("texts of two collations in one expression")
    return names.pop() if names else None


def common(values: Sequence[Value]) -> list[Value]:
    """Return values converted to the one type that PostgreSQL chooses for all of them."""
    names = {value.type.name for value in values} - UNTYPED
    if names == {"bpchar"}:
        # Blanks at the end of char(n) do not count, nor of a constant beside one.
        values = [replace(value, type=Type("bpchar")) for value in values]
    if not names or names & TEXTS:
        return [as_text(value) for value in values]
    chains = [chain for chain in (*_WIDER, (min(names),)) if names <= {*chain}]
    if not chains:
        raise Refusal(f"values of {' and '.join(sorted(names))} together")
    name = max(names, key=chains[0].index)
    if name != "numeric":
        return [value.to(Type(name)) for value in values]
    numbers = [as_numeric(value) for value in values]
    scale = max(value.type.scale for value in numbers)
    whole = max(value.type.digits - value.type.scale for value in numbers)
    return [value.to(numeric(whole + scale, scale)) for value in numbers]


def check_order(value: Value) -> None:
    """Refuse a value that DuckDB sorts otherwise, or for which it is not known."""
    if value.type.name in TEXTS and value.collation not in C_COLLATIONS:
        raise Refusal("the order of a text whose collation is not C")
    if value.type.name not in ORDERED:
        raise Refusal(f"the order of values of {value.type.name}")


def check_distinct(value: Value) -> None:
    """Refuse values of which equal ones may look different."""
    if value.type.name in UNTYPED | {"double precision"} or not value.is_fixed:
        raise Refusal(f"distinct values of {value.type.name}, which may look different")
