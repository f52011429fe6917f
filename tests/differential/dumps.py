"""Dumps in SQL, cut as ``psql`` cuts them, and loaded by a connection."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = re.compile(
    r"""(?P<word>[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*'?)
    | (?P<string>'(?:[^']|'')*' | "[^"]*")
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$)
    | (?P<comment>--[^\n]*)
    | (?P<block>/\*)
    | (?P<meta>^\\[^\n]*)
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_ESCAPED = re.compile(r"(?:[^'\\]|\\.|'')*'", re.DOTALL)
_EDGES = re.compile(r"/\*|\*/")
_FROM_STDIN = re.compile(r"COPY\b.*\bFROM\s+STDIN\b", re.IGNORECASE | re.DOTALL)


class Piece(NamedTuple):
    """A statement without comments around it, and the lines of a COPY behind it."""

    sql: str
    data: str | None = None


def pieces(dump: str) -> Iterator[Piece]:
    """Yield a dump's statements; ``psql``'s own commands, such as ``\\c``, are left out."""
    place, depth, begin = 0, 0, None
    while place < len(dump):
        found = _PIECE.match(dump, place)
        assert found is not None
        kind, text = found.lastgroup, found[0]
        start, place = place, found.end()
        if kind == "word" and text.endswith("'"):
            # E'…' alone takes what a backslash stands before.
            if text in ("E'", "e'"):
                place = _ESCAPED.match(dump, place).end()  # type: ignore[union-attr]
            else:
                place -= 1
        elif kind == "dollar":
            place = dump.index(text, place) + len(text)
        elif kind == "block":
            level = 1
            while level:
                edge = _EDGES.search(dump, place)
                assert edge is not None
                level += 1 if edge[0] == "/*" else -1
                place = edge.end()
            continue
        if kind in ("comment", "meta") or text.isspace():
            continue
        depth += (text == "(") - (text == ")")
        begin = start if begin is None else begin
        if text != ";" or depth:
            continue
        sql, begin = dump[begin:start].strip(), None
        data = None
        if _FROM_STDIN.match(sql):
            first = dump.index("\n", place) + 1
            end = dump.index("\n\\.", first - 1) + 1
            data, place = dump[first:end], end + 2
        if sql:
            yield Piece(sql, data)
    if begin is not None:
        yield Piece(dump[begin:].strip())


def load(connection: Any, piece: Piece) -> None:
    """Execute a statement as ``psql`` does."""
    if piece.data is None:
        connection.execute(piece.sql)
        return
    with connection.cursor() as cursor, cursor.copy(piece.sql) as copy:
        copy.write(piece.data)
