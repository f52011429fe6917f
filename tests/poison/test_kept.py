"""P4, P9: every value that is acknowledged can be kept, and no other is.

tique takes or refuses the values that the engine itself takes or refuses, in the same
statement. An accepted value is there after every way to storage: from the log after a
crash, from memory at a checkpoint, from a staging table; and after detaching.
"""

from __future__ import annotations

import pytest

import tique
from tests.poison.cases import CASES, UNINDEXED
from tests.staging import stage_above

SHAPES = {
    "key": "CREATE TABLE {} (v {} PRIMARY KEY, id INTEGER)",
    "unique": "CREATE TABLE {} (id INTEGER PRIMARY KEY, v {} UNIQUE)",
    "indexed": "CREATE TABLE {} (id INTEGER PRIMARY KEY, v {} NOT NULL)",
    "bag": "CREATE TABLE {} (id INTEGER, v {})",
    "added": "CREATE TABLE {0} (id INTEGER PRIMARY KEY);INSERT INTO {0} VALUES (-1);"
    "ALTER TABLE {0} ADD COLUMN v {1}",
    "unique later": "CREATE TABLE {0} (id INTEGER PRIMARY KEY, v {1});"
    "ALTER TABLE {0} ADD UNIQUE (v)",
}

OTHERS = pytest.mark.written_for(
    ["duckdb", "monetdb"],
    reason="PostgreSQL: indexes are in test_postgresql_limits; in a table without a key a "
    "numeric 0 and 0.0 are one value",
)

ADDS_UNIQUE = pytest.mark.written_for(
    ["postgresql", "monetdb"], reason="DuckDB 1.5 adds no UNIQUE"
)

pytestmark = pytest.mark.written_for(list(CASES), reason="types and values are theirs")


def tables(engine, shape):
    """Of each table its name, its DDL and the values it is tried with."""
    cases = CASES[engine.name]
    if shape == "bag":
        cases = {**cases, **UNINDEXED[engine.name]}
    for number, (type_, values) in enumerate(cases.items()):
        name = f"t{number}"
        definitions = SHAPES[shape].format(name, type_).split(";")
        if shape == "indexed":
            definitions.append(f"CREATE INDEX i{number} ON {name} (v)")
        yield name, definitions, values


def attempt(connection, statement):
    """Whether the statement, a transaction of its own, succeeds."""
    if not isinstance(connection, tique.Connection):
        try:
            connection.execute(statement)
        except Exception:
            return False
        return True
    try:
        connection.execute(statement)
    except tique.Error:
        connection.rollback()
        return False
    connection.commit()
    return True


def contents(connection, engine, name):
    """The rows as the engine writes them; in any order."""
    sql = f"SELECT id, CAST(v AS {engine.text}) FROM {name}"
    rows = sorted(map(tuple, connection.execute(sql).fetchall()), key=repr)
    if isinstance(connection, tique.Connection):
        connection.rollback()
    return rows


def natively(engine, shape):
    """By table, the engine's verdicts on statements, and the rows in the end."""
    verdicts, found = {}, {}
    native = engine.native()
    for name, definitions, values in tables(engine, shape):
        for definition in definitions:
            native.execute(definition)
        taken = verdicts[name] = {}
        inserted = []
        for number, value in enumerate(values):
            statement = f"INSERT INTO {name} (id, v) VALUES ({number}, {value})"
            taken[statement] = attempt(native, statement)
            if taken[statement]:
                inserted.append(number)
        # The same again, in the place of other rows.
        for number, value in enumerate(values):
            place = inserted[(number + 1) % len(inserted)]
            statement = f"UPDATE {name} SET v = {value} WHERE id = {place}"
            taken[statement] = attempt(native, statement)
        found[name] = contents(native, engine, name)
        native.execute(f"DROP TABLE {name}")
    engine.begin_again()
    return verdicts, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "way"),
    [
        ("key", "buffered"),
        pytest.param("key", "staged", marks=OTHERS),
        ("unique", "staged"),
        pytest.param("indexed", "buffered", marks=OTHERS),
        pytest.param("bag", "buffered", marks=OTHERS),
        pytest.param("bag", "staged", marks=OTHERS),
        ("added", "buffered"),
        ("added", "staged"),
        pytest.param("unique later", "buffered", marks=ADDS_UNIQUE),
    ],
)
def test_what_is_acknowledged_is_kept(engine, shape, way, monkeypatch):
    if way == "staged":
        stage_above(0, monkeypatch.setattr)
    verdicts, expected = natively(engine, shape)
    connection = engine.connect(checkpoint="manual")
    differing = {}
    for name, definitions, _ in tables(engine, shape):
        for definition in definitions:
            connection.execute(definition)
            connection.commit()
        for statement, is_taken in verdicts[name].items():
            if attempt(connection, statement) != is_taken:
                differing[f"{definitions[0]}; {statement:.120}"] = is_taken
    assert differing == {}

    def check(connection, what):
        for name, rows in expected.items():
            assert contents(connection, engine, name) == rows, (what, name)

    check(connection, "in memory")
    # From the log, as after a crash.
    engine.restart() if shape == "unique" else engine.close()
    connection = engine.connect(checkpoint="manual")
    check(connection, "reopened")
    connection.checkpoint()
    assert {table.obstacle for table in connection.status().tables} == {None}
    assert {table.cached_rows for table in connection.status().tables} == {0}
    check(connection, "folded")
    # And out of storage again.
    for name in expected:
        connection.execute(f"UPDATE {name} SET id = id + 100")
        connection.commit()
    connection.checkpoint()
    for name in expected:
        connection.execute(f"UPDATE {name} SET id = id - 100")
        connection.commit()
    engine.close()
    assert len(tique.detach(engine.url)) == len(expected)
    native = engine.native()
    for name, rows in expected.items():
        assert contents(native, engine, name) == rows, ("detached", name)
