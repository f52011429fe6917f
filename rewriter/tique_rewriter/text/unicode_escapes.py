"""The escapes of ``U&'…'`` and ``U&"…"``: what they stand for."""

from __future__ import annotations

import re

WRITES_ESCAPE = re.compile(r"\s*UESCAPE\b", re.IGNORECASE)
"""Matches, after the last quote, the clause that names another escape character."""

_ESCAPES = re.compile(r"\\(?:([0-9A-Fa-f]{4})|\+([0-9A-Fa-f]{6})|(\\)|)")
_SURROGATES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
UNCERTAIN = re.compile(r"''|\\(?:\+00)?[Dd][89A-Fa-f]")
"""Matches what not every engine reads alike: quotes, and halves of surrogate pairs."""

_LAST = 0x10FFFF


class _WrongEscape(Exception):
    """An escape that stands for no character."""


def decoded(inside: str, quote: str) -> str | None:
    """Return the characters between the quotes, these doubled; None if one is wrong.

    Two escapes may be the halves of a surrogate pair. Neither U+0000 nor half of a pair
    is a character.
    """
    try:
        text = _ESCAPES.sub(lambda match: _character(match, quote), inside)
        text = _SURROGATES.sub(_joined, text)
        text.encode()
    except (_WrongEscape, UnicodeEncodeError):
        return None
    return text


def _character(match: re.Match[str], quote: str) -> str:
    short, long, backslash = match.groups()
    if backslash:
        return backslash
    if not (short or long):
        raise _WrongEscape
    code = int(short or long, 16)
    if not 0 < code <= _LAST:
        raise _WrongEscape
    character = chr(code)
    return character * 2 if character == quote else character


def _joined(match: re.Match[str]) -> str:
    return match.group().encode("utf-16", "surrogatepass").decode("utf-16")
