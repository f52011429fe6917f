"""ON CONFLICT and MERGE of rows that Python cannot hold, as the bare engine has them (P1, P3, P8, P9)."""

from __future__ import annotations

import pytest

import tique
from tests.dbapi.test_proposed_rows import executed, expect, natively_of, through_tique
from tique import errors

pytestmark = pytest.mark.fresh_tables

TYPES = {
    "duckdb": {
        "DATE": ("DATE 'infinity'", "DATE '-infinity'"),
        "TIMESTAMP": ("TIMESTAMP 'infinity'", "NULL"),
        "UNION(a INTEGER, b VARCHAR)": ("union_value(a := 1)", "union_value(b := '1')"),
        "JSON[]": ("['[1]'::JSON, NULL]", "['{}'::JSON]"),
        "VARIANT": ("5::VARIANT", "'a'::VARIANT"),
        "GEOMETRY": ("'POINT(1 2)'::GEOMETRY", "NULL"),
    },
    "postgresql": {
        "DATE": ("DATE 'infinity'", "DATE '-infinity'"),
        "TIMESTAMP": ("TIMESTAMP 'infinity'", "TIMESTAMP '-infinity'"),
        "MONEY": ("MONEY '1.50'", "MONEY '-2'"),
        "XML": ("XML '<a>1</a>'", "XML '<b/>'"),
        "NAME": ("NAME 'abc'", "NAME 'é'"),
        "OID": ("OID '7'", "OID '4294967295'"),
        '"char"': ("'a'::\"char\"", "'z'::\"char\""),
        "mood": ("'sad'::mood", "'glad'::mood"),
        "positive": ("1::positive", "2::positive"),
    },
}
BEFORE = {
    "postgresql": (
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE DOMAIN positive AS INTEGER CHECK (VALUE > 0)",
    )
}
DEFINE = "CREATE TABLE t (id INTEGER PRIMARY KEY, x {}, n INTEGER DEFAULT 7 NOT NULL)"
FILL = "INSERT INTO t VALUES (1, {0}, 1), (2, {1}, 2), (3, NULL, 3)"
UPSERTS = [
    "INSERT INTO t VALUES (1, {1}, 5), (4, {0}, 5) ON CONFLICT (id) DO UPDATE "
    "SET n = t.n + EXCLUDED.n, x = EXCLUDED.x",
    "INSERT INTO t VALUES (1, {1}, 5), (4, {1}, 5), (3, NULL, 6) ON CONFLICT (id) "
    "DO UPDATE SET n = EXCLUDED.n WHERE t.x IS NOT NULL",
    "INSERT INTO t (id, x) SELECT id + 1, x FROM t ON CONFLICT (id) DO UPDATE "
    "SET x = NULL, n = t.id + EXCLUDED.id",
    "INSERT INTO t (id) VALUES (9) ON CONFLICT (id) DO UPDATE SET n = DEFAULT",
    "INSERT INTO t (id) VALUES (2) ON CONFLICT (id) DO UPDATE SET n = DEFAULT",
    "INSERT INTO t VALUES (1, {0}, 5), (6, {0}, 1), (6, {1}, 2) ON CONFLICT DO NOTHING",
    "INSERT INTO t SELECT id, x, n FROM t ON CONFLICT (id) DO NOTHING",
    "INSERT INTO t VALUES (NULL, {0}, 5) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO t VALUES (1, {0}, NULL), (8, {0}, 2) ON CONFLICT (id) DO NOTHING",
    "INSERT INTO t VALUES (1, {0}, 2) ON CONFLICT (id) DO UPDATE SET n = NULL",
    "INSERT INTO t VALUES (1, {0}, 2) ON CONFLICT (id) DO UPDATE SET n = 1 / (t.n - 1)",
]
MERGE = "MERGE INTO t USING (VALUES (1, 5), (3, 6), (8, 7)) AS v(k, m) ON t.id = v.k "
MERGES = [
    MERGE + "WHEN MATCHED THEN UPDATE SET n = t.n + v.m, x = {1} "
    "WHEN NOT MATCHED THEN INSERT VALUES (v.k, {0}, v.m)",
    MERGE + "WHEN MATCHED AND t.n = 1 THEN DELETE WHEN MATCHED THEN UPDATE "
    "SET id = 1, x = {0} WHEN NOT MATCHED THEN INSERT (id) VALUES (v.k)",
    MERGE + "WHEN MATCHED AND t.n = 1 THEN DO NOTHING WHEN MATCHED THEN DELETE",
    MERGE + "WHEN NOT MATCHED THEN INSERT VALUES (2, {0}, 1)",
    MERGE + "WHEN NOT MATCHED THEN INSERT VALUES (v.k, {0}, NULL)",
    "MERGE INTO t USING (VALUES (7), (7)) AS v(k) ON t.id = v.k "
    "WHEN NOT MATCHED THEN INSERT VALUES (v.k, {0}, 0)",
]
READ = {
    "duckdb": "SELECT id, CAST(x AS VARCHAR), n FROM t ORDER BY id",
    "postgresql": "SELECT id, CAST(x AS TEXT), n FROM t ORDER BY id",
}


