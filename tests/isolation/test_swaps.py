"""Keys and UNIQUE values that change hands within one statement (P3, P7, P9)."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = pytest.mark.fresh_tables

SWAPS = {
    "key": "UPDATE t SET id = CASE id WHEN 1 THEN 2 ELSE 1 END WHERE id < 3",
    "unique": "UPDATE t SET name = CASE id WHEN 1 THEN 'b' ELSE 'a' END WHERE id < 3",
    "both": "UPDATE t SET id = 3 - id, name = CASE name WHEN 'a' THEN 'b' ELSE 'a' END "
    "WHERE id IN (1, 2)",
    "cycle": "UPDATE t SET id = CASE id WHEN 1 THEN 2 WHEN 2 THEN 3 ELSE 1 END "
    "WHERE id < 4",
    "of all": "UPDATE t SET id = 3001 - id",
}
EXPECTED = {
    "key": [(1, "b", 20), (2, "a", 10), (3, "c", 30)],
    "unique": [(1, "b", 10), (2, "a", 20), (3, "c", 30)],
    "both": [(1, "a", 20), (2, "b", 10), (3, "c", 30)],
    "cycle": [(1, "c", 30), (2, "a", 10), (3, "b", 20)],
}


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, name VARCHAR(20) UNIQUE, n INTEGER)"
    )
    connection.execute("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 30)")
    connection.commit()
    return connection


def content(connection, where="id < 4"):
    return connection.execute(f"SELECT * FROM t WHERE {where} ORDER BY id").fetchall()


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "cached"])
@pytest.mark.parametrize("many", [False, True], ids=["few", "staged"])
@pytest.mark.parametrize("swap", EXPECTED)
def test_a_swap(engine, connection, swap, many, stored):
    """What storage gets in which order must not show: neither key is ever there twice."""
    if stored:
        connection.checkpoint()
    snapshot = engine.connect(checkpoint="manual")
    assert len(content(snapshot)) == 3
    if many:
        connection.execute(
            f"INSERT INTO t SELECT number + 1000, 'n' || number, 0 FROM {numbers(2100)}"
        )
    connection.execute(SWAPS[swap])
    assert content(connection) == EXPECTED[swap]
    connection.commit()
    assert content(connection) == EXPECTED[swap]
    connection.commit()
    connection.checkpoint()
    assert content(snapshot) == [(1, "a", 10), (2, "b", 20), (3, "c", 30)]
    snapshot.commit()
    connection.checkpoint()
    connection.close()
    snapshot.close()
    again = engine.connect(checkpoint="manual")
    assert content(again) == EXPECTED[swap]
    again.execute(SWAPS[swap])
    if swap != "cycle":
        assert sorted(content(again))[2] == (3, "c", 30)
    again.commit()
    again.checkpoint()
    assert len(content(again)) == 3


def test_all_keys_at_once(connection):
    """In bulk: every key is given up and taken by one statement."""
    connection.execute(
        f"INSERT INTO t SELECT number + 4, 'n' || number, number FROM {numbers(2997)}"
    )
    connection.commit()
    connection.checkpoint()
    before = content(connection, "id > 0")
    connection.execute(SWAPS["of all"])
    turned = sorted((3001 - key, name, n) for key, name, n in before)
    assert content(connection, "id > 0") == turned
    connection.commit()
    assert content(connection, "id > 0") == turned
    connection.commit()
    connection.checkpoint()
    assert content(connection, "id > 0") == turned


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize("swap", EXPECTED)
def test_two_swaps_conflict(engine, connection, swap, folded):
    """P3: each gives the other's keys up."""
    first, second = (engine.connect(checkpoint="manual") for _ in range(2))
    for each in (first, second):
        each.execute(SWAPS[swap])
    first.commit()
    if folded:
        connection.checkpoint()
    with pytest.raises(tique.SerializationError):
        second.commit()
    assert content(connection) == EXPECTED[swap]


def test_a_swap_against_another_writer(engine, connection):
    """P3, P9: a value that is given up is free, and one that is taken is not."""
    one, other = (
        engine.connect(checkpoint="manual", conflicts="row") for _ in range(2)
    )
    one.execute(SWAPS["unique"])
    with pytest.raises(errors.UniqueViolation):
        other.execute("INSERT INTO t VALUES (4, 'a', 40)")
    other.rollback()
    other.execute("UPDATE t SET n = n + 1 WHERE id = 2")
    one.commit()
    with pytest.raises(tique.SerializationError):
        other.commit()
    with pytest.raises(errors.UniqueViolation):
        connection.execute("UPDATE t SET name = 'c' WHERE id = 1")
    with pytest.raises(errors.UniqueViolation):
        connection.execute("UPDATE t SET id = CASE id WHEN 1 THEN 2 ELSE 3 END")
    assert content(connection) == EXPECTED["unique"]


def test_read_committed_swaps_lose_nothing(engine, connection):
    """A swap after another one is of the rows as that one left them."""
    one, other = (
        engine.connect(checkpoint="manual", isolation_level="READ COMMITTED")
        for _ in range(2)
    )
    other.execute("SELECT 1")
    one.execute("UPDATE t SET n = n + 1 WHERE id = 1")
    one.commit()
    other.execute(SWAPS["key"])
    other.commit()
    connection.rollback()
    assert content(connection) == [(1, "b", 20), (2, "a", 11), (3, "c", 30)]


def test_a_value_is_handed_to_a_new_row(engine, connection):
    """P4, P7: a fold whose update frees a value that another row has by then."""
    connection.checkpoint()
    other = engine.connect(checkpoint="manual")
    other.execute("UPDATE t SET name = name || 'x' WHERE id < 3")
    other.execute("UPDATE t SET name = 'a' WHERE id = 2")
    other.commit()
    connection.execute("INSERT INTO t VALUES (4, 'b', 40)")
    connection.commit()
    connection.checkpoint()
    assert content(connection, "id < 9") == [
        (1, "ax", 10),
        (2, "a", 20),
        (3, "c", 30),
        (4, "b", 40),
    ]
    engine.close()
    assert len(content(engine.connect(), "id < 9")) == 4
