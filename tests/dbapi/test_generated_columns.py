"""Generated columns: computed where rows are read, and judged where they are written."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers

ENGINES = pytest.mark.written_for(
    ["duckdb", "postgresql"], reason="MonetDB has no generated columns"
)
pytestmark = [ENGINES, pytest.mark.fresh_tables]
DUCKDB = pytest.mark.written_for(["duckdb"], reason="its own form")
POSTGRESQL = pytest.mark.written_for(["postgresql"], reason="its own form")


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute(
        f"CREATE TABLE t (id INTEGER PRIMARY KEY, g INTEGER GENERATED ALWAYS AS (n * 2) "
        f"{engine.generated}, n INTEGER, s VARCHAR(20))"
    )
    opened.execute("INSERT INTO t (id, n, s) VALUES (1, 10, 'a'), (2, 20, 'b')")
    opened.commit()
    return opened


def rows(connection, query="SELECT * FROM t ORDER BY id"):
    return connection.execute(query).fetchall()


def test_every_form_of_the_table_has_them(engine, one):
    """P1: recent, folded, own and others' rows, by key, by scan and in a join."""
    two = engine.connect()
    one.execute("UPDATE t SET n = 11 WHERE id = 1")
    assert rows(one) == [(1, 22, 11, "a"), (2, 40, 20, "b")]
    assert rows(two) == [(1, 20, 10, "a"), (2, 40, 20, "b")]
    one.commit()
    assert rows(two, "SELECT g FROM t WHERE id = 1") == [(20,)]
    two.rollback()
    assert rows(two, "SELECT g, s FROM t WHERE id = 1") == [(22, "a")]
    assert rows(two, "SELECT id FROM t WHERE g = 22") == [(1,)]
    assert rows(two, "SELECT sum(g), max(n) FROM t") == [(62, 20)]
    assert rows(
        two, "SELECT x.id, y.g FROM t AS x JOIN t AS y ON x.g = y.g ORDER BY 1"
    ) == [(1, 22), (2, 40)]
    two.rollback()
    one.checkpoint()
    assert rows(two) == [(1, 22, 11, "a"), (2, 40, 20, "b")]
    two.rollback()
    one.execute("DELETE FROM t WHERE g = 22")
    one.commit()
    assert rows(two) == [(2, 40, 20, "b")]


def test_changes_name_and_return_them(one):
    """P8: RETURNING, ON CONFLICT, MERGE, UPDATE … FROM and DELETE compute them anew."""
    assert rows(one, "INSERT INTO t (id, n) VALUES (3, 30) RETURNING *") == [
        (3, 60, 30, None)
    ]
    assert rows(one, "UPDATE t SET n = g WHERE g > 30 RETURNING id, g") == [
        (2, 80),
        (3, 120),
    ]
    one.execute(
        "INSERT INTO t (id, n) VALUES (1, 5) ON CONFLICT (id) DO UPDATE SET n = t.n + g"
    )
    assert rows(one, "SELECT n, g FROM t WHERE id = 1") == [(30, 60)]
    one.execute(
        "MERGE INTO t USING (SELECT 1 AS k) AS s ON t.id = s.k "
        "WHEN MATCHED AND g = 60 THEN UPDATE SET n = g + 1"
    )
    assert rows(one, "DELETE FROM t WHERE id = 1 RETURNING g") == [(122,)]
    one.commit()


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 3000])
def test_many_rows(engine, one, count):
    """P1: rows that stay in the server, and the state after another opening."""
    one.execute(
        f"INSERT INTO t (id, n) SELECT 10 + number, number FROM {numbers(count)}"
    )
    expected = [(count + 2, count * (count - 1) + 60)]
    assert rows(one, "SELECT count(*), sum(g) FROM t") == expected
    one.commit()
    one.checkpoint()
    one.execute("UPDATE t SET n = n + 1 WHERE id >= 10")
    one.commit()
    engine.close()
    again = engine.connect()
    assert rows(again, "SELECT count(*), sum(g) FROM t") == [
        (count + 2, expected[0][1] + 2 * count)
    ]


