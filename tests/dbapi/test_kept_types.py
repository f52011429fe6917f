"""Rows with values that Python has not: buffered, merged and read as any others (P1, P4, P8)."""

from __future__ import annotations

import pytest

import tique

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.written_for(
        ["duckdb", "monetdb"], reason="PostgreSQL's: test_keeping.py"
    ),
]

COLUMNS = {
    "duckdb": {
        "i": ("INTERVAL", "INTERVAL '1 month -2 days 3 microseconds'"),
        "t": ("TIMETZ", "TIMETZ '24:00:00-15:59:59'"),
        "l": ("INTEGER[]", "[1, NULL]"),
        "s": (
            "STRUCT(a DOUBLE, b INTERVAL[])",
            "{'a': 1.5::DOUBLE, 'b': [INTERVAL 30 DAY]}",
        ),
    },
    "monetdb": {
        "i": ("INTERVAL DAY", "INTERVAL '1' DAY + INTERVAL '1.5' SECOND"),
        "t": ("TIME(3)", "TIME '10:00'"),
        "l": (
            "TIMESTAMP(3) WITH TIME ZONE",
            "CAST('2024-07-01 12:00:00.123+05:00' AS TIMESTAMP(3) WITH TIME ZONE)",
        ),
        "s": ("REAL", "CAST('0.1' AS REAL)"),
    },
}
"""Columns of types whose values are kept as text: the type, and a value."""
TWICE = {"duckdb": "2 months -4 days 00:00:00.000006", "monetdb": "172803.000"}
"""The text of twice the value of ``i``."""
OTHER = {"duckdb": "l || [2]", "monetdb": "l + INTERVAL '1' HOUR"}
"""Another value of ``l``."""


def row(engine, key=1):
    values = [value for _, value in COLUMNS[engine.name].values()]
    return ", ".join([str(key), *values, "0"])


def texts(engine):
    items = [f"CAST({name} AS {engine.text})" for name in COLUMNS[engine.name]]
    return f"SELECT {', '.join(items)}, n FROM k ORDER BY id"


@pytest.fixture
def connection(engine):
    connection = engine.connect(checkpoint="manual")
    types = [f"{name} {kind}" for name, (kind, _) in COLUMNS[engine.name].items()]
    connection.execute(
        f"CREATE TABLE k (id INTEGER PRIMARY KEY, {', '.join(types)}, n INTEGER)"
    )
    connection.execute(f"INSERT INTO k VALUES ({row(engine)})")
    connection.commit()
    return connection


def expect_everywhere(engine, connection, query, rows):
    """Expect the rows now, after the commit, a replay and a fold, and without tique."""
    assert connection.execute(query).fetchall() == rows
    connection.commit()
    connection.close()
    connection = engine.connect(checkpoint="manual")
    assert connection.execute(query).fetchall() == rows
    connection.commit()
    connection.checkpoint()
    assert connection.execute(query).fetchall() == rows
    connection.close()
    assert [tuple(r) for r in engine.native().execute(query).fetchall()] == rows


def test_on_conflict(engine, connection):
    """P8, P9: the existing row, the proposed one and what they become."""
    ((_, *others, _),) = connection.execute(texts(engine)).fetchall()
    connection.execute(
        f"INSERT INTO k VALUES ({row(engine)}) ON CONFLICT (id) DO UPDATE "
        "SET n = k.n + 1, i = EXCLUDED.i + k.i RETURNING l, i"
    )
    connection.execute(f"INSERT INTO k VALUES ({row(engine)}) ON CONFLICT DO NOTHING")
    rows = [(TWICE[engine.name], *others, 1)]
    expect_everywhere(engine, connection, texts(engine), rows)


def test_merge_and_changes_with_other_tables(engine, connection):
    """P8: what other statements make of the rows, and what they return of them."""
    before = connection.execute(texts(engine)).fetchall()
    connection.execute("CREATE TABLE o (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO o VALUES (1, 5), (2, 6)")
    returned = connection.execute("SELECT i, t, l, s FROM k").fetchall()
    connection.execute(
        "MERGE INTO k USING o ON k.id = o.id WHEN MATCHED THEN UPDATE SET n = o.n "
        f"WHEN NOT MATCHED THEN INSERT VALUES (o.id{row(engine)[1:-1]}o.n)"
    )
    found = connection.execute(
        "UPDATE k SET n = k.n + o.n FROM o WHERE k.id = o.id RETURNING i, t, l, s"
    ).fetchall()
    assert found == returned * 2
    cursor = connection.cursor()
    cursor.executemany("UPDATE k SET n = n + %s WHERE id = %s", [(1, 1), (1, 2)])
    rows = [(*before[0][:-1], 11), (*before[0][:-1], 13)]
    expect_everywhere(engine, connection, texts(engine), rows)


