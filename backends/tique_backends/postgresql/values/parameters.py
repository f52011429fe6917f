"""The types of which PostgreSQL takes parameters to be, as psycopg sends them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from psycopg.adapt import Dumper, PyFormat, Transformer
from typing_extensions import override

from tique_rewriter.plans.plan import SizedInteger

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import psycopg
    from psycopg.abc import AdaptContext

    from tique_backends.records import Row


class Smallint(SizedInteger):
    """A value of type SMALLINT."""


class Integer(SizedInteger):
    """A value of type INTEGER."""


class Bigint(SizedInteger):
    """A value of type BIGINT."""


_INTEGERS: dict[str, tuple[type[SizedInteger], int, int]] = {
    "smallint": (Smallint, 21, 16),
    "integer": (Integer, 23, 32),
    "bigint": (Bigint, 20, 64),
}
"""Their classes, OIDs and bits."""

_PLAIN = frozenset(
    (
        *("numeric", "text", "character varying", "boolean", "bytea", "uuid"),
        "double precision",
    )
)
"""Types of which psycopg's value of Python, sent again, is the same value."""

_NUMBER = re.compile(r"-?\d{1,19}")
_STRING = re.compile(r"'([^'\\]*)'")


@dataclass(frozen=True)
class TypedText:
    """A value in PostgreSQL's own text form, and the OID of its type."""

    text: str
    oid: int


class TypedDumper(Dumper):
    """Sends such a value."""

    @override
    def dump(self, obj: TypedText) -> bytes:
        return obj.text.encode()

    @override
    def get_key(self, obj: TypedText, format: PyFormat) -> Any:
        return (self.cls, obj.oid)

    @override
    def upgrade(self, obj: TypedText, format: PyFormat) -> TypedDumper:
        dumper = type(self)(self.cls)
        dumper.oid = obj.oid
        return dumper


def _integer_dumper(number: int) -> type[Dumper]:
    class IntegerDumper(Dumper):
        oid = number

        @override
        def dump(self, obj: int) -> bytes:
            return str(int(obj)).encode()

    return IntegerDumper


DUMPERS: list[tuple[type, type[Dumper]]] = [
    (TypedText, TypedDumper),
    *((kind, _integer_dumper(oid)) for kind, oid, _ in _INTEGERS.values()),
]
"""The classes of these values, and what sends them."""


def _literal(kind: str, expression: str) -> Any:
    """Return the value of a literal; the expression itself if the server must be asked."""
    if expression.upper() == "NULL":
        return None
    if kind in _INTEGERS and _NUMBER.fullmatch(expression):
        known, _, bits = _INTEGERS[kind]
        if -(1 << bits - 1) <= int(expression) < 1 << bits - 1:
            return known(expression)
    found = _STRING.fullmatch(expression)
    if kind in ("text", "character varying") and found is not None:
        return found[1]
    return _ASKED


_ASKED = object()


def typed_values(
    run: Callable[[str], psycopg.RawCursor[Row]],
    types: Sequence[str],
    expressions: Sequence[str],
) -> list[Any]:
    """Return the values of expressions as parameters of exactly these types."""
    values = [_literal(*pair) for pair in zip(types, expressions, strict=True)]
    asked = [number for number, value in enumerate(values) if value is _ASKED]
    if not asked:
        return values
    items: list[str] = []
    for number in asked:
        kind = types[number]
        item = f"CAST({expressions[number]} AS {kind})"
        if kind in _PLAIN or kind in _INTEGERS:
            items += [item, "0"]
        else:
            text = kind.replace("'", "''")
            items += [f"{item}::TEXT", f"'{text}'::pg_catalog.regtype::BIGINT"]
    (row,) = run(f"SELECT {', '.join(items)}").fetchall()
    for number, value, oid in zip(asked, row[::2], row[1::2], strict=True):
        if value is not None and types[number] in _INTEGERS:
            value = _INTEGERS[types[number]][0](value)
        elif value is not None and oid:
            value = TypedText(value, oid)
        values[number] = value
    return values


class ParameterTypes:
    """Tells the type that psycopg would send for each of some values."""

    def __init__(self, context: AdaptContext) -> None:
        self._dumper = Transformer(context).get_dumper

    def of(self, values: Sequence[Any]) -> list[int]:
        """Return the OIDs; 0 for values of any type, like quoted literals and NULL."""
        return [
            0 if value is None else self._dumper(value, PyFormat.AUTO).oid
            for value in values
        ]
