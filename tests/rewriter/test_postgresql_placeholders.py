"""PostgreSQL's scanner, our lexer and sqlglot's tokenizer cut a text at the same places."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.rewriter.postgresql_tables import PostgreSQLTables
from tests.rewriter.test_kernel import quick
from tique_rewriter import RewriteError, Rewriter, SyntaxProblem, UnsupportedSQL
from tique_rewriter.dialects import rules_of
from tique_rewriter.text.placeholders import Lexed, number_placeholders
from tique_rewriter.text.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.targets.cluster import Cluster

RULES = rules_of("postgresql")

QUOTED = (
    "'plain %s ? $1 -- /*'",
    "'it''s %(a)s'",
    "'back\\'",
    "E'it\\'s %s'",
    "e'\\\\'",
    "B'01'",
    "x'1F'",
    '"name %s ? $1 /*"',
    '"a""b %s"',
    "$$it's %s$$",
    "$tag$ $$ %s ? $tag$",
    "$é$ %s $é$",
    "-- %s ? $1 ' \"\n",
    "/* %s ? ' */",
    "/* %s /* ? */ $1 -- */",
)
PLAIN = ("SELECT", " ", "\n", ",", "(", ")", "a", "e", "a$b$", "1", "+", "é", "@", "#")
PIECES = st.lists(st.sampled_from(QUOTED + PLAIN))


def lex(text: str, style: str = "pyformat") -> Lexed:
    return number_placeholders(text, style, lexicon=RULES.lexicon)


def cut(text: str) -> Source:
    """Cut a text in both ways; it is refused unless the places are the same."""
    return Source(lex(text), RULES)


def apart(pieces: list[str]) -> str:
    """Return the pieces with something between them that keeps strings apart."""
    return " , ".join(pieces)


@given(PIECES)
def test_nothing_inside_quotes_and_comments_is_a_placeholder(pieces: list[str]):
    text = apart(pieces)
    for style in ("pyformat", "qmark"):
        lexed = lex(text, style)
        assert lexed.text == text
        assert lexed.arguments == ()


@given(PIECES)
def test_quotes_and_comments_are_where_they_are(pieces: list[str]):
    lexed = lex(apart(pieces))
    spans = sorted(lexed.quotes + lexed.comments)
    found = [lexed.text[start:end].rstrip("\n") for start, end in spans]
    expected = [piece.rstrip("\n") for piece in pieces if piece in QUOTED]
    # The letter before a quote is not in the span.
    assert found == [p[1:] if p[0] in "eEBx" else p for p in expected]


@given(PIECES)
def test_the_parser_cuts_the_same_words(pieces: list[str]):
    if any(piece in PLAIN and piece.strip() for piece in pieces):
        cut(apart(pieces))


ROUGH = st.text(alphabet="'\"\\%seEbBxXnuU&$ta#-/*(?),@\n\r 1_", max_size=30)


@given(ROUGH)
@example("1$$%s$$")
@example("a$$ , %s$$")
@example("'a\\'%s'")
@example("E'a'\n'\\'%s'")
@example("e'a'--\n'\\'%s'")
@example("U&'\\'%s'")
@example("--\r%s")
@example("/*/%s/**/")
@example("{%s}")
@example("{# %s #}")
@example("/*+ %s */ 1")
@example("@--%s\n1")
@example("@/*%s*/1")
def test_what_is_cut_is_cut_in_one_way(text: str):
    """Each character is in a word, or in blanks or a comment, for both."""
    try:
        source = cut(text)
    except RewriteError:
        return
    covered = {i for t in source.tokens for i in range(t.start, t.end + 1)}
    comments = {i for start, end in source.lexed.comments for i in range(start, end)}
    assert not covered & comments
    left = set(range(source.tokens[-1].end)) - covered - comments
    assert not "".join(source.text[i] for i in sorted(left)).strip()


@pytest.fixture(scope="module")
def server(postgresql_cluster: Cluster) -> Iterator[psycopg.RawCursor[Any]]:
    with closing(
        psycopg.connect(postgresql_cluster.url, autocommit=True)
    ) as connection:
        yield psycopg.RawCursor(connection)


INSIDE = st.text(alphabet="'\"\\%s-/*$\n raE", max_size=8)
ITEMS = st.one_of(
    st.builds(
        "{}'{}'".format,
        st.sampled_from(["", "E", "e", "B", "b", "X", "N", "U&"]),
        INSIDE,
    ),
    st.builds('1 AS "{}"'.format, INSIDE),
    st.builds("$${}$$".format, INSIDE),
    st.builds("$a${}$a$".format, INSIDE),
    st.builds("1 /*{}*/".format, INSIDE),
    st.builds("1 --{}\n".format, INSIDE),
    st.builds("1 {}".format, st.text(alphabet="+-*/<>=~!@#^&|1 \n", max_size=6)),
    st.just("%s"),
    st.just("(%s)"),
)


@quick
@given(st.lists(ITEMS, min_size=2, max_size=5))
@example(["E'\\'", "%s", "'\\'%s'", "%s"])
@example(["'\\'", "%s", "'\\'%s'", "%s"])
@example(["E'a'\n'\\'", "%s", "'\\'%s'"])
@example(["1 /* /* %s */ %s */", "%s"])
@example(["1 -- ' %s\n", "%s", "1 --\r", "%s"])
@example(["$a$ $$ %s $a$", "%s", "$$ $a$ %s $$"])
@example(['1 AS "\\"', "%s", '1 AS "%s"'])
@example(["1 +/*", "%s", "1 */"])
def test_the_server_sees_the_same_placeholders(
    server: psycopg.RawCursor[Any], items: list[str]
):
    """Each placeholder, and nothing else, is a value of the server's."""
    try:
        lexed = cut("SELECT " + ",".join(items)).lexed
    except RewriteError:
        return
    numbers = [7001 + n for n in range(len(lexed.starts))]
    try:
        server.execute(lexed.text.encode(), numbers)
    except psycopg.errors.ProtocolViolation:
        raise AssertionError(lexed.text) from None
    except psycopg.Error:
        return
    (row,) = server.fetchall()
    assert [v for v in row if isinstance(v, int) and v > 7000] == numbers


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("SELECT $1", 7),
        ("SELECT $a", 7),
        ("SELECT $a$ x", 7),
        ("SELECT 'open\\''", 14),
        ("SELECT E'open\\'", 8),
        ("/* /* */", 0),
        ("SELECT %d", 7),
    ],
)
def test_what_makes_no_sense(text: str, position: int):
    with pytest.raises(SyntaxProblem) as caught:
        lex(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "position"),
    [
        *(
            (f"a {character} b", 2)
            for character in "`{}\\\v¬\u00d7\u200b\ufeff\u00a0\u2028\x1c"
        ),
        ("SELECT 'a\0b'", 9),
        ("SELECT xU&'a'", 8),
        ('SELECT 1u&"a"', 8),
        ("SELECT r'a'", 8),
        ("SELECT 1e'a'", 9),
        ('SELECT e"a"', 8),
        ('SELECT "a\\b"', 9),
        ("SELECT E'a'\n'b'", 11),
        ("SELECT 1$$a$$", 8),
        ("/*/ */", 0),
        ("SELECT a%s", 8),
        ("SELECT 1%s", 8),
        ("SELECT %s'a'", 7),
        ("SELECT %s%s", 9),
    ],
)
def test_what_is_not_certain_is_refused(text: str, position: int):
    with pytest.raises(UnsupportedSQL) as caught:
        lex(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("SHOW E'a' + 'b'", "a name is expected"),
        ("SHOW a, b", ","),
        ("SHOW a /* b */ + c", "+"),
        ("SELECT 1_000", "a name right after a number"),
        ("SELECT 1e5e", "a name right after a number"),
        ("SELECT 1 == 2", "the operator =="),
        ("SELECT 1 %%- 2", "the operator %-"),
        ("SELECT R'a'", "a string right after R"),
        ("SELECT B'0'\n'1'", "a quote right after B"),
        ("SELECT /*+ a */ 1 {# b #}", "the character {"),
    ],
)
def test_what_could_be_cut_in_two_ways_is_refused(text: str, what: str):
    """P10, P11: the parser's own rules decide nothing."""
    with pytest.raises(RewriteError, match=re.escape(what)):
        Rewriter(PostgreSQLTables(), dialect="postgresql").plan(text)


