"""Filled holes mean the same to the engine as the application's own text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import pytest

from tests.rewriter.fixture_files import Case, read_cases
from tests.rewriter.tables import SETUP, Tables
from tique_backends.duckdb.sessions.results import name_in, naming
from tique_rewriter import RewriteError, Rewriter
from tique_rewriter.plans.plan import Reference, Select
from tique_rewriter.plans.text import Default, Label, Moment, Piece, Text, Variant

if TYPE_CHECKING:
    from collections.abc import Callable


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def named(expression: str) -> str:
    """DuckDB's name of a result that is this expression."""
    row = duckdb.execute(naming([expression])).fetchone()
    return name_in(expression, *row)


def fill(
    text: Text,
    references: tuple[Reference, ...],
    condition: Callable[[Reference], str] = lambda reference: "true",
) -> str:
    """Each hole filled with a subquery over the table, as a snapshot form is."""

    def shown(piece: Piece) -> str:
        if isinstance(piece, str):
            return piece
        if isinstance(piece, Label):
            return f" AS {quoted(named(piece.expression))}"
        if isinstance(piece, Moment):
            return piece.written
        if isinstance(piece, Default):
            return piece.text
        if isinstance(piece, Variant):
            return piece.text
        reference = references[piece.index]
        table = reference.table
        name = f"{quoted(table.schema)}.{quoted(table.name)}"
        where = condition(reference)
        return f"(SELECT * FROM {name} WHERE {where}){reference.alias}"

    return "".join(map(shown, text))


def run(connection: duckdb.DuckDBPyConnection, sql: str):
    """Names and rows."""
    cursor = connection.execute(sql)
    names = [d[0] for d in cursor.description]
    return names, sorted(cursor.fetchall(), key=repr)


def is_query(case: Case) -> bool:
    return case.expected[0].startswith("query: ") and not any(
        part in case.sql for part in ("%s", "%(", ".csv", ".parquet")
    )


QUERIES = [c for c in read_cases("select", "dialect", "binding") if is_query(c)]


@pytest.fixture(scope="module")
def shop():
    with duckdb.connect() as connection:
        connection.execute(SETUP)
        yield connection


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: case.name)
def test_a_query_answers_as_before(shop: duckdb.DuckDBPyConnection, case: Case):
    native = case.sql.replace("%%", "%")
    try:
        expected = run(shop, native)
    except duckdb.Error as error:
        expected = type(error)
    made = Rewriter(Tables()).plan(case.sql).plan
    try:
        got = run(shop, fill(made.text, made.references))
    except duckdb.Error as error:
        got = type(error)
    assert got == expected


def test_most_of_them_run(shop: duckdb.DuckDBPyConnection):
    failed = []
    for case in QUERIES:
        try:
            run(shop, case.sql.replace("%%", "%"))
        except duckdb.Error as error:
            failed.append((case.name, str(error)))
    assert len(failed) <= 6, failed


def bound_rows(reference: Reference) -> str:
    """The condition that only the rows meet which the binding lets through."""
    conditions = [
        f"{quoted(reference.table.columns[i].name)} = {literal(operand.value)}"
        for i, operand in reference.binding.items()
    ]
    return " AND ".join(conditions) or "true"


def with_bindings(text: Text, references: tuple[Reference, ...]) -> str:
    """Each hole filled with only the rows that its binding lets through."""
    return fill(text, references, bound_rows)


def literal(value: object) -> str:
    return (
        "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)
    )


@pytest.mark.parametrize("case", QUERIES, ids=lambda case: case.name)
def test_other_rows_than_the_bound_cannot_matter(
    shop: duckdb.DuckDBPyConnection, case: Case
):
    made = Rewriter(Tables()).plan(case.sql).plan
    try:
        expected = run(shop, fill(made.text, made.references))
    except duckdb.Error:
        return
    bound = with_bindings(made.text, made.references)
    assert run(shop, bound) == expected


JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
CONDITIONS = ("s.item = a.id", "s.item = a.id AND s.warehouse = 1", "a.id = 2")
FILTERS = ("a.id = 1", "s.item = 1", "s.warehouse = a.id AND a.id = 2", "o.id = a.id")
THIRD = (
    "JOIN other.account o ON o.id = s.item",
    "FULL JOIN other.account o ON o.id = a.id",
    "RIGHT JOIN other.account o ON o.id = s.item AND s.item = 2",
    "JOIN other.account o ON o.id = a.id AND a.id = 2",
)


