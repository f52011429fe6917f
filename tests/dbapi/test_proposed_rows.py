"""Constraints of rows that INSERT … ON CONFLICT proposes, as the bare engine has it (P8, P9).

PostgreSQL checks each of them before it looks for a conflict, DuckDB those that are written.
"""

from __future__ import annotations

import pytest

from tests.differential import world
from tests.portable import numbers

pytestmark = [
    pytest.mark.fresh_tables,
    pytest.mark.written_for(
        ["duckdb", "postgresql"], reason="MonetDB has no ON CONFLICT of its own"
    ),
]

READ = "SELECT * FROM t ORDER BY id"

UPSERTS = [
    f"INSERT INTO t {proposed} ON CONFLICT {outcome}"
    for proposed in (
        "VALUES (1, -1, 1)",
        "VALUES (1, NULL, 1)",
        "(id, u) VALUES (1, 1)",
        "VALUES (1, 1, 1)",
        "VALUES (1, 1, 1), (2, -1, 2)",
        "VALUES (1, -1, 1), (8, 8, 8)",
        "VALUES (8, 8, 8), (8, -8, 8)",
        "VALUES (NULL, 1, 9)",
        "VALUES (1, 99, 2)",
        "VALUES (1, 99, 9), (9, 9, 9)",
        "SELECT id, -n, id FROM t",
        "SELECT id, n + 1, u FROM t",
        f"SELECT number, 1 - number / 999, -number FROM {numbers(1001)}",
    )
    for outcome in (
        "(id) DO NOTHING",
        "(u) DO NOTHING",
        "DO NOTHING",
        "(id) DO UPDATE SET n = 5",
        "(id) DO UPDATE SET n = t.n + EXCLUDED.n",
        "(id) DO UPDATE SET n = -1",
        "(id) DO UPDATE SET n = 5 WHERE t.n < 0",
    )
    # DuckDB updates a row twice, tique never.
    if "(8, 8, 8), (8" not in proposed or "UPDATE" not in outcome
    # DuckDB at times takes the second for a duplicate of the first, which it leaves out.
    if "(9, 9, 9)" not in proposed or outcome != "DO NOTHING"
]

MERGES = [
    "MERGE INTO t USING (VALUES (1, -1), (2, NULL)) AS v(a, b) ON t.id = a "
    "WHEN MATCHED THEN UPDATE SET n = 8 WHEN NOT MATCHED THEN INSERT VALUES (a, b, a)",
    "MERGE INTO t USING (VALUES (1, 1), (7, -1)) AS v(a, b) ON t.id = a "
    "WHEN MATCHED THEN UPDATE SET n = 8 WHEN NOT MATCHED THEN INSERT VALUES (a, b, a)",
]


def create(execute, columns="n INTEGER NOT NULL CHECK (n >= 0)", more="", kind="TABLE"):
    execute(
        f"CREATE {kind} t (id INTEGER PRIMARY KEY, {columns}, u INTEGER UNIQUE{more})"
    )
    execute("INSERT INTO t (id, n, u) VALUES (1, 1, 1), (2, 2, 2), (3, 3, NULL)")


def outcome(run):
    """What a call does: the result or the kind of error, and the rows afterwards."""
    try:
        return run()
    except Exception as error:
        return world.category(error), getattr(error, "sqlstate", None)


def natively(engine, statements, **shape):
    """The outcome of each statement on new tables, and the rows afterwards."""
    create_all: list[str] = []
    create(create_all.append, **shape)
    return natively_of(engine.native(), create_all, statements)


def natively_of(connection, definitions, statements, read=READ):
    """The same, for tables that other statements make."""
    found = {}
    for sql in statements:
        for definition in definitions:
            connection.execute(definition)
        done = outcome(lambda sql=sql: result(connection.execute(sql)))
        found[sql] = done, connection.execute(read).fetchall()
        connection.execute("DROP TABLE t")
    return found


def result(cursor):
    """The number of changed rows."""
    if isinstance(cursor.rowcount, int) and cursor.rowcount >= 0:
        return cursor.rowcount
    return cursor.fetchall()[0][0]


