"""CREATE TABLE … AS and LIKE, CREATE OR REPLACE TABLE: rows of the snapshot, at once."""

from __future__ import annotations

from contextlib import suppress

import pytest

import tique
from tests.portable import numbers
from tique.errors import CheckViolation, NotNullViolation, UniqueViolation

DUCKDB = pytest.mark.written_for(["duckdb"], reason="the others have no OR REPLACE")


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, v INTEGER, note VARCHAR(9))"
    )
    opened.execute("INSERT INTO t VALUES (1, 10, 'a'), (2, 20, NULL), (3, 30, 'c')")
    opened.commit()
    opened.checkpoint()
    opened.execute("DELETE FROM t WHERE id = 3")
    opened.execute("UPDATE t SET v = 11 WHERE id = 1")
    opened.commit()
    return opened


@pytest.fixture
def two(engine, one):
    return engine.connect()


def rows(connection, query="SELECT * FROM c ORDER BY 1"):
    found = connection.execute(query).fetchall()
    connection.rollback()
    return found


def test_rows_of_the_snapshot(engine, one, two):
    """P1: with versions that are in no storage table yet, and not with later ones."""
    one.execute("SELECT count(*) FROM t").fetchall()
    two.execute("INSERT INTO t VALUES (4, 40, 'd')")
    two.commit()
    one.execute("CREATE TABLE c AS SELECT id, v + 1 AS w, note FROM t WHERE v > 0")
    expected = [(1, 12, "a"), (2, 21, None)]
    assert one.execute("SELECT * FROM c ORDER BY id").fetchall() == expected
    one.rollback()
    assert rows(two) == expected
    two.execute("INSERT INTO c VALUES (5, 5, 'x'), (5, 5, 'x')")
    two.execute("DELETE FROM c WHERE id = 1")
    two.commit()
    expected = [(2, 21, None), (5, 5, "x"), (5, 5, "x")]
    assert rows(one) == expected
    one.checkpoint()
    engine.close()
    assert rows(engine.connect()) == expected
    engine.close()
    assert engine.native().execute("SELECT * FROM c ORDER BY 1").fetchall() == expected


def test_names_parameters_and_no_rows(one):
    one.execute(
        "CREATE TABLE c (a, b) AS (SELECT id, note FROM t WHERE id >= %s)", (2,)
    )
    assert rows(one) == [(2, None)]
    one.execute("CREATE TABLE d AS SELECT id, note FROM t WITH NO DATA")
    assert rows(one, "SELECT * FROM d") == []
    one.execute(
        "CREATE TABLE e AS WITH x AS (SELECT v FROM t) SELECT sum(v) AS s FROM x"
    )
    assert rows(one, "SELECT s FROM e") == [(31,)]


def test_of_a_table_that_is_there(one):
    with pytest.raises(tique.ProgrammingError, match="exists already") as caught:
        one.execute("CREATE TABLE t AS SELECT 1 AS x")
    assert caught.value.sqlstate == "42P07"
    one.rollback()
    one.execute("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS x")
    assert rows(one, "SELECT id, v FROM t ORDER BY id") == [(1, 11), (2, 20)]


def test_a_query_that_fails_leaves_no_table(one):
    """P5."""
    with pytest.raises(tique.DatabaseError):
        one.execute("CREATE TABLE c AS SELECT CAST(note AS INTEGER) AS n FROM t")
    one.rollback()
    with pytest.raises(tique.ProgrammingError):
        one.execute("SELECT * FROM c")
    one.rollback()
    one.execute("CREATE TABLE c AS SELECT id FROM t")
    assert rows(one) == [(1,), (2,)]


def test_an_older_snapshot(engine, one, two):
    """P1: it does not see rows that are newer than it."""
    assert two.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(11,)]
    one.execute("UPDATE t SET v = 12 WHERE id = 1")
    one.commit()
    one.execute("CREATE TABLE c AS SELECT v FROM t WHERE id = 1")
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        two.execute("SELECT v FROM c")
    two.rollback()
    assert rows(two) == [(12,)]


