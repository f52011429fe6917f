"""A schema of the connection's own: no other connection finds its names (P1, P10, P11)."""

from __future__ import annotations

import duckdb
import pytest

import tique

USE = {
    "duckdb": "USE {}",
    "postgresql": "SET search_path TO {}, public",
    "monetdb": "SET SCHEMA {}",
}
CURRENT = {
    "duckdb": "SELECT current_schema()",
    "postgresql": "SELECT current_schema()",
    "monetdb": "SELECT current_schema",
}
DUCKDB = pytest.mark.written_for(["duckdb"], reason="its SQL")
MONETDB = pytest.mark.written_for(["monetdb"], reason="its SQL")
FALLS_BACK = pytest.mark.written_for(
    ["duckdb", "monetdb"], reason="PostgreSQL's views have all names with schemas"
)


def use(engine, connection, schema):
    connection.execute(USE[engine.name].format(schema))


def rows(connection, query):
    return connection.execute(query).fetchall()


@pytest.fixture
def connection(engine):
    opened = engine.connect(checkpoint="manual", autocommit=True)
    opened.execute("CREATE SCHEMA one")
    opened.execute("CREATE SCHEMA two")
    for schema in (engine.schema, "one", "two"):
        opened.execute(
            f"CREATE TABLE {schema}.item (id INTEGER PRIMARY KEY, n INTEGER)"
        )
    return opened


def test_connections_have_their_own(engine, connection):
    """Plans are kept by path: one text, three connections, three tables."""
    others = [engine.connect(checkpoint="manual", autocommit=True) for _ in range(2)]
    use(engine, connection, "one")
    use(engine, others[0], "two")
    for number, each in enumerate([connection, *others]):
        for key in range(3):
            each.execute(f"INSERT INTO item VALUES ({key}, {number})")
    for level in range(2):
        for number, each in enumerate([connection, *others]):
            assert rows(each, "SELECT sum(n), count(*) FROM item") == [(3 * number, 3)]
            assert rows(each, "SELECT n FROM item WHERE id = 1") == [(number,)]
        if not level:
            connection.checkpoint()
    use(engine, connection, "two")
    assert rows(connection, "SELECT min(n) FROM item") == [(1,)]
    assert rows(connection, "SELECT min(n) FROM one.item") == [(0,)]
    use(engine, connection, engine.schema)
    assert rows(connection, "SELECT min(n) FROM item") == [(2,)]
    new = engine.connect(checkpoint="manual", autocommit=True)
    assert rows(new, CURRENT[engine.name]) == [(engine.schema,)]


def test_a_rollback_takes_it_back_where_the_engine_does(engine, connection):
    use(engine, connection, "one")
    connection.execute("BEGIN" if engine.name != "monetdb" else "START TRANSACTION")
    use(engine, connection, "two")
    connection.execute("INSERT INTO item VALUES (1, 1)")
    connection.execute("ROLLBACK")
    kept = "one" if engine.name == "postgresql" else "two"
    assert rows(connection, CURRENT[engine.name]) == [(kept,)]
    assert rows(connection, "SELECT count(*) FROM item") == [(0,)]


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_tables_are_made_in_it_also_inside_a_transaction(engine, connection, end):
    use(engine, connection, "two")
    connection.execute("START TRANSACTION")
    connection.execute("CREATE TABLE made (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO made VALUES (1, 5)")
    connection.execute("ALTER TABLE made ADD COLUMN m INTEGER")
    connection.execute("UPDATE item SET n = n")
    assert rows(connection, "SELECT n, m FROM made") == [(5, None)]
    connection.execute(end)
    if end == "COMMIT":
        assert rows(connection, "SELECT n, m FROM two.made") == [(5, None)]
    else:
        with pytest.raises(tique.ProgrammingError):
            connection.execute("SELECT * FROM made")
    connection.execute("CREATE TABLE later (id INTEGER)")
    assert rows(connection, "SELECT * FROM two.later") == []


