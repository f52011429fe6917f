"""Columns whose collation says which of their values are equal (DuckDB)."""

from __future__ import annotations

import pytest

import tique

pytestmark = pytest.mark.written_for(
    ["duckdb"], reason="the others' collations sort, and no more"
)

CREATE = (
    "CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR COLLATE NOCASE DEFAULT 'None', "
    "a VARCHAR COLLATE nocase.noaccent NOT NULL, p VARCHAR CHECK (p COLLATE nocase <> 'X'))"
)
CHANGES = [
    "INSERT INTO t VALUES (1, 'Ada', 'é', 'Ada'), (2, 'bob', 'E', 'Bob'), "
    "(3, 'ADA', 'ä', 'c'), (4, NULL, 'A', 'é')",
    "INSERT INTO t (id, a) VALUES (5, 'b')",
    "UPDATE t SET p = p || '!' WHERE s = 'aDA'",
    "UPDATE t SET s = 'BOB' WHERE id = 2 AND s = 'Bob'",
    "UPDATE t SET s = 'aDa' WHERE id = 3 AND s <> 'ada'",
    "UPDATE t SET a = 'Ö' WHERE s IN ('NONE', 'x')",
    "DELETE FROM t WHERE id = 1 AND s = 'x'",
    "DELETE FROM t WHERE a = 'A' AND s IS NULL",
    "INSERT INTO t VALUES (2, 'y', 'Z', 'q') ON CONFLICT (id) DO UPDATE SET "
    "s = CASE WHEN t.s = 'bob' THEN excluded.s ELSE 'wrong' END, p = excluded.p",
    "MERGE INTO t USING (SELECT 'ADA' AS n) AS m ON t.s = m.n "
    "WHEN MATCHED AND id = 1 THEN UPDATE SET p = 'merged'",
    "UPDATE t SET s = upper(s) WHERE id = 1 RETURNING s = 'Ada'",
    "INSERT INTO t VALUES (8, 'eve', 'e', 'x2') RETURNING s = 'EVE', s < 'F'",
    "DELETE FROM t WHERE s = 'EVE' RETURNING a = 'É'",
    "INSERT INTO t SELECT id + 10, lower(s), a, p FROM t WHERE s >= 'ada'",
]
QUERIES = [
    "SELECT * FROM t ORDER BY id",
    "SELECT id FROM t WHERE s = 'ada' ORDER BY id",
    "SELECT id FROM t WHERE 'ADA' = s AND id = 1",
    "SELECT s FROM t WHERE id = 1 AND s <> 'Ada'",
    "SELECT id FROM t WHERE id = 2 AND s BETWEEN 'X' AND 'Z'",
    "SELECT s = 'ada', s < 'B', a = 'o' FROM t WHERE id = 3",
    "SELECT count(*), count(DISTINCT s), count(DISTINCT a) FROM t",
    "SELECT lower(any_value(s)), count(*) FROM t GROUP BY s ORDER BY s",
    "SELECT lower(s) FROM (SELECT DISTINCT s FROM t) AS q ORDER BY s",
    "SELECT id FROM t ORDER BY s DESC NULLS LAST, id",
    "SELECT id FROM t ORDER BY a, id LIMIT 3",
    "SELECT id FROM t WHERE id < 4 ORDER BY s, id",
    "SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.s = y.s ORDER BY ALL",
    "SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.p = y.s ORDER BY ALL",
    "SELECT x.id, y.id FROM t AS x JOIN t AS y ON x.s = y.s WHERE x.id = 1 ORDER BY ALL",
    "SELECT id, row_number() OVER (PARTITION BY s ORDER BY id) FROM t ORDER BY id",
    "SELECT id FROM t WHERE s IN (SELECT p FROM t) ORDER BY id",
    "SELECT count(*) FROM (SELECT s FROM t UNION SELECT 'ADA' COLLATE nocase) AS u",
    "SELECT id FROM t WHERE p COLLATE nocase = 'ADA!' OR p = 'Q' COLLATE nocase ORDER BY id",
    "SELECT id FROM t WHERE id = 2 AND p COLLATE nocase = 'Q'",
    "SELECT id FROM t ORDER BY p COLLATE noaccent DESC, id",
    "SELECT max(s), min(a) FROM t WHERE id = 2",
    "SELECT id FROM t WHERE s COLLATE \"binary\" = 'ADA' ORDER BY id",
    "SELECT coalesce(s, 'ADA') = 'ada', nullif(s, 'ADA') FROM t ORDER BY id",
    "SELECT id FROM t WHERE (s, a) = ('ada', 'E') ORDER BY id",
]