def test_a_question_mark_is_an_operator_where_it_is_no_placeholder():
    assert lex("a ? 'b' AND c ?| %s").text == "a ? 'b' AND c ?| $1"
    lexed = lex("a ?? 'b' AND c ??| ? AND d @?? ? AND '??' = ?", "qmark")
    assert lexed.text == "a ? 'b' AND c ?| $1 AND d @? $2 AND '??' = $3"
    assert lexed.arguments == (0, 1, 2)
    assert lexed.original[lexed.original_position(lexed.text.index("d @?")) :][0] == "d"


@pytest.mark.parametrize("style", ["pyformat", "qmark"])
def test_both_styles_make_the_same_plan(style: str):
    rewriter = Rewriter(PostgreSQLTables(), "postgresql", style)
    mark, operator = ("?", "??") if style == "qmark" else ("%s", "?")
    sql = f"SELECT id FROM document WHERE id = {mark} AND data {operator} {mark}"
    prepared = rewriter.plan(sql)
    assert prepared.plan.text[-1].endswith("WHERE id = $1 AND data ? $2")
    assert prepared.bind((4, "a")) == [4, "a"]


def test_percent_signs_without_parameters():
    rewriter = Rewriter(PostgreSQLTables(), "postgresql")
    made = rewriter.plan("SELECT id % 2 FROM account WHERE id = 1", False).plan
    assert made.text[0] == "SELECT id % 2 FROM "