@pytest.mark.parametrize("count", [1, 3000])
def test_a_row_whose_value_is_an_error_is_refused(engine, one, count):
    """P4: nothing is acknowledged that storage would not take."""
    one.execute(
        f"CREATE TABLE e (id INTEGER PRIMARY KEY, s VARCHAR(20), "
        f"g INTEGER GENERATED ALWAYS AS (CAST(s AS INTEGER)) {engine.generated})"
    )
    one.execute("INSERT INTO e (id, s) VALUES (-1, '7')")
    one.commit()
    with pytest.raises((tique.DataError, tique.IntegrityError)):
        one.execute(f"INSERT INTO e (id, s) SELECT number, 'x' FROM {numbers(count)}")
    one.rollback()
    for query in ("UPDATE e SET s = 'x' WHERE id = %s", "UPDATE e SET s = 'x'"):
        with pytest.raises((tique.DataError, tique.IntegrityError)):
            one.execute(query, (-1,) if "%s" in query else ())
        one.rollback()
    assert rows(one, "SELECT * FROM e") == [(-1, "7", 7)]
    one.rollback()
    one.checkpoint()


def test_values_for_them_are_refused(one):
    """P10: as the engine does."""
    for statement in (
        "INSERT INTO t (id, g) VALUES (5, 1)",
        "UPDATE t SET g = 5",
        "MERGE INTO t USING (SELECT 1 AS k) AS s ON t.id = s.k "
        "WHEN MATCHED THEN UPDATE SET g = 1",
    ):
        with pytest.raises(tique.ProgrammingError) as caught:
            one.execute(statement)
        assert caught.value.sqlstate == "428C9"
        one.rollback()


@DUCKDB
def test_values_without_a_list_leave_them_out(one):
    one.execute("INSERT INTO t VALUES (3, 30, 'c')")
    one.execute("INSERT INTO t SELECT 4, 40, 'd'")
    assert rows(one)[2:] == [(3, 60, 30, "c"), (4, 80, 40, "d")]


@POSTGRESQL
def test_default_is_a_value(one):
    one.execute("INSERT INTO t VALUES (3, DEFAULT, 30, 'c'), (4, DEFAULT, 40, 'd')")
    one.execute("INSERT INTO t (g, id, n) VALUES (DEFAULT, 5, 50)")
    one.execute("UPDATE t SET g = DEFAULT, n = 31 WHERE id = 3")
    one.execute("INSERT INTO t SELECT 6")
    assert rows(one)[2:] == [
        (3, 62, 31, "c"),
        (4, 80, 40, "d"),
        (5, 100, 50, None),
        (6, None, None, None),
    ]


def test_a_table_without_a_key(engine, one):
    one.execute(
        f"CREATE TABLE bag (n INTEGER, g INTEGER GENERATED ALWAYS AS (n + 1) "
        f"{engine.generated})"
    )
    one.execute("INSERT INTO bag (n) VALUES (1), (1), (2)")
    one.commit()
    one.checkpoint()
    one.execute("DELETE FROM bag WHERE g = 3")
    one.execute("UPDATE bag SET n = g")
    one.commit()
    one.checkpoint()
    assert rows(one, "SELECT * FROM bag") == [(2, 3), (2, 3)]


def test_the_table_is_altered(one):
    """P9: names follow, as the engine has it, also for rows of before."""
    for change in ("RENAME n TO m", "RENAME g TO h", "ADD COLUMN x INTEGER"):
        one.execute(f"ALTER TABLE t {change}")
    one.execute("UPDATE t SET m = m + 1, x = h WHERE id = 1")
    assert rows(one, "SELECT id, h, m, s, x FROM t ORDER BY id") == [
        (1, 22, 11, "a", 20),
        (2, 40, 20, "b", None),
    ]
    one.commit()
    with pytest.raises(tique.Error):
        one.execute("ALTER TABLE t DROP COLUMN m")
    one.rollback()
    one.execute("ALTER TABLE t DROP COLUMN h")
    assert rows(one, "SELECT * FROM t WHERE id = 1") == [(1, 11, "a", 20)]


@POSTGRESQL
def test_one_is_added(one):
    one.execute("ALTER TABLE t ADD COLUMN u TEXT GENERATED ALWAYS AS (upper(s)) STORED")
    one.execute("INSERT INTO t (id, s) VALUES (3, 'c')")
    assert rows(one, "SELECT u FROM t ORDER BY id") == [("A",), ("B",), ("C",)]


@pytest.mark.slow
def test_views_copies_and_indexes(engine, one):
    """P1, P4: also an index on one takes every acknowledged row."""
    one.execute("CREATE INDEX i ON t (g)")
    one.execute("CREATE VIEW v AS SELECT * FROM t")
    one.execute("INSERT INTO t (id, n) VALUES (3, 30)")
    one.commit()
    assert rows(one, "SELECT * FROM v WHERE g = 60") == [(3, 60, 30, None)]
    one.execute("CREATE TABLE other AS SELECT * FROM t")
    assert rows(one, "SELECT sum(g) FROM other") == [(120,)]
    one.commit()
    one.checkpoint()
    assert rows(one, "SELECT id FROM t WHERE g = 60") == [(3,)]
    engine.close()
    one = engine.connect()
    one.execute("DELETE FROM t WHERE g = 60")
    one.commit()
    one.checkpoint()
    assert rows(one, "SELECT id FROM t WHERE g >= 40") == [(2,)]


