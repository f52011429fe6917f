"""P1: joins of a table with itself by a part of its key, or by the column of an index.

MonetDB joins two subqueries by the first column of a composite key, or of another index, as if
it were unique, and what tique reads a table by is a subquery.
"""

from __future__ import annotations

import pytest

ROWS = [(1, 1, 10), (1, 2, 20), (2, 1, 30), (2, 2, 10)]

COUNTS = [
    ("pairs AS l JOIN pairs AS r ON l.a = r.a", 8),
    ("pairs AS l LEFT JOIN pairs AS r ON l.b = r.b", 8),
    ("pairs AS l JOIN pairs AS r USING (a) JOIN pairs AS s USING (a)", 16),
    ("pairs AS l, pairs AS r WHERE l.a = r.a AND l.b <> r.b", 4),
    ("pairs AS l WHERE EXISTS (SELECT 1 FROM pairs AS r WHERE l.a = r.a)", 4),
]


@pytest.mark.every_engine
@pytest.mark.parametrize("stored", [4, 3])
def test_a_part_of_a_key_is_not_unique(engine, stored):
    options = {"checkpoint": "manual", "page_cache": 0, "row_cache": 0}
    with engine.connect(uncommitted_fold_rows=None, **options) as connection:
        connection.execute(
            "CREATE TABLE pairs (a INTEGER, b INTEGER, c INTEGER, PRIMARY KEY (a, b))"
        )
        cursor = connection.cursor()
        insert = "INSERT INTO pairs VALUES (%s, %s, %s)"
        cursor.executemany(insert, ROWS[:stored])
        connection.commit()
        connection.checkpoint()
        cursor.executemany(insert, ROWS[stored:])
        for source, count in COUNTS:
            cursor.execute(f"SELECT count(*) FROM {source}")
            assert cursor.fetchall() == [(count,)], source


THREE = (
    "SELECT a.id, sum(a.n) FROM t AS a CROSS JOIN t AS b JOIN t AS c ON b.i = c.i "
    "GROUP BY a.id"
)
TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, i INTEGER NOT NULL, n INTEGER"
INDEXES = [
    [f"{TABLE})", "CREATE INDEX x ON t (i)"],
    [f"{TABLE})", "CREATE INDEX x ON t (i, n)"],
    [f"{TABLE}, UNIQUE (i, id))"],
]


@pytest.mark.every_engine
@pytest.mark.parametrize("definitions", INDEXES, ids=["one", "two", "unique"])
@pytest.mark.parametrize("stored", [4, 3])
@pytest.mark.parametrize("reopened", [False, True])
def test_the_column_of_an_index_is_not_unique(engine, definitions, stored, reopened):
    options = {"checkpoint": "manual", "uncommitted_fold_rows": None}
    rows = [(-1, 4, None), (6, -1, 7), (2, 3, -2), (1, 3, -2)]
    with engine.connect(autocommit=True, **options) as connection:
        for definition in definitions:
            connection.execute(definition)
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows[:stored])
        connection.checkpoint()
        cursor.executemany("INSERT INTO t VALUES (%s, %s, %s)", rows[stored:])
        if reopened:
            connection.close()
            connection = engine.connect(autocommit=True, **options)
        found = sorted(connection.execute(THREE).fetchall())
        assert found == [(-1, None), (1, -12), (2, -12), (6, 42)]
        distinct = "SELECT count(DISTINCT i), count(*) FROM t"
        assert connection.execute(distinct).fetchone() == (3, 4)


KEYED = [(1, 2, "x"), (2, 2, "y"), (3, None, "z")]
LISTED = [(2, 5, "x"), (2, 6, "x"), (1, 7, "y"), (3, 5, "y")]
FIRST = "keyed AS a JOIN listed AS b ON b.i = a.i"
BY_KEY = "JOIN listed AS c ON a.id = c.i"
LAST = {
    f"{FIRST} {BY_KEY}": [(1, 7)] * 2 + [(2, 5)] * 2 + [(2, 6)] * 2,
    f"keyed AS a CROSS JOIN (SELECT * FROM listed WHERE n < 6) AS b {BY_KEY}": [
        *[(1, 7)] * 2,
        *[(2, 5)] * 2,
        *[(2, 6)] * 2,
        *[(3, 5)] * 2,
    ],
    "keyed AS a, listed AS b, listed AS c WHERE a.id = c.i AND b.n > a.id + 5": [
        (1, 7)
    ],
    f"(SELECT * FROM keyed) AS a JOIN listed AS b ON b.s = a.s {BY_KEY}": [
        *[(1, 7)] * 2,
        *[(2, 5)] * 2,
        *[(2, 6)] * 2,
    ],
    "joined AS a JOIN listed AS c ON a.id = c.i": [
        *[(1, 7)] * 2,
        *[(2, 5)] * 2,
        *[(2, 6)] * 2,
    ],
    "keyed AS a JOIN listed AS b ON b.s = a.s JOIN listed AS c ON a.s = c.s": [
        *[(1, 7)] * 2,
        *[(2, 5)] * 2,
        *[(2, 6)] * 2,
        *[(3, 5)] * 2,
    ],
}


@pytest.mark.every_engine
@pytest.mark.parametrize("stored", [0, 4])
def test_a_key_is_not_unique_in_a_join_of_three(engine, stored):
    """MonetDB makes a semijoin where the results are those of the last one."""
    options = {"checkpoint": "manual", "uncommitted_fold_rows": None}
    with engine.connect(autocommit=True, **options) as connection:
        for definition in (
            "TABLE keyed (id INTEGER PRIMARY KEY, i INTEGER, s VARCHAR(5) UNIQUE)",
            "TABLE listed (i INTEGER, n INTEGER, s VARCHAR(5))",
            f"VIEW joined AS SELECT a.id, b.n AS m FROM {FIRST}",
            "TABLE made (i INTEGER, n INTEGER)",
        ):
            connection.execute(f"CREATE {definition}")
        cursor = connection.cursor()
        cursor.executemany("INSERT INTO keyed VALUES (%s, %s, %s)", KEYED)
        insert = "INSERT INTO listed VALUES (%s, %s, %s)"
        if stored:
            cursor.executemany(insert, LISTED[:stored])
        connection.checkpoint()
        if stored < len(LISTED):
            cursor.executemany(insert, LISTED[stored:])
        for source, expected in LAST.items():
            query = f"SELECT c.i, c.n FROM {source}"
            assert sorted(connection.execute(query).fetchall()) == expected, source
            connection.execute(f"INSERT INTO made {query}")
            made = connection.execute("SELECT * FROM made").fetchall()
            assert sorted(made) == expected, source
            connection.execute("DELETE FROM made")
