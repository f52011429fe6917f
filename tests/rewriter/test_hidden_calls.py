"""P10: which words of a text call a function that it does not name."""

from __future__ import annotations

import pytest

from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter
from tique_rewriter.errors import UnsupportedSQL
from tique_rewriter.safety.hidden_calls import HiddenCalls
from tique_rewriter.schema import HiddenCall, Named

CALLS = (
    HiddenCall(Named.OPERATOR, "main", "<->", "the operator", "main.f()"),
    HiddenCall(Named.OPERATOR, "lair", "=", "the operator", "lair.f()"),
    HiddenCall(Named.TYPE, "main", "d", "the type", "main.f()"),
    HiddenCall(Named.TYPE, "lair", "balance", "the type", "lair.f()"),
    HiddenCall(Named.FUNCTION, "main", "abs", "the function", "main.f()"),
    HiddenCall(Named.RELATION, "main", "stock", "the type", "main.f()"),
    HiddenCall(Named.DEFAULT, "main", "id", "the function", "main.f()"),
)

REFUSED = {
    "SELECT 1 <-> id FROM account": 9,
    "SELECT 1<->-id FROM account": 8,
    "SELECT CAST(id AS D) FROM account": 18,
    'SELECT id::"d" FROM account': 11,
    "SELECT id::U&\"\\0064\" FROM account": 11,
    "SELECT id::main . /* x */ d FROM account": 26,
    "SELECT id::lair.balance FROM account": 16,
    "SELECT abs /* x */ (id) FROM account": 7,
    'SELECT "abs"(id) FROM account': 7,
    "CREATE TABLE n (a d)": 18,
    "UPDATE main.stock SET item = 1": 12,
    "WITH x AS (INSERT INTO stock VALUES (1, 1) RETURNING item) SELECT item FROM x": 23,
    "SELECT NULL::stock FROM account": 13,
    "SELECT a FROM json_to_record('{}') AS x (a stock)": 43,
    "DELETE FROM account WHERE id::d > 0": 30,
    "EXPLAIN SELECT 1 <-> id FROM account": 17,
}  # fmt: skip

ALLOWED = (
    "SELECT '<->', balance FROM account /* <-> */ WHERE id = 1 -- d",
    "SELECT stock.item FROM stock JOIN main.stock AS s ON s.item = stock.item",
    "DELETE FROM stock WHERE stock.item = 5",
    "SELECT a.balance AS abs FROM account AS a",
    "SELECT id FROM account WHERE id < - 1",
    "SELECT count(*) AS dd FROM account",
    "SELECT $$d$$ FROM account",
    "DROP TABLE IF EXISTS d",
    "COMMENT ON TABLE account IS 'd'",
)


class Hiding(Tables):
    hidden_calls = HiddenCalls(CALLS, ["main"])


@pytest.mark.parametrize("sql", REFUSED)
def test_refused(sql):
    with pytest.raises(UnsupportedSQL, match="might read or change") as caught:
        Rewriter(Hiding(), "postgresql").plan(sql, False)
    assert caught.value.position == REFUSED[sql]


@pytest.mark.parametrize("sql", ALLOWED)
def test_allowed(sql):
    Rewriter(Hiding(), "postgresql").plan(sql, False)


def test_a_definition_has_them_along_any_path():
    rules = Rewriter(Hiding(), "postgresql")._rules
    found = HiddenCalls(CALLS[2:], ["main"]).in_definition
    assert found("1 + 2", rules) is None
    assert found("main.id()", rules) is CALLS[6]
    assert found("5::balance", rules) is CALLS[3]
