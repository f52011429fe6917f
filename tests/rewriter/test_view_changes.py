"""Changes through views become changes of the tables below (P8, P10)."""

from __future__ import annotations

import pytest

from tests.rewriter.postgresql_tables import PostgreSQLTables
from tests.rewriter.rendering import render
from tique_rewriter import Rewriter, UnsupportedSQL
from tique_rewriter.schema import Column, Table, View


def view(name, query, *columns, number=1, **more):
    known = tuple(Column(column, "integer") for column in columns)
    table = Table("public", name, known, id=-number)
    return View(table, f"CREATE VIEW public.{name} AS {query};", **more)


FEW = view(
    "few",
    "SELECT account.id,\n account.balance FROM public.account\n"
    " WHERE ((account.balance > 0) AND (account.id < 10))",
    *("id", "balance"),
)
FEWER = view(
    "fewer", "SELECT f.id FROM public.few f WHERE f.id <> 7 OR f.id = 9", "id", number=2
)
WHOLE = view(
    "whole",
    'SELECT account.id, account.balance, account."Owner" FROM public.account',
    *("id", "balance", "Owner"),
    number=3,
)
_FEW = '(("few"."balance" > 0) AND ("few"."id" < 10))'


class _Catalog(PostgreSQLTables):
    def __init__(self, *views):
        super().__init__()
        self._all = {view.table.name: view for view in views}

    def view(self, schema, name):
        return self._all.get(name.lower()) if schema in (None, "public") else None


def planned(sql, *views):
    rewriter = Rewriter(_Catalog(*(views or (FEW, FEWER, WHOLE))), "postgresql")
    rewriter.plan(sql)
    return "\n".join(render(rewriter, sql))


@pytest.mark.parametrize(
    ("sql", "lines"),
    [
        (
            "UPDATE few SET balance = balance + %s WHERE id = %s -- a comment",
            (
                'update: public.account as "few"',
                "set: balance = balance + $1",
                f'AS "few" WHERE ( id = $2) AND ( {_FEW})',
                "key: id = $2; balance > 0; id < 10",
            ),
        ),
        (
            "UPDATE ONLY public.few AS f SET balance = 3 WHERE f.id = 1 OR id = 2 RETURNING *",
            (
                '( f.id = 1 OR id = 2) AND ( (("f"."balance" > 0)',
                'returning: "f"."id", "f"."balance" ⇒',
            ),
        ),
        ("DELETE FROM few", (f'FROM ⟦public.account⟧ AS "few" WHERE ( {_FEW})',)),
        (
            "DELETE FROM fewer USING stock WHERE stock.item = fewer.id OR %s RETURNING fewer.id",
            (
                'WHERE ( ( stock.item = fewer.id OR $1) AND ( "fewer"."id" <> 7 OR '
                '"fewer"."id" = 9)) AND ( (("fewer"."balance" > 0)',
            ),
        ),
        (
            "INSERT INTO few VALUES (1, %s) RETURNING *",
            ("insert: public.account (id, balance)", 'returning: "few"."id", "few"'),
        ),
        (
            "INSERT INTO few AS f (id) (SELECT item FROM stock) RETURNING f.id",
            ("insert: public.account (id)",),
        ),
        (
            'INSERT INTO few SELECT "Owner", 1 FROM other.account AS x ("Owner", b)',
            ("insert: public.account (id, balance)",),
        ),
        ("INSERT INTO few DEFAULT VALUES", ("insert: public.account ()",)),
        (
            "INSERT INTO whole VALUES (1, 2, 3) ON CONFLICT (id) DO UPDATE SET balance = whole.balance",
            ("insert: public.account (id", "conflict"),
        ),
        (
            "WITH x AS (SELECT 1 AS id) UPDATE few SET balance = 1 FROM x WHERE x.id = few.id",
            (f'⟦with x AS "x"⟧ WHERE ( x.id = few.id) AND ( {_FEW})',),
        ),
        (
            "DELETE FROM few WHERE id IN (SELECT id FROM few)",
            ("WHERE ( id IN (SELECT id FROM ⟦",),
        ),
    ],
)
def test_a_change_of_a_view_is_one_of_its_table(sql, lines):
    text = planned(sql)
    for line in lines:
        assert line in text, text


@pytest.mark.parametrize(
    ("sql", "column", "message"),
    [
        ('UPDATE few SET "Owner" = 3', 16, 'beside the name "Owner"'),
        ('UPDATE few SET balance = "Owner"', 26, "Owner"),
        ('UPDATE few AS f SET balance = f."Owner"', 33, "Owner"),
        ('DELETE FROM few WHERE "Owner" = 1', 23, "Owner"),
        ('INSERT INTO few ("Owner") VALUES (1)', 18, "Owner"),
        ('INSERT INTO few VALUES (1, 2) RETURNING "Owner"', 41, "Owner"),
        ("DELETE FROM few RETURNING to_jsonb(few)", 36, 'the name "few"'),
        ("DELETE FROM few RETURNING few.*, 1", 31, "[*] in RETURNING"),
        ("INSERT INTO few VALUES (1) ON CONFLICT DO NOTHING", 31, "ON CONFLICT"),
    ],
)
def test_names_of_the_table_that_the_view_lacks(sql, column, message):
    with pytest.raises(UnsupportedSQL, match=message) as refusal:
        planned(sql)
    assert (refusal.value.line, refusal.value.column) == (1, column)


