"""MonetDB's scanner, our lexer and sqlglot's tokenizer cut a text at the same places."""

from __future__ import annotations

import pymonetdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.plugins.monetdb import connect_natively
from tests.rewriter.monetdb_tables import MonetDBTables
from tests.rewriter.test_kernel import quick
from tique_rewriter import RewriteError, Rewriter, SyntaxProblem, UnsupportedSQL
from tique_rewriter.dialects import DIALECTS, rules_of
from tique_rewriter.text.placeholders import Lexed, number_placeholders

RULES = rules_of("monetdb")

QUOTED = (
    "'plain %s ? $1 -- # /*'",
    "'it''s %(a)s'",
    "'it\\'s %s'",
    "'\\\\'",
    "E'\\' %s ?'",
    "e'\\\\'",
    "R'\\'",
    "r'%s '' \\'",
    "X'00'",
    '"name %s ? $1 # /*"',
    '"a""b %s"',
    "-- %s ? $1 ' \"\n",
    "# %s ? $1 ' \"\n",
    "/* %s ? ' */",
    "/* %s /* ? */ $1 # */",
)
PLAIN = ("SELECT", " ", "\n", ",", "(", ")", "a", "e", "r", "1", "+", "é", "-", "*")
PIECES = st.lists(st.sampled_from(QUOTED + PLAIN))


def test_the_parser_takes_no_placeholders_for_a_string():
    for text in ("VALUES (%s,%s)", "SELECT %s+%s||'%%'", "SELECT f(%s)+g(%s)"):
        lexed = lex(text)
        tokens = RULES.syntax().tokenize(lexed.text)
        assert {t.start for t in tokens if t.text == "$"} == set(lexed.starts)


def lex(text: str, style: str = "pyformat") -> Lexed:
    return number_placeholders(text, style, lexicon=RULES.lexicon)


@given(PIECES)
def test_nothing_inside_quotes_and_comments_is_a_placeholder(pieces: list[str]):
    text = " ".join(pieces)
    for style in ("pyformat", "qmark"):
        lexed = lex(text, style)
        assert lexed.text == text
        assert lexed.arguments == ()


@given(PIECES)
def test_the_parser_cuts_the_same_words(pieces: list[str]):
    lexed = lex(" ".join(pieces))
    tokens = RULES.syntax().tokenize(lexed.text)
    quoted = [
        lexed.text[t.start : t.end + 1]
        for t in tokens
        if lexed.text[t.end] in ("'", '"')
    ]
    assert quoted == [piece for piece in pieces if piece[-1] in ("'", '"')]


@pytest.fixture(scope="module")
def server(monetdb_server):
    connection = connect_natively(monetdb_server.url)
    yield connection.cursor()
    connection.close()


INSIDE = st.text(alphabet="'\"\\%s#-/*$\n rE", max_size=8)
ITEMS = st.one_of(
    st.builds(
        "{}'{}'".format, st.sampled_from(["", "E", "e", "R", "r", "X", "U&"]), INSIDE
    ),
    st.builds('1 AS "{}"'.format, INSIDE),
    st.builds("1 /*{}*/".format, INSIDE),
    st.builds("1 --{}\n".format, INSIDE),
    st.builds("1 #{}\n".format, INSIDE),
    st.just("%s"),
    st.just("(%s)"),
)


