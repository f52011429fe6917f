"""Statements about the session and about tables, through tique and natively (P1, P10)."""

from __future__ import annotations

import math

import pytest

from tests.differential import world

DESCRIBED = [
    "SHOW TABLES",
    "SHOW",
    "SHOW ALL TABLES",
    "SHOW SCHEMAS",
    "SHOW DATABASES",
    "DESCRIBE",
    "PRAGMA show_tables",
    "PRAGMA collations",
    "PRAGMA version",
    "CALL pragma_version()",
    "CALL range(3)",
    "CALL pragma_platform()",
    "SHOW missing_table",
    "DESCRIBE SELECT * FROM missing_table",
    "SUMMARIZE missing_table",
    "DESCRIBE SELECT 1, 'a' AS b, NULL",
    "DESCRIBE SELECT i.id, count(*) AS n FROM item i JOIN sale s ON s.item = i.id "
    "GROUP BY i.id",
    "DESCRIBE SELECT price * 2, upper(name) FROM item",
    "DESCRIBE WITH c AS (SELECT * FROM node) SELECT * FROM c",
    "DESCRIBE VALUES (1, 'x')",
    "DESCRIBE FROM sale SELECT day",
    "SHOW SELECT id FROM item",
    *(
        f"{verb} {table}"
        for table in world.ROWS
        for verb in ("DESCRIBE", "DESC", "SHOW", "DESCRIBE TABLE")
    ),
    *(f"DESCRIBE SELECT * FROM {table}" for table in world.ROWS),
    *(f"PRAGMA table_info('{table}')" for table in world.ROWS),
    *(f"PRAGMA table_info({table})" for table in world.ROWS),
    "SELECT name FROM (SHOW TABLES) WHERE name LIKE 'i%'",
    "SELECT name, column_types FROM (SHOW ALL TABLES) ORDER BY 1",
    "FROM (SHOW SCHEMAS) AS s CROSS JOIN (SHOW DATABASES) AS d",
    "FROM (DESC item) AS i JOIN (SHOW sale) AS s USING (column_name)",
    "WITH item AS (SELECT 1 AS n) FROM (DESCRIBE item)",
    "SELECT (SELECT count(*) FROM (DESCRIBE item))",
    "SELECT (SELECT count(*) FROM (SUMMARIZE item)), (FROM (SHOW TABLES) LIMIT 1)",
    "SELECT id, column_type FROM item, (DESCRIBE SELECT item.id * 2) ORDER BY ALL",
    "FROM (DESCRIBE SELECT price * 2, EXISTS (FROM sale) FROM item)",
    "SELECT * FROM (DESCRIBE missing_table)",
    *(f"FROM (DESCRIBE {table})" for table in world.ROWS),
    "DESCRIBE main.item",
    "PRAGMA table_info('main.item')",
]
SUMMARIZED = [
    *(f"SUMMARIZE {table}" for table in world.ROWS if table != "thing"),
    "SUMMARIZE SELECT item, quantity FROM sale WHERE item > 5",
    "SUMMARIZE SELECT name FROM item WHERE id = 3",
    "SELECT * FROM (SUMMARIZE item)",
    "SELECT * FROM (SUMMARIZE SELECT item, quantity FROM sale WHERE item > 5) AS s",
    "SUMMARIZE SELECT i.kind, s.quantity FROM item i JOIN sale s ON s.item = i.id",
]
DUCKDB = pytest.mark.written_for(["duckdb"], reason="the others have no such verbs")
ESTIMATED = {"approx_unique", "q25", "q50", "q75"}

