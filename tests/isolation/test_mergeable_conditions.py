"""P1, P3, P9: conditions and ON CONFLICT in updates that are computed again."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

import tique
from tests.isolation.overtaking import overtaken, together

pytestmark = pytest.mark.one_duckdb

TAKE = ("UPDATE t SET n = n - %s WHERE id = 1 AND n >= %s", 4, 4)


def fill(engine, n):
    with engine.connect(autocommit=True) as connection:
        connection.execute("UPDATE t SET n = %s WHERE id = 1", (n,))


@pytest.mark.usefixtures("batches")
def test_a_condition_that_holds_each_time(engine, row, losses):
    fill(engine, 12)
    assert together(engine, TAKE, TAKE, TAKE) == [1, 1, 1]
    assert row() == [(0, 0, "a")]
    assert not losses


@pytest.mark.usefixtures("batches")
def test_a_condition_that_holds_no_more(engine, row, losses):
    """The statement is run again, and changes nothing."""
    fill(engine, 10)
    assert sorted(together(engine, TAKE, TAKE, TAKE)) == [0, 1, 1]
    assert row() == [(2, 0, "a")]
    assert losses


def test_a_condition_in_a_transaction(engine, row):
    """Its application was told that a row was changed."""
    fill(engine, 6)
    take = "UPDATE t SET n = n - 4 WHERE id = 1 AND n >= 4"
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [take], ["UPDATE t SET n = n - 3 WHERE id = 1"])
    assert row() == [(3, 0, "a")]
    fill(engine, 8)
    overtaken(engine, [take], ["UPDATE t SET n = n - 4 WHERE id = 1"])
    assert row() == [(0, 0, "a")]


def test_a_condition_that_did_not_hold_was_seen(engine, row):
    never = "UPDATE t SET m = 1 WHERE id = 1 AND n >= 100"
    note = "UPDATE t SET note = 'mine' WHERE id = 1"
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [never, note], ["UPDATE t SET n = 200 WHERE id = 1"])
    assert row() == [(200, 0, "a")]
    fill(engine, 0)
    overtaken(engine, [never, note], ["UPDATE t SET m = 5 WHERE id = 1"])
    assert row() == [(0, 5, "mine")]


def test_two_conditions_on_one_row(engine, row):
    """The second is about what the first one left."""
    fill(engine, 10)
    take = "UPDATE t SET n = n - 4 WHERE id = 1 AND n >= 4"
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [take, take], ["UPDATE t SET n = n - 3 WHERE id = 1"])
    fill(engine, 10)
    overtaken(engine, [take, take], ["UPDATE t SET n = n - 2 WHERE id = 1"])
    assert row() == [(0, 0, "a")]


CONDITIONS = (
    "n = 5",
    "n <> 5",
    "n < 6",
    "n BETWEEN 5 AND 5",
    "5 > n",
    "n >= 5.5",
    "n = '5'",
    "m = 1",
    "m <> 1",
    "note = 'a'",
    "note <> 'a'",
    "note < 'b'",
    "d >= 1.50",
    "d = 1.5",
    "d <> 1.5",
    "d > 2",
    "e = NULL",
    "e < CAST('2026-02-01' AS DATE)",
    "n = 5 AND note = 'a' AND d = 1.5",
    "n = 5 AND note = 'b'",
)


@pytest.mark.parametrize("verb", ["UPDATE", "DELETE"])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_means_what_it_means_natively(engine, verb, condition):
    with engine.connect() as connection:
        connection.execute(
            "CREATE TABLE v (id INTEGER PRIMARY KEY, n INTEGER, m INTEGER, "
            "note VARCHAR(20), d DECIMAL(9, 2), e DATE)"
        )
        connection.execute(
            "INSERT INTO v VALUES (1, 5, NULL, 'a', 1.5, %s)", (date(2026, 1, 31),)
        )
        connection.commit()
        for _ in range(2):
            where = f"WHERE id = 1 AND {condition}"
            expected = connection.execute(
                f"SELECT count(*) FROM v AS x WHERE EXISTS (SELECT 1 FROM v {where})"
            ).fetchone()[0]
            with connection.cursor() as cursor:
                change = "UPDATE v SET n = 0" if verb == "UPDATE" else "DELETE FROM v"
                cursor.execute(f"{change} {where}")
                assert cursor.rowcount == expected
            connection.rollback()
            connection.execute("UPDATE v SET note = 'a', d = 1.5 WHERE id = 1")
            connection.commit()


@pytest.mark.parametrize("value", [5, Decimal("5.0"), 5.0, None])
def test_values_are_compared_as_natively(engine, row, value):
    fill(engine, 5)
    sql = "UPDATE t SET m = 1 WHERE id = %s AND n = %s"
    with engine.connect() as connection:
        assert connection.execute(sql, (1, value)).rowcount == (value is not None)
        assert connection.execute(sql, (2, value)).rowcount == 0


def test_a_value_of_another_type(engine, row):
    with engine.connect() as connection, pytest.raises(tique.DataError):
        connection.execute("UPDATE t SET m = 1 WHERE id = 1 AND n = %s", ("x",))


COUNT = (
    "INSERT INTO t VALUES (1, %s, 0, 'new') "
    "ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n",
    1,
)


@pytest.mark.usefixtures("batches")
def test_counters_by_on_conflict(engine, row, losses):
    assert together(engine, COUNT, COUNT, COUNT) == [1, 1, 1]
    assert row() == [(3, 0, "a")]
    assert not losses


@pytest.mark.usefixtures("batches")
def test_many_proposed_rows(engine, row, losses):
    with engine.connect(autocommit=True) as connection:
        connection.execute("INSERT INTO t VALUES (2, 10, 0, 'b')")
    sql = (
        "INSERT INTO t VALUES (%s, %s, 0, 'new') "
        "ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n"
    )
    twice = (sql, (1, 1), (2, 2), (1, 3))
    assert together(engine, twice, twice) == [3, 3]
    assert row() == [(8, 0, "a"), (14, 0, "b")]
    assert not losses


def test_a_proposed_row_that_was_inserted(engine, row):
    """Both insert it: that is a conflict, and the row is counted again."""
    with engine.connect(autocommit=True) as connection:
        connection.execute("DELETE FROM t")
    assert together(engine, COUNT, COUNT) == [1, 1]
    assert row() == [(2, 0, "new")]


@pytest.mark.parametrize(
    ("tail", "others"),
    [
        pytest.param(
            "DO UPDATE SET n = t.n + excluded.n RETURNING n",
            "UPDATE t SET n = n + 1 WHERE id = 1",
            id="the row was shown",
        ),
        pytest.param(
            "DO UPDATE SET n = t.n + excluded.n WHERE t.m = 0",
            "UPDATE t SET n = n + 1 WHERE id = 1",
            id="a condition",
        ),
        pytest.param(
            "DO UPDATE SET n = t.n + excluded.n",
            "DELETE FROM t WHERE id = 1",
            id="the row is gone",
        ),
    ],
)
def test_on_conflict_that_must_lose(engine, row, tail, others):
    sql = f"INSERT INTO t VALUES (1, 5, 0, 'new') ON CONFLICT (id) {tail}"
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [sql], [others])


def test_a_row_that_on_conflict_leaves_was_seen(engine, row):
    stays = (
        "INSERT INTO t VALUES (1, 5, 0, 'new') "
        "ON CONFLICT (id) DO UPDATE SET m = 9 WHERE t.n > 100"
    )
    note = "UPDATE t SET note = 'mine' WHERE id = 1"
    with pytest.raises(tique.SerializationError):
        overtaken(engine, [stays, note], ["UPDATE t SET n = 200 WHERE id = 1"])
