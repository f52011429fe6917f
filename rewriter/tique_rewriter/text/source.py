"""A statement's text with its tokens, its places and its holes."""

from __future__ import annotations

import logging
import re
from bisect import bisect_left
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from functools import cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING

from sqlglot import expressions as exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from tique_rewriter.errors import (
    AnyError,
    SyntaxProblem,
    UnsupportedSQL,
    error_at,
)
from tique_rewriter.text.placeholders import number_placeholders
from tique_rewriter.text.tokens import OwnTokens, Uncertain
from tique_rewriter.tree.ancestors import Ancestors
from tique_rewriter.tree.readable import readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from tique_rewriter.dialects import Rules
    from tique_rewriter.plans.text import Piece, Text
    from tique_rewriter.text.placeholders import Lexed

_OPENING = frozenset("([{")
_CLOSING = frozenset(")]}")
_ENDS_CHAIN = frozenset({TokenType.COMMA, TokenType.WHEN, TokenType.SELECT})
_OPENING_TYPES = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET})
_CLOSING_TYPES = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET})
_DEEPEST = 250
_LONGEST_CHAIN = 10_000
_MOST_LACKING = 8
_MOST_TYPES = 8
_WITHOUT_CONDITION = frozenset({"CROSS", "NATURAL", "POSITIONAL"})
_NOT_SPACE = re.compile(r"\S+")
_NUMBER = re.compile(r"\d+")


_is_parsing = ContextVar("_is_parsing", default=False)


def _is_not_ours(record: logging.LogRecord) -> bool:
    return not _is_parsing.get()


# The parser would write the application's text, and so its literals, into a log (P11).
logging.getLogger("sqlglot").addFilter(_is_not_ours)


# (It has no state of its own.)
_dialect = cache(Dialect.get_or_raise)


def _has_to_do_with_lists(node: exp.Expr) -> bool:
    return isinstance(node, exp.CTE | exp.With) or bool(node.args.get("with_"))


@dataclass(frozen=True, slots=True)
class Word:
    """A token at ``text[start:end]``.

    ``keyword`` is its upper-case text, or empty for a quoted name or a string;
    ``depth`` counts the brackets around it (a bracket counts itself as inside).
    """

    keyword: str
    start: int
    end: int
    depth: int


@dataclass(frozen=True, slots=True)
class Span:
    """The place of hole ``index``: ``text[start:end]`` is a table's name."""

    start: int
    end: int
    index: int


@dataclass(frozen=True, slots=True)
class Mark:
    """The piece of a plan in the place of ``text[start:end]``.

    A hole takes the place of a table's name, a variant that of the name of one of the
    engine's own relations, a label the place of nothing; other text that of a ``*``.
    """

    start: int
    end: int
    piece: Piece


def in_order(marks: Iterable[Mark]) -> list[Mark]:
    """Return marks in the text's order."""
    return sorted(marks, key=lambda mark: (mark.start, mark.end))