@pytest.mark.parametrize("third", THIRD)
@pytest.mark.parametrize("join", JOINS)
def test_bindings_are_sound_in_every_join(
    shop: duckdb.DuckDBPyConnection, join: str, third: str
):
    ran = 0
    for condition in CONDITIONS:
        for where in FILTERS:
            sql = (
                f"SELECT * FROM account a {join} stock s ON {condition} "
                f"{third} WHERE {where}"
            )
            made = Rewriter(Tables()).plan(sql).plan
            assert isinstance(made, Select)
            try:
                expected = run(shop, sql)
            except duckdb.BinderException:
                continue
            ran += 1
            bound = with_bindings(made.text, made.references)
            assert run(shop, bound) == expected, sql
    assert ran or join in ("SEMI JOIN", "ANTI JOIN")


def test_point_reads_have_the_names_that_the_engine_gives(
    shop: duckdb.DuckDBPyConnection,
):
    points = 0
    for case in QUERIES:
        made = Rewriter(Tables()).plan(case.sql).plan
        if made.point is not None:
            points += 1
            names, _ = run(shop, case.sql.rstrip(";"))
            assert tuple(names) == made.point.names
    assert points > 1


@pytest.mark.parametrize("case", read_cases("define"), ids=lambda case: case.name)
def test_the_engine_takes_a_definition_as_it_was_read(case: Case):
    made = Rewriter(Tables()).plan(case.sql).plan
    if not case.expected[0].startswith("create: "):
        return
    with duckdb.connect() as connection:
        connection.execute('CREATE SCHEMA "My Shop"; CREATE SEQUENCE s')
        connection.execute(made.text)
        name = f"{quoted(made.table.schema)}.{quoted(made.table.name)}"
        described = connection.execute(f"DESCRIBE {name}").fetchall()
        assert [row[0] for row in described] == list(made.table.names)
        described = [r for r in described if made.table.computed(r[0]) is None]
        typed = ", ".join(
            f"{quoted(c.name)} {c.type}"
            + (f" DEFAULT {c.default}" if c.default else "")
            + (" NOT NULL" if c.not_null else "")
            for c in made.table.columns
        )
        checks = "".join(f", CHECK ({c.expression})" for c in made.table.checks)
        connection.execute(f"CREATE TABLE copied ({typed}{checks})")
        copied = connection.execute("DESCRIBE copied").fetchall()
    assert [r[:3] + r[4:5] for r in copied] == [r[:3] + r[4:5] for r in described]
    keys = tuple(i for i, row in enumerate(described) if row[3] == "PRI")
    assert sorted(made.table.primary_key) == list(keys)


CHANGES = [c for c in read_cases("change") if "%" not in c.sql]


@pytest.mark.parametrize("case", CHANGES, ids=lambda case: case.name)
def test_a_source_yields_the_rows_that_the_engine_changes(case: Case):
    made = Rewriter(Tables()).plan(case.sql).plan
    if not hasattr(made, "source"):
        return
    with duckdb.connect() as connection:
        connection.execute(SETUP)
        columns = [f"{made.qualifier}.{quoted(c.name)}" for c in made.table.columns]
        for position, expression in getattr(made, "assignments", ()):
            columns[position] = fill(expression.text, made.references)
        key = ", ".join(
            f"{made.qualifier}.{quoted(made.table.columns[i].name)}"
            for i in made.table.primary_key
        )
        select = f"SELECT {', '.join(columns)}{fill(made.source, made.references)}"
        try:
            rows = connection.execute(select).fetchall()
        except duckdb.BinderException:
            with pytest.raises(duckdb.BinderException):
                connection.execute(case.sql)
            return
        name = f"{quoted(made.table.schema)}.{quoted(made.table.name)}"
        before = connection.execute(f"FROM {name}").fetchall()
        count = connection.execute(case.sql).fetchone()[0]
        after = connection.execute(f"FROM {name}").fetchall()
    if made.is_joined:
        # Each row once for each that it is joined with; DuckDB 1.5 counts it so, too.
        rows = list(dict.fromkeys(rows))
        count = len(rows)
    if made.is_joined and not key:
        # Of equal rows all are changed.
        gone = set(before) - set(after)
        assert set(rows) == gone if case.sql.startswith("DELETE") else gone
        return
    assert count == len(rows)
    assert key or case.sql.startswith("DELETE")
    if case.sql.startswith("UPDATE"):
        assert all(row in after for row in rows)
    else:
        assert len(before) - len(after) == count


def test_refused_statements_never_reach_a_plan():
    for case in read_cases("refused"):
        with pytest.raises(RewriteError) as caught:
            Rewriter(Tables()).plan(case.sql)
        assert caught.value.line is not None
        assert f"line {caught.value.line}, column {caught.value.column}" in str(
            caught.value
        )
