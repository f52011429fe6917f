"""Text columns that are widened before any session reads them.

MonetDB keeps text as offsets into a heap, in one byte each at first, then in two, four
and eight as the heap grows. On 11.41 a reader that meets the growth takes offsets of
one width for those of another, and gets other rows' text, or none, or a piece of it
(seen in one of five tables that were filled past 64 KB beside two readers; no error,
and the same row reads right afterwards). The third growth is at 4 GB. So every text
column is taken past the second one, by rows that are deleted again, while no other
session can know the table. Offsets stay as wide when rows go, and through a restart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tique_backends.monetdb.values.types import INTEGERS, is_text, text_length
from tique_backends.names import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_HEAP = 80_000
_LONGEST = 4000
_DIGITS = f"(VALUES {', '.join(f'({digit})' for digit in range(10))})"
# So many that each is another one; three bytes of UTF-8 each.
_FIRST_LETTER = 20_000

_CONSTANTS = {
    "BOOLEAN": "FALSE",
    "DATE": "DATE '2000-01-01'",
    "TIMESTAMP": "TIMESTAMP '2000-01-01 00:00:00'",
    "TIME": "TIME '00:00:00'",
    "BLOB": "BLOB ''",
    "UUID": "UUID '00000000-0000-0000-0000-000000000001'",
    "JSON": "JSON '0'",
}
_DISTINCT = INTEGERS.keys() - {"TINYINT"}


def widening(
    table: str,
    columns: Mapping[str, tuple[str, bool]],
    keys: Collection[Sequence[str]] = (),
) -> list[str]:
    """Statements that widen an empty table's text columns.

    Parameters
    ----------
    table
        The table's name as SQL text.
    columns
        Each column's type and whether it is NOT NULL, by name.
    keys
        The columns of each key, of which the rows must not have the same twice.

    Returns
    -------
    list of str
        Empty for a table that has no text, or of which no row can be made up: a
        column of another type is NOT NULL, or a key has no column with enough values.
    """
    texts = {name: kind for name, (kind, _) in columns.items() if is_text(kind)}
    if not texts:
        return []
    # As many as the shortest column needs; the others are then filled by shorter texts.
    rows = max(_HEAP // (_length(kind) + 3) for kind in texts.values()) + 1
    values = {}
    for name, (kind, not_null) in columns.items():
        value = _value(kind, not_null, _HEAP // rows + 1)
        if value is None:
            return []
        values[name] = value
    if not all(any(_is_distinct(columns[name][0]) for name in key) for key in keys):
        return []
    number = " + ".join(f"{10**place} * _d{place}.d" for place in range(5))
    digits = ", ".join(f"{_DIGITS} AS _d{place}(d)" for place in range(5))
    first, *_ = texts
    return [
        f"INSERT INTO {table} ({', '.join(map(quote, values))}) "
        # MonetDB refuses two results with one name, and a cast may leave it.
        f"SELECT {', '.join(f'{v} AS _v{i}' for i, v in enumerate(values.values()))} "
        f"FROM (SELECT {number} AS n FROM {digits}) AS _n WHERE n < {rows}",
        # A DELETE of everything would start new, narrow columns.
        f"DELETE FROM {table} WHERE {quote(first)} IS NOT NULL",
    ]


def _length(kind: str) -> int:
    return min(text_length(kind) or _LONGEST, _LONGEST)


def _value(kind: str, not_null: bool, enough: int) -> str | None:
    """A value as SQL text over the row's number ``n``; None if there is none.

    A text need not have more than ``enough`` letters.
    """
    if is_text(kind):
        length = min(_length(kind), enough)
        return f"lpad(code({_FIRST_LETTER} + n), {length}, 'x')"
    family = kind.partition("(")[0].partition(" ")[0]
    if kind in _DISTINCT:
        return f"CAST(n AS {kind})"
    if not not_null:
        return f"CAST(NULL AS {kind})"
    if family in {"TINYINT", "DECIMAL", "REAL", "DOUBLE"}:
        return f"CAST(0 AS {kind})"
    constant = _CONSTANTS.get(family)
    return None if constant is None else f"CAST({constant} AS {kind})"


def _is_distinct(kind: str) -> bool:
    return is_text(kind) or kind in _DISTINCT
