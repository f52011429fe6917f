"""P9: FOREIGN KEY, and rows that stay in the engine."""

from __future__ import annotations

import pytest

import tique
from tests.dbapi.family import MORE_PARENTS, child, count, parents, rows, violated
from tests.portable import numbers

pytestmark = pytest.mark.fresh_tables


@pytest.fixture
def connection(engine):
    return parents(engine)


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


@pytest.mark.slow
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
