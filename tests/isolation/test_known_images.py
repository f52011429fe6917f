"""P1, P5: before-images of rows that are in memory, wholly, in part, or not at all.

A model in Python keeps every committed state. Folds come after a few commits, so that they pass
over several versions of a key, which were made without all columns of its row.
"""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from tests.effort import effort
from tests.isolation.test_history import as_of, images, version
from tique.checkpoint import checkpointer
from tique.store.versions import TableVersions

pytestmark = pytest.mark.fresh_tables

WIDE = (
    "CREATE TABLE wide (id INTEGER, part VARCHAR(5), a INTEGER, b VARCHAR(9), c INTEGER, "
    "d INTEGER, e VARCHAR(9), f INTEGER, code INTEGER UNIQUE, PRIMARY KEY (id, part))"
)
FLOATS = "CREATE TABLE floats (x DOUBLE PRECISION PRIMARY KEY, v INTEGER, w INTEGER)"
KEYS = [(number, part) for number in range(8) for part in "xy"]


class Model:
    """A wide table, and what it had at every version."""

    def __init__(self, connection, chance):
        self.connection = connection
        self.chance = chance
        self.rows = {}
        self.states = {}

    def run(self, sql, *parameters):
        self.connection.execute(sql, parameters)

    def commit(self):
        for _ in range(self.chance.randint(1, 3)):
            self.chance.choice([self.put, self.put, self.set, self.set, self.swap])()
        if self.chance.random() < 0.3:
            self.delete()
        self.connection.commit()
        self.note()

    def note(self):
        self.states[version(self.connection)] = sorted(
            [(*key, *row) for key, row in self.rows.items()], key=repr
        )

    def value(self):
        return self.chance.choice([None, *range(100)])

    def put(self):
        """A new row, or one column of a row that is there."""
        key = self.chance.choice(KEYS)
        if key in self.rows:
            self.set(key)
            return
        row = [self.value(), "one", self.value(), 1, "two", None, None]
        self.run(
            "INSERT INTO wide VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)", *key, *row
        )
        self.rows[key] = row

    def set(self, key=None):
        key = key or self.chance.choice(KEYS)
        place = self.chance.choice([0, 2, 3, 5])
        value = self.value()
        self.run(
            f"UPDATE wide SET {'abcdef'[place]} = %s WHERE id = %s AND part = %s",
            value,
            *key,
        )
        if key in self.rows:
            self.rows[key] = [*self.rows[key]]
            self.rows[key][place] = value

    def swap(self):
        """A UNIQUE value goes to another row, which gives its own."""
        if len(self.rows) < 2:
            return
        one, other = self.chance.sample(sorted(self.rows), 2)
        codes = {row[6] for row in self.rows.values()}
        mine = self.rows[other][6]
        given = self.rows[one][6] or self.chance.choice([*{*range(30)} - codes])
        for key, code in ((one, None), (other, given), (one, mine)):
            sql = "UPDATE wide SET code = %s WHERE id = %s AND part = %s"
            self.run(sql, code, *key)
            self.rows[key] = [*self.rows[key][:6], code]

    def delete(self):
        key = self.chance.choice(KEYS)
        self.run("DELETE FROM wide WHERE id = %s AND part = %s", *key)
        self.rows.pop(key, None)

    def check(self):
        since = self.connection._database.catalog.find(None, "wide").history.since
        for sts, rows in self.states.items():
            if sts >= since:
                assert as_of(self.connection, "wide", sts) == rows, sts


def assert_apart(connection, name, width):
    """No two images of a key have a version in common, and none ends where it begins."""
    lives = {}
    since = connection._database.catalog.find(None, name).history.since
    for row in images(connection, name):
        lives.setdefault(row[:width], []).append(row[-3:-1])
    for each in lives.values():
        for (_, until), (begin, end) in pairwise(sorted(each, key=lambda e: e[1])):
            assert max(begin, since) >= until or until <= since
            assert begin < end


