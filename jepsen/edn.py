"""The part of EDN that histories are made of.

Vectors, lists, maps, keywords, strings on one line, numbers, nil, true, false and comments;
anything else is refused. A keyword is read as text, as a string is.

A library would read all of EDN. The one in use for Python, edn_format, takes minutes for a
history of 100,000 transactions, which these lines read in seconds.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_WORD = re.compile(r'[\[\](){}]|"(?:[^"\\]|\\.)*"|;.*|[^\s,\[\](){}";]+|"')
_INTEGER = re.compile(r"[+-]?\d+")
_FLOAT = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?")
_KEYWORD = re.compile(r":[A-Za-z*!_?<>=+-][\w*!?<>=+./-]*")
_BRACKETS = frozenset("[](){}")
_CLOSES = {"[": "]", "(": ")", "{": "}"}

# Jepsen writes its operations as records of this type.
_RECORD_TAG = "#jepsen.history.Op"


class _Atoms(dict[str, Any]):
    """The values of words that are no brackets, each found once."""

    def __missing__(self, word: str) -> Any:
        value = self[word] = self._value(word)
        return value

    def _value(self, word: str) -> Any:
        if _INTEGER.fullmatch(word):
            return int(word)
        if _KEYWORD.fullmatch(word):
            return word[1:]
        if word[0] == '"' and len(word) > 1:
            return json.loads(word, strict=False)
        if _FLOAT.fullmatch(word):
            return float(word)
        raise ValueError(f"{word!r} is not understood")


def maps(lines: Iterable[str]) -> Iterator[tuple[int, dict[Any, Any]]]:
    """Yield the maps of a file with the lines they end on.

    They stand in one vector or one after the other.

    Raises
    ------
    ValueError
        With the line and the problem there.
    """
    number = 0
    parser = _Parser()
    for number, line in enumerate(lines, 1):
        try:
            for form in parser.read(line):
                yield number, form
        except (TypeError, ValueError) as error:
            raise ValueError(f"line {number}: {error}") from error
    if parser.open_brackets:
        raise ValueError(
            f"line {number}: the file ends within a {parser.open_brackets[-1]}"
        )


class _Parser:
    """Reads line by line: a bracket that a line leaves open goes on in the next."""

    def __init__(self) -> None:
        self.open_brackets: list[str] = []
        self._atoms = _Atoms(nil=None, true=True, false=False)
        self._outer: list[list[Any]] = []
        self._items: list[Any] = []
        self._depth: int | None = None  # of the maps: 1 in a vector
        self._ended = False

    def read(self, line: str) -> Iterator[dict[Any, Any]]:
        """Yield the maps that end on this line."""
        atoms = self._atoms
        items = self._items
        for word in _WORD.findall(line):
            if word not in _BRACKETS:
                if word[0] != ";" and word != _RECORD_TAG:
                    items.append(atoms[word])
            elif word in _CLOSES:
                self._open(word)
                self._outer.append(items)
                items = []
            else:
                form = self._close(word, items)
                items = self._outer.pop()
                if isinstance(form, dict) and len(self.open_brackets) == self._depth:
                    yield form
                elif self.open_brackets:
                    items.append(form)
                else:
                    self._ended, items = True, list(form)
        if items and len(self.open_brackets) <= (self._depth or 0):
            raise ValueError(f"{items[0]!r} is not a map")
        self._items = items

    def _open(self, bracket: str) -> None:
        if self._ended:
            raise ValueError(f"{bracket} after the end of the vector")
        if self._depth is None:
            self._depth = 1 if bracket == "[" else 0
        self.open_brackets.append(bracket)

    def _close(self, bracket: str, items: list[Any]) -> list[Any] | dict[Any, Any]:
        if not self.open_brackets or _CLOSES[self.open_brackets.pop()] != bracket:
            raise ValueError(f"{bracket} closes nothing")
        if bracket != "}":
            return items
        if len(items) % 2:
            raise ValueError("a map has a key without a value")
        return dict(zip(items[::2], items[1::2], strict=True))


def keyword(name: str) -> str:
    """Return a name as a keyword."""
    text = f":{name}"
    if not _KEYWORD.fullmatch(text):
        raise ValueError(f"{name!r} cannot be a keyword")
    return text


def text(value: Any) -> str:
    """Return a value as EDN."""
    if value is None:
        return "nil"
    if isinstance(value, str | bool):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{' '.join(map(text, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_key(key)} {text(each)}" for key, each in value.items())
        return f"{{{', '.join(pairs)}}}"
    raise TypeError(f"a history cannot hold {value!r}")


def _key(key: Any) -> str:
    if isinstance(key, str) and _KEYWORD.fullmatch(f":{key}"):
        return f":{key}"
    return text(key)
