"""TRUNCATE is a part of its transaction, on every engine."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique.errors import ForeignKeyViolation

pytestmark = pytest.mark.fresh_tables

OPTIONS = pytest.mark.written_for(
    ["postgresql", "monetdb"], reason="DuckDB's TRUNCATE is a DELETE"
)


@pytest.fixture
def one(engine):
    opened = engine.connect(checkpoint="manual")
    opened.execute("CREATE TABLE p (id INTEGER PRIMARY KEY, v INTEGER)")
    opened.execute("CREATE TABLE c (id INTEGER PRIMARY KEY, p INTEGER REFERENCES p)")
    opened.execute("CREATE TABLE bag (x INTEGER)")
    opened.execute("INSERT INTO p VALUES (1, 1), (2, 2)")
    opened.execute("INSERT INTO c VALUES (10, 1)")
    opened.execute("INSERT INTO bag VALUES (1), (1), (NULL)")
    opened.commit()
    return opened


@pytest.fixture
def two(engine, one):
    return engine.connect()


def count(connection, table):
    return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


@pytest.mark.parametrize("table", ["c", "bag"])
@pytest.mark.parametrize("folded", [True, False])
def test_all_rows_are_gone_at_the_commit(engine, one, two, table, folded):
    """P1, P8: own writes go too, and a rollback brings everything back."""
    before = count(one, table)
    one.commit()
    if folded:
        one.checkpoint()
    one.execute(f"INSERT INTO {table} (SELECT 99{', 1' * (table == 'c')})")
    one.execute(f"TRUNCATE TABLE {table}")
    assert count(one, table) == 0
    assert count(two, table) == before
    one.rollback()
    assert count(one, table) == before
    one.execute(f"TRUNCATE {table}")
    one.execute(f"INSERT INTO {table} (SELECT 7{', 2' * (table == 'c')})")
    one.commit()
    two.rollback()
    assert count(two, table) == 1
    two.rollback()
    one.checkpoint()
    assert count(two, table) == 1


def test_many_rows(one):
    """P8: to a savepoint too."""
    one.execute(f"INSERT INTO bag SELECT number FROM {numbers(3000)}")
    one.execute("SAVEPOINT s")
    one.execute("TRUNCATE bag")
    assert count(one, "bag") == 0
    one.execute("ROLLBACK TO s")
    assert count(one, "bag") == 3003
    one.execute("TRUNCATE bag")
    one.commit()
    one.checkpoint()
    assert count(one, "bag") == 0


def test_beside_another_change(one, two):
    """P3: a row that another transaction changes is not lost."""
    two.execute("UPDATE c SET p = 2 WHERE id = 10")
    one.execute("TRUNCATE c")
    one.commit()
    with pytest.raises(tique.SerializationError):
        two.commit()
    assert count(two, "c") == 0


def test_a_table_that_is_referenced(engine, one):
    """P9."""
    error = ForeignKeyViolation if engine.name == "duckdb" else tique.NotSupportedError
    with pytest.raises(error):
        one.execute("TRUNCATE p")
    assert count(one, "p") == 2
    one.execute("TRUNCATE c")
    one.commit()
    if engine.name == "duckdb":
        one.execute("TRUNCATE p")
    else:
        # Even if nothing references its rows.
        with pytest.raises(tique.NotSupportedError, match="CASCADE"):
            one.execute("TRUNCATE p")


@OPTIONS
def test_cascade(one, two):
    """P9: tables that reference it are emptied, and those that reference them."""
    one.execute("CREATE TABLE d (id INTEGER PRIMARY KEY, c INTEGER REFERENCES c)")
    one.execute("INSERT INTO d VALUES (100, 10), (101, NULL)")
    one.commit()
    one.execute("TRUNCATE p CASCADE")
    assert [count(one, table) for table in "pcd"] == [0, 0, 0]
    one.rollback()
    assert [count(one, table) for table in "pcd"] == [2, 1, 2]
    one.execute("TRUNCATE TABLE p CONTINUE IDENTITY CASCADE")
    one.commit()
    assert [count(two, table) for table in "pcd"] == [0, 0, 0]


@pytest.mark.written_for(["postgresql"], reason="the others take one table")
def test_several_tables(one):
    one.execute("TRUNCATE p, c, bag RESTART IDENTITY")
    one.commit()
    assert [count(one, table) for table in ("p", "c", "bag")] == [0, 0, 0]


def test_in_a_read_only_transaction(one):
    one.rollback()
    one.execute("BEGIN READ ONLY")
    with pytest.raises(tique.OperationalError) as caught:
        one.execute("TRUNCATE bag")
    assert caught.value.sqlstate == "25006"


@pytest.mark.written_for(["postgresql"], reason="others have no RESTART IDENTITY")
@pytest.mark.parametrize("autocommit", [True, False])
def test_sequences_restart(engine, autocommit):
    """P8: those of the tables' columns, until a rollback; of tables by CASCADE, too."""
    connection = engine.connect(autocommit=autocommit)
    other = engine.connect(autocommit=True)
    with connection.transaction():
        connection.execute("CREATE TABLE up (id SERIAL PRIMARY KEY, v INTEGER)")
        connection.execute(
            "CREATE TABLE down (id BIGINT GENERATED ALWAYS AS IDENTITY (START 5) "
            "PRIMARY KEY, up INTEGER REFERENCES up)"
        )
    fill = ("INSERT INTO up (v) VALUES (7), (8)", "INSERT INTO down (up) VALUES (1)")

    def ids():
        return [
            other.execute(f"SELECT id FROM {table} ORDER BY id").fetchall()
            for table in ("up", "down")
        ]

    for sql in fill:
        connection.execute(sql)
    connection.commit()
    with connection.transaction(force_rollback=True):
        connection.execute("TRUNCATE up RESTART IDENTITY CASCADE")
        connection.execute(fill[0])
        assert connection.execute("SELECT max(id) FROM up").fetchone() == (2,)
    assert ids() == [[(1,), (2,)], [(5,)]]
    connection.execute("INSERT INTO up (v) VALUES (9)")
    connection.commit()
    assert ids()[0] == [(1,), (2,), (3,)]
    connection.execute("TRUNCATE TABLE up, down RESTART IDENTITY")
    for sql in fill:
        connection.execute(sql)
    connection.commit()
    assert ids() == [[(1,), (2,)], [(5,)]]
    connection.execute("TRUNCATE up CONTINUE IDENTITY CASCADE")
    connection.execute(fill[0])
    connection.commit()
    assert ids() == [[(3,), (4,)], []]
