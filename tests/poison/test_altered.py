"""P4, P9: what ALTER TABLE lets in, storage takes; it leaves no row that storage does not."""

from __future__ import annotations

import pytest

import tique
from tique.errors import CheckViolation

POSTGRESQL = pytest.mark.written_for(
    ["postgresql"], reason="other engines' ALTER TABLE adds no CHECK"
)

SETUP = (
    "CREATE TYPE pair AS (a INTEGER, b TEXT)",
    "CREATE FUNCTION sure(INTEGER) RETURNS BOOLEAN IMMUTABLE LANGUAGE plpgsql AS "
    "'BEGIN RETURN random() < 2; END'",
    "CREATE DOMAIN recent AS TIMESTAMP CHECK (VALUE > localtimestamp - INTERVAL '1 s')",
)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("ADD CHECK (d <= current_date)", "current_date"),
        ("ADD COLUMN x DOUBLE PRECISION CHECK (x < random())", "random"),
        ("ADD COLUMN x INTEGER CHECK (sure(x))", "sure"),
        ("ADD CHECK (sure(n))", "sure"),
        ("ADD COLUMN x recent", "localtimestamp|recent"),
        ("ALTER d TYPE recent USING NULL", "localtimestamp|recent"),
        ("ALTER s TYPE DATE USING NULL", "converts|date"),
        ("ADD COLUMN x INTEGER UNIQUE DEFERRABLE", "DEFERRABLE|deferrable"),
        ("ADD COLUMN x OID GENERATED ALWAYS AS (tableoid) STORED", "tableoid"),
    ],
)
@POSTGRESQL
def test_a_change_after_which_storage_might_refuse_rows(engine, change, reason):
    native = engine.native()
    for statement in SETUP:
        native.execute(statement)
    connection = engine.connect(checkpoint="manual")
    connection.execute(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER, d DATE, s TEXT, "
        "CHECK (CAST(s AS TEXT) <> 'x'))"
    )
    connection.execute("INSERT INTO t VALUES (1, 1, NULL, NULL)")
    connection.commit()
    with pytest.raises((tique.NotSupportedError, tique.ProgrammingError), match=reason):
        connection.execute(f"ALTER TABLE t {change}")
    connection.rollback()
    connection.execute("UPDATE t SET n = 2")
    connection.commit()
    connection.checkpoint()
    assert connection.execute("SELECT * FROM t").fetchall() == [(1, 2, None, None)]
    engine.close()
    native = engine.native()
    for statement in ("DROP TYPE pair", "DROP FUNCTION sure", "DROP DOMAIN recent"):
        native.execute(f"{statement} CASCADE")


@POSTGRESQL
def test_a_row_that_is_in_memory_only(engine):
    """The CHECK is for every row that was acknowledged, and for every later one."""
    connection = engine.connect(checkpoint="manual")
    other = engine.connect()
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, n INTEGER)")
    connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (1, -1)")
    connection.commit()
    with pytest.raises(CheckViolation):
        connection.execute("ALTER TABLE t ADD CHECK (n > 0)")
    connection.rollback()
    connection.execute("UPDATE t SET n = 1")
    connection.commit()
    connection.execute("ALTER TABLE t ADD CHECK (n > 0)")
    with pytest.raises(CheckViolation):
        other.execute("UPDATE t SET n = -1")
    other.rollback()
    connection.execute("UPDATE t SET n = 5")
    connection.commit()
    connection.checkpoint()
    assert {table.obstacle for table in connection.status().tables} == {None}


@pytest.mark.never(
    ["monetdb"], raises=tique.NotSupportedError, reason="MonetDB 11.41 has none"
)
def test_values_that_do_not_fit_the_new_type(engine):
    """Storage and memory agree: all values are converted, or none."""
    connection = engine.connect(checkpoint="manual")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, v VARCHAR(20))")
    connection.execute("INSERT INTO t VALUES (1, '7'), (2, '300')")
    connection.commit()
    connection.checkpoint()
    connection.execute("INSERT INTO t VALUES (3, 'x')")
    connection.commit()
    with pytest.raises(tique.DatabaseError):
        connection.execute(
            "ALTER TABLE t ALTER v TYPE SMALLINT USING CAST(v AS SMALLINT)"
        )
    connection.rollback()
    connection.execute("DELETE FROM t WHERE id = 3")
    connection.commit()
    # DuckDB converts the values of deleted rows too.
    connection.execute(
        "ALTER TABLE t ALTER v TYPE SMALLINT USING CAST(nullif(v, 'x') AS SMALLINT)"
    )
    for value in ("32768", "'x'"):
        with pytest.raises(tique.DataError):
            connection.execute(f"INSERT INTO t VALUES (4, {value})")
        connection.rollback()
    connection.execute("INSERT INTO t VALUES (4, 32767)")
    connection.commit()
    connection.checkpoint()
    assert {table.obstacle for table in connection.status().tables} == {None}
    found = connection.execute("SELECT v FROM t ORDER BY id").fetchall()
    assert found == [(7,), (300,), (32767,)]
