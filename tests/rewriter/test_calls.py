"""What a query calls decides whether any session answers it alike (P1)."""

from __future__ import annotations

import pytest

from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter
from tique_rewriter.plan import Select


def calls(sql):
    plan = Rewriter(Tables(), "duckdb").plan(sql).plan
    assert isinstance(plan, Select)
    return plan.calls


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM account", set()),
        ("SELECT sum(balance) FROM account WHERE id IN (1, 2)", {"sum", "in"}),
        ("SELECT Now() FROM account", {"now"}),
        ("SELECT main.now() FROM account", {"now"}),
        ("SELECT balance.round() FROM account", {"round"}),
        ('SELECT "now"() FROM account', {'"now"'}),
        ("SELECT now () FROM account", {"now"}),
        ("SELECT now/**/() FROM account", {"now"}),
        ("SELECT current_date, id FROM account", {"current_date"}),
        ("SELECT Localtimestamp FROM account", {"localtimestamp"}),
        ("WITH a AS (SELECT id FROM account) SELECT id FROM a", {"as"}),
        ("SELECT count(*) FROM account TABLESAMPLE 10 ROWS", {"count", "tablesample"}),
        ("SELECT id FROM account USING SAMPLE 5", {"sample"}),
        ("SELECT COLUMNS('i.*') FROM account", {"columns"}),
        ("SELECT a.id FROM account a, duckdb_tables() d", None),
        ("SELECT a.id FROM account a, information_schema.tables d", None),
        ("SELECT a.id FROM account a, range(5) r", None),
        ("SELECT a.id FROM account a, 'file.csv' f", None),
    ],
)
def test_calls(sql, expected):
    assert calls(sql) == (None if expected is None else frozenset(expected))
