"""P1, P3: CASE and COALESCE in updates that are computed again.

An engine's own answer is the measure: the query for the same expression.
"""

from __future__ import annotations

from random import Random

import pytest

import tique
from tests.effort import effort
from tests.isolation.overtaking import overtaken, together
from tests.isolation.random_cases import COLUMNS, Cases
from tique.query.write.change import UpdateStatement

pytestmark = pytest.mark.one_duckdb

ROWS, CHANGES = 25, 12
CAPPED = "UPDATE t SET n = CASE WHEN n >= 2 THEN n ELSE n + 1 END WHERE id = 1"


@pytest.mark.usefixtures("batches")
def test_a_counter_with_an_end(engine, row, losses):
    """Each is computed on what the one before it left."""
    assert together(engine, *[(CAPPED,)] * 4) == [1, 1, 1, 1]
    assert row() == [(2, 0, "a")]
    assert not losses


@pytest.mark.usefixtures("batches")
def test_a_column_without_a_value(engine, row, losses):
    with engine.connect(autocommit=True) as connection:
        connection.execute("UPDATE t SET m = NULL")
    add = ("UPDATE t SET m = COALESCE(m, 0) + %s WHERE id = 1", 5)
    assert together(engine, add, add, add) == [1, 1, 1]
    assert row() == [(0, 15, "a")]
    assert not losses


@pytest.mark.usefixtures("batches")
def test_a_state_that_follows_a_number(engine, row, losses):
    """The condition's column is read again, not held to be as it was."""
    assert together(
        engine,
        ("UPDATE t SET n = n + 7 WHERE id = 1",),
        (
            "UPDATE t SET note = CASE WHEN n BETWEEN 5 AND 9 THEN %s ELSE note END "
            "WHERE id = 1",
            "many",
        ),
    ) == [1, 1]
    assert row() == [(7, 0, "many")]
    assert not losses


def test_in_a_transaction(engine, row):
    overtaken(engine, [CAPPED], ["UPDATE t SET n = 5 WHERE id = 1"])
    assert row() == [(5, 0, "a")]


@pytest.mark.parametrize(
    "seen",
    [
        "SELECT n FROM t WHERE id = 1",
        "SELECT id FROM t WHERE n = 0",
    ],
)
def test_a_column_that_was_seen(engine, row, seen):
    """It may not change, whether or not the function looks at it."""
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [seen, CAPPED], ["UPDATE t SET n = 5 WHERE id = 1"])
    assert row() == [(5, 0, "a")]


@pytest.mark.usefixtures("batches")
@pytest.mark.parametrize(
    "value",
    [
        pytest.param("CASE WHEN m = 0 THEN 1 ELSE 2 END", id="no column among values"),
        pytest.param("CASE WHEN n = 0 THEN d ELSE n END", id="several types"),
        pytest.param("CASE WHEN n + 1 = 1 THEN n ELSE 2 END", id="a computed side"),
    ],
)
def test_what_is_left_to_the_engine(engine, losses, value):
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, m INTEGER, "
            "d DECIMAL(9, 2))"
        )
        connection.execute("INSERT INTO t VALUES (1, 0, 0, 4)")
        connection.commit()
    change = (f"UPDATE t SET n = {value} WHERE id = 1",)
    assert together(engine, change, change) == [1, 1]
    assert losses


@pytest.mark.parametrize("seed", range(effort(1, 40)))
def test_cases_mean_what_they_mean_natively(engine, monkeypatch, seed):
    """What the driver computes is what the engine stores, by the same statement."""
    computed = []
    local = UpdateStatement._local_change

    def counted(statement, row, parameters):
        new = local(statement, row, parameters)
        computed.append(new)
        return new

    monkeypatch.setattr(UpdateStatement, "_local_change", counted)
    columns = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    names = ", ".join(COLUMNS)
    marks = ", ".join(["%s"] * len(COLUMNS))
    cases = Cases(Random(seed))
    with engine.connect() as connection:
        connection.execute(f"CREATE TABLE c (id INTEGER PRIMARY KEY, {columns})")
        connection.commit()

        def answer(sql, parameters):
            try:
                connection.execute(sql, parameters)
                return connection.execute(f"SELECT {names} FROM c").fetchall()
            except tique.Error as error:
                return type(error)
            finally:
                connection.rollback()

        for _ in range(ROWS):
            row = cases.row()
            connection.execute("DELETE FROM c")
            connection.execute(f"INSERT INTO c VALUES (1, {marks})", row)
            connection.commit()
            for _ in range(CHANGES):
                target, text, parameters = cases.assignment()
                sql = f"UPDATE c SET {target} = {text} WHERE id = 1"
                before = len(computed)
                mine = answer(sql, parameters)
                after = len(computed)
                if after == before:
                    continue
                # Another condition, so that the engine computes it.
                theirs = answer(f"{sql} AND id + 0 = 1", parameters)
                assert len(computed) == after
                assert repr(mine) == repr(theirs), (sql, parameters, row)
    assert len(computed) > ROWS * CHANGES / 4
