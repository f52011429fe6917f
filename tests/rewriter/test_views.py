"""Views in the rewriter: their queries, the scope of their names, and refusals."""

from __future__ import annotations

import pytest

from tests.rewriter.rendering import text
from tests.rewriter.tables import Tables
from tique_rewriter import RewriteError, Rewriter
from tique_rewriter.errors import SyntaxProblem, UnknownTable, UnsupportedSQL
from tique_rewriter.schema import Column, Table, View


def view(name, query, *columns, schema="main", listed="", number=0, fault=None):
    """A view of columns that are integers."""
    table = Table(
        schema,
        name,
        tuple(Column(column, "INTEGER") for column in columns),
        id=-(number or hash((schema, name)) % 1_000_000 - 1),
        fault=fault,
    )
    return View(table, f"CREATE VIEW {schema}.{name}{listed} AS {query}")


class _Catalog(Tables):
    def __init__(self, *views):
        self.all_views = views
        super().__init__()


def planned(sql, *views):
    return Rewriter(_Catalog(*views)).plan(sql).plan


def expanded(plan):
    """A plan's text with the queries of views in their places, in brackets."""
    shown = text(plan.text, plan.references)
    for reference in plan.references:
        if reference.view is not None:
            hole = f"⟦{reference.table.qualified_name}{reference.alias}⟧"
            names = ", ".join(reference.view.columns)
            inside = f"[{expanded(reference.view.select)}]({names}){reference.alias}"
            shown = shown.replace(hole, inside, 1)
    return shown


def test_a_views_query_takes_its_place():
    few = view("few", "SELECT id FROM account WHERE id < 3;", "id")
    plan = planned("SELECT * FROM few AS f, few WHERE f.id = 1", few)
    inside = 'SELECT id FROM ⟦main.account AS "account"⟧ WHERE id < 3'
    assert expanded(plan) == (
        f'SELECT * FROM [{inside}](id) AS f, [{inside}](id) AS "few" WHERE f.id = 1'
    )
    assert plan.point is plan.group is plan.join is None


def test_views_over_views():
    few = view("few", "SELECT id FROM account", "id", number=1)
    fewer = view("fewer", "SELECT a FROM few AS f (a)", "b", listed=" (b)", number=2)
    plan = planned("FROM fewer", few, fewer)
    assert expanded(plan) == (
        'FROM [SELECT a FROM [SELECT id FROM ⟦main.account AS "account"⟧](id) AS f (a)]'
        '(b) AS "fewer"'
    )


def test_names_of_a_statement_mean_nothing_in_a_view():
    few = view("few", "SELECT id FROM account", "id")
    plan = planned("WITH account AS (SELECT 1) SELECT * FROM few, account", few)
    assert expanded(plan) == (
        "WITH account AS (SELECT 1) SELECT * FROM [SELECT id FROM "
        '⟦main.account AS "account"⟧](id) AS "few", account'
    )


def test_names_of_a_view_mean_nothing_in_a_statement():
    few = view("few", "WITH stock AS (SELECT 1 AS a) SELECT a FROM stock", "a")
    plan = planned("SELECT * FROM few, stock", few)
    assert expanded(plan).endswith(', ⟦main.stock AS "stock"⟧')


def test_a_name_that_stays_in_a_view_is_not_that_of_a_member_of_with():
    """Of a file, here: the engine would take the member for it."""
    rows = view("rows", "SELECT * FROM 'x.csv'", "a", number=1)
    over = view("over", "SELECT a FROM rows", "a", number=2)
    assert planned("SELECT * FROM over", rows, over)
    for sql in (
        'WITH "x.csv" AS (SELECT 1) SELECT * FROM rows',
        'SELECT * FROM (WITH "X.csv" AS (SELECT 1) SELECT * FROM over)',
    ):
        with pytest.raises(UnsupportedSQL, match='beside "x'):
            planned(sql, rows, over)


def test_a_views_own_schema_comes_first():
    other = view("v", "SELECT id FROM account", "id", schema="other")
    plan = planned("SELECT * FROM other.v", other)
    assert '⟦other.account AS "account"⟧' in expanded(plan)
    elsewhere = view("v", "SELECT item FROM stock", "item", schema="other")
    assert "⟦main.stock" in expanded(planned("SELECT * FROM other.v", elsewhere))


