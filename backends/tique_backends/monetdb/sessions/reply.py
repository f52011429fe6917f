r"""The server's replies, as text: parsed here and not by pymonetdb.

MonetDB writes characters that it cannot print as ``\ooo``, an octal escape per byte
of UTF-8. pymonetdb (1.9) takes each for a character, so that U+0085 comes back as two
others; it breaks on JSON with such an escape, and on column names with a ``#``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.errors import complaint
from tique_backends.monetdb.values.text_values import keeper
from tique_backends.monetdb.values.types import (
    to_date,
    to_days,
    to_seconds,
    to_time,
    to_timestamp,
    type_name,
)
from tique_backends.records import ResultColumn, Row

if TYPE_CHECKING:
    from collections.abc import Callable

_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_ESCAPED = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"f": b"\f", b"v": b"\v"}
_SEPARATOR = ",\t"


@dataclass
class Reply:
    """One statement's answer: rows, or the number of rows that it touched."""

    columns: list[ResultColumn] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    """The columns' types, as replies call them."""
    readers: list[Callable[[str], Any]] = field(default_factory=list)
    """A function for each column that reads its values."""
    rows: list[Row] = field(default_factory=list)
    count: int = 0
    has_count: bool = False


def read_reply(text: str, *, keeping: bool = False) -> Reply:
    """Parse the answer to one statement; ``keeping`` the values, or to show them.

    Raises
    ------
    EngineError
        The server's refusal; DATA if Python has no such value.
    """
    reply = Reply()
    names: list[str] = []
    for line in text.split("\n"):
        mark = line[:1]
        if mark == "[":
            reply.rows.append(_row(line, reply.readers, reply.kinds))
        elif mark == "%":
            values, _, label = line[2:].rpartition(" # ")
            items = values.split(_SEPARATOR)
            if label == "name":
                names = [_text(item) if item[:1] == '"' else item for item in items]
            elif label == "type":
                reply.kinds = items
                reply.readers = [_READERS.get(kind, _anything) for kind in items]
                reply.columns = [
                    ResultColumn(name, kind.upper())
                    for name, kind in zip(names, items, strict=True)
                ]
            elif label == "typesizes":
                reply.columns = [
                    _column(name, kind, size)
                    for name, kind, size in zip(names, reply.kinds, items, strict=True)
                ]
                if keeping:
                    reply.readers = [
                        keeper(column.type) or read
                        for column, read in zip(
                            reply.columns, reply.readers, strict=True
                        )
                    ]
        elif mark == "=":
            reply.rows.append((line[1:],))
        elif mark == "!":
            raise complaint(line[1:])
        elif line.startswith("&2"):
            reply.count = int(line.split()[1])
            reply.has_count = True
    return reply


def read_rows(lines: str, reply: Reply) -> list[Row]:
    """Parse further rows of a reply.

    Raises
    ------
    EngineError
        DATA if Python has no such value.
    """
    return [
        _row(line, reply.readers, reply.kinds) for line in lines.split("\n") if line
    ]


def _column(name: str, kind: str, size: str) -> ResultColumn:
    digits, scale = map(int, size.split())
    return ResultColumn(name, type_name(kind, digits, scale) or kind.upper())


def _row(line: str, readers: list[Callable[[str], Any]], kinds: list[str]) -> Row:
    items = line[2:-2].split(_SEPARATOR)
    try:
        return tuple(
            [
                None if item == "NULL" else read(item)
                for item, read in zip(items, readers, strict=True)
            ]
        )
    except (ValueError, OverflowError) as error:
        raise EngineError(
            ErrorKind.DATA,
            f"Python has no such value ({', '.join(kinds)}): {error}",
        ) from None


def _text(item: str) -> str:
    item = item[1:-1]
    if "\\" not in item:
        return item
    return _ESCAPE.sub(_unescaped, item.encode()).decode()


def _unescaped(found: re.Match[bytes]) -> bytes:
    escape = found[1]
    if len(escape) == 3:
        return bytes([int(escape, 8)])
    return _ESCAPED.get(escape, escape)


def _anything(item: str) -> str:
    return _text(item) if item[:1] == '"' else item


_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint", "hugeint"), int),
    **dict.fromkeys(("char", "varchar", "clob", "json", "url", "xml"), _text),
    **dict.fromkeys(("real", "double"), float),
    **dict.fromkeys(("time", "timetz"), to_time),
    **dict.fromkeys(("timestamp", "timestamptz"), to_timestamp),
    "boolean": "true".__eq__,
    "decimal": Decimal,
    "date": to_date,
    "blob": bytes.fromhex,
    "uuid": UUID,
    "month_interval": int,
    "sec_interval": to_seconds,
    "day_interval": to_days,
}
