from __future__ import annotations

import time
from functools import partial

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import tokenize

from tique_rewriter import SyntaxProblem
from tique_rewriter.dialects import rules_of
from tique_rewriter.text import placeholders

number_placeholders = partial(
    placeholders.number_placeholders, lexicon=rules_of("duckdb").lexicon
)

QUOTED = (
    "'plain %s ? $1 -- /*'",
    "'it''s %(a)s'",
    "E'\\' %s ?'",
    "e'\\\\'",
    '"name %s ? $1"',
    '"a""b %s"',
    "$$ %s ? ' $1 $$",
    "$tag$ %s $$ ? $tag$",
    "-- %s ? $1 ' \"\n",
    "-- %s\r",
    "/* %s ? ' */",
    "/* %s /* ? */ $1 */",
)
PLAIN = ("SELECT", " ", "\n", ",", "(", ")", "a", "e", "1", "+", "é", "-", "*", "/ ")
INSIDE = st.sampled_from(QUOTED)
OUTSIDE = st.sampled_from(PLAIN)


def joined(pieces: list[str]) -> str:
    """Spaces keep pieces apart that would otherwise make something new."""
    return " ".join(pieces)


@given(st.lists(st.one_of(INSIDE, OUTSIDE)))
def test_nothing_inside_quotes_and_comments_is_a_placeholder(pieces: list[str]):
    text = joined(pieces)
    for style in ("pyformat", "qmark"):
        lexed = number_placeholders(text, style)
        assert lexed.text == text
        assert lexed.arguments == ()


@given(st.lists(st.one_of(INSIDE, OUTSIDE, st.just("%s"), st.just("%%"))))
def test_placeholders_are_numbered_and_the_rest_stays(pieces: list[str]):
    lexed = number_placeholders(joined(pieces))
    number = 0
    expected = []
    for piece in pieces:
        if piece == "%s":
            number += 1
            expected.append(f"${number}")
        else:
            expected.append("%" if piece == "%%" else piece)
    assert lexed.text == joined(expected)
    assert lexed.arguments == tuple(range(number))
    assert [lexed.text[s] for s in lexed.starts] == ["$"] * number


@given(st.lists(st.one_of(INSIDE, OUTSIDE, st.sampled_from(["%(a)s", "%(b c)s"]))))
def test_one_number_for_each_name(pieces: list[str]):
    lexed = number_placeholders(joined(pieces))
    assert len(set(lexed.arguments)) == len(lexed.arguments)
    named = [p[2:-2] for p in pieces if p.startswith("%(")]
    assert list(lexed.arguments) == list(dict.fromkeys(named))


@given(st.lists(st.one_of(INSIDE, OUTSIDE, st.sampled_from(["%s", "%%"]))), st.data())
def test_places_map_back(pieces: list[str], data: st.DataObject):
    text = joined(pieces)
    lexed = number_placeholders(text)
    for position, character in enumerate(lexed.text):
        back = lexed.original_position(position)
        if character not in "$%0123456789":
            assert text[back] == character


@given(st.text(alphabet="'\"$%sab(?)/*-\\eE\n 1", max_size=30))
@example("E'%s\\''%s")
@example("a$1%s")
@example("$a$ $a %s $a$")
def test_the_engine_sees_the_same_placeholders(text: str):
    """The lexer's placeholders are outside the engine's own strings."""
    try:
        lexed = number_placeholders(text)
    except SyntaxProblem:
        return
    for style in ("pyformat", "qmark"):
        try:
            restyled = number_placeholders(text, style)
        except SyntaxProblem:
            continue
        if not restyled.arguments:
            continue
        starts = set(restyled.starts)
        tokens = {
            len(restyled.text.encode()[:start].decode()): kind
            for start, kind in duckdb.tokenize(restyled.text)
        }
        for start in starts & set(tokens):
            assert tokens[start] is not duckdb.token_type.comment
            assert tokens[start] is not duckdb.token_type.string_const
    assert lexed.original == text