def test_a_row_in_memory_is_shown_as_the_engine_shows_it(connection):
    """P1: by key, where no query is made of it, and by a query."""
    query = "SELECT i, t, l, s FROM k WHERE "
    for _ in range(2):
        by_key = connection.execute(query + "id = 1").fetchall()
        assert by_key == connection.execute(query + "id + 0 = 1").fetchall()
        of_constants = connection.execute(
            "SELECT i, t, l, s FROM (SELECT *, abs(n) FROM k WHERE id = 1) AS q"
        )
        assert by_key == of_constants.fetchall()
        assert type(by_key[0][0]) is not str
        connection.execute("UPDATE k SET n = n + 1 WHERE id = 1")
        connection.commit()
        connection.checkpoint()


def test_commits_of_other_rows_go_on(engine, connection):
    """P3, P6: no barrier, and a conflict only where the key is the same."""
    before = connection.execute("SELECT l FROM k").fetchone()
    other = engine.connect(checkpoint="manual")
    other.execute("SELECT n FROM k").fetchall()
    other.execute(f"UPDATE k SET l = {OTHER[engine.name]} WHERE id = 1")
    connection.execute(f"INSERT INTO k VALUES ({row(engine, 2)})")
    connection.commit()
    other.commit()
    other.execute("SELECT l FROM k").fetchall()
    connection.execute("UPDATE k SET l = NULL WHERE id = 1")
    connection.commit()
    other.execute("UPDATE k SET n = 9 WHERE id = 1")
    with pytest.raises(tique.SerializationError):
        other.commit()
    assert connection.execute("SELECT id, l FROM k ORDER BY id").fetchall() == [
        (1, None),
        (2, *before),
    ]


MONETDB = pytest.mark.written_for(["monetdb"], reason="its types")
KEYS = {
    "TIME": ("TIME '10:00'", "TIME '23:59:59'"),
    "TIME(6)": ("'10:00:00.000001'", "'10:00'"),
    "TIME WITH TIME ZONE": (
        "CAST('10:00:00+01:00' AS TIME WITH TIME ZONE)",
        "CAST('10:00:00+00:00' AS TIME WITH TIME ZONE)",
    ),
    "TIMESTAMP(3) WITH TIME ZONE": (
        "CAST('20000-01-01 00:00:00+01:00' AS TIMESTAMP(3) WITH TIME ZONE)",
        "CAST('2024-01-01 00:00:00+00:00' AS TIMESTAMP(3) WITH TIME ZONE)",
    ),
    "INTERVAL DAY": ("INTERVAL '1' DAY", "INTERVAL '1' SECOND"),
    "INTERVAL YEAR": ("INTERVAL '1' YEAR", "INTERVAL '1' MONTH"),
    "INTERVAL SECOND": ("INTERVAL '1.5' SECOND", "INTERVAL '90000' SECOND"),
    "INET": ("CAST('10.0.0.1' AS INET)", "CAST('10.0.0.1/8' AS INET)"),
    "URL": ("'http://a.example/'", "'HTTP://a.example/'"),
    "JSON": ("'[1]'", "'[ 1 ]'"),
}


@MONETDB
@pytest.mark.parametrize("kind", KEYS)
@pytest.mark.parametrize("constraint", ["PRIMARY KEY", "UNIQUE"])
def test_a_key(engine, kind, constraint):
    """P3, P9: equal values are one key, in a statement, at the commit and in storage."""
    first, second = (f"CAST({literal} AS {kind})" for literal in KEYS[kind])
    connection = engine.connect(checkpoint="manual")
    connection.execute(f"CREATE TABLE q (x {kind} {constraint}, n INTEGER)")
    connection.execute(f"INSERT INTO q VALUES ({first}, 1), ({second}, 2)")
    connection.commit()
    # Moments of equal keys come in other texts from then on.
    connection.execute("SET TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE")
    with pytest.raises(tique.IntegrityError):
        connection.execute(f"INSERT INTO q VALUES ({first}, 3)")
    upsert = (
        f"INSERT INTO q VALUES ({first}, 9) "
        "ON CONFLICT (x) DO UPDATE SET n = q.n + EXCLUDED.n"
    )
    connection.execute(upsert)
    connection.commit()
    connection.checkpoint()
    connection.execute(upsert)
    for literal, n in ((first, 19), (second, 2)):
        query = f"SELECT n FROM q WHERE x = {literal}"
        assert connection.execute(query).fetchall() == [(n,)]
    connection.commit()
    other = engine.connect(checkpoint="manual")
    for each in (connection, other):
        each.execute(f"DELETE FROM q WHERE x = {second}")
    connection.commit()
    with pytest.raises(tique.SerializationError):
        other.commit()
    for each in (connection, other):
        each.execute(f"INSERT INTO q VALUES ({second}, 5)")
    connection.commit()
    with pytest.raises(tique.SerializationError):
        other.commit()
    expect_everywhere(engine, connection, "SELECT n FROM q ORDER BY n", [(5,), (19,)])


