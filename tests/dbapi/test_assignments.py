"""SET takes the values before the statement, in whatever order it names columns."""

from __future__ import annotations

import pytest

from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables

ASSIGNMENTS = {
    "a = 7, b = a": (7, 1),
    "b = a, a = 7": (7, 1),
    "a = b, b = a": (2, 1),
    "a = a + 1, b = a + b": (2, 3),
}
WAYS = {
    "by key": "WHERE id = 1",
    "some": "WHERE id IN (1, 2, 3)",
    "by another column": "WHERE c > 5",
    "all": "",
}


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "recent"])
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""], ids=["key", "keyless"])
@pytest.mark.parametrize("where", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("assignments", ASSIGNMENTS)
def test_values_before_the_statement(engine, assignments, where, key, stored):
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        f"CREATE TABLE t (id INTEGER {key}, a INTEGER, b INTEGER, c INTEGER)"
    )
    connection.execute("INSERT INTO t VALUES (1, 1, 2, 9)")
    connection.commit()
    if stored:
        connection.checkpoint()
    connection.execute(f"UPDATE t SET {assignments} {where}")
    expected = [(1, *ASSIGNMENTS[assignments], 9)]
    assert connection.execute("SELECT * FROM t").fetchall() == expected
    connection.commit()
    connection.checkpoint()
    assert connection.execute("SELECT * FROM t").fetchall() == expected


def test_of_many_rows(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b INTEGER)")
    connection.execute(f"INSERT INTO t SELECT number, 1, 2 FROM {numbers(2500)}")
    connection.commit()
    connection.checkpoint()
    connection.execute("UPDATE t SET a = 7, b = a")
    counted = "SELECT count(*) FROM t WHERE a = 7 AND b = 1"
    assert connection.execute(counted).fetchone() == (2500,)
    connection.commit()
    connection.checkpoint()
    assert connection.execute(counted).fetchone() == (2500,)
