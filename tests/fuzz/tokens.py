"""Texts that are one list of tokens to one reader and another to the other (P10, P11).

``python -m tests.fuzz.tokens --dialect duckdb --count 1000000 --seed 1``

A text is a function of the dialect, the seed and its number. The rewriter's reader refuses
most of them; of each that it accepts the engine's own scanner has to make the same tokens,
at the same places, and one statement at most. The engine's own are

* DuckDB: ``duckdb.tokenize`` and, for the number of statements, ``extract_statements``;
* PostgreSQL: its scanner as a library (pglast), and its parser for the statements;
* MonetDB: the server, which tells no tokens: the text becomes a list of results between two
  others, and each string among them is counted by what comes back.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from contextlib import ExitStack, closing
from itertools import pairwise
from typing import Any

from tests.fuzz.runs import place_of
from tests.plugins.monetdb import connect_natively
from tique_rewriter import RewriteError
from tique_rewriter.dialects import rules_of
from tique_rewriter.text.placeholders import number_placeholders
from tique_rewriter.text.source import Source
from tique_rewriter.text.tokens import OwnTokens

_BATCH = 20_000

DIALECTS = ("duckdb", "monetdb", "postgresql")

_ANY = (
    *("'", "''", "'", '"', '""', "\\", "\\'", "\\\\", "$", "$$", "$a$", "$1", "$a"),
    *("--", "/*", "*/", "/*+", "/**/", "/*/", "#", "{#", "#}", "{%", "%}", "{{", "}}"),
    *("E'", "e'", "U&'", 'u&"', "N'", "B'", "x'", "R'", "r'", "'\n'", "' '", "'a'"),
    *("E'a'\n", "x'41'\n", "'\\''", "'a' --\n", "; DROP TABLE t; --'", "$a$;$a$"),
    *("\n", "\r", "\r\n", "\t", "\f", "\v", "\0", "\x01", "\x1c", "\x85", "\xa0"),
    *("\u2028", "\u3000", "\ufeff", "\u200b", "é", "²", "🦆", "\ufb00", "İ"),
    *("1", "1_000", "1e", "1e5", "1e+", "0x1F", "0b1", "1.", ".5", "1..2", "123abc"),
    *("a", "e", "u", "n", "x", "b", "a$b", "_a", "AS", "GROUP BY", "IS NOT", "date"),
    *("?", "?1", ":name", "::", ":=", "=>", "->", "->>", "#>", "**", "//", "^@", "@-"),
    *("+", "-", "*", "/", "<", ">", "=", "!", "~", "@", "^", "&", "|", "%", "`", "."),
    *("<=", "<>", "||", "@>", "<->", "!~~*", "~=", "<<", "..", ",", "(", ")", "[", "]"),
    *("{", "}", ":", ";", ";", " ", " ", " ", "SELECT", "DROP TABLE t", "SHOW", "NULL"),
)
_SAFE = (
    *("'a'", "'it''s'", '"a"', '"a""b"', "$$a$$", "$t$ ' $t$", "E'\\''", "1", "1.5"),
    *(".5", "1e5", "a", "a.b", "count(*)", "/* a */", "/* /* */ */", "-- a\n", "# a\n"),
    *("+", "-", "*", "/", "<", "=", "||", "->>", "::", "<<", "%", "@>", "~", "AS a"),
    *(
        "(1)",
        "[1]",
        "{'a': 1}",
        "IS NULL",
        "BETWEEN 1 AND 2",
        ",",
        ", ",
        " ",
        "\n",
        "é",
    ),
    *("date '2020-01-01'", "R'\\'", "'\\'' ", "'\\\\'", "a$b", "1 - -1", "x'41'"),
)
_QUOTED = ("string", "name", "dollar")
_BEGIN = ("SELECT ", "SELECT ", "SELECT ", "SELECT 1 ", "SELECT 'a' ", "", "SHOW ")


def text_of(dialect: str, seed: int, number: int) -> str:
    """The text with this number: pieces that mean something to one reader or another."""
    chance = random.Random(f"{dialect} {seed} {number}")
    pieces = [chance.choice(_BEGIN)]
    rough = chance.choice((0.03, 0.1, 0.3, 0.8))
    between = chance.choice(("", " ", None))
    for _ in range(chance.randint(1, 12)):
        pieces.append(chance.choice(_ANY if chance.random() < rough else _SAFE))
        pieces.append(chance.choice(("", " ")) if between is None else between)
    return "".join(pieces)


def accepted(text: str, dialect: str) -> Source | None:
    """The rewriter's reading of a text; None if it refuses it."""
    rules = rules_of(dialect)
    try:
        lexed = number_placeholders(text, "pyformat", False, lexicon=rules.lexicon)
        return Source(lexed, rules)
    except RewriteError:
        return None


def spans_of(source: Source) -> list[tuple[int, int, str]]:
    """Its tokens, with their kinds."""
    own = OwnTokens(source.text, source.rules.lexicon.tokens)
    return [(*span, kind) for span, kind in zip(own.spans, own.kinds, strict=True)]


def _inner_difference(source: Source) -> str | None:
    """Where the lexer of placeholders sees other strings; None if it sees the same."""
    seen = {end for _, end in source.lexed.quotes}
    ours = {end for _, end, kind in spans_of(source) if kind in _QUOTED}
    return f"a quote before {min(seen ^ ours)}" if seen != ours else None


