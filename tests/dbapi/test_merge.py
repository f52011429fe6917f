"""MERGE (P1, P8, P9), and beside other transactions (P3)."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique import errors

pytestmark = pytest.mark.fresh_tables

BY_SOURCE = pytest.mark.never(
    ["monetdb"], raises=tique.Error, reason="MonetDB has no NOT MATCHED BY SOURCE"
)
NO_CHECKS = pytest.mark.never(
    ["monetdb"], raises=pytest.fail.Exception, reason="MonetDB 11.41 has no CHECK"
)
STOCK = [(1, 10, "a"), (2, 20, None), (3, 30, "c")]
DELIVERIES = [(1, 5), (3, 6), (4, 7), (5, 8)]


@pytest.fixture(params=["stored", "cached", "own", "staged", "keyless"])
def connection(engine, request):
    """Three stocks and four deliveries, wherever rows can be."""
    connection = engine.connect(checkpoint="manual")
    key = "NOT NULL UNIQUE" if request.param == "keyless" else "PRIMARY KEY"
    create(engine, connection, key)
    if request.param == "staged":
        connection.execute(
            f"INSERT INTO stock (item) SELECT number + 1000 FROM {numbers(2100)}"
        )
        connection.execute("DELETE FROM stock WHERE item >= 1000")
    if request.param in ("stored", "cached", "keyless"):
        connection.commit()
    if request.param == "stored":
        connection.checkpoint()
    return connection


def create(engine, connection, key="PRIMARY KEY"):
    connection.execute(
        f"CREATE TABLE stock (item INTEGER {key}, quantity INTEGER DEFAULT 9 "
        f"NOT NULL {engine.check('quantity >= 0')}, note VARCHAR(20) UNIQUE)"
    )
    connection.execute("CREATE TABLE delivery (item INTEGER, pieces INTEGER)")
    connection.cursor().executemany("INSERT INTO stock VALUES (%s, %s, %s)", STOCK)
    connection.cursor().executemany("INSERT INTO delivery VALUES (%s, %s)", DELIVERIES)


def content(connection):
    return connection.execute("SELECT * FROM stock ORDER BY item").fetchall()


MERGE = "MERGE INTO stock AS s USING delivery AS d ON s.item = d.item"
UPSERT = (
    f"{MERGE} WHEN MATCHED THEN UPDATE SET quantity = quantity + d.pieces "
    "WHEN NOT MATCHED THEN INSERT VALUES (d.item, pieces, 'new')"
).replace("'new'", "CASE d.item WHEN 4 THEN 'four' END")


def test_update_and_insert(connection):
    """The rows are those of the snapshot and own writes; what is written is seen."""
    cursor = connection.execute(UPSERT)
    assert (cursor.rowcount, cursor.description) == (4, None)
    found = [(1, 15, "a"), (2, 20, None), (3, 36, "c"), (4, 7, "four"), (5, 8, None)]
    assert content(connection) == found
    connection.execute("SAVEPOINT s")
    assert connection.execute(UPSERT).rowcount == 4
    assert content(connection)[3:] == [(4, 14, "four"), (5, 16, None)]
    connection.execute("ROLLBACK TO s")
    assert content(connection) == found
    connection.commit()
    assert content(connection) == found
    connection.commit()
    connection.checkpoint()
    assert content(connection) == found


def test_conditions_are_tried_in_order(connection):
    cursor = connection.execute(
        f"{MERGE} WHEN MATCHED AND d.pieces > %s THEN DELETE "
        "WHEN MATCHED AND quantity > 100 THEN DO NOTHING "
        "WHEN MATCHED THEN UPDATE SET note = %s, quantity = DEFAULT "
        "WHEN NOT MATCHED AND d.item = %s THEN DO NOTHING "
        "WHEN NOT MATCHED THEN INSERT (item, note) VALUES (d.item, %s)",
        (5, "x", 4, "y"),
    )
    assert cursor.rowcount == 3
    assert content(connection) == [(1, 9, "x"), (2, 20, None), (5, 9, "y")]


@BY_SOURCE
def test_rows_without_a_source(connection):
    cursor = connection.execute(
        f"{MERGE} WHEN NOT MATCHED BY SOURCE THEN UPDATE SET quantity = quantity + 1"
    )
    assert cursor.rowcount == 1
    assert content(connection)[1] == (2, 21, None)
    cursor = connection.execute(
        f"{MERGE} WHEN MATCHED AND s.item = 3 THEN UPDATE SET quantity = 0 "
        "WHEN NOT MATCHED BY TARGET THEN INSERT (item, quantity) VALUES (item, pieces) "
        "WHEN NOT MATCHED BY SOURCE AND item = 2 THEN DELETE"
    )
    assert cursor.rowcount == 4
    assert content(connection) == [
        (1, 10, "a"),
        (3, 0, "c"),
        (4, 7, None),
        (5, 8, None),
    ]


def test_sources(connection):
    """Subqueries, VALUES, the table itself, and WITH."""
    for source, condition, inserted in (
        ("(SELECT item, sum(pieces) AS n FROM delivery GROUP BY item) AS x", "", "n"),
        ("(VALUES (1, 1), (4, 1), (5, 2)) AS x(item, n)", "AND x.n < 9", "n"),
        ("(SELECT item + 2 AS item, quantity AS n FROM stock) AS x", "", "n"),
    ):
        connection.execute("SAVEPOINT s")
        cursor = connection.execute(
            f"MERGE INTO stock USING {source} ON stock.item = x.item {condition} "
            "WHEN MATCHED THEN UPDATE SET quantity = x.n "
            f"WHEN NOT MATCHED THEN INSERT (item, quantity) VALUES (x.item, {inserted})"
        )
        assert cursor.rowcount in (3, 4)
        assert [row[0] for row in content(connection)] == [1, 2, 3, 4, 5]
        connection.execute("ROLLBACK TO s")
    cursor = connection.execute(
        "WITH x AS (SELECT item FROM delivery WHERE pieces > 5) MERGE INTO stock AS s "
        "USING x ON s.item = x.item WHEN MATCHED THEN DELETE"
    )
    assert cursor.rowcount == 1
    assert content(connection) == STOCK[:2]


def test_keys_and_unique_values_change_hands(connection):
    connection.execute(
        # (MonetDB 11.41 takes the columns of VALUES (1, 3), (3, 1) for one.)
        "MERGE INTO stock AS s USING (SELECT item, 4 - item AS other FROM delivery) AS v "
        "ON s.item = v.item WHEN MATCHED THEN UPDATE SET item = v.other"
    )
    assert content(connection) == [(1, 30, "c"), (2, 20, None), (3, 10, "a")]
    connection.execute(
        "MERGE INTO stock AS s USING (VALUES (1, 0), (3, 0), (8, 1)) AS v(item, k) "
        "ON s.item = v.item WHEN MATCHED AND s.item = 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET note = 'c' "
        "WHEN NOT MATCHED THEN INSERT VALUES (k, 1, 'a')"
    )
    assert content(connection) == [(1, 1, "a"), (2, 20, None), (3, 10, "c")]
    connection.commit()
    connection.checkpoint()
    assert content(connection) == [(1, 1, "a"), (2, 20, None), (3, 10, "c")]


def test_a_row_that_would_be_changed_twice(engine, connection):
    """DuckDB takes one of the source's rows; the others raise."""
    for action in ("UPDATE SET quantity = v.n", "DELETE"):
        connection.execute("SAVEPOINT s")
        statement = (
            "MERGE INTO stock AS s USING (VALUES (1, 77), (1, 78)) AS v(item, n) "
            f"ON s.item = v.item WHEN MATCHED THEN {action}"
        )
        if engine.name == "duckdb":
            assert connection.execute(statement).rowcount == 1
            assert len(content(connection)) == 3 - (action == "DELETE")
            connection.execute("ROLLBACK TO s")
        else:
            with pytest.raises(errors.CardinalityViolation) as caught:
                connection.execute(statement)
            assert caught.value.sqlstate == "21000"
        assert content(connection) == STOCK
    cursor = connection.execute(
        "MERGE INTO stock AS s USING (VALUES (1, 77), (1, 78)) AS v(item, n) "
        "ON s.item = v.item WHEN MATCHED AND v.n = 77 THEN DO NOTHING "
        "WHEN MATCHED THEN UPDATE SET quantity = v.n"
    )
    assert cursor.rowcount == 1
    assert content(connection)[0] == (1, 78, "a")