def cases():
    return [
        pytest.param(kind, marks=pytest.mark.written_for([name], reason="its type"))
        for name, kinds in TYPES.items()
        for kind in kinds
    ]


@pytest.fixture
def shape(engine, request):
    """A table of the type, its rows, and the statements."""
    kind = request.param
    values = TYPES[engine.name][kind]
    create = [DEFINE.format(kind), FILL.format(*values)]
    statements = [sql.format(*values) for sql in [*UPSERTS, *MERGES]]
    return create, statements


@pytest.mark.parametrize("shape", cases(), indirect=True)
def test_statements(engine, shape):
    """In rows of the buffer, in storage, and staged by earlier statements."""
    create, statements = shape
    before = BEFORE.get(engine.name, ())
    natives = engine.native()
    for sql in before:
        natives.execute(sql)
    read = READ[engine.name]
    wanted = natively_of(natives, create, statements, read)
    connection = engine.connect(checkpoint="manual")
    for sql in create:
        connection.execute(sql)
    expect(engine, through_tique(connection, statements, executed, read), wanted)
    connection.commit()
    connection.checkpoint()
    expect(engine, through_tique(connection, statements, executed, read), wanted)
    connection.rollback()
    connection.execute("DROP TABLE t")
    connection.commit()
    connection.close()
    for sql in reversed(before):
        _, kind, name, *_ = sql.split()
        engine.native().execute(f"DROP {kind} {name}")


KEYS = {
    "duckdb": ("DOUBLE", "'nan'::DOUBLE", "'-nan'::DOUBLE"),
    "postgresql": ("INTERVAL", "INTERVAL '1 month'", "INTERVAL '30 days'"),
    "monetdb": ("REAL", "CAST(0 AS REAL)", "CAST('-0.0' AS REAL)"),
}
"""Types of keys with two texts of equal values."""


@pytest.fixture
def connection(engine):
    """A table whose key has values that are equal and not the same."""
    connection = engine.connect(checkpoint="manual")
    kind, first, _ = KEYS[engine.name]
    connection.execute(f"CREATE TABLE q (x {kind} PRIMARY KEY, n INTEGER)")
    connection.execute(f"INSERT INTO q VALUES ({first}, 1)")
    connection.commit()
    return connection