def test_what_is_not_managed_hides_what_is(engine):
    """P10: never the table behind the one that the engine would take."""
    native = engine.native()
    native.execute("CREATE SCHEMA front")
    native.execute("CREATE TABLE front.common (id INTEGER, place INTEGER)")
    connection = engine.connect(checkpoint="manual", autocommit=True)
    connection.execute("CREATE TABLE common (id INTEGER PRIMARY KEY, place INTEGER)")
    connection.execute("INSERT INTO common VALUES (1, 1)")
    use(engine, connection, "front")
    for statement in (
        "SELECT * FROM common",
        "SELECT place FROM common WHERE id = 1",
        "INSERT INTO common VALUES (2, 2)",
        "DROP TABLE common",
    ):
        with pytest.raises((tique.ProgrammingError, tique.NotSupportedError)):
            connection.execute(statement)
    assert rows(connection, f"SELECT place FROM {engine.schema}.common") == [(1,)]


def test_temporary_tables_come_first(engine, connection):
    local = "LOCAL " if engine.name == "monetdb" else ""
    kept = "" if engine.name == "duckdb" else " ON COMMIT PRESERVE ROWS"
    use(engine, connection, "one")
    connection.execute(f"CREATE {local}TEMPORARY TABLE own (id INTEGER){kept}")
    connection.execute("INSERT INTO own VALUES (7)")
    other = engine.connect(checkpoint="manual", autocommit=True)
    other.execute("CREATE TABLE two.own (id INTEGER)")
    use(engine, connection, "two")
    assert rows(connection, "SELECT * FROM own") == [(7,)]
    assert rows(connection, "SELECT * FROM two.own") == []


def test_rows_from_arrow_go_there(engine, connection):
    pyarrow = pytest.importorskip("pyarrow")
    use(engine, connection, "two")
    connection.cursor().append("item", pyarrow.table({"id": [1, 2], "n": [3, 4]}))
    assert rows(connection, "SELECT sum(n) FROM two.item") == [(7,)]


@FALLS_BACK
def test_a_view_has_one_meaning(engine, connection):
    """P10: engines look elsewhere for a name that the view's own schema has not."""
    connection.execute(f"CREATE TABLE {engine.schema}.lone (n INTEGER)")
    connection.execute("INSERT INTO lone VALUES (1)")
    connection.execute("CREATE VIEW two.v AS SELECT n FROM lone")
    use(engine, connection, "one")
    assert rows(connection, "SELECT * FROM two.v") == [(1,)]
    connection.execute("CREATE TABLE lone (n INTEGER)")
    connection.execute("CREATE VIEW mine AS SELECT n FROM lone")
    assert rows(connection, "SELECT * FROM mine") == []
    for statement in ("SELECT * FROM two.v", "CREATE VIEW two.w AS SELECT n FROM lone"):
        with pytest.raises(tique.NotSupportedError, match="search path"):
            connection.execute(statement)
    use(engine, connection, engine.schema)
    assert rows(connection, "SELECT * FROM two.v") == [(1,)]
    assert rows(connection, "SELECT * FROM one.mine") == []


@FALLS_BACK
def test_a_foreign_key_references_its_own_schema_first(engine, connection):
    connection.execute("INSERT INTO item VALUES (1, 1)")
    connection.execute("INSERT INTO one.item VALUES (2, 2)")
    connection.execute("CREATE TABLE one.child (item INTEGER REFERENCES item (id))")
    connection.execute("INSERT INTO one.child VALUES (2)")
    with pytest.raises(tique.IntegrityError):
        connection.execute("INSERT INTO one.child VALUES (1)")


@DUCKDB
def test_a_default_takes_its_own_schemas_sequence_and_macro(engine, connection):
    """P1: wherever the statement is run, DuckDB looks in the table's schema first."""
    for schema, start in (("main", 1), ("one", 100)):
        connection.execute(f"CREATE SEQUENCE {schema}.numbers START {start}")
        connection.execute(f"CREATE MACRO {schema}.twice(x) AS x * 2 + {start}")
        connection.execute(
            f"CREATE TABLE {schema}.t (i INTEGER DEFAULT nextval('numbers'), "
            "j INTEGER DEFAULT twice(1), k TEXT DEFAULT 'twice(1)', w INTEGER)"
        )
    for path in ("main", "one", "two"):
        use(engine, connection, path)
        for schema, start in (("main", 3), ("one", 102)):
            connection.execute(f"INSERT INTO {schema}.t (w) VALUES (1)")
            assert rows(connection, f"SELECT DISTINCT j, k FROM {schema}.t") == [
                (start, "twice(1)")
            ]
    for schema, first in (("main", 1), ("one", 100)):
        found = rows(connection, f"SELECT i FROM {schema}.t ORDER BY i")
        assert found == [(first + i,) for i in range(3)]


