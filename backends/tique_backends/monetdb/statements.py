r"""Statements with ``$n`` in them: where the parameters go (P11).

MonetDB gets literals. A ``$n`` counts only outside strings, quoted names and
comments; its literal stands between spaces, so that it cannot merge with the text
around it. The lexical rules are those that 11.41 shows: ``'…'`` and ``E'…'``
with backslash escapes, ``R'…'``, ``X'…'`` and ``U&'…'`` without (of quotes), ``"…"``
with doubled quotes only, ``--`` and ``#`` to the end of the line, ``/* … */`` nested.
The first of them is a setting of the server; the engine refuses the other one.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.literals import literal

if TYPE_CHECKING:
    from collections.abc import Sequence

_PIECES = re.compile(
    r"""
    (?P<raw> (?<!\w) (?:[RrXx]|[Uu]&) '(?:[^']|'')*' )
  | (?P<string> '(?:[^'\\]|\\.|'')*' )
  | (?P<name> "(?:[^"]|"")*" )
  | (?P<line> (?:--|\#)[^\n]* )
  | (?P<block> /\* )
  | (?P<open> ['"] )
  | \$ (?P<number> [1-9][0-9]* )
    """,
    re.VERBOSE | re.DOTALL,
)

_BLOCK = re.compile(r"/\*|\*/")


def substituted(sql: str, parameters: Sequence[Any]) -> str:
    """The statement with a literal in place of every parameter.

    Raises
    ------
    EngineError
        PROGRAMMING if a parameter is missing, DATA if a value has no literal.
    """
    texts, numbers = cut(sql)
    if not numbers:
        return sql
    if max(numbers) > len(parameters):
        raise EngineError(
            ErrorKind.PROGRAMMING,
            f"the statement has a parameter ${max(numbers)}, {len(parameters)} given",
        )
    pieces = [texts[0]]
    for number, text in zip(numbers, texts[1:], strict=True):
        pieces += (" ", literal(parameters[number - 1]), " ", text)
    return "".join(pieces)


@lru_cache(maxsize=1024)
def cut(sql: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The text around the parameters, one piece more than there are, and their numbers.

    Raises
    ------
    EngineError
        PROGRAMMING if a string, a quoted name or a comment does not end.
    """
    texts: list[str] = []
    numbers: list[int] = []
    start = position = 0
    while found := _PIECES.search(sql, position):
        position = found.end()
        if found["open"]:
            raise EngineError(
                ErrorKind.PROGRAMMING, "a string or a quoted name does not end"
            )
        if found["block"]:
            position = _block_end(sql, position)
        elif found["number"]:
            texts.append(sql[start : found.start()])
            numbers.append(int(found["number"]))
            start = position
    return (*texts, sql[start:]), tuple(numbers)


def _block_end(sql: str, position: int) -> int:
    depth = 1
    while depth:
        found = _BLOCK.search(sql, position)
        if found is None:
            raise EngineError(ErrorKind.PROGRAMMING, "a comment does not end")
        depth += 1 if found[0] == "/*" else -1
        position = found.end()
    return position
