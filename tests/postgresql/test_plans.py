"""What is asked once for all rows must not compare every pair of them (P7).

PostgreSQL chooses a loop over all pairs where a LIMIT makes it expect a row soon, and where
it knows no other way to join: by IS NOT DISTINCT FROM.
"""

from __future__ import annotations

import re

import pytest

import tique
from tique_backends.postgresql.sessions.session import PostgreSQLSession

ROWS = 3000
LOOP = re.compile(r"Nested Loop(?! \(never executed\))")


@pytest.fixture
def plans(monkeypatch):
    """The plan of each statement that is run on the application's rows."""
    found = {}
    run = PostgreSQLSession._run

    def explained(self, sql, *arguments, **options):
        if sql.startswith(("SELECT", "WITH", "DELETE")) and '"item"' in sql:
            plan = run(self, f"EXPLAIN {sql}", *arguments, **options).fetchall()
            found[sql] = "\n".join(line for (line,) in plan)
        return run(self, sql, *arguments, **options)

    monkeypatch.setattr(PostgreSQLSession, "_run", explained)
    return found


@pytest.fixture
def connection(database):
    opened = database.connect(checkpoint="manual", autocommit=True)
    opened.execute("CREATE TABLE kind (a INTEGER, b INTEGER, PRIMARY KEY (a, b))")
    opened.execute("CREATE TABLE item (a INTEGER, b INTEGER, s TEXT)")
    rows = f"SELECT i % 10, i / 10 FROM generate_series(1, {ROWS}) AS g(i)"
    opened.execute(f"INSERT INTO kind {rows}")
    opened.execute("INSERT INTO item SELECT a, b, 'x' FROM kind")
    opened.checkpoint()
    return opened


def loops(plans):
    return {sql: plan for sql, plan in plans.items() if LOOP.search(plan)}


def test_a_new_foreign_key_is_checked_at_once(connection, plans):
    connection.execute(
        "ALTER TABLE item ADD CONSTRAINT f FOREIGN KEY (a, b) REFERENCES kind"
    )
    assert plans
    assert loops(plans) == {}
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO item SELECT a, b + 1000, s FROM item")
    assert loops(plans) == {}


def test_deleted_rows_without_a_key_are_folded_at_once(connection, plans):
    connection.execute("DELETE FROM item WHERE a > 3")
    plans.clear()
    connection.checkpoint()
    assert any(sql.startswith("DELETE") for sql in plans)
    assert loops(plans) == {}
    found = connection.execute("SELECT count(*), max(a) FROM item").fetchall()
    assert found == [(ROWS * 4 // 10, 3)]