def expect(engine, found, wanted):
    if engine.name == "duckdb":
        # Its errors have no SQLSTATE.
        found, wanted = (
            {
                sql: (done if isinstance(done, int) else done[0], rows)
                for sql, (done, rows) in each.items()
            }
            for each in (found, wanted)
        )
    differences = {
        sql: (found[sql], wanted[sql]) for sql in wanted if found[sql] != wanted[sql]
    }
    assert not differences


def through_tique(connection, statements, run, read=READ):
    """The same, from the rows that a savepoint has."""
    connection.execute("SAVEPOINT start")
    found = {}
    for sql in statements:
        done = outcome(lambda sql=sql: run(connection, sql))
        found[sql] = done, connection.execute(read).fetchall()
        connection.execute("ROLLBACK TO start")
    return found


def executed(connection, sql):
    return result(connection.execute(sql))


def executed_many(connection, sql):
    return connection.cursor().executemany(sql, [()]).rowcount


def prepared(connection, sql):
    connection.execute(f"PREPARE p AS {sql}")
    try:
        return result(connection.execute("EXECUTE p"))
    finally:
        connection.execute("DEALLOCATE p")


def returned(connection, sql):
    return len(connection.execute(f"{sql} RETURNING *").fetchall())


@pytest.mark.slow
@pytest.mark.parametrize("state", ["own", "cached", "stored"])
def test_statements(engine, state):
    statements = [*UPSERTS, *MERGES]
    wanted = natively(engine, statements)
    connection = engine.connect(checkpoint="manual")
    create(connection.execute)
    if state != "own":
        connection.commit()
    if state == "stored":
        connection.checkpoint()
    expect(engine, through_tique(connection, statements, executed), wanted)


def test_a_duplicate_of_a_row_that_is_left_out(engine):
    """P9: a proposed row that meets a conflict is in nothing's way."""
    connection = engine.connect()
    create(connection.execute)
    sql = "INSERT INTO t VALUES (1, 99, 9), (9, 9, 9) ON CONFLICT DO NOTHING"
    assert result(connection.execute(sql)) == 1
    assert connection.execute(READ).fetchall()[-1] == (9, 9, 9)


def in_with(connection, sql):
    with_sql = f"WITH w AS ({sql} RETURNING id) SELECT count(*) FROM w"
    return connection.execute(with_sql).fetchone()[0]


@pytest.mark.slow
@pytest.mark.parametrize("run", [executed_many, prepared, returned, in_with, executed])
def test_other_ways(engine, run):
    """The last one: in a temporary table."""
    statements = UPSERTS[:35]
    wanted = natively(engine, statements)
    connection = engine.connect(checkpoint="manual")
    create(connection.execute, kind="TEMPORARY TABLE" if run is executed else "TABLE")
    expect(engine, through_tique(connection, statements, run), wanted)


@pytest.mark.written_for(["postgresql"], reason="the rows' shapes are PostgreSQL's")
@pytest.mark.parametrize(
    "shape",
    [
        {"columns": "n INTEGER", "more": ", CHECK (id + n > 0 OR u > 0)"},
        {
            "columns": "n INTEGER, g INTEGER GENERATED ALWAYS AS (n / (n - 98)) STORED "
            "NOT NULL CHECK (g < 1)"
        },
        {"columns": "n INTEGER, g INTEGER GENERATED ALWAYS AS (10 / n) STORED"},
        {
            "columns": 'n INTEGER, CONSTRAINT b CHECK (10 / n > 0), CONSTRAINT "A" '
            "CHECK (n <> 0)"
        },
    ],
    ids=["columns", "generated", "fallible", "order"],
)
def test_shapes(engine, shape):
    """NOT NULL before CHECK, that in the order of names; generated columns before both."""
    statements = [
        *UPSERTS[:28],
        "INSERT INTO t (id, n) VALUES (1, 98) ON CONFLICT DO NOTHING",
        "INSERT INTO t (id, n) VALUES (1, 99) ON CONFLICT DO NOTHING",
        "INSERT INTO t (id, n) VALUES (1, 0) ON CONFLICT DO NOTHING",
    ]
    wanted = natively(engine, statements, **shape)
    connection = engine.connect(checkpoint="manual")
    create(connection.execute, **shape)
    connection.commit()
    expect(engine, through_tique(connection, statements, executed), wanted)