@DUCKDB
def test_a_view_that_calls_its_own_schemas_macro_is_refused(engine, connection):
    connection.execute("CREATE MACRO main.f(x) AS x + 1")
    connection.execute("CREATE MACRO one.f(x) AS x + 2")
    for path in ("main", "one"):
        use(engine, connection, path)
        with pytest.raises(tique.NotSupportedError, match="own schema"):
            connection.execute("CREATE VIEW one.v AS SELECT f(1) AS n")
    connection.execute("CREATE VIEW one.v AS SELECT 1 AS n")
    assert rows(connection, "SELECT * FROM v") == [(1,)]


@DUCKDB
def test_prepared_statements_follow_it(engine, connection):
    connection.execute("INSERT INTO one.item VALUES (1, 1)")
    connection.execute("PREPARE p AS SELECT count(*) FROM item")
    assert rows(connection, "EXECUTE p") == [(0,)]
    use(engine, connection, "one")
    assert rows(connection, "EXECUTE p") == [(1,)]


@DUCKDB
@pytest.mark.parametrize(
    "statement",
    [
        "USE tique",
        "USE temp",
        "USE system",
        "USE test.tique",
        "USE 'TIQUE'",
        "SET schema = 'information_schema'",
        "SET search_path = 'one,tique'",
        "SET search_path = 'one,\"tique\"'",
        "SET search_path = 'pg_catalog'",
        "PRAGMA search_path = 'tique'",
        "USE beside",
        "USE beside.main",
        "SET search_path = 'one,beside.main'",
    ],
)
def test_duckdb_refuses(engine, connection, statement, tmp_path):
    """P11: neither tique's tables nor another database's have names without a schema."""
    duckdb.connect(tmp_path / "beside.duckdb").close()
    connection.execute(f"ATTACH '{tmp_path / 'beside.duckdb'}' AS beside (READ_ONLY)")
    use(engine, connection, "one")
    with pytest.raises(tique.NotSupportedError, match="search_path"):
        connection.execute(statement)
    assert rows(connection, "SELECT current_schema()") == [("one",)]
    connection.execute("INSERT INTO item VALUES (1, 1)")
    assert rows(connection, "SELECT count(*) FROM one.item") == [(1,)]


@MONETDB
@pytest.mark.parametrize("schema", ["tique", "tmp", "json", "profiler"])
def test_monetdb_refuses(connection, schema):
    connection.execute("SET SCHEMA one")
    with pytest.raises(tique.NotSupportedError, match="schema"):
        connection.execute(f"SET SCHEMA {schema}")
    assert rows(connection, "SELECT current_schema") == [("one",)]


@MONETDB
def test_monetdb_refuses_a_schema_with_its_own_functions_names(engine):
    native = engine.native()
    native.execute("CREATE SCHEMA other")
    native.execute(
        "CREATE FUNCTION other.length(s DATE) RETURNS INT BEGIN RETURN 77; END"
    )
    connection = engine.connect(checkpoint="manual", autocommit=True)
    with pytest.raises(tique.NotSupportedError, match=r"length\(\)"):
        connection.execute("SET SCHEMA other")


@MONETDB
def test_a_schema_that_another_client_drops_ends_no_other_connection(
    engine, connection
):
    """As natively the session ends; a new connection is not concerned."""
    connection.execute("CREATE SCHEMA gone")
    connection.execute("SET SCHEMA gone")
    other = engine.connect(checkpoint="manual", autocommit=True)
    other.execute("DROP SCHEMA gone CASCADE")
    with pytest.raises(tique.Error):
        connection.execute("SELECT count(*) FROM sys.tables")
    other.execute("INSERT INTO item VALUES (1, 1)")
    assert rows(other, "SELECT n FROM item") == [(1,)]
