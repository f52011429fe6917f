"""P9: FOREIGN KEY, as a single transaction sees it."""

from __future__ import annotations

import pytest

import tique
from tests.portable import numbers
from tique.query import changes
from tique.query.statements import change, insert

pytestmark = pytest.mark.fresh_tables


@pytest.fixture
def connection(engine):
    connection = engine.connect(autocommit=True)
    connection.execute(
        "CREATE TABLE parent (id INTEGER PRIMARY KEY, v INTEGER, code TEXT UNIQUE)"
    )
    connection.execute("INSERT INTO parent VALUES (1, 10, 'a'), (2, 20, 'b')")
    return connection


def child(connection, action="", default=""):
    """A table that references the parent's primary key."""
    connection.execute(
        "CREATE TABLE child (id INTEGER PRIMARY KEY, "
        f"ref INTEGER {default} CONSTRAINT of_parent REFERENCES parent {action})"
    )
    connection.execute("INSERT INTO child VALUES (1, 1), (2, 1), (3, 2), (4, NULL)")


def rows(connection, table="child"):
    return sorted(connection.execute(f"SELECT * FROM {table}").fetchall(), key=repr)


def violated(connection, sql, parameters=None, error=tique.errors.ForeignKeyViolation):
    with pytest.raises(error) as caught:
        connection.execute(sql, parameters)
    return caught.value


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


@pytest.fixture
def large(connection):
    """5,000 parents with a child each, all written in bulk."""
    connection.execute("CREATE TABLE big (id INTEGER PRIMARY KEY, v INTEGER)")
    connection.execute(f"INSERT INTO big SELECT number, 0 FROM {numbers(5000)}")

    def make(action=""):
        connection.execute(
            "CREATE TABLE small (id INTEGER PRIMARY KEY, ref INTEGER DEFAULT 0 "
            f"REFERENCES big {action})"
        )
        connection.execute(
            f"INSERT INTO small SELECT number, number FROM {numbers(5000)}"
        )
        return connection

    return make


def count(connection, what="*", table="small"):
    ((found,),) = connection.execute(f"SELECT count({what}) FROM {table}").fetchall()
    return found


def test_writes_in_bulk(large):
    connection = large()
    violated(
        connection,
        f"INSERT INTO small SELECT number + 5000, number + 1 FROM {numbers(5000)}",
    )
    violated(connection, "UPDATE small SET ref = ref + 1")
    violated(connection, "DELETE FROM big WHERE id > 100")
    violated(connection, "UPDATE big SET id = id + 1")
    connection.execute("UPDATE big SET v = 1")
    connection.execute("UPDATE small SET ref = 7")
    connection.execute("DELETE FROM big WHERE id <> 7")
    assert (count(connection, table="big"), count(connection)) == (1, 5000)


@pytest.mark.parametrize(
    ("action", "left"),
    [
        ("CASCADE", (10, 10)),
        ("SET NULL", (5000, 10)),
        ("SET DEFAULT", (5000, 5000)),
    ],
)
def test_actions_in_bulk(large, action, left):
    connection = large(f"ON DELETE {action}")
    connection.execute("DELETE FROM big WHERE id >= 10")
    assert (count(connection), count(connection, "ref")) == left


def test_restrict_in_bulk(large):
    connection = large("ON DELETE RESTRICT")
    wrong = tique.errors.RestrictViolation
    violated(connection, "DELETE FROM big", error=wrong)
    connection.execute("DELETE FROM small")
    connection.execute("DELETE FROM big")
    assert count(connection, table="big") == 0


MORE_PARENTS = (
    "INSERT INTO parent (id, v, code) SELECT id + 2, v, code || 'x' FROM parent"
)


@pytest.fixture
def _staged(monkeypatch):
    """Stage whatever a statement writes."""
    for module in (changes, insert, change):
        monkeypatch.setattr(module, "BUFFERED_ROWS", 0)