HOSTILE = (
    "'; DROP TABLE account; --",
    "\\'; DROP TABLE account; --",
    "\\",
    "/* ",
    "$$",
    "⟦hole⟧",
    "$1",
)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("prefix", ["", "E", "$x$"])
def test_hostile_literals_stay_what_they_are(
    server: psycopg.RawCursor[Any], hostile: str, prefix: str
):
    """P11: the content of a string is a value, for us as for the server."""
    literal = "'" + hostile.replace("'", "''") + "'"
    if prefix == "E":
        literal = "E" + literal.replace("\\", "\\\\")
    if prefix == "$x$":
        literal = f"$x${hostile}$x$"
    sql = f'SELECT id FROM account WHERE "Owner" = {literal}'
    rewriter = Rewriter(PostgreSQLTables(), dialect="postgresql")
    made = rewriter.plan(sql, has_parameters=False).plan
    bound = made.references[0].binding.get(1)
    assert bound is None if prefix else bound.value == hostile
    assert made.text[-1] == sql[sql.index(" WHERE") :]
    assert server.execute(f"SELECT {literal}").fetchone() == (hostile,)


def test_names_are_compared_as_the_server_folds_them(server: psycopg.RawCursor[Any]):
    """P10: only ASCII letters fold, and 63 bytes of a name count."""
    assert server.execute("SELECT 1 AS AÉB").description[0].name == "aÉb"
    assert RULES.unquoted("AÉB") == "aÉb"
    long = "a" * 63
    assert server.execute(f"SELECT 1 AS {long}b").description[0].name == long
    rewriter = Rewriter(PostgreSQLTables(), dialect="postgresql")
    rewriter.plan(f"SELECT 1 AS {long}")
    with pytest.raises(UnsupportedSQL, match="more than 63 bytes"):
        rewriter.plan(f"SELECT 1 AS {long}b")


@pytest.mark.parametrize("values", ["(%s,%s)", "(%s,%s,%s::text)", "(%(a)s,%(b)s)"])
def test_placeholders_without_a_blank_between_them(values: str):
    """A parser takes ``$1,$`` for the opening of a string: a blank keeps them apart."""
    made = lex(f"VALUES {values}")
    assert "$1 ," in made.text
    assert [made.text[s : s + 2] for s in made.starts] == [
        f"${n}" for n in range(1, len(made.starts) + 1)
    ]
    plan = Rewriter(PostgreSQLTables(), dialect="postgresql").plan
    assert len(plan(f"SELECT * FROM (VALUES {values}) AS v").arguments) > 1