@pytest.mark.parametrize(
    ("query", "columns", "reason"),
    [
        ("SELECT id FROM account LIMIT 1", "id", "more than some columns"),
        ("SELECT DISTINCT id FROM account", "id", "more than some columns"),
        ("SELECT a.id FROM account a, stock", "id", "more than some columns"),
        ("SELECT id FROM account GROUP BY id", "id", "more than some columns"),
        ("WITH x AS (SELECT 1) SELECT id FROM account", "id", "more than some"),
        ("SELECT id FROM account UNION ALL SELECT 1", "id", "more than some"),
        ("SELECT id FROM account TABLESAMPLE system (1)", "id", "more than some"),
        ("SELECT id + 1 AS id FROM account", "id", 'its column "id" is none'),
        ("SELECT balance AS id FROM account", "id", 'its column "id" is none'),
        ("SELECT id FROM (SELECT 1 AS id) AS x", "id", "more than some columns"),
        ("SELECT 1 AS id", "id", "more than some columns"),
        ("SELECT id FROM account WHERE id IN (SELECT 1)", "id", "a query in its"),
        ("SELECT id, id FROM account", "id id", "its columns are not those"),
        ("SELECT mine(id) AS id FROM account", "id", "function mine"),
    ],
)
def test_views_that_are_not_simple(query, columns, reason):
    with pytest.raises(UnsupportedSQL, match=reason):
        planned("DELETE FROM few", view("few", query, *columns.split()))


_LOW = 'low: (("_c"."balance" > 0))'
_MIDDLE = 'middle: (("_c"."id" IS NOT NULL))'
_TOP = 'top: ("_c"."id" < 7)'


@pytest.mark.parametrize(
    ("low", "middle", "top", "conditions"),
    [
        (None, None, None, []),
        (None, None, "LOCAL", [_TOP]),
        (None, None, "CASCADED", [_LOW, _MIDDLE, _TOP]),
        (None, "LOCAL", "CASCADED", [_LOW, _MIDDLE, _TOP]),
        ("LOCAL", None, "LOCAL", [_LOW, _TOP]),
        ("LOCAL", None, None, [_LOW]),
        (None, "CASCADED", None, [_LOW, _MIDDLE]),
        ("CASCADED", "LOCAL", None, [_LOW, _MIDDLE]),
        (None, "LOCAL", "LOCAL", [_MIDDLE, _TOP]),
    ],
)
def test_conditions_for_rows_that_are_written(low, middle, top, conditions):
    """Those of a view with a CHECK OPTION, and of all below a CASCADED one."""
    views = [
        view(
            "low",
            "SELECT a.id, a.balance FROM account a WHERE ((a.balance > 0))",
            *("id", "balance"),
            check_option=low,
        ),
        view(
            "middle",
            "SELECT low.balance, low.id FROM low WHERE ((id IS NOT NULL))",
            *("balance", "id"),
            number=2,
            check_option=middle,
        ),
        view("bare", "SELECT id FROM middle", "id", number=3, check_option=middle),
        view(
            "top",
            "SELECT id FROM bare WHERE (id < 7)",
            "id",
            number=4,
            check_option=top,
        ),
    ]
    for sql, found in (
        ("INSERT INTO top VALUES (%s) RETURNING *", conditions),
        ("INSERT INTO top SELECT item FROM stock", conditions),
        ("UPDATE public.top AS t SET id = 3 WHERE id = 1", conditions),
        ("DELETE FROM top WHERE id = 1", []),
        ("INSERT INTO account (id) VALUES (1)", []),
    ):
        lines = planned(sql, *views).splitlines()
        lines = [each for each in lines if each.startswith("check option: ")]
        assert [" ".join(each.split()[2:]) for each in lines] == found, sql


def test_what_else_stands_in_the_way():
    few = view("few", "SELECT id FROM account", "id", obstacle="it has a trigger")
    over = view("over", "SELECT id FROM public.few", "id", number=2)
    for sql in (
        "INSERT INTO over VALUES (1)",
        "DELETE FROM few",
        "UPDATE few SET id = 1",
    ):
        with pytest.raises(UnsupportedSQL, match="it has a trigger"):
            planned(sql, few, over)
    with pytest.raises(UnsupportedSQL, match='a change of the view "few"'):
        planned("MERGE INTO few USING stock ON id = item WHEN MATCHED THEN DELETE")
