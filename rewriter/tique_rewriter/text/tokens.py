"""The one list of tokens that decides what a text is; the parser's is held against it.

The invariant (P11, "one token list"): no text reaches an engine that the engine may cut
into other tokens than the parser did. If the two differed, a string or a comment of one
could hold words of the other, such as a second statement that nothing has planned.

So the parser's tokenizer decides nothing. The patterns here are ours, one per dialect,
after the engine's own scanner and narrower than that: a character, a number or a string
that they do not match is refused, even if the parser and the engine know it. Then the
tokens that the parser made have to be these, at the same places. Three differences are let
be, as none of them moves the edge of a string, a name or a comment:

* the parser makes one token of a phrase of words (GROUP BY), with blanks between;
* it makes two of ``$n``, and of a number that begins with a point;
* it makes several of the operators in ``Lexicon.divided``.

The comparison is where the parser's tokens are made, in
:class:`~tique_rewriter.text.source.Source`, of each text that is parsed, rather than once of the
application's text: statements are also cut into parts, spliced with views and given other
words, and each such text is read again. What ``readable`` changes for the parser are tokens,
after the comparison, and never a text. Plans are pieces of such texts, cut at tokens, with
names of ours between them. Every semicolon is a token of this list, and one that is not
the last makes the text more than one statement: so none is in what an engine gets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlglot.tokenizer_core import Token

NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?"
DOUBLED = r"'(?:[^']|'')*'"
ESCAPED = r"'(?:[^'\\]|\\(?s:.)|'')*'"
ALONE = r"(?!(?:\s|--[^\n\r]*)*')"
"""After a string with letters before it: the next one would be a part of it, by its rules."""

UNICODE_WORD = r"[^\W\d]\w*"

_BEYOND_ASCII = (
    r"[^\x00-\x9f\s\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f"
    r"\ufeff\ufff0-\uffff]"
)
POSTGRES_WORD = f"(?:[A-Za-z_]|{_BEYOND_ASCII})(?:[A-Za-z0-9_$]|{_BEYOND_ASCII})*"
"""Also of DuckDB, which takes some characters for blanks: those are no letters here."""

_LONGEST_OPERATOR = 16
_COMMENT_EDGE = re.compile(r"/\*|\*/")


class Uncertain(Exception):
    """The thing at offset ``start`` of a text, and what to do about it."""

    def __init__(self, what: str, start: int, advice: str = "") -> None:
        super().__init__(what)
        self.what, self.start, self.advice = what, start, advice


def postgres_operators(special: str) -> str:
    """Return the pattern of operators by PostgreSQL's rule.

    One of several characters ends in ``+`` or ``-`` only if it has one of the
    ``special`` ones; a comment may begin inside of what looks like an operator.
    """
    special = f"(?!--|/\\*)[{special}]"
    any_ = f"(?:{special}|(?!--|/\\*)[-+*/<>=])"
    return (
        f"(?!{any_}{{{_LONGEST_OPERATOR + 1}}})"
        f"(?:(?={any_}*?{special}){any_}+|{any_}*(?!/\\*)[*/<>=]|[+-])"
    )


def token_pattern(
    *,
    string: str,
    word: str,
    operator: str,
    blank: str,
    number: str = NUMBER,
    after_number: str = rf"""[\w.$'"]|{_BEYOND_ASCII}""",
) -> re.Pattern[str]:
    """Return the pattern of a token, whose kind is the name of the group.

    Parameters
    ----------
    string
        Strings, with the letters before the quote.
    word
        Keywords, and names without quotes.
    operator
        Operators, and all that is written with signs.
    blank
        Blanks, and comments to the end of the line.
    number
        Numbers.
    after_number
        What must not follow one: in some releases it would be a part of it.
    """
    return re.compile(
        rf"(?P<blank>{blank})"
        r"|(?P<comment>/\*)"
        rf"|(?P<string>{string})"
        r"""|(?P<prefix>(?:[A-Za-z]|[uU]&)(?=['"]))"""
        rf"|(?P<word>{word})"
        r'|(?P<name>"(?:[^"]|"")+")'
        rf"|(?P<number>(?:{number})(?!{after_number}))"
        r"|(?P<junk>\.?\d)"
        r"""|(?P<parameter>\$[1-9]\d{0,4}(?![\w.$'"]))"""
        rf"|(?P<dollar>\$(?:{UNICODE_WORD})?\$)"
        rf"|(?P<operator>{operator})"
    )