def test_a_placeholder_and_a_digit_are_no_other_placeholder():
    """P11."""
    lexed = number_placeholders("SELECT 1 WHERE 1 = %s1 OR 2 = %sx")
    assert lexed.text == "SELECT 1 WHERE 1 = $1 1 OR 2 = $2 x"


def test_doubled_percent_signs_are_halved_in_strings_too():
    lexed = number_placeholders("SELECT 'a%%', '100%', %s % % 2".replace("% %", "%%"))
    assert lexed.text == "SELECT 'a%', '100%', $1 % 2"


def test_without_parameters_percent_signs_stand_for_themselves():
    lexed = number_placeholders("SELECT 7 % 2, '%%', '%s'", has_parameters=False)
    assert lexed.text == "SELECT 7 % 2, '%%', '%s'"


def test_question_marks():
    lexed = number_placeholders("SELECT ?, '?', 7 % ?", "qmark")
    assert lexed.text == "SELECT $1, '?', 7 % $2"
    assert lexed.arguments == (0, 1)


@pytest.mark.parametrize(
    ("text", "style", "position"),
    [
        ("SELECT $1", "pyformat", 7),
        ("SELECT $1", "qmark", 7),
        ("SELECT ?", "pyformat", 7),
        ("a %d", "pyformat", 2),
        ("a %", "pyformat", 2),
        ("%s %(a)s", "pyformat", 3),
        ("%(a)s %s", "pyformat", 6),
        ("%(a", "pyformat", 0),
        ("é 'open", "pyformat", 2),
        ("/* /* */", "qmark", 0),
        ("$a$ $$", "qmark", 0),
    ],
)
def test_what_is_no_placeholder_is_refused(text: str, style: str, position: int):
    with pytest.raises(SyntaxProblem) as caught:
        number_placeholders(text, style)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "style"),
    [
        ("VALUES (%s,%s)", "pyformat"),
        ("VALUES (%(a)s,%(b)s,%(a)s)", "pyformat"),
        ("SELECT %s+%s||'%%'", "pyformat"),
        ("VALUES(?,?)", "qmark"),
        ("SELECT f(?)+g(?)", "qmark"),
    ],
)
def test_placeholders_without_blanks_are_not_a_dollar_quoted_string(text, style):
    lexed = number_placeholders(text, style)
    tokens = tokenize(lexed.text, read="duckdb")
    assert {t.start for t in tokens if t.text == "$"} == set(lexed.starts)


@pytest.mark.parametrize(
    ("text", "style", "dialect"),
    [
        (lambda n: ",".join(["%s"] * n), "pyformat", "duckdb"),
        (lambda n: "f(" * 9 + ",".join(["%(name)s"] * n), "pyformat", "duckdb"),
        (lambda n: ",".join("?" * n), "qmark", "duckdb"),
        (lambda n: ",".join(["%s"] * n), "pyformat", "postgresql"),
        (lambda n: ",".join(["%s"] * n), "pyformat", "monetdb"),
        (lambda n: "a" + "$a" * n, "pyformat", "duckdb"),
        (lambda n: "a" + "$a" * n, "pyformat", "postgresql"),
        (lambda n: "'" + "%%" * n + "'", "pyformat", "duckdb"),
        (lambda n: "/*" * n + "*/" * n, "pyformat", "duckdb"),
        (lambda n: "x''" + "''" * n, "pyformat", "duckdb"),
    ],
)
def test_time_grows_with_the_length(text, style, dialect):
    """Sixteen times the text is far from 256 times the time."""

    def seconds(length):
        sql = text(length)
        taken = []
        for _ in range(3):
            started = time.process_time()
            number_placeholders(sql, style, lexicon=rules_of(dialect).lexicon)
            taken.append(time.process_time() - started)
        return min(taken)

    assert seconds(32_000) < 64 * max(seconds(2_000), 0.001)