@pytest.mark.slow
@pytest.mark.parametrize("row_cache", [0, 3, 1000])
@pytest.mark.parametrize("seed", range(effort(2, 6)))
def test_every_version_of_a_wide_table(engine, seed, row_cache, monkeypatch):
    made, chance = [], random.Random(seed)
    make = TableVersions.images

    def counted(versions, *asked):
        found = make(versions, *asked)
        made.append(found)
        return found

    monkeypatch.setattr(TableVersions, "images", counted)
    options = {"history": "1 hour", "checkpoint": "manual", "row_cache": row_cache}
    connection = engine.connect(**options)
    # A fold sets columns in their places where no UNIQUE key is among them.
    connection.execute(WIDE if seed % 2 == 0 else WIDE.replace(" UNIQUE", ""))
    connection.commit()
    model = Model(connection, chance)
    for number in range(45):
        model.commit()
        if chance.random() < 0.25:
            connection.checkpoint()
        if number in (20, 35):
            # What was in memory is not any more.
            engine.close()
            engine.let_go()
            connection = model.connection = engine.connect(**options)
    model.check()
    connection.checkpoint()
    model.check()
    assert_apart(connection, "wide", 2)
    if connection._database.engine.capabilities.keeps_known_images:
        assert any(each.stored for each in made)
        assert any(each.new for each in made) or row_cache == 0
        assert any(each.until for each in made)


def test_gaps_of_rows_that_only_storage_has(engine):
    """Several versions of one key, none with all columns, and their row is not in memory."""
    options = {"history": "1 hour", "checkpoint": "manual", "row_cache": 0}
    connection = engine.connect(**options)
    connection.execute(WIDE)
    for number in range(40):
        row = (number, "x", number, "b", 3, 4, "e", 6, number)
        connection.execute(f"INSERT INTO wide VALUES {row}")
    connection.commit()
    connection.checkpoint()
    states = {version(connection): (0, "b", 3, 4, "e", 6)}
    for a, f in ((1, 6), (1, 7), (2, 7)):
        sql = "UPDATE wide SET a = %s, f = %s WHERE id = %s AND part = 'x'"
        for number in range(40):
            connection.execute(sql, (a + number, f, number))
        connection.commit()
        states[version(connection)] = (a, "b", 3, 4, "e", f)
    connection.checkpoint()
    for sts, (a, *others) in states.items():
        rows = [(n, "x", a + n, *others, n) for n in range(40)]
        assert as_of(connection, "wide", sts) == sorted(rows, key=repr)
    assert_apart(connection, "wide", 2)


def test_keys_that_become_equal_ones(engine):
    """0.0 and -0.0 are one key: each version has the one that it had."""
    connection = engine.connect(history="1 hour", checkpoint="manual")
    connection.execute(FLOATS)
    connection.execute("INSERT INTO floats VALUES (0.0, 1, 1), (2.5, 1, 1)")
    connection.commit()
    states = {}
    for number in range(12):
        if number % 3 == 1:
            connection.execute("DELETE FROM floats WHERE x = 0.0")
            row = (-0.0 if number % 2 else 0.0, number, number)
            connection.execute("INSERT INTO floats VALUES (%s, %s, %s)", row)
        else:
            connection.execute("UPDATE floats SET v = v + 1 WHERE x = -0.0")
        connection.execute("UPDATE floats SET w = w + 1 WHERE x = 2.5")
        connection.commit()
        states[version(connection)] = sorted(
            map(tuple, connection.execute("SELECT * FROM floats").fetchall()), key=repr
        )
        connection.rollback()
        if number % 4 == 3:
            connection.checkpoint()
    for sts, rows in states.items():
        assert as_of(connection, "floats", sts) == rows, sts
    assert_apart(connection, "floats", 1)