def _joined(ours: list[tuple[int, int, str]], text: str) -> set[tuple[int, int]]:
    """The gaps between strings that an engine may take for one: one below the other."""
    return {
        (first[1], second[0])
        for first, second in pairwise(ours)
        if first[2] == second[2] == "string"
        and text[second[0]] == "'"
        and re.search(r"[\n\r]", text[first[1] : second[0]])
    }


class DuckDBScanner:
    """What DuckDB makes of a text."""

    def __init__(self) -> None:
        import duckdb

        self._duckdb = duckdb

    def difference(self, source: Source) -> str | None:
        """Where DuckDB's tokens are others; None if they are the same."""
        text = source.text
        found = self._duckdb.tokenize(text)
        if not text.isascii():
            encoded = text.encode()
            found = [(len(encoded[:at].decode()), kind) for at, kind in found]
        comment = self._duckdb.token_type.comment
        theirs = {at for at, kind in found if kind is not comment}
        ours = spans_of(source)
        # Release 2.0 makes two tokens of $1.
        may_differ = {start for _, start in _joined(ours, text)}
        may_differ |= {start + 1 for start, _, kind in ours if kind == "parameter"}
        if differing := ({start for start, _, _ in ours} ^ theirs) - may_differ:
            return f"a token at {min(differing)}"
        try:
            count = len(self._duckdb.extract_statements(text))
        except self._duckdb.Error:
            return None
        return None if count <= 1 else f"{count} statements"

    def close(self) -> None:
        """It has nothing open."""


class PostgreSQLScanner:
    """What PostgreSQL makes of a text."""

    def __init__(self) -> None:
        from pglast import parser

        self._parser = parser

    def difference(self, source: Source) -> str | None:
        """Where PostgreSQL's tokens are others; None if they are the same."""
        text = source.text
        try:
            found = self._parser.scan(text)
        except self._parser.ParseError as error:
            return f"no token: {error}"
        ours = spans_of(source)
        joined = _joined(ours, text)
        theirs = [token for token in found if not token.name.endswith("COMMENT")]
        starts = {start for start, _, _ in ours} ^ {token.start for token in theirs}
        ends = {end for _, end, _ in ours} ^ {token.end + 1 for token in theirs}
        starts -= {start for _, start in joined}
        ends -= {end for end, _ in joined}
        if starts | ends:
            return f"a token at {min(starts | ends)}"
        try:
            count = len(self._parser.split(text, with_parser=False))
        except self._parser.ParseError:
            return None
        return None if count <= 1 else f"{count} statements"

    def close(self) -> None:
        """It has nothing open."""


class MonetDBScanner:
    """What a server makes of a text's strings, names, numbers and comments."""

    def __init__(self, url: str) -> None:
        self._connection = connect_natively(url)
        self._cursor = self._connection.cursor()
        self.answered = 0

    def difference(self, source: Source) -> str | None:
        """Where the server's results are others; None if they are the same.

        Each token that can be a result is one, and what is between it and the next one
        stays there, so that a string or comment that ends elsewhere takes others with it.
        """
        text, ours = source.text, spans_of(source)
        pieces, count, at = ["SELECT 7001"], 2, 0
        for start, end, kind in ours:
            pieces.append(text[at:start])
            at = end
            if kind in ("string", "number"):
                pieces.append(f", {text[start:end]}")
            elif kind == "name":
                pieces.append(f", 1 AS {text[start:end]}")
            else:
                continue
            count += 1
        pieces.append(f"{text[at:]}\n, 7002")
        try:
            self._cursor.execute("".join(pieces))
            (row,) = self._cursor.fetchall()
        except (self._connection.Error, ValueError):
            # A number out of range, X'1', an escape that is none.
            return None
        self.answered += 1
        if len(row) != count or (row[0], row[-1]) != (7001, 7002):
            return f"{len(row)} results in the place of {count}"
        return None if self._cursor.nextset() is None else "another result"

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def scanner_of(dialect: str, url: str = "") -> Any:
    """The engine's reader."""
    match dialect:
        case "duckdb":
            return DuckDBScanner()
        case "postgresql":
            return PostgreSQLScanner()
    return MonetDBScanner(url)


def run(
    dialect: str, scanner: Any, seed: int, start: int, count: int
) -> tuple[Counter[str], list[tuple[int, str, str]]]:
    """Read texts; how many were accepted, and each with a difference."""
    counts: Counter[str] = Counter()
    findings = []
    for number in range(start, start + count):
        text = text_of(dialect, seed, number)
        source = accepted(text, dialect)
        counts["texts"] += 1
        if source is not None:
            counts["accepted"] += 1
            difference = _inner_difference(source) or scanner.difference(source)
            if difference is not None:
                findings.append((number, text, difference))
    return counts, findings


def main() -> bool:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.tokens")
    parser.add_argument("--dialect", choices=DIALECTS, required=True)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    begin = time.monotonic()
    counts: Counter[str] = Counter()
    found = 0
    with ExitStack() as stack:
        url = ""
        if options.dialect == "monetdb":
            url = stack.enter_context(place_of("monetdb"))()
        scanner = stack.enter_context(closing(scanner_of(options.dialect, url)))
        stop = options.start + options.count
        for at in range(options.start, stop, _BATCH):
            batch = min(stop, at + _BATCH) - at
            more, findings = run(options.dialect, scanner, options.seed, at, batch)
            counts += more
            found += len(findings)
            for finding in findings:
                print(json.dumps(finding), flush=True)
            answered = getattr(scanner, "answered", counts["accepted"])
            print(
                f"{dict(counts)}, {answered} compared, {found} differences, "
                f"{time.monotonic() - begin:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    return found > 0


if __name__ == "__main__":
    sys.exit(main())