SEQUENCES = {
    "duckdb": [
        ["SET TimeZone = 'Asia/Tokyo'", "SELECT current_setting('TimeZone')"],
        ["SET TIME ZONE 'Asia/Tokyo'", "SELECT CAST('2024-01-01' AS TIMESTAMPTZ)"],
        ["SET TimeZone TO 'nowhere'"],
        ["SET threads = 'x'"],
        ["SET threads = 0"],
        ["SET"],
        ["SET threads"],
        ["SET LOCAL threads = 1"],
        ["SET SESSION threads = 1"],
        ["PREPARE p AS SELECT ?", "EXECUTE p(7)", "EXECUTE p", "EXECUTE p(1, 2)"],
        ["PREPARE p AS SELECT $1 + $2 AS s", "EXECUTE p(1, 2.5)", "EXECUTE p(1)"],
        ["PREPARE p AS SELECT 1", "PREPARE p AS SELECT 2", "EXECUTE p"],
        ["DEALLOCATE missing", "EXECUTE missing", "DEALLOCATE ALL"],
        ["PREPARE p AS SELECT * FROM item WHERE id = $1 OR kind = $2 ORDER BY id", "EXECUTE p(3, 'toy')"],
        ["PREPARE p AS SELECT id + ?, kind || ? FROM item ORDER BY id", "EXECUTE p(3, 'toy')"],
        ["PREPARE p AS SELECT sum(quantity) FROM sale WHERE item < ?", "EXECUTE p(10)"],
        ["PREPARE p (INTEGER) AS SELECT $1"],
        ["PREPARE p AS", "PREPARE", "EXECUTE", "DEALLOCATE", "USE"],
    ],
    "postgresql": [
        ["SET TimeZone = 'Asia/Tokyo'", "SHOW TimeZone", "SELECT '2024-01-01'::timestamptz"],
        ["SET TIME ZONE -3", "SHOW TIME ZONE", "SET TIME ZONE LOCAL", "SHOW TIME ZONE"],
        ["SET TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE", "SHOW timezone"],
        ["SET work_mem = '32MB'", "SHOW work_mem", "RESET work_mem", "SHOW WORK_MEM"],
        ["SET work_mem TO 'x'", "SET work_mem = -5", "SET work_mem", "SET"],
        ["SET enable_seqscan TO off", "SHOW enable_seqscan", "RESET ALL", "SHOW enable_seqscan"],
        ["SET app.x = 'y'", "SHOW app.x", "SELECT current_setting('app.x')"],
        ["SHOW app.missing", "SHOW missing", "RESET missing_too"],
        ["SHOW standard_conforming_strings", "SHOW server_encoding", "SHOW client_encoding"],
        ["SHOW server_version", "SHOW is_superuser", "SHOW integer_datetimes"],
        ["SET DateStyle = 'ISO, DMY'", "SELECT '02/01/2024'::date", "SHOW DateStyle"],
        ["SET application_name TO 'my app'", "SHOW application_name"],
        ["SET statement_timeout = '3s'", "SHOW statement_timeout"],
        ["SET x = current_user", "SET GLOBAL work_mem = 1"],
        ["PREPARE p AS SELECT $1::int", "EXECUTE p(7)", "EXECUTE p", "EXECUTE p(1, 2)"],
        ["PREPARE p(int, numeric) AS SELECT $1 + $2 AS s", "EXECUTE p(1, 2.5)"],
        ["PREPARE p AS SELECT 1", "PREPARE p AS SELECT 2", "EXECUTE p"],
        ["DEALLOCATE missing", "EXECUTE missing"],
        ["PREPARE p AS SELECT * FROM item WHERE id = $1 OR kind = $2 ORDER BY id", "EXECUTE p(3, 'toy')"],
        ["PREPARE p(text) AS SELECT id, kind || $1 FROM item ORDER BY id", "EXECUTE p('s')"],
        ["PREPARE p AS SELECT sum(quantity) FROM sale WHERE item < $1", "EXECUTE p(10)"],
        ["PREPARE p(smallint) AS SELECT pg_typeof($1), $1 * $1", "EXECUTE p(200)"],
        ["PREPARE p(timestamptz, jsonb) AS SELECT $1, $2", "EXECUTE p('2024-01-01 00:00Z', '[1]')"],
        ["PREPARE p(date) AS SELECT $1 + 1", "EXECUTE p('2024-02-28')", "EXECUTE p('x')"],
        ["PREPARE p(nothing) AS SELECT $1", "PREPARE p AS SELECT nothing FROM item"],
        ["PREPARE p AS", "PREPARE", "EXECUTE", "DEALLOCATE", "DISCARD", "RESET", "SHOW"],
    ],
    "monetdb": [
        ["SET TIME ZONE INTERVAL '+05:30' HOUR TO MINUTE", "SELECT current_timezone"],
        ["SET TIME ZONE INTERVAL '-02:00' HOUR TO MINUTE", "SELECT CAST(TIMESTAMP '2024-01-01 00:00:00' AS TIMESTAMP WITH TIME ZONE)"],
        ["SET SCHEMA sys", "SELECT current_schema", "SELECT count(*) FROM item"],
        ["SET made_up = 1", "SET", "SET TIME ZONE"],
    ],
}  # fmt: skip


def outcome(connection, sql):
    """Names and rows of a result, or the kind of the error."""
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchall() if cursor.description else []
        names = [column[0] for column in cursor.description or []]
    except Exception as error:
        return "error", world.category(error)
    if names in (["Success"], ["Count"]):
        names = []
    return names, rows


@pytest.mark.slow
@DUCKDB
@pytest.mark.parametrize("state", world.STATES)
def test_tables_and_queries_are_described_as_natively(engine, state):
    bare = engine.native()
    world.fill_natively(engine, bare)
    wanted = {sql: outcome(bare, sql) for sql in DESCRIBED + SUMMARIZED}
    engine.begin_again()
    connection = engine.connect(checkpoint="manual", paramstyle="qmark")
    world.fill(engine, connection, state)
    found = {sql: outcome(connection, sql) for sql in DESCRIBED}
    assert {
        sql: (found[sql], wanted[sql]) for sql in found if found[sql] != wanted[sql]
    } == {}
    for sql in SUMMARIZED:
        names, rows = outcome(connection, sql)
        assert names == wanted[sql][0], sql
        for row, native_row in zip(rows, wanted[sql][1], strict=True):
            for name, value, native in zip(names, row, native_row, strict=True):
                if name in ("avg", "std") and None not in (value, native):
                    assert value == native or math.isclose(float(value), float(native))
                elif name not in ESTIMATED:
                    assert value == native, (sql, name)


def test_sequences(lasting, native, through_tique):
    differing = {}
    for sequence in SEQUENCES[lasting.name]:
        found = [outcome(through_tique, sql) for sql in sequence]
        wanted = [outcome(native, sql) for sql in sequence]
        for restoring in ("DEALLOCATE p", "RESET ALL"):
            outcome(through_tique, restoring)
            outcome(native, restoring)
        differing |= {
            sql: (through, natively)
            for sql, through, natively in zip(sequence, found, wanted, strict=True)
            if repr(through) != repr(natively) and through != natively
        }
    zone = {
        "duckdb": "RESET TimeZone",
        "postgresql": "SET TIME ZONE DEFAULT",
        "monetdb": "SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE",
    }[lasting.name]
    through_tique.execute(zone)
    native.execute(zone)
    assert differing == {}
