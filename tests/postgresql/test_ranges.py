"""Ranges in memory have the values that psycopg gives, whatever their types (P1)."""

from __future__ import annotations

import math

import psycopg
import pytest

ROWS = 40
VALUES = {
    "integer": ["7", "-1"],
    "numeric(10,2)": ["1.50", "-0.01", "0"],
    "numeric": ["1.500", "1e30"],
    "double precision": ["'NaN'", "0.1", "'-Infinity'"],
    "real": ["0.1", "1e20"],
    "text": ["''", "'ü'", "E'a\\tb\\\\\\n'"],
    "char(3)": ["'a'", "'abc'"],
    "bytea": ["''", "'\\x00ff'"],
    "boolean": ["TRUE", "FALSE"],
    "uuid": ["'00000000-0000-0000-0000-00000000000a'"],
    "date": ["'2020-02-29'", "'0001-01-01'"],
    "timestamp": ["'2020-01-01 10:00:00.000001'"],
    "timestamptz": ["'2020-01-01 10:00+02'"],
    "interval": ["'1 month 2 days'"],
    "jsonb": ["'{\"a\": 1.50}'", "'null'", "'\"x\"'"],
    "integer[]": ["'{}'", "'{1,NULL}'"],
    "text[]": ["'{\"a,b\",NULL}'"],
    "inet": ["'10.0.0.1/8'"],
    "int4range": ["'[1,5)'", "'empty'"],
}


def text(value):
    return "nan" if isinstance(value, float) and math.isnan(value) else repr(value)


@pytest.mark.parametrize("type_name", VALUES)
def test_values_are_what_a_row_has(database, type_name):
    connection = database.connect(checkpoint="manual", autocommit=True)
    connection.execute(
        f"CREATE TABLE t (g INTEGER, n INTEGER, v {type_name}, PRIMARY KEY (g, n))"
    )
    values = [*VALUES[type_name], "NULL"]
    rows = ", ".join(f"(1, {n}, {values[n % len(values)]})" for n in range(ROWS))
    connection.execute(f"INSERT INTO t VALUES {rows}")
    connection.checkpoint()
    with psycopg.connect(database.place) as native:
        query = "SELECT n, v FROM t ORDER BY n"
        expected = [text(value) for _, value in native.execute(query)]
    nulls = sum(n % len(values) == len(values) - 1 for n in range(ROWS))
    statistics = connection._database.engine.statistics

    def expect_all():
        before = statistics.statements
        for n in range(ROWS):
            found = connection.execute("SELECT v FROM t WHERE g = 1 AND n = %s", (n,))
            assert text(found.fetchone()[0]) == expected[n]
        group = connection.execute("SELECT n, v FROM t WHERE g = 1 ORDER BY n")
        assert [text(value) for _, value in group] == expected
        count = connection.execute("SELECT count(v) FROM t WHERE g = 1").fetchone()
        assert count == (ROWS - nulls,)
        connection.commit()
        return statistics.statements - before

    connection.autocommit = False
    # (The process shows from time to time that it lives.)
    assert expect_all() < ROWS
    expect_all()
    assert any(expect_all() == 1 for _ in range(50)), "the snapshot's"
    connection.execute("UPDATE t SET v = v WHERE g = 1 AND n = 3")
    connection.commit()
    connection.checkpoint()
    expect_all()


@pytest.mark.parametrize("is_stored", [False, True])
def test_a_number_that_is_none_is_left_to_the_engine(database, is_stored):
    """Python does not sort NaN, and counts each as another value."""
    connection = database.connect(checkpoint="manual", autocommit=True)
    connection.execute(
        "CREATE TABLE t (g INTEGER, n INTEGER, v NUMERIC(9,1) NOT NULL, PRIMARY KEY (g, n))"
    )
    connection.execute(
        "INSERT INTO t VALUES (1, 1, 'NaN'), (1, 2, 3), (1, 3, 'NaN'), (1, 4, 2)"
    )
    if is_stored:
        connection.checkpoint()
    for _ in range(4):
        found = connection.execute("SELECT n FROM t WHERE g = 1 ORDER BY v, n")
        assert found.fetchall() == [(4,), (2,), (1,), (3,)]
        found = connection.execute(
            "SELECT max(v), min(v), sum(v), count(DISTINCT v) FROM t WHERE g = 1"
        )
        largest, least, total, count = found.fetchone()
        assert (str(largest), least, str(total), count) == ("NaN", 2, "NaN", 3)
