"""Two tables of one name in two schemas, in one statement (P10): columns name the schema."""

from __future__ import annotations

import pytest

ROWS = [(1, 10), (2, 20), (3, 30)]
OTHERS = [(2, 200), (3, 300), (4, 400)]


@pytest.fixture
def connection(engine):
    with engine.connect() as connection:
        for schema in ("first_of_two", "other_of_two"):
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(
                f"CREATE TABLE {schema}.t (id INTEGER PRIMARY KEY, n INTEGER)"
            )
        for table, rows in (("a.t", ROWS), ("b.t", OTHERS)):
            insert = sql(f"INSERT INTO {table} VALUES (%s, %s)")
            connection.cursor().executemany(insert, rows)
        connection.commit()
        yield connection


def sql(text):
    return text.replace("a.t", "first_of_two.t").replace("b.t", "other_of_two.t")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "SELECT a.t.n, b.t.n FROM a.t JOIN b.t ON a.t.id = b.t.id",
            [(20, 200), (30, 300)],
        ),
        (
            "SELECT a.t.id, b.t.id FROM a.t LEFT JOIN b.t ON b.t.id = a.t.id AND b.t.n > 200",
            [(1, None), (2, None), (3, 3)],
        ),
        (
            "SELECT a.t.id FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)",
            [(2,), (3,)],
        ),
        (
            "SELECT b.t.* FROM a.t, b.t WHERE a.t.id + 1 = b.t.id ORDER BY a.t.n",
            [(2, 200), (3, 300), (4, 400)],
        ),
    ],
)
def test_queries(connection, query, rows):
    assert sorted(connection.execute(sql(query)).fetchall()) == rows


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (
            "UPDATE a.t SET n = b.t.n FROM b.t WHERE a.t.id = b.t.id",
            [(1, 10), (2, 200), (3, 300)],
        ),
        (
            "DELETE FROM a.t WHERE EXISTS (SELECT 1 FROM b.t WHERE b.t.id = a.t.id)",
            [(1, 10)],
        ),
        (
            "INSERT INTO a.t SELECT b.t.id, b.t.n FROM b.t "
            "WHERE NOT EXISTS (SELECT 1 FROM a.t WHERE a.t.id = b.t.id)",
            [*ROWS, (4, 400)],
        ),
        (
            "MERGE INTO a.t USING b.t ON a.t.id = b.t.id "
            "WHEN MATCHED THEN UPDATE SET n = a.t.n + b.t.n "
            "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (b.t.id, b.t.n)",
            [(1, 10), (2, 220), (3, 330), (4, 400)],
        ),
    ],
)
def test_changes(connection, change, after):
    connection.execute(sql(change))
    connection.commit()
    rows = connection.execute(sql("SELECT id, n FROM a.t ORDER BY id")).fetchall()
    assert rows == after
    rows = connection.execute(sql("SELECT id, n FROM b.t ORDER BY id")).fetchall()
    assert rows == OTHERS