@quick
@given(st.lists(ITEMS, min_size=2, max_size=5))
@example(["R'\\'", "%s", "'\\'%s'", "%s"])
@example(["1 /* /* %s */ %s */", "%s"])
@example(["1 # ' %s\n", "%s", "1 -- ' %s\n"])
@example(["1 --\r", "%s"])
@example(['1 AS "\\"', "%s", '1 AS "%s"'])
@example(["'a' r'\\' 'b\\'", "%s", "'"])
def test_the_server_sees_the_same_placeholders(
    server: pymonetdb.sql.cursors.Cursor, items: list[str]
):
    """Each placeholder, and nothing else, is a value of the server's."""
    try:
        lexed = lex("SELECT " + ",".join(items))
    except RewriteError:
        return
    text = lexed.text
    for number, start in reversed(list(enumerate(lexed.starts, start=1))):
        text = f"{text[:start]}700{number}{text[start + 2 :]}"
    try:
        server.execute(text)
    except (pymonetdb.Error, ValueError):
        # ValueError: pymonetdb cannot read the heading of a column with # in its name.
        return
    (row,) = server.fetchall()
    numbers = [value for value in row if isinstance(value, int) and value != 1]
    assert numbers == [7000 + n for n in range(1, len(lexed.starts) + 1)]
    assert not any("700" in value for value in row if isinstance(value, str))


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("SELECT $1", 7),
        ("SELECT a$b", 8),
        ("SELECT $$a$$", 7),
        ("SELECT ?", 7),
        ("é 'open\\'", 2),
        ("/* /* */", 0),
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
            for character in "`@:!{}[]\\¬\u00d7\u200b\ufeff\u00a0\u2028\x1c"
        ),
        ("SELECT 'a\0b'", 9),
        ("SELECT xU&'a'", 8),
        ('SELECT u&"a"', 7),
        ("SELECT n'a'", 8),
        ("SELECT 1r'a'", 9),
        ('SELECT r"a"', 8),
        ('SELECT "a\\b"', 9),
        ('SELECT "a\nb"', 9),
        ("/*/ */", 0),
        ("/* a /* */* */ */", 8),
        ("-- a\rSELECT %s", 4),
        ("SELECT e%s", 8),
        ("SELECT 1%s", 8),
        ("SELECT 'a'%s", 10),
        ("SELECT %s'a'", 7),
        ("SELECT %sa", 7),
        ("SELECT %s%s", 9),
    ],
)
def test_what_is_not_certain_is_refused(text: str, position: int):
    with pytest.raises(UnsupportedSQL) as caught:
        lex(text)
    assert caught.value.position == position


HOSTILE = (
    "'; DROP TABLE account; --",
    "\\'; DROP TABLE account; --",
    "\\",
    "/* ",
    "# ",
    "⟦hole⟧",
    "$1",
)


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("prefix", ["", "E", "R"])
def test_hostile_literals_stay_what_they_are(hostile: str, prefix: str):
    doubled = hostile.replace("'", "''")
    if prefix != "R":
        doubled = doubled.replace("\\", "\\\\")
    sql = f"SELECT id FROM account WHERE \"Owner\" = {prefix}'{doubled}'"
    rewriter = Rewriter(MonetDBTables(), dialect="monetdb")
    made = rewriter.plan(sql, has_parameters=False).plan
    (reference,) = made.references
    bound = reference.binding.get(1)
    assert bound is None or bound.value == hostile
    assert made.text[-1] == sql[sql.index(" WHERE") :]


def test_a_placeholder_stands_alone():
    lexed = lex("SELECT a-%s*2, (%s,%s), f(%s)||%s FROM t WHERE a<%s")
    assert lexed.text == "SELECT a- $1 *2, ($2,$3), f($4)|| $5 FROM t WHERE a< $6"
    assert [lexed.text[s] for s in lexed.starts] == ["$"] * 6
    assert lexed.original[lexed.original_position(lexed.text.index("*2")) :][0] == "*"


def test_a_dialect_is_looked_up_by_its_name():
    known = ["duckdb", "monetdb", "postgresql"]
    assert [rules_of(name).name for name in DIALECTS] == known
    with pytest.raises(ValueError, match="duckdb, monetdb, postgresql"):
        Rewriter(MonetDBTables(), dialect="oracle")


def test_question_marks():
    rewriter = Rewriter(MonetDBTables(), dialect="monetdb", paramstyle="qmark")
    prepared = rewriter.plan("SELECT balance FROM account WHERE id = ?")
    assert prepared.plan.point is not None
    assert prepared.bind([4]) == [4]
    with pytest.raises(SyntaxProblem, match="write \\? for a parameter"):
        rewriter.plan("SELECT $1")


def test_what_was_not_numbered_is_no_parameter():
    rewriter = Rewriter(MonetDBTables(), dialect="monetdb")
    for text in ("%(1)s", "%s"):
        sql = f"SELECT balance FROM account WHERE id = {text}"
        try:
            made = rewriter.plan(sql, has_parameters=False).plan
        except RewriteError:
            continue
        assert made.point is None