@pytest.mark.slow
@pytest.mark.parametrize("begins", [False, True])
@pytest.mark.parametrize(
    ("change", "name"),
    [("ADD COLUMN w INTEGER", "c"), ("RENAME TO d", "d")],
)
def test_an_older_snapshot_after_another_change(one, two, change, name, begins):
    """P1: the rows stay newer than it, with the definitions that follow, and when folded."""
    assert two.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(11,)]
    one.execute("UPDATE t SET v = 12 WHERE id = 1")
    one.commit()
    one.execute("CREATE TABLE c AS SELECT v FROM t WHERE id = 1")
    one.commit()
    one.execute("BEGIN") if begins else None
    one.execute(f"ALTER TABLE c {change}")
    one.commit()
    one.checkpoint()
    query = f"SELECT v FROM {name}"
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        two.execute(query)
    two.rollback()
    assert rows(two, query) == [(12,)]


def test_an_older_snapshot_after_changes_in_and_after_a_transaction(one, two):
    """P1: rows that a transaction with DDL has moved to storage itself."""
    assert two.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(11,)]
    one.autocommit = True
    for statement in (
        "BEGIN",
        "CREATE TABLE c (v INTEGER)",
        "INSERT INTO c VALUES (1)",
        "ALTER TABLE c ADD COLUMN w INTEGER",
        "COMMIT",
        "ALTER TABLE c ADD COLUMN x INTEGER",
    ):
        one.execute(statement)
    one.checkpoint()
    with pytest.raises(tique.SerializationError, match="after this transaction began"):
        two.execute("SELECT v FROM c")
    two.rollback()
    assert rows(two, "SELECT v FROM c") == [(1,)]


@pytest.mark.slow
def test_a_snapshot_between_a_table_and_its_change(one, two):
    """A later change does not make the rows newer than they are."""
    one.execute("CREATE TABLE c AS SELECT v FROM t WHERE id = 1")
    one.execute("UPDATE t SET v = 12 WHERE id = 1")
    one.commit()
    assert two.execute("SELECT v FROM t WHERE id = 1").fetchall() == [(12,)]
    one.execute("UPDATE t SET v = 13 WHERE id = 1")
    one.commit()
    one.autocommit = True
    for statement in (
        "ALTER TABLE c ADD COLUMN w INTEGER",
        "BEGIN",
        "ALTER TABLE c ADD COLUMN x INTEGER",
        "COMMIT",
    ):
        one.execute(statement)
    assert rows(two, "SELECT v FROM c") == [(11,)]


def test_not_within_uncommitted_writes(one):
    one.execute("UPDATE t SET v = 0")
    with pytest.raises(tique.NotSupportedError, match="uncommitted writes"):
        one.execute("CREATE TABLE c AS SELECT * FROM t")


def test_many_rows(one):
    one.execute(f"INSERT INTO t SELECT number + 10, 0, 'x' FROM {numbers(3000)}")
    one.commit()
    one.execute("CREATE TABLE c AS SELECT id, note FROM t")
    assert rows(one, "SELECT count(*) FROM c") == [(3002,)]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("text", ["INSERT INTO", "COMMIT"])
def test_one_that_fails_half_way(engine, faults, when, text):
    """P5: all of it or nothing."""
    one = engine.connect(checkpoint="manual")
    one.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    one.execute("INSERT INTO t VALUES (1), (2)")
    one.commit()
    one.checkpoint()
    faults.plan(when, text, engine.failure())
    is_done = (when, text) == ("after", "COMMIT")
    # A server is asked whether it happened, and it is no error then.
    told = pytest.raises(tique.OperationalError, match="disk went away")
    with suppress(tique.OperationalError) if is_done else told:
        one.execute("CREATE TABLE c AS SELECT * FROM t")
    faults.clear()
    one.rollback()
    if not is_done:
        one.execute("CREATE TABLE c AS SELECT * FROM t")
    assert rows(one) == [(1,), (2,)]
    engine.close()
    assert rows(engine.connect()) == [(1,), (2,)]