@pytest.mark.every_engine
@pytest.mark.usefixtures("_staged")
@pytest.mark.parametrize(
    ("action", "moved", "error"),
    [
        ("CASCADE", "5 - id", tique.NotSupportedError),
        ("RESTRICT", "id + 10", tique.errors.RestrictViolation),
        ("NO ACTION", "id + 10", tique.errors.ForeignKeyViolation),
        ("SET NULL", "id + 10", None),
        ("SET NULL", "5 - id", tique.NotSupportedError),
        ("SET DEFAULT", "id + 1", tique.NotSupportedError),
        ("RESTRICT", "id + 1", tique.NotSupportedError),
    ],
)
def test_an_insert_of_parents_takes_no_key_away(
    engine, connection, action, moved, error
):
    """P9: and an UPDATE or DELETE in the same transaction does."""
    child(connection, f"ON UPDATE {action}")
    other = engine.connect()
    other.execute(MORE_PARENTS)
    assert rows(other) == [(1, 1), (2, 1), (3, 2), (4, None)]
    violated(other, "INSERT INTO child SELECT id + 9, 9 FROM parent")
    other.execute("INSERT INTO child SELECT id + 2, id FROM parent WHERE id > 2")
    violated(other, "DELETE FROM parent WHERE id > 2")
    references = [1, 1, 2, None, 3, 4]
    if error is None:
        other.execute(f"UPDATE parent SET id = {moved}")
        references = [None] * 6
    else:
        violated(other, f"UPDATE parent SET id = {moved}", error=error)
    assert [ref for _, ref in rows(other)] == references
    other.execute("DELETE FROM child WHERE id = 6")
    other.execute("DELETE FROM parent WHERE v = 20 AND id NOT IN (2, 12)")
    other.execute("INSERT INTO parent SELECT 4, 40, 'd'")
    other.execute("INSERT INTO child SELECT 6, 4")
    other.commit()
    assert len(rows(connection, "parent")) == 4
    assert [ref for _, ref in rows(connection)] == [*references[:5], 4]


@pytest.mark.written_for(["postgresql"], reason="its DDL is a part of a transaction")
def test_parents_are_inserted_after_ddl(connection):
    """As a migration seeds a table: rows with a type that it has made are staged."""
    child(connection, "ON UPDATE CASCADE")
    with connection.transaction():
        connection.execute("CREATE TYPE tone AS ENUM ('low', 'high')")
        connection.execute("ALTER TABLE parent ADD COLUMN t tone")
        connection.execute("INSERT INTO parent VALUES (3, 30, 'c', 'low')")
        connection.execute(MORE_PARENTS.replace("id + 2", "id + 3"))
    assert len(rows(connection, "parent")) == 6
    assert rows(connection) == [(1, 1), (2, 1), (3, 2), (4, None)]
    connection.execute("DROP TABLE child, parent")
    connection.execute("DROP TYPE tone")


NOT_HELD = {
    "duckdb": ("UNION(a INTEGER, b VARCHAR)", "union_value(a := {})"),
    "postgresql": ("MONEY", "CAST({} AS MONEY)"),
    "monetdb": ("REAL UNIQUE", "CAST({} AS REAL)"),
}
"""A column that Python does not hold, and a value of it."""


@pytest.mark.every_engine
def test_parents_that_are_inserted_and_updated(engine, connection):
    """P9: ON CONFLICT and MERGE of rows that stay in the engine."""
    kind, value = NOT_HELD[engine.name]
    connection.execute(
        f"CREATE TABLE odd (id INTEGER PRIMARY KEY, code INTEGER UNIQUE, x {kind})"
    )
    for name, key in (("by_id", "id"), ("by_code", "code")):
        connection.execute(
            f"CREATE TABLE {name} (ref INTEGER REFERENCES odd ({key}) ON UPDATE CASCADE)"
        )

    def row(n):
        return f"({n}, {n}, {value.format(n)})"

    other = engine.connect()
    other.execute(f"INSERT INTO odd VALUES {row(1)}, {row(2)}")
    other.execute("INSERT INTO by_id VALUES (1)")
    other.execute("INSERT INTO by_code VALUES (2)")
    merge = (
        "MERGE INTO odd USING (VALUES (2), ({0})) AS s(k) ON odd.id = s.k "
        "WHEN MATCHED THEN {1} WHEN NOT MATCHED THEN INSERT (id, code) VALUES (k, k)"
    )
    for round_ in (0, 10):
        three, four, five = row(3 + round_), row(4 + round_), row(5 + round_)
        other.execute(f"INSERT INTO odd VALUES {three}")
        upsert = f"INSERT INTO odd VALUES {row(1)}, {four} ON CONFLICT (id) DO "
        assert other.execute(f"{upsert} NOTHING").rowcount == 1
        other.execute(f"{upsert.replace(four, five)} UPDATE SET x = EXCLUDED.x")
        other.execute(merge.format(6 + round_, f"UPDATE SET x = {value.format(7)}"))
        other.commit()
    assert (count(other, table="odd"), rows(other, "by_id")) == (10, [(1,)])
    moves = "UPDATE SET code = -odd.code"
    for sql in (
        f"{upsert} {moves}",
        merge.format(9, moves),
        "UPDATE odd SET code = -code",
    ):
        violated(other, sql, error=tique.NotSupportedError)
    violated(other, merge.format(9, "DELETE"))
    assert (count(other, table="odd"), rows(other, "by_code")) == (10, [(2,)])
    other.execute("DELETE FROM by_code")
    other.execute(merge.format(9, "DELETE"))
    other.commit()
    assert count(other, table="odd") == 10


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