class OwnTokens:
    """The tokens of a text, without blanks and comments.

    Parameters
    ----------
    text
        One statement's, or more; ``$n`` for placeholders.
    pattern
        A dialect's :func:`token_pattern`.

    Raises
    ------
    Uncertain
        At the first thing that the pattern does not know.
    """

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self.text = text
        self.spans: list[tuple[int, int]] = []
        self.kinds: list[str] = []
        if "\0" in text:
            raise Uncertain("the character U+0000", text.index("\0"))
        match = pattern.match
        position = 0
        while position < len(text):
            found = match(text, position)
            if found is None:
                shown = text[position]
                shown = shown if shown.isprintable() else f"U+{ord(shown):04X}"
                raise Uncertain(f"the character {shown}", position)
            kind, start, position = str(found.lastgroup), position, found.end()
            if kind == "blank":
                continue
            if kind == "comment":
                position = self._end_of_comment(start)
                continue
            if kind == "dollar":
                position = text.find(found.group(), position)
                if position < 0:
                    raise Uncertain("an unterminated string", start)
                position += len(found.group())
            elif kind == "junk":
                what = "a name right after a number"
                raise Uncertain(what, start, "put a blank there")
            elif kind == "prefix":
                what = f"a quote right after {found.group()}"
                raise Uncertain(what, position, "put a blank there")
            self.spans.append((start, position))
            self.kinds.append(kind)

    def _end_of_comment(self, start: int) -> int:
        """Where the comment ends, with those inside of it."""
        depth = 0
        for edge in _COMMENT_EDGE.finditer(self.text, start):
            depth += 1 if edge.group() == "/*" else -1
            if self.text.startswith(("/*/", "*/*"), edge.start()) and depth:
                raise Uncertain("/*/ in a comment", edge.start())
            if depth == 0:
                return edge.end()
        raise Uncertain("an unterminated comment", start)

    def parameters(self) -> set[int]:
        """Where the placeholders begin."""
        kinds = zip(self.spans, self.kinds, strict=True)
        return {start for (start, _), kind in kinds if kind == "parameter"}

    def compare(self, tokens: Sequence[Token], divided: frozenset[str]) -> None:
        """Hold the parser's tokens against these.

        Raises
        ------
        Uncertain
            At the first one that is not here.
        """
        spans = [(token.start, token.end + 1) for token in tokens]
        if spans == self.spans:
            return
        end_of_text = len(self.text), len(self.text)
        own = [*self.spans, end_of_text]
        number, inside = 0, -1
        for start, end in [*spans, end_of_text]:
            first, last = own[number]
            if start != (first if inside < 0 else inside):
                raise self._difference(number, start)
            if end == last:
                number, inside = number + 1, -1
            elif end < last and self._may_divide(number, end, divided):
                inside = end
            elif end > last and inside < 0 and (stop := self._phrase(number, end)):
                number = stop
            else:
                raise self._difference(number, start)

    def _difference(self, number: int, start: int) -> Uncertain:
        if number < len(self.spans):
            first, last = self.spans[number]
            if self.kinds[number] == "operator" and last - first > 1:
                return Uncertain(f"the operator {self.text[first:last]}", first)
            start = min(first, start)
        return Uncertain("text that the parser would cut elsewhere", start)

    def _may_divide(self, number: int, end: int, divided: frozenset[str]) -> bool:
        start, stop = self.spans[number]
        match self.kinds[number]:
            case "parameter":
                return end == start + 1
            case "number":
                return end == start + 1 and self.text[start] == "."
            case "operator":
                return self.text[start:stop] in divided
        return False

    def _phrase(self, number: int, end: int) -> int:
        """The token after the words that end there, with blanks between; 0 if others do."""
        while number < len(self.spans) and self.kinds[number] == "word":
            stop = self.spans[number][1]
            number += 1
            if stop == end:
                return number
            if number == len(self.spans):
                break
            if not self.text[stop : self.spans[number][0]].isspace():
                break
        return 0
