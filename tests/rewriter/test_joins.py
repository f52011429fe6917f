"""A join read in parts answers as the application's own text does."""

from __future__ import annotations

from itertools import product

import pytest

from tests.plugins.monetdb import connect_natively, empty
from tests.rewriter.fixture_files import MONETDB_FOLDER, read_cases
from tests.rewriter.monetdb_tables import SETUP, MonetDBTables
from tests.rewriter.tables import Tables
from tests.rewriter.test_execution import is_query, quoted
from tests.rewriter.test_monetdb_execution import run
from tique_rewriter import Rewriter
from tique_rewriter.plans.plan import Select
from tique_rewriter.plans.text import Hole

ON = "account a JOIN stock s ON s.item = a.id"

IN_PARTS = [
    f"SELECT a.id, s.note FROM {ON}",
    f'SELECT id, "Owner", a."open", S.NOTE n FROM {ON}',
    "SELECT id, s.warehouse FROM sys.account JOIN stock AS s ON (item = id)",
    "SELECT a.id, b.id AS other FROM account a INNER JOIN account b ON a.id < b.id",
    "SELECT a.id, o.name FROM other.account o JOIN account a ON o.id = a.id",
    "SELECT account, item FROM event JOIN stock ON account = item",
    'SELECT t."the id", "é", balance FROM "T x" t JOIN account ON "the id" = id',
    "SELECT COUNT(*), MAX(note), MIN(id) FROM account JOIN stock ON stock.item = id",
    f"SELECT COUNT(*), SUM(a.balance + s.quantity), max(note), id + 1 FROM {ON} "
    "GROUP BY id",
    f"SELECT a.id AS x, count(s.note) AS n FROM {ON} AND s.quantity > 1 "
    "WHERE a.balance > 0 AND quantity IS NOT NULL GROUP BY a.id HAVING count(*) > 0 "
    "ORDER BY n DESC, x LIMIT 3",
    f"SELECT DISTINCT s.warehouse, balance FROM {ON} ORDER BY warehouse, balance",
    f"SELECT s.warehouse, a.id FROM {ON} ORDER BY 1, 2 LIMIT 2 OFFSET 1",
    f"SELECT a.id, s.note FROM {ON} -- the items\nWHERE s.note LIKE '%' /* all */ OR a.id = 1",
    f"SELECT a.id, s.item, extract(year FROM current_date) - extract(year FROM current_date) "
    f"AS zero, row_number() OVER (PARTITION BY s.item ORDER BY s.warehouse) AS r "
    f"FROM {ON}",
    f"SELECT CASE WHEN a.\"open\" THEN 'o' ELSE note END AS c FROM {ON}",
]

AS_A_WHOLE = [
    "SELECT a.id FROM account a",
    f"SELECT a.id, COUNT(*), SUM(balance) FROM {ON} GROUP BY a.id",
    f"SELECT COUNT(*) FROM {ON}",
    f"SELECT a.id FROM {ON} WHERE s.item > 0",
    f"SELECT * FROM {ON}",
    f"SELECT a.* FROM {ON}",
    f"SELECT a.id AS item, s.item AS id FROM {ON} ORDER BY item",
    f"SELECT a.id AS a FROM {ON}",
    f"SELECT (a.id), note FROM {ON}",
    "SELECT a.id, b.id FROM account a JOIN account b ON a.id < b.id ORDER BY b.id",
    f"SELECT DISTINCT a.id, s.item AS ID FROM {ON}",
    f"SELECT 1, a.id FROM {ON}",
    f"SELECT CAST(a.id AS BIGINT) FROM {ON}",
    "SELECT a.id FROM account a, stock s WHERE s.item = a.id",
    "SELECT a.id FROM account a CROSS JOIN stock s",
    "SELECT a.id FROM account a LEFT JOIN stock s ON s.item = a.id",
    "SELECT a.id FROM account a RIGHT JOIN stock s ON s.item = a.id",
    "SELECT a.id FROM account a FULL JOIN stock s ON s.item = a.id",
    "SELECT a.name FROM account JOIN other.account a USING (id)",
    "SELECT a.name FROM other.account a NATURAL JOIN account",
    f"SELECT a.id FROM {ON} JOIN event e ON e.account = a.id",
    "SELECT a.id FROM account a JOIN sys.tables t ON t.id = a.id",
    f"SELECT a.id FROM {ON} WHERE EXISTS (SELECT 1)",
    f"SELECT a.id FROM {ON} AND a.id IN (SELECT 1)",
    f"SELECT a.id FROM {ON} UNION ALL SELECT 1",
    f"(SELECT a.id FROM {ON})",
    f"SELECT n FROM (SELECT a.id AS n FROM {ON}) AS q",
    f"WITH x AS (SELECT 1) SELECT a.id FROM {ON}",
    "SELECT x.i FROM account AS x(i, o, b, p) JOIN stock s ON s.item = x.i",
]


