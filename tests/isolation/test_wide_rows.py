"""Rows of wide tables, which the driver knows in part only (P1, P5, P7).

Every operation is done to a dictionary too, and every way of reading must agree
with it: by key, by scans of few and of all columns, after folds, after a crash.
"""

from __future__ import annotations

import os
import random
from datetime import date, datetime
from decimal import Decimal

import pytest

import tique

COLUMNS = [
    ("a", "INTEGER NOT NULL"),
    ("b", "INTEGER NOT NULL"),
    ("number", "BIGINT"),
    ("amount", "DECIMAL(12,2)"),
    ("word", "TEXT"),
    ("born", "DATE"),
    ("moment", "TIMESTAMP"),
    ("ratio", "DOUBLE PRECISION"),
    ("raw", "<binary>"),
    ("flag", "BOOLEAN NOT NULL"),
    ("twin", "INTEGER"),
    ("other", "INTEGER"),
]
NAMES = [name for name, _ in COLUMNS]
VALUES = {
    "number": [None, 0, -1, 2**62],
    "amount": [None, Decimal("0.00"), Decimal("-12.34"), Decimal("9999999999.99")],
    "word": [None, "", "it's", 'a "quoted" {}', "ü\n\\x41 $1 %s", "{}", "\x01tab\t"],
    "born": [None, date(2020, 2, 29), date(1, 1, 2)],
    "moment": [None, datetime(2026, 11, 21, 1, 2, 3, 456789)],
    "ratio": [None, 0.1, -0.0, 1e300],
    "raw": [None, b"", b"\x00\xff'\\"],
    "flag": [True, False],
    "twin": [None, 1, 2],
    "other": [None, 1, 2],
}


@pytest.fixture
def values(engine):
    """The values that the columns may hold."""
    infinite = [float("inf")] if engine.has_infinity else []
    return {**VALUES, "ratio": [*VALUES["ratio"], *infinite]}


def create(engine, connection):
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS)
    columns = columns.replace("<binary>", engine.binary)
    connection.execute(f"CREATE TABLE wide ({columns}, PRIMARY KEY (a, b))")


def random_values(chance, values, names):
    return [chance.choice(values[name]) for name in names]


def step(connection, model, chance, values):
    """One random statement, on the database and on the model."""
    key = (chance.randint(1, 3), chance.randint(1, 8))
    where = "WHERE a = %s AND b = %s"
    kind = chance.choice(["insert", "update", "update", "update", "read", "delete"])
    if kind == "insert" and key not in model:
        row = (*key, *random_values(chance, values, NAMES[2:]))
        marks = ", ".join(["%s"] * len(row))
        connection.execute(f"INSERT INTO wide VALUES ({marks})", row)
        model[key] = row
    elif kind == "update":
        names = chance.sample(NAMES[2:], chance.randint(1, 3))
        new = random_values(chance, values, names)
        assignments = ", ".join(f"{name} = %s" for name in names)
        cursor = connection.execute(
            f"UPDATE wide SET {assignments} {where}", (*new, *key)
        )
        assert cursor.rowcount == (key in model)
        if key in model:
            changed = dict(zip(names, new, strict=True))
            model[key] = tuple(
                changed.get(name, old)
                for name, old in zip(NAMES, model[key], strict=True)
            )
    elif kind == "delete" and chance.random() < 0.4:
        connection.execute(f"DELETE FROM wide {where}", key)
        model.pop(key, None)
    elif kind == "read":
        names = chance.sample(NAMES, 2)
        found = connection.execute(
            f"SELECT {', '.join(names)} FROM wide {where}", key
        ).fetchall()
        expected = [
            tuple(row[NAMES.index(name)] for name in names)
            for row in [model.get(key)]
            if row is not None
        ]
        assert found == expected


