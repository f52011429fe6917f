"""Values in SQL text come back as they were (P11)."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from uuid import UUID

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tique_backends.duckdb.values.literals import listed, literal

VALUES = {
    "BOOLEAN": [True, False, None],
    "TINYINT": [-128, 127, None],
    "INTEGER": [0, -(2**31), 2**31 - 1, None],
    "BIGINT": [2**63 - 1, -(2**63), None],
    "UBIGINT": [2**64 - 1, 0],
    "HUGEINT": [2**126, -(2**126), None],
    "DOUBLE": [0.1, -0.0, 1e308, 5e-324, float("inf"), float("-inf"), None],
    "DECIMAL(12,2)": [Decimal("-9999999999.99"), Decimal("0.00"), None],
    "DECIMAL(38,10)": [Decimal("1234567890123456789012345678.0123456789")],
    "VARCHAR": [
        "",
        "it's",
        '"\\',
        "\0",
        "a\0'b",
        "[1,NULL]",
        "NULL",
        "ü\U0001f600",
        None,
    ],
    "BLOB": [b"", b"\x00\xff'\\", bytes(range(256)), None],
    "DATE": [date(1, 1, 1), date(9999, 12, 30), None],
    "TIME": [time(23, 59, 59, 999999), None],
    "TIMESTAMP": [datetime(1, 2, 3), datetime(2026, 11, 21, 1, 2, 3, 456789), None],
    "UUID": [UUID("12345678-1234-5678-1234-567812345678"), None],
}


@pytest.fixture(scope="module")
def run():
    connection = duckdb.connect()
    yield lambda sql: connection.execute(sql).fetchall()
    connection.close()


@pytest.mark.parametrize("kind", VALUES)
def test_one_value(run, kind):
    for value in VALUES[kind]:
        ((found,),) = run(f"SELECT CAST({literal(value)} AS {kind})")
        assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize("kind", VALUES)
def test_a_column_of_values(run, kind):
    text = listed(VALUES[kind], kind)
    rows = run(f"SELECT CAST(v AS {kind}) FROM (SELECT unnest({text}) AS v)")
    assert [v for (v,) in rows] == VALUES[kind]
    assert [repr(v) for (v,) in rows] == [repr(v) for v in VALUES[kind]]


@pytest.fixture(scope="module")
def duckdb_connection():
    with duckdb.connect() as connection:
        yield connection


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"]))))
)
def test_any_text(duckdb_connection, values):
    text = listed(values, "VARCHAR")
    rows = duckdb_connection.execute(f"SELECT unnest({text})").fetchall()
    assert [v for (v,) in rows] == values
    for value in values[:3]:
        sql = f"SELECT CAST({literal(value)} AS VARCHAR)"
        assert duckdb_connection.execute(sql).fetchall() == [(value,)]