@pytest.mark.parametrize(
    ("action", "error"),
    [
        ("WHEN NOT MATCHED THEN INSERT VALUES (1, 1, NULL)", errors.UniqueViolation),
        ("WHEN NOT MATCHED THEN INSERT VALUES (7, 1, NULL)", errors.UniqueViolation),
        (
            "WHEN NOT MATCHED THEN INSERT VALUES (d.item, 1, 'a')",
            errors.UniqueViolation,
        ),
        (
            "WHEN NOT MATCHED THEN INSERT VALUES (d.item, NULL, NULL)",
            errors.NotNullViolation,
        ),
        ("WHEN NOT MATCHED THEN INSERT (quantity) VALUES (1)", errors.NotNullViolation),
        ("WHEN MATCHED THEN UPDATE SET item = 2", errors.UniqueViolation),
        ("WHEN MATCHED THEN UPDATE SET note = 'z'", errors.UniqueViolation),
        pytest.param(
            "WHEN MATCHED THEN UPDATE SET quantity = -1",
            errors.CheckViolation,
            marks=NO_CHECKS,
        ),
        (
            "WHEN MATCHED THEN UPDATE SET quantity = CAST(note AS INTEGER)",
            tique.DataError,
        ),
        ("WHEN MATCHED THEN UPDATE SET nothing = 1", tique.ProgrammingError),
        ("WHEN MATCHED THEN UPDATE SET quantity = nothing", tique.ProgrammingError),
        ("WHEN NOT MATCHED THEN INSERT VALUES (s.item, 1, '')", tique.ProgrammingError),
        ("WHEN MATCHED AND item = 1 THEN DELETE", tique.ProgrammingError),
        ("WHEN MATCHED THEN INSERT VALUES (1, 1, '')", tique.Error),
        ("WHEN NOT MATCHED THEN DELETE", tique.Error),
    ],
)
def test_a_statement_that_fails_leaves_no_trace(connection, action, error):
    with pytest.raises(error):
        connection.execute(f"{MERGE} {action}")
    assert content(connection) == STOCK
    connection.commit()
    assert content(connection) == STOCK


