"""The database's own name in front of a schema says nothing; any other is refused (P9)."""

from __future__ import annotations

import pytest

import tique

# MonetDB has no names of three parts.
pytestmark = pytest.mark.written_for(["duckdb", "postgresql"], reason="its SQL")

STATEMENTS = """
CREATE SCHEMA IF NOT EXISTS {db}.app
CREATE TABLE {db}.app.item (id INTEGER PRIMARY KEY, n INTEGER)
CREATE TABLE IF NOT EXISTS {db}.app.item (id INTEGER PRIMARY KEY, n INTEGER)
INSERT INTO {db}.app.item VALUES (1, 10), (2, 20)
UPDATE {db}.app.item SET n = n + 1 WHERE id = 1
DELETE FROM {db}.app.item WHERE id IN (SELECT o.id FROM {db}.app.item AS o WHERE o.n = 20)
CREATE TABLE {db}.app.copy AS (SELECT * FROM {db}.app.item)
ALTER TABLE {db}.app.copy RENAME TO kept
CREATE VIEW {db}.app.seen AS SELECT id, n FROM {db}.app.item
CREATE INDEX item_n ON {db}.app.item (n)
INSERT INTO {db}.app.item SELECT id + 1, n FROM {db}.app.kept
"""


def own_name(connection):
    """The name of the database."""
    return connection.execute("SELECT current_database()").fetchone()[0]


@pytest.fixture
def connection(engine):
    return engine.connect(checkpoint="manual", autocommit=True)


@pytest.mark.written_for(["duckdb"], reason="its SQL")
@pytest.mark.parametrize(
    "statement",
    [
        "DESCRIBE {db}.main.t",
        "SHOW {db}.main.t",
        "SHOW TABLE {db}.main.t",
        "SELECT column_name FROM (SHOW {db}.main.t)",
        "SELECT column_name FROM (SUMMARIZE {db}.main.t)",
        "PRAGMA table_info('{db}.main.t')",
        "VACUUM {db}.main.t",
        "VACUUM ANALYZE {db}.main.t",
        "ANALYZE {db}.main.t",
    ],
)
def test_it_may_stand_where_a_table_is_told_of(connection, statement):
    own = own_name(connection)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY)")
    cursor = connection.execute(statement.format(db=own))
    if cursor.description:
        assert "id" in cursor.fetchone()
    with pytest.raises((tique.NotSupportedError, tique.ProgrammingError)):
        connection.execute(statement.format(db="elsewhere"))


@pytest.mark.slow
def test_it_may_stand_before_every_schema(engine, connection):
    own = own_name(connection)
    for statement in STATEMENTS.strip().splitlines():
        connection.execute(statement.format(db=f'"{own}"'))
    expected = [(1, 11), (2, 11)]
    for level in range(2):
        for relation in ("item", "seen"):
            found = connection.execute(
                f"SELECT {own}.app.{relation}.* FROM {own}.app.{relation} ORDER BY 1"
            )
            assert found.fetchall() == expected
        if not level:
            connection.checkpoint()
    connection.close()
    native = engine.native()
    query = "SELECT * FROM app.item ORDER BY 1"
    assert native.execute(query).fetchall() == expected
    engine.let_go()
    again = engine.connect(autocommit=True)
    assert again.execute(query).fetchall() == expected
    again.execute(f"DROP VIEW {own}.app.seen")
    again.execute(f"DROP TABLE IF EXISTS {own}.app.item, {own}.app.kept")
    again.execute(f"DROP SCHEMA {own}.app")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM {}.{}.item",
        "INSERT INTO {}.{}.item VALUES (2)",
        "DROP TABLE {}.{}.item",
        "CREATE TABLE {}.{}.other (id INTEGER PRIMARY KEY)",
    ],
)
def test_another_databases_is_refused(engine, connection, statement):
    """P11: the file's name must not stand for what another database has."""
    connection.execute("CREATE TABLE item (id INTEGER PRIMARY KEY)")
    with pytest.raises(tique.NotSupportedError, match="a name with a database in it"):
        connection.execute(statement.format("elsewhere", engine.schema))


@pytest.mark.parametrize("schema", ["tique", '"tique"'])
def test_it_leads_to_no_table_of_tiques(connection, schema):
    """P11."""
    with pytest.raises(tique.NotSupportedError, match="reserved"):
        connection.execute(f"SELECT * FROM {own_name(connection)}.{schema}.log")


@pytest.mark.written_for(["duckdb"], reason="its SQL")
def test_a_field_is_no_table(connection):
    """A table called as the database has fields whose names look alike."""
    own = own_name(connection)
    connection.execute(
        f"CREATE TABLE {own} (id INTEGER PRIMARY KEY, {own} STRUCT(app INTEGER))"
    )
    connection.execute(f"INSERT INTO {own} VALUES (1, {{'app': 7}})")
    found = connection.execute(f"SELECT {own}.{own}.app FROM {own}")
    assert found.fetchall() == [(7,)]
