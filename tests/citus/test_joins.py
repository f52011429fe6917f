"""Joins of tables with recent versions, by the distribution column and otherwise (P1)."""

from __future__ import annotations

import threading
import time

import pytest

import tique
from tests.citus.conftest import run
from tests.effort import LONG

_TABLES = (
    *(
        statement
        for name in ("a", "b", "c")
        for statement in (
            f"CREATE TABLE {name} (w INTEGER, i INTEGER, x INTEGER, PRIMARY KEY (w, i))",
            f"SELECT create_distributed_table('{name}', 'w')",
            f"INSERT INTO {name} SELECT w, i, 11 - w FROM generate_series(1, 10) AS w, "
            "generate_series(1, 400) AS i",
        )
    ),
    "CREATE TABLE r (i INTEGER PRIMARY KEY, y INTEGER)",
    "SELECT create_reference_table('r')",
    "INSERT INTO r SELECT i, i FROM generate_series(1, 400) AS i",
)

_QUERIES = (
    "SELECT count(*), sum(x) FROM a",
    "SELECT count(*) FROM a, r WHERE a.i = r.i",
    "SELECT r.y, sum(a.x) FROM a JOIN r ON a.i = r.i GROUP BY r.y ORDER BY 1 LIMIT 5",
    "SELECT count(*) FROM a, b WHERE a.w = b.w AND a.i = b.i",
    "SELECT count(*) FROM a, b WHERE a.x = b.w AND a.i = b.i",
    "SELECT count(*) FROM a, b WHERE a.x = b.x AND a.i = b.i",
    "SELECT count(*) FROM a, b, c "
    "WHERE a.x = b.w AND a.i = b.i AND a.w = c.w AND a.i = c.i",
    "SELECT count(*) FROM a, b, c, r "
    "WHERE a.w = b.w AND a.i = b.i AND c.w = a.w AND c.i = a.i AND r.i = c.i",
    "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM b WHERE a.w = b.w AND a.i = b.i)",
    "SELECT count(*) FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.x = b.w AND b.i < 5)",
    "SELECT count(*) FROM a WHERE a.i IN (SELECT b.i FROM b WHERE b.x > 5)",
    "SELECT count(*) FROM a WHERE a.x > (SELECT avg(b.x) FROM b WHERE b.i = a.i)",
    "SELECT count(*) FROM r WHERE EXISTS (SELECT 1 FROM a WHERE a.i = r.i)",
    "SELECT a.w, count(*) FROM a LEFT JOIN b ON a.x = b.w AND a.i = b.i GROUP BY 1 ORDER BY 1",
)


@pytest.fixture
def joined(empty):
    for statement in _TABLES:
        empty.ask(statement)
    tique.adopt(empty.url)
    return empty


@pytest.mark.parametrize("changed", [(), ("a",), ("a", "b"), ("a", "b", "c", "r")])
def test_joins(joined, changed):
    """Whichever tables have recent versions, the answer is PostgreSQL's."""
    for table in ("a", "b", "c", "r"):
        joined.ask(f"CREATE TABLE plain_{table} AS SELECT * FROM {table}")
    with tique.connect(joined.url) as connection:
        for table in changed:
            column = "y" if table == "r" else "x"
            # The second version of a row, one that goes, and one that comes.
            for statement in (
                "UPDATE {} SET {} = {} WHERE i <= 40",
                "UPDATE {} SET {} = {} - 1 WHERE i <= 20",
                "DELETE FROM {} WHERE i = 400",
            ):
                text = statement.format(table, column, column)
                run(connection, text)
                joined.ask(statement.format(f"plain_{table}", column, column))
        cursor = connection.cursor()
        refused = []
        for query in _QUERIES:
            expected = joined.ask(plain(query))
            try:
                assert cursor.execute(query).fetchall() == expected, query
            except tique.NotSupportedError:
                connection.rollback()
                refused.append(query)
    # PostgreSQL's planner decides what Citus can push down.
    assert len(refused) <= 3, refused


def plain(query):
    """The same over the tables of the coordinator's own."""
    for table in ("a", "b", "c", "r"):
        for before in ("FROM ", "JOIN ", ", "):
            for after in (" ", ",", "\n", ")"):
                query = (query + "\n").replace(
                    f"{before}{table}{after}",
                    f"{before}plain_{table} AS {table}{after}",
                )[:-1]
    return query


def test_a_join_beside_folds(joined):
    """A table's rows and versions are read at one moment, however it is joined."""
    seconds = 60 if LONG else 12
    over = threading.Event()
    failures = []

    def write():
        with tique.connect(joined.url) as connection:
            while not over.is_set():
                run(connection, "UPDATE a SET x = x WHERE i <= 300")
                connection.checkpoint()

    def read():
        query = "SELECT count(*) FROM a, b WHERE a.x = b.w AND a.i = b.i"
        with tique.connect(joined.url) as connection:
            cursor = connection.cursor()
            while not over.is_set():
                found = cursor.execute(query).fetchone()
                connection.rollback()
                if found != (4000,):
                    failures.append(found)

    threads = [threading.Thread(target=each) for each in (write, read, read)]
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    over.set()
    for thread in threads:
        thread.join()
    assert not failures