@POSTGRESQL
def test_constraints_on_them(one):
    """P9: NOT NULL and CHECK hold for computed values."""
    one.execute(
        "CREATE TABLE c (id INTEGER PRIMARY KEY, s TEXT, "
        "g VARCHAR(3) GENERATED ALWAYS AS (s || '!') STORED NOT NULL CHECK (g <> 'x!'))"
    )
    for value, error in (
        (None, tique.errors.NotNullViolation),
        ("x", tique.errors.CheckViolation),
        ("long", tique.DataError),
    ):
        with pytest.raises(error):
            one.execute("INSERT INTO c (id, s) VALUES (1, %s)", (value,))
        one.rollback()
    one.execute("INSERT INTO c (id, s) VALUES (1, 'y')")
    one.commit()
    one.checkpoint()
    assert rows(one, "SELECT * FROM c") == [(1, "y", "y!")]


@POSTGRESQL
def test_they_sort_by_their_own_collation(one):
    """P1: not by that of the columns that they are made of."""
    one.execute(
        'CREATE TABLE c (s TEXT COLLATE "C", g TEXT GENERATED ALWAYS AS (s) STORED, '
        'h TEXT COLLATE "C" GENERATED ALWAYS AS (s) STORED)'
    )
    for folded in (False, True):
        one.execute("INSERT INTO c VALUES ('x')")
        one.commit()
        if folded:
            one.checkpoint()
        query = "SELECT pg_collation_for(g), pg_collation_for(h) FROM c LIMIT 1"
        assert rows(one, query) == [('"default"', '"C"')]
        one.commit()


@POSTGRESQL
def test_an_index_that_is_too_small_refuses_the_statement(one):
    """P4: the index's row is made of a value that no version holds."""
    one.execute(
        "CREATE TABLE b (id INTEGER PRIMARY KEY, s TEXT, "
        "g TEXT GENERATED ALWAYS AS (s || s) STORED)"
    )
    one.execute("INSERT INTO b (id, s) VALUES (0, 'x')")
    one.commit()
    one.execute("CREATE INDEX i ON b (g)")
    with pytest.raises(tique.OperationalError) as caught:
        one.execute(
            "INSERT INTO b (id, s) SELECT 1, string_agg(md5(CAST(n AS TEXT)), '') "
            "FROM generate_series(1, 400) AS n"
        )
    assert caught.value.sqlstate == "54000"
    one.rollback()
    one.checkpoint()


@POSTGRESQL
def test_copy(one):
    """P1: COPY leaves them out, but a query's columns are all there."""
    with (
        one.cursor() as cursor,
        cursor.copy("COPY t FROM STDIN") as copy,
    ):
        copy.write("3\t30\tc\n")
    with one.cursor() as cursor, cursor.copy("COPY t TO STDOUT") as copy:
        assert b"".join(map(bytes, copy)) == b"1\t10\ta\n2\t20\tb\n3\t30\tc\n"
    with (
        one.cursor() as cursor,
        cursor.copy("COPY (SELECT * FROM t) TO STDOUT") as copy,
    ):
        assert b"3\t60\t30\tc\n" in b"".join(map(bytes, copy))


@DUCKDB
def test_one_that_names_another(one):
    one.execute(
        "CREATE TABLE c (a AS (b + 1), b AS (n + 1), n INTEGER, x VARCHAR AS (a || '!'))"
    )
    one.execute("INSERT INTO c VALUES (1)")
    assert rows(one, "SELECT * FROM c") == [(3, 2, 1, "3!")]
    assert rows(one, "SELECT x FROM c AS t WHERE b = 2") == [("3!",)]


@DUCKDB
def test_functions_beyond_the_row_are_refused(one):
    """P1: the engine accepts them; a row would not be the same twice."""
    for expression in ("random()", "now()", "n + nextval('q')", "getvariable('x')"):
        with pytest.raises((tique.NotSupportedError, tique.ProgrammingError)):
            one.execute(f"CREATE TABLE c (n INTEGER, g AS ({expression}))")


def test_a_temporary_table_has_none(engine, one):
    """P10."""
    with pytest.raises(tique.NotSupportedError, match="generated column"):
        one.execute(
            "CREATE TEMPORARY TABLE c (n INTEGER, "
            f"g INTEGER GENERATED ALWAYS AS (n) {engine.generated})"
        )
