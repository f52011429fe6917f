"""P9: FOREIGN KEY, as a single transaction sees it."""

from __future__ import annotations

import pytest

import tique
from tests.dbapi.family import child, parents, rows, violated
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables


@pytest.fixture
def connection(engine):
    return parents(engine)


def test_a_reference_has_to_be_there(engine, connection):
    child(connection)
    error = violated(connection, "INSERT INTO child VALUES (5, 3)")
    assert isinstance(error, tique.IntegrityError)
    assert (error.sqlstate, error.constraint) == ("23503", "of_parent")
    assert (error.table, error.key) == (f"{engine.schema}.child", (3,))
    for word in ("of_parent", f"{engine.schema}.child", "(3,)"):
        assert word in str(error)
    violated(connection, "UPDATE child SET ref = 7 WHERE id = 1")
    violated(connection, "UPDATE child SET ref = ref + 5")
    violated(connection, "INSERT INTO child SELECT id + 10, id + 10 FROM parent")
    assert rows(connection) == [(1, 1), (2, 1), (3, 2), (4, None)]
    connection.execute("UPDATE child SET ref = 2 WHERE id = 1")
    connection.execute("UPDATE child SET ref = NULL WHERE id = 2")
    assert rows(connection) == [(1, 2), (2, None), (3, 2), (4, None)]


@pytest.mark.parametrize("action", ["", "ON DELETE NO ACTION ON UPDATE NO ACTION"])
def test_no_action(connection, action):
    child(connection, action)
    error = violated(connection, "DELETE FROM parent WHERE id = 1")
    assert (error.sqlstate, error.constraint, error.key) == ("23503", "of_parent", (1,))
    violated(connection, "DELETE FROM parent")
    violated(connection, "UPDATE parent SET id = 9 WHERE id = 2")
    assert rows(connection, "parent") == [(1, 10, "a"), (2, 20, "b")]
    connection.execute("DELETE FROM child WHERE ref = 1")
    assert connection.execute("DELETE FROM parent WHERE id = 1").rowcount == 1


def test_restrict(connection):
    child(connection, "ON DELETE RESTRICT ON UPDATE RESTRICT")
    wrong = tique.errors.RestrictViolation
    error = violated(connection, "DELETE FROM parent WHERE id = 1", error=wrong)
    assert (error.sqlstate, error.constraint, error.key) == ("23001", "of_parent", (1,))
    violated(connection, "UPDATE parent SET id = 9 WHERE id = 2", error=wrong)
    assert rows(connection, "parent") == [(1, 10, "a"), (2, 20, "b")]


def test_a_row_that_is_deleted_restricts_nothing(connection):
    """As in PostgreSQL, the constraints of a table act in the order of their definition."""
    connection.execute(
        "CREATE TABLE child (id INTEGER PRIMARY KEY, "
        "a INTEGER REFERENCES parent ON DELETE CASCADE, "
        "b INTEGER REFERENCES parent ON DELETE RESTRICT, "
        "c INTEGER REFERENCES parent ON DELETE CASCADE)"
    )
    connection.execute("INSERT INTO parent VALUES (3, 30, 'c'), (4, 40, 'd')")
    connection.execute("INSERT INTO child VALUES (1, 1, 1, 3), (2, 3, 2, 2)")
    connection.execute("DELETE FROM parent WHERE id = 1")
    assert rows(connection) == [(2, 3, 2, 2)]
    violated(
        connection,
        "DELETE FROM parent WHERE id = 2",
        error=tique.errors.RestrictViolation,
    )
    assert rows(connection) == [(2, 3, 2, 2)]
    connection.execute("DELETE FROM parent WHERE id IN (3, 4)")
    connection.execute("DELETE FROM parent WHERE id = 2")
    assert rows(connection, "parent") == []


def test_cascade(connection):
    child(connection, "ON DELETE CASCADE ON UPDATE CASCADE")
    assert connection.execute("UPDATE parent SET id = 9 WHERE id = 1").rowcount == 1
    assert rows(connection) == [(1, 9), (2, 9), (3, 2), (4, None)]
    assert connection.execute("DELETE FROM parent WHERE id = 9").rowcount == 1
    assert rows(connection) == [(3, 2), (4, None)]


