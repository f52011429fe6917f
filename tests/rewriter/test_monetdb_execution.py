"""Filled holes mean the same to MonetDB as the application's own text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pymonetdb
import pytest

from tests.plugins.monetdb import connect_natively, empty
from tests.rewriter.fixture_files import MONETDB_FOLDER, Case, read_cases
from tests.rewriter.monetdb_tables import SETUP, MonetDBTables
from tests.rewriter.test_execution import (
    CONDITIONS,
    FILTERS,
    THIRD,
    fill,
    is_query,
    quoted,
    with_bindings,
)
from tique_rewriter import Rewriter
from tique_rewriter.plans.text import UNNAMED, Variant

if TYPE_CHECKING:
    from collections.abc import Callable

    from tique_rewriter.plans.plan import Plan, Reference
    from tique_rewriter.plans.text import Text

QUERIES = [c for c in read_cases("select", folder=MONETDB_FOLDER) if is_query(c)]


@pytest.fixture(scope="module")
def shop(monetdb_server):
    empty(monetdb_server.url)
    connection = connect_natively(monetdb_server.url)
    cursor = connection.cursor()
    for statement in SETUP:
        cursor.execute(statement)
    yield cursor
    connection.close()


CHANGES = [
    case
    for case in read_cases("change", "define", folder=MONETDB_FOLDER)
    if "%s" not in case.sql
    and case.expected[0].startswith(("insert", "update", "delete", "create", "index"))
]


def run(cursor: pymonetdb.sql.cursors.Cursor, sql: str):
    """Names and rows, or that there was an error."""
    try:
        cursor.execute(sql)
    except pymonetdb.Error:
        return "an error"
    names = [d[0] for d in cursor.description]
    return names, sorted(cursor.fetchall(), key=repr)


def answer(
    cursor: pymonetdb.sql.cursors.Cursor,
    text: Text,
    references: tuple[Reference, ...],
    filled: Callable[[Text, tuple[Reference, ...]], str],
):
    """As :func:`run`, with the names that the driver shows."""
    found = run(cursor, filled(text, references))
    if found == "an error" or not any(name.startswith(UNNAMED) for name in found[0]):
        return found
    asked = tuple(p.written if isinstance(p, Variant) else p for p in text)
    return run(cursor, filled(asked, references))[0], found[1]


def planned(case: Case) -> Plan:
    return Rewriter(MonetDBTables(), dialect="monetdb").plan(case.sql).plan


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: case.name)
def test_a_query_answers_as_before(shop: pymonetdb.sql.cursors.Cursor, case: Case):
    made = planned(case)
    expected = run(shop, case.sql.replace("%%", "%"))
    assert answer(shop, made.text, made.references, fill) == expected
    if expected != "an error":
        assert answer(shop, made.text, made.references, with_bindings) == expected


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: case.name)
def test_a_point_read_has_the_names_of_the_query(
    shop: pymonetdb.sql.cursors.Cursor, case: Case
):
    made = planned(case)
    if made.point is not None:
        names, _ = run(shop, case.sql)
        assert list(made.point.names) == names


@pytest.mark.parametrize("third", THIRD)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_bindings_are_sound_in_every_join(
    shop: pymonetdb.sql.cursors.Cursor, join: str, third: str
):
    rewriter = Rewriter(MonetDBTables(), dialect="monetdb")
    for condition in CONDITIONS:
        for where in FILTERS:
            sql = (
                f"SELECT * FROM account a {join} stock s ON {condition} "
                f"{third} WHERE {where}"
            )
            made = rewriter.plan(sql).plan
            expected = run(shop, sql)
            assert expected != "an error"
            assert run(shop, with_bindings(made.text, made.references)) == expected, sql


def test_most_of_them_run(shop: pymonetdb.sql.cursors.Cursor):
    texts = [case.sql.replace("%%", "%") for case in QUERIES]
    failed = [text for text in texts if run(shop, text) == "an error"]
    assert len(failed) <= 4, failed


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.name)
def test_what_is_planned_is_sql_to_the_server(
    shop: pymonetdb.sql.cursors.Cursor, case: Case
):
    shop.execute("START TRANSACTION")
    try:
        if case.expected[0].startswith("insert"):
            shop.execute("DELETE FROM account")
        shop.execute(case.sql)
    finally:
        shop.execute("ROLLBACK")


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.name)
def test_a_source_yields_the_rows_that_the_server_changes(
    shop: pymonetdb.sql.cursors.Cursor, case: Case
):
    made = planned(case)
    if not hasattr(made, "source"):
        return
    columns = [f"{made.qualifier}.{quoted(c.name)}" for c in made.table.columns]
    for position, expression in getattr(made, "assignments", ()):
        columns[position] = fill(expression.text, made.references)
    name = f"{quoted(made.table.schema)}.{quoted(made.table.name)}"
    source = fill(made.source, made.references)
    _, rows = run(shop, f"SELECT {', '.join(columns)}{source}")
    _, before = run(shop, f"SELECT * FROM {name}")
    shop.execute("START TRANSACTION")
    try:
        assert shop.execute(case.sql) == len(rows)
        _, after = run(shop, f"SELECT * FROM {name}")
    finally:
        shop.execute("ROLLBACK")
    if case.sql.startswith("UPDATE"):
        assert all(row in after for row in rows)
    else:
        assert len(before) - len(after) == len(rows)