class Source:
    """One statement's text, ``$n`` for placeholders, cut into words.

    Raises
    ------
    SyntaxProblem
        When the text cannot be cut into words.
    UnsupportedSQL
        When it holds more than one statement, or what the engine and the parser might
        not cut into the same tokens.
    """

    def __init__(
        self, lexed: Lexed, rules: Rules, outer: Mapping[str, bool] | None = None
    ) -> None:
        self.lexed = lexed
        self.rules = rules
        self.outer = outer or {}
        """The members of a WITH list around this text by their folded names.

        False stands for one without rows: a change without RETURNING.
        """
        self.text = lexed.text
        self._dialect = _dialect(rules.syntax)
        tokens = self._checked_tokens()
        self.tokens = self._one_statement(tokens)
        self.words = list(self._words())
        self._check_lengths()
        self.members: dict[int, dict[str, exp.CTE]] = {}
        """The members of each WITH list of the tree by their folded names."""
        self.with_lists = Ancestors(_has_to_do_with_lists)
        """The nodes that have a WITH list, are one or are a member of one."""

    @classmethod
    def of_text(cls, text: str, rules: Rules) -> Source:
        """Return a text that has no placeholders."""
        lexed = number_placeholders(text, has_parameters=False, lexicon=rules.lexicon)
        return cls(lexed, rules)

    def parse(self) -> exp.Expr:
        """Parse the statement into its syntax tree, with names as the engine reads them.

        Raises
        ------
        SyntaxProblem
            When the parser cannot read it.
        UnsupportedSQL
            When it is nested so deeply that a parser might run out of stack.
        """
        self._check_effort()
        quiet = _is_parsing.set(True)
        try:
            trees = self._dialect.parser().parse(
                list(readable(self.tokens, self.rules)), self.text
            )
        except ParseError as error:
            raise self.unread(self._parse_problem(error)) from None
        except RecursionError:
            raise UnsupportedSQL("the statement is nested too deeply") from None
        except (TypeError, AttributeError, LookupError, ValueError):
            # The parser stumbles over an operator that lacks a side.
            raise self.unread(SyntaxProblem("the statement cannot be read")) from None
        finally:
            _is_parsing.reset(quiet)
        if len(trees) != 1 or trees[0] is None:
            raise self.unread(SyntaxProblem("the statement cannot be read"))
        if self.rules.exact_quoted_names:
            for name in trees[0].find_all(exp.Identifier):
                if not name.quoted:
                    name.set("this", self.rules.unquoted(name.name))
        return trees[0]

    def keywords(self, start: int = 0) -> list[str]:
        """Return the words from number ``start`` on, in upper case."""
        return [word.keyword for word in self.words[start:]]

    def find(self, *keywords: str) -> int:
        """Return the place of the first of these keywords, outside brackets if it can be."""
        found = [word for word in self.words if word.keyword in keywords]
        found.sort(key=lambda word: word.depth)
        return found[0].start if found else self.start

    def word(self, keyword: str, start: int) -> Word:
        """Return the first such keyword at or after ``start``."""
        for word in self.words:
            if word.start >= start and word.keyword == keyword:
                return word
        raise self.syntax(f"{keyword} is missing", self.words[-1].start)

    def number(self, start: int) -> int:
        """Return the number of the first word at or after ``start``, or how many there are."""
        return bisect_left(self.words, start, key=lambda word: word.start)

    def closing(self, words: Sequence[Word]) -> int:
        """Return where in ``words`` the bracket is that closes the first one."""
        depth = words[0].depth
        for number, word in enumerate(words):
            if word.keyword == ")" and word.depth == depth:
                return number
        raise self.syntax("a bracket that is not closed", words[0].start)

    def cut(self, start: int, end: int, marks: Sequence[Mark] = ()) -> Text:
        """``text[start:end]`` with the marks that lie in it, given in the text's order."""
        pieces: list[Piece] = []
        first = bisect_left(marks, start, key=lambda mark: mark.start)
        for mark in islice(marks, first, None):
            if mark.start > end:
                break
            if mark.end <= end:
                if start < mark.start:
                    pieces.append(self.text[start : mark.start])
                pieces.append(mark.piece)
                start = mark.end
        if start < end:
            pieces.append(self.text[start:end])
        return tuple(pieces)

    def placeholders(self, start: int, end: int) -> list[tuple[int, int]]:
        """Return start and number of each placeholder in ``text[start:end]``."""
        return [
            (at, int(_NUMBER.match(self.text, at + 1).group()))  # type: ignore[union-attr]
            for at in self.lexed.starts
            if start <= at < end
        ]

    def parameters_before(self, end: int) -> int:
        """Return how many parameters the text before ``end`` takes: the first ones."""
        return max((number for _, number in self.placeholders(0, end)), default=0)

    @property
    def start(self) -> int:
        """Where the statement's first word begins."""
        return self.words[0].start

    @property
    def end(self) -> int:
        """Where the statement's last word ends."""
        return self.words[-1].end

    def words_text(self, words: list[Word]) -> str:
        """Return the exact text from the first of these words to the last."""
        return self.text[words[0].start : words[-1].end]

    def blanked(self, *parts: list[Word]) -> Source:
        """Return the statement with blanks in the place of these parts of it."""
        spans = [(words[0].start, words[-1].end) for words in parts if words]
        return Source(self.lexed.blanked(spans), self.rules)

    def without(self, words: list[Word]) -> Source:
        """Return the statement with the same text, in which nothing reads these words."""
        rest, left_out = copy(self), {word.start for word in words}
        rest.words = [word for word in self.words if word.start not in left_out]
        rest.tokens = [token for token in self.tokens if token.start not in left_out]
        return rest

    def raw(self, word: Word) -> str:
        """Return a word as it is written."""
        return self.text[word.start : word.end]

    def identifier(self, word: Word) -> str:
        """Return the name that a word stands for."""
        raw = self.text[word.start : word.end]
        if raw.startswith('"'):
            return raw[1:-1].replace('""', '"')
        if not word.keyword or not (raw[0].isalpha() or raw[0] == "_"):
            raise self.syntax("a name is expected", word.start)
        return self.rules.unquoted(raw)

    def error(
        self, kind: type[AnyError], what: str, start: int, advice: str = ""
    ) -> AnyError:
        """Return an exception with the problem at ``start`` and its remedy."""
        position = self.lexed.original_position(start)
        return error_at(kind, what, self.lexed.original, position, advice)

    def unsupported(self, what: str, start: int, advice: str = "") -> UnsupportedSQL:
        """Return the refusal of the construct at ``start``."""
        return self.error(UnsupportedSQL, what, start, advice)

    def syntax(self, what: str, start: int, advice: str = "") -> SyntaxProblem:
        """Return the complaint about the text at ``start``."""
        return self.error(SyntaxProblem, what, start, advice)

    def unexpected(self, word: Word, where: str) -> UnsupportedSQL:
        """Return the refusal of a word that may not be there."""
        return self.unsupported(f'"{self.raw(word)}" {where}', word.start)

    def unread(self, error: AnyError) -> AnyError:
        """Return the error with the statement: the engine may understand it."""
        error.text = self.text[self.start : self.end]
        return error

    def _check_effort(self) -> None:
        """Refuse a text for which the parser would need too much stack or time.

        The time that it takes doubles with every JOIN that lacks its condition, and with
        every bracket that stands after the name of a type inside another such bracket:
        the parser reads its content as the type's, then as an expression. Operators and
        subscripts in a row make the tree deeper without a bracket.
        """
        deepest = max(self.words, key=lambda word: word.depth)
        if deepest.depth > _DEEPEST:
            raise self.unsupported("so deep a nesting of brackets", deepest.start)
        keywords = self.keywords()
        lacking = -sum(keyword in ("ON", "USING") for keyword in keywords)
        for number, word in enumerate(self.words):
            before = keywords[max(number - 3, 0) : number]
            if word.keyword == "JOIN" and _WITHOUT_CONDITION.isdisjoint(before):
                lacking += 1
        if lacking > _MOST_LACKING:
            raise self.syntax("a JOIN without ON", self.find("JOIN"))
        types = self._dialect.parser_class.TYPE_TOKENS
        opened: list[bool] = []
        chaining = self._chaining()
        chains, subscripts = [0], 0
        for previous, token in pairwise(self.tokens):
            if token.token_type in _ENDS_CHAIN:
                chains[-1] = 0
            elif token.token_type in chaining:
                chains[-1] += 1
                if chains[-1] > _LONGEST_CHAIN:
                    raise self.unsupported("so long a chain of operators", token.start)
            elif token.token_type in _OPENING_TYPES:
                chains.append(0)
                is_next = previous.token_type is TokenType.R_BRACKET
                subscripts = subscripts + 1 if is_next else 0
                if subscripts > _DEEPEST:
                    raise self.unsupported("so many subscripts", token.start)
                opened.append(previous.token_type in types)
                if sum(opened) > _MOST_TYPES:
                    what = f"so deep a nesting of {previous.text.upper()}"
                    raise self.unsupported(what, previous.start)
            elif token.token_type in _CLOSING_TYPES and opened:
                opened.pop()
                chains.pop()

    def _chaining(self) -> set[TokenType]:
        """The tokens that make an expression one level deeper, without a bracket."""
        parser = self._dialect.parser_class
        kinds = (parser.CONJUNCTION, parser.DISJUNCTION, parser.EQUALITY, parser.TERM)
        others = (parser.COMPARISON, parser.BITWISE, parser.FACTOR, parser.EXPONENT)
        named = {TokenType.DPIPE, TokenType.DCOLON, TokenType.COLLATE, TokenType.IS}
        return named.union(*kinds, *others)

    def _checked_tokens(self) -> list[Token]:
        """The parser's tokens, which are the engine's, as the placeholders are."""
        lexicon = self.rules.lexicon
        try:
            own = OwnTokens(self.text, lexicon.tokens)
            tokens = list(self._dialect.tokenize(self.text))
            own.compare(tokens, lexicon.divided)
        except TokenError as error:
            raise SyntaxProblem(f"the statement cannot be read: {error}") from None
        except Uncertain as error:
            raise self.unsupported(error.what, error.start, error.advice) from None
        # (Those of other parts of the statement are blanks here.)
        numbered = {at for at in self.lexed.starts if self.text[at : at + 1] == "$"}
        if differing := own.parameters() ^ numbered:
            raise self.unsupported("the text around a placeholder", min(differing))
        return tokens

    def _check_lengths(self) -> None:
        longest = self.rules.longest_name
        for word in self.words if longest else ():
            raw = self.text[word.start : word.end]
            if raw.startswith('"'):
                raw = raw[1:-1].replace('""', '"')
            elif not word.keyword:
                continue
            if len(raw) * 4 > longest and len(raw.encode()) > longest:
                raise self.unsupported(
                    f"a name of more than {longest} bytes",
                    word.start,
                    f"{self.rules.engine} would cut it off",
                )

    def _one_statement(self, tokens: list[Token]) -> list[Token]:
        ends = [i for i, t in enumerate(tokens) if t.token_type is TokenType.SEMICOLON]
        kept = tokens[: ends[0]] if ends else tokens
        for token in tokens[len(kept) :]:
            if token.token_type is not TokenType.SEMICOLON:
                raise self.unsupported(
                    "a second statement in one text",
                    token.start,
                    "execute the statements one by one",
                )
        if not kept:
            raise SyntaxProblem("the statement is empty")
        return kept

    def _words(self) -> Iterator[Word]:
        depth = 0
        for token in self.tokens:
            raw = self.text[token.start : token.end + 1]
            if raw in _OPENING:
                depth += 1
            if "'" in raw or raw[:1] == '"' or (raw[:1] == "$" and len(raw) > 1):
                yield Word("", token.start, token.end + 1, depth)
            else:
                for part in _NOT_SPACE.finditer(raw):
                    yield Word(
                        part.group().upper(),
                        token.start + part.start(),
                        token.start + part.end(),
                        depth,
                    )
            if raw in _CLOSING:
                depth -= 1

    def _parse_problem(self, error: ParseError) -> SyntaxProblem:
        details = error.errors[0] if error.errors else {}
        line, column = details.get("line"), details.get("col")
        if line is None or column is None:
            return SyntaxProblem("the statement cannot be read")
        near = str(details.get("highlight") or "")
        start = next(
            (t.start for t in self.tokens if (t.line, t.col) == (line, column)),
            self.tokens[-1].start,
        )
        what = "syntax error" + (f' near "{near}"' if near else "")
        return self.syntax(what, start)
