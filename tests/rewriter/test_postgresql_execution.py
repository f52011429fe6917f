"""Filled holes mean the same to PostgreSQL as the application's own text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from tests.rewriter.fixture_files import POSTGRESQL_FOLDER, Case, read_cases
from tests.rewriter.postgresql_tables import SETUP, PostgreSQLTables
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

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.targets.cluster import Cluster
    from tique_rewriter.plans.plan import Plan

QUERIES = [c for c in read_cases("select", folder=POSTGRESQL_FOLDER) if is_query(c)]
CHANGES = [
    case
    for case in read_cases("change", "clauses", folder=POSTGRESQL_FOLDER)
    if "%s" not in case.sql
]
DEFINITIONS = [
    case
    for case in read_cases("define", folder=POSTGRESQL_FOLDER)
    if case.expected[0].startswith(("create", "index"))
    # That cannot be rolled back.
    and "CONCURRENTLY" not in case.sql
]


@pytest.fixture(scope="module")
def shop(postgresql_cluster: Cluster) -> Iterator[psycopg.Cursor[Any]]:
    postgresql_cluster.run("createdb", "rewriter")
    url = postgresql_cluster.url.removesuffix("tique") + "rewriter"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(SETUP)
        yield connection.cursor()
    postgresql_cluster.run("dropdb", "--force", "rewriter")


def run(cursor: psycopg.Cursor[Any], sql: str) -> Any:
    """Names, types and rows, or the error's class."""
    try:
        cursor.execute(sql)
    except psycopg.Error as error:
        return f"an error: {error.sqlstate}"
    described = [(d.name, d.type_code) for d in cursor.description or ()]
    return described, sorted(cursor.fetchall(), key=repr)


def planned(case: Case) -> Plan:
    return Rewriter(PostgreSQLTables(), dialect="postgresql").plan(case.sql).plan


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: case.name)
def test_a_query_answers_as_before(shop: psycopg.Cursor[Any], case: Case):
    made = planned(case)
    expected = run(shop, case.sql.replace("%%", "%"))
    assert not isinstance(expected, str), expected
    assert run(shop, fill(made.text, made.references)) == expected
    assert run(shop, with_bindings(made.text, made.references)) == expected


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: case.name)
def test_a_point_read_has_the_names_of_the_query(shop: psycopg.Cursor[Any], case: Case):
    made = planned(case)
    if made.point is not None:
        described, _ = run(shop, case.sql)
        assert list(made.point.names) == [name for name, _ in described]


@pytest.mark.parametrize("third", THIRD)
@pytest.mark.parametrize("join", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_bindings_are_sound_in_every_join(
    shop: psycopg.Cursor[Any], join: str, third: str
):
    rewriter = Rewriter(PostgreSQLTables(), dialect="postgresql")
    for condition in CONDITIONS:
        for where in FILTERS:
            sql = (
                f"SELECT * FROM account a {join} stock s ON {condition} "
                f"{third} WHERE {where}"
            )
            made = rewriter.plan(sql).plan
            expected = run(shop, sql)
            # PostgreSQL cannot make every FULL JOIN.
            assert expected == "an error: 0A000" or not isinstance(expected, str)
            assert run(shop, with_bindings(made.text, made.references)) == expected, sql


@pytest.mark.parametrize("case", CHANGES + DEFINITIONS, ids=lambda case: case.name)
def test_what_is_planned_is_sql_to_the_server(shop: psycopg.Cursor[Any], case: Case):
    shop.execute("BEGIN")
    try:
        shop.execute("CREATE SEQUENCE s")
        shop.execute("CREATE SCHEMA IF NOT EXISTS other")
        for name in ('other."My Own"', "other.plain"):
            shop.execute(f"CREATE COLLATION {name} (locale = 'C')")
        if case.expected[0].startswith("insert"):
            shop.execute("DELETE FROM account; DELETE FROM member")
        shop.execute(case.sql)
    finally:
        shop.execute("ROLLBACK")


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.name)
def test_a_source_yields_the_rows_that_the_server_changes(
    shop: psycopg.Cursor[Any], case: Case
):
    made = planned(case)
    if not hasattr(made, "source"):
        return
    columns = [f"{made.qualifier}.{quoted(c.name)}" for c in made.table.columns]
    for position, expression in getattr(made, "assignments", ()):
        text = fill(expression.text, made.references)
        columns[position] = f"CAST({text} AS {made.table.columns[position].type})"
    name = f"{quoted(made.table.schema)}.{quoted(made.table.name)}"
    source = fill(made.source, made.references)
    _, rows = run(shop, f"SELECT {', '.join(columns)}{source}")
    # Where tables are joined, each row once for each that it is joined with.
    rows = list(dict.fromkeys(rows)) if made.is_joined else rows
    _, before = run(shop, f"SELECT * FROM {name}")
    shop.execute("BEGIN")
    try:
        shop.execute(case.sql)
        assert shop.rowcount == len(rows)
        _, after = run(shop, f"SELECT * FROM {name}")
    finally:
        shop.execute("ROLLBACK")
    if case.sql.startswith("UPDATE"):
        assert all(row in after for row in rows)
    else:
        assert len(before) - len(after) == len(rows)
