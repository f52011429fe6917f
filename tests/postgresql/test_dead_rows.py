"""Rows that an open snapshot keeps are not read again by those who come after (P7).

VACUUM cannot remove what was deleted since a snapshot that PostgreSQL keeps: rows of the
log, of cache tables and of outcomes, at the beginning of their indexes.
"""

from __future__ import annotations

import json
from contextlib import closing

import psycopg
import pytest

from tique_backends.postgresql import engine
from tique_backends.postgresql.sessions.session import PostgreSQLSession

ROUNDS = 60
"""After so many the rows that were deleted fill fifty blocks of each table."""
COMMITS = 5
MOST = 16
"""Blocks that a scan may look at: those of an index, and of a round's rows."""
WIDE = "x" * 1000
OUTCOMES = (
    "INSERT INTO tique.outcomes SELECT -n, 0, n FROM generate_series(1, 20000) AS n"
)
CHANGES = ("WITH", "DELETE", "INSERT")


def scans(plan):
    """The tables and blocks that a plan's scans have looked at."""
    if "Relation Name" in plan and plan["Node Type"].endswith("Scan"):
        blocks = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        yield plan["Relation Name"], blocks
    for part in plan.get("Plans", ()):
        yield from scans(part)


@pytest.fixture
def blocks(monkeypatch):
    """The most blocks that a scan of each table of tique's has looked at, and for what."""
    found = {}
    run, execute = PostgreSQLSession._run, PostgreSQLSession.execute

    def explained(self, sql, *arguments, **options):
        is_read = sql.startswith("SELECT")
        is_change = self._in_transaction and sql.startswith(CHANGES)
        if "tique." in sql and (is_read or is_change):
            if is_change:
                run(self, "SAVEPOINT explained")
            explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {sql}"
            cursor = run(self, explain, *arguments, **options)
            (plan,) = json.loads(cursor.pgresult.get_value(0, 0))
            if is_change:
                run(self, "ROLLBACK TO explained")
            for name, looked_at in scans(plan["Plan"]):
                if looked_at >= found.get(name, (0,))[0]:
                    found[name] = looked_at, sql
        return run(self, sql, *arguments, **options)

    def explained_if_wide(self, sql, parameters=(), *, wide=False, keeping=False):
        if wide:
            self._run(sql, parameters)
        return execute(self, sql, parameters, wide=wide, keeping=keeping)

    monkeypatch.setattr(PostgreSQLSession, "_run", explained)
    monkeypatch.setattr(PostgreSQLSession, "execute", explained_if_wide)
    return found


def sell(connection, rounds):
    for number in range(rounds * COMMITS):
        note = f"{number}{WIDE}"
        connection.execute("INSERT INTO item VALUES (%s, %s)", (number, note))
        connection.execute("UPDATE kind SET note = %s WHERE id = 1", (note,))
        if number % COMMITS == COMMITS - 1:
            connection.execute("SELECT count(*), max(note) FROM item").fetchall()
            connection.checkpoint()


@pytest.mark.slow
@pytest.mark.parametrize("history", [None, "1 hour"])
def test_dead_rows_are_not_read_again(database, blocks, monkeypatch, history):
    monkeypatch.setattr(engine, "_LATE", 0)
    connection = database.connect(
        checkpoint="manual", autocommit=True, retention=0.0, history=history
    )
    connection.execute("CREATE TABLE item (id INTEGER, note TEXT)")
    connection.execute("CREATE TABLE kind (id INTEGER PRIMARY KEY, note TEXT)")
    connection.execute("INSERT INTO kind VALUES (1, '')")
    with (
        closing(psycopg.connect(database.place, autocommit=True)) as native,
        closing(psycopg.connect(database.place)) as old,
    ):
        # The first checkpoint forgets them.
        native.execute(OUTCOMES)
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("SELECT count(*) FROM item").fetchall()
        sell(connection, ROUNDS)
        blocks.clear()
        sell(connection, 1)
        # Outcomes of an hour are not dead.
        dead = ("log",) if history else ("log", "outcomes")
        looked_at = {
            name: blocks[name]
            for name in blocks
            if name.startswith(("tique_cache_", *dead))
        }
        assert len(looked_at) >= 3
        assert [each for each in looked_at.values() if each[0] > MOST] == []
