"""P9: FOREIGN KEY that is checked at commit."""

from __future__ import annotations

import pytest

import tique
from tests.dbapi.family import MORE_PARENTS, child, count, parents, rows, violated
from tests.portable import numbers

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.never(
        ["duckdb", "monetdb"],
        raises=tique.NotSupportedError,
        reason="the engine has no deferred constraints",
    ),
]


@pytest.fixture
def connection(engine):
    return parents(engine)


@pytest.fixture
def deferred(engine, connection):
    def make():
        connection.execute(
            "CREATE TABLE child (id INTEGER PRIMARY KEY, ref INTEGER CONSTRAINT later "
            "REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
        )
        return engine.connect()

    return make


def test_a_deferred_constraint_is_checked_at_commit(connection, deferred):
    one = deferred()
    one.execute("INSERT INTO child VALUES (1, 3)")
    one.execute("INSERT INTO parent VALUES (3, 0, 'c')")
    one.commit()
    one.execute("DELETE FROM parent WHERE id = 3")
    one.execute("INSERT INTO parent VALUES (3, 1, 'd')")
    one.commit()
    one.execute("DELETE FROM parent WHERE id = 3")
    one.execute("INSERT INTO child VALUES (2, 9)")
    one.execute("DELETE FROM child WHERE id = 2")
    with pytest.raises(tique.errors.ForeignKeyViolation) as caught:
        one.commit()
    assert (caught.value.constraint, caught.value.key) == ("later", (3,))
    assert rows(connection) == [(1, 3)]
    assert len(rows(connection, "parent")) == 3
    one.execute("SAVEPOINT s")
    one.execute("INSERT INTO child VALUES (5, 5)")
    one.execute("ROLLBACK TO s")
    one.execute("INSERT INTO child VALUES (6, 1)")
    one.commit()
    violated(connection, "INSERT INTO child VALUES (7, 7)")
    assert rows(connection) == [(1, 3), (6, 1)]


def test_a_deferred_constraint_in_bulk(connection, deferred):
    one = deferred()
    one.execute(f"INSERT INTO child SELECT number, number + 1 FROM {numbers(5000)}")
    with pytest.raises(tique.errors.ForeignKeyViolation):
        one.commit()
    one.execute(f"INSERT INTO child SELECT number, number + 1 FROM {numbers(5000)}")
    one.execute(f"INSERT INTO parent SELECT number + 3, 0, NULL FROM {numbers(5000)}")
    one.commit()
    assert count(connection, table="child") == 5000


@pytest.mark.usefixtures("_staged")
def test_a_deferred_reference_waits_for_its_parent(engine, connection):
    """P9: an INSERT of other parents is no reason to act on it."""
    child(connection, "ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED")
    other = engine.connect()
    other.execute("INSERT INTO child VALUES (5, 5)")
    other.execute(MORE_PARENTS)
    other.execute("INSERT INTO parent SELECT 5, 50, 'e'")
    other.commit()
    assert (5, 5) in rows(connection)


@pytest.mark.usefixtures("_staged")
def test_a_deferred_reference_outlasts_other_parents(engine, connection):
    """P9: actions are about the references to the keys that are taken away."""
    child(
        connection,
        "ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED",
    )
    other = engine.connect()
    other.execute("INSERT INTO child VALUES (5, 5), (6, 6), (7, 7)")
    other.execute("DELETE FROM parent WHERE v = 10")
    other.execute("UPDATE parent SET id = id + 7 WHERE v = 20")
    assert rows(other) == [(3, None), (4, None), (5, 5), (6, 6), (7, 7)]
    other.execute("INSERT INTO parent SELECT id - 4, 50, 'e' FROM parent")
    other.execute("INSERT INTO parent SELECT id + 1, 60, 'f' FROM parent WHERE v = 50")
    other.execute("DELETE FROM parent WHERE v = 60")
    assert rows(other) == [(3, None), (4, None), (5, 5), (7, 7)]
    other.execute("DELETE FROM child WHERE ref = 7")
    other.commit()
    assert rows(connection) == [(3, None), (4, None), (5, 5)]


def test_a_deferred_reference_is_certified(engine, connection, deferred):
    one, two = deferred(), engine.connect()
    two.execute("SELECT 1 FROM parent").fetchall()
    one.execute("INSERT INTO child VALUES (1, 2)")
    two.execute("DELETE FROM parent WHERE id = 2")
    two.commit()
    with pytest.raises(tique.SerializationError):
        one.commit()
