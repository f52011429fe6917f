from decimal import Decimal

import pytest

import tique
from tique.cli._explain import _value

TOTAL = "SELECT sum(balance) FROM account WHERE id > %s"


def test_statement_and_plan(run, adopted):
    shown = run("explain", adopted, TOTAL, "--param", "5")
    assert shown.startswith("Rewritten statement\nSELECT sum(balance) FROM ")
    assert (
        "WHERE id > $1\n\nForms of tables\nmain.account: storage only: its snapshot has no "
        "recent version\n\nPhysical plan\n" in shown
    )
    assert "Filters: id" in shown


def test_for_machines(run, adopted):
    found = run("explain", adopted, TOTAL, "--param", "5", "--json")
    assert found.keys() == {"statement", "forms", "plans"}
    assert found["forms"] == [
        {
            "name": "form of main.account",
            "text": "storage only: its snapshot has no recent version",
        }
    ]
    assert found["statement"].startswith("SELECT sum(balance) FROM ")
    assert found["plans"]
    assert all(plan.keys() == {"name", "text"} for plan in found["plans"])


def test_the_snapshot_query_is_shown(run, adopted):
    options = {"checkpoint": "manual", "uncommitted_fold_rows": None}
    with tique.connect(adopted, **options) as conn:
        conn.execute("UPDATE account SET balance = 0 WHERE id = 1")
        conn.commit()
        query = "SELECT sum(balance + 0) FROM account"
        found = run("explain", adopted, query, "--json")
        shown = run("explain", adopted, query)
    assert "UNION ALL" in found["statement"]
    (form, fold) = found["forms"]
    assert form["text"] == "overlay: recent rows (1) stand in the statement"
    assert fold["name"] == "no uncommitted fold"
    assert "\nno uncommitted fold: " in shown


def test_the_uncommitted_fold_is_named(run, adopted):
    options = {"checkpoint": "manual", "uncommitted_fold_rows": 0}
    with tique.connect(adopted, **options) as conn:
        conn.execute("UPDATE account SET balance = 0 WHERE id = 1")
        conn.commit()
        query = "SELECT sum(balance + 0) FROM account"
        found = run("explain", adopted, query, "--json")
    (form,) = found["forms"]
    assert form["text"].startswith(
        "uncommitted fold: the recent versions are in storage"
    )
    assert "UNION ALL" not in found["statement"]


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE account SET balance = 0",
        "DELETE FROM account",
        "INSERT INTO account SELECT id + 5000, balance FROM account",
    ],
)
def test_changes_are_not_run(run, adopted, query, sql):
    run("explain", adopted, sql)
    assert query("SELECT count(*), sum(balance) FROM account") == [(1200, 120000)]


def test_without_parameters_a_percent_sign_is_itself(run, adopted):
    run("explain", adopted, "SELECT entry FROM log WHERE entry LIKE '%s%'")


def test_long_lines_are_left_whole(run, adopted):
    columns = ", ".join(f"balance AS b{i}" for i in range(300))
    shown = run("explain", adopted, f"SELECT {columns} FROM account")
    assert columns in shown


@pytest.mark.parametrize(
    ("sql", "parameters", "part"),
    [
        ("SELECT nothing FROM account", [], "nothing"),
        ("SELECT * FROM nowhere", [], '"nowhere" at line 1, column 15'),
        (TOTAL, ["1", "2"], "1 placeholder"),
        ("SELECT 1; SELECT 2", [], "column 11"),
        ("BEGIN", [], "EXPLAIN"),
        ("ANALYZE SELECT 1", [], "column 9"),
        ("DROP TABLE account", [], "EXPLAIN takes"),
        ("", [], "EXPLAIN of nothing"),
    ],
)
def test_errors_name_the_place(run, adopted, sql, parameters, part):
    options = [option for value in parameters for option in ("--param", value)]
    message = run("explain", adopted, sql, *options, code=1)
    assert part in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("-5", -5),
        ("0.10", Decimal("0.10")),
        ("true", True),
        ("null", None),
        ('"5"', "5"),
        ("abc", "abc"),
        ("2026-01-31", "2026-01-31"),
        ("007", "007"),
        ("NaN", "NaN"),
        ("[1]", "[1]"),
        ('{"a": 1}', '{"a": 1}'),
        ("", ""),
        ("'); DROP TABLE account; --", "'); DROP TABLE account; --"),
    ],
)
def test_values(text, value):
    found = _value(text)
    assert found == value
    assert type(found) is type(value)


def test_a_hostile_value_changes_nothing(run, adopted, query):
    run(
        "explain",
        adopted,
        "SELECT * FROM log WHERE entry = %s",
        "--param",
        "'; DROP TABLE log; --",
    )
    assert query("SELECT count(*) FROM log") == [(0,)]
