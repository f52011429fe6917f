"""Replies as Arrow tables: the short way and the long way give the same."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import pytest

from tique_backends.errors import EngineError
from tique_backends.monetdb.sessions import results
from tique_backends.monetdb.sessions.reply import read_reply
from tique_backends.monetdb.sessions.results import read_table
from tique_backends.monetdb.values.types import rows_to_arrow
from tique_backends.records import ResultColumn

COLUMNS = [
    ResultColumn("n", "BIGINT"),
    ResultColumn("v", "VARCHAR(99)"),
    ResultColumn("a", "DECIMAL(6,2)"),
    ResultColumn("d", "DATE"),
    ResultColumn("t", "TIMESTAMP"),
]

ROWS = [
    (1, "x", Decimal("1.50"), date(2026, 2, 3), datetime(2026, 2, 3, 4, 5, 6, 789)),
    (-(2**62), "", Decimal("-0.01"), date(1, 1, 1), datetime(1, 1, 1)),
    (None, None, None, None, None),
    (3, "NULL", Decimal(0), date(9999, 12, 31), datetime(9999, 12, 31, 23, 59, 59)),
    (4, "a, b [ ] 'é' 🙂 # %", None, date(1600, 2, 29), None),
]
ESCAPED = 'quote " backslash \\ tab \t line \n end \r \x85'


@pytest.fixture
def asked(home):
    """The server's reply with rows of these columns."""
    engine = home.open()
    session = home.session(engine)
    layout = ", ".join(f'"{column.name}" {column.type}' for column in COLUMNS)
    session.execute(f"CREATE TABLE app.t (i INTEGER, {layout})")

    def ask(rows):
        session.execute("DELETE FROM app.t")
        for i, row in enumerate(rows):
            session.execute("INSERT INTO app.t VALUES ($1,$2,$3,$4,$5,$6)", [i, *row])
        return session._ask_text('SELECT n, v, a, d, t FROM app.t ORDER BY "i"')

    return ask


@pytest.mark.parametrize(
    "rows",
    [[], ROWS[:1], ROWS, [(None, ESCAPED, None, None, None), *ROWS], ROWS * 40],
    ids=["none", "one", "odd", "escaped", "many"],
)
def test_rows(asked, rows):
    text = asked(rows)
    found = read_table(text, COLUMNS)
    assert found.equals(rows_to_arrow(read_reply(text).rows, COLUMNS))
    assert [tuple(row.values()) for row in found.to_pylist()] == rows


def test_plain_rows_are_not_read_in_python(asked, monkeypatch):
    text = asked(ROWS[:1])
    monkeypatch.setattr(results, "read_reply", None)
    assert read_table(text, COLUMNS).num_rows == 1


def test_a_refusal(asked):
    with pytest.raises(EngineError, match="no such thing"):
        read_table("!42000!no such thing\n", COLUMNS)