def test_a_swap_of_referenced_keys(connection):
    child(connection, "ON UPDATE CASCADE")
    connection.execute("UPDATE parent SET id = 3 - id")
    assert rows(connection, "parent") == [(1, 20, "b"), (2, 10, "a")]
    assert rows(connection) == [(1, 2), (2, 2), (3, 1), (4, None)]


def test_set_null(connection):
    child(connection, "ON DELETE SET NULL ON UPDATE SET NULL")
    connection.execute("UPDATE parent SET id = 9 WHERE id = 1")
    assert rows(connection) == [(1, None), (2, None), (3, 2), (4, None)]
    connection.execute("DELETE FROM parent WHERE id = 2")
    assert rows(connection) == [(1, None), (2, None), (3, None), (4, None)]


def test_set_null_of_a_column_that_must_not_be(connection):
    connection.execute(
        "CREATE TABLE child (id INTEGER PRIMARY KEY, ref INTEGER NOT NULL "
        "REFERENCES parent ON DELETE SET NULL)"
    )
    connection.execute("INSERT INTO child VALUES (1, 1)")
    violated(
        connection,
        "DELETE FROM parent WHERE id = 1",
        error=tique.errors.NotNullViolation,
    )
    assert rows(connection, "parent") == [(1, 10, "a"), (2, 20, "b")]


def test_set_default(connection):
    child(connection, "ON DELETE SET DEFAULT ON UPDATE SET DEFAULT", "DEFAULT 2")
    connection.execute("DELETE FROM parent WHERE id = 1")
    assert rows(connection) == [(1, 2), (2, 2), (3, 2), (4, None)]
    error = violated(connection, "DELETE FROM parent WHERE id = 2")
    assert error.key == (2,)
    violated(connection, "UPDATE parent SET id = 3 WHERE id = 2")
    connection.execute("UPDATE parent SET v = 3 WHERE id = 2")


