"""The way from a statement's text to its translation."""

from __future__ import annotations

import datetime
import decimal
import re
import uuid
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tique_rewriter.dialects import rules_of
from tique_rewriter.errors import RewriteError
from tique_rewriter.replica.queries import Find, Query
from tique_rewriter.replica.types import Refusal, Type, Value, cast, named
from tique_rewriter.text.placeholders import number_placeholders
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tique_rewriter.schema import Table


@dataclass(frozen=True)
class Translation:
    """DuckDB's text of a statement, for ``Rewriter.plan_body``: ``$n`` for parameters.

    ``columns`` are the name and PostgreSQL type of each column of the result. For ``$n``,
    ``parameters[n - 1]`` is the position or name of the application's argument, as in
    ``Prepared.arguments``. ``tables`` are the source's. Numerics at the positions
    ``texts`` come as text, since each shows a number of digits of its own: the value is
    ``Decimal(text)``.
    """

    sql: str
    columns: tuple[tuple[str, str], ...]
    parameters: tuple[int | str, ...]
    tables: tuple[Table, ...]
    texts: frozenset[int]


_CLASSES: dict[type, str] = {
    type(None): "null",
    str: "unknown",
    bool: "boolean",
    float: "double precision",
    datetime.date: "date",
    uuid.UUID: "uuid",
    bytes: "bytea",
}
_SHOWN = {
    "unknown": "text",
    "time": "time without time zone",
    "timestamptz": "timestamp with time zone",
}
_INTERVAL = re.compile(r"'-?\d+(?: [a-z]+)?'", re.IGNORECASE)
_INTEGERS = {"smallint": 15, "integer": 31, "bigint": 63}


def parameter_type(value: Any) -> str | None:
    """Return the type of a value as psycopg sends it; None if it is not translated.

    ``null`` and ``unknown`` (of a str) stand for what the statement decides.
    """
    kind = type(value)
    if kind is int:
        fits = [n for n, bits in _INTEGERS.items() if -(1 << bits) <= value < 1 << bits]
        return fits[0] if fits else None
    if kind is decimal.Decimal and value.is_finite():
        _, digits, exponent = value.as_tuple()
        scale = max(-int(exponent), 0)
        return f"numeric({max(len(digits) + int(exponent), 1) + scale},{scale})"
    if kind is datetime.datetime:
        return "timestamp" if value.tzinfo is None else "timestamptz"
    is_local = kind is datetime.time and value.tzinfo is None
    return "time" if is_local else _CLASSES.get(kind)


def _parameter(number: int, kind: str | None) -> Value | None:
    if kind is None:
        return None
    type_ = Type("unknown") if kind in ("null", "unknown") else named(kind)
    shown = None if kind == "unknown" else str(type_.scale)
    return Value(cast(f"${number}", type_), type_, shown)


def translate(
    text: str,
    kinds: Sequence[str | None] | None,
    find: Find,
    *,
    collation_is_c: bool,
    paramstyle: str = "pyformat",
    schemas: Mapping[str, str] | None = None,
) -> Translation:
    """Translate a query.

    Parameters
    ----------
    text, paramstyle
        The application's, of PostgreSQL.
    kinds
        What :func:`parameter_type` says of the values of ``$1 … $n``, in the order of
        ``Translation.parameters``; None if the application gave no parameters.
    find
        Gives the source's table of a schema (None: along the search path) and a name; None
        where the replica has none.
    collation_is_c
        Whether the source's default collation sorts by code points, as ``C.UTF-8`` does.
    schemas
        The replica's names of the source's schemas, where they are others.

    Raises
    ------
    Refusal
        Where the statement is not in the subset.
    """
    rules, has_parameters = rules_of("postgresql"), kinds is not None
    try:
        lexicon = rules.lexicon
        lexed = number_placeholders(text, paramstyle, has_parameters, lexicon=lexicon)
        source = Source(lexed, rules)
        tree = source.parse()
    except RewriteError as error:
        raise Refusal(str(error)) from None
    for word, following in pairwise(source.words):
        text = source.raw(following)
        is_sign = text == "+" and word.keyword in ("BY", ",", "(")
        is_certain = word.keyword != "INTERVAL" or _INTERVAL.fullmatch(text)
        if word.keyword == "DATE_PART" or is_sign or not is_certain:
            raise Refusal(f"{word.keyword} {text}, of which the parser loses a part")
    given = [_parameter(number, kind) for number, kind in enumerate(kinds or (), 1)]
    default = "the default, which is C" if collation_is_c else "the default"
    query = Query(find, given, default, schemas or {})
    sql, columns = query.whole(tree, is_result=True)
    named_columns = [
        (name, _SHOWN.get(v.type.name, v.type.name))
        for name, v in columns
        if name is not None
    ]
    if len(named_columns) != len(columns):
        raise Refusal("a result without a name: put AS and one behind it")
    texts = frozenset(n for n, (_, value) in enumerate(columns) if not value.is_fixed)
    tables = tuple(query.tables)
    return Translation(sql, tuple(named_columns), lexed.arguments, tables, texts)