def test_equal_keys(engine, connection):
    """P8, P9: they are compared as the engine compares them; parameters everywhere."""
    _, _, second = KEYS[engine.name]
    upsert = (
        f"INSERT INTO q VALUES ({second}, %s) ON CONFLICT (x) DO UPDATE "
        "SET n = q.n * %s + EXCLUDED.n WHERE q.n < %s RETURNING n"
    )
    for rounds, n in enumerate((12, 122)):
        assert connection.execute(upsert, (2, 10, 100)).fetchall() == [(n,)]
        assert connection.execute(upsert, (2, 10, rounds)).fetchall() == []
    connection.rollback()
    cursor = connection.cursor()
    rows = [(2, 10, 9), (3, 10, 90), (4, 10, 9)]
    cursor.executemany(upsert.replace(" RETURNING n", ""), rows)
    assert cursor.rowcount == 2
    nothing = f"INSERT INTO q VALUES ({second}, %s) ON CONFLICT DO NOTHING"
    assert cursor.execute(nothing, (5,)).rowcount == 0
    merge = (
        f"MERGE INTO q USING (SELECT {second} AS k, n FROM q) AS v ON q.x = v.k "
        "WHEN MATCHED THEN UPDATE SET n = q.n + v.n"
    )
    assert cursor.execute(merge).rowcount == 1
    connection.commit()
    connection.checkpoint()
    connection.close()
    assert engine.native().execute("SELECT n FROM q").fetchall() == [(246,)]


def test_a_row_that_is_met_twice(engine, connection):
    _, first, second = KEYS[engine.name]
    with pytest.raises(errors.CardinalityViolation, match="second time"):
        connection.execute(
            f"INSERT INTO q VALUES ({first}, 5), ({second}, 6) ON CONFLICT (x) "
            "DO UPDATE SET n = 0"
        )
    with pytest.raises(tique.NotSupportedError, match=r"changes its key.*q"):
        connection.execute(
            f"INSERT INTO q VALUES ({first}, 5) ON CONFLICT (x) DO UPDATE SET x = {second}"
        )
    assert connection.execute("SELECT n FROM q").fetchall() == [(1,)]


@pytest.mark.parametrize("folded", [False, True])
def test_another_transaction_commits(engine, connection, folded):
    """P3: updated and inserted keys are certified."""
    _, _, second = KEYS[engine.name]
    others = [engine.connect(checkpoint="manual") for _ in range(2)]
    for other in others:
        other.execute(
            f"INSERT INTO q VALUES ({second}, 5) ON CONFLICT (x) DO UPDATE SET n = 6"
        )
    connection.rollback()
    connection.execute("UPDATE q SET n = 2")
    connection.commit()
    if folded:
        connection.checkpoint()
    for other in others:
        with pytest.raises(tique.SerializationError):
            other.commit()
    connection.rollback()
    assert connection.execute("SELECT n FROM q").fetchall() == [(2,)]


@pytest.mark.written_for(["postgresql"], reason="only there such a value IS NULL")
def test_a_composite_of_nulls(engine):
    """P8, P9: it is a value, as for PostgreSQL's own NOT NULL and keys."""
    statements = [
        "INSERT INTO t VALUES ('(,)', 5, '(,)') ON CONFLICT (k) DO UPDATE SET n = t.n + 1",
        "INSERT INTO t VALUES ('(,)', 5, '(,)'), ('(1,)', 2, '(,)') ON CONFLICT DO NOTHING",
        "INSERT INTO t VALUES ('(2,)', 5, NULL) ON CONFLICT (k) DO NOTHING",
        "MERGE INTO t USING (VALUES (1)) AS v(m) ON t.n = 1 "
        "WHEN MATCHED THEN UPDATE SET n = 9 WHEN NOT MATCHED THEN DO NOTHING",
    ]
    create = [
        "CREATE TABLE t (k pair PRIMARY KEY, n INTEGER, v pair NOT NULL)",
        "INSERT INTO t VALUES ('(,)', 1, '(,)')",
    ]
    read = "SELECT CAST(k AS TEXT), n, CAST(v AS TEXT) FROM t ORDER BY 2"
    native = engine.native()
    native.execute("CREATE TYPE public.pair AS (a INTEGER, b TEXT)")
    wanted = natively_of(native, create, statements, read)
    with engine.connect() as connection:
        for sql in create:
            connection.execute(sql)
        expect(engine, through_tique(connection, statements, executed, read), wanted)
        connection.rollback()
        connection.execute("DROP TABLE t")
        connection.commit()
    engine.native().execute("DROP TYPE public.pair")
