"""What a query calls decides whether any session answers it alike (P1)."""

from __future__ import annotations

import pytest

from tests.rewriter.tables import Tables
from tique_rewriter import Rewriter
from tique_rewriter.plans.plan import CONVERSION, MOMENT, Select


def calls(sql):
    plan = Rewriter(Tables(), "duckdb").plan(sql).plan
    assert isinstance(plan, Select)
    return plan.calls


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT id FROM account", set()),
        ("SELECT sum(balance) FROM account WHERE id IN (1, 2)", {"sum", "in"}),
        ("SELECT Now() FROM account", {"now", MOMENT}),
        ("SELECT main.now() FROM account", {"now", MOMENT}),
        ("SELECT balance.round() FROM account", {"round"}),
        ('SELECT "now"() FROM account', {'"now"', MOMENT}),
        ("SELECT now () FROM account", {"now", MOMENT}),
        ("SELECT now/**/() FROM account", {"now", MOMENT}),
        ("SELECT id FROM account WHERE ' Today ' > owner", {MOMENT}),
        ("SELECT id FROM account WHERE $$now$$ > owner", {MOMENT}),
        (r"SELECT id FROM account WHERE E'n\157w' > owner", {MOMENT}),
        ("SELECT id FROM account WHERE 'no'\n'w' > owner", {MOMENT}),
        ("SELECT id FROM account WHERE 'nowhere' > owner", set()),
        ("SELECT owner::date FROM account", {CONVERSION}),
        ("SELECT owner::mood FROM account", {CONVERSION}),
        ("SELECT '2020-01-01'::date, id::varchar FROM account", set()),
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
