"""Values that the driver knows, written into SQL text.

DuckDB takes a tenth of a millisecond per parameter (1.5) and up to a hundredth per
literal, but next to nothing for a thousand values in one literal. So a single value
is text in single quotes whose quotes are doubled, which is all that DuckDB's strings
know of escaping (P11); a column of values is one such text: a list of integers, or
JSON in ASCII.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection

INTEGERS = frozenset({"TINYINT", "SMALLINT", "INTEGER", "BIGINT"})

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def literal(value: Any) -> str:
    """The literal of a value, to be cast to its column's type."""
    text = _text(value)
    if text is None:
        return "NULL"
    if "\0" in text:
        # No SQL text can have it.
        return f"from_json({quoted(_encode(text))}, '\"VARCHAR\"')"
    return quoted(text)


def plain_literal(value: Any, type_name: str) -> str:
    """As :func:`literal`; integers are written as such."""
    if value is not None and type_name in INTEGERS:
        return str(int(value))
    return literal(value)


def quoted(text: str) -> str:
    """A string literal."""
    return "'" + text.replace("'", "''") + "'"


def is_collated(type_name: str) -> bool:
    """Whether a column's type has a collation."""
    return type_name.startswith("VARCHAR COLLATE ")


def converted(text: str, type_name: str) -> str:
    """SQL that converts a value to a column's type. No CAST takes a collation."""
    if is_collated(type_name):
        plain, _, collation = type_name.partition(" COLLATE ")
        return f"CAST({text} AS {plain}) COLLATE {collation}"
    return f"CAST({text} AS {type_name})"


def listed(values: Collection[Any], type_name: str) -> str:
    """An expression for a list of values, each to be cast to ``type_name``."""
    if type_name in INTEGERS:
        items = str([None if v is None else int(v) for v in values])
        return f"CAST('{items.replace('None', 'NULL')}' AS {type_name}[])"
    entry = _encode([_text(value) for value in values])
    return f"from_json({quoted(entry)}, '[\"VARCHAR\"]')"


def _text(value: Any) -> str | None:
    """Return the text that the engine casts to the value; None for NULL."""
    if value is None or type(value) is str:
        return value
    if type(value) is bytes:
        return "".join([f"\\x{byte:02X}" for byte in value])
    return plain_text(value)


def plain_text(value: Any) -> str:
    """A value's text. DuckDB cannot cast 1E-18 to a DECIMAL of so many digits."""
    text = str(value)
    return f"{value:f}" if "E" in text and type(value) is Decimal else text
