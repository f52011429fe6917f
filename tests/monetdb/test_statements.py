"""Where parameters are in a statement's text, and where not (P11)."""

from __future__ import annotations

from datetime import date

import pytest

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.values.literals import cut, substituted


@pytest.mark.parametrize(
    "text",
    [
        "'$1'",
        "'it''s $1'",
        r"'\' $1'",
        r"'\\''$1'",
        r"E'\' $1'",
        r"e'$1'",
        "R'$1'",
        r"R'it''s $1\'",
        "'a' '$1'",
        '"$1"',
        '"a""$1"',
        "/* $1 */ 'x'",
        "/* /* $1 */ $1 */ 'x'",
        "/* ' */ 'x' /* $1 ' */",
        "'x' -- $1\n",
        "'x' # $1\n",
        "'x' -- ' \n || '$1' -- '\n",
    ],
)
def test_no_parameter_inside(session, text):
    """The server reads the text as we do: only the ``$1`` after it is a parameter."""
    sql = f'SELECT {text}, $1 AS b FROM (VALUES (1, 2, 3)) AS t("$1", "a""$1", c)'
    assert cut(sql)[1] == (1,)
    (row,) = session.execute(sql, ["p'\\"]).fetch_all()
    assert row[-1] == "p'\\"


@pytest.mark.parametrize("text", [r"U&'\0041$1'", "X'00'", "x'00ff'"])
def test_other_strings(session, text):
    sql = f"SELECT {text}, $1 AS b"
    assert cut(sql)[1] == (1,)


def test_an_escape_string_of_another_kind_does_not_hide_its_end(session):
    r"""MonetDB ends ``R'\'`` and ``U&'\'`` at the quote: so must we."""
    assert session.execute(r"SELECT R'\', $1", ["x"]).fetch_all() == [("\\", "x")]
    with pytest.raises(EngineError):
        session.execute(r"SELECT U&'\' ' $1 '", ["', 1 --"])


@pytest.mark.parametrize(
    "sql", ["SELECT '$1", 'SELECT "$1', "SELECT /* /* $1 */", "'\\'"]
)
def test_what_does_not_end_is_refused(sql):
    with pytest.raises(EngineError, match="does not end") as refusal:
        substituted(sql, [1])
    assert refusal.value.kind is ErrorKind.PROGRAMMING


@pytest.mark.parametrize(
    "value", [-1, -1.5, 5, "x'", date(2026, 1, 1), None, b"'", True]
)
def test_a_literal_does_not_grow_together_with_its_neighbours(session, value):
    """No comment out of two minus signs, no name, no longer string."""
    sql = "SELECT CASE WHEN$1IS NULL THEN'a'ELSE'b'END,'x'||'y',1-$2,$1AS c"
    ((null, text, number, found),) = session.execute(sql, [value, -3]).fetch_all()
    assert (null, text, number) == ("a" if value is None else "b", "xy", 4)
    assert found == value or isinstance(value, float)


def test_parameters_by_number(session):
    sql = "SELECT $2 AS a, $1 AS b, $2 AS c, $10 AS d"
    values = ["one", "two", *range(3, 11)]
    assert session.execute(sql, values).fetch_all() == [("two", "one", "two", 10)]


def test_a_missing_parameter(session):
    with pytest.raises(EngineError, match=r"\$2, 1 given") as refusal:
        session.execute("SELECT $2", [1])
    assert refusal.value.kind is ErrorKind.PROGRAMMING
    assert session.execute("SELECT 'no $1'", []).fetch_all() == [("no $1",)]