@pytest.mark.parametrize("many", [3000])
def test_many_rows(connection, many):
    """In bulk, and again where it is staged."""
    source = f"(SELECT number + 2 AS item FROM {numbers(many)}) AS n"
    for turn in (1, 2):
        cursor = connection.execute(
            f"MERGE INTO stock AS s USING {source} ON s.item = n.item "
            f"WHEN MATCHED THEN UPDATE SET quantity = {turn} "
            "WHEN NOT MATCHED THEN INSERT (item) VALUES (n.item)"
        )
        assert cursor.rowcount == many
    query = "SELECT count(*), sum(quantity) FROM stock"
    assert connection.execute(query).fetchone() == (many + 1, 10 + 2 * many)
    connection.commit()
    assert connection.execute(query).fetchone() == (many + 1, 10 + 2 * many)
    connection.commit()
    connection.checkpoint()
    assert connection.execute(query).fetchone() == (many + 1, 10 + 2 * many)


def test_foreign_keys(engine):
    """P9: parents and children that MERGE changes."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE team (id INTEGER PRIMARY KEY)")
    connection.execute(
        "CREATE TABLE player (id INTEGER PRIMARY KEY, team INTEGER "
        "REFERENCES team (id) ON DELETE CASCADE)"
    )
    connection.execute("INSERT INTO team VALUES (1), (2)")
    connection.execute("INSERT INTO player VALUES (1, 1), (2, 2)")
    connection.commit()
    with pytest.raises(errors.ForeignKeyViolation):
        connection.execute(
            "MERGE INTO player AS p USING (VALUES (1), (9)) AS v(id) ON p.id = v.id "
            "WHEN MATCHED THEN UPDATE SET team = 3 "
            "WHEN NOT MATCHED THEN INSERT VALUES (v.id, 1)"
        )
    connection.execute(
        "MERGE INTO team AS t USING (VALUES (1), (3)) AS v(id) ON t.id = v.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT VALUES (v.id)"
    )
    assert connection.execute("SELECT * FROM player").fetchall() == [(2, 2)]


def test_returning_the_changed_table(connection):
    """As the statement left the rows; a deleted one as it was."""
    cursor = connection.execute(
        f"{MERGE} WHEN MATCHED AND d.item = 1 THEN DELETE "
        "WHEN MATCHED THEN UPDATE SET quantity = quantity + d.pieces WHEN NOT MATCHED "
        "THEN INSERT (item) VALUES (d.item) RETURNING s.item, quantity * %s AS twice",
        (2,),
    )
    assert [column[0] for column in cursor.description] == ["item", "twice"]
    assert cursor.rowcount == 4
    assert sorted(cursor.fetchall()) == [(1, 20), (3, 72), (4, 18), (5, 18)]


@pytest.mark.written_for(["duckdb"], reason="merge_action is a column there")
def test_returning_on_duckdb(connection):
    cursor = connection.execute(
        f"{MERGE} WHEN MATCHED AND pieces = 5 THEN DELETE WHEN MATCHED THEN UPDATE "
        "SET note = 'n' WHEN NOT MATCHED AND pieces = 7 THEN INSERT (item) "
        "VALUES (d.item) RETURNING merge_action, *, lower(merge_action)"
    )
    assert [c[0] for c in cursor.description][:4] == [
        *("merge_action", "item", "quantity", "note"),
    ]
    assert sorted(cursor.fetchall()) == [
        ("DELETE", 1, 10, "a", "delete"),
        ("INSERT", 4, 9, None, "insert"),
        ("UPDATE", 3, 30, "n", "update"),
    ]
    connection.rollback()
    with pytest.raises(tique.ProgrammingError):
        connection.execute(f"{MERGE} WHEN MATCHED THEN DELETE RETURNING d.pieces")


@pytest.mark.written_for(["duckdb"], reason="others want the columns written out")
def test_columns_are_inserted_by_their_names(connection):
    """P8, P9: those that the source lacks get their defaults."""
    source = "(SELECT 'n' || item AS note, item + 50 AS ITEM FROM delivery) AS d"
    cursor = connection.execute(
        f"MERGE INTO stock USING {source} USING (item) WHEN NOT MATCHED THEN INSERT BY NAME"
    )
    assert cursor.rowcount == 4
    rows = connection.execute("SELECT * FROM stock WHERE item > 50 ORDER BY item")
    assert [(row[0], row[-1]) for row in rows.fetchall()] == [
        *((51, "n1"), (53, "n3"), (54, "n4"), (55, "n5")),
    ]
    whole = "(SELECT item + 60 AS a, 1 AS b, 'w' || item AS c FROM delivery) AS d"
    connection.execute(
        f"MERGE INTO stock USING {whole} ON d.a = stock.item "
        "WHEN NOT MATCHED THEN INSERT BY POSITION"
    )
    assert (61, 1, "w1") in content(connection)


@pytest.mark.written_for(["duckdb"], reason="others want the columns written out")
def test_all_columns_of_a_table(connection):
    """P8: also those that the statement does not name, wherever the source's rows are."""
    connection.commit()
    connection.execute(
        "CREATE TABLE goods (item INTEGER PRIMARY KEY, quantity INTEGER, note TEXT)"
    )
    connection.execute("INSERT INTO goods VALUES (2, 21, 'two'), (4, 40, 'four')")
    connection.commit()
    for source in ("goods", "goods AS g"):
        connection.execute("SAVEPOINT s")
        cursor = connection.execute(
            f"MERGE INTO stock USING {source} USING (item) "
            "WHEN MATCHED THEN UPDATE WHEN NOT MATCHED THEN INSERT"
        )
        assert cursor.rowcount == 2
        assert content(connection) == [
            STOCK[0],
            (2, 21, "two"),
            STOCK[2],
            (4, 40, "four"),
        ]
        connection.execute("ROLLBACK TO s")


