"""Placeholders: from the application's style to the engine's ``$1 … $n``.

A small lexer with the engine's own rules for strings, quoted names and comments,
so that a placeholder is found only where the engine would see one.
:class:`~tique_rewriter.dialects.Lexicon` says which rules.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NoReturn

from tique_rewriter.errors import SyntaxProblem, UnsupportedSQL, error_at
from tique_rewriter.text.unicode_escapes import UNCERTAIN, WRITES_ESCAPE, decoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tique_rewriter.dialects import Lexicon

_COMMENT_EDGE = re.compile(r"/\*|\*/")
_QUOTED_NAME = re.compile(r'"(?:[^"]|"")*"')
_DOUBLED_QUOTES = {
    "'": (re.compile(r"'(?:[^']|'')*'"), "string"),
    '"': (_QUOTED_NAME, "quoted name"),
}
_DOLLAR_TAG = re.compile(r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$")
_NEEDS_BLANK = re.compile(r"[^\s$%?]*[$%?]|\w")
_NAMED = re.compile(r"%\(([^)]*)\)(\w)")
_OVERLAPPING_EDGES = re.compile(r"/\*/|\*/\*")
_UNCERTAIN_IN_NAME = re.compile(r"[\\\x00-\x1f\x7f]")
_JOINS_LITERAL = re.compile(r"""[\w"'$\x80-\U0010ffff]""")
_APART = frozenset(["", " ", "\t", "\n", "\r", "\f", "\v", "(", ")", ","])
_CONTINUED = re.compile(r"(?:[ \t\n\r\f]|--[^\n\r]*)*'")
_LONE_RETURN = re.compile(r"\r(?!\n)")
_NUMBERED = re.compile(r"\$([1-9]\d{0,4})(?![\w$])")
_IDENTIFIER_CHARACTER = re.compile(r"[\w$\x80-\U0010ffff]")