# LIKE


@pytest.mark.written_for(["postgresql", "monetdb"], reason="DuckDB has no LIKE")
def test_like(one, two):
    one.execute("CREATE TABLE c (LIKE t)")
    two.execute("INSERT INTO c VALUES (1, 1, 'x')")
    two.execute("INSERT INTO c VALUES (1, 1, 'x')")
    two.commit()
    one.rollback()
    one.checkpoint()
    assert rows(one) == [(1, 1, "x"), (1, 1, "x")]


@pytest.mark.written_for(["postgresql"], reason="the options are its own")
def test_like_with_constraints(one, two):
    one.execute("ALTER TABLE t ADD CHECK (v > 0), ALTER v SET DEFAULT 7")
    one.execute(
        "CREATE TABLE c (LIKE t INCLUDING ALL, up INTEGER NOT NULL REFERENCES c (id))"
    )
    two.execute("INSERT INTO c (id, up) VALUES (1, 1)")
    two.commit()
    for statement, error in (
        ("INSERT INTO c (id, up) VALUES (1, 1)", UniqueViolation),
        ("INSERT INTO c (id, v, up) VALUES (2, 0, 1)", CheckViolation),
        ("INSERT INTO c (id) VALUES (2)", NotNullViolation),
        ("INSERT INTO c (id, up) VALUES (2, 9)", tique.IntegrityError),
    ):
        with pytest.raises(error):
            two.execute(statement)
        two.rollback()
    one.rollback()
    assert rows(one, "SELECT id, v, up FROM c") == [(1, 7, 1)]


# OR REPLACE


@DUCKDB
def test_replace_by_itself(engine, one, two):
    """P1: the query sees the table that goes, in storage too."""
    one.execute(f"INSERT INTO t SELECT number + 10, 0, 'x' FROM {numbers(3000)}")
    one.commit()
    one.checkpoint()
    rows(two, "SELECT * FROM t")
    one.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM t WHERE id < 3000")
    assert rows(one, "SELECT count(*), sum(v) FROM t") == [(2992, 31)]
    one.execute("CREATE OR REPLACE TABLE t AS SELECT * FROM t WHERE id < 3")
    one.execute("CREATE OR REPLACE TABLE t AS SELECT id, v * 2 AS w FROM t")
    one.execute("CREATE OR REPLACE TABLE c AS SELECT 1 AS x")
    assert rows(two, "SELECT * FROM t ORDER BY id") == [(1, 22), (2, 40)]
    two.execute("UPDATE t SET w = 0 WHERE id = 1")
    two.commit()
    one.rollback()
    one.checkpoint()
    engine.close()
    found = rows(engine.connect(), "SELECT * FROM t ORDER BY id")
    assert found == [(1, 0), (2, 40)]


@DUCKDB
def test_replace_by_another(engine, one, two):
    two.execute("SELECT v FROM t WHERE id = 1").fetchall()
    statement = "CREATE OR REPLACE TABLE t (id INTEGER PRIMARY KEY, x VARCHAR)"
    with pytest.raises(tique.OperationalError, match="uses it"):
        one.execute(statement)
    one.rollback()
    two.rollback()
    one.execute(statement)
    two.execute("INSERT INTO t VALUES (1, 'new')")
    two.commit()
    one.execute("CREATE TABLE child (t INTEGER REFERENCES t)")
    with pytest.raises(tique.OperationalError) as caught:
        one.execute(statement)
    assert caught.value.sqlstate == "2BP01"
    one.rollback()
    one.checkpoint()
    engine.close()
    assert rows(engine.connect(), "SELECT * FROM t") == [(1, "new")]