@pytest.mark.written_for(["duckdb"], reason="others want the columns written out")
def test_all_columns_at_once(connection):
    source = "(SELECT item, pieces AS quantity, 'n' || item AS note FROM delivery) AS d"
    for update, insert in (("UPDATE SET *", "INSERT *"), ("UPDATE", "INSERT")):
        connection.execute("SAVEPOINT s")
        cursor = connection.execute(
            f"MERGE INTO stock USING {source} USING (item) "
            f"WHEN MATCHED THEN {update} WHEN NOT MATCHED THEN {insert}"
        )
        assert cursor.rowcount == 4
        assert content(connection) == [
            *((1, 5, "n1"), (2, 20, None), (3, 6, "n3"), (4, 7, "n4"), (5, 8, "n5")),
        ]
        connection.execute("ROLLBACK TO s")


@pytest.mark.written_for(["postgresql"], reason="it returns the source, too")
def test_returning_on_postgresql(connection):
    cursor = connection.execute(
        f"{MERGE} WHEN MATCHED AND pieces = 5 THEN DELETE WHEN MATCHED THEN UPDATE "
        "SET note = 'n' WHEN NOT MATCHED AND pieces = 7 THEN INSERT (item) "
        "VALUES (d.item) RETURNING merge_action(), *, lower(merge_action()) || %s",
        ("!",),
    )
    assert [c[0] for c in cursor.description] == [
        *("merge_action", "item", "pieces", "item", "quantity", "note", "?column?"),
    ]
    assert sorted(cursor.fetchall()) == [
        ("DELETE", 1, 5, 1, 10, "a", "delete!"),
        ("INSERT", 4, 7, 4, 9, None, "insert!"),
        ("UPDATE", 3, 6, 3, 30, "n", "update!"),
    ]
    with pytest.raises(tique.DataError):
        connection.execute(
            f"{MERGE} WHEN MATCHED THEN DELETE RETURNING 1 / (pieces - 6)"
        )
    assert [row[0] for row in content(connection)] == [2, 3, 4]


