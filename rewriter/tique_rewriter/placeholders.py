"""Placeholders: from the application's style to the engine's ``$1 … $n``.

A small lexer with the engine's own rules for strings, quoted names and comments,
so that a placeholder is found only where the engine would see one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NoReturn

from tique_rewriter.errors import SyntaxProblem, line_and_column

_INTERESTING = re.compile(r"""['"$%?]|--|/\*""")
_LINE_END = re.compile(r"[\n\r]|\Z")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPE_STRING = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_PLAIN_STRING = re.compile(r"'(?:[^']|'')*'")
_QUOTED_NAME = re.compile(r'"(?:[^"]|"")*"')
_DOLLAR_TAG = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$")
_ANOTHER_FOLLOWS = re.compile(r"\S*[$%?]")
_NAMED = re.compile(r"%\(([^)]*)\)s")
_IDENTIFIER_CHARACTER = re.compile(r"[\w$\x80-\U0010ffff]")


@dataclass(frozen=True)
class Edit:
    """``length`` characters at ``start`` of the result were others in the input."""

    start: int
    length: int
    original_start: int
    original_length: int


@dataclass(frozen=True)
class Lexed:
    """Text with ``$n`` for every placeholder.

    ``arguments[n - 1]`` is the position or the name of the application's argument
    for ``$n``; ``starts`` holds the offset of every ``$n`` in ``text``.
    """

    original: str
    text: str
    arguments: tuple[int | str, ...]
    starts: tuple[int, ...]
    edits: tuple[Edit, ...]

    def original_position(self, position: int) -> int:
        """Return the offset in the application's text of offset ``position`` of ours."""
        shifted = 0
        for edit in self.edits:
            if position < edit.start:
                break
            if position < edit.start + edit.length:
                return edit.original_start
            shifted = edit.original_start + edit.original_length
            shifted -= edit.start + edit.length
        return position + shifted

    def after(self, start: int) -> Lexed:
        """Return the same text, blank before offset ``start``; all places stay."""
        blank = re.sub(r"[^\n]", " ", self.text[:start])
        return replace(self, text=blank + self.text[start:])


class _Lexer:
    def __init__(self, sql: str, paramstyle: str, has_parameters: bool) -> None:
        self.sql = sql
        self.qmark = paramstyle == "qmark"
        self.percent = has_parameters and not self.qmark
        self.pieces: list[str] = []
        self.length = 0
        self.copied = 0
        self.arguments: list[int | str] = []
        self.numbers: dict[str, int] = {}
        self.starts: list[int] = []
        self.edits: list[Edit] = []

    def run(self) -> Lexed:
        position = 0
        while match := _INTERESTING.search(self.sql, position):
            position = self.step(match.start(), match.group())
        self.copy_to(len(self.sql))
        return Lexed(
            self.sql,
            "".join(self.pieces),
            tuple(self.arguments),
            tuple(self.starts),
            tuple(self.edits),
        )

    def step(self, start: int, found: str) -> int:
        """Handle what was found at ``start`` and return where to go on."""
        if found == "'":
            return self.string(start)
        if found == '"':
            return self.quoted(_QUOTED_NAME, start, "quoted name")
        if found == "--":
            end = _LINE_END.search(self.sql, start)
            return end.start() if end else len(self.sql)
        if found == "/*":
            return self.comment(start)
        if found == "$":
            return self.dollar(start)
        if found == "?":
            return self.question_mark(start)
        return self.percent_sign(start)

    def string(self, start: int) -> int:
        before = self.sql[max(start - 2, 0) : start]
        escaped = before[-1:] in ("e", "E") and not (
            len(before) == 2 and _IDENTIFIER_CHARACTER.match(before[0])
        )
        pattern = _ESCAPE_STRING if escaped else _PLAIN_STRING
        return self.quoted(pattern, start, "string")

    def quoted(self, pattern: re.Pattern[str], start: int, what: str) -> int:
        match = pattern.match(self.sql, start)
        if match is None:
            self.fail(f"unterminated {what}", start)
        self.undouble(start, match.end())
        return match.end()

    def undouble(self, start: int, end: int) -> None:
        """Inside quotes ``%%`` stands for ``%`` and a lone ``%`` for itself."""
        if not self.percent:
            return
        while (start := self.sql.find("%%", start, end)) >= 0:
            self.replace(start, start + 2, "%")
            start += 2

    def comment(self, start: int) -> int:
        depth = 0
        for edge in _COMMENT_EDGE.finditer(self.sql, start):
            depth += 1 if edge.group() == "/*" else -1
            if depth == 0:
                return edge.end()
        return self.fail("unterminated comment", start)

    def dollar(self, start: int) -> int:
        if start and _IDENTIFIER_CHARACTER.match(self.sql[start - 1]):
            return start + 1
        tag = _DOLLAR_TAG.match(self.sql, start)
        if tag is None:
            self.fail("a placeholder of the engine's own ($)", start, self.advice())
        end = self.sql.find(tag.group(), tag.end())
        if end < 0:
            self.fail("unterminated string", start)
        self.undouble(tag.end(), end)
        return end + len(tag.group())

    def question_mark(self, start: int) -> int:
        if not self.qmark:
            self.fail("a placeholder of another style (?)", start, self.advice())
        self.placeholder(start, start + 1, len(self.arguments))
        return start + 1

    def percent_sign(self, start: int) -> int:
        if not self.percent:
            return start + 1
        following = self.sql[start + 1 : start + 2]
        if following == "%":
            self.replace(start, start + 2, "%")
            return start + 2
        if following == "s":
            self.placeholder(start, start + 2, len(self.arguments))
            return start + 2
        if named := _NAMED.match(self.sql, start):
            self.placeholder(start, named.end(), named.group(1))
            return named.end()
        if following == "(":
            self.fail("a named placeholder that does not end in )s", start)
        return self.fail(
            "a percent sign that begins no placeholder",
            start,
            "write %% for a literal percent sign",
        )

    def placeholder(self, start: int, end: int, argument: int | str) -> None:
        if self.arguments and isinstance(self.arguments[0], str) is not isinstance(
            argument, str
        ):
            self.fail("named and positional placeholders in one statement", start)
        number = len(self.arguments) + 1
        if isinstance(argument, str):
            number = self.numbers.setdefault(argument, number)
        if number > len(self.arguments):
            self.arguments.append(argument)
        # The parser takes $1,$ for the opening tag of a string; a blank ends it.
        blank = " " if _ANOTHER_FOLLOWS.match(self.sql, end) else ""
        self.replace(start, end, f"${number}{blank}")
        self.starts.append(self.edits[-1].start)

    def replace(self, start: int, end: int, text: str) -> None:
        self.copy_to(start)
        self.edits.append(Edit(self.length, len(text), start, end - start))
        self.pieces.append(text)
        self.length += len(text)
        self.copied = end

    def copy_to(self, end: int) -> None:
        self.pieces.append(self.sql[self.copied : end])
        self.length += end - self.copied
        self.copied = end

    def advice(self) -> str:
        return f"write {'?' if self.qmark else '%s'} for a parameter"

    def fail(self, what: str, start: int, advice: str = "") -> NoReturn:
        line, column = line_and_column(self.sql, start)
        message = f"{what} at line {line}, column {column}"
        if advice:
            message += f"; {advice}"
        raise SyntaxProblem(message, start, line, column)


def number_placeholders(
    sql: str, paramstyle: str = "pyformat", has_parameters: bool = True
) -> Lexed:
    """Rewrite the placeholders of ``sql`` to ``$1 … $n``.

    Parameters
    ----------
    sql
        The application's text.
    paramstyle
        ``pyformat`` (``%s``, ``%(name)s``, ``%%`` for a percent sign) or ``qmark``.
    has_parameters
        Under ``pyformat``, False takes percent signs as they stand.

    Raises
    ------
    SyntaxProblem
        For an unterminated string or comment, a placeholder of another style and
        a percent sign that begins no placeholder.
    """
    return _Lexer(sql, paramstyle, has_parameters).run()
