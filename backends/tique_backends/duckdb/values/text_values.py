"""Values that the driver keeps in DuckDB's own text form.

Python has no value that is the same as an interval, a time of day with an offset, or a
list of either: months become days, 24:00:00 becomes 00:00:00, a moment gets its session's
time zone. DuckDB casts its own text of such a value to the same value again, whatever the
session's settings are (found by trying nested values of all these types, with quotes,
brackets and blanks in texts and names). So the driver keeps that text, from the query that
gives it to storage, and has DuckDB convert it where an application looks at it.

That does not hold for UNION, whose text has no tag, for JSON inside another type (a list's
text is read as one JSON value), and in
DuckDB 1.5 for texts inside another type, whose brackets it takes for its own, and for
moments, whose text it gives in the session's zone without the seconds of its offset (local
mean time, before 1900 or so) and a millisecond wrong far from now: rows with these stay in
the engine. Equal values may have several texts (1 month and 30 days): a
column of a key is never kept so.
"""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

import duckdb

from tique_backends.duckdb.values.literals import literal
from tique_backends.names import quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import tzinfo

    from tique_backends.records import Row
    from tique_rewriter.schema import Table

_IS_15 = duckdb.__version__.startswith("1.")
_MOMENT = "TIMESTAMP WITH TIME ZONE"
_SCALARS = frozenset(
    (
        *("TIME", "TIME WITH TIME ZONE", "TIME_NS", "INTERVAL", "BIGNUM"),
        *("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
        *(() if _IS_15 else (_MOMENT,)),
    )
)
_NUMBERS = frozenset(
    (
        *("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"),
        *("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "BOOLEAN"),
    )
)
_QUOTES_TEXTS = not _IS_15
"""Whether the text of a list or the like says where each text in it ends."""

_ELEMENTS = _SCALARS | _NUMBERS | {"DATE", "TIMESTAMP", "UUID", "BIT"}
_TEXTS = frozenset({"VARCHAR", "BLOB"})
_DECIMAL = re.compile(r"DECIMAL\(\d+,\s*\d+\)")
_ENUM = re.compile(r"ENUM\('(?:[^']|'')*'(?:, '(?:[^']|'')*')*\)")
_FIELD = re.compile(r'(?:"(?:[^"]|"")*"|\w+) (.*)', re.DOTALL)
_PIECE = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|[(),\[\]]|[^'"(),\[\]]+""")


@lru_cache(maxsize=512)
def is_kept_as_text(type_name: str) -> bool:
    """Whether values of a type are kept as text that they are not themselves."""
    return type_name in _SCALARS or (
        type_name.endswith((")", "]"))
        and not (_DECIMAL.fullmatch(type_name) or _ENUM.fullmatch(type_name))
        and _is_exact(type_name)
    )


def _is_exact(type_name: str) -> bool:
    """Whether the text of a type's values, inside another type's, tells all of them."""
    if type_name in _ELEMENTS or _DECIMAL.fullmatch(type_name):
        return True
    if type_name in _TEXTS or _ENUM.fullmatch(type_name):
        return _QUOTES_TEXTS
    if type_name.endswith("]"):
        return _is_exact(type_name[: type_name.rindex("[")])
    kind, _, inside = type_name.partition("(")
    if not inside.endswith(")"):
        return False
    parts = list(_parts(inside[:-1]))
    if kind == "MAP":
        return len(parts) == 2 and all(map(_is_exact, parts))
    if kind == "STRUCT":
        fields = [_FIELD.fullmatch(part) for part in parts]
        return all(field is not None and _is_exact(field[1]) for field in fields)
    return False


def _parts(text: str) -> Iterator[str]:
    """Yield what stands between the commas outside of brackets and quotes."""
    depth, part = 0, ""
    for piece in _PIECE.findall(text):
        depth += (piece in "([") - (piece in ")]")
        if piece == "," and not depth:
            yield part.strip()
            part = ""
        else:
            part += piece
    yield part.strip()


def kept_list(table: Table, read: Sequence[int], prefix: str = "") -> str:
    """A select list of some columns, as they are kept.

    The columns of the primary key stay as they are: keys are compared here.
    """
    names = []
    for position in read:
        column = table.columns[position]
        name = f"{prefix}{quote(column.name)}"
        if is_kept_as_text(column.type) and position not in table.primary_key:
            name = f"CAST({name} AS VARCHAR)"
        names.append(name)
    return ", ".join(names)


def has_kept_text(table: Table) -> bool:
    """Whether a table has columns that are kept as text."""
    return any(is_kept_as_text(column.type) for column in table.columns)


def keeping(query: str, types: Sequence[str]) -> str:
    """Return a query whose results, which are of these types, as they are kept."""
    names = [f"_{i}" for i in range(len(types))]
    items = [
        f"CAST({name} AS VARCHAR)" if is_kept_as_text(type_name) else name
        for name, type_name in zip(names, types, strict=True)
    ]
    return f"SELECT {', '.join(items)} FROM ({query}) AS _k({', '.join(names)})"


@lru_cache(maxsize=4096)
def are_shown_otherwise(type_names: tuple[str, ...]) -> bool:
    """Whether values of some of the types may be shown in another form than is kept."""
    return any(
        is_kept_as_text(type_name) or _MOMENT in type_name for type_name in type_names
    )


def moments_shown(
    types: Sequence[str], rows: list[Row], zone: Callable[[], tzinfo]
) -> list[Row]:
    """Rows with kept moments as the engine gives them, where Python has these.

    That costs no engine statement, and moments are common.
    """
    positions = [
        i
        for i, type_name in enumerate(types)
        if type_name == _MOMENT and any(type(row[i]) is str for row in rows)
    ]
    if not positions:
        return rows
    found = []
    for row in rows:
        values = list(row)
        for position in positions:
            # It has neither infinity nor years before the first.
            with suppress(ValueError, OverflowError, TypeError):
                moment = datetime.fromisoformat(values[position])
                values[position] = moment.astimezone(zone())
        found.append(tuple(values))
    return found


def with_shown(
    rows: Sequence[Row], positions: Sequence[int], shown: Sequence[Row]
) -> list[Row]:
    """Rows with the results of :func:`showing` in the place of kept values."""
    found = [list(row) for row in rows]
    for number, *values in shown:
        for position, value in zip(positions, values, strict=True):
            if type(found[number][position]) is str:
                found[number][position] = value
    return [tuple(row) for row in found]


def showing(types: Sequence[str], rows: Sequence[Row]) -> tuple[str, list[int]]:
    """Return a query for kept values as the engine gives them, and their columns.

    Its first result numbers the rows; without such values there are no columns.
    """
    positions = [
        i
        for i, type_name in enumerate(types)
        if is_kept_as_text(type_name) and any(type(row[i]) is str for row in rows)
    ]
    selects = []
    for number, row in enumerate(rows):
        items = [
            f"CAST({literal(row[i]) if type(row[i]) is str else 'NULL'} AS {types[i]})"
            for i in positions
        ]
        selects.append(f"SELECT {', '.join([str(number), *items])}")
    return " UNION ALL ".join(selects), positions
