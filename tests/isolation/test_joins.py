"""Joins in snapshots of all ages, against the same join of two scans in Python."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from tests.portable import numbers
from tique_backends.duckdb.engine import DuckDBEngine
from tique_backends.monetdb.engine import MonetDBEngine

pytestmark = pytest.mark.fresh_tables

ROWS = 300
NEW = 10**6

CHANGES = [
    "UPDATE l SET v = v + 1 WHERE id % {k} = {m}",
    "UPDATE l SET v = NULL WHERE id % {k} = {m}",
    "UPDATE r SET v = id WHERE n % {k} = {m}",
    "UPDATE r SET n = n + 1 WHERE id = 1 AND n = (SELECT max(n) FROM r WHERE id = 1)",
    "UPDATE heap SET v = v + 1 WHERE n % {k} = {m}",
    "UPDATE l SET v = 7 WHERE id = {m}",
    "DELETE FROM l WHERE id % {k} = {m}",
    "DELETE FROM r WHERE n % {k} = {m}",
    "DELETE FROM heap WHERE n % {k} = {m}",
    f"INSERT INTO l SELECT number + {{new}}, number % 50 FROM {numbers(200)}",
    f"INSERT INTO r SELECT 3, number + {{new}}, number % 50 FROM {numbers(200)}",
    f"INSERT INTO heap SELECT number, NULL FROM {numbers(200)}",
    "INSERT INTO heap VALUES ({m}, {k})",
]

JOINS = [
    ("l", "id", "r", "n"),
    ("l", "id", "r", "id"),
    ("r", "n", "l", "id"),
    ("l", "v", "r", "v"),
    ("heap", "n", "l", "id"),
    ("r", "v", "heap", "n"),
]
COLUMNS = {"l": ("id", "v"), "r": ("id", "n", "v"), "heap": ("n", "v")}


def joined(connection, left, left_key, right, right_key):
    """The rows as the engine joins them, by groups too, and how many there are."""
    names = [f"x.{name}" for name in COLUMNS[left]]
    names += [f"y.{name}" for name in COLUMNS[right]]
    join = f"FROM {left} x JOIN {right} y ON y.{right_key} = x.{left_key} AND x.v < 40"
    items = ", ".join(f"{name} AS r{n}" for n, name in enumerate(names))
    found = connection.execute(f"SELECT {items} {join}").fetchall()
    # MonetDB takes two results with one alias for one.
    ordered = f"SELECT {', '.join(names)} {join} ORDER BY x.v, {', '.join(names)}"
    assert Counter(connection.execute(ordered).fetchall()) == Counter(found)
    grouped = connection.execute(
        f"SELECT y.{right_key} AS k, count(*), max(x.v) {join} WHERE y.v IS NOT NULL "
        f"GROUP BY y.{right_key} ORDER BY k"
    ).fetchall()
    # MonetDB takes part of r's key for all of it, where it can.
    counted = connection.execute(
        f"SELECT x.{left_key} AS k, count(*) {join} GROUP BY x.{left_key} ORDER BY k"
    ).fetchall()
    return Counter(found), grouped, counted


def expected(connection, left, left_key, right, right_key):
    rows = {}
    for table in (left, right):
        query = f"SELECT {', '.join(COLUMNS[table])} FROM {table}"
        rows[table] = connection.execute(query).fetchall()
    at, to = COLUMNS[left].index(left_key), COLUMNS[right].index(right_key)
    partners = {}
    for row in rows[right]:
        partners.setdefault(row[to], []).append(row)
    pairs = [
        (row, partner)
        for row in rows[left]
        if row[-1] is not None and row[-1] < 40 and row[at] is not None
        for partner in partners.get(row[at], ())
    ]
    groups = {}
    for row, partner in pairs:
        if partner[-1] is not None:
            groups.setdefault(partner[to], []).append(row[-1])
    grouped = [(key, len(group), max(group)) for key, group in sorted(groups.items())]
    counted = Counter(row[at] for row, _ in pairs)
    return (
        Counter(row + other for row, other in pairs),
        grouped,
        sorted(counted.items()),
    )


def check(connection, number):
    join = number.choice(JOINS)
    assert joined(connection, *join) == expected(connection, *join), join


@pytest.fixture(autouse=True)
def no_overlays(monkeypatch):
    """Few cached rows are scanned as many are."""
    for engine in (DuckDBEngine, MonetDBEngine):
        changed = replace(engine.capabilities, overlay_values=0)
        monkeypatch.setattr(engine, "capabilities", changed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_joins_in_snapshots(engine, seed):
    number = random.Random(seed)
    writer = engine.connect(checkpoint="manual")
    writer.execute("CREATE TABLE l (id INTEGER PRIMARY KEY, v INTEGER)")
    writer.execute(
        "CREATE TABLE r (id INTEGER, n INTEGER, v INTEGER, PRIMARY KEY (id, n))"
    )
    writer.execute("CREATE TABLE heap (n INTEGER, v INTEGER)")
    source = f"number % 60 FROM {numbers(ROWS)}"
    writer.execute(f"INSERT INTO l SELECT number, {source}")
    writer.execute(f"INSERT INTO r SELECT 1 + number % 2, number, {source}")
    writer.execute(f"INSERT INTO heap SELECT number, {source}")
    writer.commit()
    writer.checkpoint()
    readers = [engine.connect(checkpoint="manual") for _ in range(2)]
    seen = {}
    for step in range(14):
        reader = readers[step % len(readers)]
        reader.rollback()
        seen[reader] = [(join, joined(reader, *join)) for join in JOINS]
        for join, found in seen[reader]:
            assert found == expected(reader, *join), join
        k = number.choice((2, 3, 50))
        change = number.choice(CHANGES).format(
            k=k, m=number.randrange(k), new=NEW + 1000 * step
        )
        writer.execute(change)
        check(writer, number)
        if number.random() < 0.8:
            writer.commit()
        else:
            writer.rollback()
        if number.random() < 0.2:
            writer.checkpoint()
        for older, answers in seen.items():
            join, found = number.choice(answers)
            assert joined(older, *join) == found, (join, change)


@pytest.mark.written_for(["monetdb"], reason="the others join a table with a UNION ALL")
def test_a_join_in_parts(engine):
    """The form of tique's plan shows in MonetDB's plan by its names."""
    connection = engine.connect(checkpoint="manual", uncommitted_fold_rows=None)
    query = "EXPLAIN SELECT a.v + b.v AS total FROM a JOIN b ON a.id = b.id"
    for table in "ab":
        connection.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, v INTEGER)")
        connection.execute(f"INSERT INTO {table} VALUES (1, 0)")
        connection.commit()
    connection.checkpoint()
    used = []
    for table in "ab":
        used.append("_joined" in str(connection.execute(query).fetchall()))
        connection.execute(f"UPDATE {table} SET v = 1")
        connection.commit()
    used.append("_joined" in str(connection.execute(query).fetchall()))
    assert used == [False, False, True]


def test_a_join_by_part_of_a_key(engine):
    """MonetDB takes it for all of the key in some joins whose one side is not read."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE a (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(
        "CREATE TABLE b (id INTEGER, n INTEGER, v INTEGER, PRIMARY KEY (id, n))"
    )
    connection.execute(f"INSERT INTO a SELECT number, 1 FROM {numbers(300)}")
    connection.execute(
        f"INSERT INTO b SELECT number % 3, number, 1 FROM {numbers(300)}"
    )
    connection.commit()
    connection.checkpoint()
    connection.execute("UPDATE a SET v = 2 WHERE id % 5 = 0")
    connection.execute("DELETE FROM b WHERE n % 10 = 0")
    connection.commit()
    join = "FROM a x JOIN b y ON x.id = y.id"
    grouped = f"SELECT x.id, count(*) AS c, sum(x.v) AS s {join} GROUP BY x.id"
    found = connection.execute(f"{grouped} ORDER BY x.id").fetchall()
    assert found == [(0, 90, 180), (1, 90, 90), (2, 90, 90)]
    assert connection.execute(f"SELECT count(*) {join}").fetchall() == [(270,)]
    filtered = connection.execute(f"SELECT x.v {join} WHERE y.id BETWEEN 1 AND 8")
    assert filtered.fetchall() == [(1,)] * 180