def test_places_beside_are_the_views_too():
    few = view(
        "few", "SELECT id FROM account WHERE id IN (SELECT item FROM stock)", "id"
    )
    plan = planned("SELECT * FROM event, few", few)
    (event, of_view) = plan.references
    assert event.beside == of_view.beside != frozenset()


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("SELECT * FROM nowhere", UnknownTable),
        ("SELECT * FROM tique.log", UnsupportedSQL),
        ("SELECT query('s')", UnsupportedSQL),
        ("SELECT * FROM few", UnknownTable),
        ("SELECT * FROM pragma_table_info('x')", UnsupportedSQL),
        ("SELECT rowid FROM account", UnsupportedSQL),
        ("DELETE FROM account", UnsupportedSQL),
        ("SELECT ((", UnsupportedSQL),
    ],
)
def test_a_view_is_held_to_the_rules_of_statements(query, error):
    """P10: it may have been made without tique."""
    few = view("few", query, "id")
    with pytest.raises(error, match='the view "few"') as refusal:
        planned("SELECT 1,\n * FROM few", few)
    assert (refusal.value.line, refusal.value.column) == (2, 9)


def test_views_that_read_each_other():
    one = view("one", "SELECT a FROM two", "a", number=1)
    two = view("two", "SELECT a FROM one", "a", number=2)
    with pytest.raises(UnknownTable, match="reads itself"):
        planned("SELECT * FROM one", one, two)


def test_a_view_that_the_engine_cannot_read():
    few = view("few", "SELECT 1", "a", fault="no such table")
    with pytest.raises(UnknownTable, match="no such table"):
        planned("SELECT * FROM few", few)


def test_a_view_is_not_changed():
    few = view("few", "SELECT id FROM account", "id")
    for sql in (
        "UPDATE few SET id = 1",
        "DELETE FROM few",
        "INSERT INTO few VALUES (1)",
    ):
        with pytest.raises(UnknownTable, match='"few" is a view'):
            planned(sql, few)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE VIEW tique.v AS SELECT 1",
        "CREATE VIEW v AS SELECT * FROM nowhere",
        "CREATE TEMP VIEW v AS SELECT * FROM nowhere",
        "CREATE RECURSIVE VIEW v (n) AS SELECT 1",
        "CREATE VIEW a.b.c AS SELECT 1",
        "CREATE VIEW v AS SELECT * FROM tique.log",
        "CREATE VIEW v AS",
        "CREATE VIEW v",
        "CREATE VIEW v (a b) AS SELECT 1",
        "CREATE VIEW v AS SELECT $1",
        "CREATE VIEW v AS SELECT %s",
        "CREATE VIEW v AS INSERT INTO account VALUES (1)",
        "DROP VIEW tique.v",
        "DROP VIEW v w",
        "DROP VIEW",
    ],
)
def test_definitions_that_are_refused(sql):
    with pytest.raises((UnsupportedSQL, SyntaxProblem, UnknownTable)):
        planned(sql)


def test_definitions_reach_the_engine_as_they_stand():
    few = view("few", "SELECT id FROM account", "id")
    sql = (
        "CREATE OR REPLACE VIEW  few (\"a\", b) AS /* x */ SELECT id, '%' FROM few -- y"
    )
    plan = planned(sql, few)
    assert plan.text == sql.removesuffix(" -- y")
    assert plan.names == (("main", "few"),)
    assert plan.creates
    dropped = planned("DROP VIEW IF EXISTS few, other.x CASCADE", few)
    assert dropped.names == (("main", "few"), ("other", "x"))
    assert not dropped.creates


def test_views_that_double():
    """P6: refused before the text grows."""
    views = [view("v0", "SELECT id FROM account", "id", number=1)]
    for number in range(1, 60):
        below = f"v{number - 1}"
        query = f"SELECT a.id FROM {below} AS a, {below} AS b"
        views.append(view(f"v{number}", query, "id", number=number + 1))
    with pytest.raises(RewriteError, match="1000 places"):
        planned("SELECT * FROM v59", *views)