OWN_STYLE = "own"
"""The style of placeholders in PREPARE: the engine's own."""


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
    for ``$n``; ``starts`` holds the offset of every ``$n`` in ``text``, ``quotes`` and
    ``comments`` where its strings and quoted names (without the letters before the
    quote) and its comments start and end.
    """

    original: str
    text: str
    arguments: tuple[int | str, ...]
    starts: tuple[int, ...]
    edits: tuple[Edit, ...]
    quotes: tuple[tuple[int, int], ...]
    comments: tuple[tuple[int, int], ...]

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing but comments and semicolons."""
        position = 0
        for start, end in (*self.comments, (len(self.text), 0)):
            if self.text[position:start].strip(" ;\t\r\n\f\v"):
                return False
            position = end
        return True

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
        return self.part(start, len(self.text))

    def with_word(self, word: str, start: int) -> Lexed:
        """Return the text from offset ``start`` on with a word in the blanks before it."""
        lexed = self.after(start)
        begin = start - len(word) - 1
        blank = lexed.text[:begin] + word + " "
        return replace(lexed, text=blank + lexed.text[start:])

    def replaced(self, start: int, end: int, text: str) -> Lexed:
        """Return the text with other words in the place of some.

        What stands there is neither a placeholder nor quoted, and nor is the new text.
        """
        return self.spliced([(start, end, Lexed(text, text, (), (), (), (), ()))])

    def blanked(self, spans: Sequence[tuple[int, int]]) -> Lexed:
        """Return the text with blanks in these places, which have no placeholders."""
        text = self.text
        for start, end in spans:
            blank = re.sub(r"[^\n]", " ", text[start:end])
            text = text[:start] + blank + text[end:]

        def outside(span: tuple[int, int]) -> bool:
            return not any(start <= span[0] < end for start, end in spans)

        return replace(
            self,
            text=text,
            quotes=tuple(filter(outside, self.quotes)),
            comments=tuple(filter(outside, self.comments)),
        )

    def spliced(self, pieces: Iterable[tuple[int, int, Lexed]]) -> Lexed:
        """Return the text with pieces, each in the place of what is from start to end.

        They come in the text's order, and neither they nor what they replace have
        placeholders.
        """
        made: list[str] = []
        moves: list[tuple[int, int, int]] = []
        quotes, comments = [], []
        edits: list[Edit] = []
        copied = length = 0
        for start, end, piece in pieces:
            made += self.text[copied:start], piece.text
            length += start - copied
            quotes += [(length + a, length + b) for a, b in piece.quotes]
            comments += [(length + a, length + b) for a, b in piece.comments]
            first = self.original_position(start)
            more = self.original_position(end) - first
            edits.append(Edit(length, len(piece.text), first, more))
            length += len(piece.text)
            moves.append((start, end, length - end))
            copied = end

        def moved(place: int) -> int | None:
            more = 0
            for start, end, by in moves:
                if start <= place < end:
                    return None
                if end <= place:
                    more = by
            return place + more

        def spans(before: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
            for start, end in before:
                begin = moved(start)
                if begin is not None:
                    yield begin, begin + end - start

        for edit in self.edits:
            begin = moved(edit.start)
            if begin is not None:
                edits.append(replace(edit, start=begin))
        return replace(
            self,
            text="".join(made) + self.text[copied:],
            starts=tuple(
                [place for place in map(moved, self.starts) if place is not None]
            ),
            edits=tuple(sorted(edits, key=lambda edit: edit.start)),
            quotes=tuple(sorted([*quotes, *spans(self.quotes)])),
            comments=tuple(sorted([*comments, *spans(self.comments)])),
        )

    def part(self, start: int, end: int) -> Lexed:
        """Return the text between two offsets, blank around it; all places stay."""
        blank = re.sub(r"[^\n]", " ", self.text[:start])
        return replace(
            self,
            text=blank + self.text[start:end],
            quotes=tuple(span for span in self.quotes if start <= span[0] < end),
            comments=tuple(span for span in self.comments if start <= span[0] < end),
        )


class _Lexer:
    def __init__(
        self, sql: str, paramstyle: str, has_parameters: bool, lexicon: Lexicon
    ) -> None:
        self.sql = sql
        self.lexicon = lexicon
        self.own = paramstyle == OWN_STYLE
        self.qmark = paramstyle == "qmark"
        self.percent = has_parameters and paramstyle == "pyformat"
        self.pieces: list[str] = []
        self.length = 0
        self.copied = 0
        self.arguments: list[int | str] = []
        self.numbers: dict[str, int] = {}
        self.starts: list[int] = []
        self.edits: list[Edit] = []
        self.quotes: list[tuple[int, int]] = []
        self.comments: list[tuple[int, int]] = []
        self.after_quotes = 0
        """Where the last quoted stretch ends: no word begins before that."""
        self.word = -1, -1
        """Where the word begins and ends that was looked at last."""

    def run(self) -> Lexed:
        if not self.sql.isascii():
            self._check_unicode()
        if self.lexicon.strict and "\0" in self.sql:
            self.refuse("the character U+0000", self.sql.index("\0"))
        position = 0
        while match := self.lexicon.interesting.search(self.sql, position):
            position = self.step(match.start(), match.group())
        self.copy_to(len(self.sql))
        return Lexed(
            self.sql,
            "".join(self.pieces),
            tuple(self.arguments),
            tuple(self.starts),
            tuple(self.edits),
            tuple(self.quotes),
            tuple(self.comments),
        )

    def step(self, start: int, found: str) -> int:
        """Handle the match at ``start`` and return where to go on."""
        if found in ("'", '"') and self.is_escaped(start):
            return self.escaped(start, found)
        if found == "'":
            return self.string(start)
        if found == '"':
            return self.name(start)
        if found in self.lexicon.line_comments:
            return self.line_comment(start)
        if found == "/*":
            return self.comment(start)
        if found == "$":
            return self.dollar(start)
        if found == "?":
            return self.question_mark(start)
        if found == "%":
            return self.percent_sign(start)
        return self.character(start, found)

    def string(self, start: int) -> int:
        word = self.word_before(start)
        prefix = word.lower() if word.lower() in self.lexicon.strings else ""
        if self.lexicon.strict:
            certain = not word or prefix or (len(word) > 1 and word[0].isalpha())
            if not certain:
                self.refuse(f"a string right after {word}", start, "put a blank there")
            self.check_before(start - len(word))
        if prefix == "n":
            # As PostgreSQL's lexer reads it: no part of the parser knows N'…'.
            self.replace(start - 1, start, "nchar ")
        end = self.quoted(self.lexicon.strings[prefix], start, "string")
        if (
            self.lexicon.escapes_go_on
            and prefix == "e"
            and _CONTINUED.match(self.sql, end)
        ):
            self.refuse("a string after E'…'", end, "write them as one")
        return end

    def name(self, start: int) -> int:
        word = self.word_before(start)
        end = self.quoted(_QUOTED_NAME, start, "quoted name")
        if self.lexicon.strict:
            if word:
                self.refuse(f"a name right after {word}", start, "put a blank there")
            self.check_before(start)
            if uncertain := _UNCERTAIN_IN_NAME.search(self.sql, start, end):
                self.refuse(
                    "a backslash or control character in a name", uncertain.start()
                )
        return end

    def word_before(self, start: int) -> str:
        """Return the letters and digits right before ``start``."""
        begin = start
        while begin > self.after_quotes and _IDENTIFIER_CHARACTER.match(
            self.sql[begin - 1]
        ):
            begin -= 1
            if begin == self.word[1]:
                # A word with many signs in it is looked at once.
                begin = self.word[0]
        self.word = begin, start
        return self.sql[begin:start]

    def check_before(self, start: int) -> None:
        """Refuse U& before another word than the quote that it belongs to."""
        if self.sql[max(start - 2, 0) : start].lower() == "u&":
            self.refuse("a Unicode escape (U&)", start - 2, "write the characters")

    def is_escaped(self, start: int) -> bool:
        """Whether a quote belongs to ``U&`` that no letter or digit stands before."""
        if not self.lexicon.unicode_escapes.count(self.sql[start]):
            return False
        before = self.sql[max(start - 3, 0) : start].lower()
        return before[-2:] == "u&" and not (
            len(before) == 3 and _JOINS_LITERAL.match(before)
        )

    def escaped(self, start: int, quote: str) -> int:
        """Write the characters of ``U&'…'`` and ``U&"…"`` in the place of their escapes.

        So the engine, the parser and whatever reads a literal's text see the same.
        """
        pattern, what = _DOUBLED_QUOTES[quote]
        match = pattern.match(self.sql, start)
        if match is None:
            self.fail(f"unterminated {what}", start)
        end = match.end()
        goes_on = quote == "'" and _CONTINUED.match(self.sql, end)
        inside = self.sql[start + 1 : end - 1]
        is_uncertain = self.lexicon.unicode_quirks and UNCERTAIN.search(inside)
        if goes_on or is_uncertain or WRITES_ESCAPE.match(self.sql, end):
            self.refuse("a Unicode escape (U&)", start - 2, "write the characters")
        inside = inside.replace("%%", "%") if self.percent else inside
        written = decoded(inside, quote)
        if written is None:
            self.fail("a wrong Unicode escape", start - 2)
        if quote == '"' and _UNCERTAIN_IN_NAME.search(written):
            self.refuse("a backslash or control character in a name", start)
        if self.lexicon.escapes:
            written = written.replace("\\", "\\\\")
        self.replace(start - 2, end, f"{quote}{written}{quote}")
        begin = self.edits[-1].start
        self.quotes.append((begin, begin + self.edits[-1].length))
        return end

    def character(self, start: int, found: str) -> int:
        if found.isalpha():
            return start + 1
        shown = found if found.isprintable() else f"U+{ord(found):04X}"
        return self.refuse(f"the character {shown}", start)

    def quoted(self, pattern: re.Pattern[str], start: int, what: str) -> int:
        match = pattern.match(self.sql, start)
        if match is None:
            self.fail(f"unterminated {what}", start)
        self.undoubled_quote(start, start, match.end())
        return match.end()

    def undoubled_quote(self, start: int, inside: int, end: int) -> None:
        """Note a quoted stretch from ``start`` to ``end``, ``inside`` after the tag."""
        begin = self.position(start)
        self.after_quotes = end
        self.undouble(inside, end)
        self.quotes.append((begin, self.position(end)))

    def position(self, start: int) -> int:
        """Return the offset in the result of an offset that is not yet copied."""
        return self.length + start - self.copied

    def undouble(self, start: int, end: int) -> None:
        """Inside quotes ``%%`` stands for ``%`` and a lone ``%`` for itself."""
        if not self.percent:
            return
        while (start := self.sql.find("%%", start, end)) >= 0:
            self.replace(start, start + 2, "%")
            start += 2

    def line_comment(self, start: int) -> int:
        match = self.lexicon.line_end.search(self.sql, start)
        end = match.start() if match else len(self.sql)
        if self.lexicon.strict and (lone := _LONE_RETURN.search(self.sql, start, end)):
            self.refuse("a carriage return in a comment", lone.start())
        self.comments.append((self.position(start), self.position(end)))
        return end

    def comment(self, start: int) -> int:
        depth = 0
        for edge in _COMMENT_EDGE.finditer(self.sql, start):
            depth += 1 if edge.group() == "/*" else -1
            if depth == 0:
                self.check_edges(start, edge.end())
                self.comments.append((self.position(start), self.position(edge.end())))
                return edge.end()
        return self.fail("unterminated comment", start)

    def check_edges(self, start: int, end: int) -> None:
        """Refuse a comment in which two brackets share a character."""
        if not self.lexicon.strict:
            return
        if shared := _OVERLAPPING_EDGES.search(self.sql, start, end):
            self.refuse(f"{shared.group()} in a comment", shared.start())

    def dollar(self, start: int) -> int:
        if not self.lexicon.dollar_quotes and not self.own:
            self.fail("a placeholder of another style ($)", start, self.advice())
        if word := self.word_before(start):
            if self.lexicon.strict and word[0].isdigit():
                self.refuse(f"a $ right after {word}", start, "put a blank there")
            return start + 1
        tag = _DOLLAR_TAG.match(self.sql, start)
        numbered = _NUMBERED.match(self.sql, start) if self.own else None
        if numbered is not None:
            self.placeholder(start, numbered.end(), int(numbered.group(1)) - 1)
            return numbered.end()
        if tag is None:
            self.fail("a placeholder of the engine's own ($)", start, self.advice())
        end = self.sql.find(tag.group(), tag.end())
        if end < 0:
            self.fail("unterminated string", start)
        self.undoubled_quote(start, tag.end(), end + len(tag.group()))
        return end + len(tag.group())

    def question_mark(self, start: int) -> int:
        operators = self.lexicon.question_operators
        if operators and self.qmark and self.sql.startswith("??", start):
            self.replace(start, start + 2, "?")
            return start + 2
        if operators and not self.qmark:
            return start + 1
        if not self.qmark and not self.own:
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
        if following and following in self.lexicon.formats:
            self.placeholder(start, start + 2, len(self.arguments))
            return start + 2
        named = _NAMED.match(self.sql, start)
        if named and named.group(2) in self.lexicon.formats:
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
        if isinstance(argument, str) or self.own:
            number = self.numbers.setdefault(str(argument), number)
        if number > len(self.arguments):
            self.arguments.append(argument)
        # The parser takes $1,$ for the opening tag of a string, and $1 before a digit
        # for another number; a blank ends it.
        before, after = self.apart(start, end) if self.lexicon.strict else ("", "")
        if self.lexicon.dollar_quotes and _NEEDS_BLANK.match(self.sql, end):
            after = " "
        self.replace(start, end, f"{before}${number}{after}")
        self.starts.append(self.edits[-1].start + len(before))

    def apart(self, start: int, end: int) -> tuple[str, str]:
        """Return the blanks that keep a literal in the placeholder's place to itself.

        It must not merge with its neighbours: ``-`` and ``-1`` would be a comment,
        ``e`` and ``'a'`` another string.
        """
        before, after = self.sql[max(start - 1, 0) : start], self.sql[end : end + 1]
        for neighbour in (before, after):
            if neighbour and _JOINS_LITERAL.match(neighbour):
                self.refuse("a placeholder without a blank around it", start)
        return (
            "" if before in _APART else " ",
            "" if after in _APART else " ",
        )

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
        raise error_at(SyntaxProblem, what, self.sql, start, advice)

    def _check_unicode(self) -> None:
        """Refuse what no engine can be sent, wherever in the text it is."""
        try:
            self.sql.encode()
        except UnicodeEncodeError as error:
            self.fail("half of a surrogate pair", error.start)

    def refuse(self, what: str, start: int, advice: str = "") -> NoReturn:
        raise error_at(UnsupportedSQL, what, self.sql, start, advice)


def number_placeholders(
    sql: str,
    paramstyle: str = "pyformat",
    has_parameters: bool = True,
    *,
    lexicon: Lexicon,
) -> Lexed:
    """Rewrite the placeholders of ``sql`` to ``$1 … $n``.

    Parameters
    ----------
    sql
        The application's text.
    paramstyle
        ``pyformat`` (``%s``, ``%(name)s``, ``%%`` for a percent sign) or ``qmark``;
        ``OWN_STYLE`` for a statement of the engine's, in which ``$1`` is one.
    has_parameters
        Under ``pyformat``, False takes percent signs as they stand.
    lexicon
        How the engine cuts a text.

    Raises
    ------
    SyntaxProblem
        For an unterminated string or comment, a placeholder of another style,
        a percent sign that begins no placeholder and half of a surrogate pair.
    UnsupportedSQL
        Under a strict lexicon, where it is not certain how the engine cuts the text.
    """
    return _Lexer(sql, paramstyle, has_parameters, lexicon).run()