def check(connection, model):
    whole = connection.execute("SELECT * FROM wide ORDER BY a, b").fetchall()
    assert whole == [model[key] for key in sorted(model)]
    narrow = connection.execute(
        "SELECT b, word FROM wide WHERE a = %s ORDER BY b", (2,)
    ).fetchall()
    assert narrow == [(k[1], model[k][4]) for k in sorted(model) if k[0] == 2]
    for word in ("it's", "", "{}"):
        found = connection.execute(
            "SELECT b, amount FROM wide WHERE a = %s AND word = %s", (1, word)
        ).fetchall()
        assert sorted(found, key=str) == sorted(
            [(r[1], r[3]) for r in model.values() if r[0] == 1 and r[4] == word],
            key=str,
        )
    least = connection.execute("SELECT min(b), count(*) FROM wide WHERE a = 3")
    numbers = [b for a, b in model if a == 3]
    assert least.fetchone() == (min(numbers, default=None), len(numbers))
    for key in sorted(model):
        found = connection.execute(
            "SELECT * FROM wide WHERE a = %s AND b = %s", key
        ).fetchone()
        assert found == model[key]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_reads_agree_with_a_model(engine, values, seed):
    chance = random.Random(seed)
    options = {
        "checkpoint": "manual",
        "row_cache": chance.choice([0, 5, 1000]),
        "page_cache": chance.choice([0, 1 << 20]),
    }
    connection = engine.connect(**options)
    reader = engine.connect(**options)
    create(engine, connection)
    model, old_model = {}, None
    for _ in range(150):
        step(connection, model, chance, values)
        if chance.random() < 0.05:
            check(connection, model)
        roll = chance.random()
        if roll < 0.25:
            connection.commit()
            if old_model is None:
                old_model = dict(model)
                reader.execute("SELECT count(*) FROM wide").fetchone()
        elif roll < 0.3:
            connection.execute("SAVEPOINT s")
            step(connection, dict(model), chance, values)
            connection.execute("ROLLBACK TO s")
        if chance.random() < 0.06:
            connection.commit()
            connection.checkpoint()
            check(connection, model)
        if old_model is not None and chance.random() < 0.08:
            check(reader, old_model)
            reader.commit()
            old_model = None
    connection.commit()
    check(connection, model)
    reader.close()
    connection.checkpoint()
    check(connection, model)
    connection.close()
    native = engine.native()
    assert native.execute("SELECT * FROM wide ORDER BY a, b").fetchall() == [
        model[key] for key in sorted(model)
    ]


@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.parametrize("seed", range(4))
def test_a_crash_loses_nothing_of_rows_known_in_part(engine, values, seed):
    """P4, P5: the log has the changed values, storage the rest."""
    model = {}
    with engine.connect() as connection:
        create(engine, connection)
        for key in [(a, b) for a in (1, 2, 3) for b in range(1, 9)]:
            model[key] = (*key, *random_values(random.Random(seed), values, NAMES[2:]))
            marks = ", ".join(["%s"] * len(NAMES))
            connection.execute(f"INSERT INTO wide VALUES ({marks})", model[key])
    child = os.fork()
    if child == 0:
        status = 1
        try:
            child_connection = tique.connect(engine.url, checkpoint="manual")
            work(child_connection, dict(model), seed, values)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    expected = replayed(model, seed, values)
    connection = engine.connect()
    check(connection, expected)


def work(connection, model, seed, values):
    chance = random.Random(seed)
    for number in range(60):
        step(connection, model, chance, values)
        connection.commit()
        if number % 20 == 13:
            connection.execute("SELECT count(*) FROM wide WHERE flag").fetchone()
        if number == 30:
            connection.checkpoint()


class _NoDatabase:
    """Stands for a connection where only the model's side of a step is wanted."""

    def __init__(self, model):
        self.model = model

    def execute(self, sql, parameters):
        key = tuple(parameters[-2:])
        self.rowcount = int(key in self.model)
        names = sql.split("SELECT ")[-1].split(" FROM")[0].split(", ")
        self.rows = (
            [tuple(self.model[key][NAMES.index(n)] for n in names)]
            if sql.startswith("SELECT") and key in self.model
            else []
        )
        return self

    def fetchall(self):
        return self.rows


def replayed(model, seed, values):
    """The model after the child's statements."""
    result = dict(model)
    chance = random.Random(seed)
    for _ in range(60):
        step(_NoDatabase(result), result, chance, values)
    return result
