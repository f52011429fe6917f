"""SERIALIZABLE beside DDL, and beside the past: what is seen of definitions (P1, P9)."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.fresh_tables

READ = "SELECT id, v FROM item ORDER BY id"


@pytest.fixture
def reader(engine):
    """A transaction that has read a table, and will write to another one."""
    connection = engine.connect(checkpoint="manual")
    for sql in (
        "CREATE TABLE item (id INTEGER PRIMARY KEY, v INTEGER, w INTEGER)",
        "CREATE TABLE dot (id INTEGER PRIMARY KEY)",
        "INSERT INTO item VALUES (1, 10, 0), (2, 20, 0)",
    ):
        connection.execute(sql)
        connection.commit()
    connection.isolation_level = "SERIALIZABLE"
    assert connection.execute(READ).fetchall() == [(1, 10), (2, 20)]
    return connection


@pytest.fixture
def other(engine, reader):
    return engine.connect(checkpoint="manual", autocommit=True)


def ends(reader):
    """The SQLSTATE of its commit, None if it is one."""
    try:
        reader.execute("INSERT INTO dot VALUES (1)")
        reader.commit()
    except tique.Error as error:
        reader.rollback()
        return error.sqlstate
    return None


@pytest.mark.parametrize("sql", ["TRUNCATE TABLE item", "DELETE FROM item"])
def test_what_it_saw_is_gone(reader, other, sql):
    other.execute(sql)
    assert ends(reader) == "40001"


@pytest.mark.parametrize(
    "sql",
    [
        "DROP TABLE item",
        "ALTER TABLE item DROP COLUMN v",
        "ALTER TABLE item ADD x INTEGER",
    ],
)
def test_a_table_that_was_read_stays(reader, other, sql):
    """Its definition is another one's to change when the transaction is over."""
    with pytest.raises(tique.OperationalError, match="uses it"):
        other.execute(sql)
    assert ends(reader) is None
    other.execute(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE made (id INTEGER PRIMARY KEY)",
        "CREATE INDEX made ON dot (id)",
        "CREATE VIEW made AS SELECT v FROM item",
    ],
)
def test_definitions_elsewhere(reader, other, sql):
    """They are in no transaction's way; that it is refused for the table it writes to is as ever."""
    other.execute(sql)
    assert ends(reader) in ({None, "40001"} if "INDEX" in sql else {None})


def test_tables_of_its_own(engine, reader, other):
    """Other sessions do not have them."""
    reader.execute("CREATE TEMPORARY TABLE own (id INTEGER PRIMARY KEY, v INTEGER)")
    reader.execute("INSERT INTO own VALUES (1, 1)")
    assert reader.execute("SELECT v FROM own").fetchall() == [(1,)]
    assert ends(reader) is None


def test_the_past_stays(engine):
    """Of it nothing can change: a transaction that has read it is not refused for what is now."""
    options = {"checkpoint": "manual", "history": "1 hour"}
    reader, other = engine.connect(**options), engine.connect(**options)
    reader.execute("CREATE TABLE item (id INTEGER PRIMARY KEY, v INTEGER)")
    reader.execute("CREATE TABLE dot (id INTEGER PRIMARY KEY)")
    reader.commit()
    reader.execute("INSERT INTO item VALUES (1, 10)")
    reader.commit()
    version = reader.version
    reader.rollback()
    reader.isolation_level = "SERIALIZABLE"
    past = f"SELECT v FROM item AT (VERSION => {version})"
    assert reader.execute(past).fetchall() == [(10,)]
    other.execute("UPDATE item SET v = 11")
    other.commit()
    assert ends(reader) is None
