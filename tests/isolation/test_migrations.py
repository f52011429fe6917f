"""Migrations, as Alembic and Django run them: DDL and writes in one transaction.

DDL takes effect at once. So a transaction with DDL before its writes runs through, one with
DDL after writes is told what to do, and with autocommit everything runs in any order.
"""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.fresh_tables

TWO_REVISIONS = [
    "CREATE TABLE b (id INTEGER PRIMARY KEY)",
    "UPDATE version SET n = 'two' WHERE n = 'one'",
    "ALTER TABLE stored ADD COLUMN w INTEGER",
    "UPDATE stored SET w = 1",
    "UPDATE version SET n = 'three' WHERE n = 'two'",
]


@pytest.fixture
def connection(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE version (n VARCHAR(32) PRIMARY KEY)")
    opened.execute("CREATE TABLE stored (id INTEGER PRIMARY KEY, v INTEGER)")
    opened.execute("INSERT INTO version VALUES ('one')")
    opened.execute("INSERT INTO stored VALUES (1, 10)")
    opened.commit()
    return opened


def state(engine):
    """The committed version and rows, as another connection sees them."""
    other = engine.connect(autocommit=True)
    version = other.execute("SELECT n FROM version").fetchall()
    return version, other.execute("SELECT * FROM stored").fetchall()


def test_ddl_before_writes(engine, connection):
    """P8: the writes are the transaction's, by the new definitions."""
    connection.execute("BEGIN")
    connection.execute("SELECT n FROM version")
    connection.execute("CREATE TABLE b (id INTEGER PRIMARY KEY)")
    connection.execute("ALTER TABLE stored ADD COLUMN w INTEGER")
    connection.execute("UPDATE stored SET w = 1")
    connection.execute("UPDATE version SET n = 'two' WHERE n = 'one'")
    assert state(engine) == ([("one",)], [(1, 10, None)])
    connection.execute("COMMIT")
    assert state(engine) == ([("two",)], [(1, 10, 1)])


def test_a_rollback_leaves_the_ddl(engine, connection):
    """P8: it undoes the writes; the definition stands, as the README says."""
    connection.execute("ALTER TABLE stored ADD COLUMN w INTEGER")
    connection.execute("UPDATE stored SET w = 1")
    connection.rollback()
    assert state(engine) == ([("one",)], [(1, 10, None)])


@pytest.mark.parametrize("commits", [True, False])
def test_ddl_after_writes(engine, connection, commits):
    """P5, P10: it is refused with the way out, and the transaction is as it was."""
    connection.execute("BEGIN")
    for statement in TWO_REVISIONS[:2]:
        connection.execute(statement)
    with pytest.raises(tique.NotSupportedError, match="with autocommit") as caught:
        connection.execute(TWO_REVISIONS[2])
    assert caught.value.sqlstate == "25001"
    connection.execute("COMMIT" if commits else "ROLLBACK")
    assert state(engine) == ([("two" if commits else "one",)], [(1, 10)])


def test_with_autocommit(engine, connection):
    """P8: the way out that the error tells of."""
    connection.autocommit = True
    for statement in TWO_REVISIONS:
        connection.execute(statement)
    assert state(engine) == ([("three",)], [(1, 10, 1)])


def test_in_several_transactions(engine, connection):
    """P8: the other way out, one transaction for each revision."""
    for revision in (TWO_REVISIONS[:2], TWO_REVISIONS[2:]):
        connection.execute("BEGIN")
        for statement in revision:
            connection.execute(statement)
        connection.execute("COMMIT")
    assert state(engine) == ([("three",)], [(1, 10, 1)])