def answers(connection):
    return [connection.execute(query).fetchall() for query in QUERIES]


@pytest.mark.slow
@pytest.mark.parametrize("state", ["own", "recent", "mixed", "folded", "read by key"])
def test_results_are_the_engines(engine, state):
    """P1, P8: of own writes, recent versions, storage, and rows that are in memory."""
    native = engine.native()
    native.execute(CREATE.replace("TABLE t", "TABLE n"))
    changes = [
        c.replace("INTO t", "INTO n")
        .replace("UPDATE t", "UPDATE n")
        .replace("FROM t", "FROM n")
        .replace("t.s", "n.s")
        for c in CHANGES
    ]
    expected = []
    returned = []
    for change in changes:
        rows = native.execute(change).fetchall()
        returned.append(rows if "RETURNING" in change else None)
        expected.append(
            [
                native.execute(
                    q.replace("t AS", "n AS").replace("FROM t", "FROM n")
                ).fetchall()
                for q in QUERIES
            ]
        )
    native.close()
    connection = engine.connect(checkpoint="manual")
    connection.execute(CREATE)
    for change, given, wanted in zip(CHANGES, returned, expected, strict=True):
        cursor = connection.execute(change)
        assert given is None or cursor.fetchall() == given
        if state != "own":
            connection.commit()
        if state == "folded":
            connection.checkpoint()
        if state == "mixed" and "UPDATE" in change:
            connection.checkpoint()
        if state == "read by key":
            for key in range(6):
                connection.execute("SELECT * FROM t WHERE id = %s", (key,)).fetchall()
        for query, found, rows in zip(
            QUERIES, answers(connection), wanted, strict=True
        ):
            assert found == rows, query
    connection.commit()
    engine.close()
    again = engine.connect()
    for query, found, rows in zip(QUERIES, answers(again), expected[-1], strict=True):
        assert found == rows, query


@pytest.mark.slow
def test_rows_in_a_log(engine, tmp_path):
    """P4, P5: a crash leaves them there, and recovery brings them to storage."""
    connection = engine.connect(checkpoint="manual")
    connection.execute(CREATE)
    for change in CHANGES:
        connection.execute(change)
        connection.commit()
    expected = answers(connection)
    connection.rollback()
    for path, content in engine.files().items():
        (tmp_path / path.name.replace(engine.path.stem, "copy")).write_bytes(content)
    copy = tmp_path / f"copy{engine.path.suffix}"
    with tique.connect(f"duckdb:///{copy}", checkpoint="manual") as other:
        assert answers(other) == expected


def test_a_condition_on_one_decides_what_merges(engine):
    """P3: two updates of a row, whose condition the first one leaves true, or does not."""
    one, two = engine.connect(), engine.connect()
    one.execute(
        "CREATE TABLE m (id INTEGER PRIMARY KEY, s VARCHAR COLLATE nocase, n INTEGER)"
    )
    one.execute("INSERT INTO m VALUES (1, 'a', 0)")
    one.commit()
    for value in ("A", "b"):
        two.execute("UPDATE m SET n = n + 1 WHERE id = 1 AND s = 'A'")
        one.execute("UPDATE m SET s = %s WHERE id = 1", (value,))
        one.commit()
        try:
            two.commit()
        except tique.SerializationError:
            two.rollback()
            two.execute("UPDATE m SET n = n + 1 WHERE id = 1 AND s = 'A'")
            two.commit()
        assert one.execute("SELECT s, n FROM m").fetchall() == [(value, 1)]
        one.rollback()


