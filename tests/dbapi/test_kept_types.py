"""Rows with values that Python has not: buffered, merged and read as any others (P1, P4, P8)."""

from __future__ import annotations

import pytest

import tique

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.written_for(["duckdb"], reason="its types"),
]

ROW = (
    "1, INTERVAL '1 month -2 days 3 microseconds', TIMETZ '24:00:00-15:59:59', "
    "[1, NULL], {'a': 1.5::DOUBLE, 'b': [INTERVAL 30 DAY]}, 0"
)
TYPES = "i INTERVAL, t TIMETZ, l INTEGER[], s STRUCT(a DOUBLE, b INTERVAL[]), n INTEGER"
TEXTS = "SELECT CAST(i AS VARCHAR), CAST(t AS VARCHAR), l, CAST(s AS VARCHAR), n FROM k"


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE k (id INTEGER PRIMARY KEY, {TYPES})")
    connection.execute(f"INSERT INTO k VALUES ({ROW})")
    connection.commit()
    return connection


def test_on_conflict(engine, connection):
    """P8, P9: the existing row, the proposed one and what they become."""
    before = connection.execute(TEXTS).fetchall()
    connection.execute(
        f"INSERT INTO k VALUES ({ROW}) ON CONFLICT (id) DO UPDATE "
        "SET n = k.n + 1, i = EXCLUDED.i + k.i RETURNING l, i"
    )
    connection.execute(f"INSERT INTO k VALUES ({ROW}) ON CONFLICT DO NOTHING")
    ((interval, *rest),) = connection.execute(TEXTS).fetchall()
    assert interval == "2 months -4 days 00:00:00.000006"
    assert rest == [*before[0][1:4], 1]
    connection.commit()
    connection.checkpoint()
    assert connection.execute(TEXTS).fetchall() == [(interval, *rest)]


def test_a_row_in_memory_is_shown_as_the_engine_shows_it(connection):
    """P1: by key, where no query is made of it, and by a query."""
    query = "SELECT i, t, l, s FROM k WHERE "
    for _ in range(2):
        by_key = connection.execute(query + "id = 1").fetchall()
        assert by_key == connection.execute(query + "id + 0 = 1").fetchall()
        assert by_key[0][2] == [1, None]
        connection.execute("UPDATE k SET n = n + 1 WHERE id = 1")
        connection.commit()
        connection.checkpoint()


def test_commits_of_other_rows_go_on(engine, connection):
    """P3, P6: no barrier, and a conflict only where the key is the same."""
    other = engine.connect(checkpoint="manual")
    other.execute("SELECT n FROM k").fetchall()
    other.execute("UPDATE k SET l = l || [2] WHERE id = 1")
    connection.execute(f"INSERT INTO k VALUES (2{ROW[1:]})")
    connection.commit()
    other.commit()
    other.execute("SELECT n FROM k").fetchall()
    connection.execute("UPDATE k SET l = [] WHERE id = 1")
    connection.commit()
    other.execute("UPDATE k SET n = 9 WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        other.commit()
    assert connection.execute("SELECT id, l FROM k ORDER BY id").fetchall() == [
        (1, []),
        (2, [1, None]),
    ]


def test_a_union_stays_in_the_engine(connection):
    """P10: its text does not say which member it is."""
    connection.execute(
        "CREATE TABLE u (id INTEGER PRIMARY KEY, x UNION(n INTEGER, t VARCHAR))"
    )
    connection.execute("INSERT INTO u VALUES (1, union_value(n := 1))")
    with pytest.raises(tique.NotSupportedError, match="through Python"):
        connection.execute(
            "INSERT INTO u VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET x = 'y'"
        )
    assert connection.execute("SELECT union_tag(x) FROM u").fetchall() == [("n",)]