@pytest.mark.written_for(
    ["postgresql"], reason="its assignments are narrower than casts"
)
def test_values_are_assigned_not_cast(connection):
    for values in ("note = quantity", "note = %s::integer"):
        parameters = (1,) if "%s" in values else None
        connection.execute("SAVEPOINT s")
        connection.execute(
            f"{MERGE} AND d.item = 1 WHEN MATCHED THEN UPDATE SET {values}", parameters
        )
        connection.execute("ROLLBACK TO s")
    for values, parameters in (
        ("quantity = note", None),
        ("quantity = 'x'::text", None),
        ("quantity = note, note = %s", ("x",)),
    ):
        with pytest.raises(tique.ProgrammingError) as caught:
            connection.execute(
                f"{MERGE} WHEN MATCHED THEN UPDATE SET {values}", parameters
            )
        assert caught.value.sqlstate == "42804"
    assert content(connection) == STOCK


def test_executemany(connection):
    """One statement: each row of parameters sees the changes of those before."""
    cursor = connection.cursor()
    cursor.executemany(
        "MERGE INTO stock AS s USING (SELECT CAST(%s AS INTEGER) AS item) AS v "
        "ON s.item = v.item WHEN MATCHED THEN UPDATE SET quantity = quantity + 1 "
        "WHEN NOT MATCHED THEN INSERT (item) VALUES (v.item)",
        [(1,), (8,), (8,), (1,)],
    )
    assert cursor.rowcount == 4
    assert content(connection) == [(1, 12, "a"), *STOCK[1:], (8, 10, None)]


def test_explain(connection):
    rows = connection.execute(f"EXPLAIN {UPSERT}").fetchall()
    assert "JOIN" in rows[0][1]
    assert content(connection) == STOCK


# Beside other transactions


@pytest.fixture
def committed(engine):
    connection = engine.connect(checkpoint="manual")
    create(engine, connection)
    connection.commit()
    return connection


@pytest.mark.parametrize("folded", [True, False])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE stock SET quantity = 0 WHERE item = 1",
        "DELETE FROM stock WHERE item = 3",
        "INSERT INTO stock (item) VALUES (4)",
        UPSERT,
    ],
)
def test_of_two_writers_one_commits(engine, committed, change, folded):
    """P3: updated, deleted and inserted keys are in the write set."""
    one, other = (engine.connect(checkpoint="manual") for _ in range(2))
    other.execute(UPSERT)
    one.execute(change)
    one.commit()
    if folded:
        committed.checkpoint()
    after = content(committed)
    with pytest.raises(tique.SerializationError):
        other.commit()
    committed.rollback()
    assert content(committed) == after


def test_a_snapshot_is_merged(engine, committed):
    """P1: rows that others committed since do not match; their keys conflict."""
    one = engine.connect(checkpoint="manual")
    one.execute("SELECT 1")
    committed.execute("INSERT INTO stock VALUES (4, 1, 'other')")
    committed.execute("DELETE FROM delivery WHERE item = 5")
    committed.commit()
    committed.checkpoint()
    assert one.execute(UPSERT).rowcount == 4
    assert [row[0] for row in content(one)] == [1, 2, 3, 4, 5]
    with pytest.raises(tique.SerializationError):
        one.commit()


def test_read_committed_loses_no_update(engine, committed):
    one, other = (
        engine.connect(checkpoint="manual", isolation_level="READ COMMITTED")
        for _ in range(2)
    )
    other.execute("SELECT 1")
    one.execute("UPDATE stock SET quantity = quantity + 100 WHERE item = 1")
    one.commit()
    other.execute(UPSERT)
    other.commit()
    assert content(committed)[0] == (1, 115, "a")
    committed.rollback()
    other.execute(UPSERT)
    one.lock_timeout = 0
    with pytest.raises(tique.OperationalError) as locked:
        one.execute("UPDATE stock SET quantity = abs(quantity) + 1 WHERE item = 1")
    assert locked.value.sqlstate == "55P03"
    committed.checkpoint()
    other.commit()
    assert content(committed)[0] == (1, 120, "a")