def planned(sql):
    return Rewriter(MonetDBTables(), dialect="monetdb").plan(sql).plan


@pytest.fixture(scope="module")
def shop(monetdb_server):
    empty(monetdb_server.url)
    connection = connect_natively(monetdb_server.url)
    cursor = connection.cursor()
    for statement in SETUP:
        cursor.execute(statement)
    yield cursor
    connection.close()


def in_parts(plan):
    """The query, with both tables cut in three: one part of them is empty."""
    parts = []
    for reference in plan.references:
        table = reference.table
        name = f"{quoted(table.schema)}.{quoted(table.name)}"
        column = quoted(table.columns[0].name)
        conditions = [f"{column} = 1", f"({column} <> 1 OR {column} IS NULL)", "FALSE"]
        parts.append(
            [f"(SELECT * FROM {name} WHERE {c}){reference.alias}" for c in conditions]
        )
    rows = [
        "".join(p if isinstance(p, str) else pair[p.index] for p in plan.join.rows)
        for pair in product(*parts)
    ]
    return f"{plan.join.before}({' UNION ALL '.join(rows)}){plan.join.after}"


def nameless(outcome):
    """MonetDB numbers results that have no name through the whole of its plan."""
    names, rows = outcome
    return ["%" if name.startswith("%") else name for name in names], rows


@pytest.mark.parametrize("sql", IN_PARTS, ids=lambda sql: sql[:60])
def test_in_parts(shop, sql):
    plan = planned(sql)
    assert plan.join is not None
    assert nameless(run(shop, in_parts(plan))) == nameless(run(shop, sql))


def test_the_join_in_any_other_query_answers_as_before(shop):
    for case in read_cases("select", folder=MONETDB_FOLDER):
        if (
            is_query(case)
            and isinstance(plan := planned(case.sql), Select)
            and plan.join
        ):
            assert nameless(run(shop, in_parts(plan))) == nameless(run(shop, case.sql))


@pytest.mark.parametrize("sql", AS_A_WHOLE, ids=lambda sql: sql[:60])
def test_as_a_whole(shop, sql):
    assert run(shop, sql) != "an error"
    assert planned(sql).join is None


def test_placeholders_keep_their_numbers():
    sql = f"SELECT a.id + %s AS n, note FROM {ON} AND a.id > %s WHERE s.note = %s"
    join = planned(sql).join
    assert join.before == (
        'SELECT _joined._0_0 + $1 AS n, _joined._1_3 AS "note" FROM '
    )
    assert join.rows == (
        "SELECT ",
        '"a"."id" AS _0_0, "s"."note" AS _1_3',
        " FROM ",
        Hole(0),
        " a JOIN ",
        Hole(1),
        " s ON s.item = a.id AND a.id > $2 ",
    )
    assert join.after == " AS _joined WHERE _joined._1_3 = $3"


def test_an_engine_that_does_not_want_it():
    plan = (
        Rewriter(Tables()).plan("SELECT a.item FROM stock a JOIN stock b ON true").plan
    )
    assert plan.join is None