VALUES = {
    "DOUBLE PRECISION": ("1.5", "CAST('NaN' AS DOUBLE PRECISION)", "-1e300"),
    "DECIMAL(9,3)": ("1.100", "-2", "0"),
    "DATE": ("DATE '2000-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'"),
    "TIMESTAMP": ("TIMESTAMP '2000-02-29 01:02:03.000004'", "TIMESTAMP '1969-12-31'"),
    "TIMESTAMP WITH TIME ZONE": (
        "TIMESTAMP WITH TIME ZONE '2000-02-29 12:00:00+02:00'",
    ),
    "TIME": ("TIME '01:02:03.004'", "TIME '23:59:59'"),
    "BOOLEAN": ("TRUE", "FALSE"),
    "UUID": ("CAST('00000000-0000-0000-0000-00000000000a' AS UUID)",),
    "VARCHAR(9)": ("'a'", "'A'", "'\u00e9 '", "''"),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("row_cache", [0, 1000])
def test_keys_of_many_types(engine, kind, row_cache):
    """What the driver knows of a key is the same to the engine."""
    values = VALUES[kind]
    if engine.name == "monetdb":
        values = [value for value in values if "NaN" not in value]
    options = {"history": "1 hour", "checkpoint": "manual", "row_cache": row_cache}
    connection = engine.connect(**options)
    connection.execute(
        f"CREATE TABLE typed (k {kind} PRIMARY KEY, v INTEGER, w {kind}, "
        "a INTEGER, b INTEGER, c INTEGER, d INTEGER)"
    )
    states = {}
    for number in range(9):
        for value in values:
            if number % 4 == 0:
                connection.execute(
                    f"INSERT INTO typed VALUES ({value}, 0, {value}, 1, 2, 3, 4)"
                )
            elif number % 4 == 3:
                connection.execute(f"DELETE FROM typed WHERE k = {value}")
            else:
                connection.execute(f"UPDATE typed SET v = v + 1 WHERE k = {value}")
        connection.commit()
        found = connection.execute("SELECT * FROM typed").fetchall()
        connection.rollback()
        states[version(connection)] = len(found), sum(row[1] for row in found)
        if number % 2:
            connection.checkpoint()
    for sts, expected in states.items():
        rows = as_of(connection, "typed", sts)
        assert (len(rows), sum(row[1] for row in rows)) == expected, sts
        assert all(repr(row[0]) == repr(row[2]) for row in rows)
    assert_apart(connection, "typed", 1)


@pytest.mark.slow
def test_several_batches(engine, monkeypatch):
    """Each batch of a fold begins where the one before it ended."""
    monkeypatch.setattr(checkpointer, "_BATCH_ROWS", 4)
    connection = engine.connect(history="1 hour", checkpoint="manual")
    connection.execute(WIDE)
    connection.commit()
    model = Model(connection, random.Random(7))
    for _ in range(3):
        for _ in range(8):
            model.commit()
        connection.checkpoint()
    model.check()
    assert_apart(connection, "wide", 2)


@pytest.mark.slow
def test_another_name(engine):
    """The images of a table that gets another number go on, and so do their lives."""
    connection = engine.connect(history="1 hour", checkpoint="manual")
    connection.execute(WIDE)
    connection.commit()
    model = Model(connection, random.Random(5))
    for number in range(12):
        model.commit()
        connection.checkpoint()
        if number % 4 == 2:
            for old, new in (("wide", "other"), ("other", "wide")):
                connection.execute(f"ALTER TABLE {old} RENAME TO {new}")
                connection.commit()
    model.check()
    assert_apart(connection, "wide", 2)


def test_a_column_with_the_name_of_places(engine):
    """DuckDB's storage has a rowid, unless a column is called so."""
    options = {"history": "1 hour", "checkpoint": "manual", "row_cache": 0}
    connection = engine.connect(**options)
    connection.execute(
        "CREATE TABLE wide (id INTEGER PRIMARY KEY, rowid INTEGER, a INTEGER, b INTEGER, "
        "c INTEGER, d INTEGER, e INTEGER)"
    )
    for number in range(40):
        connection.execute(f"INSERT INTO wide VALUES ({number}, 7, 1, 2, 3, 4, 5)")
    connection.commit()
    connection.checkpoint()
    first = version(connection)
    for a in (6, 8):
        for number in range(0, 40, 2):
            connection.execute("UPDATE wide SET a = %s WHERE id = %s", (a, number))
        connection.commit()
    connection.checkpoint()
    assert len(images(connection, "wide")) == 40 + 20 + 20
    rows = [(number, 7, 1, 2, 3, 4, 5) for number in range(40)]
    assert as_of(connection, "wide", first) == sorted(rows, key=repr)
