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
from tique_rewriter.replica.types import UNTYPED, Refusal, Type, Value, cast
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tique_rewriter.schema import Table
    from tique_rewriter.text.placeholders import Lexed


@dataclass(frozen=True)
class Translation:
    """DuckDB's text of a statement, for ``Rewriter.plan_body``: ``$n`` for parameters.

    ``types`` are PostgreSQL's of the result, ``tables`` the source's. A numeric may come as
    text, since each shows a number of digits of its own.
    """

    sql: str
    types: tuple[str, ...]
    tables: tuple[Table, ...]


_CLASSES: dict[type, Type] = {
    type(None): Type("null"),
    str: Type("unknown"),
    bool: Type("boolean"),
    float: Type("double precision"),
    datetime.date: Type("date"),
    uuid.UUID: Type("uuid"),
    bytes: Type("bytea"),
}
_INTERVAL = re.compile(r"'-?\d+(?: [a-z]+)?'", re.IGNORECASE)
_BITS = {"smallint": 15, "integer": 31, "bigint": 63}


def parameter_type(value: Any) -> Type | None:
    """Return the type of a value as psycopg sends it; None if it is not translated."""
    kind = type(value)
    if kind is int:
        fits = [n for n, bits in _BITS.items() if -(1 << bits) <= value < 1 << bits]
        return Type(fits[0]) if fits else None
    if kind is decimal.Decimal and value.is_finite():
        _, digits, exponent = value.as_tuple()
        scale = max(-int(exponent), 0)
        whole = max(len(digits) + int(exponent), 1)
        return Type("numeric", whole + scale, scale) if whole + scale <= 38 else None
    if kind is datetime.datetime:
        return Type("timestamp" if value.tzinfo is None else "timestamptz")
    is_local = kind is datetime.time and value.tzinfo is None
    return Type("time") if is_local else _CLASSES.get(kind)


def translate(
    lexed: Lexed,
    kinds: Sequence[Type | None],
    find: Find,
    *,
    collation_is_c: bool,
) -> Translation:
    """Translate a query.

    Parameters
    ----------
    lexed
        The application's, of PostgreSQL.
    kinds
        What :func:`parameter_type` says of the values of ``$1 … $n``.
    find
        Gives the source's table of a schema (None: along the search path) and a name; None
        where the replica has none.
    collation_is_c
        Whether the source's default collation sorts by code points, as ``C.UTF-8`` does.

    Raises
    ------
    Refusal
        Where the statement is not in the subset.
    """
    try:
        source = Source(lexed, rules_of("postgresql"))
        tree = source.parse()
    except RewriteError as error:
        raise Refusal(str(error)) from None
    for word, following in pairwise(source.words):
        text = source.raw(following)
        is_sign = text == "+" and word.keyword in ("BY", ",", "(")
        is_certain = word.keyword != "INTERVAL" or _INTERVAL.fullmatch(text)
        if word.keyword == "DATE_PART" or is_sign or not is_certain:
            raise Refusal(f"{word.keyword} {text}, of which the parser loses a part")
    given = [
        None if kind is None else Value(cast(f"${number}", kind), kind, str(kind.scale))
        for number, kind in enumerate(kinds, 1)
    ]
    default = "the default, which is C" if collation_is_c else "the default"
    query = Query(given, find, default)
    sql, columns = query.whole(tree, is_result=True)
    names = [value.type.name for _, value in columns]
    shown = tuple("text" if name in UNTYPED else name for name in names)
    return Translation(sql, shown, tuple(query.tables))
