"""Table definitions in MonetDB's catalog, and refused tables."""

from __future__ import annotations

import pytest

from tique_backends.errors import EngineError, ErrorKind
from tique_rewriter.schema import Column

TYPES = {
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "HUGEINT": "HUGEINT",
    "REAL": "REAL",
    "FLOAT": "DOUBLE",
    "DOUBLE PRECISION": "DOUBLE",
    "DECIMAL": "DECIMAL(18,3)",
    "NUMERIC(5)": "DECIMAL(5,0)",
    "DECIMAL(38,10)": "DECIMAL(38,10)",
    "BOOLEAN": "BOOLEAN",
    "CHAR": "CHAR(1)",
    "CHARACTER(3)": "CHAR(3)",
    "VARCHAR(5)": "VARCHAR(5)",
    "CLOB": "CLOB",
    "TEXT": "CLOB",
    "STRING": "CLOB",
    "BLOB": "BLOB",
    "BLOB(10)": "BLOB(10)",
    "DATE": "DATE",
    "TIME": "TIME",
    "TIME(6)": "TIME(6)",
    "TIMESTAMP": "TIMESTAMP",
    "TIMESTAMP(3)": "TIMESTAMP(3)",
    "TIMESTAMP(0)": "TIMESTAMP(0)",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP(3) WITH TIME ZONE": "TIMESTAMP(3) WITH TIME ZONE",
    "TIME WITH TIME ZONE": "TIME WITH TIME ZONE",
    "UUID": "UUID",
    "JSON": "JSON",
    "INET": "INET",
    "URL": "URL",
    "INTERVAL SECOND": "INTERVAL SECOND",
    "INTERVAL MINUTE": "INTERVAL MINUTE",
    "INTERVAL HOUR": "INTERVAL HOUR",
    "INTERVAL DAY": "INTERVAL DAY",
    "INTERVAL MONTH": "INTERVAL MONTH",
    "INTERVAL YEAR": "INTERVAL YEAR",
}


@pytest.mark.parametrize("declared", TYPES)
def test_types(session, engine, managed, declared):
    """The name makes the same type again: the cache table has it."""
    table = managed("t", f"v {declared}")
    assert [c.type for c in table.columns] == [TYPES[declared]]
    session.execute(f"CREATE TABLE app.again (v {table.columns[0].type})")
    again = engine.describe(session, "app", "again")
    assert again.columns == table.columns
    catalog = (
        "SELECT c.type, c.type_digits, c.type_scale FROM sys.columns AS c "
        "JOIN sys.tables AS t ON t.id = c.table_id "
        "WHERE c.name = 'v' AND t.name IN ('t', 'app.t', 'again')"
    )
    assert len(set(session.execute(catalog).fetch_all())) == 1
    result = session.execute("SELECT v FROM app.t")
    assert result.columns[0].type == TYPES[declared]


def test_a_whole_definition(session, engine):
    session.execute(
        "CREATE TABLE app.\"Or\"\"der\" (b VARCHAR(5) NOT NULL DEFAULT R'it''s\\', "
        'a INTEGER, "C d" DECIMAL(10,2) DEFAULT 1.5, e TIMESTAMP '
        'DEFAULT CURRENT_TIMESTAMP, PRIMARY KEY (a, b), UNIQUE ("C d"), '
        'UNIQUE (e, "C d"))'
    )
    table = engine.describe(session, "APP", 'or"DER')
    assert (table.schema, table.name) == ("app", 'Or"der')
    b, a, c, e = table.columns
    assert a == Column("a", "INTEGER", not_null=True)
    assert (b.name, b.type, b.not_null) == ("b", "VARCHAR(5)", True)
    assert (c.name, c.type, c.not_null) == ("C d", "DECIMAL(10,2)", False)
    assert table.primary_key == (1, 0)
    assert table.unique == ((2,), (3, 2))
    assert table.checks == ()
    defaults = f"SELECT {b.default}, {c.default}, {e.default} < CURRENT_TIMESTAMP"
    ((text, number, _),) = session.execute(defaults).fetch_all()
    assert (text, float(number)) == ("it's\\", 1.5)


def test_a_bag(session, engine):
    session.execute("CREATE TABLE app.bag (a INTEGER)")
    table = engine.describe(session, "app", "bag")
    assert table.is_keyless
    assert table.columns == (Column("a", "INTEGER"),)


def test_the_exact_name_is_preferred(session, engine):
    session.execute('CREATE TABLE app."Name" (a INTEGER)')
    session.execute("CREATE TABLE app.name (b INTEGER)")
    assert engine.describe(session, "app", "Name").columns[0].name == "a"
    assert engine.describe(session, "app", "name").columns[0].name == "b"


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["CREATE TABLE app.t (_cts INTEGER)"], "reserved"),
        (['CREATE TABLE app.t ("_Deleted" INTEGER)'], "reserved"),
        (["CREATE TABLE app.t (_sequence INTEGER)"], "reserved"),
        (["CREATE TABLE app.t (a OID)"], "type oid"),
        (["CREATE VIEW app.t AS SELECT 1 AS a"], "is a view"),
        (["CREATE MERGE TABLE app.t (a INTEGER)"], "merge table"),
        (["CREATE REPLICA TABLE app.t (a INTEGER)"], "replica table"),
        (
            ["CREATE REMOTE TABLE app.t (a INTEGER) ON 'mapi:monetdb://localhost:1/x'"],
            "remote table",
        ),
        (
            ["CREATE TABLE app.t (a INTEGER)", "ALTER TABLE app.t SET READ ONLY"],
            "read-only",
        ),
        (
            [
                "CREATE TABLE app.t (a INTEGER)",
                "CREATE TABLE app.l (a INTEGER)",
                "CREATE TRIGGER x AFTER INSERT ON app.t "
                "FOR EACH STATEMENT INSERT INTO app.l VALUES (1)",
            ],
            "trigger",
        ),
    ],
)
def test_refused(session, engine, statements, message):
    """P10: a table that tique could not keep is refused."""
    for statement in statements:
        session.execute(statement)
    with pytest.raises(EngineError, match=message) as refusal:
        engine.describe(session, "app", "t")
    assert refusal.value.kind is ErrorKind.UNSUPPORTED


@pytest.mark.parametrize("name", ["nothing", "format", "a'b\\", "_tables"])
def test_no_such_table(session, engine, name):
    for schema in ("app", "tique", "sys", "tmp"):
        with pytest.raises(EngineError, match="there is no table") as refusal:
            engine.describe(session, schema, name)
        assert refusal.value.kind is ErrorKind.PROGRAMMING


def test_user_tables(session, engine, managed):
    managed("b", "a INTEGER")
    session.execute("CREATE TABLE app.a (a INTEGER)")
    session.execute("CREATE VIEW app.v AS SELECT 1 AS a")
    session.execute("CREATE TABLE sys.x (a INTEGER)")
    session.execute("CREATE LOCAL TEMPORARY TABLE z (a INT) ON COMMIT PRESERVE ROWS")
    try:
        assert engine.user_tables(session) == [("app", "a"), ("app", "b"), ("sys", "x")]
    finally:
        session.execute("DROP TABLE sys.x")