DEFERRED = pytest.mark.never(
    ["duckdb", "monetdb"],
    raises=tique.NotSupportedError,
    reason="the engine has no deferred constraints",
)


@pytest.fixture
def deferred(engine, connection):
    def make():
        connection.execute(
            "CREATE TABLE child (id INTEGER PRIMARY KEY, ref INTEGER CONSTRAINT later "
            "REFERENCES parent DEFERRABLE INITIALLY DEFERRED)"
        )
        return engine.connect()

    return make


@DEFERRED
def test_a_deferred_constraint_is_checked_at_commit(connection, deferred):
    one = deferred()
    one.execute("INSERT INTO child VALUES (1, 3)")
    one.execute("INSERT INTO parent VALUES (3, 0, 'c')")
    one.commit()
    one.execute("DELETE FROM parent WHERE id = 3")
    one.execute("INSERT INTO parent VALUES (3, 1, 'd')")
    one.commit()
    one.execute("DELETE FROM parent WHERE id = 3")
    one.execute("INSERT INTO child VALUES (2, 9)")
    one.execute("DELETE FROM child WHERE id = 2")
    with pytest.raises(tique.errors.ForeignKeyViolation) as caught:
        one.commit()
    assert (caught.value.constraint, caught.value.key) == ("later", (3,))
    assert rows(connection) == [(1, 3)]
    assert len(rows(connection, "parent")) == 3
    one.execute("SAVEPOINT s")
    one.execute("INSERT INTO child VALUES (5, 5)")
    one.execute("ROLLBACK TO s")
    one.execute("INSERT INTO child VALUES (6, 1)")
    one.commit()
    violated(connection, "INSERT INTO child VALUES (7, 7)")
    assert rows(connection) == [(1, 3), (6, 1)]


@DEFERRED
def test_a_deferred_constraint_in_bulk(connection, deferred):
    one = deferred()
    one.execute(f"INSERT INTO child SELECT number, number + 1 FROM {numbers(5000)}")
    with pytest.raises(tique.errors.ForeignKeyViolation):
        one.commit()
    one.execute(f"INSERT INTO child SELECT number, number + 1 FROM {numbers(5000)}")
    one.execute(f"INSERT INTO parent SELECT number + 3, 0, NULL FROM {numbers(5000)}")
    one.commit()
    assert count(connection, table="child") == 5000


@DEFERRED
@pytest.mark.usefixtures("_staged")
def test_a_deferred_reference_waits_for_its_parent(engine, connection):
    """P9: an INSERT of other parents is no reason to act on it."""
    child(connection, "ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED")
    other = engine.connect()
    other.execute("INSERT INTO child VALUES (5, 5)")
    other.execute(MORE_PARENTS)
    other.execute("INSERT INTO parent SELECT 5, 50, 'e'")
    other.commit()
    assert (5, 5) in rows(connection)


@DEFERRED
@pytest.mark.usefixtures("_staged")
def test_a_deferred_reference_outlasts_other_parents(engine, connection):
    """P9: actions are about the references to the keys that are taken away."""
    child(
        connection,
        "ON DELETE CASCADE ON UPDATE SET NULL DEFERRABLE INITIALLY DEFERRED",
    )
    other = engine.connect()
    other.execute("INSERT INTO child VALUES (5, 5), (6, 6), (7, 7)")
    other.execute("DELETE FROM parent WHERE v = 10")
    other.execute("UPDATE parent SET id = id + 7 WHERE v = 20")
    assert rows(other) == [(3, None), (4, None), (5, 5), (6, 6), (7, 7)]
    other.execute("INSERT INTO parent SELECT id - 4, 50, 'e' FROM parent")
    other.execute("INSERT INTO parent SELECT id + 1, 60, 'f' FROM parent WHERE v = 50")
    other.execute("DELETE FROM parent WHERE v = 60")
    assert rows(other) == [(3, None), (4, None), (5, 5), (7, 7)]
    other.execute("DELETE FROM child WHERE ref = 7")
    other.commit()
    assert rows(connection) == [(3, None), (4, None), (5, 5)]


@DEFERRED
def test_a_deferred_reference_is_certified(engine, connection, deferred):
    one, two = deferred(), engine.connect()
    two.execute("SELECT 1 FROM parent").fetchall()
    one.execute("INSERT INTO child VALUES (1, 2)")
    two.execute("DELETE FROM parent WHERE id = 2")
    two.commit()
    with pytest.raises(tique.SerializationError):
        one.commit()