def test_a_unique_key_is_referenced(connection):
    connection.execute(
        "CREATE TABLE child (id INTEGER PRIMARY KEY, ref TEXT "
        "REFERENCES parent (code) ON DELETE CASCADE ON UPDATE CASCADE)"
    )
    connection.execute("INSERT INTO child VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    assert violated(connection, "INSERT INTO child VALUES (4, 'c')").key == ("c",)
    connection.execute("UPDATE parent SET v = 0")
    connection.execute("UPDATE parent SET id = id + 10")
    assert rows(connection) == [(1, "a"), (2, "b"), (3, None)]
    connection.execute("UPDATE parent SET code = 'z' WHERE id = 11")
    assert rows(connection) == [(1, "z"), (2, "b"), (3, None)]
    connection.execute("UPDATE parent SET code = NULL WHERE id = 11")
    assert rows(connection) == [(1, None), (2, "b"), (3, None)]
    connection.execute("DELETE FROM parent WHERE code = 'b'")
    assert rows(connection) == [(1, None), (3, None)]


@pytest.fixture
def composite(connection):
    connection.execute("CREATE TABLE place (x INTEGER, y INTEGER, PRIMARY KEY (x, y))")
    connection.execute("INSERT INTO place VALUES (1, 1), (1, 2)")
    connection.execute(
        "CREATE TABLE thing (id INTEGER PRIMARY KEY, b INTEGER, a INTEGER, "
        "FOREIGN KEY (b, a) REFERENCES place (y, x) ON DELETE SET NULL "
        "ON UPDATE CASCADE)"
    )
    return connection


def test_a_composite_key(composite):
    composite.execute("INSERT INTO thing VALUES (1, 2, 1)")
    violated(composite, "INSERT INTO thing VALUES (2, 1, 2)")
    violated(composite, "UPDATE thing SET b = 3 WHERE id = 1")
    composite.execute("UPDATE place SET x = 5 WHERE y = 2")
    assert rows(composite, "thing") == [(1, 2, 5)]
    composite.execute("DELETE FROM place WHERE x = 5")
    assert rows(composite, "thing") == [(1, None, None)]


def test_match_simple(composite):
    """A reference with a NULL in it references nothing."""
    composite.execute("INSERT INTO thing VALUES (1, NULL, 77), (2, 77, NULL)")
    violated(composite, "UPDATE thing SET b = 1 WHERE id = 1")
    composite.execute("UPDATE thing SET a = 1, b = 1 WHERE id = 1")
    assert rows(composite, "thing") == [(1, 1, 1), (2, 77, None)]


def test_one_column_of_a_wide_row(connection):
    """Columns that a point update does not need are not read: these it needs."""
    more = ", ".join(f"c{i} INTEGER" for i in range(30))
    connection.execute("CREATE TABLE place (x INTEGER, y INTEGER, PRIMARY KEY (x, y))")
    connection.execute("INSERT INTO place VALUES (1, 1), (1, 2)")
    connection.execute(
        f"CREATE TABLE wide (id INTEGER PRIMARY KEY, {more}, a INTEGER, b INTEGER, "
        "FOREIGN KEY (a, b) REFERENCES place)"
    )
    connection.execute("INSERT INTO wide (id, a, b) VALUES (1, 1, 1)")
    connection.checkpoint()
    connection.execute("UPDATE wide SET c7 = 1 WHERE id = 1")
    violated(connection, "UPDATE wide SET b = 3 WHERE id = 1")
    connection.execute("UPDATE wide SET b = 2 WHERE id = 1")
    violated(connection, "DELETE FROM place WHERE y = 2")
    connection.execute("DELETE FROM place WHERE y = 1")


@pytest.fixture
def tree(connection):
    connection.execute(
        "CREATE TABLE node (id INTEGER PRIMARY KEY, up INTEGER "
        "REFERENCES node ON DELETE CASCADE)"
    )
    return connection


def test_a_table_that_references_itself(tree):
    violated(tree, "INSERT INTO node VALUES (1, 2)")
    tree.execute("INSERT INTO node VALUES (1, 1)")
    tree.execute("INSERT INTO node VALUES (3, 2), (2, 1)")
    tree.execute(f"INSERT INTO node SELECT number + 4, number + 3 FROM {numbers(30)}")
    assert len(rows(tree, "node")) == 33
    assert tree.execute("DELETE FROM node WHERE id = 1").rowcount == 1
    assert rows(tree, "node") == []


def test_a_cascade_stops_at_what_references_it_otherwise(tree):
    tree.execute("INSERT INTO node VALUES (1, NULL), (2, 1)")
    tree.execute(
        "CREATE TABLE leaf (id INTEGER PRIMARY KEY, node INTEGER "
        "CONSTRAINT of_node REFERENCES node (id))"
    )
    tree.execute("INSERT INTO leaf VALUES (1, 2)")
    assert violated(tree, "DELETE FROM node WHERE id = 1").constraint == "of_node"
    assert rows(tree, "node") == [(1, None), (2, 1)]


def test_rows_that_several_constraints_act_on(connection):
    connection.execute(
        "CREATE TABLE twice (id INTEGER PRIMARY KEY, a INTEGER REFERENCES parent "
        "ON DELETE SET NULL, b INTEGER REFERENCES parent (id) ON DELETE SET NULL, "
        "c TEXT REFERENCES parent (code) ON DELETE CASCADE)"
    )
    connection.execute(
        "INSERT INTO twice VALUES (1, 1, 1, 'b'), (2, 1, 2, 'b'), (3, 2, 1, 'a')"
    )
    connection.execute("DELETE FROM parent WHERE id = 1")
    assert rows(connection, "twice") == [(1, None, None, "b"), (2, None, 2, "b")]


def test_children_without_a_key(connection):
    connection.execute(
        "CREATE TABLE bag (n INTEGER, a INTEGER REFERENCES parent ON DELETE SET NULL, "
        "b INTEGER REFERENCES parent ON DELETE CASCADE)"
    )
    connection.execute(
        "INSERT INTO bag VALUES (1, 1, 2), (1, 1, 2), (2, 2, 1), (3, 1, 1)"
    )
    violated(connection, "INSERT INTO bag VALUES (1, 5, NULL)")
    connection.execute("DELETE FROM parent WHERE id = 1")
    assert rows(connection, "bag") == [(1, None, 2), (1, None, 2)]


def test_a_parent_without_a_primary_key(connection):
    connection.execute("CREATE TABLE codes (code INTEGER UNIQUE, v INTEGER)")
    connection.execute("INSERT INTO codes VALUES (1, 1), (2, 2)")
    connection.execute(
        "CREATE TABLE uses (id INTEGER PRIMARY KEY, code INTEGER "
        "REFERENCES codes (code) ON UPDATE CASCADE)"
    )
    connection.execute("INSERT INTO uses VALUES (1, 1)")
    violated(connection, "INSERT INTO uses VALUES (2, 3)")
    connection.execute("UPDATE codes SET v = 7")
    violated(connection, "DELETE FROM codes WHERE code = 1")
    connection.execute("UPDATE codes SET code = 5 WHERE code = 1")
    assert rows(connection, "uses") == [(1, 5)]


def test_own_writes_count(engine, connection):
    child(connection)
    other = engine.connect()
    other.execute("INSERT INTO parent VALUES (3, 30, 'c')")
    other.execute("INSERT INTO child VALUES (5, 3)")
    violated(other, "DELETE FROM parent WHERE id = 3")
    other.execute("DELETE FROM child WHERE id = 5")
    other.execute("DELETE FROM parent WHERE id = 3")
    violated(other, "INSERT INTO child VALUES (5, 3)")
    other.execute("INSERT INTO parent VALUES (3, 31, 'c')")
    other.execute("INSERT INTO child VALUES (5, 3)")
    other.commit()
    assert (5, 3) in rows(connection)


def test_a_parent_is_deleted_and_inserted_again(engine, connection):
    """DuckDB's own constraints refuse this (duckdb#4214)."""
    child(connection, "ON DELETE CASCADE")
    other = engine.connect()
    other.execute("DELETE FROM parent WHERE id = 1")
    other.execute("INSERT INTO parent VALUES (1, 11, 'x')")
    other.execute("INSERT INTO child VALUES (9, 1)")
    other.commit()
    assert rows(connection) == [(3, 2), (4, None), (9, 1)]


def test_other_columns_of_a_parent_change(connection):
    """DuckDB's own constraints refuse this (duckdb#20246)."""
    child(connection)
    connection.execute("UPDATE parent SET v = v + 1")
    connection.execute("UPDATE parent SET id = id, code = 'q' WHERE id = 1")
    assert rows(connection, "parent") == [(1, 11, "q"), (2, 21, "b")]


def test_savepoints_and_a_statement_that_fails(engine, connection):
    child(connection, "ON DELETE CASCADE")
    connection.execute("CREATE TABLE last (id INTEGER REFERENCES child (id))")
    connection.execute("INSERT INTO last VALUES (3)")
    other = engine.connect()
    other.execute("INSERT INTO child VALUES (5, 2)")
    violated(other, "DELETE FROM parent WHERE id = 2")
    assert len(rows(other)) == 5
    other.execute("SAVEPOINT s")
    other.execute("DELETE FROM parent WHERE id = 1")
    assert rows(other) == [(3, 2), (4, None), (5, 2)]
    other.execute("ROLLBACK TO s")
    assert len(rows(other)) == 5
    other.commit()
    assert rows(connection) == [(1, 1), (2, 1), (3, 2), (4, None), (5, 2)]
    other.execute("DELETE FROM parent WHERE id = 1")
    other.rollback()
    assert len(rows(connection)) == 5


def test_many_rows_of_parameters(connection):
    child(connection)
    cursor = connection.cursor()
    cursor.executemany(
        "INSERT INTO child VALUES (%s, %s)", [(n, 1 + n % 2) for n in range(10, 40)]
    )
    with pytest.raises(tique.errors.ForeignKeyViolation):
        cursor.executemany(
            "INSERT INTO child VALUES (%s, %s)", [(50, 1), (51, 9), (52, 2)]
        )
    with pytest.raises(tique.errors.ForeignKeyViolation):
        cursor.executemany("DELETE FROM parent WHERE id = %s", [(1,), (2,)])
    assert len(rows(connection)) == 34
    cursor.executemany("DELETE FROM child WHERE ref = %s", [(1,), (2,)])
    cursor.executemany("DELETE FROM parent WHERE id = %s", [(1,), (2,)])
    assert rows(connection, "parent") == []


def test_on_conflict(connection):
    child(connection)
    connection.execute(
        "INSERT INTO child VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET ref = 2"
    )
    violated(
        connection,
        "INSERT INTO child VALUES (1, 2) ON CONFLICT (id) DO UPDATE SET ref = 9",
    )
    violated(connection, "INSERT INTO child VALUES (8, 9) ON CONFLICT DO NOTHING")
    connection.execute("INSERT INTO child VALUES (1, 9) ON CONFLICT DO NOTHING")
    connection.execute(
        "INSERT INTO parent VALUES (1, 0, 'n') ON CONFLICT (id) DO UPDATE SET v = 0"
    )
    violated(
        connection,
        "INSERT INTO parent VALUES (2, 0, 'n') ON CONFLICT (id) DO UPDATE SET id = 7",
    )
    assert rows(connection) == [(1, 2), (2, 1), (3, 2), (4, None)]


def test_returning(connection):
    child(connection, "ON DELETE CASCADE")
    found = connection.execute("DELETE FROM parent WHERE id = 1 RETURNING id, v")
    assert found.fetchall() == [(1, 10)]
    assert rows(connection) == [(3, 2), (4, None)]
    violated(connection, "INSERT INTO child VALUES (7, 7) RETURNING id")


def test_they_are_there_when_the_database_is_opened_again(engine, connection):
    child(connection, "ON DELETE CASCADE")
    connection.execute(
        "CREATE TABLE own (id INTEGER PRIMARY KEY, up INTEGER REFERENCES own)"
    )
    connection.checkpoint()
    connection.close()
    connection = engine.connect(autocommit=True)
    violated(connection, "INSERT INTO child VALUES (9, 9)")
    violated(connection, "INSERT INTO own VALUES (1, 2)")
    connection.execute("DELETE FROM parent WHERE id = 1")
    assert rows(connection) == [(3, 2), (4, None)]


def test_drop_table(connection):
    child(connection)
    with pytest.raises(tique.OperationalError, match="of_parent") as caught:
        connection.execute("DROP TABLE parent")
    assert caught.value.sqlstate == "2BP01"
    connection.execute("DROP TABLE parent CASCADE")
    connection.execute("INSERT INTO child VALUES (9, 9)")
    connection.execute("CREATE TABLE parent (id INTEGER PRIMARY KEY)")
    connection.execute("INSERT INTO child VALUES (10, 10)")
    connection.execute("CREATE TABLE c (id INTEGER PRIMARY KEY REFERENCES parent)")
    connection.execute("DROP TABLE parent, c")
    connection.execute("DROP TABLE child")


def test_a_table_that_is_not_managed(engine, connection):
    with pytest.raises(tique.ProgrammingError, match="nothing") as caught:
        connection.execute("CREATE TABLE c (id INTEGER REFERENCES nothing)")
    assert caught.value.sqlstate == "42P01"


@pytest.mark.parametrize(
    "clause",
    [
        "REFERENCES parent (v)",
        "REFERENCES parent (id, code)",
        "REFERENCES parent (nothing)",
        "REFERENCES parent MATCH FULL",
        "REFERENCES parent ON DELETE EXPLODE",
        "REFERENCES parent (code)",
        "REFERENCES",
    ],
)
def test_wrong_definitions(connection, clause):
    with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
        connection.execute(f"CREATE TABLE c (id INTEGER {clause})")
