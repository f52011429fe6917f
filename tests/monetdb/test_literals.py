"""Values in MonetDB's SQL text come back as they were (P11)."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tique_backends.errors import EngineError, ErrorKind
from tique_backends.monetdb.values.inserting import insert
from tique_backends.monetdb.values.literals import assigned, literal, quoted, typed

HOSTILE = [
    "",
    "it's",
    "''",
    "\\",
    "\\'",
    "\\' OR 1=1 --",
    "'; DROP TABLE x; --",
    "/* $1 */",
    "$1",
    "NULL",
    "null",
    "%s",
    " a  ",
    "\t\n\r\f\v\x01\x07\x7f",
    "a,\tb]\n[ 1",
    "!40002!x\n&2 1",
    '"',
    "\x80\x85\x9f\xa0",
    "ü\u2028\ufeff\U0001f600",
    "\\302\\205 \\n",
]

VALUES = {
    "BOOLEAN": [True, False],
    "TINYINT": [-127, 127],
    "SMALLINT": [-(2**15) + 1, 2**15 - 1],
    "INTEGER": [0, -1, -(2**31) + 1, 2**31 - 1],
    "BIGINT": [2**63 - 1, -(2**63) + 1],
    "HUGEINT": [2**127 - 1, -(2**127) + 1],
    "DOUBLE": [0.1, -0.0, 1.7976931348623157e308, 5e-324, 1e16, -2.5e-8],
    "REAL": [0.1, -0.5, 16777216.0, 1e-40],
    "DECIMAL(12,2)": [Decimal("-9999999999.99"), Decimal("0.00"), Decimal("1.50")],
    "DECIMAL(38,10)": [Decimal("1234567890123456789012345678.0123456789")],
    "DECIMAL(38,0)": [Decimal(10**38 - 1), Decimal(-(10**38) + 1)],
    "CLOB": HOSTILE,
    "VARCHAR(40)": HOSTILE,
    "CHAR(40)": HOSTILE,
    "BLOB": [b"", b"\x00\xff'\\", bytes(range(256))],
    "DATE": [date(1, 1, 1), date(9999, 12, 31)],
    "TIME(6)": [time(0), time(23, 59, 59, 999999)],
    "TIME(6) WITH TIME ZONE": [
        time(0, tzinfo=UTC),
        time(12, 57, 18, 123456, tzinfo=timezone(timedelta(hours=2, minutes=30))),
    ],
    "INTERVAL SECOND": [
        timedelta(0),
        timedelta(milliseconds=-1),
        timedelta(days=1, seconds=4, milliseconds=500),
        timedelta(days=999_999_999),
    ],
    "TIMESTAMP": [datetime(1, 2, 3), datetime(2026, 11, 21, 1, 2, 3, 456789)],
    "TIMESTAMP(3)": [datetime(2026, 11, 21, 1, 2, 3, 456000)],
    "TIMESTAMP WITH TIME ZONE": [
        datetime(2026, 11, 21, 1, 2, 3, 456789, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=-5, minutes=-30))),
    ],
    "UUID": [UUID("12345678-1234-5678-1234-567812345678"), UUID(int=1)],
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_comes_back_from_a_column(session, engine, kind):
    """Bound, assigned and written as a typed literal: the same value and type."""
    session.execute(f"CREATE TABLE app.v (n INTEGER, v {kind})")
    values = [*VALUES[kind], None]
    for n, value in enumerate(values):
        session.execute("INSERT INTO app.v VALUES ($1, $2)", [3 * n, value])
        session.execute(f"INSERT INTO app.v VALUES ({3 * n + 1}, {assigned(value)})")
        session.execute(f"INSERT INTO app.v SELECT {3 * n + 2}, {typed(value, kind)}")
    result = session.execute("SELECT v FROM app.v ORDER BY n")
    found = [v for (v,) in result.fetch_all()]
    assert found == [value for value in values for _ in range(3)]
    assert {type(v) for v in found} == {type(v) for v in values}
    assert [repr(v) for v in found if isinstance(v, float)] == [
        repr(v) for v in values for _ in range(3) if isinstance(v, float)
    ]
    assert result.columns[0].type == kind


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("repeated", [1, 20], ids=["VALUES", "COPY"])
def test_many_values_come_back_from_a_column(session, kind, repeated):
    """NULL first, NULL last, on either way of the rows."""
    session.execute(f"CREATE TABLE app.v (n INTEGER, v {kind}, w CLOB)")
    values = [None, *VALUES[kind], None] * repeated
    rows = [(n, value, "\\N") for n, value in enumerate(values)]
    size = 5 if repeated == 1 else len(rows)
    for at in range(0, len(rows), size):
        session.change(insert("app.v", rows[at : at + size], ("INTEGER", kind, "CLOB")))
    found = session.execute("SELECT n, v, w FROM app.v ORDER BY n").fetch_all()
    assert found == rows
    assert [repr(row) for row in found if isinstance(row[1], float)] == [
        repr(row) for row in rows if isinstance(row[1], float)
    ]


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=20))
def test_any_text_through_copy(session, values):
    values = [value.replace("\0", "") for value in values] + ["x"] * 11
    session.execute("CREATE LOCAL TEMPORARY TABLE c (n INT, t CLOB, u CLOB) "
                    "ON COMMIT PRESERVE ROWS")  # fmt: skip
    try:
        rows = [(n, value, value[::-1]) for n, value in enumerate(values)]
        assert session.change(
            insert("tmp.c", rows, ("INTEGER", "CLOB", "CLOB"))
        ) == len(rows)
        sql = "SELECT * FROM tmp.c ORDER BY n"
        assert session.execute(sql).fetch_all() == rows
    finally:
        session.execute("DROP TABLE tmp.c")


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_is_equal_to_its_literals(session, kind):
    session.execute(f"CREATE TABLE app.v (v {kind})")
    for value in VALUES[kind]:
        session.execute("INSERT INTO app.v VALUES ($1)", [value])
        for text in (literal(value), typed(value, kind)):
            if kind == "REAL" and text == literal(value):
                continue  # A double is not the nearest real.
            sql = f"SELECT count(*) FROM app.v WHERE v = {text}"
            assert session.execute(sql).fetch_all() == [(1,)], (value, text)
        session.execute("DELETE FROM app.v")


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=20))
def test_any_text(session, values):
    values = [value.replace("\0", "") for value in values]
    if not values:
        return
    items = ", ".join(f"${i + 1} AS a{i}" for i in range(len(values)))
    rows = session.execute(f"SELECT {items}", values).fetch_all()
    assert rows == [tuple(values)]


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.datetimes(),
    st.decimals(-(10**20), 10**20, places=15),
)
def test_any_number_and_moment(session, double, real, moment, number):
    shortest = float(f"{real:.9g}")
    assume(repr(real) != "-0.0")  # MonetDB's REAL loses the sign.
    assume(struct.unpack("f", struct.pack("f", shortest))[0] == real)
    sql = (
        f"SELECT CAST($1 AS DOUBLE), CAST({typed(shortest, 'REAL')} AS REAL), "
        "CAST($2 AS TIMESTAMP), CAST($3 AS DECIMAL(38,15))"
    )
    ((found, found_real, found_moment, found_number),) = session.execute(
        sql, [double, moment, number]
    ).fetch_all()
    assert repr(found) == repr(double)
    assert struct.pack("f", found_real) == struct.pack("f", shortest)
    assert found_moment == moment
    assert found_number == number


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("a\0b", "NUL"),
        ("\ud800", "Unicode"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (Decimal("NaN"), "NaN"),
        (Decimal("Infinity"), "Infinity"),
        (Decimal("1E+40"), "38 digits"),
        (UUID(int=0), "zeros"),
        (2**127, "too many digits"),
        (-(2**127), "too many digits"),
        (time(1, tzinfo=ZoneInfo("Europe/Berlin")), "depends on the date"),
        (time(1, tzinfo=timezone(timedelta(seconds=1172))), "minutes"),
        (datetime(1900, 1, 1, tzinfo=timezone(timedelta(seconds=1172))), "minutes"),
        ([1], "list"),
        ({}, "dict"),
        (object(), "object"),
        (timedelta(microseconds=1001), "fractions of a millisecond"),
    ],
)
def test_what_monetdb_does_not_have_is_refused(value, message):
    for write in (literal, lambda value: insert("t", [(value,)] * 20, ["CLOB"])):
        with pytest.raises(EngineError, match=message) as refusal:
            write(value)
        assert refusal.value.kind is ErrorKind.DATA


def test_subclasses_are_what_they_derive_from():
    class Word(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "'; DROP"

    class Number(int):
        def __str__(self) -> str:
            return "1; DROP"

        __repr__ = __str__

    assert literal(Word("it's")) == quoted("it's") == "R'it''s'"
    assert literal(Number(7)) == "7"
    assert '"it\'s"|7\n' in insert(
        "t", [(Word("it's"), Number(7))] * 20, ("CLOB", "INTEGER")
    )
    assert assigned(Number(-7)) == typed(Number(-7), "INTEGER")[5:9] == "(-7)"


@pytest.mark.parametrize(
    "kind", ["TINYINT", "SMALLINT", "INTEGER", "BIGINT"], ids=str.lower
)
def test_the_smallest_integer_never_becomes_null(session, kind):
    """MonetDB's NULL is the smallest value of the type."""
    session.execute(f"CREATE TABLE app.v (v {kind})")
    bits = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}[kind]
    rows = [(-(2 ** (bits - 1)),)]
    for statement in (
        insert("app.v", rows, [kind]),
        insert("app.v", rows * 20, [kind]),
    ):
        with pytest.raises(EngineError) as refusal:
            session.execute(statement)
        assert refusal.value.kind is ErrorKind.DATA
    assert session.execute("SELECT * FROM app.v").fetch_all() == []


@pytest.mark.parametrize(
    ("kind", "value"),
    [("VARCHAR(3)", "long"), ("INTEGER", 2**31), ("DECIMAL(5,2)", Decimal(1000))],
)
def test_what_does_not_fit_is_refused(session, kind, value):
    """As an assignment refuses it, and the message has no value (P11)."""
    session.execute(f"CREATE TABLE app.v (v {kind})")
    for rows in ([(value,)], [(value,)] * 20):
        with pytest.raises(EngineError) as refusal:
            session.execute(insert("app.v", rows, [kind]))
        assert refusal.value.kind is ErrorKind.DATA
        assert len(rows) == 1 or str(value) not in str(refusal.value)
