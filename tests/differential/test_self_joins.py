"""P1: joins of a table with itself by a part of its key.

MonetDB joins two subqueries by the first column of a composite key as if it were unique,
and what tique reads a table by is a subquery.
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