@MONETDB
def test_a_table_without_a_key(engine):
    """P3, P9: its rows are found by all of their values."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE q (t TIME(3), i INTERVAL DAY)")
    rows = "(TIME '10:00', INTERVAL '1' DAY), (TIME '10:00', NULL), (NULL, NULL)"
    connection.execute(f"INSERT INTO q VALUES {rows}, {rows}")
    connection.commit()
    other = engine.connect(checkpoint="manual")
    for each in (connection, other):
        each.execute("DELETE FROM q WHERE i IS NOT NULL")
    connection.commit()
    with pytest.raises(tique.SerializationError):
        other.commit()
    expect_everywhere(engine, connection, "SELECT count(*), count(t) FROM q", [(4, 2)])


@MONETDB
def test_what_a_text_does_not_say_to_monetdb(engine):
    """P4: -0 of a REAL, and 24:00:00; in few rows and in many, which take another way."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE d (x DOUBLE)")
    connection.execute("INSERT INTO d VALUES (CAST('-0.0' AS DOUBLE))")
    connection.commit()
    connection.execute("CREATE TABLE g (n INTEGER PRIMARY KEY)")
    numbers = [(n,) for n in range(1, 40)]
    connection.cursor().executemany("INSERT INTO g VALUES (%s)", numbers)
    connection.commit()
    connection.execute(
        "CREATE TABLE q (n INTEGER PRIMARY KEY, x REAL, t TIME(3), m INTEGER)"
    )
    values = "x, CAST('23:59:59.9999' AS TIME(3)), 0 FROM d"
    connection.execute(f"INSERT INTO q SELECT 0, {values}")
    connection.commit()
    connection.checkpoint()
    connection.execute(f"INSERT INTO q SELECT g.n, {values}, g")
    connection.execute("UPDATE q SET m = 1 WHERE n = 0 OR n = 7")
    query = (
        "SELECT CAST(x AS CLOB), CAST(t AS CLOB), count(*) FROM q "
        "GROUP BY CAST(x AS CLOB), CAST(t AS CLOB)"
    )
    with pytest.raises(tique.DataError, match="Python has no such value"):
        connection.execute("SELECT t FROM q WHERE n = 0").fetchall()
    expect_everywhere(engine, connection, query, [("-0", "24:00:00.000", 40)])


@MONETDB
def test_a_time_that_monetdb_cannot_read(engine):
    """P10: it is refused where it would have to be written again."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE a (t TIME(3))")
    connection.execute("INSERT INTO a VALUES (CAST('23:59:59.9999' AS TIME(3)))")
    connection.commit()
    connection.checkpoint()
    connection.execute("CREATE TABLE q (n INTEGER PRIMARY KEY, t TIME(6))")
    with pytest.raises(tique.NotSupportedError, match="rounded a time up"):
        connection.execute("INSERT INTO q SELECT 1, t FROM a")
    assert connection.execute("SELECT count(*) FROM q").fetchall() == [(0,)]


@MONETDB
def test_a_moment_is_shown_in_the_zone_of_its_session(engine, connection):
    """P1: whichever session has read it, and in whatever zone."""
    query = "SELECT l FROM k WHERE "
    for zone in ("+02:00", "-03:30", "+00:00"):
        connection.execute(f"SET TIME ZONE INTERVAL '{zone}' HOUR TO MINUTE")
        connection.execute("UPDATE k SET n = n + 1 WHERE id = 1")
        ((by_key,),) = connection.execute(query + "id = 1").fetchall()
        ((queried,),) = connection.execute(query + "id + 0 = 1").fetchall()
        assert repr(by_key) == repr(queried)
        assert by_key.isoformat()[-6:] == zone
        connection.commit()


@pytest.mark.written_for(["duckdb"], reason="its type")
def test_a_union_stays_in_the_engine(connection):
    """P10: its text does not say which member it is."""
    connection.execute(
        "CREATE TABLE u (id INTEGER PRIMARY KEY, x UNION(n INTEGER, t VARCHAR))"
    )
    connection.execute("INSERT INTO u VALUES (1, union_value(n := 1))")
    changed = "INSERT INTO u VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET x = 'y'"
    connection.execute(changed)
    with pytest.raises(tique.NotSupportedError, match="through Python"):
        connection.execute(f"WITH w AS ({changed} RETURNING id) SELECT * FROM w")
    assert connection.execute("SELECT union_tag(x) FROM u").fetchall() == [("t",)]