@pytest.mark.slow
def test_columns_come_and_go(engine):
    """P9: ADD COLUMN, another collation, none; CREATE TABLE AS, temporary tables, views."""
    connection = engine.connect()
    connection.autocommit = True
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, s VARCHAR)")
    connection.execute("INSERT INTO t VALUES (1, 'A'), (2, 'a')")
    found = "SELECT id FROM t WHERE s = 'a' AND id < 9 ORDER BY id"
    assert connection.execute(found).fetchall() == [(2,)]
    connection.execute("ALTER TABLE t ALTER s TYPE VARCHAR COLLATE nocase")
    assert connection.execute(found).fetchall() == [(1,), (2,)]
    connection.execute("ALTER TABLE t ADD COLUMN d VARCHAR COLLATE nocase DEFAULT 'É'")
    connection.execute("CREATE VIEW v AS SELECT s, d FROM t")
    connection.execute("INSERT INTO t VALUES (3, 'A', 'é')")
    query = "SELECT count(*) FROM v WHERE d = 'É' AND s = 'a'"
    assert connection.execute(query).fetchall() == [(3,)]
    connection.execute("ALTER TABLE t ALTER d TYPE VARCHAR")
    assert connection.execute(query).fetchall() == [(2,)]
    connection.execute(
        "CREATE TEMPORARY TABLE h (id INTEGER PRIMARY KEY, s VARCHAR COLLATE nocase)"
    )
    connection.execute("INSERT INTO h VALUES (1, 'X'), (2, 'x')")
    assert connection.execute(
        "SELECT id FROM h WHERE s = 'x' AND id = 1"
    ).fetchall() == [(1,)]
    connection.execute("UPDATE h SET s = 'y' WHERE s = 'x'")
    assert connection.execute("SELECT count(*) FROM h WHERE s = 'Y'").fetchall() == [
        (2,)
    ]


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE k (s VARCHAR COLLATE nocase PRIMARY KEY)", "in a key"),
        (
            "CREATE TABLE k (id INT PRIMARY KEY, s VARCHAR COLLATE nocase UNIQUE)",
            "in a key",
        ),
        ("CREATE TABLE k (s VARCHAR COLLATE nocase)", "no primary key"),
        ("CREATE TEMPORARY TABLE k (s VARCHAR COLLATE nocase)", "no primary key"),
        (
            "CREATE TABLE k (id INT PRIMARY KEY, s VARCHAR COLLATE nocase, "
            "g VARCHAR AS (s || 'x'))",
            "beside a generated column",
        ),
        (
            "CREATE TABLE k (id INT PRIMARY KEY, s VARCHAR COLLATE de CHECK (s > 'a'))",
            "CHECK",
        ),
        ("CREATE TABLE k AS SELECT id, [s] AS l FROM t", "no type shows"),
        ("CREATE TABLE k AS SELECT id, {'x': [s]} AS l FROM t", "no type shows"),
        ("CREATE UNIQUE INDEX i ON t (s)", "in a key"),
        ("CREATE UNIQUE INDEX i ON t (lower(s))", "in a key"),
        ("CREATE TABLE k AS SELECT * FROM t", "no primary key"),
        (
            "CREATE TABLE k (id INT PRIMARY KEY, "
            "s VARCHAR COLLATE nocase REFERENCES u (s))",
            "FOREIGN KEY",
        ),
    ],
)
def test_what_cannot_have_one(engine, statement, message):
    """P3, P9: nothing is left of the attempt."""
    with engine.connect(autocommit=True) as connection:
        connection.execute(CREATE)
        connection.execute("CREATE TABLE u (s VARCHAR PRIMARY KEY)")
        with pytest.raises(tique.NotSupportedError, match=message):
            connection.execute(statement)
        connection.execute(CHANGES[0])
        with pytest.raises(tique.Error):
            connection.execute("SELECT * FROM k")


def test_adopted_and_detached(engine):
    """P9, P10: the table is the engine's own before and afterwards."""
    native = engine.native()
    native.execute(CREATE)
    native.execute(CHANGES[0])
    native.close()
    tique.adopt(engine.url)
    connection = engine.connect()
    connection.execute("UPDATE t SET p = 'new' WHERE s = 'ADA'")
    connection.commit()
    engine.close()
    engine.let_go()
    tique.detach(engine.url)
    native = engine.native()
    found = native.execute("SELECT id FROM t WHERE p = 'new' AND s = 'ada' ORDER BY id")
    assert found.fetchall() == [(1,), (3,)]
    ((definition,),) = native.execute("SELECT sql FROM duckdb_tables()").fetchall()
    assert "s VARCHAR COLLATE nocase" in definition.replace("NOCASE", "nocase")
